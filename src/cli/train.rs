//! `headwater train`: models are made and kept.

use std::io::{IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use clap::Args;
use color_eyre::eyre::{Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{SessionArgs, interrupt};
use crate::engine::material::Material;
use crate::engine::vendor::{self, ClientVendor};
use crate::model::train::{Progress, TrainReport};
use crate::session::{Decimation, Session};

#[derive(Debug, Args)]
pub(super) struct TrainArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// Make the proprietary models alone, as a vendor delivers them
    #[arg(long)]
    proprietary: bool,
    /// File to write; the cache when absent
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(out: &mut impl Write, args: &TrainArgs) -> Result<()> {
    let session = args.session.open()?;
    if !args.proprietary {
        bail!("only --proprietary can be trained so far");
    }
    let Some(path) = &args.out else { bail!("--proprietary needs --out FILE") };
    let material = Material::read(&session, every(&session), &|_| None)?;
    print_material(out, &material)?;
    let models = proprietary(&session, &material)?;
    print_models(out, &material, &models)?;
    vendor::save(path, &material, &models)?;
    writeln!(out, "written: {}", path.display())?;
    Ok(())
}

fn every(session: &Session) -> u32 {
    match session.sampling.decimate {
        Decimation::Every(k) => k,
        Decimation::Auto => 1,
    }
}

fn print_material(out: &mut impl Write, material: &Material) -> Result<()> {
    for client in &material.clients {
        writeln!(
            out,
            "{:<10} {} sensors, {} steps of {} s to fit, {} to judge on",
            client.name,
            client.view.used.len(),
            client.fit.nrows(),
            material.layout.period_s,
            client.calibration.nrows()
        )?;
        for (sensor, why) in &client.left_out {
            writeln!(out, "           without {sensor}: {why}")?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Trains with a bar per model on a terminal, quietly elsewhere.
fn proprietary(session: &Session, material: &Material) -> Result<Vec<ClientVendor>> {
    let stop = interrupt::watch("what was learned is kept");
    let bar = ProgressBar::new(1000).with_style(
        ProgressStyle::with_template("{msg:<40} {bar:30} {percent:>3} %  {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    // Models are trained side by side: the bar adds up what each has behind it.
    let done: Mutex<Vec<(String, usize, usize)>> = Mutex::new(Vec::new());
    let models = 2 * material.clients.len();
    let on_progress = |step: Progress| {
        if let Ok(mut done) = done.lock() {
            let key = format!("{} {}", step.client, step.iterations);
            match done.iter_mut().find(|(name, at, _)| *name == key && *at < step.iteration) {
                Some(entry) => entry.1 = step.iteration,
                None => done.push((key, step.iteration, step.iterations)),
            }
            let share: f64 = done.iter().map(|(_, at, all)| *at as f64 / *all as f64).sum();
            bar.set_position((1000.0 * share / models as f64) as u64);
            bar.set_message(format!(
                "{} epoch {} of {}, loss {:.4}",
                step.client, step.epoch, step.epochs, step.loss
            ));
        }
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let models = vendor::train(material, &session.model, session.seed, threads, &on_progress)?;
    bar.finish_and_clear();
    Ok(models)
}

fn print_models(out: &mut impl Write, material: &Material, models: &[ClientVendor]) -> Result<()> {
    writeln!(
        out,
        "\nclient     model      innovation MSE  persistence   loss, first and last epoch"
    )?;
    for (client, models) in material.clients.iter().zip(models) {
        let Some(reports) = &models.reports else { continue };
        for (kind, report) in ["watching", "sending"].into_iter().zip(reports) {
            if let Some(report) = report {
                print_report(out, &client.name, kind, report)?;
            }
        }
    }
    Ok(())
}

fn print_report(out: &mut impl Write, client: &str, kind: &str, r: &TrainReport) -> Result<()> {
    let figure = |mse: Option<f64>| mse.map_or_else(|| "-".into(), |mse| format!("{mse:.4}"));
    let ends = match (r.epoch_loss.first(), r.epoch_loss.last()) {
        (Some(first), Some(last)) => format!("{first:.4} → {last:.4}"),
        _ => "closed form".into(),
    };
    writeln!(
        out,
        "{client:<10} {kind:<10} {:>14} {:>12}   {ends}{}",
        figure(r.held_out_mse),
        figure(r.persistence_mse),
        if r.stopped { " (stopped early)" } else { "" }
    )?;
    Ok(())
}
