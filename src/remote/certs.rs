//! Who is who on the broker: a small certificate authority, one certificate each for the broker, the server
//! and every site, and the broker's access list.
//!
//! ```text
//! DIR/ca/       ca.crt ca.key          the authority: stays where it was made
//! DIR/broker/   ca.crt broker.crt broker.key acl mosquitto.conf
//! DIR/server/   ca.crt server.crt server.key
//! DIR/P1/       ca.crt P1.crt P1.key   one folder for each site
//! ```
//!
//! The name in a certificate is the broker's user name and its client identifier. The access list lets
//! that user write to its own topics only. So a site cannot speak for another one, nor push it off the
//! broker.
//!
//! Guarantees:
//! - A key can be read by its owner only (mode 0600), and is never replaced.
//! - Made again for a session with one client more, everything that is there stays as it is; the new
//!   client gets a certificate, and the access list is written again.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use thiserror::Error;

use super::envelope::{MOST_BYTES, Topics, level};

/// The server's name in its certificate and in topics.
pub(crate) const SERVER: &str = "server";
const BROKER: &str = "broker";
const AUTHORITY: &str = "ca";
/// How long certificates are good for.
const YEARS_OF_AUTHORITY: i16 = 10;
const YEARS: i16 = 2;

/// Why certificates cannot be made.
#[derive(Debug, Error)]
pub(crate) enum CertsError {
    #[error("{}: {why}", path.display())]
    File { path: PathBuf, why: std::io::Error },
    #[error("{}: {why}", path.display())]
    Damaged { path: PathBuf, why: rcgen::Error },
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error("{0:?} is no name of a machine or an address")]
    Host(String),
    #[error("the clients {0:?} and {1:?} have the same topics: rename one")]
    Same(String, String),
    #[error("a client cannot be called {0:?}: the federation uses this name itself")]
    Reserved(String),
}

/// What to make certificates for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// The name of the session.
    pub(crate) session: &'a str,
    /// The names of its clients.
    pub(crate) clients: &'a [String],
    /// Names and addresses under which the broker is reached.
    pub(crate) hosts: &'a [String],
    /// Where the broker's folder will be on the broker's machine; the folder as made here when absent.
    pub(crate) installed: Option<&'a Path>,
    pub(crate) port: u16,
}

/// What was made, and what was there already.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) new: Vec<String>,
    pub(crate) kept: Vec<String>,
}

/// Makes what is missing in `folder`.
pub(crate) fn make(plan: &Plan<'_>, folder: &Path) -> Result<Made, CertsError> {
    check_names(plan.clients)?;
    let hosts = plan.hosts.iter().map(|host| name_of(host)).collect::<Result<Vec<_>, _>>()?;
    let authority = Authority::open(plan.session, &folder.join(AUTHORITY))?;
    let mut made = Made::default();
    let parties = [BROKER.to_owned(), SERVER.to_owned()];
    for name in parties.into_iter().chain(plan.clients.iter().map(|client| level(client))) {
        let own = folder.join(&name);
        create(&own)?;
        write(&own.join("ca.crt"), authority.pem.as_bytes())?;
        let (certificate, key) = (own.join(format!("{name}.crt")), own.join(format!("{name}.key")));
        if certificate.exists() && key.exists() {
            made.kept.push(name);
            continue;
        }
        let names = if name == BROKER { &hosts[..] } else { &[] };
        let (of_party, secret) = authority.certify(&name, names)?;
        write_secret(&key, &secret)?;
        write(&certificate, of_party.as_bytes())?;
        made.new.push(name);
    }
    let broker = folder.join(BROKER);
    write(&broker.join("acl"), access_list(plan).as_bytes())?;
    let lies_in = match plan.installed {
        Some(path) => path.to_owned(),
        None => fs::canonicalize(&broker).map_err(at(&broker))?,
    };
    write(&broker.join("mosquitto.conf"), settings(&lies_in, plan.port).as_bytes())?;
    Ok(made)
}

/// Every client needs topics, and a certificate, of its own.
fn check_names(clients: &[String]) -> Result<(), CertsError> {
    for (m, client) in clients.iter().enumerate() {
        let name = level(client);
        if [SERVER, BROKER, AUTHORITY, "", ".", ".."].contains(&&*name) {
            return Err(CertsError::Reserved(client.clone()));
        }
        if let Some(other) = clients[..m].iter().find(|other| level(other) == name) {
            return Err(CertsError::Same(other.clone(), client.clone()));
        }
    }
    Ok(())
}

/// What the broker lets each user do.
fn access_list(plan: &Plan<'_>) -> String {
    let topics = Topics::of(plan.session);
    let mut list = format!(
        "# Access list of the federation {:?}, made by `headwater certs`.\n\
         # The user is the name in the certificate. What is not listed is refused.\n",
        plan.session
    );
    let mut user = |name: &str, lines: &[(&str, String)]| {
        list.extend(["\nuser ", name, "\n"]);
        for (right, topic) in lines {
            list.extend(["topic ", right, " ", topic, "\n"]);
        }
    };
    // `+` stands for any one level, here the site.
    user(
        SERVER,
        &[
            ("write", topics.down_of_all()),
            ("read", topics.up_of_all()),
            ("read", topics.state_of_all()),
            ("write", topics.state(SERVER)),
        ],
    );
    for client in plan.clients {
        user(
            &level(client),
            &[
                ("write", topics.up(client)),
                ("write", topics.state(client)),
                ("read", topics.down(client)),
                ("read", topics.state(SERVER)),
            ],
        );
    }
    list
}

fn settings(folder: &Path, port: u16) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    let (most, [ca, certificate, key, acl]) =
        (MOST_BYTES + 4096, ["ca.crt", "broker.crt", "broker.key", "acl"].map(file));
    format!(
        "# Settings of mosquitto 2 for a federation, made by `headwater certs`.\n\
         # Start it with: mosquitto -c {}\n\
         # The user that mosquitto runs as must own {key}.\n\
         listener {port}\n\
         cafile {ca}\n\
         certfile {certificate}\n\
         keyfile {key}\n\
         tls_version tlsv1.2\n\
         # Nobody without a certificate of this authority; the name in it is the user.\n\
         require_certificate true\n\
         use_identity_as_username true\n\
         # A user has one connection: nobody can take the name of another client's.\n\
         use_username_as_clientid true\n\
         allow_anonymous false\n\
         acl_file {acl}\n\
         # Without it a round trip takes 88 ms instead of 0.15 ms.\n\
         set_tcp_nodelay true\n\
         max_packet_size {most}\n\
         # A server with many sites has many messages on their way.\n\
         max_inflight_messages 1000\n\
         max_queued_messages 10000\n\
         # Sites keep what they have released; the broker keeps nothing on disk.\n\
         persistence false\n",
        file("mosquitto.conf")
    )
}

/// The authority, read or made.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn open(session: &str, folder: &Path) -> Result<Self, CertsError> {
        create(folder)?;
        let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
        let mut params = CertificateParams::default();
        params.distinguished_name = called(&format!("Headwater {session}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        lasts(&mut params, YEARS_OF_AUTHORITY);
        if certificate.exists() {
            let read = |path: &PathBuf| fs::read_to_string(path).map_err(at(path));
            let (pem, secret) = (read(&certificate)?, read(&key)?);
            let damaged = |why| CertsError::Damaged { path: key.clone(), why };
            let pair = KeyPair::from_pem(&secret).map_err(damaged)?;
            return Ok(Self { pem, issuer: Issuer::new(params, pair) });
        }
        let pair = KeyPair::generate()?;
        write_secret(&key, &pair.serialize_pem())?;
        let pem = params.self_signed(&pair)?.pem();
        write(&certificate, pem.as_bytes())?;
        Ok(Self { pem, issuer: Issuer::new(params, pair) })
    }

    /// A certificate and its key, both in PEM.
    fn certify(&self, name: &str, hosts: &[SanType]) -> Result<(String, String), CertsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = called(name);
        params.subject_alt_names = hosts.to_vec();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![if name == BROKER {
            ExtendedKeyUsagePurpose::ServerAuth
        } else {
            ExtendedKeyUsagePurpose::ClientAuth
        }];
        lasts(&mut params, YEARS);
        let pair = KeyPair::generate()?;
        let certificate = params.signed_by(&pair, &self.issuer)?;
        Ok((certificate.pem(), pair.serialize_pem()))
    }
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// From yesterday, so that a clock that is slow does not refuse it.
fn lasts(params: &mut CertificateParams, years: i16) {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let yesterday = today.yesterday().unwrap_or(today);
    let end = Date::new(today.year() + years, today.month(), today.day().min(28)).unwrap_or(today);
    let day = |date: Date| {
        date_time_ymd(
            i32::from(date.year()),
            date.month().unsigned_abs(),
            date.day().unsigned_abs(),
        )
    };
    (params.not_before, params.not_after) = (day(yesterday), day(end));
}

fn name_of(host: &str) -> Result<SanType, CertsError> {
    let wrong = || CertsError::Host(host.to_owned());
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if host.is_empty() || !host.chars().all(is_name) {
        return Err(wrong());
    }
    Ok(SanType::DnsName(host.try_into().map_err(|_| wrong())?))
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> CertsError {
    let path = path.to_owned();
    move |why| CertsError::File { path, why }
}

fn create(folder: &Path) -> Result<(), CertsError> {
    fs::create_dir_all(folder).map_err(at(folder))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CertsError> {
    fs::write(path, bytes).map_err(at(path))
}

/// A file that its owner alone can read from the moment it exists. A key that is there is not replaced.
fn write_secret(path: &Path, text: &str) -> Result<(), CertsError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(at(path))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan<'a>(clients: &'a [String], hosts: &'a [String]) -> Plan<'a> {
        Plan { session: "short", clients, hosts, installed: None, port: 8883 }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn made_again_for_one_client_more_all_keys_stay_and_the_new_one_gets_its_own() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let (hosts, two) = (names(&["127.0.0.1", "plant.example"]), names(&["P1", "P/2"]));
        let made = make(&plan(&two, &hosts), folder.path()).expect("made");
        assert_eq!(made.new, names(&["broker", "server", "P1", "P_2"]));
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
        let before = ["ca/ca.key", "ca/ca.crt", "P1/P1.key", "P1/P1.crt"].map(read);
        let three = names(&["P1", "P/2", "P3"]);
        let made = make(&plan(&three, &hosts), folder.path()).expect("made again");
        assert_eq!(made.new, names(&["P3"]));
        assert_eq!(made.kept, names(&["broker", "server", "P1", "P_2"]));
        assert_eq!(before, ["ca/ca.key", "ca/ca.crt", "P1/P1.key", "P1/P1.crt"].map(read));
        assert!(read("broker/acl").contains("user P3\ntopic write headwater/1/short/P3/up\n"));
        assert_eq!(read("P3/ca.crt"), read("ca/ca.crt"));
    }

    #[cfg(unix)]
    #[test]
    fn a_key_can_be_read_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder for the test");
        let clients = names(&["P1"]);
        make(&plan(&clients, &names(&["localhost"])), folder.path()).expect("made");
        for key in ["ca/ca.key", "broker/broker.key", "server/server.key", "P1/P1.key"] {
            let mode = fs::metadata(folder.path().join(key)).expect(key).permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{key}");
        }
    }

    #[test]
    fn names_that_would_share_topics_or_folders_are_refused_in_words() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let hosts = names(&["localhost"]);
        for (clients, expected) in [
            (names(&["a/b", "a_b"]), "the same topics"),
            (names(&["server"]), "cannot be called"),
            (names(&["ca"]), "cannot be called"),
            (names(&[".."]), "cannot be called"),
        ] {
            let why = make(&plan(&clients, &hosts), folder.path()).expect_err("refused");
            assert!(why.to_string().contains(expected), "{why}");
        }
        let (clients, wrong) = (names(&["P1"]), names(&["a b"]));
        assert!(matches!(make(&plan(&clients, &wrong), folder.path()), Err(CertsError::Host(_))));
    }
}
