//! Sites and server as processes of their own, over a real broker.
//!
//! `STORM_SEED` chooses other moments for kills and `STORM_FACTOR` more of them.

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

const SITES: [&str; 3] = ["P1", "P2", "P3"];
/// Nothing is waited for longer than this.
const PATIENCE: Duration = Duration::from_mins(3);

fn number(variable: &str) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A process that ends with the test.
struct Running(Child);

impl Running {
    /// Ends it as a power cut would.
    fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it has ended");
    }

    /// Waits for its end; whether it went well.
    fn ends_well(&mut self) -> bool {
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

/// A folder with a session, its models, a broker and who takes part.
struct Plant {
    folder: TempDir,
    port: u16,
    mode: &'static str,
}

impl Plant {
    /// Two hours with one attack, symbols and flags noised.
    fn new(mode: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let session = "Session(about: \"short\", source: Plant(attacks: Only([\"S101\"]), \
            history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
            privacy: (epsilon_flag: 4.0))";
        fs::write(folder.path().join("short.ron"), session).expect("written");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = free.local_addr().expect("its number").port();
        let plant = Self { folder, port, mode };
        let broker = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n\
             set_tcp_nodelay true\n"
        );
        fs::write(plant.path("broker.conf"), broker).expect("written");
        plant
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The facts of the single process.
    fn alone(&self) -> Vec<Value> {
        let mut command = headwater();
        command.env("HEADWATER_CACHE", self.path("cache")).current_dir(self.folder.path());
        let output = command.args(["run", "short.ron", "--mode", self.mode, "--json"]).output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        incidents(&String::from_utf8(output.stdout).expect("text"))
    }

    fn broker(&self) -> Running {
        let child = Command::new("mosquitto")
            .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()))
            .args(["-c", "broker.conf"])
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

    fn start(&self, what: &str, more: &[&str], out: &str) -> Running {
        let program = Path::new(env!("CARGO_BIN_EXE_headwater"));
        let url = format!("mqtt://127.0.0.1:{}", self.port);
        let file = |name: &str| File::create(self.path(name)).expect("a file");
        let child = Command::new(program)
            .current_dir(self.folder.path())
            .env("HEADWATER_CACHE", self.path("cache"))
            .env("HEADWATER_CONFIG", self.path("config"))
            .args([what, "short.ron", "--broker", &url, "--insecure", "--mode", self.mode])
            .args(["--json"])
            .args(more)
            .stdout(file(out))
            .stderr(file(&format!("{out}.err")))
            .spawn();
        Running(child.expect("the program runs"))
    }

    fn site(&self, name: &str) -> Running {
        self.start("site", &["--client", name], name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

/// What is said about incidents.
fn incidents(facts: &str) -> Vec<Value> {
    let fact = |line| serde_json::from_str::<Value>(line).expect("an object a line");
    let about = ["opened", "updated", "closed"];
    let is_one = |fact: &Value| about.iter().any(|word| fact["fact"] == *word);
    facts.lines().map(fact).filter(is_one).collect()
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
        let mut server = plant.start("serve", &[], "server");
        assert!(server.ends_well(), "{}", plant.read("server.err"));
        assert_eq!(incidents(&plant.read("server")), alone, "{mode}");
        for (site, name) in sites.iter_mut().zip(SITES) {
            assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
            let ledger = plant.read(name);
            assert!(ledger.contains("\"fact\":\"ledger\""), "{mode} {name}: {ledger}");
        }
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn kills_of_sites_server_and_broker_lose_nothing_and_apply_nothing_twice() {
    let mut random = StdRng::seed_from_u64(number("STORM_SEED"));
    let kills = 5 * number("STORM_FACTOR");
    let plant = Plant::new("evidence");
    let alone = plant.alone();
    let mut broker = plant.broker();
    let mut sites = SITES.map(|name| plant.site(name));
    // Two hours in some fifteen seconds, so that kills find everybody at work.
    let serve = || plant.start("serve", &["--speed", "500"], "server");
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
            // A server that begins anew hears the whole run again.
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
    println!("{of_sites} kills of sites, {of_broker} of the broker, {of_server} of the server");
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
