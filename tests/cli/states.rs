//! Tier 2 over a broker: the states that sites send, and what is predicted from them.

use std::thread::sleep;
use std::time::Duration;

use crate::remote::{Plant, Running, incidents};

/// Four clients that influence each other: normal steps, then a fault every hundred.
fn session(privacy: &str) -> String {
    format!(
        "Session(about: \"coupled\", source: Twin(family: B, clients: 4), \
         sampling: (decimate: Every(1)), thresholds: (arl0: \"3000s\", tier: States), \
         privacy: ({privacy}), \
         model: (proprietary: Paper, epochs: 1, federation: Batched(rounds: 2), batch: 8), seed: 51)"
    )
}

/// Facts of one kind.
fn of_kind(facts: &str, kind: &str) -> Vec<String> {
    let is_one = |line: &&str| line.starts_with(&format!("{{\"fact\":\"{kind}\""));
    facts.lines().filter(is_one).map(str::to_owned).collect()
}

const CLIENTS: [&str; 4] = ["C1", "C2", "C3", "C4"];

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn states_of_tier_2_cross_the_broker_and_give_the_facts_of_one_process_also_after_kills() {
    let noised = "epsilon_c: 8.0, epsilon_a: 8.0, epsilon_g: 8.0, epsilon_flag: 4.0";
    for (privacy, kills) in [("epsilon_flag: 4.0", true), (noised, false)] {
        let mut plant = Plant::of(&session(privacy), "evidence", &[]);
        let until = ["--until", "+3500 steps"];
        let run = ["run", "short.ron", "--mode", "evidence", "--json", until[0], until[1]];
        let alone = plant.says(&run);
        assert!(!incidents(&alone).is_empty(), "there are faults");
        // Everybody has a cache of its own: they learn over the broker.
        plant.apart = true;
        let _broker = plant.broker();
        let site = |name: &str| plant.site(name);
        let mut sites: Vec<Running> = CLIENTS.iter().map(|name| site(name)).collect();
        let serve = || {
            let speed = if kills { "400" } else { "max" };
            plant.start("serve", &["--speed", speed, until[0], until[1]], "server")
        };
        let mut server = serve();
        if kills {
            while !plant.read("server.err").contains("training is over") {
                assert!(server.0.try_wait().expect("its state").is_none());
                sleep(Duration::from_millis(20));
            }
            for round in 0..4 {
                sleep(Duration::from_millis(700));
                sites[round].kill();
                sites[round] = site(CLIENTS[round]);
                sleep(Duration::from_millis(400));
                server.kill();
                server = serve();
            }
        }
        assert!(server.ends_well(), "{}", plant.read("server.err"));
        for (site, name) in sites.iter_mut().zip(CLIENTS) {
            assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
        }
        let said = plant.read("server");
        assert_eq!(incidents(&said), incidents(&alone), "{privacy}");
        let ledgers: Vec<String> =
            CLIENTS.iter().flat_map(|name| of_kind(&plant.read(name), "ledger")).collect();
        assert_eq!(ledgers, of_kind(&alone, "ledger"), "{privacy}");
        println!("{}", plant.read("server.err"));
    }
}
