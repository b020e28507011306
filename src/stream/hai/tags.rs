//! The columns of the four HAI releases under one set of names, those of manual v4.0.

use std::sync::LazyLock;

use crate::session::{ClientSettings, HaiSensors};
use crate::stream::Sensor;

/// A release of the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Version {
    /// 20.07 (HAI 1.0): `;` between cells, 59 columns.
    V2007,
    /// 21.03 (HAI 2.0): 79 columns.
    V2103,
    /// 22.04 (HAI 3.0): 86 columns, one label column.
    V2204,
    /// 23.05: 86 columns, labels in files of their own.
    V2305,
}

impl Version {
    /// All releases, the oldest first.
    pub(crate) const ALL: [Version; 4] = [Self::V2007, Self::V2103, Self::V2204, Self::V2305];

    /// The name a release goes by.
    pub(crate) fn name(self) -> &'static str {
        ["20.07", "21.03", "22.04", "23.05"][self as usize]
    }

    /// The release that goes by this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.name() == name)
    }
}

/// A measured quantity, a command, a set point of the testbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its name in manual v4.0.
    pub(crate) name: &'static str,
    /// P1 boiler, P2 turbine, P3 water treatment, P4 simulated grid.
    pub(crate) process: &'static str,
    /// sensor, derived, cmd, pos, sp, bool, ctrl, limit, hil or aux.
    pub(crate) kind: &'static str,
    units: Vec<&'static str>,
    headers: Vec<Option<&'static str>>,
}

impl Tag {
    /// Its header in a release; `None` when the release lacks it.
    pub(crate) fn header(&self, version: Version) -> Option<&'static str> {
        self.headers[version as usize]
    }

    /// Its engineering unit in a release, empty for a plain number.
    pub(crate) fn unit(&self, version: Version) -> &'static str {
        self.units.get(version as usize).unwrap_or(&self.units[0])
    }

    /// Whether it is a physical measurement of P1, P2 or P3, which the paper keeps.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.kind, "sensor" | "derived") && self.process != "P4"
    }
}

/// All tags of all releases: `name,process,kind,unit`, then the header in each release: `=` is the
/// name itself, nothing means that the release lacks it. A unit that changed is written for each
/// release, with `|` in between.
static TAGS: LazyLock<Vec<Tag>> = LazyLock::new(|| {
    super::lines(include_str!("../../../assets/hai/tags.csv"))
        .map(|cells: [&str; 8]| {
            let [name, process, kind, units, headers @ ..] = cells;
            let header = |text| match text {
                "" => None,
                "=" => Some(name),
                other => Some(other),
            };
            let headers = headers.into_iter().map(header).collect();
            Tag { name, process, kind, units: units.split('|').collect(), headers }
        })
        .collect()
});

/// The tags of a release.
pub(crate) fn tags(version: Version) -> impl Iterator<Item = &'static Tag> {
    TAGS.iter().filter(move |tag| tag.header(version).is_some())
}

/// The tag that a header of any release means. No header means two tags.
pub(crate) fn tag(header: &str) -> Option<&'static Tag> {
    TAGS.iter().find(|t| t.name == header || t.headers.contains(&Some(header)))
}

/// A column of a release under its canonical name; an unknown one keeps its own.
pub(crate) fn sensor(header: &str, version: Version) -> Sensor {
    match tag(header) {
        Some(tag) => Sensor::new(tag.name, tag.unit(version)),
        None => Sensor::new(header, ""),
    }
}

/// The processes as clients: P1, P2 and P3. P4 is a simulator and no client.
pub(crate) fn clients(version: Version, sensors: HaiSensors) -> Vec<ClientSettings> {
    [("P1", "boiler"), ("P2", "turbine"), ("P3", "water treatment")]
        .into_iter()
        .map(|(process, title)| ClientSettings {
            name: process.into(),
            title: title.into(),
            columns: tags(version)
                .filter(|tag| tag.process == process)
                .filter(|tag| sensors == HaiSensors::All || tag.is_kept())
                .map(|tag| tag.name.to_owned())
                .collect(),
            except: Vec::new(),
            inputs: Vec::new(),
        })
        .collect()
}
