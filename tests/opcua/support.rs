//! A plant that is an OPC UA server, and a run that watches it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::{Told, facts, program};

/// A session that learns for eight hours and then watches.
pub(crate) fn session(folder: &Path, input: &str, metrics: u16) -> PathBuf {
    let file = folder.join("plant.ron");
    let metrics = match metrics {
        0 => String::new(),
        port => format!("metrics: \"127.0.0.1:{port}\","),
    };
    let text = format!(
        r#"Session(
    about: "a plant over OPC UA",
    source: Live({input}),
    {metrics}
    clients: [
        (name: "P1", columns: ["P1_FT01", "P1_FT02", "P1_FT03", "P1_LIT01", "P1_PIT01", "P1_TIT01"]),
        (name: "P2", columns: ["P2_SIT01", "P2_VIBTR01", "P2_VIBTR02", "P2_VT01"]),
        (name: "P3", columns: ["P3_FIT01", "P3_LIT01", "P3_PIT01"]),
    ],
    ranges: (fit: (until: "+3h"), calibration: (from: "+3h", until: "+8h")),
    sampling: (decimate: Every(5)),
    model: (proprietary: Linear),
    thresholds: (arl0: "30d"),
)"#
    );
    fs::write(&file, text).expect("the session can be written");
    file
}

pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    free.local_addr().expect("an address").port()
}

/// Waits until `holds`. The limit only ends a test that hangs: half an hour at ten times the clock takes
/// three minutes, and a busy machine its own time.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(12), "{what} took too long");
        thread::sleep(Duration::from_millis(100));
    }
}

/// A figure that a run tells on the address of its metrics.
pub(crate) fn figure(port: u16, name: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// `make plant --live opc.tcp://…` as a process.
pub(crate) struct Plant {
    folder: PathBuf,
    child: Child,
    pub(crate) port: u16,
    pub(crate) thumbprint: String,
}

impl Plant {
    pub(crate) fn start(folder: &Path, day: &[&str], speed: &str) -> Self {
        Self::start_with(folder, day, speed, &[])
    }

    pub(crate) fn start_with(
        folder: &Path,
        day: &[&str],
        speed: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let port = free_port();
        let (child, thumbprint) = spawn(folder, day, speed, port, variables);
        Self { folder: folder.to_owned(), child, port, thumbprint }
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it was there");
        self.child.wait().expect("it ends");
    }

    /// The same server again, later in its day.
    pub(crate) fn restart(&mut self, day: &[&str], speed: &str) {
        (self.child, self.thumbprint) = spawn(&self.folder, day, speed, self.port, &[]);
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
    }

    /// A session that watches it, and the port of its metrics.
    pub(crate) fn session(&self, folder: &Path, source: &str) -> (PathBuf, u16) {
        session_at(folder, self.port, source)
    }
}

/// A session that watches the server behind `port`, and the port of its metrics.
pub(crate) fn session_at(folder: &Path, port: u16, source: &str) -> (PathBuf, u16) {
    // A row waits long for its last value: how soon the rest of a row comes after a fault is a matter of
    // how busy the machine is.
    let input = format!(
        "lateness_s: 120, input: OpcUa(url: \"opc.tcp://127.0.0.1:{port}\", namespace: \"urn:headwater:plant\", \
         {source})"
    );
    let metrics = free_port();
    (session(folder, &input, metrics), metrics)
}

fn spawn(
    folder: &Path,
    day: &[&str],
    speed: &str,
    port: u16,
    variables: &[(&str, &str)],
) -> (Child, String) {
    let mut child = program(folder)
        .args(["make", "plant", "--speed", speed, "--live"])
        .arg(format!("opc.tcp://127.0.0.1:{port}"))
        .args(day)
        .envs(variables.iter().copied())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut words = BufReader::new(child.stderr.take().expect("its words")).lines();
    let mut thumbprint = String::new();
    for line in words.by_ref() {
        let line = line.expect("text");
        if let Some((_, found)) = line.split_once("thumbprint of its certificate: ") {
            found.clone_into(&mut thumbprint);
        }
        if line.contains("its day begins") {
            break;
        }
    }
    assert!(!thumbprint.is_empty(), "the server does not start");
    // Nobody reads on: its words must not fill the pipe.
    thread::spawn(move || words.for_each(drop));
    (child, thumbprint)
}

impl Drop for Plant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was opened: number, time, root. Noise of a live run comes from the operating system, and moves
/// a posterior in its last digits.
pub(crate) fn incidents(told: &Told) -> Vec<String> {
    let text = |of: &Value| {
        let keys = ["incident", "time", "root", "first_out"];
        keys.map(|key| of[key].to_string()).join(" ")
    };
    told.of("opened").into_iter().map(text).collect()
}

/// A run in the background whose facts and words go to files.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub(crate) fn start(folder: &Path, session: &Path, variables: &[(&str, &str)]) -> Self {
        let (out, err) = (folder.join("out.jsonl"), folder.join("err.txt"));
        let child = program(folder)
            .args(["run", "--json", "--seed", "1"])
            .arg(session)
            .envs(variables.iter().copied())
            .stdout(fs::File::create(&out).expect("writable"))
            .stderr(fs::File::create(&err).expect("writable"))
            .spawn()
            .expect("the program runs");
        Self { child, out, err }
    }

    /// Ends it as a service is ended, and gives what it told.
    pub(crate) fn end(mut self) -> Told {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
        let ended = self.child.wait().expect("it ends");
        let words = fs::read_to_string(&self.err).expect("readable");
        assert!(ended.success(), "to be stopped is no failure: {words}");
        Told { facts: facts(&fs::read_to_string(&self.out).expect("readable")), words }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            // What it told is gone with its folder otherwise.
            let told = fs::read_to_string(&self.out).unwrap_or_default();
            for line in told.lines().filter(|line| line.contains("\"quality\"")) {
                eprintln!("{line}");
            }
            eprintln!("{}", fs::read_to_string(&self.err).unwrap_or_default());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
