//! What leaves the clients, what protects it, what that costs and what it buys.
//!
//! ```text
//! ── thresholds and privacy ───────────────────────────────────────
//!  ε flags   2      ├────────●────┤  11.9 % of flags are turned
//! ── what is protected ────────────────────────────────────────────
//!  Measurements never leave a client. …
//! ── what it has cost  ε at δ 1e-5 ────────────────────────────────
//!  one sample           1 release     2.00
//!  any hour           720 releases   153.1
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
use crate::privacy::{Scope, Spend, Tally};
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
    steps: u64,
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
            steps: standing.steps,
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

    /// Answers of one client at a step.
    fn answers(&self) -> u64 {
        match self.mode {
            Mode::Evidence => 1,
            Mode::Paper => 2,
        }
    }

    /// Answers within a scope.
    fn releases(&self, scope: Scope) -> u64 {
        let steps = |seconds: f64| (seconds / self.period_s).ceil() as u64;
        self.answers()
            * match scope {
                Scope::Sample => 1,
                Scope::Minute => steps(60.0),
                Scope::Hour => steps(3600.0),
                Scope::Day => steps(86_400.0),
                Scope::Lifetime => self.steps,
            }
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
    let protected = block(scene, "what is protected", &protected(&setting), right.width);
    let price = price(scene, &setting);
    let ladder = ladder(scene, &setting);
    if wide {
        let mut left = left;
        knobs::draw(scene, pen::take(&mut left, knobs_rows.max(area.height / 2)), buffer, hits);
        column(scene, &[ladder], 0, left, buffer);
        column(scene, &[protected, price], skip, right, buffer);
    } else {
        knobs::draw(scene, left, buffer, hits);
        column(scene, &[price, ladder, protected], skip, right, buffer);
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

/// What is protected, for how long and what is not, for whoever asks for the first time.
fn protected(setting: &Setting) -> Vec<String> {
    let what = match setting.mode {
        Mode::Evidence => "one graded symbol",
        Mode::Paper => "two flags",
    };
    let mut said = vec![format!(
        "Measurements and models never leave a client. At every step it sends {what}; in training it \
         sent states of its model and got gradients back. Nothing else ever leaves it."
    )];
    said.push(match setting.epsilon {
        None => "No noise is added to what is sent: the server hears the truth, and whoever listens \
                 learns when a client was unusual, though never what it measured."
            .to_owned(),
        Some(e) => format!(
            "Each answer is turned by chance, so that nobody can be sure of any single one: with ε {e} \
             one answer changes what a listener believes by a factor of at most {:.1}.",
            e.exp()
        ),
    });
    if setting.epsilon.is_some() {
        said.push(
            "Many answers together say more than one: what lasts for hours cannot be hidden from whoever \
             hears all of it, and is not meant to be, for that is how a fault is found."
                .to_owned(),
        );
    }
    said
}

/// ε by the length of time that is protected.
fn price(scene: &Scene, setting: &Setting) -> Block {
    let theme = scene.theme;
    let title = format!("what it costs: ε of a client at δ {:e}", setting.delta);
    let Some(epsilon) = setting.epsilon else {
        let said = format!(
            "{} answers sent as they are: ε has no bound",
            setting.releases(Scope::Lifetime)
        );
        let lines = vec![
            vec![(said, theme.strong)],
            vec![("turn ε flags down from none to put a bound on it".to_owned(), theme.label)],
        ];
        return (title, lines);
    };
    let lines = Scope::ALL
        .into_iter()
        .map(|scope| {
            let releases = setting.releases(scope);
            let label = if scope == Scope::Lifetime { "so far" } else { scope.label() };
            let spend = Spend::Response { epsilon, symbols: symbols(setting) };
            let spent = Tally::of(spend, releases).epsilon(setting.delta).0;
            let noun = if releases == 1 { "answer" } else { "answers" };
            vec![
                (format!("{label:<18}"), theme.text),
                (format!("{releases:>8} {noun:<8} "), theme.label),
                (format!("ε {spent:.2}"), theme.strong),
            ]
        })
        .collect();
    (title, lines)
}

fn symbols(setting: &Setting) -> u8 {
    match setting.mode {
        Mode::Evidence => 4,
        Mode::Paper => 2,
    }
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
