//! What a site fits to its own nominal rows, once its models are made.

use ndarray::{ArrayView1, ArrayView2};

use super::grader::calibration::Calibrated;
use super::grader::{GraderFit, SETTLING, Standing};
use super::material::ClientMaterial;
use super::messenger::{Trace, Tracer};
use super::sensor::{HabitFit, SensorHabit};
use super::whitening::{Recording, Sample, Whitening};
use crate::nn::forgetting;
use crate::nn::kernel::WeightsError;
use crate::nn::proprietary::{Proprietary as _, VendorModel};
use crate::nn::weights::{LstmFc, ProprietaryWeights};

/// Fits and calibrates the grader of a site whose model watches.
pub(crate) fn grader(
    material: &ClientMaterial,
    watching: &ProprietaryWeights,
) -> Result<GraderFit, WeightsError> {
    let mut model = VendorModel::new(watching)?;
    let fit = recorded(&mut model, &material.fit.view(), &material.fit_inputs.view());
    let calibration =
        recorded(&mut model, &material.calibration.view(), &material.calibration_inputs.view());
    Ok(completed(GraderFit::new(&fit, &calibration), material))
}

/// The same with what the client's models make of both ranges, each run over them once.
pub(crate) fn grader_with_traces(
    material: &ClientMaterial,
    watching: &ProprietaryWeights,
    sending: Option<&ProprietaryWeights>,
) -> Result<(GraderFit, [Trace; 2]), WeightsError> {
    let mut model = VendorModel::new(watching)?;
    let fit = recorded(&mut model, &material.fit.view(), &material.fit_inputs.view());
    let calibration =
        recorded(&mut model, &material.calibration.view(), &material.calibration_inputs.view());
    let Calibrated { grader, crossed } = GraderFit::with_rows(&fit, &calibration);
    let mut traces = traces(material, watching, sending, grader.whitening())?;
    if let Some(crossed) = crossed {
        // What is learned from traces must not take rows for unseen that the whitening was fitted on.
        let (of_calibration, of_fit) = crossed.split_at(calibration.len() * grader.sensors());
        let [fit_trace, calibration_trace] = &mut traces;
        fit_trace.set_whitened(measured(&material.fit.view()), of_fit);
        calibration_trace.set_whitened(measured(&material.calibration.view()), of_calibration);
    }
    Ok((completed(grader, material), traces))
}

/// With what is known of the rows themselves.
fn completed(grader: GraderFit, material: &ClientMaterial) -> GraderFit {
    let standing = Standing::learn(&material.fit.view(), &material.calibration.view());
    grader.with_standing(standing, material.stretches.clone())
}

/// How far one sample of the calibration range moves what a site's models say, step by step after it:
/// the model that sends, or `other` where another one watches and remembers more. None where the range
/// is too short.
pub(crate) fn moves(
    material: &ClientMaterial,
    sending: &ProprietaryWeights,
    other: Option<&ProprietaryWeights>,
    phi: &LstmFc,
) -> Result<Option<Vec<f64>>, WeightsError> {
    let rows = &material.calibration.view();
    let Some(mut moves) = forgetting::moves(sending, Some(phi), rows)? else { return Ok(None) };
    if let Some(other) = other
        && let Some(watching) = forgetting::moves(other, None, rows)?
    {
        // Not a number is passed on: nothing can be said about such a model.
        let larger = |a: f64, b: f64| if b <= a { a } else { b };
        moves.iter_mut().zip(watching).for_each(|(a, b)| *a = larger(*a, b));
    }
    Ok(Some(moves))
}

/// What each sensor does when all is well.
pub(crate) fn habits(material: &ClientMaterial) -> Vec<SensorHabit> {
    let mut habits = vec![HabitFit::default(); material.view.used.len()];
    for row in material.fit.outer_iter().chain(material.calibration.outer_iter()) {
        habits.iter_mut().zip(row).for_each(|(habit, y)| habit.add(f64::from(*y)));
    }
    habits.iter().map(HabitFit::habit).collect()
}

/// What a model makes of nominal rows with their known inputs; a row without any value stands between
/// two runs.
fn recorded(
    model: &mut VendorModel,
    rows: &ArrayView2<f32>,
    inputs: &ArrayView2<f32>,
) -> Recording {
    let mut recording = Recording::new(model.sensors(), model.states()).with_inputs(inputs.ncols());
    let mut y = vec![f32::NAN; model.sensors()];
    let mut v = vec![f32::NAN; inputs.ncols()];
    model.reset();
    for (row, known) in rows.outer_iter().zip(inputs.outer_iter()) {
        if !is_measured(row.iter()) {
            model.reset();
            recording.new_run();
            continue;
        }
        y.iter_mut().zip(row).for_each(|(y, value)| *y = *value);
        v.iter_mut().zip(known).for_each(|(v, value)| *v = *value);
        model.step(&y, None);
        let out = model.output();
        let (y_hat, r, x_hat) = (&out.y_hat[..], &out.r[..], &out.x_hat[..]);
        recording.push(Sample { y: &y, y_hat, r, x_hat, inputs: &v });
    }
    recording
}

/// What a client's models make of its fit and calibration range, one entry a row; a row without any
/// value stands between two runs.
fn traces(
    material: &ClientMaterial,
    watching: &ProprietaryWeights,
    sending: Option<&ProprietaryWeights>,
    whitening: &Whitening,
) -> Result<[Trace; 2], WeightsError> {
    let mut watching = VendorModel::new(watching)?;
    let mut sending = sending.map(VendorModel::new).transpose()?;
    let ranges = [
        (material.fit.view(), material.fit_inputs.view()),
        (material.calibration.view(), material.calibration_inputs.view()),
    ];
    Ok(ranges.map(|(rows, inputs)| {
        let cells = |row: ArrayView1<f32>| row.iter().copied().collect::<Vec<f32>>();
        let rows: Vec<Option<(Vec<f32>, Vec<f32>)>> = rows
            .outer_iter()
            .zip(inputs.outer_iter())
            .map(|(row, known)| is_measured(row.iter()).then(|| (cells(row), cells(known))))
            .collect();
        let mut tracer = Tracer::new(&mut watching, sending.as_mut(), whitening, SETTLING);
        tracer.trace(rows.iter().map(|row| {
            let known = row.as_ref().map(|(row, known)| (&row[..], &known[..]));
            (row.is_none(), known)
        }))
    }))
}

/// The rows that have any value.
fn measured<'a>(rows: &'a ArrayView2<'_, f32>) -> impl Iterator<Item = usize> + 'a {
    (0..rows.nrows()).filter(|t| is_measured(rows.row(*t).iter()))
}

/// Whether a row has any value.
pub(crate) fn is_measured<'a>(mut row: impl Iterator<Item = &'a f32>) -> bool {
    row.any(|v| !v.is_nan())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;

    use super::*;
    use crate::evidence::symbol::{Grading, LevelCuts};
    use crate::nn::train::{Job, proprietary};
    use crate::session::{ModelSettings, Proprietary, Session};
    use crate::site::grader::Nominal;
    use crate::site::material::Material;

    #[test]
    fn a_grader_is_the_same_whether_traces_are_made_beside_it_or_not() {
        let text = "Session(about: \"short\", source: Plant(history_h: 2, hours: 1), \
            sampling: (decimate: Every(5)))";
        let session = Session::parse("short", Path::new(""), text).expect("a sound session");
        let mut material = Material::read(&session, 5, &|_| None).expect("a built-in plant");
        let client = &mut material.clients[0];
        // A hole, and a row between two runs.
        client.calibration.row_mut(200).fill(f32::NAN);
        client.calibration[(300, 0)] = f32::NAN;
        let settings = ModelSettings::default();
        let job = Job {
            client: &client.name,
            kind: Proprietary::Linear,
            settings: &settings,
            fit: client.fit.view(),
            held_out: client.fit.view(),
            seed: 1,
        };
        let weights = proprietary(&job, &|_| ControlFlow::Continue(())).expect("a model").weights;
        let alone = grader(client, &weights).expect("a fit");
        let (beside, _) = grader_with_traces(client, &weights, None).expect("a fit");
        let bytes = |fit: &GraderFit| postcard::to_stdvec(fit).expect("a fit can be written");
        assert_eq!(bytes(&alone), bytes(&beside));
    }

    #[test]
    fn residuals_of_traces_are_those_that_the_grader_was_calibrated_on() {
        // A fifth of two hours is the fit range: few rows, so that the whitening is fitted on both ranges.
        let text = "Session(about: \"short\", source: Plant(history_h: 2, hours: 1), \
            sampling: (decimate: Every(5)))";
        let session = Session::parse("short", Path::new(""), text).expect("a sound session");
        let mut material = Material::read(&session, 5, &|_| None).expect("a built-in plant");
        let client = &mut material.clients[0];
        client.calibration.row_mut(200).fill(f32::NAN);
        assert!(client.calibration.nrows() > 3 * client.fit.nrows());
        let settings = ModelSettings::default();
        let job = Job {
            client: &client.name,
            kind: Proprietary::Linear,
            settings: &settings,
            fit: client.fit.view(),
            held_out: client.fit.view(),
            seed: 1,
        };
        let weights = proprietary(&job, &|_| ControlFlow::Continue(())).expect("a model").weights;
        let (grader, [_, calibration]) = grader_with_traces(client, &weights, None).expect("a fit");
        let symbols = grader.symbols(&Grading::five_levels());
        // One entry a row of the calibration, and one a measured row of it.
        let mut judged = symbols.iter();
        let mut nominal = Nominal::of(grader.nominal().clone());
        let cuts = LevelCuts::new(&Grading::five_levels(), &grader.nominal_distances());
        let mut compared = 0;
        for t in 0..calibration.steps() {
            if t == 200 {
                continue;
            }
            let symbol = judged.next().expect("an entry a measured row");
            if let Some(said) = calibration.at(t) {
                assert_eq!(cuts.symbol(nominal.squared(said.r_w)), *symbol, "row {t}");
                compared += 1;
            }
        }
        assert!(compared > 1000 && judged.next().is_none(), "{compared}");
    }
}
