//! The supply chain: what is built into the program comes from one registry, under licences that it can
//! be shipped with, and without crates that `deny.toml` bans.
//!
//! `cargo deny check bans licenses sources` checks the same. These tests need cargo alone, so that the
//! rules of `deny.toml` hold wherever the program is tested, and no other tool has to be built first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The quoted words of the list that `key` names in `deny.toml`.
fn listed(key: &str) -> BTreeSet<String> {
    let text = file("deny.toml");
    let begin = format!("\n{key} = [");
    let (_, list) = text.split_once(&begin).unwrap_or_else(|| panic!("deny.toml has no {key}"));
    let (list, _) = list.split_once(']').expect("a list ends");
    let uncommented = list.lines().map(|line| line.split('#').next().unwrap_or_default());
    let quoted = uncommented.flat_map(|line| line.split('"').skip(1).step_by(2));
    quoted.map(str::to_owned).collect()
}

/// Name, version and licence of everything that is built for this platform, tests included.
fn built() -> BTreeSet<(String, String, String)> {
    built_with(&[])
}

/// The same with features that are off by default.
fn built_with(features: &[&str]) -> BTreeSet<(String, String, String)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p}|{l}"])
        .args(["--edges", "normal,build,dev", "--features", &features.join(",")])
        .output()
        .expect("cargo runs the tests, so it is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let package = |line: &str| {
        let (package, licence) = line.trim_end_matches(" (*)").split_once('|')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?);
        Some((name.to_owned(), version.trim_start_matches('v').to_owned(), licence.to_owned()))
    };
    text.lines().filter_map(package).collect()
}

/// Whether one of the choices that a licence leaves is allowed as a whole.
fn is_allowed(licence: &str, allowed: &BTreeSet<String>) -> bool {
    // `/` is an old way to write OR.
    let text = licence.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    let fits = any_of(&words, &mut at, allowed);
    fits && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fits = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        fits |= all_of(words, at, allowed);
    }
    fits
}

fn all_of(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fits = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        fits &= one(words, at, allowed);
    }
    fits
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let fits = any_of(words, at, allowed);
        let is_closed = words.get(*at) == Some(&")");
        *at += 1;
        return fits && is_closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let whole = format!("{word} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
        return allowed.contains(&whole);
    }
    allowed.contains(*word)
}

#[test]
fn a_licence_is_allowed_when_one_of_its_choices_is_allowed_as_a_whole() {
    let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for licence in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(GPL-3.0 OR MIT) AND Zlib",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(is_allowed(licence, &allowed), "{licence}");
    }
    for licence in
        ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND WTFPL", "Apache-2.0", "(MIT"]
    {
        assert!(!is_allowed(licence, &allowed), "{licence}");
    }
}

#[test]
fn everything_that_is_built_may_be_shipped_under_its_licence() {
    let (built, allowed) = (built(), listed("allow"));
    assert!(built.len() > 100, "cargo names {} packages only", built.len());
    let refused: Vec<_> = built.iter().filter(|(.., l)| !is_allowed(l, &allowed)).collect();
    assert!(refused.is_empty(), "deny.toml does not allow the licence of {refused:#?}");
    println!("{} packages, each under a licence that deny.toml allows", built.len());
}

#[test]
fn opc_ua_is_built_only_where_it_is_asked_for_and_its_advisory_is_known() {
    let names = |built: BTreeSet<(String, String, String)>| -> BTreeSet<String> {
        built.into_iter().map(|(name, ..)| name).collect()
    };
    let (usual, with) = (names(built()), built_with(&["opcua"]));
    for name in ["rsa", "async-opcua", "async-opcua-client", "async-opcua-server"] {
        assert!(!usual.contains(name), "{name} is built by default");
        assert!(with.iter().any(|(there, ..)| there == name), "{name} is not built for OPC UA");
    }
    let (allowed, banned) = (listed("allow"), listed("deny"));
    for (name, _, licence) in &with {
        assert!(is_allowed(licence, &allowed), "deny.toml does not allow {licence} of {name}");
        assert!(!banned.contains(name), "{name} is banned by deny.toml");
    }
    // The advisory of rsa is accepted with a reason, and with no other feature.
    let rules = file("deny.toml");
    assert!(rules.contains("id = \"RUSTSEC-2023-0071\", reason = "));
    println!("{} packages with OPC UA, {} without", with.len(), usual.len());
}

#[test]
fn everything_comes_from_one_registry_with_a_checksum() {
    let lock = file("Cargo.lock");
    let mut sources = BTreeSet::new();
    let mut packages = 0;
    for package in lock.split("[[package]]").skip(1) {
        let field =
            |name: &str| package.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        let name = field("name").expect("a name");
        let Some(source) = field("source") else {
            assert_eq!(name, "\"headwater\"", "only this crate is built from a folder");
            continue;
        };
        assert!(source.starts_with("\"registry+"), "{name} comes from {source}");
        assert!(field("checksum").is_some_and(|sum| sum.len() == 66), "{name} has no checksum");
        sources.insert(source);
        packages += 1;
    }
    assert!(packages > 100 && sources.len() == 1, "{packages} packages of {sources:?}");
}

#[test]
fn no_banned_crate_is_built_and_crates_in_two_versions_are_known() {
    let (banned, known) = (listed("deny"), listed("skip"));
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in built() {
        assert!(!banned.contains(&name), "{name} is banned by deny.toml");
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let found: BTreeSet<String> = versions.keys().cloned().collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "built in several versions, and not in deny.toml: {new:?}");
    let over: Vec<_> = known.difference(&found).collect();
    assert!(over.is_empty(), "built in one version now, and still in deny.toml: {over:?}");
}

#[test]
fn no_dependency_takes_any_version_and_each_is_used() {
    let manifest = file("Cargo.toml");
    let mut code = String::new();
    for folder in ["src", "tests"] {
        read_code(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut code);
    }
    let mut dependencies = 0;
    let mut within = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            within = line.ends_with("dependencies]");
        }
        let Some((name, version)) = line.split_once(" = ").filter(|_| within) else { continue };
        assert!(!version.contains("\"*\""), "{line}");
        let used = name.replace('-', "_");
        let is_used =
            [format!("{used}::"), format!("use {used};")].iter().any(|u| code.contains(u));
        assert!(is_used, "{name} is not used");
        dependencies += 1;
    }
    assert!(dependencies > 20, "{dependencies} dependencies");
}

/// Adds the text of every Rust file below a folder.
fn read_code(folder: &Path, code: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_code(&path, code);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            *code += &std::fs::read_to_string(&path).expect("text");
        }
    }
}
