//! Detection and attribution end to end: data in, alarms out, compared with the truth.
//!
//! Every family runs through the same path with the same settings: fit and calibration slices, the
//! clients' models, whitening, symbols, the server. What is reported is what was declared over all
//! that was watched, false alarms in nominal stretches included.

use ndarray::ArrayView2;
use serde::Serialize;

use crate::evidence::inference::{Change, Closing, Incident, Inference, Rules};
use crate::evidence::health::Report;
use crate::evidence::reach::Reach;
use crate::evidence::site::{Enrolment, Site, SiteSettings};
use crate::evidence::symbol::{Grading, Symbol};
use crate::evidence::whitening::{Recording, Sample};
use crate::model::train::linear;
use crate::rng;
use crate::session::{Attacks, Family, PlantSource, TwinSource};
use crate::stream::plant::PlantStream;
use crate::stream::twin::{TwinStream, slices};
use crate::stream::StreamError;
use rows::Rows;

mod rows;
