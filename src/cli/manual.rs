//! `headwater man` and `headwater completions`: written from the commands and the actions themselves.

use std::io::Write;

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use color_eyre::eyre::Result;

use super::Cli;
use crate::console::{KEYS_FILE, actions};
use crate::engine::ledger_key::KEY_FILE;

/// The variables of the environment.
const ENVIRONMENT: [(&str, &str); 22] = [
    ("HEADWATER_OPERATOR", "who is at the console, for its log; else USER or LOGNAME"),
    ("HEADWATER_CACHE", "the folder in which models are kept between runs"),
    ("HEADWATER_THREADS", "threads to work with; when not set, as many as there are processors"),
    ("XDG_CACHE_HOME, LOCALAPPDATA, HOME", "the folder above it when HEADWATER_CACHE is not set"),
    ("HEADWATER_CONFIG", "the folder of keys.ron and of ledger.key, which signs ledgers"),
    ("XDG_CONFIG_HOME, HOME", "the folder above it when HEADWATER_CONFIG is not set"),
    (
        "HEADWATER_LIVE",
        "the folder of what live sources keep: history that was learned from, queues",
    ),
    ("XDG_STATE_HOME, HOME", "the folder above it when HEADWATER_LIVE is not set"),
    ("HEADWATER_LOG", "how much `run` logs to standard error: error, warn, info, debug"),
    ("HEADWATER_MQTT_USER", "who `make --live` is to the broker"),
    ("HEADWATER_MQTT_PASSWORD", "its password; it is sent over TLS only"),
    ("HEADWATER_MQTT_CA", "a file with the certificate that the broker's is signed with"),
    ("HEADWATER_OPCUA_USER", "the one user that the plant of `make --live opc.tcp://…` lets in"),
    ("HEADWATER_OPCUA_PASSWORD", "and its password"),
    ("HEADWATER_LEDGERS", "the folder of ledgers that count a budget for the whole history"),
    ("HEADWATER_RECORDINGS", "the default folder of recordings"),
    ("XDG_DATA_HOME, HOME", "the folder above these two when they are not set"),
    ("HEADWATER_FAULT", "a fault for tests: engine-panic ends the engine's thread"),
    ("NO_COLOR", "no colours: bold, dim, underlined and reversed text instead"),
    ("COLORTERM, TERM", "how many colours the terminal has"),
    ("COLORFGBG", "whether its background is light"),
    ("LC_ALL, LC_CTYPE, LANG", "whether it can show more than ASCII"),
];

const EXIT: [(&str, &str); 4] = [
    ("0", "done"),
    ("1", "a failure, said in words"),
    ("2", "wrong usage"),
    ("128 + n", "the console was ended by signal n"),
];

/// The same at the end of the long help.
pub(super) fn environment() -> String {
    let rows = ENVIRONMENT.map(|(name, what)| format!("  {name}\n          {what}"));
    format!("Environment:\n{}", rows.join("\n"))
}

/// The manual page.
pub(super) fn man(out: &mut impl Write) -> Result<()> {
    let mut command = Cli::command();
    command.build();
    let page = Man::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    let mut rest = Roff::new();
    rest.control("SH", ["COMMANDS"]);
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        describe(&mut rest, command);
    }
    rest.control("SH", ["KEYS"]);
    for (keys, _, what) in actions() {
        tagged(&mut rest, &keys, what);
    }
    rest.control("SH", ["FILES"]);
    tagged(&mut rest, KEYS_FILE, "other keys; `headwater keys --ron` prints one to begin with");
    tagged(&mut rest, KEY_FILE, "the private key that signs ledgers; keep a backup of it");
    for (section, rows) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("EXIT STATUS", &EXIT[..])] {
        rest.control("SH", [section]);
        for (tag, what) in rows {
            tagged(&mut rest, tag, what);
        }
    }
    rest.to_writer(out)?;
    Ok(())
}

/// A command, and the commands below it, with what they take.
fn describe(page: &mut Roff, command: &Command) {
    let mut usage = command.clone();
    let usage = usage.render_usage().to_string();
    page.control("SS", [usage.trim_start_matches("Usage: ")]);
    page.text([roman(command.get_about().map(ToString::to_string).unwrap_or_default())]);
    for argument in command.get_arguments().filter(|a| a.get_id() != "help" && !a.is_hide_set()) {
        let name = match argument.get_long() {
            Some(long) => format!("--{long}"),
            None => argument.get_value_names().unwrap_or_default().join(" "),
        };
        tagged(page, &name, &argument.get_help().map(ToString::to_string).unwrap_or_default());
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        describe(page, below);
    }
}

fn tagged(page: &mut Roff, tag: &str, what: &str) {
    page.control("TP", []);
    page.text([bold(tag)]);
    page.text([roman(what)]);
}

/// Completions for `shell`.
pub(super) fn completions(out: &mut impl Write, shell: Shell) {
    generate(shell, &mut Cli::command(), "headwater", out);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Names of our own variables in all sources below a folder.
    fn variables(folder: &Path, found: &mut Vec<String>) {
        let mark = concat!("\"", "HEADWATER_");
        for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                variables(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                let names = text.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
                found.extend(names.map(|name| format!("{}{name}", mark.trim_start_matches('"'))));
            }
        }
    }

    #[test]
    fn every_variable_of_our_own_is_in_the_page_the_help_and_the_guide() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        variables(&root.join("src"), &mut found);
        let guide = std::fs::read_to_string(root.join("src/guide/manual.md")).expect("a manual");
        let mut page = Vec::new();
        man(&mut page).expect("a page");
        let page = String::from_utf8(page).expect("text").replace("\\-", "-");
        assert!(found.len() > 3, "{found:?}");
        for name in found {
            assert!(environment().contains(&name), "{name} is not in the help");
            assert!(page.contains(&name), "{name} is not in the manual");
            assert!(guide.contains(&name), "{name} is not in the guide's manual");
        }
    }
}
