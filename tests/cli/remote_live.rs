//! Sites with live sources: standard input, a file that grows, a broker.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rumqttc::{Client, MqttOptions, PublishOptions};

use crate::broker::Mosquitto;
use crate::remote::{PATIENCE, Running, incidents};
use crate::tables::{rows, wide};

/// Two clients. Their source is for the test to say; 6000 rows are learned from.
fn session(input: &str, more: &str) -> String {
    format!(
        "Session(about: \"live\", source: Live(input: {input}, \
         time: (column: \"time\", format: Seconds(since: \"2026-01-01 00:00:00\")){more}), \
         clients: [(name: \"A\", columns: [\"a1\", \"a2\"]), (name: \"B\", columns: [\"b1\", \"b2\"])], \
         ranges: (fit: (until: \"+3000s\"), calibration: (from: \"+3000s\", until: \"+6000s\")), \
         sampling: (decimate: Every(2)), thresholds: (arl0: \"2900s\"), \
         model: (proprietary: Linear, epochs: 1, federation: Batched(rounds: 12), batch: 8))"
    )
}

/// The program with folders of its own, as on a machine of its own.
pub(crate) fn on(machine: &Path, args: &[&str]) -> Command {
    fs::create_dir_all(machine).expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.current_dir(machine).args(args).stdin(Stdio::null());
    for (name, folder) in [("CACHE", "cache"), ("CONFIG", "config"), ("LIVE", "live")] {
        command.env(format!("HEADWATER_{name}"), machine.join(folder));
    }
    let file = |name: &str| fs::File::create(machine.join(name)).expect("a file");
    command.stdout(file("out")).stderr(file("err"));
    command
}

/// The columns of one client, a line each.
fn lines(client: usize, from: u32, to: u32) -> Vec<String> {
    let of = |(t, cells, _): (u32, [f64; 4], bool)| {
        let (one, two) = (cells[2 * client], cells[2 * client + 1]);
        format!("{t},{one},{two}\n")
    };
    rows(from, to).into_iter().map(of).collect()
}

pub(crate) fn wait_for(file: &Path, what: &str) {
    let begin = Instant::now();
    while !fs::read_to_string(file).unwrap_or_default().contains(what) {
        let text = fs::read_to_string(file).unwrap_or_default();
        assert!(begin.elapsed() < PATIENCE, "{what}: {text}");
        sleep(Duration::from_millis(20));
    }
}

pub(crate) fn feed(program: &mut Running, text: String) -> thread::JoinHandle<()> {
    let mut input = program.0.stdin.take().expect("its input");
    // A program that ends early reads no more.
    thread::spawn(move || drop(input.write_all(text.as_bytes())))
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn sites_with_live_sources_open_the_incidents_of_one_process_with_all_rows() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = |name: &str| folder.path().join(name);
    let broker = Mosquitto::start(folder.path());
    let url = format!("mqtt://127.0.0.1:{}", broker.port);
    let topic = format!("Mqtt(broker: \"{url}\", topics: Rows(\"rows\"))");
    for (machine, input) in [("one", "Stdin"), ("A", &*topic), ("B", "Stdin"), ("server", "Stdin")]
    {
        fs::create_dir_all(path(machine)).expect("a folder");
        fs::write(path(machine).join("live.ron"), session(input, "")).expect("written");
    }
    let mut alone = on(&path("one"), &["run", "live.ron", "--seed", "7", "--json"]);
    let mut alone = Running(alone.stdin(Stdio::piped()).spawn().expect("the program runs"));
    let all = feed(&mut alone, wide(0, 7000));
    let at = ["--seed", "7", "--json", "--broker", &*url, "--insecure"];
    let site = |name: &str| {
        let words = [&["site", "live.ron", "--client", name], &at[..]].concat();
        let child = on(&path(name), &words).stdin(Stdio::piped()).spawn();
        Running(child.expect("the program runs"))
    };
    let (mut a, mut b) = (site("A"), site("B"));
    let text = "time,b1,b2\n".to_owned() + &lines(1, 0, 7000).concat();
    let of_b = feed(&mut b, text);
    // The subscriber must be there first.
    wait_for(&path("A").join("err"), "waiting for the first row");
    sleep(Duration::from_secs(1));
    let options = MqttOptions::new("rows", rumqttc::Broker::tcp("127.0.0.1", broker.port));
    let (client, mut connection) = Client::builder(options).capacity(16).build();
    let polls = thread::spawn(move || connection.iter().take_while(Result::is_ok).for_each(drop));
    for row in rows(0, 7000) {
        let (t, [a1, a2, ..], _) = row;
        let text = format!("{{\"time\": {t}, \"a1\": {a1}, \"a2\": {a2}}}");
        client.publish("rows", text, PublishOptions::at_least_once()).expect("a message");
    }
    // A busy machine must not make a site late.
    let words = [&["serve", "live.ron", "--until", "+990s", "--deadline", "60"], &at[..]].concat();
    let server = on(&path("server"), &words).spawn();
    let mut server = Running(server.expect("the program runs"));
    let said = |name: &str| fs::read_to_string(path(name).join("err")).unwrap_or_default();
    assert!(server.ends_well(), "{} {} {}", said("server"), said("A"), said("B"));
    assert!(a.ends_well() && b.ends_well(), "{} {}", said("A"), said("B"));
    client.disconnect().expect("it ends");
    assert!(alone.ends_well(), "{}", said("one"));
    all.join().and(of_b.join()).and(polls.join()).expect("all is written");
    let facts = |name: &str| {
        let text = fs::read_to_string(path(name).join("out")).expect("facts");
        let opened = |fact: &serde_json::Value| {
            ["fact", "incident", "time", "root"].map(|key| fact[key].to_string()).join(" ")
        };
        incidents(&text).iter().map(opened).collect::<Vec<_>>()
    };
    assert!(!facts("one").is_empty(), "the step is an incident");
    assert_eq!(facts("server"), facts("one"), "{}", said("server"));
    // Nothing was late and nothing was missing; what came is counted at the site.
    assert!(said("server").contains("0 late, 0 missing"), "{}", said("server"));
    assert!(said("B").contains("standard input: 7000 rows"), "{}", said("B"));
    println!("{}{}{}", said("server"), said("A"), said("B"));
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_live_site_that_is_killed_goes_on_with_what_it_kept_and_the_steps_between_are_missing() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = |name: &str| folder.path().join(name);
    let broker = Mosquitto::start(folder.path());
    let url = format!("mqtt://127.0.0.1:{}", broker.port);
    let nominal = ", history: Table(data: \".\", \
        time: (column: \"time\", format: Seconds(since: \"2026-01-01 00:00:00\")))";
    let files = "fit: (files: [\"fit.csv\"], until: \"+3000s\"), \
        calibration: (files: [\"fit.csv\"], from: \"+3000s\", until: \"+6000s\")";
    for (machine, client) in [("A", 0), ("B", 1), ("server", 0)] {
        let input = "Follow(file: \"rows.csv\")";
        let text = session(input, nominal).replace(
            "fit: (until: \"+3000s\"), calibration: (from: \"+3000s\", until: \"+6000s\")",
            files,
        );
        fs::create_dir_all(path(machine)).expect("a folder");
        fs::write(path(machine).join("live.ron"), text).expect("written");
        let names = ["time,a1,a2\n", "time,b1,b2\n"][client].to_owned();
        fs::write(path(machine).join("rows.csv"), &names).expect("written");
        let nominal = names + &lines(client, 0, 6000).concat();
        fs::write(path(machine).join("fit.csv"), nominal).expect("written");
    }
    let at = ["--seed", "7", "--json", "--broker", &*url, "--insecure"];
    let site = |name: &str| {
        let words = [&["site", "live.ron", "--client", name], &at[..]].concat();
        Running(on(&path(name), &words).spawn().expect("the program runs"))
    };
    let (mut a, mut b) = (site("A"), site("B"));
    let words = [&["serve", "live.ron", "--deadline", "2", "--until", "+900s"], &at[..]].concat();
    let serve = || Running(on(&path("server"), &words).spawn().expect("the program runs"));
    let mut server = serve();
    let said = |name: &str| fs::read_to_string(path(name).join("err")).unwrap_or_default();
    for name in ["A", "B"] {
        wait_for(&path("server").join("err"), &format!("{name} is online"));
    }
    wait_for(&path("server").join("err"), "training is over");
    sleep(Duration::from_secs(1));
    let begin = |name: &str| {
        OpenOptions::new().append(true).open(path(name).join("rows.csv")).expect("a file")
    };
    let (mut to_a, mut to_b) = (begin("A"), begin("B"));
    for (t, (of_a, of_b)) in lines(0, 6000, 7000).iter().zip(lines(1, 6000, 7000)).enumerate() {
        to_a.write_all(of_a.as_bytes()).expect("a row");
        to_b.write_all(of_b.as_bytes()).expect("a row");
        match t {
            300 => b.kill(),
            500 => {
                b = site("B");
                wait_for(&path("B").join("err"), "connected to the broker");
            }
            700 => {
                server.kill();
                server = serve();
            }
            _ => {}
        }
        sleep(Duration::from_millis(5));
    }
    assert!(server.ends_well(), "{} {} {}", said("server"), said("A"), said("B"));
    assert!(a.ends_well() && b.ends_well(), "{} {}", said("A"), said("B"));
    let text = said("server");
    assert!(text.contains("goes on after step"), "{text}");
    let count = |text: &str, what: &str| -> u64 {
        let (before, _) = text.split_once(what).unwrap_or_else(|| panic!("{what}: {text}"));
        before.rsplit([' ', ';']).next().and_then(|n| n.parse().ok()).expect(text)
    };
    let about = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("headwater: {name}: ")));
        line.expect(&text).to_owned()
    };
    assert_eq!(count(&about("A"), " missing"), 0, "{text}");
    // Two hundred rows, two a step; some were read before the kill.
    assert!((50..=150).contains(&count(&about("B"), " missing")), "{text}");
    assert!(count(&said("B"), " of them found in the outbox") > 0, "{}", said("B"));
    let facts = fs::read_to_string(path("server").join("out")).expect("facts");
    let opened = incidents(&facts);
    assert!(opened.iter().any(|fact| fact["root"] == "A"), "{facts}");
    let mut told = String::new();
    write!(told, "{text}{}{}", said("A"), said("B")).expect("a text takes everything");
    println!("{told}");
}
