//! The jobs of the federation experiments, which several studies share.

use serde_json::json;

use super::frame::{Done, Job, StudyError, StudyOptions};
use crate::engine::experiment::dataset::DatasetSource;
use crate::engine::experiment::federation::{Effort, FederationExperiment, Learned, Results};

/// The name under which results are kept, whichever study needed them first.
const KEPT_AS: &str = "federation";

/// Every plant with every seed.
pub(crate) fn experiments(options: &StudyOptions) -> Vec<Job> {
    let sources: &[DatasetSource] = if options.quick {
        &[
            DatasetSource::Twin(2),
            DatasetSource::TwinPaper(2),
            DatasetSource::BuiltIn,
            DatasetSource::PlantPaper,
        ]
    } else {
        &[
            DatasetSource::Twin(2),
            DatasetSource::TwinPaper(2),
            DatasetSource::Twin(4),
            DatasetSource::BuiltIn,
            DatasetSource::PlantPaper,
        ]
    };
    sources.iter().flat_map(|&source| experiments_on(source, options)).collect()
}

/// One plant with every seed.
pub(crate) fn experiments_on(
    source: DatasetSource,
    options: &StudyOptions,
) -> impl Iterator<Item = Job> {
    let effort = match source {
        DatasetSource::PlantPaper | DatasetSource::TwinPaper(_) => Effort::published(options.quick),
        DatasetSource::Twin(_) | DatasetSource::TwinPrinted(..) | DatasetSource::BuiltIn => {
            Effort::new(options.quick)
        }
    };
    let job = move |seed: u64| {
        let name = source.name();
        let inputs = json!({ "family": name, "seed": seed, "effort": effort });
        let experiment = FederationExperiment { source, seed, effort };
        Job::new(format!("{name} seed {seed}"), inputs, move || experiment.run())
            .costing(source.clients() as u32)
            .kept_as(KEPT_AS)
    };
    options.seeds(3, 1).into_iter().map(job)
}

/// Results of all seeds by family, in the order of the jobs.
pub(crate) fn by_family(done: &[Done]) -> Result<Vec<(String, Vec<Results>)>, StudyError> {
    let mut families: Vec<(String, Vec<Results>)> = Vec::new();
    for done in done {
        let (family, results): (String, Results) = (done.input("family")?, done.read()?);
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, seeds)) => seeds.push(results),
            None => families.push((family, vec![results])),
        }
    }
    Ok(families)
}

/// The training of the oracle in these results, by family: for the foot of a table that shows it.
pub(crate) fn oracle_note(families: &[(String, Vec<Results>)]) -> String {
    let found =
        |(family, seeds): &(String, Vec<Results>)| Some((family.clone(), seeds.first()?.learned));
    let known: Vec<(String, Learned)> = families.iter().filter_map(found).collect();
    let Some((_, Learned { oracle_epochs, oracle_width, .. })) = known.first() else {
        return "The oracle was not run.".into();
    };
    let papers = if *oracle_epochs == 10 { "as in the paper" } else { "the paper gives it ten" };
    let rows: Vec<String> =
        known.iter().map(|(family, learned)| format!("{family} {}", learned.rows)).collect();
    let delivered: Vec<&str> = (known.iter())
        .filter(|(_, learned)| learned.delivered_filters)
        .map(|(family, _)| family.as_str())
        .collect();
    let excepted = if delivered.is_empty() {
        String::new()
    } else {
        let families = delivered.join(", ");
        format!(" Excepted are the filters of {families}, which come with the program.")
    };
    format!(
        "The oracle sees the raw data of all clients: width {oracle_width}, {oracle_epochs} passes \
         ({papers}) over the rows that filters, φ and server learn from: {}.{excepted}",
        rows.join(", ")
    )
}
