//! What the paper prints, to stand beside what comes out here.

use crate::engine::experiment::Variant;

/// A line of Table 2 (synthetic data, two clients, 95th percentile).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Table2 {
    pub model: Variant,
    /// ARL0 in steps.
    pub arl0: f64,
    /// ARL1 in steps.
    pub arl1: f64,
    /// Precision, recall and F1 of the root cause, where the model can name one.
    pub root_cause: Option<[f64; 3]>,
}

pub(crate) const TABLE_2: [Table2; 5] = [
    Table2 { model: Variant::OnlyProprietary, arl0: 36.88, arl1: 157.8, root_cause: None },
    Table2 { model: Variant::WithoutProprietary, arl0: 27.82, arl1: 112.38, root_cause: None },
    Table2 {
        model: Variant::PreTrainedClients,
        arl0: 27.82,
        arl1: 112.38,
        root_cause: Some([0.70, 0.49, 0.576]),
    },
    Table2 {
        model: Variant::Federated,
        arl0: 27.82,
        arl1: 112.38,
        root_cause: Some([0.73, 0.57, 0.640]),
    },
    Table2 { model: Variant::CentralisedOracle, arl0: 22.9, arl1: 112.75, root_cause: None },
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

/// How root causes were named in Table 4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RootCause {
    /// Share of attacks whose root cause is named rightly.
    pub accuracy: f64,
    /// Mean and standard deviation of the delay of that name, in minutes.
    pub delay_min: (f64, f64),
}

pub(crate) const TABLE_4: [Table4; 6] = [
    Table4 {
        model: Variant::OnlyProprietary,
        percentile: 95.0,
        arl0_min: 71.0,
        arl1_min: 48.5,
        root_cause: None,
    },
    Table4 {
        model: Variant::Federated,
        percentile: 95.0,
        arl0_min: 131.0,
        arl1_min: 52.5,
        root_cause: Some(RootCause { accuracy: 0.5, delay_min: (22.0, 11.05) }),
    },
    Table4 {
        model: Variant::CentralisedOracle,
        percentile: 95.0,
        arl0_min: 89.0,
        arl1_min: 52.5,
        root_cause: None,
    },
    Table4 {
        model: Variant::OnlyProprietary,
        percentile: 99.5,
        arl0_min: 71.0,
        arl1_min: 48.5,
        root_cause: None,
    },
    Table4 {
        model: Variant::Federated,
        percentile: 99.5,
        arl0_min: 70.66,
        arl1_min: 48.5,
        root_cause: Some(RootCause { accuracy: 0.375, delay_min: (8.25, 8.63) }),
    },
    Table4 {
        model: Variant::CentralisedOracle,
        percentile: 99.5,
        arl0_min: 59.66,
        arl1_min: 48.5,
        root_cause: None,
    },
];

impl Table4 {
    /// The line of a model at a percentile.
    pub(crate) fn find(model: Variant, percentile: f64) -> Option<&'static Self> {
        TABLE_4.iter().find(|p| p.model == model && (p.percentile - percentile).abs() < 1e-9)
    }
}

/// A line of Table 3 (synthetic data); the paper gives bytes, of which the number of clients follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Table3 {
    pub clients: usize,
    /// Bytes per round, from clients to the server.
    pub bytes: usize,
    pub server_loss: f64,
}

pub(crate) const TABLE_3: [Table3; 4] = [
    Table3 { clients: 2, bytes: 32, server_loss: 0.0305 },
    Table3 { clients: 4, bytes: 64, server_loss: 0.0129 },
    Table3 { clients: 8, bytes: 128, server_loss: 0.0263 },
    Table3 { clients: 16, bytes: 256, server_loss: 0.0412 },
];
