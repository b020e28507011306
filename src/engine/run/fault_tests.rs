//! Every kind of sensor fault against sources that make their own data, where no file could carry one.
//! Tables have the same faults in `tests/cli/faults.rs`, and HAI files in `stream::hai`.

use std::ops::ControlFlow;
use std::path::Path;

use super::*;
use crate::engine::prepare::prepare;
use crate::stream::test_faults::{Fault, Faulty};

/// What is said of it, and whether of the client alone.
fn word(fault: Fault) -> (&'static str, bool) {
    match fault {
        Fault::NotANumber | Fault::Infinite => ("gap", true),
        Fault::Gap => ("gap", false),
        Fault::Stuck => ("stuck", true),
        Fault::OutOfRange | Fault::Wild => ("range", true),
    }
}

/// What is wrong with the data, each as client and words.
fn quality(facts: &[Fact]) -> Vec<(Option<&str>, &str)> {
    let mut found = Vec::new();
    for fact in facts {
        if let Fact::Quality(quality) = fact {
            found.push((quality.client.as_deref(), quality.what.as_str()));
        }
    }
    found
}

#[test]
fn every_kind_of_sensor_fault_is_told_by_its_name_and_disturbs_no_other_client() {
    let plant = "Session(about: \"a plant\", source: Plant(history_h: 1, hours: 1), \
        sampling: (decimate: Every(5)), model: (federation: Online(passes: 1)))";
    let twin = "Session(about: \"a twin\", source: Twin(family: A, clients: 3), \
        sampling: (decimate: Every(1)), \
        model: (proprietary: Linear, epochs: 1, federation: Batched(rounds: 1)))";
    let mut runs = 0;
    for (source, text, sensor) in [("plant", plant, "P1_PIT01"), ("twin", twin, "")] {
        let session = Session::parse(source, Path::new(""), text).expect("a sound session");
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("kept.safetensors");
        let prepared =
            prepare(&session, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
        let site = &prepared.clients[0];
        let k = site.view.names.iter().position(|name| name == sensor).unwrap_or(0);
        let sensor = (site.view.used[k], site.view.mean[k], site.view.std[k]);
        for fault in Fault::ALL {
            for mode in [Mode::Evidence, Mode::Paper] {
                let what = format!("{source}, {fault:?}, {mode:?}");
                let stream = Grids::of(&session).and_then(|g| g.open(&session, Part::Replay));
                let stream = stream.expect("a source of the program itself");
                let every = u64::from(prepared.every);
                let stream = Box::new(Faulty::new(stream, fault, sensor, every));
                let until = Some(Mark::Step(500));
                let options = RunOptions { until, ..RunOptions::new(mode) };
                let mut run = Run::over(stream, &session, &prepared, options).expect("a run");
                let mut facts = Vec::new();
                while run.step(&mut facts).expect("no bad rows").is_some() {}
                facts.extend(run.end());
                let said = quality(&facts);
                let (word, of_client) = word(fault);
                let whose = of_client.then_some(site.name.as_str());
                assert!(said.contains(&(whose, word)), "{what}: {said:?}");
                let of_others = |(client, said): &(Option<&str>, &str)| {
                    client.is_some_and(|client| client != site.name) && *said == word
                };
                assert!(!said.iter().any(of_others), "{what}: {said:?}");
                for fact in &facts {
                    assert!(!fact.to_line().contains("NaN"), "{what}: {}", fact.to_line());
                }
                runs += 1;
            }
        }
    }
    println!("{runs} runs of faulty sensors: 6 kinds, plant and twin, both modes");
}
