//! The built-in plant as an OPC UA server: its tags live, and what is over as their history.
//!
//! The day begins once a client subscribes to a tag: a server cannot hold values back for a reader that comes
//! later. With `HEADWATER_OPCUA_USER` and `HEADWATER_OPCUA_PASSWORD` only that user is let in, and over
//! an encrypted connection only. Certificates of readers are not checked: it is a simulated plant.

use std::collections::HashMap;
use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use opcua::crypto::SecurityPolicy;
use opcua::nodes::{AccessLevel, VariableBuilder};
use opcua::server::address_space::{AddressSpace, add_namespaces};
use opcua::server::diagnostics::NamespaceMetadata;
use opcua::server::node_manager::memory::{InMemoryNodeManagerBuilder, InMemoryNodeManagerImpl};
use opcua::server::node_manager::{HistoryNode, ParsedReadValueId, RequestContext, ServerContext};
use opcua::server::{
    ANONYMOUS_USER_TOKEN_ID, ContinuationPoint, CreateMonitoredItem, ServerBuilder, ServerEndpoint,
    ServerHandle, ServerUserToken,
};
use opcua::types::{
    AttributeId, DataTypeId, DataValue, DateTime, HistoryData, MessageSecurityMode, NodeId,
    ObjectId, ReadRawModifiedDetails, StatusCode, TimestampsToReturn, Variant,
};

use super::live::Sink;
use super::{MakeError, is_wanted};
use crate::base::folders;
use crate::base::notice::print_notice;
use crate::stream::live::opcua::{date_time, own_certificate, thumbprint};
use crate::stream::plant::{PlantRow, Tag};

/// The namespace of the tags.
const NAMESPACE: &str = "urn:headwater:plant";
const APPLICATION: &str = "urn:headwater:plant:server";
/// Values of one tag that a reader of history gets at once.
const PAGE: usize = 2000;
/// Values of a tag that are kept until they are fetched.
const QUEUE: usize = 1000;
const NAP: Duration = Duration::from_millis(50);

/// The plant as far as it has come.
#[derive(Default)]
struct Past {
    times: Vec<DateTime>,
    rows: Vec<PlantRow>,
}

#[derive(Default)]
struct Plant {
    past: RwLock<Past>,
    /// A client has subscribed to a tag.
    is_watched: AtomicBool,
}

impl Plant {
    fn add(&self, time: Timestamp, row: &PlantRow) {
        let mut past = self.past.write().unwrap_or_else(PoisonError::into_inner);
        past.times.push(date_time(time));
        past.rows.push(*row);
    }

    fn newest(&self, tag: usize) -> DataValue {
        let past = self.past.read().unwrap_or_else(PoisonError::into_inner);
        match (past.times.last(), past.rows.last()) {
            (Some(time), Some(row)) => value(row.0[tag], *time),
            _ => DataValue { status: Some(StatusCode::BadNoData), ..DataValue::default() },
        }
    }
}

fn value(value: f64, time: DateTime) -> DataValue {
    DataValue {
        value: Some(Variant::Double(value)),
        status: Some(StatusCode::Good),
        source_timestamp: Some(time),
        server_timestamp: Some(DateTime::now()),
        ..DataValue::default()
    }
}

/// What the server knows of its nodes.
struct Nodes {
    namespace: u16,
    tags: HashMap<NodeId, usize>,
    plant: Arc<Plant>,
}

impl Nodes {
    fn new(context: &ServerContext, space: &mut AddressSpace, plant: Arc<Plant>) -> Self {
        let namespace = add_namespaces(context, space, &[NAMESPACE])[0];
        let mut tags = HashMap::new();
        for (place, tag) in Tag::ALL.iter().enumerate() {
            let (process, _) = tag.name().split_once('_').unwrap_or((tag.name(), ""));
            let folder = NodeId::new(namespace, process);
            if space.find(&folder).is_none() {
                space.add_folder(&folder, process, process, &ObjectId::ObjectsFolder.into());
            }
            let node = node(namespace, *tag);
            let access = AccessLevel::CURRENT_READ | AccessLevel::HISTORY_READ;
            VariableBuilder::new(&node, tag.name(), tag.name())
                .description(tag.unit())
                .data_type(DataTypeId::Double)
                .value(0.0)
                .historizing(true)
                .access_level(access)
                .user_access_level(access)
                .organized_by(folder)
                .insert(space);
            tags.insert(node, place);
        }
        Self { namespace, tags, plant }
    }

    fn read_past(&self, node: &mut HistoryNode, details: &ReadRawModifiedDetails) {
        let Some(tag) = self.tags.get(node.node_id()).copied() else {
            node.set_status(StatusCode::BadHistoryOperationUnsupported);
            return;
        };
        if details.start_time.is_null() || details.end_time.is_null() {
            node.set_status(StatusCode::BadHistoryOperationUnsupported);
            return;
        }
        let past = self.plant.past.read().unwrap_or_else(PoisonError::into_inner);
        let at = |time: DateTime| past.times.partition_point(|there| *there < time);
        let end = at(details.end_time);
        let begin = match node.continuation_point().map(ContinuationPoint::get::<usize>) {
            None => at(details.start_time),
            Some(Some(begin)) => *begin,
            Some(None) => {
                node.set_status(StatusCode::BadContinuationPointInvalid);
                return;
            }
        };
        let asked = match details.num_values_per_node as usize {
            0 => PAGE,
            asked => asked.min(PAGE),
        };
        let until = end.min(begin.saturating_add(asked)).max(begin);
        let values = (begin..until).map(|i| value(past.rows[i].0[tag], past.times[i])).collect();
        node.set_result(HistoryData { data_values: Some(values) });
        node.set_status(StatusCode::Good);
        if until < end {
            node.set_next_continuation_point(Some(ContinuationPoint::new(Box::new(until))));
        }
    }
}

fn node(namespace: u16, tag: Tag) -> NodeId {
    NodeId::new(namespace, tag.name())
}

#[expect(clippy::mut_mut, reason = "the trait of the library asks for it")]
#[async_trait]
impl InMemoryNodeManagerImpl for Nodes {
    async fn init(&self, _space: &mut AddressSpace, _context: ServerContext) {}

    fn name(&self) -> &'static str {
        "plant"
    }

    fn namespaces(&self) -> Vec<NamespaceMetadata> {
        vec![NamespaceMetadata {
            namespace_uri: NAMESPACE.into(),
            namespace_index: self.namespace,
            is_namespace_subset: Some(false),
            ..NamespaceMetadata::default()
        }]
    }

    async fn read_values(
        &self,
        context: &RequestContext,
        space: &opcua::sync::RwLock<AddressSpace>,
        nodes: &[&ParsedReadValueId],
        max_age: f64,
        timestamps: TimestampsToReturn,
    ) -> Vec<DataValue> {
        let space = space.read();
        let read = |node: &&ParsedReadValueId| match self.tags.get(&node.node_id) {
            Some(tag) => self.plant.newest(*tag),
            None => space.read(context, node, max_age, timestamps),
        };
        nodes.iter().map(read).collect()
    }

    async fn create_value_monitored_items(
        &self,
        context: &RequestContext,
        space: &opcua::sync::RwLock<AddressSpace>,
        items: &mut [&mut &mut CreateMonitoredItem],
    ) {
        let asked: Vec<&ParsedReadValueId> = items.iter().map(|i| i.item_to_monitor()).collect();
        let both = TimestampsToReturn::Both;
        let values = self.read_values(context, space, &asked, 0.0, both).await;
        for (item, value) in items.iter_mut().zip(values) {
            let is_tag = self.tags.contains_key(&item.item_to_monitor().node_id);
            item.set_initial_value(value);
            item.set_status(StatusCode::Good);
            if is_tag {
                self.plant.is_watched.store(true, Ordering::Relaxed);
            }
        }
    }

    async fn history_read_raw_modified(
        &self,
        _context: &RequestContext,
        details: &ReadRawModifiedDetails,
        nodes: &mut [&mut &mut HistoryNode],
        _timestamps: TimestampsToReturn,
    ) -> Result<(), StatusCode> {
        for node in nodes {
            self.read_past(node, details);
        }
        Ok(())
    }
}

/// The server while it runs.
struct Running {
    handle: ServerHandle,
    thread: JoinHandle<Result<(), String>>,
    nodes: Vec<NodeId>,
}

/// Takes the rows of the plant: those before the first wait become history.
pub(crate) struct Server<'a> {
    listener: Option<TcpListener>,
    host: String,
    plant: Arc<Plant>,
    running: Option<Running>,
    stop: &'a AtomicBool,
}

impl<'a> Server<'a> {
    /// Takes the address of `url`; no client is answered before the history is complete.
    pub(crate) fn bind(url: &str, stop: &'a AtomicBool) -> Result<Self, MakeError> {
        let (host, port) = address(url).map_err(MakeError::Broker)?;
        let listener = TcpListener::bind((&host[..], port))
            .map_err(|why| MakeError::Broker(format!("{url}: {why}")))?;
        let plant = Arc::new(Plant::default());
        Ok(Self { listener: Some(listener), host, plant, running: None, stop })
    }

    fn serve(&mut self, listener: TcpListener) -> Result<Running, MakeError> {
        let port = listener.local_addr()?.port();
        let pki = folders::live(|name| env::var(name).ok())
            .ok_or_else(|| {
                MakeError::Broker("there is no folder for the key: set HEADWATER_LIVE".into())
            })?
            .join("plant-server")
            .join("pki");
        let (certificate, is_open) = (prepare(&pki)?, user().is_none());
        let plant = Arc::clone(&self.plant);
        let manager = InMemoryNodeManagerBuilder::new(
            move |context: ServerContext, space: &mut AddressSpace| {
                Nodes::new(&context, space, plant)
            },
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (server, handle) = {
            // The library begins tasks of its own while it is set up.
            let _within = runtime.enter();
            let builder = builder(&self.host, port, &pki).with_node_manager(manager);
            builder.build().map_err(MakeError::Broker)?
        };
        let namespace = handle
            .get_namespace_index(NAMESPACE)
            .ok_or_else(|| MakeError::Broker("the server has no namespace".into()))?;
        listener.set_nonblocking(true)?;
        let thread = thread::Builder::new().name("opcua-server".into()).spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener);
                server.run_with(listener.map_err(|why| why.to_string())?).await
            })
        })?;
        let host = &self.host;
        print_notice(format!("the plant is an OPC UA server at opc.tcp://{host}:{port}"));
        print_notice(format!("thumbprint of its certificate: {certificate}"));
        if !is_open {
            print_notice("it lets one user in, over an encrypted connection");
        }
        print_notice("its day begins when a client subscribes");
        let nodes = Tag::ALL.iter().map(|tag| node(namespace, *tag)).collect();
        Ok(Running { handle, thread, nodes })
    }
}

/// The user that is let in, where one is set.
fn user() -> Option<(String, String)> {
    let set = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
    set("HEADWATER_OPCUA_USER").zip(set("HEADWATER_OPCUA_PASSWORD"))
}

/// The server's key; gives the thumbprint of its certificate.
fn prepare(pki: &Path) -> Result<String, MakeError> {
    let path: PathBuf =
        own_certificate(pki, "Headwater plant", APPLICATION).map_err(MakeError::Broker)?;
    thumbprint(&path).map_err(MakeError::Broker)
}

fn builder(host: &str, port: u16, pki: &Path) -> ServerBuilder {
    let policies = [SecurityPolicy::Basic256Sha256, SecurityPolicy::Aes256Sha256RsaPss];
    let mut builder = ServerBuilder::new()
        .application_name("Headwater plant")
        .application_uri(APPLICATION)
        .product_uri("urn:headwater")
        .create_sample_keypair(false)
        .certificate_path("own/cert.der")
        .private_key_path("private/private.pem")
        .pki_dir(pki)
        .trust_client_certs(true)
        .host(host)
        .port(port)
        .discovery_urls(vec!["/".to_owned()])
        .diagnostics_enabled(false)
        .max_message_size(64 << 20)
        .max_chunk_count(4096)
        .max_array_length(1 << 20);
    builder.limits_mut().subscriptions.max_monitored_item_queue_size = QUEUE;
    let token = match user() {
        None => {
            let nobody = [ANONYMOUS_USER_TOKEN_ID.to_owned()];
            builder = builder.add_endpoint("open", ServerEndpoint::new_none("/", &nobody));
            ANONYMOUS_USER_TOKEN_ID.to_owned()
        }
        Some((user, password)) => {
            builder = builder.add_user_token("user", ServerUserToken::user_pass(user, password));
            "user".to_owned()
        }
    };
    for policy in policies {
        let mode = MessageSecurityMode::SignAndEncrypt;
        let endpoint = ServerEndpoint::new("/", policy, mode, std::slice::from_ref(&token));
        builder = builder.add_endpoint(policy.to_str(), endpoint);
    }
    builder
}

/// Host and port of `opc.tcp://HOST[:PORT][/]`.
pub(crate) fn address(url: &str) -> Result<(String, u16), String> {
    let expected = || format!("{url}: expected opc.tcp://HOST:PORT");
    let rest = url.strip_prefix("opc.tcp://").ok_or_else(expected)?.trim_end_matches('/');
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| expected())?),
        None => (rest, 4840),
    };
    if host.is_empty() || host.contains('/') {
        return Err(expected());
    }
    Ok((host.trim_matches(['[', ']']).to_owned(), port))
}

impl Sink for Server<'_> {
    fn take(&mut self, time: Timestamp, row: &PlantRow) -> Result<(), MakeError> {
        self.plant.add(time, row);
        if let Some(running) = &self.running {
            let time = date_time(time);
            let values = running.nodes.iter().zip(&row.0);
            running.handle.subscriptions().notify_data_change(
                values.map(|(node, number)| (value(*number, time), node, AttributeId::Value)),
            );
        }
        Ok(())
    }

    /// The first call accepts clients and waits until one subscribes.
    fn flush(&mut self) -> Result<(), MakeError> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        self.running = Some(self.serve(listener)?);
        while !self.plant.is_watched.load(Ordering::Relaxed) && !is_wanted(self.stop) {
            if self.running.as_ref().is_some_and(|running| running.thread.is_finished()) {
                break;
            }
            thread::sleep(NAP);
        }
        Ok(())
    }

    /// Stays until it is ended: a reader that was away finds the day in the history.
    fn end(&mut self) -> Result<(), MakeError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        if !is_wanted(self.stop) {
            print_notice("the day is over; its history can be read until ctrl-c");
        }
        while !is_wanted(self.stop) && !running.thread.is_finished() {
            thread::sleep(NAP);
        }
        running.handle.cancel();
        match running.thread.join() {
            Ok(ended) => ended.map_err(MakeError::Broker),
            Err(_) => Err(MakeError::Broker("the server broke down".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_the_usual_port_where_none_is_said() {
        assert_eq!(address("opc.tcp://127.0.0.1:4841/"), Ok(("127.0.0.1".into(), 4841)));
        assert_eq!(address("opc.tcp://plc"), Ok(("plc".into(), 4840)));
        assert_eq!(address("opc.tcp://[::1]:4840"), Ok(("::1".into(), 4840)));
        for wrong in ["http://plc", "opc.tcp://", "opc.tcp://plc:x", "opc.tcp://plc/path"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
