//! How the program is attacked.
//!
//! `tests/hostile.rs` runs with every `cargo test`: small files that a user could have, and thousands of
//! copies with bytes, numbers, lines and endings changed. Other seeds and more copies:
//!
//! ```sh
//! HOSTILE_SEED=7 HOSTILE_FACTOR=10 cargo test --release --test hostile -- --nocapture
//! ```
//!
//! The same promises are the targets of a coverage-guided fuzzer, which needs a nightly toolchain and
//! `cargo install cargo-fuzz`:
//!
//! ```sh
//! cargo +nightly fuzz run session --fuzz-dir tests/fuzz tests/fuzz/corpus/session sessions
//! ```
//!
//! An input that breaks a promise is added to the corpus under a name that says what it broke.
