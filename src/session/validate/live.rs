//! What a live source must say.

use super::Check;
use crate::session::{
    LiveHistory, LiveInput, LiveSource, Mark, MqttTopics, Session, Shape, Stretch, TimeFormat,
};

impl Check {
    pub(super) fn live(&mut self, live: &LiveSource) {
        self.number("source.grid_s", live.grid_s);
        self.number("source.lateness_s", live.lateness_s);
        self.number("source.hold_s", live.hold_s);
        self.number("source.time.utc_offset_h", live.time.utc_offset_h);
        self.that(
            !live.time.column.is_empty(),
            "source.time.column",
            "expected the column or key that holds the time",
        );
        self.time_format(&live.time.format, false);
        self.that(
            matches!(
                live.time.format,
                TimeFormat::Auto | TimeFormat::Pattern(_) | TimeFormat::Seconds { .. }
            ),
            "source.time.format",
            "live rows say their time themselves: Auto, Pattern or Seconds",
        );
        if let Shape::Long { tag, value, .. } = &live.shape {
            self.that(!tag.is_empty(), "source.shape.tag", "expected the column of the tags");
            self.that(!value.is_empty(), "source.shape.value", "expected the column of the values");
        }
        match &live.input {
            LiveInput::Stdin => {}
            LiveInput::Follow { file } => {
                self.that(!file.is_empty(), "source.input.file", "expected the name of a file");
            }
            LiveInput::Mqtt(mqtt) => {
                let known = ["mqtt://", "mqtts://"].iter().any(|s| mqtt.broker.starts_with(s));
                self.that(
                    known,
                    "source.input.broker",
                    "expected mqtt://host:port or mqtts://host:port",
                );
                if let MqttTopics::Tags { topic, .. } = &mqtt.topics {
                    self.that(
                        topic.matches("{tag}").count() == 1,
                        "source.input.topics.topic",
                        "expected a topic with {tag} in one place, such as \"plant/{tag}\"",
                    );
                }
                self.that(
                    mqtt.certificate.is_some() == mqtt.key.is_some(),
                    "source.input.certificate",
                    "a certificate needs its key, and a key its certificate",
                );
                self.that(
                    mqtt.password_env.is_none() || mqtt.broker.starts_with("mqtts://"),
                    "source.input.password_env",
                    "a password is sent over an encrypted connection only: mqtts://",
                );
            }
        }
    }

    /// The ranges of a live source: how long it learns, or from which files.
    pub(super) fn live_ranges(&mut self, session: &Session, live: &LiveSource) {
        let ranges = &session.ranges;
        self.that(
            ranges.replay == Stretch::default(),
            "ranges.replay",
            "a live source is watched from the end of its calibration range on",
        );
        let of_files = matches!(live.history, LiveHistory::Table(_));
        for (name, stretch) in [("fit", &ranges.fit), ("calibration", &ranges.calibration)] {
            self.that(
                of_files != stretch.files.is_empty(),
                format!("ranges.{name}.files"),
                if of_files {
                    "expected the names of the files to read, such as [\"normal*.csv\"]"
                } else {
                    "files belong to `history: Table(…)`"
                },
            );
        }
        if of_files {
            return;
        }
        let distance = |mark: Option<Mark>| match mark {
            Some(Mark::After(seconds)) => Some(seconds),
            _ => None,
        };
        let (fit, until) = (distance(ranges.fit.until), distance(ranges.calibration.until));
        self.that(
            ranges.fit.from.is_none() && fit.is_some_and(|s| s > 0.0),
            "ranges.fit",
            "expected how long models are fitted, from the first row on, such as (until: \"+2d\")",
        );
        self.that(
            distance(ranges.calibration.from) == fit && until > fit,
            "ranges.calibration",
            "expected how long thresholds are set, from the end of the fit range on, such as \
             (from: \"+2d\", until: \"+6d\")",
        );
    }
}
