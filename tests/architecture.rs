//! The wall between site and server, held up inside the crate as well: who may read measurements, who
//! may make something of a state, and who may name whom.

use std::fs;
use std::path::{Path, PathBuf};

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the sources are there") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(&root).expect("below the sources").display().to_string();
        (name, fs::read_to_string(path).expect("a readable source"))
    };
    files.iter().map(read).collect()
}

/// The code of a file without its tests and comments. Test modules stand at the end of a file or in
/// files of their own.
fn production(name: &str, text: &str) -> Option<String> {
    let is_test = ["tests", "test_support", "testing"].iter().any(|part| {
        name.split(['/', '.']).any(|piece| piece == *part || piece.ends_with("_tests"))
    });
    if is_test {
        return None;
    }
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Files outside `allowed` folders that contain one of `words`.
fn trespassers(words: &[&str], allowed: &[&str]) -> Vec<String> {
    let is_allowed = |name: &str| {
        allowed.iter().any(|module| {
            name.strip_prefix(module).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
        })
    };
    let mut found = Vec::new();
    for (name, text) in sources() {
        let Some(code) = production(&name, &text) else { continue };
        for word in words.iter().filter(|word| !is_allowed(&name) && code.contains(**word)) {
            found.push(format!("{name}: {word}"));
        }
    }
    found
}

#[test]
fn only_streams_sites_and_the_writer_of_built_in_data_read_measurements() {
    // Models are handed standardised numbers by their site.
    let words = [".raw_sensors(", ".raw_inputs(", ".raw_values(", ".raw_values_mut("];
    assert_eq!(trespassers(&words, &["stream", "site", "make"]), Vec::<String>::new());
    // The rule can fail: streams themselves do read them.
    assert!(!trespassers(&words, &["stream", "make"]).is_empty());
}

#[test]
fn the_local_view_is_for_screens_and_checks_on_the_same_machine() {
    let words = ["local::measurements", "measurements_of(", "nominal_rows("];
    let allowed = ["site", "console", "cli", "study"];
    assert_eq!(trespassers(&words, &allowed), Vec::<String>::new());
}

#[test]
fn only_a_site_makes_an_estimate_of_a_state_and_only_the_server_one_of_a_gradient() {
    let nobody = Vec::<String>::new();
    assert_eq!(trespassers(&["Estimate::of_state("], &["privacy", "site"]), nobody);
    assert_eq!(trespassers(&["Estimate::of_gradient("], &["privacy", "server"]), nobody);
    assert_eq!(trespassers(&[".unprotected()"], &["privacy", "site"]), nobody);
    // What is made of entered releases: an enrolment, and nothing else.
    assert_eq!(trespassers(&["enter_made_of("], &["privacy", "site"]), nobody);
    let enrolments = trespassers(&["enter_made_of("], &["privacy"]);
    assert_eq!(enrolments, ["site.rs: enter_made_of("]);
    // A rehearsal is heard on its own machine: only the engine, which holds both, may hear it.
    assert_eq!(trespassers(&[".heard()"], &["wire", "engine"]), nobody);
}

#[test]
fn server_incident_wire_and_privacy_never_name_a_row_a_frame_or_a_site() {
    for module in ["server", "incident", "wire", "privacy", "evidence"] {
        for (name, text) in sources() {
            let inside = name.strip_prefix(module);
            if !inside.is_some_and(|rest| rest.starts_with('/') || rest == ".rs") {
                continue;
            }
            let Some(code) = production(&name, &text) else { continue };
            for word in ["crate::stream", "crate::site", "Row<", "Frame"] {
                assert!(!code.contains(word), "{name} names {word}");
            }
        }
    }
}

#[test]
fn sites_never_name_the_server_and_the_server_no_site() {
    for (module, other) in [("site", "crate::server"), ("server", "crate::site")] {
        let others: Vec<String> = sources()
            .into_iter()
            .filter(|(name, _)| {
                name.strip_prefix(module).is_some_and(|rest| rest.starts_with(['/', '.']))
            })
            .filter_map(|(name, text)| {
                production(&name, &text).filter(|code| code.contains(other)).map(|_| name)
            })
            .collect();
        assert_eq!(others, Vec::<String>::new(), "{module} must not name {other}");
    }
}

#[test]
fn every_promise_of_the_guide_names_a_test_that_exists() {
    let mut code: String = sources().into_iter().map(|(_, text)| text).collect();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the tests are there") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                code += &fs::read_to_string(path).expect("a readable test");
            }
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide/guarantees.rs");
    let page = fs::read_to_string(page).expect("the page is there");
    let is_a_name = |name: &&str| name.matches('_').count() >= 3 && !name.contains([':', ' ']);
    let names: Vec<&str> = page.split('`').filter(is_a_name).collect();
    assert!(names.len() > 25, "{names:?}");
    for name in names {
        assert!(code.contains(&format!("fn {name}(")), "there is no test {name}");
    }
}

/// The modules in the order of the table in `src/lib.rs`.
fn map() -> Vec<String> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let lib = fs::read_to_string(lib).expect("the library's own page");
    let row = |line: &str| Some(line.strip_prefix("//! | [`")?.split('`').next()?.to_owned());
    lib.lines().filter_map(row).collect()
}

/// Names of the crate's modules that follow `crate::` in a text, grouped imports included.
fn imported(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or_default(),
            None => rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""),
        };
        let word = |name: &&str| !name.is_empty();
        found.extend(names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(word));
    }
    found
}

/// Imports of `importer` that stand below it in the map, or that only commands, measurements of speed
/// and tests may have.
fn against_the_map(map: &[String], importer: &str, code: &str) -> Vec<String> {
    let place = |name: &str| map.iter().position(|module| module == name);
    let own = place(importer);
    let wrong = |name: &&str| {
        let is_below = place(name).is_some_and(|other| own.is_none_or(|own| other > own));
        let is_screen =
            *name == "console" && !["console", "bench", "cli", "test_api"].contains(&importer);
        is_below || is_screen
    };
    imported(code).into_iter().filter(wrong).map(str::to_owned).collect()
}

#[test]
fn imports_follow_the_table_of_the_library() {
    let map = map();
    assert!(map.len() > 20, "{map:?}");
    for (name, text) in sources() {
        let Some(code) = production(&name, &text) else { continue };
        let importer = name.split(['/', '.']).next().unwrap_or_default();
        if ["lib", "main", "build", "shared"].contains(&importer) {
            continue;
        }
        assert!(map.iter().any(|module| module == importer), "{name} is in no row of the table");
        let wrong = against_the_map(&map, importer, &code);
        assert!(wrong.is_empty(), "{name} imports {wrong:?}, which stand below {importer}");
    }
    // The rule can fail.
    let wrong = |importer, code| !against_the_map(&map, importer, code).is_empty();
    assert!(wrong("server", "use crate::engine::run::Run;"));
    assert!(wrong("session", "use crate::{rng, stream};"));
    assert!(wrong("study", "crate::console::run()"));
    assert!(!wrong("cli", "use crate::console::run;"));
}
