//! How the program is attacked.
//!
//! `tests/hostile.rs` runs with every `cargo test`: small files that a user could have, and thousands of
//! copies with bytes, numbers, lines and endings changed. Other seeds and more copies:
//!
//! ```sh
//! HOSTILE_SEED=7 HOSTILE_FACTOR=10 cargo test --release --test hostile -- --nocapture
//! ```
//!
//! `tests/cli/storm.rs` sends sizes, keys, pastes and signals at random moments, and tables with clocks
//! that jump:
//!
//! ```sh
//! STORM_SEED=7 STORM_FACTOR=10 cargo test --release --test cli storm -- --nocapture
//! ```
//!
//! The same promises as in `tests/hostile.rs` are the targets of a coverage-guided fuzzer, with
//! `cargo install cargo-fuzz`. It needs a nightly toolchain, or a stable one that is asked to take the
//! same options:
//!
//! ```sh
//! RUSTC_BOOTSTRAP=1 cargo fuzz run session --fuzz-dir tests/fuzz tests/fuzz/corpus/session sessions
//! ```
//!
//! An input that breaks a promise is added to the corpus under a name that says what it broke.
