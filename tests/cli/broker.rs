//! Live rows over MQTT, with a real broker.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::live::{Running, incidents, program, told, wait_until};

/// A broker of our own on loopback.
struct Mosquitto {
    child: Child,
    config: PathBuf,
    port: u16,
}

impl Mosquitto {
    fn start(folder: &Path) -> Self {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let config = folder.join("mosquitto.conf");
        let text = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n\
             max_queued_messages 0\nmax_inflight_messages 100\n"
        );
        fs::write(&config, text).expect("the settings can be written");
        let child = Self::spawn(&config);
        let mut broker = Self { child, config, port };
        broker.is_there();
        broker
    }

    fn spawn(config: &Path) -> Child {
        let usual = Path::new("/usr/sbin/mosquitto");
        let program = if usual.exists() { usual } else { Path::new("mosquitto") };
        Command::new(program)
            .arg("-c")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto starts")
    }

    fn is_there(&mut self) {
        let port = self.port;
        wait_until("the broker", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// Ends it without a word, and starts it again after a while.
    fn kill_and_restart(&mut self, after: Duration) {
        self.child.kill().expect("it was there");
        self.child.wait().expect("it ends");
        thread::sleep(after);
        self.child = Self::spawn(&self.config);
        self.is_there();
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The shipped session with the address of our broker, and a shorter history where that is asked for.
fn session(folder: &Path, port: u16, change: impl Fn(String) -> String) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("sessions/plant-live-mqtt.ron")).expect("shipped");
    let text = text.replace("127.0.0.1:1883", &format!("127.0.0.1:{port}"));
    let file = folder.join("plant.ron");
    fs::write(&file, change(text)).expect("the session can be written");
    file
}

fn plant(folder: &Path, port: u16, hours: &str, speed: &str) -> Child {
    program(folder)
        .args(["make", "plant", "--seed", "7", "--attacks", "--hours", hours, "--speed", speed])
        .args(["--live", &format!("mqtt://127.0.0.1:{port}")])
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs")
}

/// Waits until the run has subscribed.
fn wait_for_subscriber(port: u16) {
    // The broker tells nobody who subscribes: a connection is made within its first attempts.
    let _ = port;
    thread::sleep(Duration::from_secs(2));
}

#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
#[test]
fn the_plant_over_a_broker_opens_the_incidents_of_the_built_in_day() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let broker = Mosquitto::start(folder.path());
    let file = session(folder.path(), broker.port, |text| text);
    let running = Running::start(folder.path(), &file);
    wait_for_subscriber(broker.port);
    let mut plant = plant(folder.path(), broker.port, "6", "max");
    assert!(plant.wait().expect("it ends").success());
    wait_until("the last rows", || running.rows_are_quiet());
    let live = running.end();
    let built_in = program(folder.path())
        .args(["run", "plant-attack-day", "--seed", "7", "--until", "+6h", "--json"])
        .output()
        .expect("the program runs");
    let built_in = told(&built_in);
    let of_six_hours = incidents(&built_in);
    assert!(of_six_hours.len() > 3, "six hours of attacks");
    assert_eq!(of_six_hours, incidents(&live));
    assert_eq!(live.count("rows,"), 54 * 3600);
}

#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
#[test]
fn a_broker_that_is_killed_and_comes_back_is_seen_and_the_run_goes_on() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut broker = Mosquitto::start(folder.path());
    let short = |text: String| {
        text.replace("+16h", "+2h").replace("+48h", "+6h").replace("arl0: \"2d\"", "arl0: \"30d\"")
    };
    let file = session(folder.path(), broker.port, short);
    let running = Running::start(folder.path(), &file);
    wait_for_subscriber(broker.port);
    let mut plant = plant(folder.path(), broker.port, "0.5", "100");
    wait_until("learning", || running.facts().contains("\"calibrated\""));
    // The rest of the 48 h and the half hour after them are watched.
    broker.kill_and_restart(Duration::from_secs(2));
    plant.wait().expect("it ends");
    wait_until("the last rows", || running.rows_are_quiet());
    let told = running.end();
    assert!(told.count("times reconnected") >= 1, "{}", told.words);
    let rows = told.count("rows,");
    println!("broker killed for 2 s: {rows} of {} rows came", 48 * 3600 + 1800);
    assert!(rows > 47 * 3600, "{}", told.words);
    assert_eq!(told.count("wrongly"), 0);
}
