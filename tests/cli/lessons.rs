//! Training over the broker: sites and a server that have no models learn them together.

use std::fmt::Write as _;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::remote::{PATIENCE, Plant, Running, SITES, incidents};
use crate::tables::{rows, wide};

/// Two clients. A site has its own columns; who learns how is for the test to say.
fn session(model: &str, privacy: &str) -> String {
    format!(
        "Session(about: \"steps\", source: Table(data: \".\", \
         time: (column: \"time\", format: Seconds(since: \"2026-01-01 00:00:00\"))), \
         clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
         ranges: (fit: (files: [\"fit.csv\"], until: \"+3000 steps\"), \
         calibration: (files: [\"fit.csv\"], from: \"+3000 steps\"), \
         replay: (files: [\"day.csv\"])), \
         sampling: (decimate: Every(1)), thresholds: (arl0: \"2900s\"), \
         privacy: ({privacy}), model: (proprietary: Linear, epochs: 1, {model}))"
    )
}

/// The columns of one client.
fn columns(client: &str, from: u32, to: u32) -> String {
    let first = if client == "A" { 0 } else { 2 };
    let name = client.to_lowercase();
    let mut text = format!("time,{name}1,{name}2\n");
    for (t, cells, _) in rows(from, to) {
        let (one, two) = (cells[first], cells[first + 1]);
        writeln!(text, "{t},{one},{two}").expect("a text takes everything");
    }
    text
}

/// Starts everybody in a folder of its own, and waits until the run is over.
fn run_apart(plant: &Plant) {
    let url = format!("mqtts://127.0.0.1:{}", plant.port);
    let certs = plant.path("certs");
    let certs = certs.to_str().expect("a plain name");
    let start = |who: &str, args: &[&str]| {
        let mut words = args.to_vec();
        words.extend(["--seed", "7", "--broker", &*url, "--certs", certs]);
        plant.spawn_in(&plant.path(&format!("machine-{who}")), &words, &[], who)
    };
    let mut sites: Vec<Running> =
        ["A", "B"].iter().map(|who| start(who, &["site", "short.ron", "--client", who])).collect();
    let mut server = start("server", &["serve", "short.ron"]);
    assert!(server.ends_well(), "{} {}", plant.read("server.err"), plant.read("A.err"));
    for (site, name) in sites.iter_mut().zip(["A", "B"]) {
        assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn sites_with_their_own_data_alone_learn_with_a_server_without_any_what_one_process_learns() {
    let noised = "epsilon_c: 8.0, epsilon_a: 8.0, epsilon_g: 8.0, epsilon_flag: 4.0";
    for (mode, model, privacy) in [
        ("evidence", "federation: Online(passes: 1)", noised),
        ("paper", "federation: Batched(rounds: 12), batch: 8", "epsilon_flag: 4.0"),
    ] {
        let text = session(model, privacy);
        let files = [("fit.csv", wide(0, 6000)), ("day.csv", wide(6000, 7000))];
        let mut plant = Plant::of(&text, mode, &files);
        plant.apart = true;
        for who in ["A", "B", "server"] {
            let folder = plant.path(&format!("machine-{who}"));
            fs::create_dir(&folder).expect("a folder");
            fs::write(folder.join("short.ron"), &text).expect("written");
            if who != "server" {
                fs::write(folder.join("fit.csv"), columns(who, 0, 6000)).expect("written");
                fs::write(folder.join("day.csv"), columns(who, 6000, 7000)).expect("written");
            }
        }
        let facts = plant.says(&["run", "short.ron", "--mode", mode, "--seed", "7", "--json"]);
        let alone = incidents(&facts);
        assert!(!alone.is_empty(), "the step is an incident");
        let _broker = plant.broker();
        run_apart(&plant);
        let said = plant.read("server.err");
        assert!(said.contains("training over the broker"), "{said}");
        assert_eq!(incidents(&plant.read("server")), alone, "{mode}: {said}");
        println!("{said}");
        // The ledgers of the sites have what those of one process have, training and all.
        let ledgers = |facts: &str| -> Vec<String> {
            let lines = facts.lines().filter(|line| line.contains("\"fact\":\"ledger\""));
            lines.map(str::to_owned).collect()
        };
        let of_sites = ["A", "B"].map(|who| ledgers(&plant.read(who))).concat();
        assert_eq!(of_sites, ledgers(&facts), "{mode}");
        // Everybody has kept its own part and nothing else: it is not learned again.
        for who in ["A", "B", "server"] {
            let kept = fs::read_dir(plant.path(&format!("cache-{who}"))).expect("a cache");
            let kept = kept.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
            let kept: Vec<String> = kept.filter(|name| name.ends_with(".safetensors")).collect();
            assert!(kept.len() == 1 && kept[0].contains(who), "{who}: {kept:?}");
        }
        run_apart(&plant);
        let said = plant.read("server.err");
        assert!(!said.contains("training over the broker"), "{said}");
        assert_eq!(incidents(&plant.read("server")), alone, "{mode}: {said}");
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_lost_round_is_repeated_and_a_server_or_site_killed_in_training_makes_all_begin_anew() {
    let text = "Session(about: \"short\", source: Plant(attacks: Only([\"S101\"]), history_h: 3, \
        hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
        ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")), \
        privacy: (epsilon_flag: 4.0), model: (federation: Online(passes: 12)))";
    let mut plant = Plant::of(text, "evidence", &[]);
    plant.apart = true;
    let mut broker = plant.broker();
    let mut sites = SITES.map(|name| plant.site(name));
    let mut server = plant.start("serve", &[], "server");
    let wait_for = |what: &str| {
        let begin = Instant::now();
        while !plant.read("server.err").contains(what) {
            assert!(begin.elapsed() < PATIENCE, "{what}: {}", plant.read("server.err"));
            sleep(Duration::from_millis(10));
        }
    };
    wait_for("training over the broker");
    // A server that is killed in training begins it anew, and so do the sites.
    sleep(Duration::from_millis(300));
    server.kill();
    let mut server = plant.start("serve", &[], "server");
    wait_for("training over the broker");
    broker.kill();
    broker = plant.broker();
    sleep(Duration::from_millis(300));
    sites[1].kill();
    sites[1] = plant.site("P2");
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    for (site, name) in sites.iter_mut().zip(SITES) {
        assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
    }
    drop(broker);
    let said = plant.read("server.err");
    assert!(said.contains("P2 has forgotten the training: it begins anew"), "{said}");
    assert!(said.contains("1 trainings begun anew"), "{said}");
    let of_site = plant.read("P1.err");
    assert_eq!(of_site.matches("the training was broken off").count(), 2, "{of_site}");
    assert!(!said.contains("training is over: 0 words repeated"), "{said}");
    assert_eq!(incidents(&plant.read("server")), plant.alone(), "{said}");
    println!("{said}");
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_run_goes_on_without_a_site_that_has_left_and_with_it_when_it_returns() {
    let plant = Plant::new("evidence");
    plant.alone();
    let _broker = plant.broker();
    let mut sites = SITES.map(|name| plant.site(name));
    let serve = |more: &[&str], out: &str| {
        let mut server = plant.start("serve", more, out);
        let begin = Instant::now();
        let all = SITES.iter().filter(|name| !more.contains(name));
        let online: Vec<String> = all.map(|name| format!("{name} is online")).collect();
        while !online.iter().all(|what| plant.read(&format!("{out}.err")).contains(what)) {
            assert!(begin.elapsed() < PATIENCE, "{}", plant.read(&format!("{out}.err")));
            sleep(Duration::from_millis(20));
        }
        sleep(Duration::from_secs(3));
        server.kill();
    };
    serve(&["--speed", "500"], "all");
    sites[2].kill();
    serve(&["--speed", "500", "--without", "P3"], "two");
    let said = plant.read("two.err");
    assert!(said.contains("P3 has left") && said.contains("goes on after step"), "{said}");
    sites[2] = plant.site("P3");
    let mut server = plant.start("serve", &[], "server");
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    for (site, name) in sites.iter_mut().zip(SITES) {
        assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
    }
    let said = plant.read("server.err");
    let about = said.lines().find(|line| line.starts_with("headwater: P3: ")).expect(&said);
    let count = |what: &str| -> u64 {
        let (before, _) = about.split_once(what).expect(about);
        before.rsplit(' ').next().and_then(|n| n.parse().ok()).expect(about)
    };
    assert!(count(" missing") > 0, "{about}");
    assert_eq!(count(" late"), count(" missing"), "{about}");
    let opened = incidents(&plant.read("server"));
    assert!(opened.iter().any(|fact| fact["fact"] == "opened"), "{opened:?}");
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_site_leaves_a_running_federation_for_good_and_the_others_are_not_started_again() {
    let plant = Plant::new("evidence");
    plant.alone();
    let _broker = plant.broker();
    let mut sites = SITES.map(|name| plant.site(name));
    let serve = || plant.start("serve", &["--speed", "800"], "server");
    let mut server = serve();
    let wait_for = |what: &str| {
        let begin = Instant::now();
        while !plant.read("server.err").contains(what) {
            assert!(begin.elapsed() < PATIENCE, "{what}: {}", plant.read("server.err"));
            sleep(Duration::from_millis(10));
        }
    };
    wait_for("P3 is online");
    sleep(Duration::from_secs(2));
    sites[2].kill();
    let mut leaves = plant.start("site", &["--client", "P3", "--leave"], "leaves");
    assert!(leaves.ends_well(), "{}", plant.read("leaves.err"));
    wait_for("P3 has left");
    // The server remembers it.
    sleep(Duration::from_secs(1));
    server.kill();
    let mut server = serve();
    wait_for("P3 has left");
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    for (site, name) in sites[..2].iter_mut().zip(SITES) {
        assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
    }
    let facts = plant.read("server");
    assert!(facts.contains("P3 has left: its own faults are not seen"), "{facts}");
    let said = plant.read("server.err");
    assert!(said.contains("goes on after step"), "{said}");
    println!("{said}");
}
