//! The paper's figures, to stand beside ours.

use crate::engine::experiment::Variant;

/// A line of Table 2 (synthetic data, two clients, 95th percentile).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Table2 {
    pub model: Variant,
    /// Run lengths in steps.
    pub arl0: f64,
    pub arl1: f64,
    /// Precision, recall and F1 of the root cause, where the model can name one.
    pub root_cause: Option<[f64; 3]>,
}

const fn table_2(model: Variant, arl0: f64, arl1: f64, root_cause: Option<[f64; 3]>) -> Table2 {
    Table2 { model, arl0, arl1, root_cause }
}

pub(crate) const TABLE_2: [Table2; 5] = [
    table_2(Variant::OnlyProprietary, 36.88, 157.8, None),
    table_2(Variant::WithoutProprietary, 27.82, 112.38, None),
    table_2(Variant::PreTrainedClients, 27.82, 112.38, Some([0.70, 0.49, 0.576])),
    table_2(Variant::Federated, 27.82, 112.38, Some([0.73, 0.57, 0.640])),
    table_2(Variant::CentralisedOracle, 22.9, 112.75, None),
];

/// A line of Table 3 (synthetic data); the paper gives bytes, from which the number of clients follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Table3 {
    pub clients: usize,
    /// Per round, from clients to the server.
    pub bytes: usize,
    /// At the end of training.
    pub server_loss: f64,
}

pub(crate) const TABLE_3: [Table3; 4] = [
    Table3 { clients: 2, bytes: 32, server_loss: 0.0305 },
    Table3 { clients: 4, bytes: 64, server_loss: 0.0129 },
    Table3 { clients: 8, bytes: 128, server_loss: 0.0263 },
    Table3 { clients: 16, bytes: 256, server_loss: 0.0412 },
];

/// A line of Table 4 (HAI 23.05, 12 August, eight attacks).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Table4 {
    pub model: Variant,
    pub percentile: f64,
    pub arl0_min: f64,
    pub arl1_min: f64,
    /// Absent where it names no root.
    pub root_cause: Option<RootCause>,
}

/// Root causes of Table 4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RootCause {
    /// Share of attacks whose root cause is named rightly.
    pub accuracy: f64,
    /// Mean and standard deviation of the delay of that name, in minutes.
    pub delay_min: (f64, f64),
}

const fn table_4(
    model: Variant,
    percentile: f64,
    (arl0_min, arl1_min): (f64, f64),
    root_cause: Option<RootCause>,
) -> Table4 {
    Table4 { model, percentile, arl0_min, arl1_min, root_cause }
}

const AT_95: RootCause = RootCause { accuracy: 0.5, delay_min: (22.0, 11.05) };
const AT_99_5: RootCause = RootCause { accuracy: 0.375, delay_min: (8.25, 8.63) };

const TABLE_4: [Table4; 6] = [
    table_4(Variant::OnlyProprietary, 95.0, (71.0, 48.5), None),
    table_4(Variant::Federated, 95.0, (131.0, 52.5), Some(AT_95)),
    table_4(Variant::CentralisedOracle, 95.0, (89.0, 52.5), None),
    table_4(Variant::OnlyProprietary, 99.5, (71.0, 48.5), None),
    table_4(Variant::Federated, 99.5, (70.66, 48.5), Some(AT_99_5)),
    table_4(Variant::CentralisedOracle, 99.5, (59.66, 48.5), None),
];

impl Table4 {
    /// The line of a model at a percentile.
    pub(crate) fn find(model: Variant, percentile: f64) -> Option<&'static Self> {
        TABLE_4.iter().find(|p| p.model == model && (p.percentile - percentile).abs() < 1e-9)
    }
}
