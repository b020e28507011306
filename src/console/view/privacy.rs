//! What leaves the clients, what protects it, what that costs and what it buys.
//!
//! ```text
//! ── thresholds and privacy ───────────────────────────────────────
//!  ε flags   2      ├────────●────┤  35.1 % of symbols wrong, alarm after 42s
//! ── what is protected ────────────────────────────────────────────
//!  Measurements never leave their client. …
//! ── what P1 has spent, at δ 1e-5 ─────────────────────────────────
//!  one sample           1 release   ε 2.00
//!  any hour           720 releases  ε 153.10
//! ── what another ε of a symbol would mean, at one false alarm in 1d
//!    ε   wrong    alarm after  a day costs
//!    1   59.5 %   2m05s        ε 8230      ███████████
//! ── ledger of every client ───────────────────────────────────────
//!  P1      720 live     2159 trained  ε 310.20
//! ```
//!
//! Words come first; while a knob is held, what it costs and buys does.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::knobs::{self, same, seconds};
use super::pen::{self, heading, part, wrapped};
use super::scene::Scene;
use crate::console::app::tuning::is_ahead;
use crate::console::app::turning;
use crate::console::clock::length;
use crate::console::mouse::{Hit, Target};
use crate::engine::knob::Knob;
use crate::privacy::words::{Explained, explain};
use crate::privacy::{EpsilonOption, Exhaustion};
use crate::session::Mode;
use crate::session::privacy::Scope;
use crate::session::privacy::{BudgetSettings, SendPolicy};

/// Rungs of ε that are shown where all would be too many.
const RUNGS: usize = 9;

/// Cells of the longest bar.
const BAR: usize = 24;

/// What the knobs say about privacy.
struct Setting {
    epsilon: Option<f64>,
    /// On trial, or as it stands.
    delta: f64,
    budget: Option<f64>,
    /// As they stand: what was worked out was worked out for these.
    ledger_delta: f64,
    arl0_s: f64,
    mode: Mode,
}

impl Setting {
    fn of(scene: &Scene) -> Option<Self> {
        let standing = scene.watched?.snapshot.as_ref()?;
        let mut setting = Self {
            epsilon: None,
            delta: 1e-5,
            budget: None,
            ledger_delta: 1e-5,
            arl0_s: 86_400.0,
            mode: standing.mode,
        };
        let trial = scene.model.tuning.as_ref().map(|tuning| tuning.trial);
        for turn in standing.knobs.iter().copied() {
            match (turn.knob, turn.to.number()) {
                (Knob::Arl0, Some(s)) => setting.arl0_s = s,
                (Knob::Delta, Some(d)) => setting.ledger_delta = d,
                _ => {}
            }
            // What is on trial is priced before it is paid.
            let turn = trial.filter(|trial| trial.knob() == turn.knob()).unwrap_or(turn);
            match (turn.knob, turn.to.number()) {
                (Knob::EpsilonFlag, e) => setting.epsilon = e,
                (Knob::Delta, Some(d)) => setting.delta = d,
                (Knob::Budget, e) => setting.budget = e,
                _ => {}
            }
        }
        Some(setting)
    }
}

/// Draws the view into `area`, its lower part scrolled by `skip` lines.
pub(crate) fn draw(
    scene: &Scene,
    skip: usize,
    area: Rect,
    buffer: &mut Buffer,
    hits: &mut Vec<Hit>,
) {
    let theme = scene.theme;
    let mut rest = area;
    let Some(setting) = Setting::of(scene) else {
        heading(buffer, pen::take(&mut rest, 1), &[("privacy", theme.strong)], theme);
        pen::put(buffer, rest, 1, 0, "nothing has left any client yet", theme.label);
        return;
    };
    hits.push(Hit { area, target: Target::Scroll });
    let knobs_rows = knobs::wanted(scene).min((area.height / 3).max(4));
    let wide = area.width >= 110;
    let (left, right) = if wide {
        pen::beside(buffer, rest, area.width / 2, theme)
    } else {
        let knobs = pen::take(&mut rest, knobs_rows);
        (knobs, rest)
    };
    let [protected, how_long, not] = explained(scene, &setting);
    let protected = block(scene, "what is protected", &protected, right.width);
    let how_long = block(scene, "for how long", &how_long, right.width);
    let not = block(scene, "what is not", &not, right.width);
    let (price, ledger) = (price(scene, &setting), ledger(scene));
    let ladder = ladder(scene, &setting);
    if wide {
        let mut left = left;
        let rows = knobs_rows.max(area.height.saturating_sub(ladder.1.len() as u16 + 1));
        knobs::draw(scene, pen::take(&mut left, rows), buffer, hits);
        column(scene, &[ladder], 0, left, buffer);
        column(scene, &[protected, how_long, not, price, ledger], skip, right, buffer);
    } else {
        knobs::draw(scene, left, buffer, hits);
        let held = scene.model.tuning.as_ref().is_some_and(|tuning| is_ahead(tuning.knob()));
        let blocks = if held {
            [ladder, price, protected, how_long, not, ledger]
        } else {
            [protected, how_long, not, price, ladder, ledger]
        };
        column(scene, &blocks, skip, right, buffer);
    }
}

type Lines = Vec<Vec<(String, Style)>>;

/// A heading and its lines.
type Block = (String, Lines);

fn block(scene: &Scene, title: &str, sentences: &[String], width: u16) -> Block {
    let lines = sentences
        .iter()
        .flat_map(|sentence| wrapped(sentence, width.saturating_sub(2)))
        .map(|text| vec![(text, scene.theme.text)])
        .collect();
    (title.to_owned(), lines)
}

fn column(scene: &Scene, blocks: &[Block], skip: usize, area: Rect, buffer: &mut Buffer) {
    let all: usize = blocks.iter().map(|(_, lines)| 1 + lines.len()).sum();
    let skip = skip.min(all.saturating_sub(usize::from(area.height)));
    let mut at = 0_usize;
    let mut row = || {
        let y = at.checked_sub(skip);
        at += 1;
        y.filter(|y| *y < usize::from(area.height)).map(|y| y as u16)
    };
    for (title, lines) in blocks {
        if let Some(y) = row() {
            heading(buffer, part(area, y, 1), &[(title.as_str(), scene.theme.strong)], scene.theme);
        }
        for pieces in lines {
            if let Some(y) = row() {
                pen::line(buffer, part(area, y, 1), 1, 0, pieces);
            }
        }
    }
    let below = all.saturating_sub(skip + usize::from(area.height));
    if below > 0 {
        let last = area.height.saturating_sub(1);
        let text = format!(" pgdn: {below} more ");
        pen::put_right(buffer, area, area.width, last, &text, scene.theme.label);
    }
}

/// What is protected, for how long and what is not, for whoever asks for the first time: the session
/// with its knobs as they stand, or as they would.
fn explained(scene: &Scene, setting: &Setting) -> [Vec<String>; 3] {
    let mut session = scene.model.subject.clone();
    session.privacy.epsilon_flag = setting.epsilon;
    session.privacy.delta = setting.delta;
    let form = session.privacy.budget.unwrap_or_default();
    session.privacy.budget = setting.budget.map(|epsilon| BudgetSettings { epsilon, ..form });
    let client = scene.model.chosen;
    let spent = scene.watched.and_then(|w| w.snapshot.as_ref()?.spent.get(client));
    let memory = spent.map(|spent| (scene.name(client), &spent.memory));
    let Explained { protected, how_long, not_protected } = explain(&session, setting.mode, memory);
    [protected, how_long, not_protected]
}

/// ε by the length of time that is protected, of the chosen client.
fn price(scene: &Scene, setting: &Setting) -> Block {
    let theme = scene.theme;
    let client = scene.model.chosen;
    let title = format!("what {} has spent, at δ {:e}", scene.name(client), setting.ledger_delta);
    let Some(spent) = scene.watched.and_then(|w| w.snapshot.as_ref()?.spent.get(client)) else {
        return (title, vec![vec![("nothing yet".to_owned(), theme.label)]]);
    };
    let mut lines: Lines = spent
        .over
        .iter()
        .map(|(scope, composed)| {
            vec![
                (format!("{:<18}", scope.label()), theme.text),
                (releases(composed.releases), theme.label),
                (epsilon(composed.epsilon), theme.strong),
            ]
        })
        .collect();
    lines.push(vec![
        (format!("{:<18}", "of it in training"), theme.text),
        (releases(spent.trained.releases), theme.label),
        (epsilon(spent.trained.epsilon), theme.text),
    ]);
    let left = match (spent.budget, spent.exhaustion) {
        (None, _) => "no budget: nothing ends by itself (:budget 500 sets one)".to_owned(),
        (Some(budget), exhaustion) => {
            let when = match exhaustion {
                Exhaustion::NoBudget | Exhaustion::Never => "lasts at this pace".to_owned(),
                Exhaustion::Now => "is gone".to_owned(),
                Exhaustion::Seconds(s) => {
                    let left = jiff::SignedDuration::try_from_secs_f64(s).unwrap_or_default();
                    format!("is gone in {}", length(left))
                }
            };
            format!("budget ε {} for {}: {when}", budget.epsilon, budget.over.label())
        }
    };
    lines.push(vec![(left, theme.text)]);
    if spent.burn_per_hour.is_finite() && spent.burn_per_hour > 0.0 {
        let text = format!("one more hour adds ε {:.2} to the whole history", spent.burn_per_hour);
        lines.push(vec![(text, theme.text)]);
    }
    (title, lines)
}

/// Every client's whole history in a line.
fn ledger(scene: &Scene) -> Block {
    let theme = scene.theme;
    let name = usize::from(scene.name_cells(10));
    let spent = scene.watched.and_then(|w| w.snapshot.as_ref()).map(|s| &s.spent[..]);
    let lines = (0..)
        .zip(spent.unwrap_or_default())
        .map(|(client, spent)| {
            let whole = spent.over.iter().find(|(scope, _)| *scope == Scope::Lifetime);
            let total = whole.map_or(f64::INFINITY, |(_, composed)| composed.epsilon);
            let seeded = if spent.private { "" } else { "  seeded: not private" };
            let chosen = client == scene.model.chosen;
            vec![
                (
                    format!("{:<name$} ", pen::cut(scene.name(client), name as u16)),
                    if chosen { theme.cursor } else { theme.text },
                ),
                (
                    format!(
                        "{:>8} live {:>8} trained  ",
                        spent.live.releases, spent.trained.releases
                    ),
                    theme.label,
                ),
                (format!("{:<14}", epsilon(total)), theme.strong),
                (seeded.to_owned(), theme.label),
            ]
        })
        .collect();
    ("ledger of every client".to_owned(), lines)
}

/// "       1 release   "
fn releases(count: u64) -> String {
    let noun = if count == 1 { "release " } else { "releases" };
    format!("{count:>8} {noun}  ")
}

/// An ε as people read it.
fn epsilon(epsilon: f64) -> String {
    if epsilon.is_finite() { format!("ε {epsilon:.2}") } else { "ε no bound".into() }
}

/// What another ε of a symbol or flag would mean, for what is really sent.
fn ladder(scene: &Scene, setting: &Setting) -> Block {
    let theme = scene.theme;
    let what = if setting.mode == Mode::Paper { "flag" } else { "symbol" };
    let title = format!(
        "what another ε of a {what} would mean, at one false alarm in {}",
        turning::length(setting.arl0_s)
    );
    let alarms = setting.mode == Mode::Evidence
        && scene.model.subject.privacy.send == SendPolicy::WhileRaised;
    let day = if alarms { "a day with one alarm" } else { "a day costs" };
    let head = format!("    ε   wrong    alarm after  {day}");
    let mut lines: Lines = vec![vec![(head, theme.label)]];
    let all = scene.watched.and_then(|w| w.snapshot.as_ref()).map_or(&[][..], |s| &s.ladder);
    let shown = shown(all, setting.epsilon);
    let longest = shown.iter().filter_map(|r| r.delay_s).fold(1.0, f64::max);
    for rung in shown {
        let here = match (rung.epsilon, setting.epsilon) {
            (Some(rung), Some(set)) => same(rung, set),
            (None, None) => true,
            _ => false,
        };
        let style = if here { theme.strong } else { theme.text };
        let name = rung.epsilon.map_or_else(|| "none".to_owned(), |e| e.to_string());
        let mark = if here { "▸" } else { " " };
        let day =
            if rung.day.is_finite() { format!("ε {:.0}", rung.day) } else { "no bound".into() };
        let (delay, bar) = match rung.delay_s {
            Some(delay_s) => {
                let cells = (delay_s / longest * BAR as f64).ceil() as usize;
                (seconds(delay_s), "█".repeat(cells.clamp(1, BAR)))
            }
            None => ("too little".to_owned(), String::new()),
        };
        let text =
            format!("{mark}{name:>4}  {:>5.1} %   {delay:<11}  {day:<10} ", 100.0 * rung.flip);
        lines.push(vec![(text, style), (bar, theme.trend)]);
    }
    (title, lines)
}

/// The rungs around the ε that is set, and the clear.
fn shown(all: &[EpsilonOption], epsilon: Option<f64>) -> Vec<EpsilonOption> {
    let Some((clear, rungs)) = all.split_last() else { return Vec::new() };
    let wanted = epsilon.unwrap_or(2.0);
    let at = rungs.iter().take_while(|r| r.epsilon.is_some_and(|e| e < wanted)).count();
    let first = at.saturating_sub(RUNGS / 2).min(rungs.len().saturating_sub(RUNGS));
    rungs.iter().skip(first).take(RUNGS).chain([clear]).copied().collect()
}
