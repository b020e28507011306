//! Everything that passes the broker in whole runs, captured by a subscriber to `#` and searched for what
//! sites have measured.

use std::collections::HashSet;
use std::fs;

use rumqttc::Packet;

use crate::identity::Party;
use crate::remote::{Plant, incidents};
use crate::tables::{rows, session, wide};

/// Measured numbers in every form in which they might hide.
#[derive(Default)]
struct Needles {
    /// Eight bytes: a double, or two neighbouring sensors of one row as four bytes each; either order.
    bytes: HashSet<[u8; 8]>,
    /// Decimals with enough digits to be of one measurement alone.
    text: HashSet<String>,
    /// Four bytes: met by chance now and then, as often as their neighbours.
    short: HashSet<u32>,
}

impl Needles {
    fn add(&mut self, row: &[f64]) {
        let joined = |a: [u8; 4], b: [u8; 4]| -> [u8; 8] {
            [a, b].concat().try_into().expect("eight bytes")
        };
        for value in row {
            self.bytes.extend([value.to_le_bytes(), value.to_be_bytes()]);
            self.text.insert(format!("{value:.7}"));
            self.short.insert((*value as f32).to_bits());
        }
        for pair in row.windows(2) {
            let [a, b] = [pair[0] as f32, pair[1] as f32];
            self.bytes.insert(joined(a.to_le_bytes(), b.to_le_bytes()));
            self.bytes.insert(joined(a.to_be_bytes(), b.to_be_bytes()));
        }
    }

    /// How often a measurement is found.
    fn found_in(&self, payload: &[u8]) -> usize {
        let eight = payload.windows(8).filter(|w| self.bytes.contains(*w)).count();
        // The shortest of these texts has nine characters, the longest of these rows eleven.
        let text = (9..=11).flat_map(|length| payload.windows(length));
        let text = text.filter_map(|w| std::str::from_utf8(w).ok());
        eight + text.filter(|w| self.text.contains(*w)).count()
    }

    /// How often four bytes are a measurement, and how often the neighbour of one: what chance finds.
    fn short_in(&self, payload: &[u8]) -> [usize; 2] {
        let words =
            || payload.windows(4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes")));
        let met = words().filter(|word| self.short.contains(word)).count();
        [met, words().filter(|word| self.short.contains(&(word ^ 1))).count()]
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn nothing_that_passes_the_broker_holds_a_measurement() {
    let mut needles = Needles::default();
    for (_, row, _) in rows(0, 7000) {
        needles.add(&row);
    }
    for mode in ["evidence", "paper"] {
        let files = [("fit.csv", wide(0, 6000)), ("day.csv", wide(6000, 7000))];
        let mut plant = Plant::of(&session("", "\"day.csv\""), mode, &files);
        // Nobody has models yet, so that the training passes the broker too.
        plant.apart = true;
        // Somebody with a certificate who may read everything: a client of another session.
        fs::create_dir(plant.path("other")).expect("a folder");
        let other = "Session(about: \"other\", source: Twin(family: A, clients: 2))";
        fs::write(plant.path("other/short.ron"), other).expect("written");
        plant.certify("other/short.ron");
        plant.certify("short.ron");
        let list = plant.path("certs/broker/acl");
        let rights = fs::read_to_string(&list).expect("the access list");
        fs::write(&list, format!("{rights}\nuser C1\ntopic read #\n")).expect("written");
        let _broker = plant.broker();
        let ear = Party::connect(&plant, Some("C1"), "ear").expect("connected");
        ear.subscribe("#");
        ear.wait(|packet| matches!(packet, Packet::SubAck(_)).then_some(()));
        let alone = plant.alone();
        let mut sites = ["A", "B"].map(|name| plant.site(name));
        let mut server = plant.start("serve", &[], "server");
        assert!(server.ends_well(), "{}", plant.read("server.err"));
        for site in &mut sites {
            assert!(site.ends_well());
        }
        assert_eq!(incidents(&plant.read("server")), alone, "{mode}");
        let said = plant.read("server.err");
        assert!(said.contains("training over the broker"), "{said}");
        let captured = ear.delivered();
        let of = |end: &str| captured.iter().filter(|(topic, _)| topic.ends_with(end)).count();
        // A thousand steps of two sites, and as many answers.
        assert!(of("/up") >= 2000 && of("/down") >= 2000, "{} and {}", of("/up"), of("/down"));
        let found: usize = captured.iter().map(|(_, payload)| needles.found_in(payload)).sum();
        assert_eq!(found, 0, "{mode}");
        let mut short = [0; 2];
        for (_, payload) in &captured {
            let [met, chance] = needles.short_in(payload);
            short = [short[0] + met, short[1] + chance];
        }
        assert!(short[0] <= 3 * short[1] + 10, "{mode}: {short:?} numbers of four bytes");
        let bytes: usize = captured.iter().map(|(_, payload)| payload.len()).sum();
        println!("{mode}: {} messages, {bytes} bytes, {short:?} short numbers", captured.len());
        // The search must be able to find what it looks for.
        let (_, row, _) = rows(6100, 6101)[0];
        let whole = captured[captured.len() / 2].1.clone();
        for leak in [
            row[0].to_le_bytes().to_vec(),
            row[2].to_be_bytes().to_vec(),
            [(row[2] as f32).to_le_bytes(), (row[3] as f32).to_le_bytes()].concat(),
            format!("{:.7}", row[1]).into_bytes(),
        ] {
            let mut leaky = whole.clone();
            leaky.splice(5..5, leak);
            assert!(needles.found_in(&leaky) > 0);
        }
    }
}
