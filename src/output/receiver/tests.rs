use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::thread;

use super::*;
use crate::session::output::FactKind;

const FACT: &str = "{\"fact\":\"opened\",\"incident\":7,\"time\":\"2022-08-12T04:21:14Z\",\
                    \"root\":\"P\\\"1]\"}";

fn receiver(to: Receiver, folder: &Path) -> Box<dyn Deliver> {
    let settings = OutputSettings { name: "test".into(), to, facts: vec![FactKind::Opened] };
    open(&settings, folder, true).expect("a receiver")
}

/// Answers requests with `answers`, one each; gives what was received.
fn server(answers: &'static [&'static str]) -> (u16, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thread = thread::spawn(move || {
        let mut got = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = [0; 4096];
            let mut text = String::new();
            while !text.contains('}') {
                let read = stream.read(&mut bytes).expect("readable");
                text.push_str(&String::from_utf8_lossy(&bytes[..read]));
                if read == 0 {
                    break;
                }
            }
            stream.write_all(answer.as_bytes()).expect("writable");
            got.push(text);
        }
        got
    });
    (port, thread)
}

#[test]
fn a_web_hook_is_signed_and_an_answer_other_than_2xx_is_a_failure() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let answers = &["HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"];
    let (port, server) = server(answers);
    // PATH is set wherever tests run; what it holds does not matter.
    let (url, secret_env) = (format!("http://127.0.0.1:{port}/alarm"), Some("PATH".to_owned()));
    let mut hook = receiver(Receiver::Webhook { url, secret_env }, folder.path());
    let why = hook.deliver(3, FACT).expect_err("it is not there");
    assert!(why.contains("503"), "{why}");
    hook.deliver(3, FACT).expect("it is there");
    let got = server.join().expect("it ends");
    let secret = std::env::var("PATH").expect("set");
    let signature = hmac::sign(secret.as_bytes(), FACT.as_bytes());
    assert!(got[1].starts_with("POST /alarm HTTP/1.1\r\n"), "{}", got[1]);
    assert!(got[1].contains(&format!("X-Headwater-Signature: sha256={signature}\r\n")));
    assert!(got[1].contains("X-Headwater-Number: 3\r\n") && got[1].ends_with(FACT));
}

#[test]
fn syslog_is_written_as_rfc_5424_asks_for_over_udp_and_tcp() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let expected = message(FACT, "plant", 9);
    let head = "<129>1 2022-08-12T04:21:14Z plant headwater 9 opened \
                [headwater@32473 incident=\"7\" root=\"P\\\"1\\]\"] \u{feff}{";
    assert!(expected.starts_with(head), "{expected}");

    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let mut udp = receiver(Receiver::Syslog(format!("udp://127.0.0.1:{port}")), folder.path());
    udp.deliver(1, FACT).expect("sent");
    let mut bytes = [0; 4096];
    let read = socket.recv(&mut bytes).expect("received");
    let got = String::from_utf8_lossy(&bytes[..read]).into_owned();
    assert!(got.starts_with("<129>1 ") && got.ends_with(FACT), "{got}");

    let (port, server) = server(&[""]);
    let mut tcp = receiver(Receiver::Syslog(format!("tcp://127.0.0.1:{port}")), folder.path());
    tcp.deliver(1, FACT).expect("sent");
    let got = server.join().expect("it ends").remove(0);
    let (length, text) = got.split_once(' ').expect("a length");
    assert_eq!(length.parse(), Ok(text.len()));
}

#[test]
fn a_receiver_that_is_not_there_is_a_failure_with_its_address() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let url = format!("http://127.0.0.1:{port}/");
    let mut hook = receiver(Receiver::Webhook { url, secret_env: None }, folder.path());
    let why = hook.deliver(1, FACT).expect_err("nobody is there");
    assert!(why.contains(&format!("127.0.0.1:{port}")), "{why}");
}

#[cfg(unix)]
#[test]
fn a_command_gets_the_fact_and_runs_only_where_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("got").to_string_lossy().into_owned();
    let command = |script: &str| {
        Receiver::Command(vec!["sh".into(), "-c".into(), script.into(), "sh".into(), file.clone()])
    };
    receiver(command("cat > \"$1\""), folder.path()).deliver(1, FACT).expect("it runs");
    let got = std::fs::read_to_string(&file).expect("written");
    assert_eq!(got, format!("{FACT}\n"));
    let why = receiver(command("exit 3"), folder.path()).deliver(1, FACT).expect_err("it fails");
    assert!(why.contains('3'), "{why}");
    let settings =
        OutputSettings { name: "test".into(), to: command("true"), facts: vec![FactKind::Opened] };
    let refused = open(&settings, folder.path(), false).expect_err("not allowed");
    assert!(refused.to_string().contains("--allow-exec"), "{refused}");
}

#[test]
fn a_file_gets_one_line_a_fact() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut lines = receiver(Receiver::File("alarms.jsonl".into()), folder.path());
    lines.deliver(1, FACT).expect("written");
    lines.deliver(2, FACT).expect("written");
    let got = std::fs::read_to_string(folder.path().join("alarms.jsonl")).expect("there");
    assert_eq!(got, format!("{FACT}\n{FACT}\n"));
}

#[test]
fn addresses_that_make_no_sense_are_refused() {
    for url in ["ftp://x/", "http://", "http://x:port/", "http://a b/"] {
        assert!(http(url).is_err(), "{url}");
    }
    for address in ["127.0.0.1:514", "udp://", "quic://x"] {
        assert!(syslog(address).is_err(), "{address}");
    }
}
