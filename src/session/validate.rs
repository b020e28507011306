//! What no type can rule out: values that are well-formed and still make no sense.

mod live;
mod privacy;

use std::collections::HashSet;

use super::{
    Attacks, Decimation, Labels, Mark, Problem, Session, Shape, Source, Stretch, TableSource, Tau,
    TimeFormat, bounds, mark,
};
use crate::base::suggest::nearest;
use crate::session::privacy::SendPolicy;
use crate::session::settings::{Federation, Tier};
use crate::session::source::PLANT_ATTACKS;

/// Letters of a client's name: more has no room on any screen.
const LONGEST_NAME: usize = 64;
/// More clients than the server can serve within a step.
const MOST_CLIENTS: usize = 1024;

/// Everything that is wrong with a session, in the order of its keys.
pub(super) fn problems(session: &Session) -> Vec<Problem> {
    let mut check = Check { problems: Vec::new() };
    check.about(session);
    check.source(&session.source);
    check.clients(session);
    check.labels(session);
    check.ranges(session);
    check.sampling(session);
    check.model(session);
    check.thresholds(session);
    check.privacy(session);
    check.replay(session);
    check.limits(session);
    check.outputs(session);
    check.edges(session);
    check.suspensions(session);
    check.problems
}

struct Check {
    problems: Vec<Problem>,
}

impl Check {
    fn that(&mut self, holds: bool, path: impl Into<String>, what: impl Into<String>) {
        if !holds {
            self.problems.push(Problem::new(path, what));
        }
    }

    /// That the number under `key` is inside its bound.
    fn number(&mut self, key: &str, value: f64) {
        self.number_at(key, key, "", value);
    }

    /// The same of a number under `key` that belongs to one `choice` of it, and stands at `path`.
    fn number_at(&mut self, path: &str, key: &str, choice: &str, value: f64) {
        let Some(bound) = bounds::bound(key, choice) else {
            self.that(false, path, "this number has no bound, which is a fault of the program");
            return;
        };
        let found = bounds::plain(value);
        self.that(bound.holds(value), path, format!("expected {bound}, found {found}"));
    }

    fn civil(&mut self, path: &str, text: &str) {
        self.that(
            mark::civil(text).is_some(),
            path,
            format!("expected a time such as \"2022-08-12 16:00:00\", found {text:?}"),
        );
    }

    /// A format of times; `inside` one that stands for several files.
    fn time_format(&mut self, format: &TimeFormat, inside: bool) {
        let path = "source.time.format";
        match format {
            TimeFormat::Auto | TimeFormat::Pattern(_) => {}
            TimeFormat::Seconds { since } => self.civil("source.time.format.since", since),
            TimeFormat::Rows { since } => {
                self.civil("source.time.format.since", since);
                self.that(!inside, path, "`Rows` cannot stand beside other formats");
            }
            TimeFormat::Detect(formats) => {
                self.that(!inside, path, "`Detect` cannot stand inside `Detect` or `PerFile`");
                self.that(!formats.is_empty(), path, "expected at least one format to try");
                formats.iter().filter(|_| !inside).for_each(|one| self.time_format(one, true));
            }
            TimeFormat::PerFile(formats) => {
                self.that(!inside, path, "`PerFile` cannot stand inside `Detect` or `PerFile`");
                self.that(!formats.is_empty(), path, "expected at least one file and its format");
                formats.iter().filter(|_| !inside).for_each(|(_, one)| self.time_format(one, true));
            }
        }
    }

    fn shape(&mut self, table: &TableSource) {
        let Shape::Long { tag, value, .. } = &table.shape else { return };
        self.that(!tag.is_empty(), "source.shape.tag", "expected the header of the tags");
        self.that(!value.is_empty(), "source.shape.value", "expected the header of the values");
        let mut names = vec![tag, value, &table.time.column];
        names.extend(&table.run_column);
        names.sort_unstable();
        names.dedup();
        self.that(
            names.len() == 3 + usize::from(table.run_column.is_some()),
            "source.shape",
            "time, tag, value and run must be different columns",
        );
        self.that(
            !matches!(table.time.format, TimeFormat::Rows { .. }),
            "source.time.format",
            "rows cannot count as time in a long table: an instant has several",
        );
    }

    fn about(&mut self, session: &Session) {
        self.that(
            !session.about.trim().is_empty() && !session.about.contains(char::is_control),
            "about",
            "expected one line that says what this session is",
        );
    }

    fn source(&mut self, source: &Source) {
        match source {
            Source::Plant(plant) => {
                self.number("source.history_h", plant.history_h);
                self.number("source.hours", plant.hours);
                self.number("source.grid_feedback", plant.grid_feedback);
                self.civil("source.start", &plant.start);
                if let Attacks::Only(ids) = &plant.attacks {
                    for (i, id) in ids.iter().enumerate() {
                        self.that(
                            PLANT_ATTACKS.contains(&id.as_str()),
                            format!("source.attacks[{i}]"),
                            format!("no attack {id:?}; known: {}", PLANT_ATTACKS.join(", ")),
                        );
                    }
                }
            }
            Source::Twin(twin) => {
                self.number("source.clients", twin.clients as f64);
                self.number("source.delta", twin.delta);
                self.civil("source.start", &twin.start);
            }
            Source::Table(table) => {
                self.that(
                    !table.data.is_empty(),
                    "source.data",
                    "expected the folder of the files",
                );
                self.that(
                    !table.time.column.is_empty(),
                    "source.time.column",
                    "expected the header of the time column",
                );
                self.number("source.time.utc_offset_h", table.time.utc_offset_h);
                self.time_format(&table.time.format, false);
                self.shape(table);
            }
            Source::Hai(hai) => {
                let known = ["20.07", "21.03", "22.04", "23.05"];
                self.that(
                    known.contains(&hai.version.as_str()),
                    "source.version",
                    format!("no HAI release {:?}; known: {}", hai.version, known.join(", ")),
                );
                self.that(!hai.data.is_empty(), "source.data", "expected the folder of the files");
            }
            Source::Live(live) => self.live(live),
        }
    }

    fn clients(&mut self, session: &Session) {
        match session.source {
            Source::Table(_) | Source::Live(_) => self.that(
                !session.clients.is_empty(),
                "clients",
                format!(
                    "a {} needs the columns of every client, such as \
                     [(name: \"P1\", columns: [\"P1_*\"])]",
                    if session.live().is_some() { "live source" } else { "table" }
                ),
            ),
            Source::Twin(_) => self.that(
                session.clients.is_empty(),
                "clients",
                "the synthetic plants bring their own clients; set their number with source.clients",
            ),
            Source::Plant(_) | Source::Hai(_) => {}
        }
        let clients = session.clients.len();
        self.that(
            clients <= MOST_CLIENTS,
            "clients",
            format!("expected at most {MOST_CLIENTS} clients, found {clients}"),
        );
        let mut seen = HashSet::new();
        for (i, client) in session.clients.iter().enumerate() {
            self.that(
                (1..=LONGEST_NAME).contains(&client.name.chars().count())
                    && !client.name.contains(|c: char| c.is_whitespace() || c.is_control()),
                format!("clients[{i}].name"),
                format!(
                    "expected a short name without blanks and control characters, of {LONGEST_NAME} \
                     letters at most"
                ),
            );
            self.that(
                seen.insert(&client.name),
                format!("clients[{i}].name"),
                format!("{:?} is the name of an earlier client", client.name),
            );
            self.that(
                !client.columns.is_empty(),
                format!("clients[{i}].columns"),
                format!("client {} watches nothing; name at least one column", client.name),
            );
        }
    }

    /// Reports a client that is not declared, where clients are declared here at all.
    fn known_client(&mut self, session: &Session, path: String, name: &str) {
        let names: Vec<String> = match &session.source {
            Source::Twin(twin) => (1..=twin.clients).map(|m| format!("C{m}")).collect(),
            _ if !session.clients.is_empty() => {
                session.clients.iter().map(|c| c.name.clone()).collect()
            }
            _ => ["P1", "P2", "P3"].map(String::from).to_vec(),
        };
        if !names.iter().any(|n| n == name) {
            let near = nearest(name, names.iter().map(String::as_str))
                .map(|n| format!("; did you mean {n:?}?"))
                .unwrap_or_default();
            self.that(false, path, format!("no client {name:?}{near}"));
        }
    }

    fn labels(&mut self, session: &Session) {
        let of_table = matches!(session.source, Source::Table(_));
        match &session.labels {
            Labels::Source => {}
            _ if !of_table => self.that(
                false,
                "labels",
                "this source brings its own labels; only a table can be given others",
            ),
            Labels::Column { origins, unlabelled, .. } => {
                for (i, value) in unlabelled.iter().enumerate() {
                    let path = format!("labels.unlabelled[{i}]");
                    self.number_at(&path, "labels.unlabelled", "", *value);
                }
                for (i, (_, client)) in origins.iter().enumerate() {
                    self.known_client(session, format!("labels.origins[{i}][1]"), client);
                }
            }
            Labels::Events(events) => {
                for (i, event) in events.iter().enumerate() {
                    let path = |key: &str| format!("labels[{i}].{key}");
                    self.civil(&path("start"), &event.start);
                    self.civil(&path("end"), &event.end);
                    if let (Some(start), Some(end)) =
                        (mark::civil(&event.start), mark::civil(&event.end))
                    {
                        self.that(start <= end, path("end"), "the event ends before it starts");
                    }
                    for (k, origin) in event.origins.iter().enumerate() {
                        self.known_client(session, format!("labels[{i}].origins[{k}]"), origin);
                    }
                }
            }
            Labels::EventFile { file, .. } => {
                self.that(!file.is_empty(), "labels.file", "expected the name of a file");
            }
        }
    }

    fn ranges(&mut self, session: &Session) {
        let ranges = &session.ranges;
        if let Source::Live(live) = &session.source {
            return self.live_ranges(session, live);
        }
        let of_files = matches!(session.source, Source::Table(_) | Source::Hai(_));
        for (name, stretch) in
            [("fit", &ranges.fit), ("calibration", &ranges.calibration), ("replay", &ranges.replay)]
        {
            self.that(
                of_files != stretch.files.is_empty(),
                format!("ranges.{name}.files"),
                if of_files {
                    "expected the names of the files to read, such as [\"train*.csv.gz\"]"
                } else {
                    "this source is built in and has no files"
                },
            );
            self.that(
                !ends_before_it_starts(stretch),
                format!("ranges.{name}.until"),
                "the range ends before it starts",
            );
        }
        self.that(
            !overlap(&ranges.fit, &ranges.calibration),
            "ranges.calibration",
            "calibration overlaps the fit range; thresholds set on fitted data come out too low",
        );
    }

    fn sampling(&mut self, session: &Session) {
        if let Some(period) = session.sampling.period_s {
            self.number("sampling.period_s", period);
        }
        if let Decimation::Every(k) = session.sampling.decimate {
            let key = "sampling.decimate";
            self.number_at(key, key, "Every", f64::from(k));
        }
    }

    fn model(&mut self, session: &Session) {
        let model = &session.model;
        for (key, value) in [
            ("model.states", model.states),
            ("model.transition_width", model.transition_width),
            ("model.measurement_width", model.measurement_width),
            ("model.augment_width", model.augment_width),
            ("model.server_width", model.server_width),
            ("model.oracle_width", model.oracle_width),
            ("model.window", model.window),
            ("model.batch", model.batch),
            ("model.epochs", model.epochs),
        ] {
            self.number(key, value as f64);
        }
        match model.federation {
            Federation::Online { passes } => self.number("model.federation.passes", passes as f64),
            Federation::Batched { rounds } => self.number("model.federation.rounds", rounds as f64),
        }
        for (key, value) in [
            ("model.q", model.q),
            ("model.r", model.r),
            ("model.learning_rate", model.learning_rate),
            ("model.eta1", model.eta1),
            ("model.eta2", model.eta2),
            ("model.eta3", model.eta3),
            ("model.augment_scale", model.augment_scale),
        ] {
            self.number(key, value);
        }
    }

    fn thresholds(&mut self, session: &Session) {
        let thresholds = &session.thresholds;
        let taus = [("thresholds.tau_c", thresholds.tau_c), ("thresholds.tau_a", thresholds.tau_a)];
        for (key, tau) in taus {
            match tau {
                Tau::Percentile(p) => self.number_at(key, key, "Percentile", p),
                Tau::Value(v) => self.number_at(key, key, "Value", v),
            }
        }
        if let Some(vote) = thresholds.vote {
            self.number("thresholds.vote.k", f64::from(vote.k));
            self.number("thresholds.vote.n", f64::from(vote.n));
            self.that(
                vote.k <= vote.n,
                "thresholds.vote",
                format!("expected k of at most n, found k: {}, n: {}", vote.k, vote.n),
            );
        }
        self.number("thresholds.deadband", thresholds.deadband);
        self.number("thresholds.arl0", thresholds.arl0.seconds);
        let clients = match &session.source {
            Source::Twin(twin) => twin.clients,
            _ => session.clients.len(),
        };
        self.that(
            thresholds.tier == Tier::Symbols || clients <= Tier::MOST_CLIENTS,
            "thresholds.tier",
            format!("States is for up to {} clients, found {clients}", Tier::MOST_CLIENTS),
        );
        self.that(
            thresholds.tier == Tier::Symbols || session.privacy.send == SendPolicy::EveryStep,
            "thresholds.tier",
            "States sends at every step; `privacy.send` must be EveryStep",
        );
        self.that(
            !thresholds.set_aside || session.privacy.epsilon_flag.is_none(),
            "thresholds.set_aside",
            "which stretches are set aside follows from measurements, and no noise hides it: without \
             epsilon_flag only",
        );
    }

    fn replay(&mut self, session: &Session) {
        self.number("replay.speed", session.replay.speed);
        self.number("replay.tail", session.replay.tail.seconds);
    }

    fn limits(&mut self, session: &Session) {
        if let Some(size) = session.record.most_mb {
            self.number("record.most_mb", f64::from(size.get()));
        }
        if let Some(memory) = session.limits.memory_gb {
            self.number("limits.memory_gb", memory);
        }
        if let Some(hours) = session.limits.preparation_h {
            self.number("limits.preparation_h", hours);
        }
    }

    fn outputs(&mut self, session: &Session) {
        let mut seen = HashSet::new();
        for (i, output) in session.outputs.iter().enumerate() {
            self.that(
                !output.name.trim().is_empty() && seen.insert(&output.name),
                format!("outputs[{i}].name"),
                "expected a name that no other output has: its queue goes by it",
            );
            self.that(
                !output.facts.is_empty(),
                format!("outputs[{i}].facts"),
                "expected at least one kind of fact, such as [Opened, Closed]",
            );
        }
    }

    fn suspensions(&mut self, session: &Session) {
        for (i, suspension) in session.suspend.iter().enumerate() {
            let said = !suspension.why.trim().is_empty();
            self.that(said, format!("suspend[{i}].why"), "expected what is done, in a few words");
            for (j, client) in suspension.clients.iter().enumerate() {
                self.known_client(session, format!("suspend[{i}].clients[{j}]"), client);
            }
        }
    }

    fn edges(&mut self, session: &Session) {
        for (i, (from, to)) in session.edges.iter().enumerate() {
            self.known_client(session, format!("edges[{i}][0]"), from);
            self.known_client(session, format!("edges[{i}][1]"), to);
            self.that(from != to, format!("edges[{i}]"), format!("{from} cannot influence itself"));
        }
    }
}

fn ends_before_it_starts(stretch: &Stretch) -> bool {
    stretch.from.zip(stretch.until).is_some_and(|(from, until)| before(until, from) == Some(true))
}

/// Whether `a` lies at or before `b`, where that can be told without the data.
fn before(a: Mark, b: Mark) -> Option<bool> {
    match (a, b) {
        (Mark::At(a), Mark::At(b)) => Some(a <= b),
        (Mark::After(a), Mark::After(b)) => Some(a <= b),
        (Mark::Step(a), Mark::Step(b)) => Some(a <= b),
        _ => None,
    }
}

/// Whether two stretches of the same files certainly share data.
fn overlap(a: &Stretch, b: &Stretch) -> bool {
    if a.files != b.files {
        return false;
    }
    let apart = |first: &Stretch, second: &Stretch| match (first.until, second.from) {
        (Some(until), Some(from)) => before(until, from) != Some(false),
        _ => false,
    };
    !apart(a, b) && !apart(b, a)
}
