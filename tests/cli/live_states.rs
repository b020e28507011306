//! Tier 2 with live sources: states of rows that arrive now.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::broker::Mosquitto;
use crate::headwater;
use crate::remote::{Running, incidents};
use crate::remote_live::{feed, on, wait_for};

const CLIENTS: [&str; 4] = ["C1", "C2", "C3", "C4"];
/// Rows that are learned from.
const NOMINAL: usize = 6000;
/// Longer than a row waits for its values.
const COMPLETE: Duration = Duration::from_secs(2);

/// Four clients that influence each other.
fn session(input: &str, history: &str, file: &str) -> String {
    let client = |name: &str| format!("(name: \"{name}\", columns: [\"{name}_*\"])");
    let clients = CLIENTS.map(client).join(", ");
    let time = "time: (column: \"time\", format: Seconds(since: \"2026-01-01 00:00:00\"))";
    format!(
        "Session(about: \"live\", source: Live(input: {input}, {time}, lateness_s: 1.0{}), \
         clients: [{clients}], \
         ranges: (fit: ({file}until: \"+4000s\"), \
         calibration: ({file}from: \"+4000s\", until: \"+6000s\")), \
         sampling: (decimate: Every(1)), thresholds: (arl0: \"3000s\", tier: States), \
         privacy: (epsilon_flag: 4.0), \
         model: (proprietary: Paper, epochs: 1, federation: Batched(rounds: 2), batch: 8))",
        history.replace("TIME", time)
    )
}

/// A plant with known faults, as lines of measurements.
struct Rows {
    folder: TempDir,
    header: Vec<String>,
    cells: Vec<Vec<String>>,
}

impl Rows {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let made =
            ["make", "twin", "--family", "B", "--clients", "4", "--seed", "51", "--out", "."];
        let output = headwater().current_dir(folder.path()).args(made).output();
        assert!(output.expect("the program runs").status.success());
        let text = fs::read_to_string(folder.path().join("twin.csv")).expect("rows");
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect());
        let header = lines.next().expect("a header");
        Self { header, cells: lines.collect(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A line of the columns whose names begin so; an empty beginning is all of them.
    fn line(&self, client: &str, cells: &[String], time: &str) -> String {
        let is_one = |name: &String| name.starts_with('C') && name.starts_with(client);
        let of = self.header.iter().zip(cells).filter(|(name, _)| is_one(name));
        let cells: Vec<&str> = of.map(|(_, cell)| &**cell).collect();
        format!("{time},{}\n", cells.join(","))
    }

    fn lines(&self, client: &str, rows: std::ops::Range<usize>) -> String {
        rows.map(|t| self.line(client, &self.cells[t], &t.to_string())).collect()
    }

    fn names(&self, client: &str) -> String {
        self.line(client, &self.header, "time")
    }
}

/// Facts about incidents, and what every client gave away.
fn facts(machine: &Path) -> (Vec<serde_json::Value>, Vec<String>) {
    let text = fs::read_to_string(machine.join("out")).expect("facts");
    let ledgers = text.lines().filter(|line| line.starts_with("{\"fact\":\"ledger\""));
    (incidents(&text), ledgers.map(str::to_owned).collect())
}

fn said(machine: &Path) -> String {
    fs::read_to_string(machine.join("err")).unwrap_or_default()
}

/// Waits for the end of all; everybody says what one process says, and nothing was lost.
fn ends_as_one(rows: &Rows, mut server: Running, sites: Vec<Running>, mut alone: Running) {
    let of_server = || said(&rows.path("server"));
    assert!(server.ends_well(), "{} {}", of_server(), said(&rows.path("C1")));
    for (mut site, name) in sites.into_iter().zip(CLIENTS) {
        assert!(site.ends_well(), "{}", said(&rows.path(name)));
    }
    assert!(alone.ends_well(), "{}", said(&rows.path("one")));
    let (expected, ledgers) = facts(&rows.path("one"));
    assert!(!expected.is_empty(), "there are faults");
    assert_eq!(facts(&rows.path("server")).0, expected, "{}", of_server());
    let of_sites: Vec<String> = CLIENTS.iter().flat_map(|name| facts(&rows.path(name)).1).collect();
    assert_eq!(of_sites, ledgers);
    // Of every site, and of all together.
    assert_eq!(of_server().matches("0 late, 0 missing").count(), 5, "{}", of_server());
    println!("{} facts about incidents equal\n{}", expected.len(), of_server());
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn sites_with_live_sources_learn_and_send_states_and_say_what_one_process_says() {
    let rows = Rows::new();
    let broker = Mosquitto::start(&rows.path(""));
    let url = format!("mqtt://127.0.0.1:{}", broker.port);
    let begin = |machine: &str, args: &[&str]| {
        fs::create_dir_all(rows.path(machine)).expect("a folder");
        let text = session("Stdin", "", "");
        fs::write(rows.path(machine).join("live.ron"), text).expect("written");
        let child = on(&rows.path(machine), args).stdin(Stdio::piped()).spawn();
        Running(child.expect("the program runs"))
    };
    let last = NOMINAL + 2500;
    let at = ["--seed", "51", "--json", "--broker", &*url, "--insecure"];
    let mut alone = begin("one", &["run", "live.ron", "--seed", "51", "--json"]);
    let mut fed = vec![feed(&mut alone, rows.names("") + &rows.lines("", 0..last))];
    let mut sites = Vec::new();
    for name in CLIENTS {
        let words = [&["site", "live.ron", "--client", name], &at[..]].concat();
        let mut site = begin(name, &words);
        fed.push(feed(&mut site, rows.names(name) + &rows.lines(name, 0..last)));
        sites.push(site);
    }
    // A busy machine must not make a site late.
    let words = [&["serve", "live.ron", "--deadline", "60"], &at[..]].concat();
    let server = begin("server", &words);
    ends_as_one(&rows, server, sites, alone);
    for fed in fed {
        fed.join().expect("all is written");
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn rows_wait_for_a_server_that_is_away_also_where_their_site_is_killed_before_it_is_back() {
    let rows = Rows::new();
    let broker = Mosquitto::start(&rows.path(""));
    let url = format!("mqtt://127.0.0.1:{}", broker.port);
    let machines = CLIENTS.iter().copied().chain(["one", "server"]);
    for machine in machines {
        let client = if machine.starts_with('C') { machine } else { "" };
        let input = "Follow(file: \"rows.csv\")";
        let text = session(input, ", history: Table(data: \".\", TIME)", "files: [\"fit.csv\"], ");
        let folder = rows.path(machine);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("live.ron"), text).expect("written");
        fs::write(folder.join("rows.csv"), rows.names(client)).expect("written");
        let nominal = rows.names(client) + &rows.lines(client, 0..NOMINAL);
        fs::write(folder.join("fit.csv"), nominal).expect("written");
    }
    let start = |machine: &str, args: &[&str]| {
        Running(on(&rows.path(machine), args).spawn().expect("the program runs"))
    };
    let at = ["--seed", "51", "--json", "--broker", &*url, "--insecure"];
    let site =
        |name: &str| start(name, &[&["site", "live.ron", "--client", name], &at[..]].concat());
    let until = ["--until", "+2400s"];
    let serve =
        || start("server", &[&["serve", "live.ron", "--deadline", "60"], &until[..], &at].concat());
    let alone =
        start("one", &[&["run", "live.ron", "--seed", "51", "--json"], &until[..]].concat());
    let mut sites: Vec<Running> = CLIENTS.iter().map(|name| site(name)).collect();
    let mut server = serve();
    wait_for(&rows.path("server").join("err"), "training is over");
    sleep(COMPLETE);
    let arrive = |from: usize, to: usize| {
        for machine in CLIENTS.iter().copied().chain(["one"]) {
            let client = if machine == "one" { "" } else { machine };
            let file = OpenOptions::new().append(true).open(rows.path(machine).join("rows.csv"));
            let text = rows.lines(client, NOMINAL + from..NOMINAL + to);
            file.expect("a file").write_all(text.as_bytes()).expect("rows");
        }
        sleep(COMPLETE);
    };
    arrive(0, 900);
    server.kill();
    // Nobody says what is predicted of these.
    arrive(900, 1300);
    wait_for(&rows.path("C1").join("err"), "the server is offline");
    sites[1].kill();
    sites[1] = site("C2");
    wait_for(&rows.path("C2").join("err"), "connected to the broker");
    sleep(COMPLETE);
    server = serve();
    arrive(1300, 1700);
    sites[3].kill();
    sites[3] = site("C4");
    wait_for(&rows.path("C4").join("err"), "connected to the broker");
    sleep(COMPLETE);
    arrive(1700, 2500);
    ends_as_one(&rows, server, sites, alone);
}
