//! Headwater finds where trouble started in a plant, without any process giving up its data.
//!
//! ```text
//! stream ──► site ──► wire ──► server ──► incident ──► engine ──► console
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`base`] | randomness, threads, folders, digests, atomic files, a broker's address, names that were probably meant |
//! | [`session`] | what to watch: a RON file becomes a session |
//! | [`nn`] | networks and filters, one definition each: how they are trained, how they run |
//! | [`stream`] | time-aligned measurements from tables, HAI, the built-in plant, the synthetic plants |
//! | [`make`] | writes data of the built-in plants, with the truth about it |
//! | [`privacy`] | what may be released: mechanisms, budget, ledger |
//! | [`evidence`] | the statistics that sites and server share: symbols, likelihoods, CUSUM, thresholds |
//! | [`wire`] | the wall: what may cross between a site and the server, and what carries it |
//! | [`site`] | everything that may see a client's measurements; steps on a row, hands out messages |
//! | [`server`] | receives messages, decides once a step; learns how clients depend on each other |
//! | [`federation`] | Algorithm 1 over sites and server, the baselines, and how near they come to the oracle |
//! | [`score`] | metrics, and the score of a list of alarms: sees verdicts and labels only |
//! | [`fact`] | the facts of a run, one JSON line each: the same for commands, recordings and the screen |
//! | [`output`] | facts for receivers outside: a queue on disk for each, and figures for a monitoring system |
//! | [`incident`] | one alarm per root cause, its effects folded under it, and what operators do about it |
//! | [`history`] | columnar history with gaps: any stretch at any zoom in a handful of look-ups |
//! | [`record`] | recordings: a run stored while it happens in one SQLite file, and read again |
//! | [`engine`] | runs a session: from its data to models, from its models to facts |
//! | [`attach`] | consoles of a running service, over a local socket |
//! | [`remote`] | sites and server as processes of their own, over an MQTT broker |
//! | [`study`] | how good the answers are: every table and figure |
//! | [`console`] | the screen: live measurements of every client, as they are replayed |
//! | [`bench`] | speed and memory on this machine |
//! | [`cli`] | the commands |
//! | [`test_api`] | what integration tests, documentation tests and fuzz targets reach; no interface |
//! | [`guide`] | what users and developers may rely on: documentation only |
//!
//! # The way of one sample, from the stream to the screen
//!
//! 1. `stream/decimate.rs`: some rows of measurements become one frame.
//! 2. `engine/run/exchange.rs`: each site gets its own row of the frame, and no other.
//! 3. `site/evidence.rs`, `site/flags.rs`: the site's model predicts the row; the residual becomes a
//!    symbol of a few levels, or the flags (Z_c, Z_a).
//! 4. `privacy/release.rs`: symbol or flags are noised and entered in the site's ledger.
//! 5. `wire/message.rs`: what was entered, and only that, becomes a message to the server.
//! 6. `server/inference.rs`, `server/lookup.rs`: the server adds up the messages of all sites and decides.
//! 7. `incident/fold.rs`: the decision opens, moves or closes incidents and folds effects under a root.
//! 8. `incident/facts.rs`, `incident/verdict.rs`: events become facts; every client gets its verdict.
//! 9. `engine/player.rs`: facts, incidents and readouts go to the holder of the engine, at the asked pace.
//! 10. `console/watched.rs`, `console/view.rs`: the console keeps them and draws the verdicts.
//!
//! A module imports only what stands above it, and only [`bench`] and [`cli`] import [`console`]:
//! `tests/architecture.rs` reads this table.

mod attach;
mod base;
mod bench;
pub mod cli;
mod console;
mod engine;
mod evidence;
mod fact;
mod federation;
pub mod guide;
mod history;
mod incident;
mod make;
mod nn;
mod output;
mod privacy;
mod record;
mod remote;
mod score;
mod server;
mod session;
#[cfg(test)]
mod shared;
mod site;
mod stream;
mod study;
pub mod test_api;
#[cfg(test)]
mod traffic_tests;
mod wire;
