//! Live rows of OPC UA servers: a real server on loopback, and everything that can happen to it.
//!
//! Only with the feature `opcua`: `cargo test --release --features opcua --test opcua`.
#![cfg(unix)]

#[path = "support/program.rs"]
mod program;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "opcua/support.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::Duration;

use program::{program, told};
use proxy::Proxy;
use support::{Plant, Running, figure, incidents, session, session_at, wait_until};

/// Seconds of history before the day.
const HISTORY: u64 = 8 * 3600;

#[test]
fn thirty_minutes_with_an_attack_give_the_incidents_of_the_same_rows_without_opc_ua() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    // The first attack of the day begins at 01:25:04.
    let day = ["--seed", "7", "--attacks", "--history", "8", "--begin", "1.2", "--hours", "1.7"];
    let mut pipe = program(folder.path())
        .args(["make", "plant", "--live", "stdout", "--speed", "max"])
        .args(day)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    let file = session(folder.path(), "input: Stdin", 0);
    let without = program(folder.path())
        .args(["run", "--json", "--seed", "1"])
        .arg(&file)
        .stdin(pipe.stdout.take().expect("its output"))
        .output()
        .expect("the program runs");
    assert!(pipe.wait().expect("it ends").success());
    let without = told(&without);
    assert_eq!(without.of("opened").len(), 1, "one attack");

    let plant = Plant::start(folder.path(), &day, "10");
    let (file, metrics) = plant.session(folder.path(), "past: From(\"2022-08-11T16:00:00Z\")");
    let running = Running::start(folder.path(), &file, &[]);
    let all = HISTORY + 17 * 360;
    wait_until("the last row", || figure(metrics, "headwater_rows_total") == Some(all as f64));
    let with = running.end();
    assert_eq!(incidents(&without), incidents(&with));
    assert_eq!(with.count("rows,"), all);
    assert_eq!((with.count("incomplete"), with.count("late"), with.count("times")), (0, 0, 0));
}

/// A quiet plant at 20 times the clock, and a run that has begun to watch it through `cable`.
fn watched(folder: &std::path::Path, minutes: &str) -> (Plant, Proxy, Running, u16) {
    let hours = format!("{}", minutes.parse::<f64>().expect("a number") / 60.0);
    let plant = Plant::start(folder, &["--seed", "5", "--history", "8", "--hours", &hours], "20");
    let cable = Proxy::to(plant.port);
    let (file, metrics) = session_at(folder, cable.port, "past: Before");
    let running = Running::start(folder, &file, &[]);
    let begun = (HISTORY + 60) as f64;
    wait_until("watching", || {
        figure(metrics, "headwater_rows_total").is_some_and(|rows| rows > begun)
    });
    (plant, cable, running, metrics)
}

#[test]
fn a_server_that_is_killed_and_comes_back_costs_no_row_that_it_kept() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (mut plant, _cable, running, metrics) = watched(folder.path(), "10");
    plant.kill();
    wait_until("the loss", || figure(metrics, "headwater_reconnects_total") >= Some(1.0));
    assert_eq!(figure(metrics, "headwater_source_up"), Some(0.0));
    // It comes back a while later: what nobody fetched stands in its history.
    plant.restart(&["--seed", "5", "--history", "8", "--begin", "0.1", "--hours", "0.1667"], "20");
    let all = HISTORY + 600;
    wait_until("the last row", || figure(metrics, "headwater_rows_total") == Some(all as f64));
    let told = running.end();
    assert_eq!(told.of("opened").len(), 0, "nothing was wrong in the plant");
    assert_eq!((told.count("rows,"), told.count("incomplete")), (all, 0));
    assert!(!told.says("gap"), "{:?}", told.of("quality"));
}

#[test]
fn a_cut_cable_costs_no_row() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (_plant, cable, running, metrics) = watched(folder.path(), "6");
    cable.cut();
    wait_until("the loss", || figure(metrics, "headwater_reconnects_total") >= Some(1.0));
    thread::sleep(Duration::from_secs(3));
    cable.restore();
    // The day may be over by then: the server stays, and has it in its history.
    let all = HISTORY + 360;
    wait_until("the last row", || figure(metrics, "headwater_rows_total") == Some(all as f64));
    let told = running.end();
    assert_eq!(told.of("opened").len(), 0);
    assert_eq!((told.count("rows,"), told.count("incomplete")), (all, 0));
    assert!(told.count("times") >= 1, "{}", told.words);
}

#[test]
fn a_server_that_hangs_is_seen_and_watched_again() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (plant, _cable, running, metrics) = watched(folder.path(), "8");
    plant.signal("-STOP");
    wait_until("silence", || figure(metrics, "headwater_source_up") == Some(0.0));
    wait_until("giving up", || figure(metrics, "headwater_reconnects_total") >= Some(1.0));
    plant.signal("-CONT");
    let all = HISTORY + 480;
    wait_until("the last row", || figure(metrics, "headwater_rows_total") == Some(all as f64));
    let told = running.end();
    assert_eq!(told.of("opened").len(), 0);
    assert_eq!((told.count("rows,"), told.count("incomplete")), (all, 0));
}

#[test]
fn a_password_goes_over_an_encrypted_channel_to_a_server_that_somebody_trusts() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let day = ["--seed", "5", "--history", "8", "--hours", "0.1"];
    let user = [("HEADWATER_OPCUA_USER", "op"), ("HEADWATER_OPCUA_PASSWORD", "hush")];
    let plant = Plant::start_with(folder.path(), &day, "20", &user);
    let open = "user: \"op\", password_env: \"PLC_PASSWORD\", past: Before";
    let (file, _) = plant.session(folder.path(), open);
    let check = |args: &[&str]| {
        let done = program(folder.path()).args(args).arg(&file).output().expect("the program runs");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, words) = check(&["check"]);
    assert_eq!(code, Some(1));
    assert!(words.contains("over an encrypted connection only"), "{words}");

    let encrypted = format!("security: Aes256Sha256RsaPss, pki: \"pki\", {open}");
    let (file, metrics) = plant.session(folder.path(), &encrypted);
    let run = |password: &str, args: &[&str]| {
        let done = program(folder.path())
            .args(["run", "--json"])
            .args(args)
            .arg(&file)
            .env("PLC_PASSWORD", password)
            .output()
            .expect("the program runs");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, words) = run("hush", &[]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("not trusted yet") && words.contains(&plant.thumbprint), "{words}");
    let (code, words) = run("hush", &["--trust", "00112233"]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("no certificate has the thumbprint 00112233"), "{words}");
    let (code, words) = run("wrong", &["--trust", &plant.thumbprint]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("wrong user or password"), "{words}");
    let (code, words) = run("", &[]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("PLC_PASSWORD holds no password"), "{words}");

    let key = folder.path().join("pki/private/private.pem");
    assert_eq!(fs::metadata(key).expect("a key").permissions().mode() & 0o777, 0o600);

    let running = Running::start(folder.path(), &file, &[("PLC_PASSWORD", "hush")]);
    let all = HISTORY + 360;
    wait_until("the last row", || figure(metrics, "headwater_rows_total") == Some(all as f64));
    let told = running.end();
    assert_eq!((told.of("opened").len(), told.count("rows,")), (0, all));
}

#[test]
fn what_a_server_does_not_have_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let plant =
        Plant::start(folder.path(), &["--seed", "5", "--history", "1", "--hours", "0.1"], "1");
    let fails = |source: &str, change: (&str, &str)| {
        let (file, _) = plant.session(folder.path(), source);
        let text = fs::read_to_string(&file).expect("the session");
        fs::write(&file, text.replace(change.0, change.1)).expect("written");
        let done = program(folder.path()).arg("run").arg(&file).output().expect("the program runs");
        assert_eq!(done.status.code(), Some(1));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let words = fails("past: Before", ("\"P1_PIT01\"", "\"P1_PIT01_NEW\""));
    assert!(words.contains("P1_PIT01_NEW") && words.contains("the nearest is"), "{words}");
    let words = fails("past: Before", ("urn:headwater:plant", "urn:another"));
    assert!(words.contains("no namespace \"urn:another\""), "{words}");
    let words = fails("security: Aes128Sha256RsaOaep, pki: \"pki\"", ("", ""));
    assert!(words.contains("does not offer") && words.contains("Basic256Sha256"), "{words}");
    let tags = "tags: {\"P1_PIT01\": \"s=P1_PIT01\", \"P1_TIT01\": \"s=gone\", \"P2_SIT01\": \"s=P2_SIT01\"}";
    let words = fails(tags, ("", ""));
    assert!(!words.is_empty(), "{words}");
}

#[test]
fn init_looks_at_a_server_and_writes_a_session_for_it() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let plant =
        Plant::start(folder.path(), &["--seed", "5", "--history", "1", "--hours", "0.1"], "1");
    let file = folder.path().join("proposed.ron");
    let done = program(folder.path())
        .args(["init", &format!("opc.tcp://127.0.0.1:{}", plant.port), "--out"])
        .arg(&file)
        .output()
        .expect("the program runs");
    let words = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words}");
    let text = fs::read_to_string(&file).expect("a session");
    for part in [
        "namespace: \"urn:headwater:plant\"",
        "name: \"P1\", title: \"boiler\"",
        "name: \"P2\", title: \"turbine\"",
        "past: Before",
        "Never change in the rows that were looked at",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let checked =
        program(folder.path()).arg("check").arg(&file).output().expect("the program runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let nobody = program(folder.path())
        .args(["init", "opc.tcp://127.0.0.1:1"])
        .output()
        .expect("the program runs");
    let words = String::from_utf8_lossy(&nobody.stderr);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(words.contains("connection refused"), "{words}");
}
