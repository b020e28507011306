//! Writing data of the built-in plants to files, with its ground truth.

pub mod twin;
