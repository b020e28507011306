//! `headwater screen`: one picture of the console without a terminal, by the console's own drawing.

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use color_eyre::eyre::Result;

use super::{LookArgs, SessionArgs};
use crate::console::{self, Format, Still};
use crate::engine::handle::Moment;

#[derive(Debug, Args)]
pub(super) struct ScreenArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// The moment: a time of the data's clock such as 10:38, or a distance from the start such as "+8h"
    #[arg(long, value_name = "T", value_parser = console::moment)]
    at: Option<Moment>,
    /// Columns and rows
    #[arg(long, value_name = "WxH", default_value = "120x40", value_parser = size)]
    size: (u16, u16),
    /// What fills the screen
    #[arg(long, value_name = "NAME", default_value = "overview", value_parser = views())]
    view: String,
    /// What to write
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    look: LookArgs,
}

fn views() -> PossibleValuesParser {
    PossibleValuesParser::new(console::view_names())
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once(['x', 'X']).and_then(|(width, height)| {
        Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
    });
    parts
        .filter(|(width, height)| (1..=1000).contains(width) && (1..=1000).contains(height))
        .ok_or_else(|| format!("expected columns and rows such as 120x40, found {text:?}"))
}

pub(super) fn write(out: &mut impl Write, args: &ScreenArgs) -> Result<()> {
    let subject = args.session.subject()?;
    let ScreenArgs { at, size, format, .. } = *args;
    let still = Still { at, size, view: &args.view, look: args.look.into(), format };
    out.write_all(console::still(subject, &still)?.as_bytes())?;
    Ok(())
}
