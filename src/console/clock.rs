//! Times and lengths of time as an operator reads them.

use jiff::SignedDuration;

pub(crate) use crate::session::Clock;

/// A length of time in at most two units: `45s`, `12m30s`, `3h05m`, `2d04h`.
pub(crate) fn length(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().abs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A round length of time in one unit: `30 s`, `5 min`, `1 h`.
pub(crate) fn round_length(seconds: i64) -> String {
    match seconds {
        86_400.. => format!("{} d", seconds / 86_400),
        3600.. => format!("{} h", seconds / 3600),
        60.. => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_said_in_two_units() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (750, "12m30s"), (11_100, "3h05m"), (187_200, "2d04h")]
        {
            assert_eq!(length(SignedDuration::from_secs(seconds)), text);
            assert_eq!(length(SignedDuration::from_secs(-seconds)), text);
        }
    }
}
