use super::spending::SpendingRow;
use super::*;
use crate::score::metrics::run_length::RunTotals;

#[test]
fn noise_on_states_shows_in_what_the_server_sees_and_the_order_of_rows_is_fixed() {
    let rows = noise::rows(1, true).unwrap();
    assert_eq!(rows.len(), 2 * 10, "the plant at our settings, then at the paper's");
    assert!(rows[10..].iter().all(|row| row.family == "A2-paper"));
    assert!(rows[..5].iter().all(|row| row.direction == "states up"));
    assert!(rows[..5].windows(2).all(|w| w[0].sigma < w[1].sigma));
    let seen: Vec<f64> =
        rows[..5].iter().map(|row| row.server_loss_seen.unwrap_or(f64::INFINITY)).collect();
    assert!(seen.is_sorted(), "{seen:?}");
}

#[test]
fn flags_that_lie_answer_later_and_false_alarms_come_sooner() {
    let rows = flips::rows(1, true).unwrap();
    assert_eq!(rows.len(), 2 * 8, "the plant at our settings, then at the paper's");
    let (worst, best) = (&rows[4], &rows[7]);
    assert_eq!((worst.p_a, best.p_a), (0.6, 1.0));
    let mean = |runs: &RunTotals| RunTotals::pooled([runs]).mean;
    assert!(mean(&worst.runs.arl0) < mean(&best.runs.arl0), "{worst:?} {best:?}");
    assert!(mean(&worst.runs.arl1) > mean(&best.runs.arl1), "{worst:?} {best:?}");
    assert!(worst.recall <= best.recall, "{worst:?} {best:?}");
    // Run lengths are those of Z_a: lies about Z_c do not touch them.
    assert_eq!(rows[0].runs, rows[3].runs);
}

#[test]
fn a_dearer_symbol_is_worth_more_and_saving_saves() {
    let rows = spending::rows(1, true).unwrap();
    let of = |family: &str, method: &str| -> Vec<&SpendingRow> {
        rows.iter().filter(|row| row.family == family && row.method == method).collect()
    };
    for family in ["A2", "B4"] {
        let every = of(family, "evidence, every step");
        assert_eq!(every.len(), 4);
        let days: Vec<f64> = every[..3].iter().map(|row| row.epsilon_day.unwrap()).collect();
        assert!(days.is_sorted() && days[0] > 1.0, "{days:?}");
        assert!(every[3].epsilon_day.is_none() && every[3].f1 >= every[0].f1);
        for (window, every) in of(family, "evidence, strongest of 5 steps").iter().zip(&every) {
            assert!(window.epsilon_day < every.epsilon_day && window.basic_day < every.basic_day);
            let share = window.releases_day as f64 / every.releases_day as f64;
            assert!((0.19..0.21).contains(&share), "{window:?}");
        }
        for (raised, every) in of(family, "evidence, while raised").iter().zip(&every) {
            assert!(raised.basic_day < every.basic_day, "{raised:?}");
        }
        assert_eq!(of(family, "paper, every step").len(), 4);
    }
    assert!(rows.iter().all(|row| row.epsilon_day <= row.basic_day));
}
