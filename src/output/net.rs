//! One request over TCP, in the open or encrypted, within a stated time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rumqttc::TlsConfiguration;
use rumqttc::tokio_rustls::TlsConnector;
use rumqttc::tokio_rustls::rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// How long one attempt may take.
pub(super) const LONGEST: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read: its first line is all that counts.
const ANSWER: usize = 1024;

trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

/// Where a receiver is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) encrypted: bool,
}

/// A runtime for the thread of one receiver.
pub(super) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Sends `request`; with `answer`, gives the beginning of what comes back.
pub(super) fn send(
    runtime: &Runtime,
    target: &Target,
    request: &[u8],
    answer: bool,
) -> Result<Vec<u8>, String> {
    let Target { host, port, .. } = target;
    runtime.block_on(async {
        let attempt = tokio::time::timeout(LONGEST, exchange(target, request, answer));
        match attempt.await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(why)) => Err(format!("{host}:{port}: {why}")),
            Err(_) => Err(format!("{host}:{port}: no answer within {} s", LONGEST.as_secs())),
        }
    })
}

async fn exchange(target: &Target, request: &[u8], answer: bool) -> io::Result<Vec<u8>> {
    let plain = TcpStream::connect((target.host.as_str(), target.port)).await?;
    plain.set_nodelay(true)?;
    let mut connection: Box<dyn Connection> = if target.encrypted {
        let config = match TlsConfiguration::try_default_rustls().map_err(io::Error::other)? {
            TlsConfiguration::Rustls(config) => config,
            TlsConfiguration::Simple { .. } => return Err(io::Error::other("no certificates")),
        };
        let name = ServerName::try_from(target.host.clone()).map_err(io::Error::other)?;
        Box::new(TlsConnector::from(Arc::clone(&config)).connect(name, plain).await?)
    } else {
        Box::new(plain)
    };
    connection.write_all(request).await?;
    connection.flush().await?;
    let mut bytes = Vec::new();
    if answer {
        let mut piece = [0; 256];
        while !bytes.contains(&b'\n') && bytes.len() < ANSWER {
            let read = connection.read(&mut piece).await?;
            if read == 0 {
                break;
            }
            bytes.extend_from_slice(&piece[..read]);
        }
    } else {
        connection.shutdown().await?;
    }
    Ok(bytes)
}
