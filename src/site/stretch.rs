//! Stretches of a calibration that look abnormal.
//!
//! One burst that was no normal operation raises a client's threshold for good. The stretches of the
//! calibration of a client that has become insensitive are looked at: runs, or equal blocks where
//! there are few runs. One whose highest peak the others would hardly ever reach is named. It is set
//! aside only where the session asks for it, since a rare peak may be normal: then it comes back, and
//! raises an alarm.

use jiff::Timestamp;
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::fit::is_measured;
use super::grader::GraderFit;
use super::seen::{BLOCKS, FEWEST_RUNS};
use crate::evidence::cusum::{MOST_ALARM_STEPS, Tail, alarm_threshold, excursion_peaks};
use crate::evidence::likelihood::{Hypotheses, Tables};
use crate::evidence::symbol::{Grading, LevelCounts, RandomisedResponse, Symbol};

/// A peak looks abnormal if so few like it are to be expected from the other stretches.
const FEWEST_EXPECTED: f64 = 0.01;
/// At most one stretch in so many is named.
const ONE_IN: usize = 10;

/// A stretch of a client's calibration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stretch {
    /// Steps with data.
    pub(crate) steps: usize,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    /// Its file, where there are several.
    pub(crate) file: Option<String>,
}

/// When a row of the calibration was measured, and in which file; none between two runs.
pub(super) type Mark = Option<(Timestamp, Option<std::sync::Arc<str>>)>;

/// The stretches of a client's calibration: its runs, or equal blocks where these are few.
pub(super) fn of_rows(rows: &ArrayView2<'_, f32>, marks: &[Mark]) -> Vec<Stretch> {
    let mut runs: Vec<Stretch> = Vec::new();
    let mut is_new = true;
    let measured = rows.outer_iter().zip(marks).map(|(row, mark)| {
        let mark = mark.as_ref()?;
        is_measured(row.iter()).then_some(mark)
    });
    let measured: Vec<Option<&(Timestamp, _)>> = measured.collect();
    let all = measured.iter().flatten().count();
    let count_runs = marks.iter().filter(|mark| mark.is_none()).count() + 1;
    let mut place = 0;
    for mark in measured {
        let Some((time, file)) = mark else {
            is_new = true;
            continue;
        };
        let starts = if count_runs >= FEWEST_RUNS {
            is_new
        } else {
            place == 0 || place * BLOCKS / all != (place - 1) * BLOCKS / all
        };
        if starts {
            let file = file.as_ref().map(ToString::to_string);
            runs.push(Stretch { steps: 0, from: *time, until: *time, file });
        }
        if let Some(run) = runs.last_mut() {
            run.steps += 1;
            run.until = *time;
        }
        (is_new, place) = (false, place + 1);
    }
    runs
}

/// Stretches of one client's calibration that look abnormal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Abnormal {
    /// Each with its highest peak.
    pub(crate) stretches: Vec<(Stretch, f64)>,
    /// How many stretches there are in all.
    pub(crate) of: usize,
    /// The highest peak of the others.
    pub(crate) usual: f64,
    /// Steps of the strongest symbol that an alarm takes with them, and without.
    pub(crate) alarm_steps: (f64, f64),
    /// The places of their steps in the calibration.
    steps: Vec<bool>,
}

impl Abnormal {
    /// Looks at the calibration of one of `clients`; none where it is sensitive, or where no stretch
    /// looks abnormal. `arl0` is in steps.
    pub(crate) fn find(
        fit: &GraderFit,
        grading: &Grading,
        hypotheses: &Hypotheses,
        clients: usize,
        arl0: f64,
    ) -> Option<Self> {
        let symbols = fit.symbols(grading);
        let stretches = fit.stretches();
        let all: usize = stretches.iter().map(|stretch| stretch.steps).sum();
        (all == symbols.len()).then_some(())?;
        let response = RandomisedResponse::new(grading.levels(), None);
        let counts = LevelCounts::of(grading.levels(), symbols.iter().flatten().copied());
        let ratios = Tables::new(grading, hypotheses, &counts, &response).ratios(hypotheses);
        let strongest = ratios.root_cause(grading.highest()).max(f64::MIN_POSITIVE);
        let mut begin = 0;
        let parts: Vec<Vec<f64>> = stretches
            .iter()
            .map(|stretch| {
                let part = &symbols[begin..begin + stretch.steps];
                begin += stretch.steps;
                part.iter().flatten().map(|symbol| ratios.root_cause(*symbol)).collect()
            })
            .collect();
        let tail = |without: &[usize]| {
            let kept = parts.iter().enumerate().filter(|(place, _)| !without.contains(place));
            let llrs: Vec<f64> = kept.flat_map(|(_, part)| part.iter().copied()).collect();
            Tail::fit(&excursion_peaks(llrs.iter().copied()), llrs.len())
        };
        let steps = |tail: &Tail| alarm_threshold(tail, clients, arl0) / strongest;
        let peak = |place: usize| {
            excursion_peaks(parts[place].iter().copied()).into_iter().fold(0.0, f64::max)
        };
        let mut out: Vec<usize> = Vec::new();
        let mut now = tail(&out);
        let before = steps(&now);
        while steps(&now) > MOST_ALARM_STEPS && out.len() < stretches.len() / ONE_IN {
            let kept = (0..parts.len()).filter(|place| !out.contains(place));
            let highest = kept.max_by(|a, b| peak(*a).total_cmp(&peak(*b)))?;
            let without: Vec<usize> = out.iter().copied().chain([highest]).collect();
            let others = tail(&without);
            let expected = others.n as f64 * (-others.omega * (peak(highest) - others.u)).exp();
            if expected >= FEWEST_EXPECTED {
                break;
            }
            (out, now) = (without, others);
        }
        (!out.is_empty()).then_some(())?;
        let mut is_out = Vec::with_capacity(symbols.len());
        for (place, stretch) in stretches.iter().enumerate() {
            is_out.resize(is_out.len() + stretch.steps, out.contains(&place));
        }
        Some(Self {
            of: stretches.len(),
            usual: now.largest.first().copied().unwrap_or(0.0),
            alarm_steps: (before, steps(&now)),
            steps: is_out,
            stretches: out.iter().map(|place| (stretches[*place].clone(), peak(*place))).collect(),
        })
    }

    /// The calibration without them.
    pub(super) fn without<'a>(
        &'a self,
        symbols: &'a [Option<Symbol>],
    ) -> impl Iterator<Item = Symbol> + 'a {
        let kept = symbols.iter().zip(&self.steps).filter(|(_, out)| !**out);
        kept.filter_map(|(symbol, _)| *symbol)
    }

    /// What is to be said about them.
    pub(crate) fn words(&self, set_aside: bool) -> String {
        let named: Vec<String> = self
            .stretches
            .iter()
            .map(|(stretch, peak)| {
                let Stretch { from, until, file, .. } = stretch;
                let file = file.as_ref().map_or(String::new(), |file| format!("{file}, "));
                format!("{file}{from} to {until}: peak {peak:.0}")
            })
            .collect();
        let (with, without) = self.alarm_steps;
        let looks = if named.len() == 1 { "looks" } else { "look" };
        let begin = format!(
            "{} of {} stretches of its calibration {looks} abnormal ({}; the highest peak of the \
             others is {:.0})",
            named.len(),
            self.of,
            named.join("; "),
            self.usual
        );
        if set_aside {
            format!(
                "{begin} and set aside: an alarm takes {without:.0} steps of the strongest symbol \
                 instead of {with:.0}. If that was normal operation, expect alarms when it comes back"
            )
        } else {
            format!(
                "{begin}: without it an alarm would take {without:.0} steps of the strongest symbol \
                 instead of {with:.0}. If it was no normal operation, leave it out of the \
                 calibration or set it aside (thresholds.set_aside)"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use crate::site::grader::Standing;
    use crate::site::whitening::{Recording, Sample};
    use ndarray::Array2;
    use rand_distr::{Distribution as _, StandardNormal};

    const STEPS: usize = 200;
    const STRETCHES: usize = 20;

    fn instant(second: usize) -> Timestamp {
        let second = i64::try_from(second).expect("a short calibration");
        Timestamp::from_second(second).expect("within the calendar")
    }

    /// White residuals of two sensors; `shifted` steps of the seventh stretch are far off.
    fn recording(seed: u64, shifted: usize) -> Recording {
        let mut rng = rng::stream(seed, 0);
        let mut recording = Recording::new(2, 1);
        for t in 0..STEPS * STRETCHES {
            let begin = 6 * STEPS + 50;
            let off = if (begin..begin + shifted).contains(&t) { 9.0 } else { 0.0 };
            let mut draw = || -> f32 { StandardNormal.sample(&mut rng) };
            let r = [draw(), draw() + off];
            recording.push(Sample { y: &r, y_hat: &[0.0; 2], r: &r, x_hat: &[0.0], inputs: &[] });
        }
        recording
    }

    fn found(shifted: usize) -> Option<Abnormal> {
        let stretch = |k: usize| Stretch {
            steps: STEPS,
            from: instant(k * STEPS),
            until: instant((k + 1) * STEPS - 1),
            file: Some(format!("run {k}")),
        };
        let fit = GraderFit::new(&recording(1, 0), &recording(2, shifted))
            .with_standing(Standing::default(), (0..STRETCHES).map(stretch).collect());
        Abnormal::find(&fit, &Grading::five_levels(), &Hypotheses::default(), 3, 3000.0)
    }

    #[test]
    fn a_burst_that_makes_a_client_insensitive_is_named_and_nothing_is_where_there_is_none() {
        let abnormal = found(60).expect("a burst of sixty steps");
        let named: Vec<_> = abnormal.stretches.iter().map(|(stretch, _)| &stretch.file).collect();
        assert_eq!(named, [&Some("run 6".to_owned())]);
        let (with, without) = abnormal.alarm_steps;
        assert!(with > MOST_ALARM_STEPS && without < MOST_ALARM_STEPS, "{with} {without}");
        let words = abnormal.words(false);
        assert!(
            words.starts_with("1 of 20 stretches of its calibration looks abnormal"),
            "{words}"
        );
        assert!(words.contains("run 6, 1970-01-01T00:20:00Z to"), "{words}");
        assert!(abnormal.words(true).contains("set aside"), "{}", abnormal.words(true));
        assert_eq!(found(0), None);
    }

    #[test]
    fn what_is_set_aside_is_the_stretch_and_nothing_else() {
        let abnormal = found(60).expect("a burst of sixty steps");
        let grading = Grading::five_levels();
        let mut symbols = vec![Some(grading.highest()); STEPS * STRETCHES];
        symbols[6 * STEPS..7 * STEPS].fill(grading.symbol(0));
        let kept: Vec<Symbol> = abnormal.without(&symbols).collect();
        assert_eq!(kept, vec![grading.highest(); STEPS * (STRETCHES - 1)]);
    }

    #[test]
    fn few_runs_are_cut_into_equal_blocks_and_many_stay_as_they_are() {
        let marks = |run: usize, runs: usize| -> Vec<Mark> {
            let mut marks = Vec::new();
            for k in 0..runs {
                marks.extend((0..run).map(|t| Some((instant(k * run + t), None))));
                marks.push(None);
            }
            marks.pop();
            marks
        };
        let steps = |marks: &[Mark]| -> Vec<usize> {
            let rows = Array2::from_shape_fn((marks.len(), 1), |(t, _)| {
                if marks[t].is_some() { 1.0 } else { f32::NAN }
            });
            of_rows(&rows.view(), marks).iter().map(|stretch| stretch.steps).collect()
        };
        assert_eq!(steps(&marks(100, 2)), vec![10; BLOCKS]);
        assert_eq!(steps(&marks(30, 12)), vec![30; 12]);
    }
}
