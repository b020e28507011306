use super::*;

#[test]
fn every_knob_is_found_by_its_name_and_keeps_the_value_it_is_turned_to() {
    let clients = ["P1".to_owned(), "P2".to_owned()];
    let number = |n| Value::Number(Number::or_zero(n));
    for knob in Knob::all(clients.len()) {
        assert_eq!(Knob::named(&knob.name(&clients), &clients), Some(knob));
        let value = match knob.row().example {
            "8h" => number(28_800.0),
            example => example.parse().map_or(Value::Text(example.into()), number),
        };
        let turn = knob.turn(&value, &clients).expect("the example is a good value");
        assert_eq!((turn.value(), turn.knob()), (value, knob));
    }
}

#[test]
fn every_row_of_the_table_is_the_row_of_its_knob() {
    for row in &TABLE {
        assert_eq!(row.knob.row().key, row.key);
    }
    assert_eq!(Knob::TauA(Some(3)).row().name(), "tau_a");
}

#[test]
fn a_threshold_is_any_percentile_that_a_session_may_name_or_a_distance() {
    let read = |value: Value| tau(&value).and_then(KnobValue::tau);
    for (text, percentile) in [("0.5%", 0.5), ("12 %", 12.0), ("99.999%", 99.999)] {
        assert_eq!(read(Value::Text(text.into())), Some(Tau::Percentile(percentile)));
    }
    assert_eq!(read(Value::Number(Number::or_zero(3.2))), Some(Tau::Value(3.2)));
}

#[test]
fn a_value_that_makes_no_sense_is_refused_in_words() {
    let said = |knob: Knob, value: Value| {
        knob.turn(&value, &["P1".to_owned()]).expect_err("nonsense").to_string()
    };
    assert!(said(Knob::TauC(None), Value::Text("101%".into())).contains("percentile"));
    assert!(said(Knob::TauC(None), Value::Text("100%".into())).contains("below 100"));
    assert!(said(Knob::TauC(None), Value::Text("0%".into())).contains("above 0"));
    assert!(said(Knob::Vote, Value::Text("6 of 5".into())).contains("3 of 5"));
    assert!(said(Knob::Vote, Value::Text("0/5".into())).contains("3 of 5"));
    assert!(said(Knob::Deadband, Value::Number(Number::or_zero(0.4))).contains("0.5 to 1"));
    assert!(said(Knob::TauC(None), Value::Unset).contains("tau_c cannot be"));
    assert!(said(Knob::EpsilonFlag, Value::Number(Number::or_zero(-1.0))).contains("above 0"));
    assert!(said(Knob::Mode, Value::Text("magic".into())).contains("evidence or paper"));
    assert_eq!(Knob::named("tau", &[]), None);
}
