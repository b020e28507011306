use super::*;

#[test]
fn noise_on_states_shows_in_what_the_server_sees_and_the_order_of_rows_is_fixed() {
    let rows = losses(&[1], true).unwrap();
    assert_eq!(rows.len(), 10);
    assert!(rows[..5].iter().all(|row| row.direction == "states up"));
    assert!(rows[..5].windows(2).all(|w| w[0].sigma < w[1].sigma));
    let seen: Vec<f64> =
        rows[..5].iter().map(|row| row.server_loss_seen.unwrap_or(f64::INFINITY)).collect();
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(rows.iter().all(|row| row.diverged <= row.seeds));
}

#[test]
fn flags_that_lie_name_worse_and_false_alarms_come_sooner() {
    let rows = flips(&[1], true).unwrap();
    assert_eq!(rows.len(), 8);
    let (worst, best) = (&rows[4], &rows[7]);
    assert_eq!((worst.p_a, best.p_a), (0.6, 1.0));
    assert!(worst.arl0 < best.arl0 && worst.f1 < best.f1, "{worst:?} {best:?}");
    // Run lengths are those of Z_a: lies about Z_c do not touch them.
    assert_eq!(rows[0].arl0, rows[3].arl0);
}
