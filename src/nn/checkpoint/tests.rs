use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView};

use super::*;
use crate::base::rng;
use crate::nn::network::{FilterNetwork, LstmNetwork};
use crate::nn::weights::{Conduct, FilterWeights, Mlp, OwnLagWeights};

fn filter(states: usize, sensors: usize, residual: bool) -> FilterWeights {
    let mut rng = rng::stream(1, 0);
    FilterWeights {
        transition: LstmFc::init(states, 4, states, 1.0, &mut rng),
        measurement: Mlp::init(states, 5, sensors, 1.0, &mut rng),
        loadings: residual.then(|| (0..states * sensors).map(|i| i as f32).collect()),
        q: 0.1,
        r: 0.25,
        conduct: Conduct::default(),
    }
}

fn own_lags() -> OwnLagWeights {
    OwnLagWeights { sensors: 2, lags: 2, weight: vec![0.5; 8], bias: vec![0.0, 1.0] }
}

fn client(name: &str, proprietary: ProprietaryWeights) -> ClientModels {
    ClientModels {
        name: name.to_owned(),
        // A number that decimal text of 17 digits is needed for.
        mean: vec![1.5, -0.1 + 1e-17 + 0.2 / 3.0],
        std: vec![2.0, 1e-3],
        proprietary,
        sending: None,
        augment: None,
        predictor: None,
    }
}

fn full() -> Checkpoint {
    let mut rng = rng::stream(2, 0);
    let mut lstm = |i, o| Some(LstmFc::init(i, 3, o, 1.0, &mut rng));
    let mut clients = vec![
        client("P1", ProprietaryWeights::Filter(filter(2, 2, true))),
        client("P2", ProprietaryWeights::Filter(filter(1, 2, false))),
        client("P 3.b", ProprietaryWeights::Linear(own_lags())),
        client(
            "Müller",
            ProprietaryWeights::OwnLagFilter {
                front: own_lags(),
                filter: filter(2, 2, false),
                scale: vec![0.1, 0.2],
            },
        ),
    ];
    clients[0].augment = lstm(2, 2);
    clients[1].predictor = lstm(2, 2);
    Checkpoint {
        fingerprint: Hasher::new().text("session").finish(),
        clients,
        server: lstm(7, 7),
        oracle: Some(Oracle {
            filter: filter(4, 8, false),
            layout: Layout::new(&[(1, 2), (1, 2), (1, 2), (1, 2)]),
        }),
        thresholds: r#"{"P1":{"tau_c":3.2}}"#.to_owned(),
        fits: Vec::new(),
    }
}

fn saved(checkpoint: &Checkpoint) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("model.safetensors");
    checkpoint.save(&path).unwrap();
    (folder, path)
}

/// Enters the checksum of bytes that a test has changed.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    checksum::enter(&mut bytes).expect("a place for it");
    bytes
}

fn refusal(path: &Path) -> String {
    let text = Checkpoint::load(path, None).unwrap_err().to_string();
    let (file, what) = text.split_once("model.safetensors: ").expect("names the file");
    assert!(!file.is_empty());
    what.to_owned()
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    for fits in [Vec::new(), vec![1, 2, 250]] {
        let checkpoint = Checkpoint { fits, ..full() };
        let (_folder, path) = saved(&checkpoint);
        let loaded = Checkpoint::load(&path, Some(checkpoint.fingerprint)).unwrap();
        assert_eq!(loaded, checkpoint);
    }
}

#[test]
fn the_same_models_make_the_same_bytes_and_leave_nothing_else_behind() {
    let (_a, first) = saved(&full());
    let (_b, second) = saved(&full());
    full().save(&second).unwrap();
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    assert_eq!(fs::read_dir(second.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn tensors_have_the_names_other_programs_look_for() {
    let (_folder, path) = saved(&full());
    let bytes = fs::read(path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let shape = |name| tensors.tensor(name).unwrap().shape().to_vec();
    assert_eq!(shape("clients.P1.transition.weight_ih_l0"), [16, 2]);
    assert_eq!(shape("clients.P1.measurement.second.weight"), [2, 5]);
    assert_eq!(shape("clients.P1.loadings"), [2, 2]);
    assert_eq!(shape("clients.Müller.front.weight"), [2, 4]);
    assert_eq!(shape("server.fc.bias"), [7]);
    assert_eq!(shape("oracle.transition.fc.weight"), [4, 4]);
}

#[test]
fn candle_builds_the_networks_from_the_file() {
    let checkpoint = full();
    let bytes = checkpoint.to_file(Path::new("m")).unwrap();
    let file = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu).unwrap();
    let x = Tensor::new(&[[[0.3f32, -0.2, 1.0, 0.1, 0.0, -0.7, 2.0]]], &Device::Cpu).unwrap();
    let weights = checkpoint.server.as_ref().unwrap();
    let theirs = LstmNetwork::new(weights.sizes(), &file.pp("server")).unwrap().seq(&x).unwrap();
    let ours = LstmNetwork::running(weights).unwrap().seq(&x).unwrap();
    let numbers = |t: Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(numbers(theirs), numbers(ours));
    let ProprietaryWeights::Filter(filter) = &checkpoint.clients[0].proprietary else { panic!() };
    assert!(FilterNetwork::new(filter.config(), &file.pp("clients.P1")).is_ok());
}

#[test]
fn a_file_of_version_2_is_read_by_the_names_it_has() {
    let checkpoint = full();
    let bytes = checkpoint.to_file(Path::new("m")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let old = Reader::new(&tensors, 2);
    let views = tensors.tensors();
    let renamed = views.iter().map(|(name, view)| (old.stored(name), view));
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let header = metadata.metadata().as_ref().unwrap()[HEADER].clone();
    let header = header.replace("\"version\":3", "\"version\":2");
    let bytes = safetensors::serialize(renamed, Some([(HEADER.to_owned(), header)].into()));
    let bytes = with_checksum(bytes.unwrap());
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("clients.P1.transition.weight_ih\"") && !text.contains("_l0"));
    assert_eq!(Checkpoint::from_bytes(Path::new("m"), &bytes, None).unwrap(), checkpoint);
}

#[test]
fn changed_data_are_noticed() {
    let (_folder, path) = saved(&full());
    let other = Hasher::new().text("another session").finish();
    let error = Checkpoint::load(&path, Some(other)).unwrap_err();
    assert!(matches!(error, CheckpointError::Fingerprint { expected, .. } if expected == other));
    assert!(error.to_string().ends_with("session or data have changed"));
}

#[test]
fn a_file_cut_at_any_length_is_refused() {
    let (_folder, path) = saved(&full());
    let bytes = fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        fs::write(&path, &bytes[..length]).unwrap();
        let what = refusal(&path);
        let named = ["not a complete safetensors file", "cannot be read: checksum differs"];
        assert!(named.iter().any(|words| what.starts_with(words)), "{length}: {what}");
    }
}

#[test]
fn another_version_is_refused_by_name() {
    let (_folder, path) = saved(&full());
    let mut bytes = fs::read(&path).unwrap();
    let needle = br#"\"version\":3"#;
    let at = bytes.windows(needle.len()).position(|w| w == needle).unwrap();
    bytes[at + needle.len() - 1] = b'7';
    fs::write(&path, with_checksum(bytes)).unwrap();
    assert_eq!(refusal(&path), "checkpoint of version 7, expected 3");
}

#[test]
fn a_file_of_a_version_without_a_checksum_is_refused_as_that_version() {
    let header = r#"{"version":1}"#.to_owned();
    let bytes = safetensors::serialize(
        Vec::<(&str, TensorView)>::new(),
        Some([(HEADER.to_owned(), header)].into()),
    );
    let (_folder, path) = saved(&full());
    fs::write(&path, bytes.unwrap()).unwrap();
    assert_eq!(refusal(&path), "checkpoint of version 1, expected 3");
}

#[test]
fn every_single_flipped_bit_of_a_kept_file_is_noticed() {
    // A small file, so that all of its bits can be tried.
    let checkpoint = Checkpoint { clients: full().clients.split_off(2), ..Checkpoint::default() };
    let bytes = checkpoint.to_file(Path::new("m")).unwrap();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            let read = Checkpoint::from_bytes(Path::new("m"), &flipped, None);
            assert!(read.is_err(), "bit {bit} of byte {place}");
        }
    }
    assert_eq!(Checkpoint::from_bytes(Path::new("m"), &bytes, None).unwrap(), checkpoint);
}

proptest! {
    #[test]
    fn any_flipped_bit_of_any_kept_file_means_that_the_checksum_differs(
        fits in proptest::collection::vec(any::<u8>(), 0..300),
        place in 0.0_f64..1.0,
        bit in 0_u8..8,
    ) {
        let mut bytes = Checkpoint { fits, ..full() }.to_file(Path::new("m")).unwrap();
        let place = (place * bytes.len() as f64) as usize;
        bytes[place] ^= 1 << bit;
        let read = Checkpoint::from_bytes(Path::new("m"), &bytes, None);
        let what = read.expect_err("noticed").to_string();
        // The length and the place of the checksum are not trusted either.
        let begin = 8 + br#"{"__metadata__":{"headwater":"{\"checksum\":\""#.len();
        if place >= begin {
            prop_assert_eq!(what, "m: cannot be read: checksum differs");
        }
    }
}

#[test]
fn a_weight_that_is_not_a_number_is_neither_written_nor_read() {
    let (_folder, path) = saved(&full());
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let bytes = with_checksum(bytes);
    fs::write(&path, &bytes).unwrap();
    assert!(refusal(&path).ends_with("a value is not a number"));
    let mut checkpoint = full();
    checkpoint.server.as_mut().unwrap().fc_bias[0] = f32::INFINITY;
    let error = checkpoint.save(&path).unwrap_err().to_string();
    assert!(error.ends_with("server.fc.bias: a value is not a number"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "what stood there is untouched");
}

#[test]
fn shapes_that_do_not_belong_together_are_refused() {
    let mut checkpoint = full();
    checkpoint.clients[0].mean.push(0.0);
    let (_folder, path) = saved(&checkpoint);
    assert_eq!(refusal(&path), "clients.P1: 3 means, 2 deviations");
    checkpoint.clients[0].std.push(1.0);
    checkpoint.save(&path).unwrap();
    let what = refusal(&path);
    assert_eq!(what, "clients.P1.measurement.second.weight: shape [2, 5], expected [3, 5]");
}

#[test]
fn any_other_safetensors_file_is_refused() {
    let (_folder, path) = saved(&full());
    let values = [0u8; 8];
    let view = TensorView::new(Dtype::F32, vec![2], &values).unwrap();
    fs::write(&path, safetensors::serialize([("x", &view)], None).unwrap()).unwrap();
    assert_eq!(refusal(&path), "not a checkpoint of headwater");
}

#[test]
fn a_missing_file_is_a_missing_file() {
    let (_folder, path) = saved(&full());
    fs::remove_file(&path).unwrap();
    let error = Checkpoint::load(&path, None).unwrap_err();
    assert!(
        matches!(error, CheckpointError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    );
}

#[test]
fn two_clients_of_one_name_cannot_be_saved() {
    let mut checkpoint = full();
    checkpoint.clients[1].name = "P1".to_owned();
    let folder = tempfile::tempdir().unwrap();
    let error = checkpoint.save(&folder.path().join("m")).unwrap_err().to_string();
    assert!(error.ends_with("clients.P1.mean: two tensors of this name"), "{error}");
}
