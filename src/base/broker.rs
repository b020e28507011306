//! Access to an MQTT broker: its address, who we are, and how the connection is protected.
//!
//! It knows neither topics nor messages.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rumqttc::{
    BrokerSessionResumePolicy, MqttOptions, NetworkOptions, SessionMode, TlsConfiguration,
    Transport,
};

/// Seconds without a word from the broker after which the connection counts as lost.
const KEEP_ALIVE_S: u16 = 10;
/// A message that is longer is no message of measurements.
const LONGEST_MESSAGE: u32 = 4 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a broker is reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access<'a> {
    /// `mqtt://host[:port]` or `mqtts://host[:port]`.
    pub(crate) url: &'a str,
    /// The name under which the broker keeps messages for us while we are away; without, it keeps
    /// none.
    pub(crate) client_id: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    /// The environment variable that holds the password.
    pub(crate) password_env: Option<&'a str>,
    /// Files in PEM: the authority that signed the broker's certificate, our own certificate and key.
    pub(crate) ca: Option<&'a Path>,
    pub(crate) identity: Option<(&'a Path, &'a Path)>,
}

/// Host, port, and whether the connection is encrypted.
pub(crate) fn address(url: &str) -> Result<(&str, u16, bool), String> {
    let expected = || format!("expected mqtt://host:port or mqtts://host:port, found {url:?}");
    let (rest, encrypted) = match (url.strip_prefix("mqtt://"), url.strip_prefix("mqtts://")) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => return Err(expected()),
    };
    let rest = rest.split('/').next().unwrap_or(rest);
    let usual = if encrypted { 8883 } else { 1883 };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| expected())?),
        None => (rest, usual),
    };
    if host.is_empty() { Err(expected()) } else { Ok((host, port, encrypted)) }
}

impl Access<'_> {
    /// What a connection needs; an error says what is wrong in words.
    pub(crate) fn options(&self) -> Result<MqttOptions, String> {
        let (host, port, encrypted) = address(self.url)?;
        let by_chance = || {
            let now = jiff::Timestamp::now().as_nanosecond();
            format!("headwater-{}-{now:x}", std::process::id())
        };
        let id = self.client_id.map_or_else(by_chance, str::to_owned);
        let mut options = MqttOptions::new(id, (host, port));
        options.set_keep_alive(KEEP_ALIVE_S);
        options.set_connect_timeout(CONNECT_TIMEOUT);
        options.set_max_packet_size(Some(LONGEST_MESSAGE));
        options.set_session_mode(match self.client_id {
            Some(_) => SessionMode::Persistent,
            None => SessionMode::Clean,
        });
        // A program that was restarted knows nothing of messages on their way; the broker does.
        options.set_broker_session_resume_policy(BrokerSessionResumePolicy::AllowBrokerOnly);
        // Without it a small message waits for the acknowledgement of the one before.
        let mut network = NetworkOptions::default();
        network.set_tcp_nodelay(true);
        options.set_network_options(network);
        if let Some(variable) = self.password_env {
            if !encrypted {
                return Err("a password is sent over an encrypted connection only: mqtts://".into());
            }
            let password = std::env::var(variable)
                .map_err(|_| format!("the environment variable {variable} holds no password"))?;
            options.set_credentials(self.user.unwrap_or_default(), password);
        } else if let Some(user) = self.user {
            options.set_username(user);
        }
        if encrypted {
            options.set_transport(Transport::Tls(self.protection()?));
        }
        Ok(options)
    }

    fn protection(&self) -> Result<TlsConfiguration, String> {
        let read = |path: &Path| fs::read(path).map_err(|why| format!("{}: {why}", path.display()));
        let Some(ca) = self.ca else {
            if self.identity.is_some() {
                return Err("a certificate of our own needs `ca`, the broker's authority".into());
            }
            return TlsConfiguration::try_default_rustls().map_err(|why| why.to_string());
        };
        let client_auth = match self.identity {
            Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
            None => None,
        };
        Ok(TlsConfiguration::Simple { ca: read(ca)?, alpn: None, client_auth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_usual_ports_and_anything_else_is_refused() {
        assert_eq!(address("mqtt://plant"), Ok(("plant", 1883, false)));
        assert_eq!(address("mqtts://plant/"), Ok(("plant", 8883, true)));
        assert_eq!(address("mqtt://127.0.0.1:18830"), Ok(("127.0.0.1", 18830, false)));
        for wrong in ["plant", "http://plant", "mqtt://", "mqtt://plant:x", "mqtt://:1883"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_needs_an_encrypted_connection() {
        let access =
            Access { url: "mqtt://plant", password_env: Some("HOME"), ..Access::default() };
        let why = access.options().expect_err("open");
        assert!(why.contains("encrypted"), "{why}");
    }
}
