use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn rules(stamps: Stamps) -> Rules {
    Rules { grid: SECOND, lateness: 2 * SECOND, hold: Duration::ZERO, stamps }
}

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanosecond((seconds * 1e9).round() as i128).expect("within the calendar")
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Everything that is due.
fn all(assembler: &mut Assembler, now: Duration) -> Vec<Assembled> {
    let mut rows = Vec::new();
    let mut row = Assembled::default();
    while assembler.take(now, &mut row) {
        rows.push(row.clone());
    }
    rows
}

fn rest(assembler: &mut Assembler) -> Vec<Assembled> {
    let mut rows = Vec::new();
    let mut row = Assembled::default();
    while assembler.flush(&mut row) {
        rows.push(row.clone());
    }
    rows
}

fn seconds(rows: &[Assembled]) -> Vec<i64> {
    rows.iter().map(|row| row.time.as_second()).collect()
}

/// Rows of one tag whose stamps are `stamps`, one a second of arrival.
fn rows_of(stamps: &[f64]) -> (Vec<Assembled>, Counts) {
    let mut assembler = Assembler::new(rules(Stamps::OfRows), 1);
    let mut rows = Vec::new();
    for (i, stamp) in stamps.iter().enumerate() {
        assembler.put_row(at(*stamp), &[i as f64], SECOND * i as u32);
        rows.append(&mut all(&mut assembler, SECOND * i as u32));
    }
    rows.append(&mut rest(&mut assembler));
    (rows, assembler.counts())
}

#[test]
fn a_row_leaves_when_its_last_value_comes_and_not_before() {
    let mut assembler = Assembler::new(rules(Stamps::OfValues), 2);
    assembler.put(0, at(10.1), 1.0, Quality::Good, ms(100));
    assert_eq!(all(&mut assembler, ms(900)), []);
    assembler.put(1, at(10.7), 2.0, Quality::Good, ms(950));
    let rows = all(&mut assembler, ms(950));
    assert_eq!(seconds(&rows), [10]);
    assert_eq!(rows[0].values, [1.0, 2.0]);
    assert_eq!(rows[0].continuity, Continuity::NewRun);
}

#[test]
fn a_missing_value_is_waited_for_as_long_as_the_rules_say() {
    let mut assembler = Assembler::new(rules(Stamps::OfValues), 2);
    assembler.put(0, at(10.0), 1.0, Quality::Good, ms(0));
    assert_eq!(assembler.due(), Some(ms(2000)));
    assert_eq!(all(&mut assembler, ms(1999)), []);
    let rows = all(&mut assembler, ms(2000));
    assert_eq!(rows.len(), 1);
    assert!(rows[0].values[1].is_nan());
    assembler.put(1, at(10.0), 2.0, Quality::Good, ms(2001));
    assembler.put(0, at(11.0), 2.0, Quality::Good, ms(2002));
    assert_eq!((assembler.counts().late, assembler.counts().incomplete), (1, 1));
}

#[test]
fn a_silent_tag_delays_three_rows_and_then_none_and_is_waited_for_again_once_it_sends() {
    let mut assembler = Assembler::new(rules(Stamps::OfValues), 2);
    let mut waits = Vec::new();
    for t in 0..20_u32 {
        let arrived = SECOND * t;
        assembler.put(0, at(f64::from(t)), 1.0, Quality::Good, arrived);
        if t == 12 {
            assembler.put(1, at(f64::from(t)), 2.0, Quality::Good, arrived);
        }
        for row in all(&mut assembler, arrived) {
            waits.push(arrived.saturating_sub(row.arrived).as_secs());
        }
    }
    // Rows of the seconds 0, 1 and 2 wait; when they are out, those behind them are, too.
    assert_eq!(waits[..8], [2, 2, 2, 1, 0, 0, 0, 0]);
    assert!(waits[12..].contains(&2), "waited for again: {waits:?}");
    assert!(!assembler.is_silent(0) && assembler.is_silent(1));
}

#[test]
fn a_slow_tag_is_waited_for_at_its_own_distance_and_held_in_between() {
    let rules = Rules { hold: 9 * SECOND, ..rules(Stamps::OfValues) };
    let mut assembler = Assembler::new(rules, 2);
    let mut rows = Vec::new();
    for t in 0..100_u32 {
        assembler.put(0, at(f64::from(t)), 1.0, Quality::Good, SECOND * t);
        if t % 10 == 0 {
            assembler.put(1, at(f64::from(t)), f64::from(t), Quality::Good, SECOND * t);
        }
        rows.append(&mut all(&mut assembler, SECOND * t));
    }
    let late = rows[50..].iter().filter(|row| row.values[1].is_nan()).count();
    assert_eq!(late, 0, "held between two values");
    assert_eq!(rows[58].values[1].to_bits(), 50_f64.to_bits());
    let before = assembler.counts().incomplete;
    assert!(before <= 12, "its distance is learned: {before} rows waited in vain");
}

#[test]
fn bad_quality_is_missing_and_an_older_value_does_not_stand_for_it() {
    let rules = Rules { hold: 60 * SECOND, ..rules(Stamps::OfValues) };
    let mut assembler = Assembler::new(rules, 1);
    assembler.put(0, at(1.0), 5.0, Quality::Good, ms(0));
    assembler.put(0, at(2.0), 6.0, Quality::Bad, ms(1));
    assembler.put(0, at(3.0), 7.0, Quality::Uncertain, ms(2));
    let rows = all(&mut assembler, ms(2));
    assert!(rows[1].values[0].is_nan());
    assert_eq!(rows[2].values[0].to_bits(), 7_f64.to_bits());
    let Counts { bad, uncertain, held, .. } = assembler.counts();
    assert_eq!((bad, uncertain, held), (1, 1, 0));
}

#[test]
fn one_wrong_stamp_costs_its_own_row() {
    let (rows, counts) = rows_of(&[1.0, 2.0, 3.0, 9000.0, 5.0, 6.0, -800.0, 8.0]);
    assert_eq!(seconds(&rows), [1, 2, 3, 5, 6, 8]);
    assert_eq!((counts.wrong_stamp, counts.clock_moved), (2, 0));
}

#[test]
fn a_clock_that_goes_forward_leaves_a_gap_and_loses_no_row() {
    let (rows, counts) = rows_of(&[1.0, 2.0, 3602.0, 3603.0, 3604.0]);
    assert_eq!(seconds(&rows), [1, 2, 3602, 3603, 3604]);
    assert_eq!(rows[2].continuity, Continuity::Gap { seconds: 3599.0 });
    assert_eq!(rows[2].moved, Some((at(3.0), at(3602.0))));
    assert_eq!((counts.wrong_stamp, counts.clock_moved), (0, 1));
}

#[test]
fn a_clock_that_goes_back_begins_a_run_behind_the_one_before_and_loses_no_row() {
    let stamps: Vec<f64> = (100..140).chain(110..180).map(f64::from).collect();
    let (rows, counts) = rows_of(&stamps);
    assert_eq!(rows.len(), stamps.len());
    assert!(rows.windows(2).all(|pair| pair[0].time < pair[1].time));
    assert_eq!(rows[40].continuity, Continuity::NewRun);
    assert_eq!(rows[40].moved, Some((at(140.0), at(110.0))));
    let is_next = |row: &Assembled| row.continuity == Continuity::Next;
    assert!(rows[1..40].iter().chain(&rows[41..]).all(is_next));
    assert_eq!((counts.late, counts.wrong_stamp, counts.clock_moved), (0, 0, 1));
}

#[test]
fn a_clock_far_back_is_followed_from_its_second_row() {
    let (rows, counts) = rows_of(&[7200.0, 7201.0, 10.0, 11.0, 12.0]);
    assert_eq!(rows.len(), 5);
    assert_eq!(counts.clock_moved, 1);
}

#[test]
fn redelivered_rows_are_doubled_and_are_no_clock_that_goes_back() {
    let stamps: Vec<f64> = (1..=30).map(f64::from).collect();
    let mut assembler = Assembler::new(rules(Stamps::OfRows), 1);
    let mut rows = Vec::new();
    for stamp in stamps.iter().chain(&stamps[10..]).chain(&[31.0, 32.0]) {
        assembler.put_row(at(*stamp), &[*stamp], ms(0));
        rows.append(&mut all(&mut assembler, ms(0)));
    }
    assert_eq!(rows.len(), 32);
    let Counts { doubled, late, clock_moved, .. } = assembler.counts();
    assert_eq!((doubled, late, clock_moved), (20, 0, 0));
}

#[test]
fn stamps_of_rows_may_be_a_little_early_or_late() {
    let (rows, counts) = rows_of(&[10.5, 11.1, 12.9, 13.49, 14.51]);
    assert_eq!(rows.len(), 5);
    assert!(rows[1..].iter().all(|row| row.continuity == Continuity::Next));
    assert_eq!(counts.doubled, 0);
}

proptest! {
    #[test]
    fn whatever_order_values_take_within_the_window_every_row_is_whole(
        delays in prop::collection::vec((0_u64..900, 0_u64..900, 0_u64..900), 5..40),
    ) {
        let mut arrivals: Vec<(u64, u32, usize)> = Vec::new();
        for (t, (a, b, c)) in delays.iter().enumerate() {
            for (tag, delay) in [a, b, c].into_iter().enumerate() {
                arrivals.push((1000 * t as u64 + delay, t as u32, tag));
            }
        }
        arrivals.sort_unstable();
        let mut assembler = Assembler::new(rules(Stamps::OfValues), 3);
        let mut rows = Vec::new();
        for (arrived, t, tag) in arrivals {
            assembler.put(tag, at(f64::from(t)), f64::from(t), Quality::Good, ms(arrived));
            rows.append(&mut all(&mut assembler, ms(arrived)));
        }
        prop_assert_eq!(rows.len(), delays.len());
        for (t, row) in rows.iter().enumerate() {
            prop_assert_eq!(row.time.as_second(), i64::try_from(t).expect("few rows"));
            prop_assert!(row.values.iter().all(|value| value.to_bits() == (t as f64).to_bits()));
        }
        prop_assert_eq!(assembler.counts().late, 0);
    }

    #[test]
    fn every_value_is_in_a_row_or_counted_and_time_grows(
        fates in prop::collection::vec((0_u8..20, 0_u64..6000), 20..200),
    ) {
        // Two tags; each value may be late, doubled, bad, or have a wild stamp.
        let mut arrivals: Vec<(u64, usize, f64, f64, Quality)> = Vec::new();
        for (i, (fate, delay)) in fates.iter().enumerate() {
            // The first row says where the clock stands.
            let fate = if i < 2 { &19 } else { fate };
            let (t, tag) = (i as u64 / 2, i % 2);
            let (stamp, value) = (t as f64, i as f64);
            let quality = if *fate == 0 { Quality::Bad } else { Quality::Good };
            let stamp = if *fate == 1 { stamp + 50_000.0 + i as f64 * 100.0 } else { stamp };
            let arrived = 1000 * t + if *fate == 2 { *delay } else { 0 };
            arrivals.push((arrived, tag, stamp, value, quality));
            if *fate == 3 {
                arrivals.push((arrived + delay / 10, tag, stamp, value, quality));
            }
        }
        arrivals.sort_by_key(|arrival| arrival.0);
        let mut assembler = Assembler::new(rules(Stamps::OfValues), 2);
        let mut rows = Vec::new();
        for (arrived, tag, stamp, value, quality) in &arrivals {
            assembler.put(*tag, at(*stamp), *value, *quality, ms(*arrived));
            rows.append(&mut all(&mut assembler, ms(*arrived)));
        }
        rows.append(&mut rest(&mut assembler));
        prop_assert!(rows.windows(2).all(|pair| pair[0].time < pair[1].time));
        let used: usize =
            rows.iter().flat_map(|row| &row.values).filter(|value| value.is_finite()).count();
        let Counts { late, doubled, bad, wrong_stamp, .. } = assembler.counts();
        prop_assert!(wrong_stamp <= fates.iter().filter(|(fate, _)| *fate == 1).count() as u64);
        prop_assert_eq!(used as u64 + late + doubled + bad + wrong_stamp, arrivals.len() as u64);
    }
}

#[test]
fn thousands_of_rows_that_come_again_are_doubled_and_no_clock_went_back() {
    let value = |t: u32| f64::from(t).sin();
    for again_from in [9_990, 9_900, 5_000] {
        let mut rows = Assembler::new(rules(Stamps::OfRows), 2);
        let mut values = Assembler::new(rules(Stamps::OfValues), 2);
        let mut came = [Vec::new(), Vec::new()];
        // Rows until 10,000 come; then the connection is lost, and they come again from `again_from`.
        for t in (0..10_000).chain(again_from..12_000) {
            let (time, arrived) = (at(f64::from(t)), SECOND * t);
            rows.put_row(time, &[value(t), 1.0], arrived);
            values.put(0, time, value(t), Quality::Good, arrived);
            values.put(1, time, 1.0, Quality::Good, arrived);
            came[0].append(&mut seconds(&all(&mut rows, arrived)));
            came[1].append(&mut seconds(&all(&mut values, arrived)));
        }
        let again = u64::from(10_000 - again_from);
        assert_eq!(came[0], (0..12_000).collect::<Vec<i64>>());
        assert_eq!(came[1], came[0]);
        assert_eq!((rows.counts().doubled, values.counts().doubled), (again, 2 * again));
        assert_eq!((rows.counts().clock_moved, values.counts().clock_moved), (0, 0));
        assert_eq!((rows.counts().late, values.counts().late), (0, 0));
    }
}

#[test]
fn rows_of_a_clock_that_went_back_are_known_when_they_come_again() {
    let mut assembler = Assembler::new(rules(Stamps::OfRows), 1);
    let mut rows = Vec::new();
    // The clock goes back by 100 s after 1000 rows; 200 rows later 150 of them come again.
    let stamps = (0..1000).chain(900..1100).chain(950..1300);
    for (i, stamp) in stamps.enumerate() {
        let came = if i < 1200 { i } else { i - 150 };
        assembler.put_row(at(f64::from(stamp)), &[came as f64], SECOND * i as u32);
        rows.append(&mut all(&mut assembler, SECOND * i as u32));
    }
    let values: Vec<usize> = rows.iter().map(|row| row.values[0] as usize).collect();
    assert_eq!(values, (0..1400).collect::<Vec<_>>());
    let Counts { doubled, clock_moved, .. } = assembler.counts();
    assert_eq!((doubled, clock_moved), (150, 1));
}

#[test]
fn what_a_transport_has_sent_before_is_doubled_where_its_row_is_out_and_used_where_it_is_not() {
    let mut assembler = Assembler::new(rules(Stamps::OfRows), 1);
    let mut rows = Vec::new();
    // Rows that were forgotten long ago come again, and some that never came.
    for (t, again) in (0..70_000).map(|t| (t, false)).chain((100..70_050).map(|t| (t, true))) {
        let time = at(f64::from(t));
        if !again || !assembler.came_again(time) {
            assembler.put_row(time, &[f64::from(t)], SECOND * t);
        }
        rows.append(&mut seconds(&all(&mut assembler, SECOND * t)));
    }
    assert_eq!(rows, (0..70_050).collect::<Vec<i64>>());
    let Counts { doubled, clock_moved, .. } = assembler.counts();
    assert_eq!((doubled, clock_moved), (69_900, 0));
}

#[test]
fn a_silent_tag_that_sends_again_is_waited_for_again_although_others_send_before_it() {
    let mut assembler = Assembler::new(rules(Stamps::OfValues), 2);
    let mut rows = Vec::new();
    for second in 0..40_u32 {
        let (stamp, now) = (at(f64::from(second)), SECOND * second);
        assembler.put(0, stamp, 1.0, Quality::Good, now);
        rows.append(&mut all(&mut assembler, now));
        // The second tag is away for ten seconds, and sends after the first one otherwise.
        if !(10..20).contains(&second) {
            assembler.put(1, stamp, 2.0, Quality::Good, now + ms(10));
            rows.append(&mut all(&mut assembler, now + ms(10)));
        }
    }
    rows.append(&mut rest(&mut assembler));
    assert_eq!(rows.len(), 40);
    let lacking = rows.iter().filter(|row| row.values[1].is_nan()).count();
    assert_eq!((lacking, assembler.counts().late), (11, 1), "one row until it is known to be back");
}

#[test]
fn a_tag_that_is_always_later_than_rows_wait_delays_no_row_for_good() {
    let mut assembler = Assembler::new(rules(Stamps::OfValues), 2);
    for second in 0..40_u32 {
        let now = SECOND * second;
        assembler.put(0, at(f64::from(second)), 1.0, Quality::Good, now);
        all(&mut assembler, now);
        if second >= 3 {
            assembler.put(1, at(f64::from(second - 3)), 2.0, Quality::Good, now + ms(10));
            all(&mut assembler, now + ms(10));
        }
    }
    assert!(assembler.is_silent(1));
}
