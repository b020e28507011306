//! Names and patterns of a session, turned into files of a folder.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::stream::StreamError;
use crate::stream::columns::glob;

/// The files that `wanted` (names or patterns, in this order) means in `folder`; the matches of a
/// pattern stand in natural order. A name means its `.gz` as well, and a file is listed once.
pub(crate) fn find(
    folder: &Path,
    wanted: &[String],
    published: Option<&str>,
) -> Result<Vec<PathBuf>, StreamError> {
    if wanted.is_empty() {
        return Err(StreamError::Setting("no file is named: give the range its `files`".into()));
    }
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for name in wanted {
        let matches = match exact(&folder.join(name)) {
            Some(path) => vec![path],
            None if name.contains(['*', '?']) => matches(folder, name)?,
            None => Vec::new(),
        };
        if matches.is_empty() {
            missing.push(name.clone());
        }
        for path in matches {
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    if missing.is_empty() {
        Ok(found)
    } else {
        Err(StreamError::MissingFiles {
            folder: folder.to_path_buf(),
            files: missing,
            published: published.map(str::to_owned),
        })
    }
}

/// The file at `path`, or its compressed or plain twin.
pub(crate) fn exact(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let twin = match text.strip_suffix(".gz") {
        Some(plain) => PathBuf::from(plain),
        None => PathBuf::from(format!("{text}.gz")),
    };
    [path.to_path_buf(), twin].into_iter().find(|p| p.is_file())
}

/// The name of a file, as far as it can be shown.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The name of a file without `.gz` and `.csv`.
pub(crate) fn stem(path: &Path) -> String {
    let name = name(path);
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    plain.strip_suffix(".csv").unwrap_or(plain).to_owned()
}

fn matches(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, StreamError> {
    let (folder, pattern) = match pattern.rsplit_once('/') {
        Some((below, pattern)) => (folder.join(below), pattern),
        None => (folder.to_path_buf(), pattern),
    };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StreamError::io(folder)(e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StreamError::io(&folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let meant = glob(pattern, &name) || glob(pattern, plain(&name));
        if meant && entry.path().is_file() {
            names.push((name, entry.path()));
        }
    }
    // A file and its compressed twin hold the same rows: the plain one, which sorts first, counts.
    names.sort_by(|(a, _), (b, _)| natural(plain(a), plain(b)).then_with(|| a.cmp(b)));
    names.dedup_by(|(b, _), (a, _)| plain(a) == plain(b));
    Ok(names.into_iter().map(|(_, path)| path).collect())
}

fn plain(name: &str) -> &str {
    name.strip_suffix(".gz").unwrap_or(name)
}

/// The order a person expects: `test2` before `test10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (l, r) = (digits(left), digits(right));
        if l > 0 && r > 0 {
            let (x, y) = (left[..l].trim_start_matches('0'), right[..r].trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            if order.is_ne() {
                return order;
            }
            (left, right) = (&left[l..], &right[r..]);
            continue;
        }
        let (mut x, mut y) = (left.chars(), right.chars());
        match (x.next(), y.next()) {
            (Some(p), Some(q)) if p == q => (left, right) = (x.as_str(), y.as_str()),
            (None, None) => return a.cmp(b),
            (p, q) => return p.cmp(&q),
        }
    }
}

/// How many digits a text begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in names {
            fs::write(folder.path().join(name), "").expect("a writable folder");
        }
        folder
    }

    fn found(names: &[&str], wanted: &[&str]) -> Result<Vec<String>, String> {
        let folder = folder(names);
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        find(folder.path(), &wanted, Some("https://example.org/data"))
            .map(|files| files.iter().map(|f| name(f)).collect())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn names_keep_their_order_and_matches_of_a_pattern_are_counted_as_people_count() {
        let files = ["t10.csv", "t2.csv", "t1.csv", "b.csv", "a.csv"];
        let expected = ["b.csv", "t1.csv", "t2.csv", "t10.csv", "a.csv"].map(String::from);
        assert_eq!(found(&files, &["b.csv", "t*.csv", "a.csv", "b.csv"]), Ok(expected.to_vec()));
    }

    #[test]
    fn a_name_means_its_compressed_twin_too_but_not_both() {
        let files = ["train1.csv.gz", "train2.csv", "train2.csv.gz"];
        let both = ["train1.csv.gz", "train2.csv"].map(String::from);
        assert_eq!(found(&files, &["train?.csv"]), Ok(both.to_vec()));
        assert_eq!(found(&files, &["train*"]), Ok(both.to_vec()));
        assert_eq!(found(&files, &["train1.csv", "train2.csv"]), Ok(both.to_vec()));
        assert_eq!(found(&["a.csv"], &["a.csv.gz"]), Ok(vec!["a.csv".into()]));
    }

    #[test]
    fn what_is_not_there_is_named_with_the_folder_and_where_to_get_it() {
        let error = found(&["a.csv"], &["a.csv", "b.csv", "t*"]).expect_err("two are missing");
        assert!(error.contains("b.csv, t*"), "{error}");
        assert!(error.contains("https://example.org/data"), "{error}");
        let nowhere = find(Path::new("no/such/folder"), &["*".into()], None);
        assert!(matches!(nowhere, Err(StreamError::MissingFiles { .. })));
    }

    proptest! {
        #[test]
        fn natural_order_is_an_order(a in "[a-b0-2é]{0,6}", b in "[a-b0-2é]{0,6}", c in "[a-b0-2é]{0,6}") {
            prop_assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
            prop_assert_eq!(natural(&a, &b).is_eq(), a == b);
            if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
                prop_assert!(natural(&a, &c).is_le());
            }
        }
    }
}
