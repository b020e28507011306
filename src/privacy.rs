//! Differential privacy that holds: mechanisms, accounting, a ledger, and what a setting buys.
//!
//! | file | what it is for |
//! |---|---|
//! | [`randomness`] | where noise comes from, and whether it hides anything |
//! | [`sampler`] | exact noise on the integers |
//! | [`gaussian`] | σ from (ε, δ) and back |
//! | [`mechanism`] | clip, snap to a grid, add Gaussian noise |
//! | [`response`] | randomised response on flags and symbols |
//! | [`protection`], [`agreement`] | a session's privacy settings as mechanisms, releasers, terms |
//! | [`release`] | the types by which only released values can be sent |
//! | [`channel`] | a stream of releases under one setting, counted |
//! | [`composition`] | what repeated releases cost, exactly and by named bounds |
//! | [`account`] | releases of many settings, counted and composed |
//! | [`memory`] | how far one sample reaches through a filter |
//! | [`window`], [`training`], [`budget`], [`ledger`] | spending over time, and what happens at zero |
//! | [`chain`] | the ledger's lines, linked by hashes, and their verification |
//! | [`seal`] | the signed lines of a ledger file, and what they show |
//! | [`sparse_vector`], [`send_policy`] | a private local watch; what a send policy keeps between steps |
//! | [`releaser`] | how symbols and flags leave a client: send policy, mechanism, ledger |
//! | [`cusum`], [`forecast`] | what an ε costs, and how soon faults are noticed with it |
//! | [`words`] | the same in sentences |
//! | [`special`] | the arithmetic underneath |
//!
//! What is protected is a client's measurements against every reader of its messages, the
//! server included. What is not: that a client exists, when it sends, and how often.
//!
//! The gradients that the server returns are computed from values already noised, so they are
//! post-processing and need no noise of their own unless the server holds other private data;
//! theorem 7.2 is there for that case and for the paper's experiments.
//!
//! It must not know clients, links, files or screens.

pub(crate) mod account;
pub(crate) mod agreement;
pub(crate) mod budget;
pub(crate) mod chain;
pub(crate) mod channel;
pub(crate) mod composition;
pub(crate) mod cusum;
pub(crate) mod forecast;
pub(crate) mod gaussian;
pub(crate) mod ledger;
pub(crate) mod mechanism;
pub(crate) mod memory;
pub(crate) mod protection;
pub(crate) mod randomness;
pub(crate) mod release;
pub(crate) mod releaser;
pub(crate) mod response;
pub(crate) mod sampler;
pub(crate) mod seal;
pub(crate) mod send_policy;
pub(crate) mod sparse_vector;
pub(crate) mod special;
pub(crate) mod training;
pub(crate) mod window;
pub(crate) mod words;

#[cfg(test)]
mod audit;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod reference;

pub(crate) use account::{Bound, Composed, Tally};
pub(crate) use budget::{Budget, Purpose, Terms};
pub(crate) use channel::{Channel, Units};
pub(crate) use forecast::{EpsilonOption, ForecastInput};
pub(crate) use ledger::signed::{self, SignedLedgers};
pub(crate) use ledger::{Counted, Exhaustion, Ledger};
pub(crate) use mechanism::{Clip, sigma_used};
pub(crate) use memory::FilterMemory;
#[cfg(test)]
pub(crate) use memory::Known;
pub(crate) use protection::{Hooks, Protection};
pub use randomness::Provenance;
pub(crate) use randomness::Randomness;
pub(crate) use release::Unprotected;
pub(crate) use release::{Estimate, Faults, Flag, Numbers, Quiet, Ranks, Spend, What};
pub use release::{Released, Symbol};
pub(crate) use releaser::{Account, Release, Releaser};
pub(crate) use response::Response;
pub(crate) use seal::{ClientHead, Found, Head, LedgerKey, Seals};
pub(crate) use sparse_vector::SparseVectorParams;
pub(crate) use training::Trained;

/// Why a mechanism gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivacyError {
    /// The operating system has no random numbers; nothing may be released without them.
    #[error("the operating system gave no random numbers: {0}")]
    NoRandomness(rand::rngs::SysError),
    /// A value to be released is not a number.
    #[error("value {place} is not a finite number and cannot be released")]
    NotFinite { place: usize },
    /// The number of values or symbols is not the one that was agreed on.
    #[error("expected {expected} values, found {found}")]
    Dimension { expected: usize, found: usize },
    /// A setting has no meaning.
    #[error("{what}: expected {expected}, found {found}")]
    Setting { what: &'static str, expected: &'static str, found: f64 },
    /// A budget cannot be set below what is already spent.
    #[error("{client} has spent {} over {} already: a budget of ε {asked} is below that", spent_words(*.spent), .over.label())]
    BelowSpent {
        client: String,
        /// Over which stretch of time.
        over: crate::session::privacy::Scope,
        asked: f64,
        spent: f64,
    },
    /// Levels behind kept answers cannot be shown.
    #[error(
        "answers are drawn once and kept: levels sent as they are would give away what the kept \
         answers have hidden so far"
    )]
    Kept,
}

fn spent_words(epsilon: f64) -> String {
    if epsilon.is_finite() {
        format!("ε {epsilon:.2}")
    } else {
        "more than any ε (something was sent as it is)".to_owned()
    }
}
