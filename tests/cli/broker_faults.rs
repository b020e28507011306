//! A broker behind a bad network, a broker that hangs, a broker that asks who we are.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::broker::{Mosquitto, answer, figure, free_port, plant, session, wait_for_subscriber};
use super::live::{Running, WATCHED, program, rows, session as table_session, wait_until};
use super::started::Started;
use super::tty::signal;

/// A network between a program and a broker, which can be cut.
struct Network {
    port: u16,
    is_cut: Arc<AtomicBool>,
    lines: Arc<Mutex<Vec<TcpStream>>>,
}

impl Network {
    fn to(broker: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (is_cut, lines) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let network = Self { port, is_cut: Arc::clone(&is_cut), lines: Arc::clone(&lines) };
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if is_cut.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", broker)) else { continue };
                let (near_read, far_read) = (near.try_clone(), far.try_clone());
                let (Ok(near_read), Ok(far_read)) = (near_read, far_read) else { continue };
                let keep = [near.try_clone(), far.try_clone()];
                lines.lock().expect("a lock").extend(keep.into_iter().flatten());
                thread::spawn(move || pass(near_read, far));
                thread::spawn(move || pass(far_read, near));
            }
        });
        network
    }

    fn cut_for(&self, time: Duration) {
        self.is_cut.store(true, Ordering::Relaxed);
        for line in self.lines.lock().expect("a lock").drain(..) {
            let _ = line.shutdown(Shutdown::Both);
        }
        thread::sleep(time);
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
#[test]
fn a_cut_network_and_a_hung_broker_cost_no_row_that_the_broker_kept() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    let broker = Mosquitto::start(folder);
    let network = Network::to(broker.port);
    // Under a name of our own the broker keeps rows while we are away.
    let change = |text: String| {
        text.replace("+16h", "+2h")
            .replace("+48h", "+6h")
            .replace("arl0: \"2d\"", "arl0: \"30d\"")
            .replace("topics:", "client_id: \"cut\", topics:")
    };
    let metrics = free_port();
    let file = session(folder, [network.port, metrics], change);
    let running = Running::start(folder, &file);
    wait_for_subscriber();
    let mut source = plant(folder, broker.port, "0.5", "100");
    wait_until("learning", || running.facts().contains("\"calibrated\""));
    for _ in 0..3 {
        network.cut_for(Duration::from_secs(2));
        thread::sleep(Duration::from_secs(2));
    }
    // A broker that hangs answers nobody, and keeps its connections.
    signal("STOP", broker.child.id());
    thread::sleep(Duration::from_secs(16));
    signal("CONT", broker.child.id());
    assert!(source.wait().expect("it ends").success());
    let all = f64::from(48 * 3600 + 1800);
    let rows = || figure(metrics, "headwater_rows_total");
    wait_until("the last rows", || rows() >= Some(all));
    let heard = rows();
    let told = running.end();
    let reconnected = told.count("times reconnected");
    let opened = told.of("opened").len();
    println!(
        "3 cuts of 2 s and a broker that hung for 16 s: {heard:?} of {all} rows came, {} doubled, \
         {reconnected} times reconnected, {opened} incidents opened",
        told.count("doubled")
    );
    assert!(reconnected >= 3, "{}", told.words);
    assert!(told.says("reconnecting"), "the state is in the log: {:?}", told.of("quality"));
    assert_eq!(heard, Some(all), "{}", told.words);
    let moved = told.says("the clock of the data moved");
    assert!(!moved, "rows that come again are no clock that went back: {:?}", told.of("quality"));
}

#[test]
fn a_source_that_dies_and_comes_back_is_seen_and_costs_nothing_but_its_silence() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    let file = table_session(folder, "input: Follow(file: \"rows.csv\"), history: Learned");
    let write = |lines: &[String]| {
        let file = folder.join("rows.csv");
        let mut file = fs::File::options().append(true).create(true).open(file).expect("writable");
        file.write_all((lines.join("\n") + "\n").as_bytes()).expect("written");
    };
    write(&rows()[..WATCHED + 600]);
    let running = Running::start(folder, &file);
    let silent = || running.facts().matches("nothing has arrived for").count();
    wait_until("a silence that is said", || silent() == 1);
    // The rows of ten minutes are lost with the source; what comes after them is watched.
    write(&rows()[WATCHED + 1200..WATCHED + 1800]);
    wait_until("the source is back", || running.facts().contains("rows.csv: connected"));
    wait_until("another silence", || silent() == 2);
    let told = running.end();
    let gaps = told.of("quality").iter().filter(|of| of["what"] == "gap").count();
    println!("source killed: {} rows came, {gaps} gap said", told.count("rows,"));
    assert_eq!(told.count("rows,"), 6 * 3600 + 1200);
    assert_eq!((told.of("opened").len(), gaps), (0, 1), "{:?}", told.of("quality"));
}

#[test]
fn a_source_that_cannot_be_reached_while_it_learns_is_told_and_a_stop_is_no_failure() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let metrics = free_port();
    let file = session(folder.path(), [free_port(), metrics], |text| text);
    let running = Running::start(folder.path(), &file);
    wait_until("the reason", || {
        let health = answer(metrics, "/healthz").unwrap_or_default();
        health.starts_with("HTTP/1.1 503") && health.contains("reconnecting for")
    });
    assert_eq!(figure(metrics, "headwater_source_up"), Some(0.0));
    let told = running.end();
    assert!(told.words.contains("stopped while it learned what is normal"), "{}", told.words);
}

/// Runs openssl, which is there wherever mosquitto is.
fn openssl(folder: &Path, args: &[&str]) {
    let done = Command::new("openssl").args(args).current_dir(folder).output().expect("openssl");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// An authority of our own, a broker's certificate by it, and another authority.
fn certificates(folder: &Path) {
    let key = ["-newkey", "rsa:2048", "-nodes"];
    for (name, subject) in [("ca", "/CN=test authority"), ("other", "/CN=another authority")] {
        let (key_file, file) = (format!("{name}.key"), format!("{name}.pem"));
        let files = ["-keyout", &key_file, "-out", &file, "-days", "2", "-subj", subject];
        openssl(folder, &[&["req", "-x509"][..], &key, &files].concat());
    }
    let files = ["-keyout", "broker.key", "-out", "broker.csr", "-subj", "/CN=127.0.0.1"];
    openssl(folder, &[&["req"][..], &key, &files].concat());
    fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("written");
    openssl(
        folder,
        &[
            "x509",
            "-req",
            "-in",
            "broker.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-out",
            "broker.pem",
            "-days",
            "2",
            "-extfile",
            "names",
        ],
    );
}

#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
#[test]
fn an_encrypted_broker_is_looked_at_and_watched_with_a_password_from_the_environment() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    certificates(folder);
    let passwords = folder.join("passwords");
    fs::write(&passwords, "plant:hush\n").expect("written");
    let hashed = Command::new("mosquitto_passwd").arg("-U").arg(&passwords).status();
    assert!(hashed.expect("mosquitto_passwd runs").success());
    let at = |name: &str| folder.join(name).display().to_string();
    let more = format!(
        "allow_anonymous false\npassword_file {}\ncafile {}\ncertfile {}\nkeyfile {}\nuser root\n",
        at("passwords"),
        at("ca.pem"),
        at("broker.pem"),
        at("broker.key")
    );
    let broker = Mosquitto::start_with(folder, &more);
    let url = format!("mqtts://127.0.0.1:{}", broker.port);
    let source = || {
        let mut command = program(folder);
        command
            .args([
                "make", "plant", "--seed", "7", "--hours", "1", "--speed", "max", "--live", &url,
            ])
            .env("HEADWATER_MQTT_USER", "plant")
            .env("HEADWATER_MQTT_PASSWORD", "hush")
            .env("HEADWATER_MQTT_CA", at("ca.pem"))
            .stderr(Stdio::null());
        Started::by(&mut command)
    };
    let first = source();
    let init = |ca: &str, password: &str, out: &str| {
        program(folder)
            .current_dir(folder)
            .env("PLANT_PASSWORD", password)
            .args(["init", &url, "--for", "10s", "--user", "plant", "--out", out])
            .args(["--password-env", "PLANT_PASSWORD", "--ca", ca])
            .output()
            .expect("the program runs")
    };
    let done = init("ca.pem", "hush", "found.ron");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for (ca, password) in [("other.pem", "hush"), ("ca.pem", "wrong")] {
        let refused = init(ca, password, "none.ron");
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        println!("{ca}, {password}: {words}");
        assert_eq!(refused.status.code(), Some(1), "{words}");
        assert!(!words.contains("hush") && !folder.join("none.ron").exists(), "{words}");
    }
    drop(first);

    // What was written passes the check, knows the clients, and holds no password.
    let text = fs::read_to_string(folder.join("found.ron")).expect("written");
    for part in ["topics: Rows(\"plant/row\")", "name: \"P1\", title: \"boiler\"", "name: \"P3\""] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.contains("password_env: \"PLANT_PASSWORD\"") && !text.contains("hush"), "{text}");
    let check = program(folder).arg("check").arg(folder.join("found.ron")).output();
    let check = check.expect("the program runs");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));

    // And it runs: it learns, then watches.
    let text = text.replace("+24h", "+1h").replace("+72h", "+3h");
    fs::write(folder.join("found.ron"), text).expect("written");
    let (out, err) = (folder.join("run.jsonl"), folder.join("run.txt"));
    let mut run = program(folder);
    run.env("PLANT_PASSWORD", "hush")
        .args(["run", "--json"])
        .arg(folder.join("found.ron"))
        .stdout(fs::File::create(&out).expect("writable"))
        .stderr(fs::File::create(&err).expect("writable"));
    let mut run = Started::by(&mut run);
    wait_for_subscriber();
    let _second = source();
    wait_until("learning", || {
        fs::read_to_string(&out).is_ok_and(|facts| facts.contains("\"calibrated\""))
    });
    signal("TERM", run.id());
    run.wait().expect("it ends");
}
