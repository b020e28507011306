use super::*;

#[test]
fn a_linear_change_of_coordinates_is_seen_through() {
    let x = DMatrix::from_fn(50, 2, |i, j| ((3 * i + 7 * j) as f64).sin());
    let turned = Alignment {
        map: DMatrix::from_row_slice(2, 2, &[0.5, -2.0, 1.0, 0.3]),
        shift: DVector::from_vec(vec![4.0, -1.0]),
    }
    .apply(&x);
    let back = Alignment::fit(&turned, &x).apply(&turned);
    assert!((back - &x).amax() < 1e-6);
    assert!(unexplained(&x, &x) < 1e-12);
}

#[test]
fn the_condition_of_theorem_6_10_is_read_as_printed() {
    let at = |value| MaxQ95 { max: value, q95: value };
    let bounds = |l_f, delta_k| Bounds {
        l_f: at(l_f),
        l_h: at(2.0),
        delta_k: at(delta_k),
        r_o: 3.0,
        c_x: 1.0,
        clients: 3,
    };
    // 1 + 0.25·2 < 1/0.5, and ρ = (0.25·3 + 2·1 + 0.5·2·1) / (1 − 1.5·0.5).
    let holds = bounds(0.5, 0.25);
    assert!(holds.margin(|a| a.max) > 0.0);
    assert!((holds.rho().unwrap() - 3.75 / 0.25).abs() < 1e-12);
    // 1 + 0.5·2 = 1/0.5.
    assert_eq!(bounds(0.5, 0.5).rho(), None);
    assert_eq!(bounds(1.2, 0.0).rho(), None);
}
