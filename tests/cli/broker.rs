//! Live rows over MQTT, with a real broker.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::live::{Running, incidents, program, told, unprotected_day, wait_until};
use super::started::Started;

/// A broker of our own on loopback.
pub(crate) struct Mosquitto {
    pub(crate) child: Child,
    config: PathBuf,
    pub(crate) port: u16,
}

impl Mosquitto {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, "allow_anonymous true\n")
    }

    /// The same with more settings.
    pub(crate) fn start_with(folder: &Path, more: &str) -> Self {
        let port = free_port();
        let config = folder.join("mosquitto.conf");
        let text = format!(
            "listener {port} 127.0.0.1\nset_tcp_nodelay true\n\
             max_queued_messages 0\nmax_inflight_messages 100\n{more}"
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
pub(crate) fn session(
    folder: &Path,
    [port, metrics]: [u16; 2],
    change: impl Fn(String) -> String,
) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("sessions/plant-live-mqtt.ron")).expect("shipped");
    let text = text.replace("127.0.0.1:1883", &format!("127.0.0.1:{port}"));
    let told = format!("    metrics: \"127.0.0.1:{metrics}\",\n    thresholds:");
    let text = text.replace("    thresholds:", &told);
    let file = folder.join("plant.ron");
    fs::write(&file, change(text)).expect("the session can be written");
    file
}

pub(crate) fn plant(folder: &Path, port: u16, hours: &str, speed: &str) -> Started {
    let mut command = program(folder);
    command
        .args(["make", "plant", "--seed", "7", "--attacks", "--hours", hours, "--speed", speed])
        .args(["--live", &format!("mqtt://127.0.0.1:{port}")])
        .stderr(Stdio::null());
    Started::by(&mut command)
}

/// What the run answers on the address of its metrics.
pub(crate) fn answer(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// A figure that the run tells there.
pub(crate) fn figure(port: u16, name: &str) -> Option<f64> {
    let text = answer(port, "/metrics")?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    free.local_addr().expect("an address").port()
}

/// Waits until the run has subscribed: it connects within its first attempts.
pub(crate) fn wait_for_subscriber() {
    thread::sleep(Duration::from_secs(3));
}

#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
#[test]
fn the_plant_over_a_broker_opens_the_incidents_of_the_built_in_day() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let broker = Mosquitto::start(folder.path());
    let metrics = free_port();
    let file = session(folder.path(), [broker.port, metrics], |text| text);
    let running = Running::start(folder.path(), &file);
    wait_for_subscriber();
    let mut plant = plant(folder.path(), broker.port, "6", "max");
    assert!(plant.wait().expect("it ends").success());
    let all = f64::from(54 * 3600);
    wait_until("the last rows", || figure(metrics, "headwater_rows_total") == Some(all));
    thread::sleep(Duration::from_secs(2));
    let live = running.end();
    let built_in = program(folder.path())
        .args(["run", "--seed", "7", "--until", "+6h", "--json"])
        .arg(unprotected_day(folder.path()))
        .output()
        .expect("the program runs");
    let built_in = told(&built_in);
    let of_six_hours = incidents(&built_in);
    assert!(of_six_hours.len() >= 3, "six hours of attacks");
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
    let metrics = free_port();
    let file = session(folder.path(), [broker.port, metrics], short);
    let running = Running::start(folder.path(), &file);
    wait_for_subscriber();
    let mut plant = plant(folder.path(), broker.port, "0.5", "100");
    wait_until("learning", || running.facts().contains("\"calibrated\""));
    // The rest of the 48 h and the half hour after them are watched.
    broker.kill_and_restart(Duration::from_secs(2));
    plant.wait().expect("it ends");
    let rows = || figure(metrics, "headwater_rows_total");
    wait_until("the last rows", || {
        let before = rows();
        thread::sleep(Duration::from_secs(3));
        before.is_some() && before == rows()
    });
    let told = running.end();
    assert!(told.count("times reconnected") >= 1, "{}", told.words);
    let rows = told.count("rows,");
    println!("broker killed for 2 s: {rows} of {} rows came", 48 * 3600 + 1800);
    // A broker that is killed keeps nothing: what was on its way is a gap, and the run goes on behind it.
    let until = told.of("summary")[0]["until"].to_string();
    assert!(until.contains("2022-08-12T00:29:"), "{until}");
    assert_eq!(told.count("wrongly"), 0);
}
