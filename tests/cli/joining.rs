//! Sites that join a federation that runs, and sites that come back to it with another model.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::remote::{PATIENCE, Plant, Running, incidents};
use crate::site_recording::export;

/// Nominal rows, and rows of the day that is watched.
const NOMINAL: u32 = 6000;
const DAY: u32 = 3000;

/// Clients A, B and C with two sensors each. Who learns how is the same for all.
fn session(clients: &[&str], model: &str) -> String {
    let client =
        |name: &&str| format!("(name: \"{name}\", columns: [\"{}*\"])", name.to_lowercase());
    let clients: Vec<String> = clients.iter().map(client).collect();
    format!(
        "Session(about: \"steps\", source: Table(data: \".\", \
         time: (column: \"time\", format: Seconds(since: \"2026-01-01 00:00:00\"))), \
         clients: [{}], \
         ranges: (fit: (files: [\"fit.csv\"], until: \"+3000 steps\"), \
         calibration: (files: [\"fit.csv\"], from: \"+3000 steps\"), \
         replay: (files: [\"day.csv\"])), \
         sampling: (decimate: Every(1)), thresholds: (arl0: \"29000s\"), \
         privacy: (epsilon_flag: 4.0), model: (proprietary: Linear, epochs: 1, {model}))",
        clients.join(", ")
    )
}

/// Rows `from..to` of one client: noise of its own, and a step of its sensors in `faults`.
fn columns(client: &str, seed: u64, (from, to): (u32, u32), faults: &[(u32, u32)]) -> String {
    let name = client.to_lowercase();
    let mut state = seed ^ u64::from(client.as_bytes()[0]).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut text = format!("time,{name}1,{name}2\n");
    for t in from..to {
        let cells = [(); 2].map(|()| (0..12).map(|_| uniform()).sum::<f64>() - 6.0);
        let is_event = faults.iter().any(|(begin, end)| (*begin..*end).contains(&t));
        let step = if is_event { 20.0 } else { 0.0 };
        writeln!(text, "{t},{},{}", cells[0] + step, cells[1] + step).expect("a text");
    }
    text
}

/// The faults of each client in the day.
fn faults(client: &str) -> &'static [(u32, u32)] {
    match client {
        "A" => &[(6200, 6300), (8200, 8300)],
        "B" => &[(8500, 8600)],
        _ => &[(6350, 6400), (7900, 8000)],
    }
}

/// Everybody on a machine of its own, with its own data.
struct Machines {
    plant: Plant,
    mode: &'static str,
}

impl Machines {
    fn new(clients: &[&str], mode: &'static str, model: &str) -> Self {
        let mut plant = Plant::of(&session(clients, model), mode, &[]);
        plant.apart = true;
        let machines = Self { plant, mode };
        for who in ["A", "B", "C", "server"] {
            let folder = machines.plant.path(&format!("machine-{who}"));
            fs::create_dir(&folder).expect("a folder");
            fs::write(folder.join("short.ron"), session(clients, model)).expect("written");
            if who != "server" {
                let (nominal, day) = ((0, NOMINAL), (NOMINAL, NOMINAL + DAY));
                fs::write(folder.join("fit.csv"), columns(who, 1, nominal, &[])).expect("written");
                let text = columns(who, 2, day, faults(who));
                fs::write(folder.join("day.csv"), text).expect("written");
            }
        }
        machines
    }

    fn start(&self, who: &str, args: &[&str]) -> Running {
        let url = format!("mqtts://127.0.0.1:{}", self.plant.port);
        let certs = self.plant.path("certs");
        let certs = certs.to_str().expect("a plain name");
        let mut words = args.to_vec();
        words.extend(["--seed", "7", "--broker", &*url, "--certs", certs]);
        self.plant.spawn_in(&self.plant.path(&format!("machine-{who}")), &words, &[], who)
    }

    fn site(&self, who: &str) -> Running {
        self.start(who, &["site", "short.ron", "--client", who])
    }

    /// The same with a recording.
    fn recorded_site(&self, who: &str, file: &str) -> Running {
        self.start(who, &["site", "short.ron", "--client", who, "--record", file])
    }

    fn serve(&self, more: &[&str]) -> Running {
        self.start("server", &[&["serve", "short.ron"], more].concat())
    }

    /// An operator beside the server accepts a site.
    fn accept(&self, who: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_headwater"))
            .current_dir(self.plant.path("machine-server"))
            .env("HEADWATER_CACHE", self.plant.path("cache-server"))
            .env("HEADWATER_CONFIG", self.plant.path("config"))
            .args(["serve", "short.ron", "--seed", "7", "--mode", self.mode, "--accept", who])
            .output()
            .expect("the program runs")
    }

    fn said(&self, who: &str) -> String {
        self.plant.read(&format!("{who}.err"))
    }

    fn wait_for(&self, who: &str, what: &str) {
        let begin = Instant::now();
        while !self.said(who).contains(what) {
            assert!(begin.elapsed() < PATIENCE, "{what}: {}", self.said(who));
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a fact was printed.
    fn wait_for_fact(&self, is_one: impl Fn(&Value) -> bool) {
        let begin = Instant::now();
        let whole = || {
            let text = self.plant.read("server");
            text.rsplit_once('\n').map_or(String::new(), |(whole, _)| whole.to_owned())
        };
        while !incidents(&whole()).iter().any(&is_one) {
            assert!(begin.elapsed() < PATIENCE, "{} {}", whole(), self.said("server"));
            sleep(Duration::from_millis(10));
        }
    }

    /// What one process with the data of `clients` says of incidents.
    fn alone(&self, clients: &[&str], model: &str) -> Vec<Value> {
        let texts = |file: &str| -> Vec<String> {
            let read = |who| self.plant.path(&format!("machine-{who}")).join(file);
            clients.iter().map(|who| fs::read_to_string(read(who)).expect("rows")).collect()
        };
        for file in ["fit.csv", "day.csv"] {
            let texts = texts(file);
            let mut lines: Vec<String> = texts[0].lines().map(str::to_owned).collect();
            for text in &texts[1..] {
                for (line, more) in lines.iter_mut().zip(text.lines()) {
                    line.push_str(more.split_once(',').map_or("", |(_, _)| ","));
                    line.push_str(more.split_once(',').expect("columns").1);
                }
            }
            fs::write(self.plant.path(file), lines.join("\n") + "\n").expect("written");
        }
        fs::write(self.plant.path("alone.ron"), session(clients, model)).expect("written");
        let words = ["run", "alone.ron", "--mode", self.mode, "--seed", "7", "--json"];
        incidents(&self.plant.says(&words))
    }
}

/// Facts up to a step, without a client.
fn until(facts: &[Value], step: u64, without: &str) -> Vec<Value> {
    let before = facts.iter().filter(|fact| fact["step"].as_u64().is_some_and(|at| at < step));
    let mut before: Vec<Value> = before.cloned().collect();
    for fact in &mut before {
        if let Some(posterior) = fact["posterior"].as_object_mut() {
            let p = posterior.remove(without);
            assert!(p.is_none_or(|p| p.as_f64() == Some(0.0)), "{without} is not there: {fact}");
        }
    }
    before
}

/// The step at which the server says that a site enrols.
fn enrolled_at(said: &str, who: &str) -> u64 {
    let line = said.lines().find(|line| line.contains(&format!("{who} enrols with the model")));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    line.rsplit(' ').next().and_then(|step| step.parse().ok()).expect(line)
}

/// The recording of a site that joined at a step holds that step and those after it, and of them the
/// messages that the recording of the server holds.
fn is_recorded_from(plant: &Plant, (own, whole): (&str, &str), name: &str, joined: u64) {
    let at = |line: &String| -> Option<u64> { line.split(',').next()?.parse().ok() };
    let is_sent = |line: &String| line.contains(&format!(",{name},"));
    let messages = |file: &str| -> Vec<String> {
        let lines = export(plant, file, "messages").into_iter().filter(is_sent);
        lines.filter(|line| at(line) >= Some(joined)).collect()
    };
    let sent = messages(own);
    assert!(sent.len() > 100, "{name}: {} messages", sent.len());
    assert_eq!(sent, messages(whole), "{name}");
    // Flags have no enrolment.
    let enrolments = |file: &str| {
        let lines = export(plant, file, "messages").into_iter().filter(is_sent);
        lines.filter(|line| line.contains("Enrolment")).count()
    };
    assert_eq!(enrolments(own), enrolments(whole).min(1), "{name}");
    let residuals = export(plant, own, "residuals");
    let steps: Vec<u64> = residuals.iter().filter_map(at).collect();
    let last = *steps.last().expect("steps");
    assert_eq!(steps, (joined..=last).collect::<Vec<_>>(), "{name}");
    assert!(export(plant, own, "ledger").len() >= 2, "{name}: at least at the end");
}

const LEARN: &str = "federation: Online(passes: 1)";

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_new_client_joins_a_running_federation_and_no_other_site_is_started_again() {
    let machines = Machines::new(&["A", "B"], "evidence", LEARN);
    let alone = machines.alone(&["A", "B"], LEARN);
    let broker = machines.plant.broker();
    let mut sites = ["A", "B"].map(|who| machines.site(who));
    let speed = ["--speed", "150"];
    let mut server = machines.serve(&speed);
    machines.wait_for_fact(|fact| fact["fact"] == "closed" && fact["root"] == "A");
    // The session of the server, and that of the new site, has one client more. The others keep theirs.
    let wider = session(&["A", "B", "C"], LEARN);
    for place in ["short.ron", "machine-server/short.ron", "machine-C/short.ron"] {
        fs::write(machines.plant.path(place), &wider).expect("written");
    }
    machines.plant.certify("short.ron");
    let hang_up = Command::new("kill").args(["-HUP", &broker.0.id().to_string()]).status();
    assert!(hang_up.expect("a signal").success(), "the broker reads its access list again");
    server.kill();
    let before = machines.plant.read("server");
    server = machines.serve(&[&speed[..], &["--record", "server.hwrec"]].concat());
    machines.wait_for("server", "C is not there yet: the run goes on without it");
    machines.wait_for("server", "goes on after step");
    let mut joins = machines.recorded_site("C", "C.hwrec");
    machines.wait_for("server", "C asks to join with another model");
    machines.wait_for("C", "waits until an operator of the server accepts its model");
    let other = machines.accept("B");
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stderr).contains("B does not wait to be accepted"));
    assert!(!machines.said("server").contains("C enrols"), "nobody has accepted it");
    let accepted = machines.accept("C");
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    machines.wait_for("server", "C has joined");
    assert!(server.ends_well(), "{}", machines.said("server"));
    for (site, who) in sites.iter_mut().chain([&mut joins]).zip(["A", "B", "C"]) {
        assert!(site.ends_well(), "{}", machines.said(who));
    }
    let (said, facts) = (machines.said("server"), machines.plant.read("server"));
    let step = enrolled_at(&said, "C");
    assert!((300..1900).contains(&step), "{step}: {said}");
    let found = incidents(&facts);
    // Up to then everything is said of the others that a federation without it says.
    assert_eq!(until(&found, step, "C"), until(&alone, step, "C"));
    assert!(found.len() > incidents(&before).len());
    // Its fault before that was seen by nobody, and the one after that is named.
    let of_c: Vec<u64> = (found.iter())
        .filter(|fact| fact["fact"] == "opened" && fact["root"] == "C")
        .filter_map(|fact| fact["step"].as_u64())
        .collect();
    assert!(!of_c.is_empty() && of_c.iter().all(|at| (1900..2010).contains(at)), "{of_c:?}");
    // The others are named as before.
    let opened = |facts: &[Value], root: &str| {
        facts.iter().filter(|f| f["fact"] == "opened" && f["root"] == root).count()
    };
    assert_eq!(opened(&found, "A"), opened(&alone, "A"), "{said}");
    assert_eq!(opened(&found, "B"), opened(&alone, "B"), "{said}");
    assert!(facts.contains("C has joined: it was calibrated by itself"), "{facts}");
    for who in ["A", "B"] {
        assert_eq!(machines.said(who).matches("sent again").count(), 1, "{}", machines.said(who));
    }
    let files = ("machine-C/C.hwrec", "machine-server/server.hwrec");
    is_recorded_from(&machines.plant, files, "C", step);
    println!("{said}{}", machines.said("C"));
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_site_that_returns_with_another_model_is_known_by_its_digest_and_waits_until_it_is_accepted() {
    let machines = Machines::new(&["A", "B"], "evidence", LEARN);
    let alone = machines.alone(&["A", "B"], LEARN);
    let _broker = machines.plant.broker();
    let mut sites = ["A", "B"].map(|who| machines.site(who));
    let mut server = machines.serve(&["--speed", "300"]);
    machines.wait_for_fact(|fact| fact["fact"] == "closed" && fact["root"] == "A");
    sites[1].kill();
    // B was overhauled: its nominal rows are others, and so is its model.
    let fit = columns("B", 99, (0, NOMINAL), &[]);
    fs::write(machines.plant.path("machine-B").join("fit.csv"), fit).expect("written");
    sites[1] = machines.site("B");
    machines.wait_for("B", "it makes its own and calibrates itself");
    machines.wait_for("server", "B is back with another model");
    machines.wait_for("B", "waits until an operator of the server accepts its model");
    // A server that is started again does not forget that, and takes the site no sooner.
    server.kill();
    server = machines.serve(&["--speed", "300", "--record", "server.hwrec"]);
    machines.wait_for("server", "B is back with another model");
    sleep(Duration::from_secs(2));
    assert!(!machines.said("server").contains("B enrols"), "{}", machines.said("server"));
    let accepted = machines.accept("B");
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    machines.wait_for("server", "B has enrolled again with another model");
    // From now on that is its model: it may be killed as any other.
    sleep(Duration::from_secs(1));
    sites[1].kill();
    sites[1] = machines.recorded_site("B", "B.hwrec");
    assert!(server.ends_well(), "{} {}", machines.said("server"), machines.said("B"));
    for (site, who) in sites.iter_mut().zip(["A", "B"]) {
        assert!(site.ends_well(), "{}", machines.said(who));
    }
    let (said, found) = (machines.said("server"), incidents(&machines.plant.read("server")));
    let step = enrolled_at(&said, "B");
    assert_eq!(until(&found, step, "nobody"), until(&alone, step, "nobody"));
    let opened = |root: &str| found.iter().any(|f| f["fact"] == "opened" && f["root"] == root);
    assert!(opened("A") && opened("B"), "{said}");
    let of_b = machines.said("B");
    assert!(of_b.contains("before it enrolled again it had made"), "{of_b}");
    let files = ("machine-B/B.hwrec", "machine-server/server.hwrec");
    is_recorded_from(&machines.plant, files, "B", step);
    println!("{said}{of_b}");
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn in_paper_mode_a_client_without_the_models_of_the_run_takes_part_after_the_next_training() {
    let machines =
        Machines::new(&["A", "B", "C"], "paper", "federation: Batched(rounds: 4), batch: 8");
    let _broker = machines.plant.broker();
    let mut sites = ["A", "B"].map(|who| machines.site(who));
    let mut server = machines.serve(&["--later", "C", "--speed", "400"]);
    machines.wait_for("server", "C is not there yet");
    let mut joins = machines.site("C");
    assert!(!joins.ends_well());
    let said = machines.said("C");
    assert!(said.contains("C takes part after the next training"), "{said}");
    assert!(said.contains("what is decided about the others holds"), "{said}");
    assert!(server.ends_well(), "{}", machines.said("server"));
    for (site, who) in sites.iter_mut().zip(["A", "B"]) {
        assert!(site.ends_well(), "{}", machines.said(who));
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_client_that_holds_the_models_of_the_run_joins_at_once_in_either_mode_and_is_recorded() {
    for mode in ["evidence", "paper"] {
        let plant = Plant::new(mode);
        plant.alone();
        let _broker = plant.broker();
        let mut sites: Vec<Running> = ["P1", "P2"].map(|name| plant.site(name)).into();
        let serve = ["--later", "P3", "--speed", "600", "--record", "server.hwrec"];
        let mut server = plant.start("serve", &serve, "server");
        let wait_for = |what: &str| {
            let begin = Instant::now();
            while !plant.read("server.err").contains(what) {
                assert!(begin.elapsed() < PATIENCE, "{what}: {}", plant.read("server.err"));
                sleep(Duration::from_millis(10));
            }
        };
        wait_for("P3 is not there yet");
        wait_for("P2 is online");
        sleep(Duration::from_secs(2));
        let recorded = ["--client", "P3", "--record", "P3.hwrec"];
        sites.push(plant.start("site", &recorded, "P3"));
        wait_for("P3 has joined");
        assert!(server.ends_well(), "{}", plant.read("server.err"));
        for (site, name) in sites.iter_mut().zip(["P1", "P2", "P3"]) {
            assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
        }
        let (said, facts) = (plant.read("server.err"), plant.read("server"));
        let step = enrolled_at(&said, "P3");
        assert!(step > 1, "{said}");
        is_recorded_from(&plant, ("P3.hwrec", "server.hwrec"), "P3", step);
        let taken = format!("P3: {} steps, 0 of them found", 1440 + 1 - step);
        assert!(plant.read("P3.err").contains(&taken), "{taken}: {}", plant.read("P3.err"));
        let opened = |f: &Value| f["fact"] == "opened" && f["root"] == "P1";
        assert!(incidents(&facts).iter().any(opened), "{mode}: {facts}");
        // What was recorded says the same, also where it is decided again.
        assert_eq!(plant.says(&["run", "server.hwrec", "--json"]), facts, "{mode}");
        let again = plant.says(&["run", "server.hwrec", "--json", "--recompute"]);
        assert_eq!(incidents(&again), incidents(&facts), "{mode}");
    }
}
