//! Receivers: how one fact is handed over to each kind.

use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rumqttc::{AsyncClient, Event, EventLoop, Packet, PublishOptions, QoS};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::net::{self, LONGEST, Target};
use super::{OutputError, hmac};
use crate::base::broker::Access;
use crate::session::output::{OutputSettings, Receiver};

/// Hands facts over, one at a time.
pub(super) trait Deliver: Send + fmt::Debug {
    /// Hands the fact with this number over; an error says why that failed.
    fn deliver(&mut self, number: i64, line: &str) -> Result<(), String>;
}

/// What a session names, ready to be handed facts. Nothing is connected to yet.
pub(super) fn open(
    settings: &OutputSettings,
    folder: &Path,
    allow_exec: bool,
) -> Result<Box<dyn Deliver>, OutputError> {
    let wrong = |why: String| OutputError::Setting { name: settings.name.clone(), why };
    Ok(match &settings.to {
        Receiver::File(file) => Box::new(Lines { file: folder.join(file) }),
        Receiver::Webhook { url, secret_env } => {
            let (target, path) = http(url).map_err(wrong)?;
            let secret = match secret_env {
                None => None,
                Some(variable) => Some(std::env::var(variable).map_err(|_| {
                    wrong(format!("the environment variable {variable} holds no secret"))
                })?),
            };
            Box::new(Webhook { target, path, secret, runtime: net::runtime()? })
        }
        Receiver::Syslog(address) => {
            let (way, target) = syslog(address).map_err(wrong)?;
            Box::new(Syslog { way, target, host: host_name(), runtime: net::runtime()? })
        }
        Receiver::Mqtt { broker, topic, user, password_env, ca } => Box::new(Broker {
            url: broker.clone(),
            topic: topic.clone(),
            user: user.clone(),
            password_env: password_env.clone(),
            ca: ca.as_ref().map(|ca| folder.join(ca)),
            runtime: net::runtime()?,
            connection: None,
        }),
        Receiver::Command(_) if !allow_exec => {
            return Err(OutputError::NotAllowed(settings.name.clone()));
        }
        Receiver::Command(command) => {
            let (program, arguments) = command
                .split_first()
                .ok_or_else(|| wrong("expected a program and its arguments".into()))?;
            Box::new(Exec { program: program.clone(), arguments: arguments.to_vec() })
        }
    })
}

/// A file of JSON lines.
#[derive(Debug)]
struct Lines {
    file: PathBuf,
}

impl Deliver for Lines {
    fn deliver(&mut self, _number: i64, line: &str) -> Result<(), String> {
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&self.file)?;
            // One write: whoever reads along sees whole lines.
            file.write_all(format!("{line}\n").as_bytes())
        };
        append().map_err(|why: std::io::Error| format!("{}: {why}", self.file.display()))
    }
}

#[derive(Debug)]
struct Webhook {
    target: Target,
    path: String,
    secret: Option<String>,
    runtime: Runtime,
}

/// Host, port and path of an HTTP address.
fn http(url: &str) -> Result<(Target, String), String> {
    let expected = || format!("expected http://host[:port]/path or https://…, found {url:?}");
    let (rest, encrypted) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => return Err(expected()),
    };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let usual = if encrypted { 443 } else { 80 };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| expected())?),
        None => (place, usual),
    };
    let plain = !host.is_empty() && !url.contains(|c: char| c.is_control() || c == ' ');
    let target = Target { host: host.to_owned(), port, encrypted };
    if plain { Ok((target, format!("/{path}"))) } else { Err(expected()) }
}

impl Deliver for Webhook {
    fn deliver(&mut self, number: i64, line: &str) -> Result<(), String> {
        let Self { target, path, .. } = self;
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: headwater\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\nX-Headwater-Number: {number}\r\nConnection: \
             close\r\n",
            target.host,
            target.port,
            line.len()
        );
        if let Some(secret) = &self.secret {
            let signature = hmac::sign(secret.as_bytes(), line.as_bytes());
            // Text has room.
            let _ = write!(request, "X-Headwater-Signature: sha256={signature}\r\n");
        }
        request.push_str("\r\n");
        request.push_str(line);
        let answer = net::send(&self.runtime, target, request.as_bytes(), true)?;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split_whitespace().nth(1).unwrap_or_default();
        if answer.starts_with("HTTP/1.") && status.starts_with('2') && status.len() == 3 {
            return Ok(());
        }
        let first: String = answer.lines().next().unwrap_or_default().chars().take(80).collect();
        Err(format!("{}:{} answers {first:?}", target.host, target.port))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Datagram,
    Connection,
}

#[derive(Debug)]
struct Syslog {
    way: Way,
    target: Target,
    host: String,
    runtime: Runtime,
}

fn syslog(address: &str) -> Result<(Way, Target), String> {
    let expected =
        || format!("expected udp://host:514, tcp://host:601 or tls://host:6514, found {address:?}");
    let (scheme, rest) = address.split_once("://").ok_or_else(expected)?;
    let (way, usual, encrypted) = match scheme {
        "udp" => (Way::Datagram, 514, false),
        "tcp" => (Way::Connection, 601, false),
        "tls" => (Way::Connection, 6514, true),
        _ => return Err(expected()),
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| expected())?),
        None => (rest, usual),
    };
    let target = Target { host: host.to_owned(), port, encrypted };
    if host.is_empty() { Err(expected()) } else { Ok((way, target)) }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().filter(char::is_ascii_graphic).take(255).collect();
    if name.is_empty() { "-".into() } else { name }
}

/// A fact as RFC 5424 writes it.
fn message(line: &str, host: &str, process: u32) -> String {
    /// "Local use 0".
    const FACILITY: u8 = 16;
    let fact: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |key: &str| fact[key].as_str().unwrap_or("-").to_owned();
    let severity = match fact["fact"].as_str() {
        Some("opened") => 1,
        Some("updated" | "quality") => 4,
        Some("closed") => 5,
        _ => 6,
    };
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace(']', "\\]");
    let mut data = String::new();
    if let Some(incident) = fact["incident"].as_u64() {
        // 32473 is the number of private use in examples (RFC 5612).
        let root = quoted(&text("root"));
        data = format!("[headwater@32473 incident=\"{incident}\" root=\"{root}\"]");
    }
    let data = if data.is_empty() { "-" } else { &data };
    format!(
        "<{}>1 {} {host} headwater {process} {} {data} \u{feff}{line}",
        FACILITY * 8 + severity,
        text("time"),
        text("fact"),
    )
}

impl Deliver for Syslog {
    fn deliver(&mut self, _number: i64, line: &str) -> Result<(), String> {
        let message = message(line, &self.host, std::process::id());
        match self.way {
            Way::Datagram => {
                let Target { host, port, .. } = &self.target;
                let send = || {
                    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
                    socket.send_to(message.as_bytes(), (host.as_str(), *port))
                };
                send().map(|_| ()).map_err(|why: std::io::Error| format!("{host}:{port}: {why}"))
            }
            Way::Connection => {
                // The length stands before the message (RFC 6587).
                let framed = format!("{} {message}", message.len());
                net::send(&self.runtime, &self.target, framed.as_bytes(), false).map(|_| ())
            }
        }
    }
}

struct Broker {
    url: String,
    topic: String,
    user: Option<String>,
    password_env: Option<String>,
    ca: Option<PathBuf>,
    runtime: Runtime,
    connection: Option<(AsyncClient, EventLoop)>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Deliver for Broker {
    fn deliver(&mut self, _number: i64, line: &str) -> Result<(), String> {
        let access = Access {
            url: &self.url,
            user: self.user.as_deref(),
            password_env: self.password_env.as_deref(),
            ca: self.ca.as_deref(),
            ..Access::default()
        };
        // After a failure everything begins anew: an answer then belongs to this fact.
        let (client, mut events) = match self.connection.take() {
            Some(connection) => connection,
            None => AsyncClient::builder(access.options()?).capacity(4).build(),
        };
        let (topic, line) = (self.topic.clone(), line.to_owned());
        self.runtime.block_on(async {
            let acknowledged = async {
                let options = PublishOptions::new(QoS::AtLeastOnce);
                client.publish(topic, line, options).await.map_err(|why| why.to_string())?;
                loop {
                    match events.poll().await {
                        Ok(Event::Incoming(Packet::PubAck(_))) => return Ok(()),
                        Ok(_) => {}
                        Err(why) => return Err(why.to_string()),
                    }
                }
            };
            match tokio::time::timeout(LONGEST, acknowledged).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {} s", LONGEST.as_secs())),
            }
        })?;
        self.connection = Some((client, events));
        Ok(())
    }
}

#[derive(Debug)]
struct Exec {
    program: String,
    arguments: Vec<String>,
}

impl Deliver for Exec {
    fn deliver(&mut self, _number: i64, line: &str) -> Result<(), String> {
        let trouble = |why: std::io::Error| format!("{}: {why}", self.program);
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(trouble)?;
        if let Some(mut input) = child.stdin.take() {
            // A program that does not read its input is none of our business.
            let _ = input.write_all(format!("{line}\n").as_bytes());
        }
        let begun = Instant::now();
        loop {
            match child.try_wait().map_err(trouble)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{}: {status}", self.program)),
                None if begun.elapsed() > LONGEST => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("{} did not end within {LONGEST:?}", self.program));
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
