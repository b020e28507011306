//! The 86 tags of HAI 22.04, in the order of its columns.

use std::ops::{Index, IndexMut};

use crate::stream::Sensor;

pub(crate) const COUNT: usize = 86;

macro_rules! tags {
    ($($tag:ident $unit:literal)*) => {
        /// A column of HAI 22.04, under the data set's own name.
        #[allow(non_camel_case_types, missing_docs, reason = "the names are HAI's, and documented there")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Tag {
            $($tag),*
        }

        impl Tag {
            /// All tags in column order.
            pub(crate) const ALL: [Tag; COUNT] = [$(Tag::$tag),*];

            /// The name in the header line.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Tag::$tag => stringify!($tag)),*
                }
            }

            /// Engineering unit as the data set gives it; empty for switches and bare numbers.
            pub(crate) const fn unit(self) -> &'static str {
                match self {
                    $(Tag::$tag => $unit),*
                }
            }
        }
    };
}

// P3_LIT01 is documented in percent, but recorded (as here) in raw counts.
tags! {
    P1_B2004 "bar"
    P1_B2016 "bar"
    P1_B3004 "mm"
    P1_B3005 "l/h"
    P1_B4002 "degC"
    P1_B4005 "%"
    P1_B400B "l/h"
    P1_B4022 "degC"
    P1_FCV01D "%"
    P1_FCV01Z "%"
    P1_FCV02D "%"
    P1_FCV02Z "%"
    P1_FCV03D "%"
    P1_FCV03Z "%"
    P1_FT01 "mmH2O"
    P1_FT01Z "l/h"
    P1_FT02 "mmH2O"
    P1_FT02Z "l/h"
    P1_FT03 "mmH2O"
    P1_FT03Z "l/h"
    P1_LCV01D "%"
    P1_LCV01Z "%"
    P1_LIT01 "mm"
    P1_PCV01D "%"
    P1_PCV01Z "%"
    P1_PCV02D "%"
    P1_PCV02Z "%"
    P1_PIT01 "bar"
    P1_PIT01_HH "bar"
    P1_PIT02 "bar"
    P1_PP01AD ""
    P1_PP01AR ""
    P1_PP01BD ""
    P1_PP01BR ""
    P1_PP02D ""
    P1_PP02R ""
    P1_PP04 "%"
    P1_PP04SP "degC"
    P1_SOL01D ""
    P1_SOL03D ""
    P1_STSP ""
    P1_TIT01 "degC"
    P1_TIT02 "degC"
    P1_TIT03 "degC"
    P2_24Vdc "V"
    P2_ATSW_Lamp ""
    P2_AutoGO ""
    P2_AutoSD "RPM"
    P2_Emerg ""
    P2_MASW ""
    P2_MASW_Lamp ""
    P2_ManualGO ""
    P2_ManualSD "RPM"
    P2_OnOff ""
    P2_RTR "RPM"
    P2_SCO ""
    P2_SCST "RPM"
    P2_SIT01 "RPM"
    P2_TripEx ""
    P2_VIBTR01 "um"
    P2_VIBTR02 "um"
    P2_VIBTR03 "um"
    P2_VIBTR04 "um"
    P2_VT01 "rad/s"
    P2_VTR01 "um"
    P2_VTR02 "um"
    P2_VTR03 "um"
    P2_VTR04 "um"
    P3_FIT01 "counts"
    P3_LCP01D "counts"
    P3_LCV01D "counts"
    P3_LH01 "%"
    P3_LIT01 "counts"
    P3_LL01 "%"
    P3_PIT01 "counts"
    P4_HT_FD "mHz"
    P4_HT_PO "MW"
    P4_HT_PS "MW"
    P4_LD "MW"
    P4_ST_FD "Hz"
    P4_ST_GOV "counts"
    P4_ST_LD "MW"
    P4_ST_PO "MW"
    P4_ST_PS "MW"
    P4_ST_PT01 "counts"
    P4_ST_TT01 "counts"
}

/// A process that a client can stand for; P4 is the simulated grid that joins them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Process {
    P1,
    P2,
    P3,
}

impl Process {
    /// All of them.
    pub(crate) const ALL: [Process; 3] = [Process::P1, Process::P2, Process::P3];

    /// The prefix of its tags, and the name of its client.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Process::P1 => "P1",
            Process::P2 => "P2",
            Process::P3 => "P3",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Process::P1 => "boiler",
            Process::P2 => "turbine",
            Process::P3 => "pumped storage",
        }
    }

    /// Its physical sensors: what the paper watches. Commands, set points and switches are left out.
    pub(crate) const fn kept(self) -> &'static [Tag] {
        match self {
            Process::P1 => &[
                Tag::P1_FT01,
                Tag::P1_FT01Z,
                Tag::P1_FT02,
                Tag::P1_FT02Z,
                Tag::P1_FT03,
                Tag::P1_FT03Z,
                Tag::P1_LIT01,
                Tag::P1_PIT01,
                Tag::P1_PIT02,
                Tag::P1_TIT01,
                Tag::P1_TIT02,
                Tag::P1_TIT03,
            ],
            Process::P2 => &[
                Tag::P2_SIT01,
                Tag::P2_VIBTR01,
                Tag::P2_VIBTR02,
                Tag::P2_VIBTR03,
                Tag::P2_VIBTR04,
                Tag::P2_VT01,
            ],
            Process::P3 => &[Tag::P3_FIT01, Tag::P3_LIT01, Tag::P3_PIT01],
        }
    }

    /// The process that a tag belongs to; none for the grid's.
    pub(crate) fn of(tag: &str) -> Option<Process> {
        let (prefix, _) = tag.split_once('_')?;
        Process::ALL.into_iter().find(|p| p.name() == prefix)
    }
}

/// The recorded values of one second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlantRow(pub(crate) [f64; COUNT]);

impl Default for PlantRow {
    fn default() -> Self {
        Self([0.0; COUNT])
    }
}

impl Index<Tag> for PlantRow {
    type Output = f64;

    fn index(&self, tag: Tag) -> &f64 {
        &self.0[tag as usize]
    }
}

impl IndexMut<Tag> for PlantRow {
    fn index_mut(&mut self, tag: Tag) -> &mut f64 {
        &mut self.0[tag as usize]
    }
}

/// All columns with their units.
pub(crate) fn header() -> Vec<Sensor> {
    Tag::ALL.iter().map(|tag| Sensor::new(tag.name(), tag.unit())).collect()
}
