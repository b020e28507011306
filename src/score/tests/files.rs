//! Files of truth and alarms: what is read, and what is wrong with them.

use super::*;

pub(super) struct Files {
    folder: TempDir,
}

impl Files {
    pub(super) fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a file in it");
        path
    }

    /// An error as shown, without the folder that differs from run to run.
    pub(super) fn said(&self, error: &ScoreError) -> String {
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    pub(super) fn score(&self, truth: &str, alarms: &str) -> Result<Report, String> {
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
    right roots       at the alarm 0  after 5 steps 1  at the end 1  with the silent source above it 1
    effects           precision 1.000  recall 1.000  delay median 45.0 s  p95 45.0 s
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
