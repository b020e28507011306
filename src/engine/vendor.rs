//! Proprietary models: delivered with the program for the built-in plant, as a vendor would, or made
//! from the fit range of a session.
//!
//! Two per client, since no single one can do both jobs: the one that watches (in evidence mode the
//! residual form, whose states are practically raw data and never leave), and the paper's filter,
//! whose two states may be sent.

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::base::rng;
use crate::nn::checkpoint::{Checkpoint, CheckpointError, ClientModels, Fingerprint};
use crate::nn::train::{self, Job, Progress, TrainError, TrainReport};
use crate::nn::weights::ProprietaryWeights;
use crate::session::{ClientSettings, ModelSettings, Proprietary, Session, Source};
use crate::site::material::{Material, SensorView};
use crate::stream::Layout;

/// The built-in plant's models, made by `headwater train SESSION --proprietary`: for its physical
/// sensors (a session that names no clients), and for sensors and commands (`plant-normal`).
const PLANT: [&[u8]; 2] = [
    include_bytes!("../../assets/plant/proprietary.safetensors"),
    include_bytes!("../../assets/plant/with-commands.safetensors"),
];

/// Parts of a seed.
const WATCHING: u64 = 0x5741;
const SENDING: u64 = 0x5345;

/// The models of one client, frozen.
#[derive(Debug, Clone)]
pub(crate) struct ClientVendor {
    pub(crate) watching: ProprietaryWeights,
    /// The model whose states may be sent, where that is another one.
    pub(crate) sending: Option<ProprietaryWeights>,
    /// How the two were made, when they were made here: `None` for a delivered one.
    pub(crate) reports: Option<[Option<TrainReport>; 2]>,
}

impl ClientVendor {
    /// The model of the federation: the one whose states may be sent.
    pub(crate) fn federated(&self) -> &ProprietaryWeights {
        self.sending.as_ref().unwrap_or(&self.watching)
    }
}

/// Whether a kind's states are a summary that may be sent.
fn may_send(kind: Proprietary) -> bool {
    matches!(kind, Proprietary::Paper | Proprietary::OwnLag)
}

/// The header of a file of delivered models.
#[derive(Debug, Serialize, Deserialize)]
struct Delivery {
    /// Samples in a block mean.
    every: u32,
    sensors: Vec<Vec<String>>,
    /// The kind of model that watches.
    #[serde(default)]
    watching: Proprietary,
    /// The columns that each client's session names; the plant's own sensors when absent.
    #[serde(default)]
    columns: Vec<Vec<String>>,
}

/// The models delivered with the program, where `session` can use them: the built-in plant with the
/// clients that they were made for (known inputs may be added), at the models' own sampling and with
/// the customary sizes.
pub(crate) fn delivered(
    session: &Session,
    every: u32,
) -> Option<(Vec<SensorView>, Vec<ClientVendor>)> {
    let Source::Plant(_) = session.source else { return None };
    PLANT.iter().find_map(|file| delivery(file, session, every))
}

/// The models of one delivered file, where `session` can use them.
fn delivery(
    file: &[u8],
    session: &Session,
    every: u32,
) -> Option<(Vec<SensorView>, Vec<ClientVendor>)> {
    let checkpoint = Checkpoint::from_bytes(Path::new("delivered models"), file, None).ok()?;
    let delivery: Delivery = serde_json::from_str(&checkpoint.thresholds).ok()?;
    let usual = crate::stream::plant::default_clients();
    let clients = if session.clients.is_empty() { &usual } else { &session.clients };
    if delivery.every != every || !delivery.is_for(&session.model, clients, &usual) {
        return None;
    }
    let mut views = Vec::new();
    let mut models = Vec::new();
    for ((client, names), columns) in
        checkpoint.clients.into_iter().zip(delivery.sensors).zip(clients)
    {
        let used = names
            .iter()
            .map(|name| columns.columns.iter().position(|c| c == name))
            .collect::<Option<Vec<usize>>>()?;
        views.push(SensorView { used, names, mean: client.mean, std: client.std });
        models.push(ClientVendor {
            watching: client.proprietary,
            sending: client.sending,
            reports: None,
        });
    }
    (views.len() == clients.len()).then_some((views, models))
}

impl Delivery {
    /// Whether these models are what a session with such settings and clients would train.
    fn is_for(
        &self,
        model: &ModelSettings,
        clients: &[ClientSettings],
        usual: &[ClientSettings],
    ) -> bool {
        let defaults = ModelSettings::default();
        let same_networks = model.proprietary == self.watching
            && model.states == defaults.states
            && model.transition_width == defaults.transition_width
            && model.measurement_width == defaults.measurement_width
            && (model.q, model.r) == (defaults.q, defaults.r);
        // Known inputs stand beside a model, not in it.
        let same_clients = clients.len() == usual.len()
            && clients.iter().zip(usual).enumerate().all(|(m, (own, usual))| {
                let columns = self.columns.get(m).unwrap_or(&usual.columns);
                own.name == usual.name && own.columns == *columns && own.except.is_empty()
            });
        same_networks && same_clients
    }
}

/// Makes the models of every client from its fit range; `threads` clients at a time. The first client of
/// `material` stands at the place `first` of the federation.
///
/// A request to stop (`Break`) ends the training of every model with what it has learned so far.
pub(crate) fn train(
    (material, first): (&Material, usize),
    settings: &ModelSettings,
    seed: u64,
    threads: usize,
    on_progress: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<Vec<ClientVendor>, TrainError> {
    let kind = settings.proprietary;
    let mut jobs = Vec::new();
    for (m, client) in (first..).zip(&material.clients) {
        jobs.push(client.job(kind, settings, rng::child(seed ^ WATCHING, m as u64)));
        if !may_send(kind) {
            let seed = rng::child(seed ^ SENDING, m as u64);
            jobs.push(client.job(Proprietary::Paper, settings, seed));
        }
    }
    let per_client = jobs.len() / material.clients.len().max(1);
    let mut trained = train::all(&jobs, threads, on_progress)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter();
    let models = (0..material.clients.len()).map_while(|_| {
        let watching = trained.next()?;
        let sending = if per_client > 1 { trained.next() } else { None };
        let (sending, report) = sending.map(|t| (t.weights, t.report)).unzip();
        Some(ClientVendor {
            watching: watching.weights,
            sending,
            reports: Some([Some(watching.report), report]),
        })
    });
    Ok(models.collect())
}

/// How each kind of model does on every client, in the order of the clients.
pub(crate) fn judge(
    material: &Material,
    kind: Proprietary,
    settings: &ModelSettings,
    seed: u64,
    threads: usize,
) -> Result<Vec<TrainReport>, TrainError> {
    let seed = |m: usize| rng::child(seed ^ WATCHING, m as u64);
    let clients = material.clients.iter().enumerate();
    let jobs: Vec<Job> = clients.map(|(m, c)| c.job(kind, settings, seed(m))).collect();
    let trained = train::all(&jobs, threads, &|_| ControlFlow::Continue(()));
    trained.into_iter().map(|trained| Ok(trained?.report)).collect()
}

/// Writes the models of a session as a vendor delivers them.
pub(crate) fn save(
    path: &Path,
    session: &Session,
    material: &Material,
    models: &[ClientVendor],
) -> Result<(), CheckpointError> {
    let delivery = Delivery {
        every: material.every,
        sensors: material.clients.iter().map(|c| c.view.names.clone()).collect(),
        watching: session.model.proprietary,
        columns: session.clients.iter().map(|client| client.columns.clone()).collect(),
    };
    let clients = material.clients.iter().zip(models).map(|(client, models)| ClientModels {
        name: client.name.clone(),
        mean: client.view.mean.clone(),
        std: client.view.std.clone(),
        proprietary: models.watching.clone(),
        sending: models.sending.clone(),
        augment: None,
        predictor: None,
    });
    let checkpoint = Checkpoint {
        fingerprint: Fingerprint::default(),
        clients: clients.collect(),
        thresholds: serde_json::to_string(&delivery).unwrap_or_default(),
        ..Checkpoint::default()
    };
    checkpoint.save(path)
}

/// A closure for [`Material::read`]: the delivered views, where there are such.
pub(crate) fn views_of(
    delivered: Option<&(Vec<SensorView>, Vec<ClientVendor>)>,
) -> impl Fn(&Layout) -> Option<Vec<SensorView>> + '_ {
    move |_| delivered.map(|(views, _)| views.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &str) -> Session {
        Session::parse("plant", Path::new(""), text).expect("a sound session")
    }

    /// A short plant and few passes: enough to prove the path, not to make good models.
    const SHORT: &str = "Session(about: \"short\", source: Plant(history_h: 1.5, hours: 1), \
        model: (epochs: 1), sampling: (decimate: Every(5)))";

    fn made(seed: u64) -> Vec<u8> {
        let session = session(SHORT);
        let material = Material::read(&session, 5, &|_| None).expect("a built-in plant");
        let go_on = |_: Progress| ControlFlow::Continue(());
        let models = train((&material, 0), &session.model, seed, 2, &go_on).expect("trained");
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("models.safetensors");
        save(&path, &session, &material, &models).expect("written");
        std::fs::read(path).expect("there")
    }

    #[test]
    fn models_are_the_same_bytes_for_the_same_seed() {
        let first = made(3);
        assert_eq!(first, made(3));
        assert_ne!(first, made(4));
    }

    #[test]
    fn the_plants_models_are_delivered_for_its_own_clients_sampling_and_sizes_only() {
        let plain = session("Session(about: \"x\", source: Plant(attacks: Day))");
        let (views, models) = delivered(&plain, 5).expect("models come with the program");
        assert_eq!(views.iter().map(|v| v.used.len()).collect::<Vec<_>>(), [9, 6, 3]);
        for client in &models {
            let ProprietaryWeights::Filter(filter) = client.federated() else {
                panic!("the paper's filter is a filter")
            };
            assert_eq!(filter.states(), 2);
        }
        assert!(delivered(&plain, 1).is_none(), "another sampling");
        let wider = session(
            "Session(about: \"x\", source: Plant(attacks: Day), model: (transition_width: 8))",
        );
        assert!(delivered(&wider, 5).is_none(), "another network");
        let twin = session("Session(about: \"x\", source: Twin(clients: 2))");
        assert!(delivered(&twin, 5).is_none(), "another plant");
    }

    #[test]
    fn the_shipped_plant_sessions_use_the_models_that_know_their_commands() {
        for name in ["plant-attack-day", "plant-normal"] {
            let shipped = Session::open(name).expect("a shipped session");
            let (views, models) = delivered(&shipped, 5).expect("models come with the program");
            assert_eq!(views.iter().map(|v| v.used.len()).collect::<Vec<_>>(), [14, 7, 5]);
            assert!(views[1].names.contains(&"P2_SCO".to_owned()));
            let is_linear = |m: &ClientVendor| !matches!(m.watching, ProprietaryWeights::Filter(_));
            assert!(models.iter().all(is_linear));
        }
    }
}
