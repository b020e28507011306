//! The first line over a live source: connected, late, reconnecting, and how many values a second.

use std::time::Duration;

use super::views::{during, picture, text};
use crate::stream::live::status::{Shown, Standing};

fn connected() -> Shown {
    Shown {
        standing: Standing::Live,
        since: Duration::from_hours(2),
        words: "mqtt://plant:1883: connected".to_owned(),
        lag: Some(Duration::from_millis(400)),
        values_per_s: 86.2,
        left_out: 0,
        stale: Vec::new(),
    }
}

#[test]
fn the_state_of_a_live_source_stands_in_the_first_line_at_every_width() {
    let late = Shown {
        standing: Standing::Late,
        words: "mqtt://plant:1883: nothing has arrived for 12 s".to_owned(),
        lag: Some(Duration::from_secs(12)),
        values_per_s: 0.0,
        ..connected()
    };
    let reconnecting = Shown {
        standing: Standing::Reconnecting,
        since: Duration::from_secs(31),
        words: "mqtt://plant:1883: reconnecting for 31 s (connection refused)".to_owned(),
        ..late.clone()
    };
    let stale = vec![(2, Some(Duration::from_secs(95)))];
    let states = [
        ("connected", connected()),
        ("slow", Shown { values_per_s: 0.3, lag: Some(Duration::from_secs(9)), ..connected() }),
        ("a client is silent", Shown { stale, left_out: 17, ..connected() }),
        ("late", late),
        ("reconnecting", reconnecting),
    ];
    let mut console = during();
    console.model.is_live = true;
    let mut lines = Vec::new();
    for (name, state) in states {
        console.model.live = Some(Box::new(state));
        for width in [80, 120, 200] {
            let (buffer, _) = picture(&console, width, 40);
            lines.push(format!("{name}, {width}: {}", text(&buffer)[0]));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}
