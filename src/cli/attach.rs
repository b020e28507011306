//! `headwater open --attach PATH`: the console of a service that runs elsewhere on this machine.

use std::process::ExitCode;

use color_eyre::eyre::Result;

use super::{AttachArgs, LookArgs};

/// Joins the service and shows it.
#[cfg(unix)]
pub(super) fn watch(args: &AttachArgs, look: LookArgs) -> Result<ExitCode> {
    use std::process::Termination as _;

    use color_eyre::eyre::{bail, eyre};

    use crate::attach::joined::Joined;
    use crate::console::{self, Keys, Subject};

    let Some(address) = &args.attach else { bail!("--attach needs the path of a socket") };
    let joined = Joined::join(address, args.read_only).map_err(|why| eyre!(why))?;
    let subject = Subject::Service(Box::new(joined));
    Ok(console::run(subject, look.into(), false, None, Keys::StandardInput)?.report())
}

#[cfg(not(unix))]
pub(super) fn watch(_args: &AttachArgs, _look: LookArgs) -> Result<ExitCode> {
    color_eyre::eyre::bail!("a service is joined over a local socket, which this system has not")
}
