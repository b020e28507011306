//! This program's own key, and which certificates of servers are trusted.
//!
//! A certificate is trusted once a user has accepted it by its thumbprint, and never before: the
//! client library would accept any. Until then it lies in the folder `rejected`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use opcua::crypto::{CertificateStore, X509, X509Data};

use crate::session::OpcUaSecurity;

/// The name that this program has for servers.
pub(super) const APPLICATION: &str = "urn:headwater:client";
pub(super) const CERTIFICATE: &str = "own/cert.der";
pub(super) const KEY: &str = "private/private.pem";
const TRUSTED: &str = "trusted";
const REJECTED: &str = "rejected";

const KEY_BITS: u32 = 2048;
/// Plants run for years.
const LIFE_DAYS: u32 = 3650;
/// How long before its end a certificate is mentioned.
const WARN: Duration = Duration::from_hours(30 * 24);

/// Makes the folders, and the key where the connection needs one and there is none.
pub(super) fn prepare(pki: &Path, url: &str, security: OpcUaSecurity) -> Result<(), String> {
    if security == OpcUaSecurity::Open {
        return Ok(());
    }
    own_certificate(pki, "Headwater", APPLICATION)?;
    let certificate = CertificateStore::read_cert(&pki.join(CERTIFICATE))?;
    if let Ok(end) = certificate.not_after() {
        let left = Timestamp::from_second(end.timestamp())
            .map(|end| end.duration_since(Timestamp::now()))
            .unwrap_or_default();
        if left.is_negative() || left.unsigned_abs() < WARN {
            tracing::warn!(
                "{url}: the own certificate in {} ends on {end}: remove it, a new one is made; the \
                 server must accept that",
                pki.display()
            );
        }
    }
    Ok(())
}

/// The own certificate of a folder; it is made where there is none. The key can be read by its owner
/// only.
pub(crate) fn own_certificate(pki: &Path, name: &str, uri: &str) -> Result<PathBuf, String> {
    for folder in ["own", "private", TRUSTED, REJECTED] {
        let folder = pki.join(folder);
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    let (certificate, key) = (pki.join(CERTIFICATE), pki.join(KEY));
    if CertificateStore::read_cert(&certificate).is_ok()
        && CertificateStore::read_pkey(&key).is_ok()
    {
        return Ok(certificate);
    }
    let addresses = Some(vec!["127.0.0.1".to_owned()]);
    let data = X509Data {
        key_size: KEY_BITS,
        common_name: name.into(),
        organization: "Headwater".into(),
        organizational_unit: "Headwater".into(),
        country: "EU".into(),
        state: "-".into(),
        alt_host_names: X509Data::alt_host_names(uri, addresses, true, true, false),
        certificate_duration_days: LIFE_DAYS,
    };
    // The library writes a key that every user can read: it is made in memory and written here.
    let (made, secret) = X509::cert_and_pkey(&data)?;
    let pem = secret.to_der().map_err(|why| why.to_string())?;
    // Lines end as on this platform; the library ends them so that other tools cannot read them.
    #[expect(
        clippy::default_trait_access,
        reason = "the type is of a crate that is not ours to name"
    )]
    let pem = pem.to_pem("PRIVATE KEY", Default::default()).map_err(|why| why.to_string())?;
    write_key(&key, pem.as_bytes()).map_err(|why| format!("{}: {why}", key.display()))?;
    let der = made.to_der().map_err(|why| why.to_string())?;
    fs::write(&certificate, der).map_err(|why| format!("{}: {why}", certificate.display()))?;
    Ok(certificate)
}

pub(crate) fn thumbprint(certificate: &Path) -> Result<String, String> {
    Ok(CertificateStore::read_cert(certificate)?.thumbprint().as_hex_string())
}

fn write_key(path: &Path, pem: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    if path.exists() {
        fs::remove_file(path)?;
    }
    options.open(path)?.write_all(pem)
}

/// Whether the certificate was accepted. If not, it is kept so that it can be, and the error says how.
pub(super) fn check(pki: &Path, certificate: &X509) -> Result<(), String> {
    let name = CertificateStore::cert_file_name(certificate);
    let der = certificate.to_der().map_err(|why| why.to_string())?;
    let rejected = pki.join(REJECTED).join(&name);
    if fs::read(pki.join(TRUSTED).join(&name)).is_ok_and(|known| known == der) {
        return Ok(());
    }
    fs::write(&rejected, der).map_err(|why| format!("{}: {why}", rejected.display()))?;
    let thumbprint = certificate.thumbprint().as_hex_string();
    Err(format!(
        "the certificate of the server is not trusted yet. Its thumbprint (SHA-1) is {thumbprint}. \
         Compare it with the one that the server shows; if it is the same, add `--trust {thumbprint}` \
         once"
    ))
}

/// Accepts the certificate with this thumbprint, which a server has shown before. Its name is given.
pub(super) fn trust(pki: &Path, thumbprint: &str) -> Result<String, String> {
    let plain = |text: &str| text.replace([':', ' '], "").to_lowercase();
    let wanted = plain(thumbprint);
    let mut shown = Vec::new();
    for folder in [TRUSTED, REJECTED] {
        for entry in fs::read_dir(pki.join(folder)).into_iter().flatten().flatten() {
            let Ok(certificate) = CertificateStore::read_cert(&entry.path()) else { continue };
            let found = plain(&certificate.thumbprint().as_hex_string());
            let name = certificate.subject_name();
            if found != wanted {
                shown.push(found);
                continue;
            }
            if folder == REJECTED {
                let to = pki.join(TRUSTED).join(entry.file_name());
                fs::rename(entry.path(), &to).map_err(|why| format!("{}: {why}", to.display()))?;
            }
            return Ok(name);
        }
    }
    let shown = match &shown[..] {
        [] => "no server has shown a certificate yet: run once without --trust".to_owned(),
        shown => format!("these were shown: {}", shown.join(", ")),
    };
    Err(format!("no certificate has the thumbprint {thumbprint}; {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(folder: &Path) -> X509 {
        let path = own_certificate(folder, "Server", "urn:test:server").expect("made");
        CertificateStore::read_cert(&path).expect("readable")
    }

    #[test]
    fn a_certificate_is_trusted_once_its_thumbprint_was_accepted_and_another_is_not() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let pki = folder.path().join("pki");
        own_certificate(&pki, "Headwater", APPLICATION).expect("made");
        let first = certificate(&folder.path().join("first"));
        let second = certificate(&folder.path().join("second"));
        let thumbprint = first.thumbprint().as_hex_string();
        assert!(trust(&pki, &thumbprint).is_err(), "nobody has shown it");
        let why = check(&pki, &first).expect_err("unknown");
        assert!(why.contains(&thumbprint), "{why}");
        let why = trust(&pki, "00ff").expect_err("another thumbprint");
        assert!(why.contains(&thumbprint), "{why}");
        assert!(check(&pki, &first).is_err(), "shown twice, still not accepted");
        trust(&pki, &thumbprint.to_uppercase()).expect("accepted");
        check(&pki, &first).expect("trusted");
        check(&pki, &second).expect_err("the same server with another key");
        check(&pki, &first).expect("still trusted");
    }

    #[cfg(unix)]
    #[test]
    fn the_own_key_can_be_read_by_its_owner_only_and_is_made_once() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder for the test");
        let first = certificate(folder.path());
        let key = folder.path().join(KEY);
        assert_eq!(fs::metadata(&key).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(&key).expect("text").contains('\r'));
        assert_eq!(certificate(folder.path()).thumbprint(), first.thumbprint());
    }
}
