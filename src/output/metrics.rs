//! Figures for a monitoring system: Prometheus text under `/metrics` and a word under `/healthz`, on
//! loopback only.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks for a request.
const LOOK: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// The answer to a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    /// Name and value of each figure.
    pub(crate) values: Vec<(String, f64)>,
    /// Why it is not well, where it is not.
    pub(crate) trouble: Option<String>,
}

impl Figures {
    /// As Prometheus reads it.
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.values {
            let plain = name.split('{').next().unwrap_or(name);
            let kind = if plain.ends_with("_total") { "counter" } else { "gauge" };
            let head = format!("# TYPE {plain} {kind}\n");
            if !text.contains(&head) {
                text.push_str(&head);
            }
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

/// Answers on an address of this machine until it is dropped.
#[derive(Debug)]
pub(crate) struct Metrics {
    figures: Arc<Mutex<Figures>>,
    ends: Arc<AtomicBool>,
    #[cfg(test)]
    address: SocketAddr,
}

impl Metrics {
    pub(crate) fn listen(address: &str) -> Result<Self, String> {
        let address: SocketAddr = address.parse().map_err(|_| {
            format!("metrics: expected an address such as 127.0.0.1:9464, found {address:?}")
        })?;
        if !address.ip().is_loopback() {
            return Err(format!(
                "metrics: {address} is no loopback address: other machines could read it"
            ));
        }
        let refused = |why: io::Error| format!("metrics: {address}: {why}");
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let figures = Arc::new(Mutex::new(Figures::default()));
        let ends = Arc::new(AtomicBool::new(false));
        let (told, is_over) = (Arc::clone(&figures), Arc::clone(&ends));
        #[cfg(test)]
        let address = listener.local_addr().map_err(refused)?;
        let spawned = thread::Builder::new().name("metrics".into()).spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let figures = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
                        // Whoever asks and leaves is not waited for.
                        let _ = answer(stream, &figures);
                    }
                    Err(_) => thread::sleep(LOOK),
                }
            }
        });
        spawned.map_err(refused)?;
        Ok(Self {
            figures,
            ends,
            #[cfg(test)]
            address,
        })
    }

    pub(crate) fn set(&self, figures: Figures) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn answer(mut stream: TcpStream, figures: &Figures) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LONGEST))?;
    stream.set_write_timeout(Some(LONGEST))?;
    let mut bytes = [0; 1024];
    let mut read = 0;
    // A question may come in several pieces; an answer to the first would cut off the others.
    while read < bytes.len() && !bytes[..read].ends_with(b"\r\n\r\n") {
        match stream.read(&mut bytes[read..])? {
            0 => break,
            more => read += more,
        }
    }
    let request = String::from_utf8_lossy(&bytes[..read]);
    let path = request.split_whitespace().nth(1).unwrap_or_default();
    let (status, body) = match (path, &figures.trouble) {
        ("/metrics", _) => ("200 OK", figures.text()),
        ("/healthz", None) => ("200 OK", "ok\n".into()),
        ("/healthz", Some(trouble)) => ("503 Service Unavailable", format!("{trouble}\n")),
        _ => ("404 Not Found", "there are /metrics and /healthz\n".into()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(metrics: &Metrics, path: &str) -> String {
        let mut stream = TcpStream::connect(metrics.address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").expect("written");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn figures_and_health_are_told_on_loopback_and_nowhere_else() {
        let metrics = Metrics::listen("127.0.0.1:0").expect("a free port");
        let values = vec![
            ("headwater_rows_total".into(), 12.0),
            ("headwater_queue{output=\"a\"}".into(), 3.0),
        ];
        metrics.set(Figures { values, trouble: None });
        let text = ask(&metrics, "/metrics");
        assert!(text.contains("# TYPE headwater_rows_total counter\nheadwater_rows_total 12\n"));
        assert!(text.contains("# TYPE headwater_queue gauge\nheadwater_queue{output=\"a\"} 3\n"));
        assert!(ask(&metrics, "/healthz").starts_with("HTTP/1.1 200"));
        metrics.set(Figures { values: Vec::new(), trouble: Some("no data for 9 s".into()) });
        let text = ask(&metrics, "/healthz");
        assert!(text.starts_with("HTTP/1.1 503") && text.ends_with("no data for 9 s\n"), "{text}");
        let refused = Metrics::listen("0.0.0.0:0").expect_err("open to all");
        assert!(refused.contains("loopback"), "{refused}");
    }
}
