//! Where rows stand in time: gaps, wrong stamps, clocks that move, runs placed one after the other.
//!
//! A stamp that continues the row before it is believed at once. Any other is held against the rows
//! that follow: the fewest rows are left out that make time grow. When enough rows in succession
//! agree with each other and not with what came before, the clock itself has moved and is followed.
//!
//! Guarantees:
//! - frames leave in strictly growing time;
//! - one wrong stamp costs its own row and no other;
//! - every row is a frame or is left out for a stated reason.

use jiff::{SignedDuration, Timestamp};

use super::chain::{self, Chain};
use crate::stream::{Continuity, NoteKind};

/// UpcomingRows that are looked at together when a stamp does not continue the row before it.
pub(crate) const WINDOW: usize = 40;
/// So many rows that agree with each other are believed against what came before them.
pub(crate) const ENOUGH: usize = WINDOW / 2;
/// A jump is far when it is longer than this and than [`FAR_ROWS`] periods.
const FAR: SignedDuration = SignedDuration::from_hours(24);
/// See [`FAR`].
const FAR_ROWS: i32 = 1000;

/// The time of a stream so far. Frames leave it in strictly growing time.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    period: SignedDuration,
    /// Time of the last frame.
    last: Option<Timestamp>,
    /// What the present run is moved by, so that it begins after the run before it.
    shift: SignedDuration,
    /// What the run was moved by before its clock went back.
    before: Option<SignedDuration>,
}

/// What becomes of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Placed {
    Frame(FramePlace),
    LeftOut(NoteKind),
}

/// Where a frame stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FramePlace {
    pub(crate) time: Timestamp,
    pub(crate) continuity: Continuity,
    /// What its run is moved by from here on.
    shift: SignedDuration,
    /// What its run was moved by before its clock went back.
    before: Option<SignedDuration>,
    /// The stamp that was expected, where the clock of the data has moved.
    pub(crate) moved_from: Option<Timestamp>,
}

/// A row among those that follow it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpcomingRows<'a> {
    /// Its stamp and those of the rows after it, of the same file and run, up to [`WINDOW`].
    pub(crate) stamps: &'a [Timestamp],
    /// It begins a run.
    pub(crate) new_run: bool,
    /// It is among the first rows of a file, which may repeat the end of the file before it.
    pub(crate) may_overlap: bool,
}

impl Timeline {
    pub(crate) fn new(period: SignedDuration) -> Self {
        Self { period, last: None, shift: SignedDuration::ZERO, before: None }
    }

    /// Regular distance of two rows.
    pub(crate) fn period(&self) -> SignedDuration {
        self.period
    }

    /// Time of the last frame.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Whether a row with this stamp follows the last frame by one period: it can be placed without
    /// a look at the rows after it.
    pub(crate) fn continues(&self, stamp: Timestamp) -> bool {
        let time = stamp.checked_add(self.shift).ok();
        self.last.zip(time).is_some_and(|(last, time)| time > last && self.is_next(last, time))
    }

    /// Where the first of `rows` stands; `None` beyond the end of time. Nothing is remembered until
    /// [`Timeline::advance`].
    pub(crate) fn place(&self, rows: UpcomingRows<'_>) -> Option<Placed> {
        let stamp = *rows.stamps.first()?;
        let Some(last) = self.last.filter(|_| !rows.new_run) else {
            return self.begin(stamp, rows.stamps);
        };
        if self.continues(stamp) {
            return self.follow(stamp, last);
        }
        let chain = Chain::after(last.checked_sub(self.shift).ok()?, rows.stamps, self.period);
        if let Some(back) = self.clock_went_back(last, rows, &chain) {
            return Some(Placed::Frame(back));
        }
        let time = stamp.checked_add(self.shift).ok()?;
        if !chain.keeps_first() {
            return Some(Placed::LeftOut(why(time, last)));
        }
        let jump = time.duration_since(last);
        let agreeing = self.agreeing(rows.stamps, &chain);
        // Between two files years may pass; within a file the rows have to say so.
        let believed =
            if rows.may_overlap { is_backed(agreeing, &chain) } else { agreeing >= ENOUGH };
        if self.is_far(jump) && !believed {
            return Some(Placed::LeftOut(NoteKind::WrongStamp));
        }
        if let Some(back) = self.clock_came_back(stamp, last, &chain) {
            return Some(Placed::Frame(back));
        }
        match self.follow(stamp, last)? {
            Placed::Frame(place) if self.is_far(jump) && !rows.may_overlap => {
                let moved_from = last.checked_sub(self.shift).ok();
                Some(Placed::Frame(FramePlace { moved_from, ..place }))
            }
            placed => Some(placed),
        }
    }

    /// The first row of a stream or of a run.
    fn begin(&self, stamp: Timestamp, stamps: &[Timestamp]) -> Option<Placed> {
        let chain = Chain::of(stamps, self.period);
        let agreeing = self.agreeing(stamps, &chain);
        // Of several rows with the same stamp the first one counts.
        let is_kept = chain.kept().next().is_some_and(|row| stamps[row] == stamp);
        if !is_kept || !is_backed(agreeing, &chain) {
            return Some(Placed::LeftOut(NoteKind::WrongStamp));
        }
        // A run that begins later by its own clock keeps it: what is known about it is often known
        // by that clock.
        let time = match self.last {
            Some(last) if stamp <= last => last.checked_add(self.period).ok()?,
            _ => stamp,
        };
        Some(Placed::Frame(FramePlace {
            time,
            continuity: Continuity::NewRun,
            shift: time.duration_since(stamp),
            before: None,
            moved_from: None,
        }))
    }

    /// A row that is later than the last frame.
    fn follow(&self, stamp: Timestamp, last: Timestamp) -> Option<Placed> {
        let time = stamp.checked_add(self.shift).ok()?;
        let hole = time.duration_since(last).as_secs_f64() - self.period.as_secs_f64();
        let continuity = if self.is_next(last, time) {
            Continuity::Next
        } else {
            Continuity::Gap { seconds: hole }
        };
        let (shift, before) = (self.shift, self.before);
        Some(Placed::Frame(FramePlace { time, continuity, shift, before, moved_from: None }))
    }

    /// The clock went back for good, as at the end of summer time: enough rows that are not later
    /// than the last frame agree with each other, and more than go on from it. They are placed after
    /// it.
    fn clock_went_back(
        &self,
        last: Timestamp,
        rows: UpcomingRows<'_>,
        chain: &Chain,
    ) -> Option<FramePlace> {
        if rows.may_overlap || chain.keeps_first() {
            return None;
        }
        let stamp = *rows.stamps.first()?;
        let last_stamp = last.checked_sub(self.shift).ok()?;
        let before = rows.stamps.iter().position(|s| *s > last_stamp).unwrap_or(rows.stamps.len());
        let own = Chain::of(&rows.stamps[..before], self.period);
        let agreeing = own.regular_from_first();
        if agreeing < ENOUGH || agreeing <= chain.len() {
            return None;
        }
        let time = last.checked_add(self.period).ok()?;
        Some(FramePlace {
            time,
            continuity: Continuity::Next,
            shift: time.duration_since(stamp),
            before: Some(self.shift),
            moved_from: Some(last_stamp),
        })
    }

    /// The clock that went back is where it was before.
    fn clock_came_back(
        &self,
        stamp: Timestamp,
        last: Timestamp,
        chain: &Chain,
    ) -> Option<FramePlace> {
        let shift = self.before?;
        let time = stamp.checked_add(shift).ok()?;
        let continues = time > last && self.is_next(last, time);
        (continues && chain.regular_from_first() >= ENOUGH).then_some(FramePlace {
            time,
            continuity: Continuity::Next,
            shift,
            before: None,
            moved_from: last.checked_sub(self.shift).ok(),
        })
    }

    /// Clocks of loggers jitter: half a period more is still the next row.
    fn is_next(&self, last: Timestamp, time: Timestamp) -> bool {
        chain::is_about(time.duration_since(last), self.period, 1)
            || time.duration_since(last) <= self.period
    }

    fn is_far(&self, jump: SignedDuration) -> bool {
        jump > FAR && self.period.checked_mul(FAR_ROWS).is_none_or(|rows| jump > rows)
    }

    /// How many rows, from the first on, the chain keeps without a far jump between two of them.
    fn agreeing(&self, stamps: &[Timestamp], chain: &Chain) -> usize {
        let kept: Vec<Timestamp> = chain.kept().map(|row| stamps[row]).collect();
        let is_near = |pair: &&[Timestamp]| !self.is_far(pair[1].duration_since(pair[0]));
        kept.len().min(1) + kept.windows(2).take_while(is_near).count()
    }

    /// Remembers a frame that was handed out.
    pub(crate) fn advance(&mut self, place: &FramePlace) {
        self.last = Some(place.time);
        self.shift = place.shift;
        self.before = place.before;
    }
}

/// Whether so many rows at the beginning of a chain, all near each other, are enough or the better
/// half of it.
fn is_backed(agreeing: usize, chain: &Chain) -> bool {
    agreeing >= ENOUGH || 2 * agreeing >= chain.len()
}

/// Why a row is left out that other rows contradict.
fn why(time: Timestamp, last: Timestamp) -> NoteKind {
    match time.cmp(&last) {
        std::cmp::Ordering::Equal => NoteKind::DuplicateStamp,
        std::cmp::Ordering::Less => NoteKind::BackwardStamp,
        std::cmp::Ordering::Greater => NoteKind::WrongStamp,
    }
}

/// Fewer stamps than this show no regularity.
const FEWEST_REGULAR: usize = 10;

/// The usual distance of these stamps, where at least half of the distances are it.
pub(crate) fn regular_step(stamps: &[Timestamp]) -> Option<SignedDuration> {
    let step = usual_step(stamps)?;
    let regular = |pair: &&[Timestamp]| chain::is_about(pair[1].duration_since(pair[0]), step, 1);
    let regular = stamps.windows(2).filter(regular).count();
    (stamps.len() >= FEWEST_REGULAR && 2 * regular >= stamps.len()).then_some(step)
}

/// The usual distance of these stamps: the most frequent positive difference, the smallest of
/// several; `None` when no stamp is later than the one before.
pub(crate) fn usual_step(stamps: &[Timestamp]) -> Option<SignedDuration> {
    let mut steps: Vec<i64> = stamps
        .windows(2)
        .filter_map(|pair| {
            // To the microsecond: seconds written as decimals differ in the last digits.
            let step = pair[1].duration_since(pair[0]) + SignedDuration::from_nanos(500);
            i64::try_from(step.as_micros()).ok()
        })
        .filter(|micros| *micros > 0)
        .collect();
    steps.sort_unstable();
    let mut best = (0, None);
    for same in steps.chunk_by(|a, b| a == b) {
        if same.len() > best.0 {
            best = (same.len(), Some(SignedDuration::from_micros(same[0])));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    /// Every row of several runs, a row a minute, and what became of it.
    fn placed(rows: &[(i64, bool)]) -> Vec<Placed> {
        let mut timeline = Timeline::new(SignedDuration::from_secs(60));
        let mut begins = false;
        let mut all = Vec::new();
        for row in 0..rows.len() {
            begins |= rows[row].1;
            let same_run = rows[row + 1..].iter().take_while(|(_, new_run)| !new_run);
            let stamps: Vec<Timestamp> =
                rows[row..=row].iter().chain(same_run).map(|row| at(row.0)).take(WINDOW).collect();
            let rows = UpcomingRows { stamps: &stamps, new_run: begins, may_overlap: false };
            let placed = timeline.place(rows).expect("the end of time is far away");
            if let Placed::Frame(place) = &placed {
                timeline.advance(place);
                begins = false;
            }
            all.push(placed);
        }
        all
    }

    fn walk(rows: &[(i64, bool)]) -> Vec<(i64, Continuity)> {
        let frame = |placed: Placed| match placed {
            Placed::Frame(place) => Some((place.time.as_second(), place.continuity)),
            Placed::LeftOut(_) => None,
        };
        placed(rows).into_iter().filter_map(frame).collect()
    }

    fn run(stamps: impl IntoIterator<Item = i64>) -> Vec<Placed> {
        placed(&stamps.into_iter().map(|stamp| (stamp, false)).collect::<Vec<_>>())
    }

    fn left_out(placed: &[Placed]) -> Vec<(usize, NoteKind)> {
        let why = |(row, placed): (usize, &Placed)| match placed {
            Placed::LeftOut(why) => Some((row, *why)),
            Placed::Frame(_) => None,
        };
        placed.iter().enumerate().filter_map(why).collect()
    }

    fn moves(placed: &[Placed]) -> Vec<(usize, i64)> {
        let moved = |(row, placed): (usize, &Placed)| match placed {
            Placed::Frame(place) => Some((row, place.moved_from?.as_second())),
            Placed::LeftOut(_) => None,
        };
        placed.iter().enumerate().filter_map(moved).collect()
    }

    #[test]
    fn a_wrong_stamp_is_left_out_wherever_it_stands_and_whatever_it_says() {
        let year_2099 = 4_070_908_800;
        for wrong in [year_2099, -year_2099, 0, 1_000_001, 1_003_600] {
            for row in [0, 1, 50, 98, 99] {
                let stamps = (0..100).map(|i| if i == row { wrong } else { 1_000_000 + 60 * i });
                let placed = run(stamps);
                let expected = 1_000_000 + 60 * row;
                let lost = left_out(&placed);
                assert!(lost.len() <= 1, "{wrong} in row {row}: {lost:?}");
                let fits = (wrong - expected).abs() < 86_400 && [0, 99].contains(&row);
                assert!(
                    fits || lost.iter().all(|(lost, _)| i64::try_from(*lost) == Ok(row)),
                    "{lost:?}"
                );
                assert!(fits || wrong == 1_000_001 || lost.len() == 1, "{wrong} in row {row}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_not_set_at_first_costs_the_rows_before_it_was_set() {
        let placed = run((0..5).map(|i| 60 * i).chain((0..95).map(|i| 1_600_000_000 + 60 * i)));
        let lost: Vec<_> = (0..5).map(|row| (row, NoteKind::WrongStamp)).collect();
        assert_eq!(left_out(&placed), lost);
    }

    #[test]
    fn a_clock_that_moves_for_good_is_followed_and_not_one_row_is_lost() {
        let summer = (0..180).map(|i| 60 * i);
        let winter = (0..180).map(|i| 120 * 60 + 60 * i);
        let placed = run(summer.chain(winter.clone()));
        assert_eq!(left_out(&placed), []);
        assert_eq!(moves(&placed), [(180, 179 * 60)]);
        // In spring it goes on as if nothing had been.
        let spring = (0..100).map(|i| 120 * 60 + 180 * 60 + 3600 + 60 * i);
        let placed = run((0..180).map(|i| 60 * i).chain(winter).chain(spring));
        assert_eq!(left_out(&placed), []);
        assert_eq!(moves(&placed).len(), 2);
        let regular = |placed: &Placed| matches!(placed, Placed::Frame(place) if place.continuity == Continuity::Next);
        assert!(placed[1..].iter().all(regular));
    }

    #[test]
    fn a_jump_ahead_is_a_gap_and_a_far_one_says_that_the_clock_moved() {
        let jump = |by: i64| run((0..100).map(|i| 60 * i + if i < 50 { 0 } else { by }));
        let (near, far) = (jump(7200), jump(100 * 86_400));
        assert_eq!((left_out(&near), moves(&near)), (vec![], vec![]));
        assert_eq!((left_out(&far), moves(&far)), (vec![], vec![(50, 49 * 60)]));
    }

    #[test]
    fn stamps_that_never_grow_are_one_frame_and_the_others_are_counted() {
        let equal = left_out(&run(vec![500; 200]));
        assert_eq!(equal, (1..200).map(|r| (r, NoteKind::DuplicateStamp)).collect::<Vec<_>>());
        let reversed = left_out(&run((0..200).map(|i| 60_000 - 60 * i)));
        assert_eq!(reversed, (1..200).map(|r| (r, NoteKind::BackwardStamp)).collect::<Vec<_>>());
    }

    #[test]
    fn of_rows_that_are_all_written_twice_every_second_one_is_a_duplicate() {
        let twice = left_out(&run((0..200).map(|i| 60 * (i / 2))));
        let every_second = (0..100).map(|i| (2 * i + 1, NoteKind::DuplicateStamp));
        assert_eq!(twice, every_second.collect::<Vec<_>>());
    }

    #[test]
    fn a_few_rows_that_are_written_twice_are_left_out() {
        let placed = run((0..60).chain(55..60).chain(60..120).map(|i| 60 * i));
        assert_eq!(left_out(&placed).len(), 5);
        assert_eq!(moves(&placed), []);
    }

    #[test]
    fn a_run_whose_clock_restarts_begins_one_period_after_the_run_before() {
        use Continuity::{Gap, NewRun, Next};
        let frames =
            walk(&[(60, true), (120, false), (60, true), (120, false), (300, false), (9000, true)]);
        let expected = [
            (60, NewRun),
            (120, Next),
            (180, NewRun),
            (240, Next),
            (420, Gap { seconds: 120.0 }),
            (9000, NewRun),
        ];
        assert_eq!(frames, expected);
    }

    #[test]
    fn the_usual_step_is_the_most_frequent_one() {
        let stamps = [0, 60, 120, 180, 175, 3600, 3660].map(at);
        assert_eq!(usual_step(&stamps), Some(SignedDuration::from_secs(60)));
        assert_eq!(usual_step(&[at(5), at(5), at(1)]), None);
        assert_eq!(usual_step(&[]), None);
    }

    proptest! {
        #[test]
        fn time_never_goes_backward_whatever_the_stamps(
            rows in prop::collection::vec((-500_i64..500, any::<bool>()), 0..60),
        ) {
            let frames = walk(&rows);
            prop_assert!(frames.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }

        #[test]
        fn any_one_corrupted_stamp_loses_at_most_that_row(
            rows in 3_usize..150, at: prop::sample::Index, wrong in prop_oneof![
                any::<i32>().prop_map(i64::from),
                1_500_000_000_i64..1_500_010_000,
                -60_000_000_000_i64..250_000_000_000,
            ],
        ) {
            let clean: Vec<i64> = (0_i64..).map(|i| 1_500_000_000 + 60 * i).take(rows).collect();
            let mut stamps = clean.clone();
            let row = at.index(rows);
            stamps[row] = wrong;
            let placed = run(stamps.iter().copied());
            prop_assert!(left_out(&placed).len() <= 1);
            // A wrong stamp at an end of the file can pass for a gap, but it moves no other row.
            for (i, placed) in placed.iter().enumerate().filter(|(i, _)| *i != row) {
                if let Placed::Frame(place) = placed {
                    prop_assert_eq!(place.time.as_second(), clean[i]);
                }
            }
        }

        #[test]
        fn clean_stamps_lose_no_row_whatever_gaps_they_have(
            steps in prop::collection::vec(prop_oneof![9 => Just(60_i64), 1 => 1_i64..80_000], 0..150),
        ) {
            let stamps = steps.iter().scan(0, |time, step| { *time += step; Some(*time) });
            let stamps: Vec<i64> = stamps.collect();
            let frames = walk(&stamps.iter().map(|s| (*s, false)).collect::<Vec<_>>());
            prop_assert_eq!(frames.iter().map(|f| f.0).collect::<Vec<_>>(), stamps);
        }
    }
}
