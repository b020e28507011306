//! What sites and server say to each other: the words that envelopes carry.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{MOST_ROWS, nanosecond};
use crate::remote::account::SpentSoFar;
use crate::stream::Continuity;

/// From a site to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Up {
    /// The site is there and waits for a word.
    Hello {
        /// What both must agree on.
        agreement: String,
        /// What its ledger has entered so far.
        spent: SpentSoFar,
        /// It waits for a word; else it only tells that it is there.
        waits: bool,
        models: Holds,
    },
    /// The site is ready to learn.
    Ready(Ready),
    /// Its states of one round; none after the last.
    Round { attempt: u64, round: u64, messages: Vec<Vec<u8>> },
    /// What it tells of its states over a stretch, one part of several.
    Lesson(Lesson),
    /// Everything the site releases at one step. Step 0 is its enrolment.
    Step(Step),
    /// What the site answers to a question at a step.
    Answer { step: u64, messages: Vec<Vec<u8>> },
    /// The data of the site ended after so many steps.
    End { steps: u64 },
    /// The site was there, and its source had no row for this step.
    Nothing { step: u64 },
    /// The site leaves for good: nobody is to wait for it.
    Leave,
    /// The site has what the server foretold it of a stretch, up to this part.
    Told { attempt: u64, stretch: u8, part: u32 },
    /// What the site releases at a step that it has announced, once it knows what was predicted of it.
    Graded { step: u64, messages: Vec<Vec<u8>> },
}

/// Which models a site has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holds {
    /// Those of these trainings.
    pub(crate) kept: Vec<u64>,
    /// The ones it runs with.
    pub(crate) used: Option<u64>,
    /// The training in which it takes part.
    pub(crate) attempt: Option<u64>,
    /// Those that it made by itself, by their digest.
    pub(crate) alone: Option<u64>,
}

impl Holds {
    /// Whether it has these models.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.kept.contains(&id) || self.alone == Some(id)
    }
}

/// What a site tells before a training. Rows of its data are those of the shared time grid: nothing of
/// them is told but whether there were any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) attempt: u64,
    /// Samples in a block mean, and seconds of a step.
    pub(crate) every: u32,
    pub(crate) period_s: f64,
    /// First and last instant of the fit range, in nanoseconds since 1970.
    pub(crate) span: (i64, i64),
    /// Numbers in a state.
    pub(crate) states: u32,
    /// At which rows something was measured: lengths of stretches, the first one without.
    pub(crate) measured: Vec<u64>,
}

/// One part of what a site tells of its states over a stretch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lesson {
    pub(crate) attempt: u64,
    /// 0 is the fit range, 1 the calibration range.
    pub(crate) stretch: u8,
    pub(crate) part: u32,
    /// Parts of both stretches; none where it has nothing to tell.
    pub(crate) parts: (u32, u32),
    pub(crate) steps: u64,
    pub(crate) messages: Vec<Vec<u8>>,
}

/// Rows as lengths of stretches: the first without, the second with, and so on.
pub(crate) fn stretches(rows: &[bool]) -> Vec<u64> {
    let mut lengths = vec![0];
    let mut present = false;
    for row in rows {
        if *row != present {
            present = *row;
            lengths.push(0);
        }
        if let Some(last) = lengths.last_mut() {
            *last += 1;
        }
    }
    lengths
}

/// The rows of such lengths; none where they are more than anybody has.
pub(crate) fn rows(lengths: &[u64]) -> Option<Vec<bool>> {
    let sum = lengths.iter().try_fold(0_u64, |sum, length| sum.checked_add(*length));
    sum.filter(|sum| *sum <= MOST_ROWS)?;
    let stretch = |(i, length): (usize, &u64)| {
        std::iter::repeat_n(i % 2 == 1, usize::try_from(*length).unwrap_or(0))
    };
    Some(lengths.iter().enumerate().flat_map(stretch).collect())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) number: u64,
    /// Its time on the data's clock, in nanoseconds since 1970.
    pub(super) nanosecond: i64,
    pub(super) follows: Follow,
    /// The wall's messages as they cross.
    pub(crate) messages: Vec<Vec<u8>>,
}

/// How a step follows the one before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum Follow {
    NewRun,
    Next,
    Gap { seconds: f64 },
}

impl Step {
    pub(crate) fn new(
        number: u64,
        time: Timestamp,
        continuity: Continuity,
        messages: Vec<Vec<u8>>,
    ) -> Self {
        let follows = match continuity {
            Continuity::NewRun => Follow::NewRun,
            Continuity::Next => Follow::Next,
            Continuity::Gap { seconds } => Follow::Gap { seconds },
        };
        Self { number, nanosecond: nanosecond(time), follows, messages }
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_nanosecond(i128::from(self.nanosecond)).unwrap_or_default()
    }

    pub(crate) fn continuity(&self) -> Continuity {
        match self.follows {
            Follow::NewRun => Continuity::NewRun,
            Follow::Next => Continuity::Next,
            Follow::Gap { seconds } => Continuity::Gap { seconds },
        }
    }

    /// Whether both are of the same instant of the same grid.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (self.number, self.nanosecond, self.follows)
            == (other.number, other.nanosecond, other.follows)
    }
}

/// From the server to a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Down {
    /// The server waits for this step; every earlier one is closed. Orders are those of the step before.
    Next {
        step: u64,
        orders: Vec<Vec<u8>>,
        /// Steps are closed at a deadline: a site that is behind takes all steps up to this one.
        hurry: bool,
        /// The time of step 1 where sources are live, in nanoseconds since 1970.
        first: Option<i64>,
    },
    /// A question about this step, to be answered before the step is closed.
    Question { step: u64, order: Vec<u8> },
    /// Which models has the site?
    Models,
    /// A training begins.
    Begin { attempt: u64 },
    /// The rows of all sites that count, as lengths of stretches: the first round can be taken.
    Rows { attempt: u64, rows: Vec<u64> },
    /// What comes back for a round; the next one can be taken.
    Round { attempt: u64, round: u64, gradients: Vec<Vec<u8>> },
    /// Asks for one part of what the site tells of its states.
    Lesson { attempt: u64, stretch: u8, part: u32 },
    /// The training is over: its models are called so from now on.
    Learned { attempt: u64, models: u64 },
    /// The run is with these models.
    Use { models: u64 },
    /// The run is over.
    Stop,
    /// The site cannot take part.
    Refused { why: String },
    /// The run is with models that the site does not have: it is to make its own, by itself.
    Alone,
    /// The site can take part once an operator of the server has accepted it.
    Wait { why: String },
    /// The site is heard from this step on, with these models, and is to send its enrolment.
    Enrol { models: u64, from: u64 },
    /// What is foretold of the site over a stretch of its training data, one part of several, and by
    /// whose states.
    Foretold(PredictionPart),
    /// What is predicted of a step that the site has announced, where anything is: it can be released.
    Predicted { step: u64, order: Option<Vec<u8>> },
}

/// What the server foretells a site of a stretch of its training data, one part of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PredictionPart {
    pub(crate) attempt: u64,
    /// 0 is the fit range, 1 the calibration range.
    pub(crate) stretch: u8,
    pub(crate) part: u32,
    /// The client whose states foretell it; none where nobody's do.
    pub(crate) explainer: Option<u32>,
    pub(crate) messages: Vec<Vec<u8>>,
}
