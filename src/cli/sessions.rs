//! `headwater sessions`: what can be opened.

use std::io::{self, Write};

use color_eyre::eyre::Result;

use crate::session::{SHIPPED, Session};

/// One line a session: its name, whether its data is at hand, what it is.
pub(super) fn list(out: &mut impl Write) -> Result<()> {
    let mut needs_data = false;
    for shipped in SHIPPED {
        let session = Session::open(shipped.name)?;
        let data = match session.data_folder() {
            None if session.live().is_some() => "live".to_owned(),
            None => "built in".to_owned(),
            Some(folder) if folder.is_dir() => format!("{}/", folder.display()),
            Some(_) => {
                needs_data = true;
                "needs --data".to_owned()
            }
        };
        line(out, shipped.name, &data, &session.about)?;
    }
    if needs_data {
        writeln!(
            out,
            "\nThose marked `needs --data` read files you have: headwater open NAME --data DIR.\n\
             `headwater check NAME` says which files, and where they are published."
        )?;
    }
    Ok(())
}

fn line(out: &mut impl Write, name: &str, data: &str, about: &str) -> io::Result<()> {
    writeln!(out, "{name:<22} {data:<13} {about}")
}
