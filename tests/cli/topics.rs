//! One topic of a broker a tag: values come by themselves, and become the rows that they were.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use rumqttc::{Broker, Client, MqttOptions, PublishOptions};

use super::broker::{Mosquitto, figure, free_port, wait_for_subscriber};
use super::live::{Running, WATCHED, incidents, program, rows, session, told, wait_until};

/// An hour of normal data, and ten minutes that are watched.
const ROWS: usize = 4200;

/// What happens to a value on its way.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Good,
    Bad,
    Doubled,
}

/// Two values of a hundred are bad, and two come twice, once the normal data is over.
fn fate(row: usize, tag: usize) -> Fate {
    match (row * 13 + tag) % 50 {
        _ if row < 3600 => Fate::Good,
        7 => Fate::Bad,
        31 => Fate::Doubled,
        _ => Fate::Good,
    }
}

/// The session of the other tests with an hour to learn, and an address of figures.
fn short(folder: &Path, live: &str, metrics: u16) -> PathBuf {
    let file = session(folder, live);
    let text = fs::read_to_string(&file).expect("written");
    let told = format!("metrics: \"127.0.0.1:{metrics}\", ranges:");
    let text = text.replace("+2h", "+20m").replace("+6h", "+1h").replace("ranges:", &told);
    fs::write(&file, text).expect("writable");
    file
}

/// Publishes every value on the topic of its tag; how many were bad and doubled. What waits is sent for as
/// long as the client is kept.
fn publish(port: u16, tags: &[(usize, &str)]) -> (u64, u64, Client) {
    let mut options = MqttOptions::new("plant", Broker::tcp("127.0.0.1", port));
    options.set_clean_start(true);
    let (client, mut connection) =
        Client::builder(options).capacity(256).try_build().expect("a client");
    thread::spawn(move || while let Ok(Ok(_)) = connection.recv() {});
    let (mut bad, mut doubled) = (0, 0);
    for (row, line) in rows()[1..=ROWS].iter().enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let time = format!("{}Z", cells[0].replace(' ', "T"));
        for place in 0..tags.len() {
            // Another tag is the first in every row.
            let tag = (place + row) % tags.len();
            let (column, name) = tags[tag];
            let fate = fate(row, tag);
            let quality = if fate == Fate::Bad { "bad" } else { "good" };
            let value = cells[column];
            let payload = format!("{{\"ts\":\"{time}\",\"v\":{value},\"q\":\"{quality}\"}}");
            let times = 1 + u64::from(fate == Fate::Doubled);
            for _ in 0..times {
                let options = PublishOptions::at_least_once();
                client.publish(format!("plant/{name}"), payload.clone(), options).expect("sent");
            }
            bad += u64::from(fate == Fate::Bad);
            doubled += times - 1;
        }
    }
    (bad, doubled, client)
}

#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
#[test]
fn a_topic_a_tag_gives_the_incidents_of_whole_rows_and_counts_what_is_bad_or_comes_twice() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    let header: Vec<&str> = rows()[0].split(',').collect();
    let watched = fs::read_to_string(session(folder, "input: Stdin")).expect("a session");
    let is_watched = |name: &&str| watched.contains(&format!("\"{name}\""));
    let tags: Vec<(usize, &str)> =
        header.iter().copied().enumerate().filter(|(_, name)| is_watched(name)).collect();
    assert_eq!(tags.len(), 13);
    const { assert!(ROWS < WATCHED) };

    let broker = Mosquitto::start(folder);
    let metrics = free_port();
    let input = format!(
        "input: Mqtt(broker: \"mqtt://127.0.0.1:{}\", topics: Tags(topic: \"plant/{{tag}}\", value: \
         \"v\")), time: (column: \"ts\"), quality: \"q\", lateness_s: 600",
        broker.port
    );
    let running = Running::start(folder, &short(folder, &input, metrics));
    wait_for_subscriber(metrics);
    let (bad, doubled, client) = publish(broker.port, &tags);
    wait_until("the last row", || figure(metrics, "headwater_rows_total") == Some(ROWS as f64));
    drop(client);
    let by_topic = running.end();
    println!("one topic a tag: {ROWS} rows, {bad} bad, {doubled} doubled");
    assert_eq!((by_topic.count("bad"), by_topic.count("doubled")), (bad, doubled));
    assert_eq!((by_topic.count("rows,"), by_topic.count("incomplete")), (ROWS as u64, 0));

    // The same rows as lines, with nothing where a value was bad.
    let lines = rows()[..=ROWS].iter().enumerate().map(|(line, text)| {
        let mut cells: Vec<&str> = text.split(',').collect();
        for (tag, (column, _)) in tags.iter().enumerate().filter(|_| line > 0) {
            if fate(line - 1, tag) == Fate::Bad {
                cells[*column] = "";
            }
        }
        cells.join(",") + "\n"
    });
    let file = folder.join("rows.csv");
    fs::write(&file, lines.collect::<String>()).expect("written");
    let by_line = program(folder)
        .args(["run", "--json", "--seed", "1"])
        .arg(short(folder, "input: Stdin", free_port()))
        .stdin(fs::File::open(&file).expect("there"))
        .output()
        .expect("the program runs");
    assert_eq!(incidents(&told(&by_line)), incidents(&by_topic));
}
