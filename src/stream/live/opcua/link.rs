//! A session with a server: which endpoint is taken, who we are, and why we are refused.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use opcua::client::{
    Client, ClientBuilder, IdentityToken, Session, SessionConnectMode, SessionPollResult,
};
use opcua::crypto::{SecurityPolicy, X509};
use opcua::types::{EndpointDescription, MessageSecurityMode, StatusCode, UserTokenType};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Failure, Plan, trust};
use crate::session::OpcUaSecurity;

/// How long a server may take to say which endpoints it has. Connecting has no limit of its own.
const DISCOVERY: Duration = Duration::from_secs(10);
/// How long the first session may take.
const SESSION: Duration = Duration::from_secs(15);
const REQUEST: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// How long a server keeps a session whose connection is cut, in milliseconds.
const SESSION_TIMEOUT: u32 = 30_000;
/// Attempts to reach a session again: they last as long as the server keeps it.
const RETRIES: i32 = 20;
/// Room for a page of history.
const MOST_BYTES: usize = 64 << 20;
const MOST_CHUNKS: usize = 4096;
const MOST_VALUES: usize = 1 << 20;

/// What becomes of a connection.
#[derive(Debug)]
pub(super) enum Change {
    Lost(StatusCode),
    /// The session goes on.
    Back,
    /// The server knows nothing of the session before: nor of its subscription.
    New,
    /// The library gives up.
    Over(StatusCode),
}

pub(super) struct Link {
    pub(super) session: Arc<Session>,
    pub(super) changes: mpsc::UnboundedReceiver<Change>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // Asking a server to disconnect never returns while it is away.
        self.task.abort();
    }
}

fn client(plan: &Plan, retries: i32) -> Result<Client, Failure> {
    ClientBuilder::new()
        .application_name("Headwater")
        .application_uri(trust::APPLICATION)
        .product_uri("urn:headwater")
        .pki_dir(&plan.pki)
        .certificate_path(trust::CERTIFICATE)
        .private_key_path(trust::KEY)
        .create_sample_keypair(false)
        .trust_server_certs(false)
        .verify_server_certs(true)
        .session_retry_limit(retries)
        .session_retry_initial(Duration::from_millis(500))
        .session_retry_max(Duration::from_secs(2))
        .keep_alive_interval(KEEP_ALIVE)
        .max_failed_keep_alive_count(2)
        .request_timeout(REQUEST)
        .session_timeout(SESSION_TIMEOUT)
        // The library would hide what fails, and use numbers of namespaces that may have changed.
        .recreate_subscriptions(false)
        .max_message_size(MOST_BYTES)
        .max_chunk_count(MOST_CHUNKS)
        .max_array_length(MOST_VALUES)
        .client()
        .map_err(|why| Failure::Refused(why.join(", ")))
}

/// A session with the server, once it is there.
pub(super) async fn connect(plan: &Plan) -> Result<Link, Failure> {
    let url = plan.source.url.as_str();
    // Discovery uses the same number of retries: none, so that a wrong address is reported at once.
    let discovery = client(plan, 0)?;
    let endpoints = timeout(DISCOVERY, discovery.get_server_endpoints_from_url(url)).await;
    let endpoints = endpoints
        .map_err(|_| Failure::Lost(format!("no answer within {} s", DISCOVERY.as_secs())))?
        .map_err(|why| Failure::Lost(plain(&why.to_string())))?;
    let mut endpoint = choose(plan, &endpoints)?;
    if plan.source.security != OpcUaSecurity::Open {
        let certificate = X509::from_byte_string(&endpoint.server_certificate)
            .map_err(|why| Failure::Refused(format!("the server's certificate: {why}")))?;
        trust::check(&plan.pki, &certificate).map_err(Failure::Refused)?;
    }
    // The address that a server gives may not be reachable from here.
    endpoint.endpoint_url = url.into();
    let identity = match (&plan.source.user, &plan.password) {
        (Some(user), Some(password)) => IdentityToken::new_user_name(user, password.clone()),
        _ => IdentityToken::Anonymous,
    };
    let mut client = client(plan, RETRIES)?;
    let (session, events) = client
        .connect_to_endpoint_directly(endpoint, identity)
        .map_err(|why| Failure::Refused(why.to_string()))?;
    let (sender, mut changes) = mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        let mut events = pin!(events.enter());
        let mut is_first = true;
        while let Some(event) = events.next().await {
            let change = match event {
                // The first session is asked for once: a refusal is reported.
                Ok(SessionPollResult::ReconnectFailed(why)) if is_first => Change::Over(why),
                Ok(
                    SessionPollResult::ConnectionLost(why)
                    | SessionPollResult::ReconnectFailed(why),
                ) => Change::Lost(why),
                Ok(SessionPollResult::Reconnected(SessionConnectMode::NewSession(_))) => {
                    Change::New
                }
                Ok(SessionPollResult::Reconnected(_)) => Change::Back,
                Ok(_) => continue,
                Err(why) => Change::Over(why),
            };
            is_first &= !matches!(change, Change::New);
            if sender.send(change).is_err() {
                return;
            }
        }
    });
    let first = timeout(SESSION, changes.recv()).await;
    let link = Link { session, changes, task };
    match first {
        Err(_) => Err(Failure::Lost(format!("no session within {} s", SESSION.as_secs()))),
        // The task ended: by a panic of the library, as a rule.
        Ok(None) => Err(Failure::Lost("the client library gave up".into())),
        Ok(Some(Change::New | Change::Back)) => Ok(link),
        Ok(Some(Change::Lost(why) | Change::Over(why))) => Err(refusal(plan, why)),
    }
}

/// The endpoint that the session asks for, or what the server offers instead.
fn choose(plan: &Plan, endpoints: &[EndpointDescription]) -> Result<EndpointDescription, Failure> {
    let (policy, mode) = match plan.source.security {
        OpcUaSecurity::Open => (SecurityPolicy::None, MessageSecurityMode::None),
        OpcUaSecurity::Basic256Sha256 => {
            (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt)
        }
        OpcUaSecurity::Aes128Sha256RsaOaep => {
            (SecurityPolicy::Aes128Sha256RsaOaep, MessageSecurityMode::SignAndEncrypt)
        }
        OpcUaSecurity::Aes256Sha256RsaPss => {
            (SecurityPolicy::Aes256Sha256RsaPss, MessageSecurityMode::SignAndEncrypt)
        }
    };
    let fits = |endpoint: &&EndpointDescription| {
        endpoint.security_policy_uri.as_ref() == policy.to_uri() && endpoint.security_mode == mode
    };
    let Some(endpoint) = endpoints.iter().find(fits) else {
        let name = |endpoint: &EndpointDescription| {
            let uri: &str = endpoint.security_policy_uri.as_ref();
            let policy = uri.rsplit('#').next().unwrap_or(uri).replace('_', "");
            format!("{policy} {:?}", endpoint.security_mode)
        };
        let mut offered: Vec<String> = endpoints.iter().map(name).collect();
        offered.sort();
        offered.dedup();
        return Err(Failure::Refused(format!(
            "the server does not offer the security {:?}; it offers {}",
            plan.source.security,
            offered.join(", ")
        )));
    };
    let wanted =
        if plan.source.user.is_some() { UserTokenType::UserName } else { UserTokenType::Anonymous };
    let tokens = endpoint.user_identity_tokens.as_deref().unwrap_or_default();
    if !tokens.is_empty() && !tokens.iter().any(|token| token.token_type == wanted) {
        return Err(Failure::Refused(match wanted {
            UserTokenType::Anonymous => {
                "the server asks who is there: the session needs `user` and `password_env`".into()
            }
            _ => "the server takes no user with a password here".into(),
        }));
    }
    Ok(endpoint.clone())
}

/// Why no session was given, in words.
fn refusal(plan: &Plan, why: StatusCode) -> Failure {
    let user = plan.source.user.as_deref().unwrap_or("an anonymous user");
    match why {
        StatusCode::BadIdentityTokenRejected
        | StatusCode::BadIdentityTokenInvalid
        | StatusCode::BadUserAccessDenied => Failure::Refused(format!(
            "the server does not accept {user}: wrong user or password ({why})"
        )),
        StatusCode::BadCertificateUntrusted | StatusCode::BadSecurityChecksFailed => {
            Failure::Refused(format!(
                "a certificate is refused ({why}): either the server does not trust the one in {}, or \
                 its own does not fit its name or is over",
                plan.pki.join("own").display()
            ))
        }
        StatusCode::BadCertificateHostNameInvalid => Failure::Refused(format!(
            "the certificate of the server is for another host than {}",
            plan.source.url
        )),
        StatusCode::BadCertificateTimeInvalid => {
            Failure::Refused("the certificate of the server is over, or a clock is wrong".into())
        }
        why => Failure::Lost(why.to_string()),
    }
}

/// A failure to reach a server without the library's own words around it.
fn plain(why: &str) -> String {
    for (sign, words) in [
        ("Connection refused", "connection refused"),
        ("BadTcpEndpointUrlInvalid", "no server at this address (BadTcpEndpointUrlInvalid)"),
    ] {
        if why.contains(sign) {
            return words.into();
        }
    }
    why.to_owned()
}
