use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::alarms::{AlarmFile, read as read_alarms};
use super::error::ScoreError;
use super::report::Report;
use super::truth::read as read_truth;
use super::*;
use crate::session::Span;

const TAIL: Span = Span { seconds: 300.0 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_660_320_000 + second).expect("a time of our century")
}

fn event(id: &str, start: i64, end: i64, origins: &[&str]) -> Event {
    Event {
        id: id.into(),
        start: at(start),
        end: at(end),
        origins: origins.iter().map(ToString::to_string).collect(),
        affected: Vec::new(),
        what: String::new(),
    }
}

fn alarm(opened: i64, root: &str) -> Alarm {
    Alarm::new(at(opened), (!root.is_empty()).then(|| root.into()))
}

fn day() -> Watched {
    Watched::Spans(vec![(at(0), at(86_400))])
}

#[test]
fn each_kind_of_answer_is_counted_where_it_belongs() {
    let events = [
        event("right", 1000, 1100, &["P1"]),
        event("wrong", 3000, 3100, &["P1"]),
        event("unnamed", 5000, 5100, &["P2"]),
        event("missed", 7000, 7100, &["P2"]),
        event("doubtful", 9000, 9100, &[]),
        event("either", 11_000, 11_100, &["P2", "P3"]),
    ];
    let alarms = [
        alarm(1010, "P1"),
        alarm(1050, "P2"),
        alarm(3030, "P3"),
        alarm(5400, ""),
        alarm(9020, "P1"),
        alarm(11_400, "P3"),
        alarm(20_000, "P1"),
    ];
    let score = Score::of(&events, &alarms, &day(), 300.0);
    let mut score = serde_json::to_value(score).expect("a score is plain");
    let fields = score.as_object_mut().expect("an object");
    let events = fields.remove("events").expect("each event");
    let verdicts: Vec<&str> =
        events.as_array().expect("a list").iter().filter_map(|e| e["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["right", "wrong", "unnamed", "missed", "doubtful", "right"]);
    let quiet = fields.remove("quiet_days").and_then(|days| days.as_f64()).expect("a number");
    assert!((quiet - (1.0 - 6.0 * 400.0 / 86_400.0)).abs() < 1e-6, "{quiet}");
    let course = json!({"at_alarm": 2, "after_5_steps": 2, "at_close": 2, "with_source": 2});
    assert_eq!(fields.remove("roots"), Some(course));
    assert_eq!(fields.remove("repeats"), Some(json!(1)));
    assert_eq!(fields["effects"]["precision"], json!(null), "the truth knows of no effect");
    fields.remove("effects");
    assert_eq!(
        score,
        json!({
            "labelled": 6, "detected": 5, "root_right": 2, "root_wrong": 1, "root_unknown": 2,
            "false_alarms": 1, "days": 1.0, "delay_s": {"median": 30.0, "p95": 400.0},
            "ac1": 0.4, "mrr": 0.4,
        })
    );
}

#[test]
fn gaps_are_not_watched() {
    let pieces = Watched::Spans(vec![(at(0), at(600)), (at(43_200), at(43_800))]);
    let within = Watched::Within { from: at(0), until: at(43_800), days: 1200.0 / 86_400.0 };
    let events = [event("seen", 100, 200, &["P1"]), event("in the gap", 9000, 9100, &["P1"])];
    let (known, told) = (
        Score::of(&events, &[alarm(110, "P1")], &pieces, 300.0),
        Score::of(&events[..1], &[alarm(110, "P1")], &within, 300.0),
    );
    assert!((known.days - 1200.0 / 86_400.0).abs() < 1e-12, "{known:?}");
    assert_eq!((known.labelled, known.detected), (1, 1));
    assert!((told.days - known.days).abs() < 1e-12, "{told:?}");
}

#[test]
fn a_normal_day_has_a_score_without_shares() {
    let score = Score::of(&[], &[alarm(50, "P1")], &day(), 300.0);
    assert_eq!((score.labelled, score.false_alarms, score.ac1), (0, 1, None));
    let text = serde_json::to_string(&score).expect("a score is plain");
    assert!(text.contains(r#""delay_s":{"median":null,"p95":null},"ac1":null,"mrr":null"#));
    assert_eq!(serde_json::from_str::<Score>(&text).expect("it reads back"), score);
}

#[test]
fn an_event_outside_the_watch_is_not_held_against_anybody() {
    let events = [event("before", -500, -100, &["P1"]), event("after", 90_000, 90_100, &["P1"])];
    let score = Score::of(&events, &[alarm(60, "P1")], &day(), 300.0);
    assert_eq!((score.labelled, score.detected, score.false_alarms), (0, 0, 0));
    let everything = Score::of(&events, &[alarm(60, "P1")], &Watched::Days(2.0), 300.0);
    assert_eq!((everything.labelled, everything.detected, everything.days), (2, 1, 2.0));
}

#[test]
fn the_posterior_ranks_what_was_not_named() {
    let events = [event("A1", 1000, 1100, &["P3"])];
    let mut named = alarm(1010, "P1");
    named.posterior = [("P1", 0.5), ("P2", 0.1), ("P3", 0.4)].map(|(n, p)| (n.into(), p)).into();
    let score = Score::of(&events, &[named], &day(), 300.0);
    assert_eq!((score.root_wrong, score.ac1, score.mrr), (1, Some(0.0), Some(0.5)));
}

#[test]
fn overlapping_watches_are_not_counted_twice() {
    let watched = Watched::Spans(vec![(at(0), at(600)), (at(300), at(900)), (at(1000), at(1100))]);
    let events = [event("A1", 100, 200, &["P1"])];
    let judgement = Judgement::new(&events, &[], &watched, 300.0);
    assert!((judgement.watched_s - 1000.0).abs() < 1e-9);
    assert!((judgement.nominal_s - 600.0).abs() < 1e-5);
}

#[test]
fn a_rate_of_false_alarms_counts_only_time_without_events() {
    // A day of which an event and its tail take six hours; two alarms are false.
    let events = [event("A1", 0, 21_300, &["P1"])];
    let alarms = [alarm(10, "P1"), alarm(30_000, "P1"), alarm(60_000, "P2")];
    let file = AlarmFile {
        alarms: alarms.to_vec(),
        watched: Some(Watched::Spans(vec![(at(0), at(86_400))])),
        closings: false,
        cut_at_line: None,
    };
    let report = Report::new(&events, &file, Span { seconds: 300.0 });
    assert_eq!((report.score.false_alarms, report.score.days), (2, 1.0));
    assert!((report.score.quiet_days - 0.75).abs() < 1e-9, "{:?}", report.score);
    let rate = report.false_alarms_per_day.expect("a rate");
    assert!((rate - 2.0 / 0.75).abs() < 1e-6, "{rate}");
    let text = report.to_string();
    assert!(text.contains("in 0.75 quiet days of 1.00: 2.67 a day"), "{text}");
}

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a file in it");
        path
    }

    /// An error as shown, without the folder that differs from run to run.
    fn said(&self, error: &ScoreError) -> String {
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn score(&self, truth: &str, alarms: &str) -> Result<Report, String> {
        let (truth, alarms) = (self.write("truth", truth), self.write("alarms", alarms));
        run(&truth, &alarms, TAIL).map_err(|error| self.said(&error))
    }
}

const TRUTH: &str = r#"{
  "seeds": [1],
  "attacks": [
    {"id": "A1", "start": "2022-08-12T16:00:00Z", "end": "2022-08-12T16:02:59Z", "origin": "P1",
     "affected": {"P2": {"onset_s": 20}}},
    {"id": "A2", "start": "2022-08-12 17:00:00", "end": "2022-08-12 17:04:59", "origins": ["P2"]},
    {"id": 3, "start": "2022-08-12T20:00:00+02:00", "end": "2022-08-12T20:01:00+02:00"},
    {"start": "2022-08-12 19:00", "end": "2022-08-12 19:01", "origin": "P1+P3", "affected": ["P2"]}
  ]
}"#;

const FACTS: &str = r#"{"fact":"training","round":1,"rounds":1,"server_loss":0.5,"client_loss":[]}
{"fact":"opened","incident":1,"time":"2022-08-12T16:00:20Z","step":20,"root":"P2","posterior":{"P1":0.4,"P2":0.6},"first_out":"P2","effects":[],"mode":"evidence"}
{"fact":"updated","incident":1,"time":"2022-08-12T16:00:45Z","step":25,"root":"P1","posterior":{"P1":0.9,"P2":0.1},"first_out":"P2","effects":[{"client":"P2","time":"2022-08-12T16:00:20Z","delay_s":0}],"mode":"evidence"}
{"fact":"closed","incident":1,"time":"2022-08-12T16:03:30Z","step":60,"root":"P1","posterior":{"P1":0.2,"P2":0.8},"first_out":"P2","effects":[],"mode":"evidence"}

{"fact":"opened","incident":2,"time":"2022-08-12T17:01:00Z","step":90,"root":null,"posterior":{"P1":0.3,"P2":0.3,"P3":0.4},"first_out":null,"effects":[],"mode":"evidence"}
{"fact":"closed","incident":2,"time":"2022-08-12T17:05:00Z","step":99}
{"fact":"opened","incident":3,"time":"2022-08-12T17:30:00Z","step":120,"root":"P3"}
{"fact":"closed","incident":3,"time":"2022-08-12T17:31:00Z","step":121}
{"fact":"opened","incident":4,"time":"2022-08-12T18:00:10Z","step":140,"root":"P3"}
{"fact":"summary","session":"x","steps":1000,"from":"2022-08-12T12:00:00Z","until":"2022-08-13T00:00:00Z","score":{"days":0.5}}
"#;

#[test]
fn facts_and_truth_become_a_table_that_a_person_can_read() {
    let report = Files::new().score(TRUTH, FACTS).expect("both files are good");
    insta::assert_snapshot!(report, @r"
    labelled events       4
    detected              3   75.0 %
    root right            1   50.0 % of the detected with a known origin
    root wrong            0
    root unknown          2
    false alarms          1   in 0.48 quiet days of 0.50: 2.09 a day
    repeated alarms       0   not counted
    delay             median 20.0 s  p95 56.0 s
    to the right root median 45.0 s  p95 45.0 s
    events            precision 0.750  recall 0.750  F1 0.750
    roots             precision 0.500  recall 0.333  F1 0.400
    suspects          AC@1 0.333  AC@3 0.667  Avg@5 0.533  MRR 0.444
    ARL0 in seconds   41402.0 (1 of 2 censored)
    ARL1 in seconds   150.0 (1 of 4 censored)
    eTaPR             precision 0.153  recall 0.461  F1 0.230 (θp 0.5, θr 0.1)
      point-wise      precision 0.023  recall 0.850  F1 0.045
      point-adjusted  precision 0.027  recall 1.000  F1 0.053

    is \ said         root  effect   quiet
    root                 1       0       1
    effect               0       1       0
    quiet                0       0       0

    event  start                 origin  after  root  verdict
    A1     2022-08-12T16:00:00Z  P1      20 s   P1    right
    A2     2022-08-12T17:00:00Z  P2      60 s   -     unnamed
    3      2022-08-12T18:00:00Z  -       10 s   P3    doubtful
    4      2022-08-12T19:00:00Z  P1+P3   -      -     missed

    false alarm           root
    2022-08-12T17:30:00Z  P3
    ");
}

#[test]
fn the_json_report_begins_with_the_contract() {
    let report = Files::new().score(TRUTH, FACTS).expect("both files are good");
    let value = serde_json::to_value(&report).expect("a report is plain");
    for key in [
        "labelled",
        "detected",
        "root_right",
        "root_wrong",
        "root_unknown",
        "false_alarms",
        "days",
        "delay_s",
        "ac1",
        "mrr",
    ] {
        assert!(!value[key].is_null(), "{key}");
    }
    let text = serde_json::to_string(&report).expect("a report is plain");
    assert!(text.starts_with(r#"{"labelled":4,"detected":3,"root_right":1,"#), "{text}");
    assert_eq!(value["days_from"], "summary");
    assert_eq!(value["attribution_delay_s"]["median"], 45.0);
    assert_eq!(value["events"][1]["verdict"], "unnamed");
}

#[test]
fn tables_of_other_programs_are_scored_as_well() {
    let truth = "start,end,origin,id\n2022-08-12 16:00:00,2022-08-12 16:02:59,P1,A1\n\
                 2022-08-12 17:00,2022-08-12 17:05,\"P2 + P3\",A2\n";
    let alarms = "Time;Root\n2022-08-12 16:00:30;P1\n2022-08-12 17:00:10;P3\n2022-08-12 22:00;\n";
    let report = Files::new().score(truth, alarms).expect("both files are good");
    insta::assert_snapshot!(report, @r"
    labelled events       2
    detected              2   100.0 %
    root right            2   100.0 % of the detected with a known origin
    root wrong            0
    root unknown          0
    false alarms          1   in 0.24 quiet days of 0.25: 4.21 a day (between the first and the last time in the files)
    repeated alarms       0   not counted
    delay             median 20.0 s  p95 29.0 s
    to the right root median 20.0 s  p95 29.0 s
    events            precision 0.667  recall 1.000  F1 0.800
    roots             precision 1.000  recall 1.000  F1 1.000
    suspects          AC@1 1.000  AC@3 1.000  Avg@5 1.000  MRR 1.000
    ARL0 in seconds   20521.0 (1 of 2 censored)
    ARL1 in seconds   20.0

    is \ said         root  effect   quiet
    root                 2       0       1
    effect               0       0       0
    quiet                0       0       0

    event  start                 origin  after  root  verdict
    A1     2022-08-12T16:00:00Z  P1      30 s   P1    right
    A2     2022-08-12T17:00:00Z  P2+P3   10 s   P3    right

    false alarm           root
    2022-08-12T22:00:00Z  -
    ");
}

#[test]
fn a_summary_without_a_span_still_says_how_many_days() {
    let facts = r#"{"fact":"summary","session":"x","steps":1000,"score":{"days":2.5}}"#;
    let report = Files::new().score(TRUTH, facts).expect("both files are good");
    assert!((report.score.days - 2.5).abs() < 1e-12);
    assert_eq!((report.score.labelled, report.score.detected), (4, 0));
}

#[test]
fn an_incident_that_never_closed_was_open_to_the_end() {
    let truth = "start,end,origin\n2022-08-12 16:00:00,2022-08-12 16:00:59,P1\n";
    let facts = r#"{"fact":"opened","incident":1,"time":"2022-08-12T16:00:00Z","root":"P1"}
{"fact":"summary","from":"2022-08-12T15:00:00Z","until":"2022-08-12T16:01:59Z"}"#;
    let report = Files::new().score(truth, facts).expect("both files are good");
    let etapr = report.etapr.expect("closings are known");
    assert_eq!(etapr.pointwise.precision, Some(0.5));
}

/// What is said about each of these files, one after the other.
fn complaints<T>(
    files: &[&str],
    read: impl Fn(&std::path::Path) -> Result<T, ScoreError>,
) -> String {
    let folder = Files::new();
    let said: Vec<String> = files
        .iter()
        .map(|text| match read(&folder.write("file", text)) {
            Ok(_) => panic!("{text:?} should not be accepted"),
            Err(error) => folder.said(&error),
        })
        .collect();
    said.join("\n")
}

#[test]
fn what_is_wrong_with_a_truth_file_is_said_with_its_place() {
    let files = [
        "  \n",
        r#"{"attack": []}"#,
        "{\"events\": [\n  {\"id\": \"A1\", \"end\": \"2022-08-12\"}\n]}",
        "[\n {\"start\": \"noon\", \"end\": \"2022-08-12\"}\n]",
        r#"[{"start": "2022-08-13", "end": "2022-08-12"}]"#,
        r#"[{"start": "2022-08-13", "end": "2022-08-14", "origin": 7}]"#,
        r#"[{"start": "#,
        "start,end,orign\n",
        "start,end,origin\n2022-08-12,2022-08-13,P1\n2022-08-12,later,P1\n",
        "start,end,origin\n2022-08-12,2022-08-13\n",
        "start,end,origin\n2022-08-14,2022-08-13,P1\n",
    ];
    insta::assert_snapshot!(complaints(&files, read_truth), @r#"
    file:1: the file is empty; expected a JSON file of events, or a table with the columns start, end and origin
    file:1: no array under "attacks" or "events"
    expected events such as {"id": "A1", "start": "2022-08-12T16:00:00Z", "end": "2022-08-12T16:03:00Z", "origin": "P1"} in an array, alone or under "attacks" or "events"
    file:2:35: missing field `start`
    expected events such as {"id": "A1", "start": "2022-08-12T16:00:00Z", "end": "2022-08-12T16:03:00Z", "origin": "P1"} in an array, alone or under "attacks" or "events"
    file:2:17: expected a time such as "2022-08-12T16:00:00Z" or "2022-08-12 16:00:00", found "noon"
    file:1:46: the event ends (2022-08-12T00:00:00Z) before it starts (2022-08-13T00:00:00Z)
    file:1:58: expected a client's name, or several in a list
    file:1:11: not JSON (EOF while parsing a value)
    expected events such as {"id": "A1", "start": "2022-08-12T16:00:00Z", "end": "2022-08-12T16:03:00Z", "origin": "P1"} in an array, alone or under "attacks" or "events"
    file:1: no column "origin" (the nearest is "orign")
    expected a table with the columns start, end and origin (and id, if it has names)
    file:3: end: expected a time such as "2022-08-12T16:00:00Z" or "2022-08-12 16:00:00", found "later"
    file:2: expected 3 cells as in the header, found 2
    file:2: the event ends (2022-08-13T00:00:00Z) before it starts (2022-08-14T00:00:00Z)
    "#);
}

#[test]
fn what_is_wrong_with_an_alarm_file_is_said_with_its_place() {
    let opened = "{\"fact\":\"opened\",\"incident\":1,\"time\":\"2022-08-12T16:00:00Z\"}\n";
    let closed = opened.replace("opened", "closed").replace("16:", "15:");
    let files = [
        "",
        "[]",
        &format!("{opened}\nnot json\n"),
        r#"{"event":"opened"}"#,
        r#"{"fact":"opened","incident":1}"#,
        &opened.repeat(2),
        &opened.replace("opened", "updated"),
        &format!("{opened}{closed}"),
        r#"{"fact":"summary","score":{"days":-1}}"#,
        "time,client\n2022-08-12,P1\n",
        "time,root\n12/08/2022,P1\n",
        "time,root,closed\n2022-08-12,P1,2022-08-11\n",
    ];
    insta::assert_snapshot!(complaints(&files, read_alarms), @r#"
    file:1: the file is empty; expected facts of `headwater run --json`, or a table with the columns time and root (only this header when there was no alarm)
    file:1: a JSON array; expected facts of `headwater run --json`, one object a line, such as {"fact": "opened", "incident": 1, "time": "2022-08-12T16:00:20Z", "root": "P1"}
    file:3:2: not JSON (expected ident)
    expected facts of `headwater run --json`, one object a line, such as {"fact": "opened", "incident": 1, "time": "2022-08-12T16:00:20Z", "root": "P1"}
    file:1:18: missing field `fact`
    expected facts of `headwater run --json`, one object a line, such as {"fact": "opened", "incident": 1, "time": "2022-08-12T16:00:20Z", "root": "P1"}
    file:1:30: missing field `time`
    expected facts of `headwater run --json`, one object a line, such as {"fact": "opened", "incident": 1, "time": "2022-08-12T16:00:20Z", "root": "P1"}
    file:2: incident 1 was opened on line 1 already
    file:1: incident 1 is updated, never opened
    file:2: the alarm closes (2022-08-12T15:00:00Z) before it opens (2022-08-12T16:00:00Z)
    file:1: expected a number of days, found -1
    file:1: no column "root"
    expected a table with the columns time and root (and closed, if it is known)
    file:2: time: expected a time such as "2022-08-12T16:00:00Z" or "2022-08-12 16:00:00", found "12/08/2022"
    file:2: the alarm closes (2022-08-11T00:00:00Z) before it opens (2022-08-12T00:00:00Z)
    "#);
}

#[test]
fn a_file_that_breaks_off_is_scored_as_far_as_it_goes_and_says_where() {
    let truth = "start,end,origin\n2022-08-12 16:00:00,2022-08-12 16:00:59,P1\n";
    let whole =
        "{\"fact\":\"opened\",\"incident\":1,\"time\":\"2022-08-12T16:00:10Z\",\"root\":\"P1\"}\n";
    let second = whole.replace("\"incident\":1", "\"incident\":2").replace("P1", "P1-\u{3b5}");
    let files = Files::new();
    let truth = files.write("truth", truth);
    // Cut anywhere in its last line, and be it in the middle of a letter.
    for cut in whole.len() + 1..whole.len() + second.len() - 2 {
        let bytes = [whole.as_bytes(), second.as_bytes()].concat();
        let alarms = files.write("alarms", &bytes[..cut]);
        let report = run(&truth, &alarms, TAIL).expect("what is whole is scored");
        assert_eq!((report.cut_at_line, report.score.root_right), (Some(2), 1), "cut at {cut}");
    }
    // A last line that is whole but for its end counts; one that is broken in the middle does not pass.
    let alarms = files.write("alarms", whole.trim_end());
    assert_eq!(run(&truth, &alarms, TAIL).expect("whole").cut_at_line, None);
    let alarms = files.write("alarms", format!("{whole}{{\"fact\":\"upda\n{second}"));
    let error = run(&truth, &alarms, TAIL).expect_err("garbage in the middle");
    assert!(files.said(&error).starts_with("alarms:2:"), "{error}");
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_an_error() {
    let files = Files::new();
    let good = files.write("truth", "start,end,origin\n");
    let missing = files.folder.path().join("nowhere");
    let error = run(&good, &missing, TAIL).expect_err("it is not there");
    assert!(files.said(&error).starts_with("nowhere: "), "{error}");
    let binary = files.write("binary", b"time,root\n\xff\xfe");
    let error = run(&good, &binary, TAIL).expect_err("it is not text");
    assert!(files.said(&error).starts_with("binary:2: not UTF-8 text"), "{error}");
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let names = ["P1", "P2", "P3"];
    let origins = prop::collection::vec(prop::sample::select(names.to_vec()), 0..3);
    prop::collection::vec((0i64..80_000, 0i64..2000, origins), 0..8).prop_map(|list| {
        list.iter().map(|(start, length, o)| event("A", *start, start + length, o)).collect()
    })
}

fn alarms() -> impl Strategy<Value = Vec<Alarm>> {
    let root = prop::sample::select(vec!["", "P1", "P2", "P3"]);
    let posterior = prop::collection::vec(0.0f64..1.0, 3);
    // Few distinct times, so that alarms of the same instant are common.
    prop::collection::vec((0i64..800, root, posterior), 0..20).prop_map(|list| {
        list.into_iter()
            .map(|(opened, root, weights)| {
                let mut alarm = alarm(opened * 100, root);
                alarm.posterior =
                    ["P1", "P2", "P3"].map(String::from).into_iter().zip(weights).collect();
                alarm
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn a_score_adds_up_and_does_not_depend_on_the_order_of_alarms(
        events in events(),
        alarms in alarms().prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
    ) {
        let score = Score::of(&events, &alarms.0, &day(), 300.0);
        prop_assert_eq!(&score, &Score::of(&events, &alarms.1, &day(), 300.0));
        prop_assert_eq!(score.detected, score.root_right + score.root_wrong + score.root_unknown);
        prop_assert!(score.detected <= score.labelled);
        for share in [score.ac1, score.mrr].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&share));
        }
        prop_assert!(score.ac1 <= score.mrr);
    }

    #[test]
    fn another_alarm_never_costs_a_detection(
        events in events(), alarms in alarms(), more in 0i64..80_000,
    ) {
        let before = Score::of(&events, &alarms, &day(), 300.0);
        let mut longer = alarms;
        longer.push(alarm(more, "P1"));
        let after = Score::of(&events, &longer, &day(), 300.0);
        prop_assert!(after.detected >= before.detected);
        prop_assert!(after.false_alarms >= before.false_alarms);
    }

    #[test]
    fn any_text_is_a_file_or_an_error(text in "\\PC*") {
        let files = Files::new();
        let path = files.write("any", &text);
        let _ = read_truth(&path);
        let _ = read_alarms(&path);
    }
}

#[test]
fn a_root_is_judged_at_the_alarm_five_steps_later_and_at_the_end() {
    let mut course = course::Course::new(Some("P2".to_owned()));
    let p = |n: usize| format!("P{n}");
    course.hear(Some(&p(2)), Some(100), true);
    course.hear(Some(&p(3)), Some(105), false);
    course.hear(Some(&p(1)), Some(160), false);
    assert_eq!((course.root_at_alarm, course.root_after_5), (Some(p(2)), Some(p(3))));
}

#[test]
fn effects_are_scored_where_the_truth_knows_who_is_affected() {
    let mut known = event("known", 1000, 1100, &["P1"]);
    known.affected = vec!["P2".to_owned(), "P3".to_owned()];
    let events = [known, event("unknown", 5000, 5100, &["P1"])];
    let mut first = alarm(1010, "P1");
    first.effects = vec!["P2".to_owned(), "P4".to_owned()];
    first.course.hear_effects(first.effects.clone().iter(), at(1030));
    let mut second = alarm(5010, "P1");
    second.effects = vec!["P9".to_owned()];
    let score = Score::of(&events, &[first, second], &day(), 300.0);
    assert_eq!((score.effects.precision, score.effects.recall), (Some(0.5), Some(0.5)));
    assert_eq!(score.effects.delay_s.median, Some(30.0));
}
