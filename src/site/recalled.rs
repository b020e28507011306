//! A site whose run is read from its own recording: it measures nothing, and can send its run again
//! under other settings.

use super::evidence::Graded;
use super::flags::Measured;
use super::{LocalView, Site, Truth};
use crate::evidence::threshold::Flags;
use crate::wire::Tick;

impl Site {
    /// Takes a step from the recording: what was seen of it, what it was before anything was released,
    /// and the flags that were sent or rehearsed, where there were any.
    pub(crate) fn recall(
        &mut self,
        tick: Tick,
        local: &LocalView,
        truth: Truth,
        sent: Option<Flags>,
    ) {
        let grading = self.evidence.as_ref().map(|half| &half.sender.settings().grading);
        let symbol = |level: Option<u8>| grading?.symbol(usize::from(level?));
        // A recording keeps no severity: what is sent again from it is told without.
        let graded =
            Graded { own: symbol(truth.own), beside: symbol(truth.beside), severity: None };
        let (d2_c, d2_a) = (local.d_c * local.d_c, local.d_a * local.d_a);
        let turned = |of: fn(Flags) -> bool| {
            truth.flags.zip(sent).is_some_and(|(truth, sent)| of(truth) != of(sent))
        };
        let measured = Measured {
            d2_c,
            d2_a,
            flip_c: turned(|flags| flags.z_c),
            flip_a: turned(|flags| flags.z_a),
            sent: sent.is_some(),
        };
        if let Some(tape) = &mut self.tape {
            tape.keep(tick, graded, measured);
        }
    }

    /// ε of symbols, flags and Z_a as they were set at this moment of the recording.
    pub(crate) fn recall_epsilon(&mut self, epsilon: Option<f64>, epsilon_a: Option<f64>) {
        let privacy = &mut self.session.privacy;
        (privacy.epsilon_flag, privacy.epsilon_flag_a) = (epsilon, epsilon_a);
        self.was_protected |= privacy.protects_flags();
    }

    /// Whether its run so far has symbols to send again.
    pub(crate) fn has_symbols(&self) -> bool {
        self.tape.iter().flat_map(|tape| &tape.graded).any(|graded| graded.own.is_some())
    }

    /// Whether its run so far has distances, from which flags follow.
    pub(crate) fn has_distances(&self) -> bool {
        self.tape.iter().flat_map(|tape| &tape.measured).any(|measured| !measured.d2_c.is_nan())
    }
}
