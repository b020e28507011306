//! What leaves the clients, what protects it, what that costs and what it buys.
//!
//! ```text
//! ── thresholds and privacy ───────────────────────────────────────
//!  ε flags   2      ├────────●────┤  11.9 % of flags are turned
//! ── what P1 has spent, at δ 1e-5 ─────────────────────────────────
//!  one sample           1 releases  ε 2.00
//!  any hour           720 releases  ε 153.10
//! ── ledger of every client ───────────────────────────────────────
//!  P1      720 live     2159 trained  ε 310.20
//! ── what is protected ────────────────────────────────────────────
//!  Measurements never leave their client. …
//! ── what another ε would mean ────────────────────────────────────
//!  ε    turned   alarm after   answers at one false alarm in 1d
//!  1    26.9 %   2m05s         ███████████
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::knobs;
use super::pen::{self, heading, part, wrapped};
use super::scene::Scene;
use crate::console::app::turning;
use crate::console::clock::length;
use crate::console::mouse::{Hit, Target};
use crate::engine::run::knob::Turn;
use crate::privacy::price::FlagPrice;
use crate::privacy::words::{Explained, explain};
use crate::privacy::{Exhaustion, Scope};
use crate::session::Mode;

/// ε per answer that the table goes through.
const LADDER: [f64; 9] = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];

/// What the knobs say about privacy.
struct Setting {
    epsilon: Option<f64>,
    delta: f64,
    arl0_s: f64,
    mode: Mode,
    period_s: f64,
}

impl Setting {
    fn of(scene: &Scene) -> Option<Self> {
        let watched = scene.watched?;
        let standing = watched.standing.as_ref()?;
        let mut setting = Self {
            epsilon: None,
            delta: 1e-5,
            arl0_s: 86_400.0,
            mode: standing.mode,
            period_s: watched.history.period().as_secs_f64(),
        };
        let trial = scene.model.tuning.as_ref().map(|tuning| tuning.trial);
        for turn in standing.knobs.iter().copied() {
            // What is on trial is priced before it is paid.
            let turn = trial.filter(|trial| trial.knob() == turn.knob()).unwrap_or(turn);
            match turn {
                Turn::EpsilonFlag(e) => setting.epsilon = e,
                Turn::Delta(d) => setting.delta = d,
                Turn::Arl0(s) => setting.arl0_s = s,
                _ => {}
            }
        }
        Some(setting)
    }
}

/// Draws the view into `area`, its lower part scrolled by `skip` lines.
pub fn draw(scene: &Scene, skip: usize, area: Rect, buffer: &mut Buffer, hits: &mut Vec<Hit>) {
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
        knobs::draw(scene, pen::take(&mut left, knobs_rows.max(area.height / 2)), buffer, hits);
        column(scene, &[ladder], 0, left, buffer);
        column(scene, &[price, ledger, protected, how_long, not], skip, right, buffer);
    } else {
        knobs::draw(scene, left, buffer, hits);
        column(scene, &[price, ladder, ledger, protected, how_long, not], skip, right, buffer);
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
}

/// What is protected, for how long and what is not, for whoever asks for the first time: the session
/// with its knobs as they stand, or as they would.
fn explained(scene: &Scene, setting: &Setting) -> [Vec<String>; 3] {
    let mut session = scene.model.subject.clone();
    session.privacy.epsilon_flag = setting.epsilon;
    session.privacy.delta = setting.delta;
    let Explained { protected, how_long, not_protected } = explain(&session, setting.mode);
    [protected, how_long, not_protected]
}

/// ε by the length of time that is protected, of the chosen client.
fn price(scene: &Scene, setting: &Setting) -> Block {
    let theme = scene.theme;
    let client = scene.model.chosen;
    let title = format!("what {} has spent, at δ {:e}", scene.name(client), setting.delta);
    let Some(spent) = scene.watched.and_then(|w| w.standing.as_ref()?.spent.get(client)) else {
        return (title, vec![vec![("nothing yet".to_owned(), theme.label)]]);
    };
    let mut lines: Lines = spent
        .over
        .iter()
        .map(|(scope, composed)| {
            vec![
                (format!("{:<18}", scope.label()), theme.text),
                (format!("{:>8} releases  ", composed.releases), theme.label),
                (epsilon(composed.epsilon), theme.strong),
            ]
        })
        .collect();
    lines.push(vec![
        (format!("{:<18}", "of it in training"), theme.text),
        (format!("{:>8} releases  ", spent.trained.releases), theme.label),
        (epsilon(spent.trained.epsilon), theme.text),
    ]);
    let left = match (spent.budget, spent.exhaustion) {
        (None, _) => "no budget: nothing ends by itself".to_owned(),
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
    let spent = scene.watched.and_then(|w| w.standing.as_ref()).map(|s| &s.spent[..]);
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

/// An ε as people read it.
fn epsilon(epsilon: f64) -> String {
    if epsilon.is_finite() { format!("ε {epsilon:.2}") } else { "ε no bound".into() }
}

/// What another ε per answer would mean for detection.
fn ladder(scene: &Scene, setting: &Setting) -> Block {
    let theme = scene.theme;
    let arl0 = setting.arl0_s / setting.period_s;
    let title = format!(
        "what another ε of a flag would mean, at one false alarm in {}",
        turning::length(setting.arl0_s)
    );
    let mut lines: Lines = vec![vec![("   ε    turned   alarm after".to_owned(), theme.label)]];
    let delays: Vec<Option<(f64, f64)>> = LADDER
        .iter()
        .map(|epsilon| {
            let price = FlagPrice::of(*epsilon, arl0).ok()?;
            Some((price.flip, price.cusum?.arl1 * setting.period_s))
        })
        .collect();
    let longest = delays.iter().flatten().map(|(_, delay)| *delay).fold(1.0, f64::max);
    for (epsilon, found) in LADDER.iter().zip(delays) {
        let here = setting.epsilon.is_some_and(|e| (e - epsilon).abs() < 1e-9);
        let style = if here { theme.strong } else { theme.text };
        let mark = if here { "▸" } else { " " };
        lines.push(match found {
            None => {
                vec![(format!("{mark}{epsilon:>4}   too little for any threshold"), theme.label)]
            }
            Some((flip, delay_s)) => {
                let span = jiff::SignedDuration::try_from_secs_f64(delay_s).unwrap_or_default();
                let cells = (delay_s / longest * 24.0).ceil() as usize;
                vec![
                    (
                        format!(
                            "{mark}{epsilon:>4}   {:>5.2} %   {:<9} ",
                            100.0 * flip,
                            length(span)
                        ),
                        style,
                    ),
                    ("█".repeat(cells.clamp(1, 24)), theme.trend),
                ]
            }
        });
    }
    if setting.epsilon.is_none() {
        let text = "none: nothing is turned, an alarm needs no more answers than its evidence";
        lines.push(vec![(format!("▸ {text}"), theme.strong)]);
    }
    (title, lines)
}
