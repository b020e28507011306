//! Golden values and real data that stand beside the repository, for tests.
//!
//! A test that needs them carries `#[cfg_attr(no_shared, ignore = "needs ../shared, which is
//! absent")]`; `src/build.rs` sets `no_shared`. Where the folder is there but a file of it is not, the
//! test fails.

use std::fs;
use std::path::{Path, PathBuf};

/// A file or folder of `../shared`, which must be there.
pub(crate) fn path(name: &str) -> PathBuf {
    let path = folder().join(name);
    assert!(path.exists(), "{} is absent, although ../shared was there at build", path.display());
    path
}

/// The text of a file of `../shared`.
pub(crate) fn text(name: &str) -> String {
    let path = path(name);
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared")
}

#[test]
fn whether_the_shared_folder_is_there_was_known_when_this_was_built() {
    let known = !cfg!(no_shared);
    let there = folder().is_dir();
    assert_eq!(known, there, "../shared has come or gone since the build: touch src/build.rs");
}

#[test]
#[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
#[should_panic(expected = "no-such-file is absent")]
fn a_missing_file_of_the_shared_folder_fails_the_test_that_needs_it() {
    path("no-such-file");
}
