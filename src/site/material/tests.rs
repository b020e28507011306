use super::*;

fn plant(hours: &str) -> Session {
    let text = format!(
        "Session(about: \"a short plant\", source: Plant(history_h: 1, hours: 1), ranges: (\
         fit: (until: \"+{hours}\"), calibration: (from: \"+{hours}\", until: \"+1h\"), \
         replay: (from: \"+1h\")))"
    );
    Session::parse("plant", std::path::Path::new(""), &text).expect("a sound session")
}

#[test]
fn the_flow_rates_repeat_their_pressures_and_all_else_is_scaled_by_the_fit_range() {
    let material = Material::read(&plant("40m"), 5, &|_| None).expect("a built-in plant");
    let boiler = &material.clients[0];
    let repeated: Vec<&str> = boiler.left_out.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(repeated, ["P1_FT01Z", "P1_FT02Z", "P1_FT03Z"]);
    assert_eq!((boiler.fit.nrows(), boiler.fit.ncols()), (480, 9));
    assert_eq!(boiler.calibration.nrows(), 240);
    for column in boiler.fit.axis_iter(Axis(1)) {
        let mean = column.mean().expect("rows");
        assert!(mean.abs() < 1e-3, "{mean}");
    }
    let mut session = plant("40m");
    session.model.repeated_sensors = true;
    let all = Material::read(&session, 5, &|_| None).expect("a built-in plant");
    assert_eq!(all.clients.iter().map(|client| client.fit.ncols()).sum::<usize>(), 21);
}

#[test]
fn a_delivered_model_sees_its_own_sensors_in_its_own_units() {
    let view = |n: &str| SensorView {
        used: vec![0],
        names: vec![n.to_owned()],
        mean: vec![10.0],
        std: vec![2.0],
    };
    let given = |_: &Layout| Some(vec![view("P1_FT01"), view("P2_SIT01"), view("P3_FIT01")]);
    let material = Material::read(&plant("40m"), 5, &given).expect("a built-in plant");
    assert_eq!(material.clients[1].fit.ncols(), 1);
    assert_eq!(material.clients[1].left_out.len(), 5);
    let mut seen = [0.0];
    material.clients[0].view.standardise(&[14.0], &mut seen);
    assert!((seen[0] - 2.0).abs() < 1e-6);
}

#[test]
fn a_sensor_too_coarse_for_live_data_is_left_out_and_a_client_of_switches_keeps_them() {
    let rows: Vec<Option<Vec<f64>>> = (0..300)
        .map(|t| {
            let wave = (f64::from(t) * 0.7).sin();
            Some(vec![wave, 0.004 * wave, f64::from(u8::from(t % 7 < 3))])
        })
        .collect();
    let step = |values: &[f64]| Resolution::estimate(values);
    let steps = [step(&[]), step(&[2.97, 2.98, 2.99]), step(&[0.0, 1.0])];
    let (view, left_out) = own_view(&["level", "pressure", "pump"], &rows, &steps, false);
    assert_eq!(view.names, ["level"]);
    let coarse = |name: &str| (name.to_owned(), LeftOut::TooCoarse);
    assert_eq!(left_out, [coarse("pressure"), coarse("pump")]);
    let pump: Vec<_> = rows.iter().map(|row| row.as_ref().map(|r| vec![r[2]])).collect();
    let (view, left_out) = own_view(&["pump"], &pump, &steps[2..], false);
    assert_eq!((view.names, left_out), (vec!["pump".to_owned()], vec![]));
}

#[test]
fn a_sensor_that_repeats_another_is_left_out_unless_the_paper_s_way_is_wanted() {
    let row = |t: i32| (f64::from(t) * 0.7).sin();
    let rows: Vec<Option<Vec<f64>>> =
        (0..300).map(|t| Some(vec![row(t), 3.0 * row(t) + 1.0])).collect();
    let steps = [Resolution::estimate(&[]), Resolution::estimate(&[])];
    let of = |keeps| own_view(&["flow", "flow_z"], &rows, &steps, keeps).0.names;
    assert_eq!(of(false), ["flow"]);
    assert_eq!(of(true), ["flow", "flow_z"]);
}

#[test]
fn known_inputs_stand_beside_the_rows_and_are_not_monitored() {
    let mut session = plant("40m");
    session.clients = crate::stream::plant::default_clients();
    session.clients[0].inputs = vec!["P1_B3004".into(), "P1_B3005".into(), "P1_STSP".into()];
    let material = Material::read(&session, 5, &|_| None).expect("a built-in plant");
    let boiler = &material.clients[0];
    assert_eq!(boiler.fit.ncols(), 9);
    assert!(!boiler.inputs.names.contains(&"P1_STSP".to_owned()), "it never moves");
    assert_eq!(boiler.fit_inputs.dim(), (480, boiler.inputs.used.len()));
    assert_eq!(boiler.calibration_inputs.nrows(), 240);
    assert_eq!(material.clients[1].fit_inputs.ncols(), 0);
}
