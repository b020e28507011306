//! Rules for the settings of a live source.

use super::Check;
use crate::session::{
    LiveHistory, LiveInput, LiveSource, Mark, MqttTopics, OpcUaPast, OpcUaSecurity, OpcUaSource,
    Session, Shape, Stretch, TimeFormat,
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
            LiveInput::OpcUa(opcua) => self.opcua(opcua, live),
        }
    }

    fn opcua(&mut self, opcua: &OpcUaSource, live: &LiveSource) {
        self.that(
            opcua.url.strip_prefix("opc.tcp://").is_some_and(|rest| !rest.is_empty()),
            "source.input.url",
            "expected opc.tcp://host:port",
        );
        self.number("source.input.publishing_ms", opcua.publishing_ms);
        self.that(
            opcua.user.is_some() == opcua.password_env.is_some(),
            "source.input.user",
            "a user needs `password_env`, the environment variable that holds the password, and a \
             password its user",
        );
        self.that(
            opcua.password_env.is_none() || opcua.security != OpcUaSecurity::Open,
            "source.input.password_env",
            "a password is sent over an encrypted connection only: `security` must name a policy, such \
             as Aes256Sha256RsaPss",
        );
        for (tag, node) in &opcua.tags {
            let id = node
                .split_once(';')
                .filter(|(ns, _)| ns.starts_with("ns="))
                .map_or(&node[..], |(_, id)| id);
            self.that(
                ["s=", "i=", "g=", "b="].iter().any(|kind| id.starts_with(kind)),
                "source.input.tags",
                format!("expected a node for {tag:?} such as \"s=Boiler.FT01\", found {node:?}"),
            );
        }
        let has_namespace = opcua.namespace.is_some();
        let is_whole = |node: &String| node.starts_with("ns=");
        self.that(
            has_namespace || opcua.tags.values().all(is_whole),
            "source.input.namespace",
            "nodes without `ns=` need `namespace`, the URI of theirs",
        );
        self.that(
            live.table().is_none() || opcua.past == OpcUaPast::Unread,
            "source.input.past",
            "normal data comes from `history: Table(…)`: the server's own history is not read beside it",
        );
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
