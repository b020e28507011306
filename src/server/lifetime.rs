//! How long an incident is followed, in steps: one set of numbers for the decision and for the alarms
//! that are made of it.

/// The root of an incident is final this many steps after the alarm.
pub(crate) const FREEZE_AFTER: u64 = 5;

/// Steps after which an incident is taken for a change that stays.
pub(crate) const OLDEST: u64 = 150;

/// The propagation window: an effect comes so many steps after its cause at most, and for so many steps
/// a client that was affected raises no alarm of its own.
pub(crate) const WINDOW: u64 = 60;
