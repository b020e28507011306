//! Sites and server as processes of their own, over a real broker with certificates.
//!
//! `STORM_SEED` chooses other moments for kills and cuts and `STORM_FACTOR` more kills. `STORM_KILLS` and
//! `STORM_CUTS` set how many the ignored tests make.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tempfile::TempDir;

use crate::headwater;
use crate::proxy::Proxy;

pub(crate) const SITES: [&str; 3] = ["P1", "P2", "P3"];
/// Nothing is waited for longer than this.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A process that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it has ended");
    }

    /// Waits for its end; whether it went well.
    pub(crate) fn ends_well(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.0.try_wait().expect("its state can be asked for") {
                return status.success();
            }
            sleep(Duration::from_millis(20));
        }
        panic!("it does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder with a session, its models, certificates, a broker and who takes part.
pub(crate) struct Plant {
    folder: TempDir,
    pub(crate) port: u16,
    mode: &'static str,
    /// Every process has a folder of its own for its models, as on a machine of its own.
    pub(crate) apart: bool,
}

impl Plant {
    /// Two hours with one attack, symbols and flags noised.
    pub(crate) fn new(mode: &'static str) -> Self {
        let session = "Session(about: \"short\", source: Plant(attacks: Only([\"S101\"]), \
            history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
            ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")), \
            privacy: (epsilon_flag: 4.0))";
        Self::of(session, mode, &[])
    }

    /// The same with another session and its files.
    pub(crate) fn of(session: &str, mode: &'static str, files: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("written");
        }
        fs::write(folder.path().join("short.ron"), session).expect("written");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = free.local_addr().expect("its number").port();
        let plant = Self { folder, port, mode, apart: false };
        plant.certify("short.ron");
        plant
    }

    /// Makes the certificates that are missing, the access list, and the settings of the broker.
    pub(crate) fn certify(&self, session: &str) {
        let port = self.port;
        self.says(&["certs", session, "certs", "--port", &port.to_string()]);
        // As it was made, but for this machine alone, and for tests that run as root.
        let settings = self.path("certs/broker/mosquitto.conf");
        let text = fs::read_to_string(&settings).expect("settings of the broker");
        let listener = format!("listener {port}\n");
        assert!(text.contains(&listener), "{text}");
        let text = text.replace(&listener, &format!("listener {port} 127.0.0.1\n"));
        fs::write(&settings, format!("user root\n{text}")).expect("written");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the program prints.
    pub(crate) fn says(&self, args: &[&str]) -> String {
        let mut command = headwater();
        command.env("HEADWATER_CACHE", self.path("cache")).current_dir(self.folder.path());
        let output = command.args(args).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The facts of the single process.
    pub(crate) fn alone(&self) -> Vec<Value> {
        incidents(&self.says(&["run", "short.ron", "--mode", self.mode, "--json"]))
    }

    pub(crate) fn broker(&self) -> Running {
        let child = Command::new("mosquitto")
            .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()))
            .args(["-c", "certs/broker/mosquitto.conf"])
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let running = Running(child.expect("a broker"));
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < until, "the broker does not listen");
            sleep(Duration::from_millis(20));
        }
        running
    }

    pub(crate) fn start(&self, what: &str, more: &[&str], out: &str) -> Running {
        self.start_by(self.port, what, more, out)
    }

    /// The same over another port, such as that of a proxy.
    pub(crate) fn start_by(&self, port: u16, what: &str, more: &[&str], out: &str) -> Running {
        let url = format!("mqtts://127.0.0.1:{port}");
        self.spawn(&[what, "short.ron", "--broker", &url, "--certs", "certs"], more, out)
    }

    /// The same without certificates.
    pub(crate) fn start_plain(&self, port: u16, what: &str, more: &[&str], out: &str) -> Running {
        let url = format!("mqtt://127.0.0.1:{port}");
        self.spawn(&[what, "short.ron", "--broker", &url, "--insecure"], more, out)
    }

    fn spawn(&self, args: &[&str], more: &[&str], out: &str) -> Running {
        self.spawn_in(self.folder.path(), args, more, out)
    }

    /// The same in another folder, with other data.
    pub(crate) fn spawn_in(
        &self,
        folder: &Path,
        args: &[&str],
        more: &[&str],
        out: &str,
    ) -> Running {
        let file = |name: &str| File::create(self.path(name)).expect("a file");
        let cache = if self.apart { format!("cache-{out}") } else { "cache".to_owned() };
        let child = Command::new(Path::new(env!("CARGO_BIN_EXE_headwater")))
            .current_dir(folder)
            .env("HEADWATER_CACHE", self.path(&cache))
            .env("HEADWATER_CONFIG", self.path("config"))
            .args(args)
            .args(["--mode", self.mode, "--json"])
            .args(more)
            .stdout(file(out))
            .stderr(file(&format!("{out}.err")))
            .spawn();
        Running(child.expect("the program runs"))
    }

    pub(crate) fn site(&self, name: &str) -> Running {
        self.start("site", &["--client", name], name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

/// What is said about incidents.
pub(crate) fn incidents(facts: &str) -> Vec<Value> {
    let fact = |line| serde_json::from_str::<Value>(line).expect("an object a line");
    let about = ["opened", "updated", "closed"];
    let is_one = |fact: &Value| about.iter().any(|word| fact["fact"] == *word);
    facts.lines().map(fact).filter(is_one).collect()
}

/// Facts without the two figures that depend on the machine.
fn timeless(facts: &str) -> Vec<Value> {
    let fact = |line| {
        let mut fact: Value = serde_json::from_str(line).expect("an object a line");
        let fields = fact.as_object_mut().expect("an object a line");
        fields.retain(|key, _| key != "wall_s" && key != "steps_per_s");
        fact
    };
    facts.lines().map(fact).collect()
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn three_sites_and_a_server_over_a_broker_say_of_incidents_what_one_process_says() {
    for mode in ["evidence", "paper"] {
        let plant = Plant::new(mode);
        let alone = plant.alone();
        assert!(!alone.is_empty(), "the attack is an incident");
        let _broker = plant.broker();
        let mut sites = SITES.map(|name| plant.site(name));
        let mut server = plant.start("serve", &["--record", "server.hwrec"], "server");
        assert!(server.ends_well(), "{}", plant.read("server.err"));
        let said = plant.read("server");
        assert_eq!(incidents(&said), alone, "{mode}");
        // The recording of the server alone says the same, also where it decides again.
        assert_eq!(plant.says(&["run", "server.hwrec", "--json"]), said);
        let again = plant.says(&["run", "server.hwrec", "--json", "--recompute"]);
        assert_eq!(timeless(&again), timeless(&said), "{mode}");
        for (site, name) in sites.iter_mut().zip(SITES) {
            assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
            let ledger = plant.read(name);
            assert!(ledger.contains("\"fact\":\"ledger\""), "{mode} {name}: {ledger}");
        }
    }
}

/// Kills `kills` sites, brokers and servers at random moments.
fn storm_of_kills(kills: u64) {
    let mut random = StdRng::seed_from_u64(number("STORM_SEED", 1));
    let plant = Plant::new("evidence");
    let alone = plant.alone();
    let mut broker = plant.broker();
    let mut sites = SITES.map(|name| plant.site(name));
    // Two hours in a second for each kill, so that all kills find everybody at work.
    let speed = (7200 / (3 * kills)).to_string();
    let serve = || plant.start("serve", &["--speed", &speed], "server");
    let mut server = serve();
    let mut killed = [0_u64; 3];
    for round in 0..3 * kills {
        sleep(Duration::from_millis(random.random_range(100..900)));
        match round % 3 {
            0 => {
                let site = random.random_range(0..SITES.len());
                sites[site].kill();
                sites[site] = plant.site(SITES[site]);
            }
            1 => {
                broker.kill();
                broker = plant.broker();
            }
            // A server that begins anew goes on where its journal ends.
            _ => {
                server.kill();
                server = serve();
            }
        }
        killed[usize::try_from(round % 3).expect("small")] += 1;
    }
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    assert_eq!(incidents(&plant.read("server")), alone);
    for (site, name) in sites.iter_mut().zip(SITES) {
        assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
    }
    let [of_sites, of_broker, of_server] = killed;
    println!(
        "{of_sites} kills of sites, {of_broker} of the broker, {of_server} of the server; {} of {} \
         facts about incidents equal",
        alone.len(),
        alone.len()
    );
    println!("{}", plant.read("server.err"));
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn kills_of_sites_server_and_broker_lose_nothing_and_apply_nothing_twice() {
    storm_of_kills(5 * number("STORM_FACTOR", 1));
}

#[test]
#[ignore = "takes minutes"]
fn fifty_kills_of_each_lose_nothing_and_apply_nothing_twice() {
    storm_of_kills(number("STORM_KILLS", 50));
}

/// Cuts the network of a site, and that of the server, `cuts` times each.
fn storm_of_cuts(cuts: u64) {
    let mut random = StdRng::seed_from_u64(number("STORM_SEED", 1));
    let plant = Plant::new("evidence");
    let alone = plant.alone();
    let _broker = plant.broker();
    let proxies = SITES.map(|_| Proxy::to(plant.port));
    let of_server = Proxy::to(plant.port);
    let mut sites: Vec<Running> = (SITES.iter().zip(&proxies))
        .map(|(name, proxy)| plant.start_by(proxy.port, "site", &["--client", name], name))
        .collect();
    // Two hours in four seconds for each cut.
    let speed = (7200 / (8 * cuts)).to_string();
    let serve = ["--speed", &*speed];
    let mut server = plant.start_by(of_server.port, "serve", &serve, "server");
    let said = |what: &str| plant.read("server.err").matches(what).count();
    let wait_for = |what: &str, more_than: usize| {
        let begin = Instant::now();
        while said(what) <= more_than {
            assert!(begin.elapsed() < PATIENCE, "{what}: {}", plant.read("server.err"));
            sleep(Duration::from_millis(20));
        }
        begin.elapsed()
    };
    for name in SITES {
        wait_for(&format!("{name} is online"), 0);
    }
    let mut longest = [Duration::ZERO; 2];
    for round in 0..2 * cuts {
        sleep(Duration::from_millis(random.random_range(200..800)));
        let site = random.random_range(0..SITES.len());
        let (proxy, back) = if round % 2 == 0 {
            (&proxies[site], format!("{} is online", SITES[site]))
        } else {
            (&of_server, "connected to the broker".to_owned())
        };
        let before = said(&back);
        proxy.cut();
        sleep(Duration::from_millis(random.random_range(100..1000)));
        proxy.restore();
        let longest = &mut longest[usize::from(round % 2 == 1)];
        *longest = wait_for(&back, before).max(*longest);
    }
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    assert_eq!(incidents(&plant.read("server")), alone);
    for (site, name) in sites.iter_mut().zip(SITES) {
        assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
    }
    let [of_sites, of_server] = longest;
    println!(
        "{cuts} cuts of sites, back at most {of_sites:.1?} after the network; {cuts} of the server, \
         {of_server:.1?}; {} facts about incidents equal",
        alone.len()
    );
    println!("{}", plant.read("server.err"));
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn cuts_of_the_network_lose_nothing_and_apply_nothing_twice() {
    storm_of_cuts(5);
}

#[test]
#[ignore = "takes minutes"]
fn twenty_cuts_of_each_lose_nothing_and_apply_nothing_twice() {
    storm_of_cuts(number("STORM_CUTS", 20));
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn with_a_deadline_the_server_goes_on_without_a_site_that_is_away_and_counts_what_it_missed() {
    let plant = Plant::new("evidence");
    plant.alone();
    let _broker = plant.broker();
    let mut sites: Vec<Running> = SITES.iter().map(|name| plant.site(name)).collect();
    let serve = ["--speed", "1000", "--deadline", "0.05"];
    let mut server = plant.start("serve", &serve, "server");
    let begin = Instant::now();
    while !plant.read("server.err").contains("P3 is online") {
        assert!(begin.elapsed() < PATIENCE, "{}", plant.read("server.err"));
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_secs(2));
    sites[2].kill();
    sleep(Duration::from_secs(1));
    sites[2] = plant.site("P3");
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    let said = plant.read("server.err");
    let about = said.lines().find(|line| line.starts_with("headwater: P3: ")).expect(&said);
    let count = |what: &str| -> u64 {
        let (before, _) = about.split_once(what).unwrap_or_else(|| panic!("{what}: {about}"));
        before.rsplit(' ').next().and_then(|n| n.parse().ok()).expect(about)
    };
    assert!(count(" missing") > 0, "{about}");
    // What it missed it delivers late; the server may have left before the last of it.
    assert!((1..=count(" missing")).contains(&count(" late")), "{about}");
    println!("{said}");
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_server_that_was_killed_goes_on_where_it_was_and_asks_for_no_step_that_it_has_heard() {
    let plant = Plant::new("evidence");
    let alone = plant.alone();
    let _broker = plant.broker();
    let mut sites = SITES.map(|name| plant.site(name));
    let mut server = plant.start("serve", &["--speed", "1000"], "first");
    let begin = Instant::now();
    while !plant.read("first.err").contains("P3 is online") {
        assert!(begin.elapsed() < PATIENCE, "{}", plant.read("first.err"));
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_secs(3));
    server.kill();
    let mut server = plant.start("serve", &[], "server");
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    assert_eq!(incidents(&plant.read("server")), alone);
    let said = plant.read("server.err");
    let heard = said.split_once("goes on after step ").expect(&said).1;
    let heard: u64 = heard.split(',').next().and_then(|n| n.parse().ok()).expect(&said);
    assert!(heard > 100, "{said}");
    for (site, name) in sites.iter_mut().zip(SITES) {
        assert!(site.ends_well());
        let said = plant.read(&format!("{name}.err"));
        let (before, _) = said.split_once(" sent again").expect(&said);
        let again: u64 = before.rsplit(' ').next().and_then(|n| n.parse().ok()).expect(&said);
        // The step that was on its way when the server was killed.
        assert!(again <= 2, "{said}");
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_site_of_another_session_is_refused_in_words() {
    let plant = Plant::new("evidence");
    plant.alone();
    let _broker = plant.broker();
    let _server = plant.start("serve", &[], "server");
    let mut site = plant.start("site", &["--client", "P1", "--seed", "7"], "P1");
    assert!(!site.ends_well());
    let said = plant.read("P1.err");
    assert!(said.contains("the server runs another session"), "{said}");
}

#[test]
fn plain_tcp_must_be_asked_for_and_an_unknown_client_is_named_with_those_there_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let said = |args: &[&str]| {
        let mut command = headwater();
        command.env("HEADWATER_CACHE", folder.path()).args(args);
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let open = ["serve", "plant-normal", "--broker", "mqtt://127.0.0.1"];
    assert!(said(&open).contains("--insecure"), "{}", said(&open));
    let no_certs = ["serve", "plant-normal", "--broker", "mqtts://127.0.0.1"];
    assert!(said(&no_certs).contains("--certs"), "{}", said(&no_certs));
}
