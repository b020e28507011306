//! What leaves the clients, what protects it, what that costs and what it buys.
//!
//! ```text
//! ── thresholds and privacy ───────────────────────────────────────
//!  ε flags   2      ├────────●────┤  35.1 % of symbols wrong, alarm after 42s
//! ── ε spent, budget 200 for a day ────────────────────────────────
//!  P1  ███████····················  ε 58 of 200, 142 left
//! ── what P1 has spent, at δ 1e-5 ─────────────────────────────────
//!  one sample           1 release   ε 2.00
//!  any hour           720 releases  ε 153.10
//! ── what another ε of a symbol means, one false alarm in 1d ───────
//!    ε   wrong    alarm after  a day costs
//!    1   59.5 %   2m05s        ε 8230      ███████████
//! ── what left each client ────────────────────────────────────────
//!  P1 boiler    ··112··1·444444
//! ```
//!
//! Bars come first; words are shown on request.

use std::slice;

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::knobs::{self, same, seconds};
use super::pen::{self, Canvas, Section, span, wrapped};
use super::scene::Scene;
use super::sent;
use crate::console::action::Action;
use crate::console::app::tuning::is_ahead;
use crate::console::app::turning;
use crate::console::mouse::Target;
use crate::console::number;
use crate::console::widget::gauge::logarithmic;
use crate::engine::knob::Knob;
use crate::engine::watch::Spent;
use crate::privacy::words::{Explained, explain};
use crate::privacy::{Composed, EpsilonOption, Exhaustion};
use crate::session::Mode;
use crate::session::privacy::{BudgetSettings, Scope, SendPolicy};

/// Rungs of ε that are shown where all would be too many.
const RUNGS: usize = 9;
/// From this width on there are two columns, from this height on every rung is shown.
const WIDE: u16 = 110;
const ALL_RUNGS: u16 = 40;
/// Cells of the longest bar, and those before it.
const BAR: u16 = 24;
const BEFORE_BAR: u16 = 46;

struct Setting {
    epsilon: Option<f64>,
    delta: f64,
    budget: Option<f64>,
    /// As they stand: what was worked out was worked out for these.
    ledger_delta: f64,
    arl0_s: f64,
    mode: Mode,
}

impl Setting {
    fn of(scene: &Scene) -> Option<Self> {
        let mode = scene.snapshot()?.mode;
        let stands = |knob: Knob| scene.model.setting(knob)?.to.number();
        let trial = scene.model.tuning.as_ref().map(|tuning| tuning.trial);
        // What is on trial is priced before it is paid.
        let tried = |knob: Knob| match trial.filter(|trial| trial.knob == knob) {
            Some(trial) => trial.to.number(),
            None => stands(knob),
        };
        Some(Self {
            epsilon: tried(Knob::EpsilonFlag),
            delta: tried(Knob::Delta).unwrap_or(1e-5),
            budget: tried(Knob::Budget),
            ledger_delta: stands(Knob::Delta).unwrap_or(1e-5),
            arl0_s: stands(Knob::Arl0).unwrap_or(86_400.0),
            mode,
        })
    }
}

/// Draws the view into `area`, its lower part scrolled by `skip` lines.
pub(crate) fn draw(scene: &Scene, skip: usize, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let Some(setting) = Setting::of(scene) else {
        let rest = canvas.panel(area, [span("privacy", theme.strong)]);
        canvas.put(rest, 1, 0, "nothing has left any client yet", theme.label);
        return;
    };
    canvas.hit(area, Target::Scroll);
    let knobs_rows = knobs::wanted(scene).min((area.height / 3).max(4));
    let wide = area.width >= WIDE;
    let half = area.width / 2;
    let [left, right] = if wide { [half, area.width - half - 1] } else { [area.width; 2] };
    let (price, gauges) = (price(scene, &setting, left), gauges(scene, right));
    let prose = if scene.model.prose {
        explained(scene, &setting, right).into_iter().collect()
    } else {
        Vec::new()
    };
    if !wide {
        let rows = [Constraint::Length(knobs_rows), Constraint::Fill(1)];
        let [above, below] = Layout::vertical(rows).areas(area);
        knobs::draw(scene, above, canvas);
        let ladder = ladder(scene, &setting, RUNGS, left);
        let held = scene.model.tuning.as_ref().is_some_and(|tuning| is_ahead(tuning.knob()));
        let mut sections =
            if held { vec![ladder, gauges, price] } else { vec![gauges, price, ladder] };
        // Bars first, also where words were asked for.
        sections.splice(1..1, prose);
        column(&sections, skip, below, canvas);
        return;
    }
    let rungs = if area.height > ALL_RUNGS { usize::MAX } else { RUNGS };
    let mut sections = vec![gauges, ladder(scene, &setting, rungs, right)];
    sections.splice(1..1, prose);
    let rows = |sections: &[Section]| -> u16 {
        sections.iter().map(|section| 1 + section.lines.len() as u16).sum()
    };
    let (all, prices) = (knobs::all(scene), rows(slice::from_ref(&price)));
    let beside = (all + prices).max(rows(&sections));
    let mut upper = area;
    if area.height >= beside + sent::least(scene) {
        sent::draw(scene, pen::take_last(&mut upper, area.height - beside), canvas);
    }
    let [mut left, right] = canvas.beside(upper, half);
    let most = knobs_rows.max(left.height.saturating_sub(prices));
    knobs::draw(scene, pen::take(&mut left, most.min(all)), canvas);
    column(&[price], 0, left, canvas);
    column(&sections, skip, right, canvas);
}

/// Draws sections below each other, and how many lines are left below.
fn column(sections: &[Section], skip: usize, area: Rect, canvas: &mut Canvas) {
    let below = canvas.sections(sections, skip, area);
    if below > 0 {
        let last = area.height.saturating_sub(1);
        let text = format!(" pgdn: {below} more ");
        canvas.right(area, area.width, last, &text, canvas.theme.label);
    }
}

/// What is protected, for how long and what is not, for a first reader: the session
/// with its knobs as they stand, or as they would.
fn explained(scene: &Scene, setting: &Setting, width: u16) -> [Section; 3] {
    let mut session = scene.model.subject.clone();
    session.privacy.epsilon_flag = setting.epsilon;
    session.privacy.delta = setting.delta;
    let form = session.privacy.budget.unwrap_or_default();
    session.privacy.budget = setting.budget.map(|epsilon| BudgetSettings { epsilon, ..form });
    let client = scene.model.chosen;
    let spent = scene.snapshot().and_then(|snapshot| snapshot.spent.get(client));
    let memory = spent.map(|spent| (scene.name(client), &spent.memory));
    let Explained { protected, how_long, not_protected } = explain(&session, setting.mode, memory);
    let section = |title: &str, sentences: Vec<String>| Section {
        title: title.to_owned(),
        lines: sentences
            .iter()
            .flat_map(|sentence| wrapped(sentence, width.saturating_sub(2)))
            .map(|text| Line::styled(text, scene.theme.text))
            .collect(),
    };
    [
        section("what is protected", protected),
        section("for how long", how_long),
        section("what is not", not_protected),
    ]
}

/// ε by the length of time that is protected, of the chosen client.
fn price(scene: &Scene, setting: &Setting, width: u16) -> Section {
    let theme = scene.theme;
    let client = scene.model.chosen;
    let title = format!("what {} has spent, at δ {:e}", scene.name(client), setting.ledger_delta);
    let Some(spent) = scene.snapshot().and_then(|snapshot| snapshot.spent.get(client)) else {
        return Section { title, lines: vec![Line::styled("nothing yet", theme.label)] };
    };
    let row = |name: &str, composed: &Composed, style| {
        let noun = if composed.releases == 1 { "release " } else { "releases" };
        Line::from_iter([
            span(format!("{name:<18}"), theme.text),
            span(format!("{:>8} {noun}  ", composed.releases), theme.label),
            span(epsilon(composed.epsilon), style),
        ])
    };
    let over = spent.over.iter();
    let mut lines: Vec<Line> =
        over.map(|(scope, composed)| row(scope.label(), composed, theme.strong)).collect();
    lines.push(row("of it in training", &spent.trained, theme.text));
    let left = match (spent.budget, spent.exhaustion) {
        (None, _) => {
            "no budget: no limit (:budget 500 sets one, with noise from then on)".to_owned()
        }
        (Some(budget), exhaustion) => {
            let when = match exhaustion {
                Exhaustion::NoBudget | Exhaustion::Never => "lasts at this pace".to_owned(),
                Exhaustion::Now => "is gone".to_owned(),
                Exhaustion::Seconds(s) => format!("is gone in {}", seconds(s)),
            };
            format!("budget ε {} for {}: {when}", budget.epsilon, budget.over.label())
        }
    };
    let left = wrapped(&left, width.saturating_sub(2)).into_iter();
    lines.extend(left.map(|text| Line::styled(text, theme.text)));
    if spent.burn_per_hour.is_finite() && spent.burn_per_hour > 0.0 {
        let hour = number::epsilon(spent.burn_per_hour);
        let text = format!("one more hour adds ε {hour} to the whole history");
        lines.push(Line::styled(text, theme.text));
    }
    Section { title, lines }
}

/// What every client has spent and has left, as a bar: of its budget where there is one, else of the
/// most that any client has spent, what training took of it apart.
fn gauges(scene: &Scene, width: u16) -> Section {
    let theme = scene.theme;
    let spent = scene.snapshot().map_or(&[][..], |snapshot| &snapshot.spent);
    let over = |spent: &Spent, wanted: Scope| {
        let found = spent.over.iter().find(|(scope, _)| *scope == wanted);
        found.map_or(f64::INFINITY, |(_, composed)| composed.epsilon)
    };
    let scope = |spent: &Spent| spent.budget.map_or(Scope::Lifetime, |budget| budget.over);
    let most = spent.iter().map(|s| over(s, scope(s))).filter(|e| e.is_finite());
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let bar = usize::from(width.saturating_sub(52).clamp(8, 30));
    let line = |(client, spent): (usize, &Spent)| {
        let total = match spent.budget {
            Some(budget) if budget.noised_only => spent.counted,
            Some(_) | None => over(spent, scope(spent)),
        };
        let whole = spent.budget.map_or(most, |budget| budget.epsilon);
        let cells = ((total / whole).min(1.0) * bar as f64).round() as usize;
        let filled = if total.is_finite() { cells } else { bar };
        let of = match spent.budget {
            Some(budget) if total.is_finite() => {
                format!("ε {total:.0} of {}, {:.0} left", budget.epsilon, budget.epsilon - total)
            }
            Some(_) | None => epsilon(total),
        };
        let (live, trained) = (spent.live.releases, spent.trained.releases);
        let chosen = client == scene.model.chosen;
        let style = if total.is_finite() { theme.trend } else { theme.frame };
        let sign = if total.is_finite() { "█" } else { "░" };
        let share = spent.trained.epsilon / total;
        let of_training = match spent.budget {
            None if share.is_finite() => (share.clamp(0.0, 1.0) * filled as f64).round() as usize,
            Some(_) | None => 0,
        };
        let name = scene.padded_name(client);
        Line::from_iter([
            span(name.trim_end().to_owned(), if chosen { theme.cursor } else { theme.text }),
            span(" ".repeat(name.len() - name.trim_end().len()), theme.text),
            span("▒".repeat(of_training), theme.label),
            span(sign.repeat(filled - of_training), style),
            span("·".repeat(bar - filled), theme.frame),
            span(format!("  {of}"), theme.strong),
            span(format!("  {live} sent, {trained} in training"), theme.label),
        ])
    };
    let mut lines: Vec<Line> = spent.iter().enumerate().map(line).collect();
    let seeded = spent.iter().any(|spent| !spent.private);
    let key = scene.model.keymap.keys(Action::Prose).first();
    let key = key.map_or(String::new(), |chord| scene.theme.key(*chord));
    let seeded = if seeded { "seeded: not private.  " } else { "" };
    lines.push(Line::styled(format!("{seeded}{key}: what this protects, in words"), theme.label));
    let budget = spent.first().and_then(|spent| spent.budget);
    if budget.is_some_and(|budget| budget.noised_only) {
        let text = "the budget counts what is sent with noise: what was sent before it had none";
        let texts = wrapped(text, width.saturating_sub(2)).into_iter();
        lines.extend(texts.map(|text| Line::styled(text, theme.label)));
    }
    let title = match budget {
        Some(budget) => format!("ε spent, budget {} for {}", budget.epsilon, budget.over.label()),
        None => "ε spent so far, no budget   ▒ in training  █ since".to_owned(),
    };
    Section { title, lines }
}

fn epsilon(epsilon: f64) -> String {
    if epsilon.is_finite() {
        format!("ε {}", number::epsilon(epsilon))
    } else {
        "unprotected".into()
    }
}

/// What another ε of a symbol or flag would mean, for what is really sent.
fn ladder(scene: &Scene, setting: &Setting, rungs: usize, width: u16) -> Section {
    let theme = scene.theme;
    let most = usize::from(width.saturating_sub(BEFORE_BAR).clamp(1, BAR));
    let what = if setting.mode == Mode::Paper { "flag" } else { "symbol" };
    let title = format!(
        "what another ε of a {what} means, one false alarm in {}",
        turning::length(setting.arl0_s)
    );
    let alarms = setting.mode == Mode::Evidence
        && scene.model.subject.privacy.send == SendPolicy::WhileRaised;
    let day = if alarms { "a day with one alarm" } else { "a day costs" };
    let head = format!("    ε   wrong    alarm after  {day}");
    let mut lines = vec![Line::styled(head, theme.label)];
    let all = scene.snapshot().map_or(&[][..], |snapshot| &snapshot.ladder);
    let shown = shown(all, rungs, setting.epsilon);
    let delays = || shown.iter().filter_map(|rung| rung.delay_s);
    let (least, longest) = (delays().fold(f64::MAX, f64::min), delays().fold(1.0, f64::max));
    for rung in &shown {
        let here = match (rung.epsilon, setting.epsilon) {
            (Some(rung), Some(set)) => same(rung, set),
            (None, None) => true,
            _ => false,
        };
        let style = if here { theme.strong } else { theme.text };
        let name = rung.epsilon.map_or_else(|| "none".to_owned(), |e| e.to_string());
        let mark = if here { "▸" } else { " " };
        let day = match rung.day {
            day if day.is_finite() => format!("ε {}", number::whole(day)),
            _ => "unprotected".to_owned(),
        };
        let (delay, bar) = match rung.delay_s {
            Some(delay_s) => {
                // Each doubling of the delay is as long: else all but the longest would look alike.
                let share = logarithmic(delay_s, least / 2.0, longest);
                let cells = (share * most as f64).ceil() as usize;
                (seconds(delay_s), "█".repeat(cells.clamp(1, most)))
            }
            None => ("too little".to_owned(), String::new()),
        };
        let text =
            format!("{mark}{name:>4}  {:>5.1} %   {delay:<11}  {day:<11} ", 100.0 * rung.flip);
        lines.push(Line::from_iter([span(text, style), span(bar, theme.trend)]));
    }
    Section { title, lines }
}

/// The rungs around the ε that is set, and the clear.
fn shown(all: &[EpsilonOption], most: usize, epsilon: Option<f64>) -> Vec<EpsilonOption> {
    let Some((clear, rungs)) = all.split_last() else { return Vec::new() };
    let wanted = epsilon.unwrap_or(2.0);
    let at = rungs.iter().take_while(|r| r.epsilon.is_some_and(|e| e < wanted)).count();
    let first = at.saturating_sub(most / 2).min(rungs.len().saturating_sub(most));
    rungs.iter().skip(first).take(most).chain([clear]).copied().collect()
}
