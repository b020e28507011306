//! `headwater certs`: certificates and the broker's settings for a federation over MQTT.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use color_eyre::eyre::Result;

use super::SessionArgs;
use crate::remote::certs::{self, Plan};
use crate::stream::{self, Part};

#[derive(Debug, Args)]
pub(super) struct CertsArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// Folder to write to; what is there already is kept
    folder: PathBuf,
    /// A name or address under which sites reach the broker; may be given several times
    #[arg(long = "host", value_name = "NAME", default_values = ["localhost", "127.0.0.1", "::1"])]
    hosts: Vec<String>,
    /// Port of the broker
    #[arg(long, value_name = "N", default_value_t = 8883)]
    port: u16,
    /// Where the broker's folder will lie on its machine; where it is written when absent
    #[arg(long, value_name = "DIR")]
    installed: Option<PathBuf>,
}

pub(super) fn run(out: &mut impl Write, args: &CertsArgs) -> Result<()> {
    let session = args.session.open()?;
    // A session that names its clients needs no data here.
    let mut clients: Vec<String> = session.clients.iter().map(|c| c.name.clone()).collect();
    if clients.is_empty() {
        let layout = stream::open(&session, Part::Fit)?.layout().clone();
        clients.extend(layout.clients.into_iter().map(|client| client.name));
    }
    let plan = Plan {
        session: &session.name,
        clients: &clients,
        hosts: &args.hosts,
        installed: args.installed.as_deref(),
        port: args.port,
    };
    let made = certs::make(&plan, &args.folder)?;
    let folder = args.folder.display();
    if !made.new.is_empty() {
        writeln!(out, "made    {}", made.new.join(", "))?;
    }
    if !made.kept.is_empty() {
        writeln!(out, "kept    {}", made.kept.join(", "))?;
    }
    writeln!(out, "broker  mosquitto -c {folder}/broker/mosquitto.conf")?;
    writeln!(
        out,
        "Copy each folder below {folder} to its machine, and no other. {folder}/ca/ca.key signs \
         certificates: keep it off the network."
    )?;
    Ok(())
}
