//! The attacks that the plant knows: twenty, each modelled on a scenario of HAI.

use super::tags::{Process, Tag};

/// How a change behaves over the duration of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Up in the first fifth, down in the last.
    Trapezoid,
    /// There from the first second to the last.
    Step,
    /// There for 8 s of every 20 s.
    Pulse,
}

/// One thing an attacker does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    /// Shifts a set point or a limit inside the controller; the recorded tag stays clean.
    Shift {
        tag: Tag,
        /// By how much at most.
        by: f64,
        shape: Shape,
    },
    /// Moves a command away from where it stood when the attack began.
    Move {
        tag: Tag,
        /// By how much at most.
        by: f64,
        shape: Shape,
    },
    Force {
        tag: Tag,
        to: f64,
    },
    /// Repeats the values of the time just before the attack, which hides it.
    Replay {
        tag: Tag,
    },
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Shape::Trapezoid => "trapezoid",
            Shape::Step => "step",
            Shape::Pulse => "pulses",
        })
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::Shift { tag, by, shape } => {
                write!(f, "set point {} {by:+} ({shape})", tag.name())
            }
            Action::Move { tag, by, shape } => write!(f, "command {} {by:+} ({shape})", tag.name()),
            Action::Force { tag, to } => write!(f, "command {} := {to}", tag.name()),
            Action::Replay { tag } => write!(f, "replay {}", tag.name()),
        }
    }
}

/// An attack of the catalogue.
#[derive(Debug, PartialEq)]
pub(crate) struct Attack {
    pub(crate) id: &'static str,
    /// When it begins on the attack day, in seconds from midnight.
    pub(crate) start_s: u32,
    /// How long it lasts.
    pub(crate) duration_s: u32,
    /// The HAI scenario it is modelled on: number and target.
    pub(crate) scenario: &'static str,
    /// The process it attacks: the root cause.
    pub(crate) origin: Process,
    pub(crate) actions: &'static [Action],
    /// The processes that feel it: measured against the run without it, in each of three seeds.
    pub(crate) affected: &'static [Process],
}

impl Attack {
    /// The length of the recording that a replay needs from before the attack; 0 without replay.
    pub(crate) fn replay_s(&self) -> u32 {
        let replays = self.actions.iter().any(|a| matches!(a, Action::Replay { .. }));
        if replays { self.duration_s } else { 0 }
    }

    /// What is tampered with: tags that are written and, for a set point or limit that is shifted,
    /// what its loop measures and commands.
    pub(crate) fn sensors(&self) -> Vec<Tag> {
        let mut tags: Vec<Tag> = Vec::new();
        for action in self.actions {
            match *action {
                Action::Shift { tag, .. } => tags.extend_from_slice(of_loop(tag)),
                Action::Move { tag, .. } | Action::Force { tag, .. } | Action::Replay { tag } => {
                    tags.push(tag);
                }
            }
        }
        tags
    }

    /// What is done, in a few words.
    pub(crate) fn what(&self) -> String {
        let actions: Vec<String> = self.actions.iter().map(ToString::to_string).collect();
        format!("{}: {}", self.scenario, actions.join("; "))
    }
}

/// What the loop of a set point measures and commands; of a limit, what it limits.
fn of_loop(set_point: Tag) -> &'static [Tag] {
    match set_point {
        Tag::P1_B2016 => &[Tag::P1_PIT01, Tag::P1_PCV01D],
        Tag::P1_B3004 => &[Tag::P1_LIT01, Tag::P1_LCV01D],
        Tag::P1_B3005 => &[Tag::P1_FT03, Tag::P1_FT03Z, Tag::P1_FCV03D],
        Tag::P1_B4002 => &[Tag::P1_TIT01, Tag::P1_FCV01D],
        Tag::P2_AutoSD => &[Tag::P2_SIT01, Tag::P2_SCO],
        Tag::P2_VTR02 => &[Tag::P2_VIBTR02],
        _ => &[],
    }
}

/// The attack called `id`.
pub(crate) fn find(id: &str) -> Option<&'static Attack> {
    CATALOGUE.iter().find(|attack| attack.id == id)
}

/// All names, in the order of the day.
pub(crate) fn ids() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|attack| attack.id)
}

const fn at(hour: u32, minute: u32, second: u32) -> u32 {
    3600 * hour + 60 * minute + second
}

const fn shift(tag: Tag, by: f64, shape: Shape) -> Action {
    Action::Shift { tag, by, shape }
}

const fn shove(tag: Tag, by: f64, shape: Shape) -> Action {
    Action::Move { tag, by, shape }
}

const fn force(tag: Tag, to: f64) -> Action {
    Action::Force { tag, to }
}

const fn replay(tag: Tag) -> Action {
    Action::Replay { tag }
}

use Process::{P1, P2, P3};
use Shape::{Pulse, Step, Trapezoid};

/// The attack day. Each attack has at least 900 s to die away before the next.
pub(crate) static CATALOGUE: [Attack; 20] = [
    Attack {
        id: "S101",
        start_s: at(1, 25, 4),
        duration_s: 237,
        scenario: "AP01 P1-PC-SP1",
        origin: P1,
        actions: &[shift(Tag::P1_B2016, -0.45, Trapezoid)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S102",
        start_s: at(2, 35, 1),
        duration_s: 198,
        scenario: "AP02 P1-PC-SP1PV1",
        origin: P1,
        actions: &[shift(Tag::P1_B2016, 0.55, Trapezoid), replay(Tag::P1_PIT01)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S103",
        start_s: at(3, 32, 17),
        duration_s: 156,
        scenario: "AP04 P1-PC-CO1",
        origin: P1,
        actions: &[shove(Tag::P1_PCV01D, -9.0, Trapezoid)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S104",
        start_s: at(4, 21, 4),
        duration_s: 164,
        scenario: "AP05 P1-PC-CO1PV1",
        origin: P1,
        actions: &[shove(Tag::P1_PCV01D, 18.0, Trapezoid), replay(Tag::P1_PIT01)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S105",
        start_s: at(5, 43, 1),
        duration_s: 161,
        scenario: "AP07 P1-PC-CO1-ST",
        origin: P1,
        actions: &[shove(Tag::P1_PCV01D, 22.0, Pulse)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S106",
        start_s: at(6, 36, 1),
        duration_s: 197,
        scenario: "AP03 P1-PC-SP1PV1PV2",
        origin: P1,
        actions: &[
            shift(Tag::P1_B2016, -0.45, Trapezoid),
            replay(Tag::P1_PIT01),
            replay(Tag::P1_FT01),
            replay(Tag::P1_FT01Z),
        ],
        affected: &[P2, P3],
    },
    Attack {
        id: "S107",
        start_s: at(7, 47, 1),
        duration_s: 604,
        scenario: "AP40 P1-PC-SP1-LT",
        origin: P1,
        actions: &[shift(Tag::P1_B2016, -0.3, Step)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S108",
        start_s: at(8, 50, 15),
        duration_s: 96,
        scenario: "AP08 P1-FC-SP1",
        origin: P1,
        actions: &[shift(Tag::P1_B3005, -250.0, Trapezoid)],
        affected: &[],
    },
    Attack {
        id: "S109",
        start_s: at(9, 40, 0),
        duration_s: 132,
        scenario: "AP14 P1-LC-SP1",
        origin: P1,
        actions: &[shift(Tag::P1_B3004, 90.0, Trapezoid)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S110",
        start_s: at(10, 30, 0),
        duration_s: 122,
        scenario: "AP17 P1-LC-CO1PV1",
        origin: P1,
        actions: &[shove(Tag::P1_LCV01D, 9.0, Trapezoid), replay(Tag::P1_LIT01)],
        affected: &[P2, P3],
    },
    Attack {
        id: "S111",
        start_s: at(11, 30, 0),
        duration_s: 505,
        scenario: "AP22 P1-TC-SP1-LT",
        origin: P1,
        actions: &[shift(Tag::P1_B4002, -5.0, Step)],
        affected: &[],
    },
    Attack {
        id: "S201",
        start_s: at(12, 50, 0),
        duration_s: 147,
        scenario: "AP26 P2-SC-SP1",
        origin: P2,
        actions: &[shift(Tag::P2_AutoSD, -70.0, Trapezoid)],
        affected: &[P3],
    },
    Attack {
        id: "S202",
        start_s: at(13, 50, 0),
        duration_s: 153,
        scenario: "AP27 P2-SC-SP1PV1",
        origin: P2,
        actions: &[shift(Tag::P2_AutoSD, 80.0, Trapezoid), replay(Tag::P2_SIT01)],
        affected: &[P3],
    },
    Attack {
        id: "S203",
        start_s: at(14, 55, 0),
        duration_s: 155,
        scenario: "AP30 P2-SC-CO1PV1",
        origin: P2,
        actions: &[shove(Tag::P2_SCO, -400.0, Trapezoid), replay(Tag::P2_SIT01)],
        affected: &[P3],
    },
    Attack {
        id: "S204",
        start_s: at(15, 55, 0),
        duration_s: 120,
        scenario: "AP31 P2-SC-SP1-ST",
        origin: P2,
        actions: &[shift(Tag::P2_AutoSD, 90.0, Pulse)],
        affected: &[P3],
    },
    Attack {
        id: "S205",
        start_s: at(17, 8, 0),
        duration_s: 100,
        scenario: "AP33 P2-TC-SP2",
        origin: P2,
        actions: &[shift(Tag::P2_VTR02, -49.0, Step)],
        affected: &[P3],
    },
    Attack {
        id: "S301",
        start_s: at(18, 30, 0),
        duration_s: 119,
        scenario: "AP35 P3-LC-CO1",
        origin: P3,
        actions: &[force(Tag::P3_LCP01D, 20_000.0)],
        affected: &[],
    },
    Attack {
        id: "S302",
        start_s: at(19, 40, 0),
        duration_s: 180,
        scenario: "AP37 P3-LC-CO2",
        origin: P3,
        actions: &[force(Tag::P3_LCV01D, 27_648.0)],
        affected: &[],
    },
    Attack {
        id: "S303",
        start_s: at(20, 50, 0),
        duration_s: 200,
        scenario: "AP38 P3-LC-CO2PV1",
        origin: P3,
        actions: &[force(Tag::P3_LCV01D, 27_648.0), replay(Tag::P3_LIT01)],
        affected: &[],
    },
    Attack {
        id: "S304",
        start_s: at(22, 10, 0),
        duration_s: 613,
        scenario: "AP39 P3-LC-CO2-LT",
        origin: P3,
        actions: &[force(Tag::P3_LCV01D, 23_000.0)],
        affected: &[],
    },
];
