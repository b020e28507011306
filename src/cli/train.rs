//! `headwater train`: models are made and kept.

use std::io::{IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use clap::Args;
use color_eyre::eyre::{Result, bail, eyre};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::ledger::mechanism;
use super::run::print_head;
use super::{SessionArgs, interrupt, remove_stale};
use crate::base::notice::print_notice;
use crate::engine::compare::{Comparison, compare};
use crate::engine::decimation;
use crate::engine::prepare::{Prepared, Stage, cache_file, keep_oracle, kept};
use crate::engine::train::train;
use crate::engine::vendor::{self, ClientVendor};
use crate::federation::Reached;
use crate::nn::train::{Progress, TrainReport};
use crate::privacy::Spend;
use crate::session::{Proprietary as Kind, Session};
use crate::site::material::{LeftOut, Material};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct TrainArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// Make the proprietary models alone, as a vendor delivers them
    #[arg(long)]
    proprietary: bool,
    /// Train the centralised oracle too, say how near the federation comes to it, and keep how its
    /// states move together for the console (takes minutes)
    #[arg(long)]
    oracle: bool,
    /// With --proprietary: judge every kind of model beside persistence, write nothing
    #[arg(long, requires = "proprietary")]
    every_kind: bool,
    /// File to write; the cache when absent
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Enter what training releases in this signed ledger; that of a lifetime budget when absent
    #[arg(long, value_name = "FILE", conflicts_with = "proprietary")]
    ledger: Option<PathBuf>,
    /// With --out: replace a file that is there
    #[arg(long, requires = "out")]
    force: bool,
}

pub(super) fn run(out: &mut impl Write, args: &TrainArgs) -> Result<()> {
    let session = args.session.open()?;
    if args.every_kind {
        let material = Material::read(&session, decimation::every(&session)?, &|_| None)?;
        print_material(out, &material)?;
        print_heading(out)?;
        let threads = crate::base::threads::threads();
        for kind in [Kind::Linear, Kind::OwnLag, Kind::Residual, Kind::Paper] {
            let reports = vendor::judge(&material, kind, &session.model, session.seed, threads)?;
            for (client, report) in material.clients.iter().zip(&reports) {
                print_report(out, &client.name, &format!("{kind:?}"), report)?;
            }
            out.flush()?;
        }
        return Ok(());
    }
    // Said before hours of training, not after them.
    if let Some(path) = &args.out {
        refuse_to_replace(path, args.force)?;
    }
    if args.proprietary {
        let Some(path) = &args.out else { bail!("--proprietary needs --out FILE") };
        let material = Material::read(&session, decimation::every(&session)?, &|_| None)?;
        print_material(out, &material)?;
        let models = proprietary(&session, &material)?;
        print_models(out, &material, &models)?;
        vendor::save(path, &session, &material, &models)?;
        writeln!(out, "written: {}", path.display())?;
        let reports = models.iter().filter_map(|models| models.reports.as_ref()).flatten();
        if reports.flatten().any(|report| report.stopped) {
            bail!("interrupted: the models learned for a shorter time than the session says");
        }
        return Ok(());
    }
    let file = args.out.clone().unwrap_or_else(|| cache_file(&session));
    // Asking again for what was stopped early means wanting the whole of it.
    if was_stopped(&session, &file) {
        std::fs::remove_file(&file)?;
    }
    let stop = interrupt::watch("what was learned is kept");
    let bar = bar();
    let trained = train(&session, &file, args.ledger.clone(), &mut |stage| {
        match stage {
            Stage::Reading => bar.set_message("reading nominal data"),
            Stage::Delivered => bar.set_message("proprietary models as delivered"),
            Stage::Proprietary(p) => {
                bar.set_length(p.iterations as u64);
                bar.set_position(p.iteration as u64);
                bar.set_message(format!("{} learns, loss {:.4}", p.client, p.loss));
            }
            Stage::Federation(p) => {
                bar.set_length(p.rounds as u64);
                bar.set_position(p.round as u64);
                bar.set_message(format!(
                    "round {} of {}, L_s {:.4}",
                    p.round, p.rounds, p.server_loss
                ));
            }
            Stage::Calibrating => bar.set_message("calibrating"),
            Stage::Notice(what) => bar.suspend(|| print_notice(what)),
        }
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    let (mut prepared, head) = trained.map_err(|why| eyre!(why))?;
    if let (Some(_), Some(why)) = (&args.out, &prepared.not_kept) {
        bail!("{why}");
    }
    print_prepared(out, &session, &prepared)?;
    head.as_ref().map_or(Ok(()), |head| print_head(out, head))?;
    out.flush()?;
    if stop.load(Ordering::Relaxed) {
        let rounds = prepared.history.as_ref().map_or(0, |history| history.rounds);
        let when = if prepared.stopped { "before its end, " } else { "" };
        let kept = if prepared.not_kept.is_none() { "kept" } else { "not kept" };
        bail!("interrupted: training ended {when}after {rounds} rounds, and its models are {kept}");
    }
    let found = compare(&session, &prepared, args.oracle)?;
    print_comparison(out, &found)?;
    if let Some(correlation) = found.oracle {
        keep_oracle(&mut prepared, correlation)?;
    }
    Ok(())
}

fn refuse_to_replace(file: &Path, force: bool) -> Result<()> {
    if !force && std::fs::symlink_metadata(file).is_ok() {
        bail!("{} is there already: --force replaces it", file.display());
    }
    if let (Some(folder), Some(name)) = (file.parent(), file.file_name()) {
        remove_stale(folder, &name.to_string_lossy());
    }
    Ok(())
}

fn was_stopped(session: &Session, file: &Path) -> bool {
    kept(session, file).is_ok_and(|kept| kept.stopped)
}

fn print_comparison(out: &mut impl Write, found: &Comparison) -> Result<()> {
    writeln!(out, "\non the calibration range, which nothing was fitted to:")?;
    writeln!(out, "server loss L_s {:.4}", found.server_loss)?;
    for client in &found.clients {
        let order = if client.r_c >= client.r_a { "≥" } else { "<" };
        writeln!(
            out,
            "{:<10} proprietary ‖r_c‖² {:.4} {order} {:.4} ‖r_a‖² augmented",
            client.name, client.r_c, client.r_a
        )?;
    }
    let pairs: Vec<String> =
        found.correlation.iter().map(|(model, c)| format!("{model} {c:.3}")).collect();
    writeln!(out, "mean |correlation| of states between clients: {}", pairs.join(", "))?;
    for client in &found.clients {
        for (pass, b) in client.beside.iter().enumerate() {
            writeln!(
                out,
                "{:<10} after pass {:>2}: ‖x_a − x_o‖ {:.4}  ‖x_s − x_o‖ {:.4}  (‖x_c − x_o‖ {:.4})",
                client.name,
                pass + 1,
                b.x_a,
                b.x_s,
                b.x_c
            )?;
        }
        if let Some(b) = client.beside.last() {
            let rho = b.rho.map_or_else(|| "none".into(), |rho| format!("{rho:.2}"));
            writeln!(
                out,
                "           L_f {:.2}  L_h {:.2}  ‖ΔK‖ {:.2}  ρ {rho}: the condition of theorem 6.10 {} \
                 ({:.0} % of x_o is not a linear map of the client's state)",
                b.l_f.max,
                b.l_h.max,
                b.delta_k.max,
                b.verdict(),
                100.0 * b.unexplained
            )?;
        }
    }
    Ok(())
}

fn print_prepared(out: &mut impl Write, session: &Session, prepared: &Prepared) -> Result<()> {
    match prepared.history.as_ref().filter(|_| prepared.fresh) {
        None => writeln!(out, "nothing to do: session and data are unchanged")?,
        Some(history) => {
            let word = if prepared.stopped { "stopped after" } else { "trained in" };
            writeln!(
                out,
                "{word} {} rounds, {:.1} MB sent in both directions",
                history.rounds,
                history.bytes as f64 / 1e6
            )?;
            let eighth = history.reached.len().div_ceil(8).max(1);
            let ends = [
                ("first", history.reached.iter().take(eighth).collect::<Vec<_>>()),
                ("last", history.reached.iter().rev().take(eighth).collect()),
            ];
            for (which, words) in ends {
                let n = words.len().max(1) as f64;
                let mean =
                    |of: &dyn Fn(&Reached) -> f64| words.iter().map(|w| of(w)).sum::<f64>() / n;
                let clients: Vec<String> = (0..prepared.clients.len())
                    .map(|m| {
                        format!("{:.4}", mean(&|w| w.client_loss.get(m).copied().unwrap_or(0.0)))
                    })
                    .collect();
                writeln!(
                    out,
                    "{which:>5} eighth   L_s {:.4}   L_a {}",
                    mean(&|w| w.server_loss),
                    clients.join("  ")
                )?;
            }
        }
    }
    for client in &prepared.clients {
        writeln!(
            out,
            "{:<10} {} sensors   tau_c {:.2}   tau_a {:.2}",
            client.name,
            client.view.used.len(),
            client.nominal_c.distances.threshold(session.thresholds.tau_c),
            client.nominal_a.distances.threshold(session.thresholds.tau_a),
        )?;
        print_left_out(out, &client.left_out)?;
    }
    for (client, trained) in prepared.clients.iter().zip(&prepared.spent.clients) {
        for trained in trained {
            writeln!(
                out,
                "{:<10} {} × {} sent: {}",
                client.name,
                trained.count,
                trained.what.label(),
                mechanism(trained.spend)
            )?;
        }
    }
    let noise = prepared.spent.clients.iter().flatten().find(|t| t.spend != Spend::Clear);
    if let Some(trained) = noise {
        writeln!(out, "noise: {}", trained.randomness.label())?;
    }
    if prepared.not_kept.is_none() {
        writeln!(out, "kept in {}", prepared.file.display())?;
    }
    Ok(())
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1000).with_style(
        ProgressStyle::with_template("{msg:<40} {bar:30} {percent:>3} %  {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

fn print_left_out(out: &mut impl Write, left_out: &[(String, LeftOut)]) -> Result<()> {
    for (sensor, why) in left_out {
        writeln!(out, "           without {sensor}: {why}")?;
    }
    Ok(())
}

fn print_material(out: &mut impl Write, material: &Material) -> Result<()> {
    for client in &material.clients {
        writeln!(
            out,
            "{:<10} {} sensors, {} steps of {} s to fit, {} to judge on",
            client.name,
            client.view.used.len(),
            client.fit_rows(),
            material.layout.period_s,
            client.calibration_rows()
        )?;
        print_left_out(out, &client.left_out)?;
    }
    out.flush()?;
    Ok(())
}

/// Trains with a bar per model on a terminal, quietly elsewhere.
fn proprietary(session: &Session, material: &Material) -> Result<Vec<ClientVendor>> {
    let stop = interrupt::watch("what was learned is kept");
    let bar = bar();
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
    let threads = crate::base::threads::threads();
    let models = vendor::train((material, 0), &session.model, session.seed, threads, &on_progress)?;
    bar.finish_and_clear();
    Ok(models)
}

fn print_models(out: &mut impl Write, material: &Material, models: &[ClientVendor]) -> Result<()> {
    print_heading(out)?;
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

fn print_heading(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "\nclient     model      innovation MSE  persistence   loss, first and last epoch"
    )?;
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
