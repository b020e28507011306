//! The lines of the overview, in the order of the paper.

use super::values::{
    accuracy, arl0_4, bytes, condition, correlations, end_to_end, false_alarms, in_training,
    inside, losses, minute_accuracy, minute_false_alarms, of_minutes, of_steps, ordered, over_tau,
    randomised, roots_2, roots_4, stable_losses, table_2, table_4,
};
use super::{Line, Section};
use crate::engine::experiment::Variant;
use crate::study::detection::{AT_PAPERS, PAPERS};
use crate::study::published::TABLE_3;

/// Families of the paper's plant and of the stand-in for its testbed: at the paper's settings, at ours.
const SYNTHETIC: [&str; 2] = [AT_PAPERS.name, PAPERS.name];
const PLANT: [&str; 2] = ["plant-paper", "plant"];
const DAYS: [&str; 2] = ["plant-paper", "plant-attack-day"];
const HAI: [&str; 2] = ["hai-23.05-aug-12-paper", "hai-23.05-aug-12"];

const NOTHING: fn() -> String = || "–".into();

pub(super) const SECTIONS: [Section; 17] = [
    Section {
        of: "Table 2",
        study: "detection",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "ARL0 / ARL1 of the framework, steps",
                printed: || table_2(Variant::Federated),
                value: |found, family| of_steps(found, family, Variant::Federated, 95.0),
            },
            Line {
                figure: "the same of the proprietary model",
                printed: || table_2(Variant::OnlyProprietary),
                value: |found, family| of_steps(found, family, Variant::OnlyProprietary, 95.0),
            },
            Line {
                figure: "the same of pre-trained clients",
                printed: || table_2(Variant::PreTrainedClients),
                value: |found, family| of_steps(found, family, Variant::PreTrainedClients, 95.0),
            },
        ],
    },
    // Neither of these has a φ or a federation: there is one setting, and the paper's cell says "as ours".
    Section {
        of: "Table 2",
        study: "detection",
        families: [PAPERS.name, PAPERS.name],
        lines: &[
            Line {
                figure: "the same without a proprietary model",
                printed: || table_2(Variant::WithoutProprietary),
                value: |found, family| of_steps(found, family, Variant::WithoutProprietary, 95.0),
            },
            Line {
                figure: "the same of the oracle",
                printed: || table_2(Variant::CentralisedOracle),
                value: |found, family| of_steps(found, family, Variant::CentralisedOracle, 95.0),
            },
        ],
    },
    Section {
        of: "Table 2",
        study: "detection",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "precision / recall / F1 inside anomalies",
                printed: || roots_2(Variant::Federated),
                value: |found, family| inside(found, family, "paper-95"),
            },
            Line {
                figure: "the same, pre-trained clients",
                printed: || roots_2(Variant::PreTrainedClients),
                value: |found, family| inside(found, family, "pre-trained-95"),
            },
            Line {
                figure: "F1 end to end, false alarms included",
                printed: NOTHING,
                value: end_to_end,
            },
        ],
    },
    Section {
        of: "Table 3",
        study: "scalability",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "L_s with 2 / 4 / 8 / 16 clients",
                printed: || TABLE_3.map(|line| format!("{:.3}", line.server_loss)).join(" / "),
                value: losses,
            },
            Line {
                figure: "bytes up in a round with as many",
                printed: || TABLE_3.map(|line| line.bytes.to_string()).join(" / "),
                value: bytes,
            },
        ],
    },
    Section {
        of: "Table 4",
        study: "plant",
        families: PLANT,
        lines: &[
            Line {
                figure: "plant, 95 %: ARL0 / ARL1 of flags, min",
                printed: || table_4(Variant::Federated, 95.0),
                value: |found, family| of_steps(found, family, Variant::Federated, 95.0),
            },
            Line {
                figure: "a flag a minute: of any step; of most steps",
                printed: || table_4(Variant::Federated, 95.0),
                value: |found, family| of_minutes(found, family, Variant::Federated, 95.0),
            },
            Line {
                figure: "the same of the proprietary model",
                printed: || table_4(Variant::OnlyProprietary, 95.0),
                value: |found, family| of_minutes(found, family, Variant::OnlyProprietary, 95.0),
            },
            Line {
                figure: "the same of the oracle",
                printed: || table_4(Variant::CentralisedOracle, 95.0),
                value: |found, family| of_minutes(found, family, Variant::CentralisedOracle, 95.0),
            },
            Line {
                figure: "plant, 99.5 %: a flag a minute, the framework",
                printed: || table_4(Variant::Federated, 99.5),
                value: |found, family| of_minutes(found, family, Variant::Federated, 99.5),
            },
            Line {
                figure: "the same of the proprietary model at 99.5 %",
                printed: || table_4(Variant::OnlyProprietary, 99.5),
                value: |found, family| of_minutes(found, family, Variant::OnlyProprietary, 99.5),
            },
            Line {
                figure: "the same of the oracle at 99.5 %",
                printed: || table_4(Variant::CentralisedOracle, 99.5),
                value: |found, family| of_minutes(found, family, Variant::CentralisedOracle, 99.5),
            },
            Line {
                figure: "ARL0 in training rows: proprietary / framework / oracle",
                printed: || arl0_4(95.0),
                value: |found, family| in_training(found, family, 95.0),
            },
            Line {
                figure: "the same in training rows at 99.5 %",
                printed: || arl0_4(99.5),
                value: |found, family| in_training(found, family, 99.5),
            },
        ],
    },
    Section {
        of: "Table 4",
        study: "plant",
        families: DAYS,
        lines: &[
            Line {
                figure: "plant, 95 %: RCA accuracy / delay",
                printed: || roots_4(95.0),
                value: |found, family| accuracy(found, family, "paper-95"),
            },
            Line {
                figure: "plant, 99.5 %: the same",
                printed: || roots_4(99.5),
                value: |found, family| accuracy(found, family, "paper-99.5"),
            },
            Line {
                figure: "plant, 95 %: the same, a flag a minute: any step; most steps",
                printed: || roots_4(95.0),
                value: |found, family| minute_accuracy(found, family, 95.0),
            },
            Line {
                figure: "plant, 99.5 %: the same, a flag a minute",
                printed: || roots_4(99.5),
                value: |found, family| minute_accuracy(found, family, 99.5),
            },
            Line {
                figure: "plant: the same in evidence mode",
                printed: NOTHING,
                value: |found, family| accuracy(found, family, "evidence"),
            },
            Line {
                figure: "false alarms a day, 95 % / 99.5 % / evidence",
                printed: NOTHING,
                value: false_alarms,
            },
            Line {
                figure: "the same of a flag a minute, 95 %: any step; most steps",
                printed: NOTHING,
                value: |found, family| minute_false_alarms(found, family, 95.0),
            },
            Line {
                figure: "the same of a flag a minute, 99.5 %",
                printed: NOTHING,
                value: |found, family| minute_false_alarms(found, family, 99.5),
            },
        ],
    },
    Section {
        of: "Table 4",
        study: "hai",
        families: HAI,
        lines: &[
            Line {
                figure: "HAI 23.05, 95 %: RCA accuracy / delay",
                printed: || roots_4(95.0),
                value: |found, family| accuracy(found, family, "paper-95"),
            },
            Line {
                figure: "HAI 23.05, 99.5 %: the same",
                printed: || roots_4(99.5),
                value: |found, family| accuracy(found, family, "paper-99.5"),
            },
            Line {
                figure: "HAI 23.05, 95 %: the same, a flag a minute: any step; most steps",
                printed: || roots_4(95.0),
                value: |found, family| minute_accuracy(found, family, 95.0),
            },
            Line {
                figure: "HAI 23.05, 99.5 %: the same, a flag a minute",
                printed: || roots_4(99.5),
                value: |found, family| minute_accuracy(found, family, 99.5),
            },
            Line {
                figure: "HAI 23.05: false alarms a day, 95 % / 99.5 % / evidence",
                printed: NOTHING,
                value: false_alarms,
            },
            Line {
                figure: "HAI 23.05, 95 %: a flag a minute, ARL0 / ARL1",
                printed: || table_4(Variant::Federated, 95.0),
                value: |found, family| of_minutes(found, family, Variant::Federated, 95.0),
            },
            Line {
                figure: "HAI 23.05, 95 %: the same of the proprietary model",
                printed: || table_4(Variant::OnlyProprietary, 95.0),
                value: |found, family| of_minutes(found, family, Variant::OnlyProprietary, 95.0),
            },
            Line {
                figure: "HAI 23.05, 95 %: the same of the oracle",
                printed: || table_4(Variant::CentralisedOracle, 95.0),
                value: |found, family| of_minutes(found, family, Variant::CentralisedOracle, 95.0),
            },
            Line {
                figure: "HAI 23.05, 99.5 %: a flag a minute, ARL0 / ARL1",
                printed: || table_4(Variant::Federated, 99.5),
                value: |found, family| of_minutes(found, family, Variant::Federated, 99.5),
            },
            Line {
                figure: "HAI 23.05, 99.5 %: the same of the proprietary model",
                printed: || table_4(Variant::OnlyProprietary, 99.5),
                value: |found, family| of_minutes(found, family, Variant::OnlyProprietary, 99.5),
            },
            Line {
                figure: "HAI 23.05, 99.5 %: the same of the oracle",
                printed: || table_4(Variant::CentralisedOracle, 99.5),
                value: |found, family| of_minutes(found, family, Variant::CentralisedOracle, 99.5),
            },
        ],
    },
    Section {
        of: "Fig. 6",
        study: "hai",
        families: HAI,
        lines: &[Line {
            figure: "|corr| on HAI 23.05, as Fig. 2",
            printed: || "picture: as Fig. 2".into(),
            value: correlations,
        }],
    },
    Section {
        of: "Fig. 7",
        study: "hai",
        families: HAI,
        lines: &[Line {
            figure: "HAI 23.05: steps with r_c > r_a > r_o",
            printed: || "picture: most".into(),
            value: ordered,
        }],
    },
    Section {
        of: "Fig. 2",
        study: "correlation",
        families: SYNTHETIC,
        lines: &[Line {
            figure: "|corr|: proprietary / augmented / server / oracle",
            printed: || "picture: first dark, others alike".into(),
            value: correlations,
        }],
    },
    Section {
        of: "Fig. 3",
        study: "privacy",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "σ with L_s / L_a at most doubled, states",
                printed: || "picture: 10 / 100000".into(),
                value: |found, family| stable_losses(found, family, "states up"),
            },
            Line {
                figure: "the same, gradients",
                printed: || "picture: 10 / 100000".into(),
                value: |found, family| stable_losses(found, family, "gradients down"),
            },
        ],
    },
    Section {
        of: "Fig. 4",
        study: "privacy",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "ARL0 of Z_a, p_a from 1 to the least",
                printed: || "picture: sensitive".into(),
                value: |found, family| randomised(found, family, "p_a", "arl0", 1),
            },
            Line {
                figure: "ARL1 of Z_a, p_a from 1 to the least",
                printed: || "picture: sensitive".into(),
                value: |found, family| randomised(found, family, "p_a", "arl1", 2),
            },
            Line {
                figure: "ARL0 of Z_a, p_c from 1 to the least",
                printed: || "picture: stable".into(),
                value: |found, family| randomised(found, family, "p_c", "arl0", 1),
            },
            Line {
                figure: "ARL1 of Z_a, p_c from 1 to the least",
                printed: || "picture: stable".into(),
                value: |found, family| randomised(found, family, "p_c", "arl1", 2),
            },
            Line {
                figure: "recall inside anomalies, p_a from 1 to the least",
                printed: || "picture: falls".into(),
                value: |found, family| randomised(found, family, "p_a", "inside_recall", 2),
            },
            Line {
                figure: "the same, p_c from 1 to the least",
                printed: || "picture: stable".into(),
                value: |found, family| randomised(found, family, "p_c", "inside_recall", 2),
            },
            Line {
                figure: "precision inside anomalies, p_a from 1 to the least",
                printed: || "picture: falls".into(),
                value: |found, family| randomised(found, family, "p_a", "inside_precision", 2),
            },
            Line {
                figure: "precision, p_c from 1 to the least",
                printed: || "picture: stable".into(),
                value: |found, family| randomised(found, family, "p_c", "inside_precision", 2),
            },
        ],
    },
    Section {
        of: "Fig. 5",
        study: "threshold",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "ARL0, τ_a from the 75th to the 97.5th percentile",
                printed: || "picture: rises".into(),
                value: |found, family| over_tau(found, family, "arl0", 1),
            },
            Line {
                figure: "ARL1, the same",
                printed: || "picture: rises exponentially".into(),
                value: |found, family| over_tau(found, family, "arl1_at_least", 2),
            },
            Line {
                figure: "precision inside anomalies, the same",
                printed: || "picture: stable".into(),
                value: |found, family| over_tau(found, family, "inside_precision", 2),
            },
            Line {
                figure: "recall inside anomalies, the same",
                printed: || "picture: stable".into(),
                value: |found, family| over_tau(found, family, "step_recall", 2),
            },
        ],
    },
    Section {
        of: "Fig. 6",
        study: "correlation",
        families: PLANT,
        lines: &[Line {
            figure: "|corr| on the plant, as Fig. 2",
            printed: || "picture: as Fig. 2".into(),
            value: correlations,
        }],
    },
    Section {
        of: "Fig. 7",
        study: "residuals",
        families: PLANT,
        lines: &[Line {
            figure: "steps with r_c > r_a > r_o",
            printed: || "picture: most".into(),
            value: ordered,
        }],
    },
    Section {
        of: "Th. 6.10",
        study: "convergence",
        families: SYNTHETIC,
        lines: &[Line {
            figure: "clients of A2 for whom the condition holds",
            printed: || "assumed".into(),
            value: condition,
        }],
    },
    Section {
        of: "Th. 6.10",
        study: "convergence",
        families: PLANT,
        lines: &[Line {
            figure: "the same on the plant",
            printed: || "assumed".into(),
            value: condition,
        }],
    },
];
