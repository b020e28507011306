//! What `check` says of clients: none without a sensor, and stretches that look abnormal.

use super::*;

#[test]
fn a_client_without_a_sensor_that_moves_is_an_error_of_check_and_not_only_of_run() {
    let plant = Plant::new(1);
    let still = |row: &Vec<String>| {
        let mut row = row.clone();
        (row[3], row[4]) = ("7".into(), "8".into());
        row
    };
    plant.write("nominal.csv", &plant.nominal.iter().map(still).collect::<Vec<_>>());
    let what = "B: none of its columns moves in the fit range";
    for command in [&["check", "plant.ron"][..], &["check", "plant.ron", "--full"]] {
        let said = complaint(&plant, command);
        assert!(said.contains(what), "{command:?}: {said}");
    }
    complaint(&plant, &["run", "plant.ron"]);
}

#[test]
fn check_names_stretches_of_the_calibration_that_look_abnormal_whatever_the_noise() {
    let mut plant = Plant::new(1);
    // A burst of a minute in a calibration of 2000 rows.
    let before = |t: usize| SignedDuration::from_secs(2600 - whole(t));
    plant.nominal = (0..2600).map(|t| row(begin() - before(t), t)).collect();
    for (t, row) in plant.nominal.iter_mut().enumerate().skip(900).take(60) {
        let value: f64 = row[1].parse().expect("a number");
        row[1] = format!("{:.3}", value + 6.0 * (1.9 * t as f64).sin());
    }
    plant.write("nominal.csv", &plant.nominal);
    let check = plant.check();
    assert!(check.contains("sensitivity not known until models are made"), "{check}");
    let file = plant.folder.path().join("plant.ron");
    let session = fs::read_to_string(&file).expect("the session");
    let named = "stretches of its calibration looks abnormal";
    for privacy in ["", "privacy: (epsilon_flag: 6.0), "] {
        let noised = session.replace("sampling:", &format!("{privacy}sampling:"));
        fs::write(&file, noised).expect("written");
        let facts = plant.run();
        let is_told = quality(&facts).iter().any(|(_, what)| what.contains(named));
        assert_eq!(is_told, privacy.is_empty(), "with noise only the client knows it");
        let check = plant.check();
        assert!(check.contains(named) && !check.contains("until models are made"), "{check}");
        let silent = check.contains("no ε is chosen");
        assert_eq!(silent, privacy.is_empty(), "{check}");
    }
}
