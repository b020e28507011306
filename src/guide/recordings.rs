//! Recordings: what is stored of a run, how it is read again, and the tables for other programs.
//!
//! # Commands
//!
//! ```text
//! headwater run SESSION --record FILE          store a run while it happens
//! headwater serve SESSION --record FILE        the recording of a server whose sites are elsewhere
//! headwater site SESSION --record FILE         the recording of one site
//! headwater                                    the console records every run by itself; --no-record does not
//! headwater sessions                           lists recordings with length, incidents, size, and how they ended
//! headwater open FILE                          the console on a recording
//! headwater screen FILE --at 10:42             one picture of it
//! headwater run FILE --json                    the stored facts, byte for byte
//! headwater run FILE --json --recompute        the server decides again on the stored messages
//! headwater export FILE --what incidents       also flags, residuals, messages, ledger; --format csv|json
//! headwater export FILE --what report --incident 3 --format html
//! headwater export FILE --what report --from 06:00 --to 14:00 --format md
//! headwater export FILE --what cast            the console over that time (asciicast v2)
//! headwater compare A B                        two recordings or sessions; at a terminal both days under
//!                                              one cursor, else a table
//! headwater compare A --set-b arl0=8h          one of them as it is, and with another setting
//! headwater calibration SESSION                which history a live session learned from; --renew, --roll-back
//! ```
//!
//! Recordings of the console stand in `HEADWATER_RECORDINGS`, else below the folder in which the system
//! keeps data of programs. Together they may have 4 GB and may be 90 days old: the oldest ones are
//! removed when a console starts, and it says so. One recording may have 512 MB, or what the session
//! says (`record: (most_mb: 100)`): beyond that its oldest measurements go first, then the oldest
//! distances and norms, then the oldest steps and messages. Facts, events and incidents stay, and so do
//! the enrolments of clients. A recording without its first steps opens where its steps begin: incidents
//! from before keep their numbers, and the server decides again from there on. It says what is missing.
//!
//! # Run again from here
//!
//! In a recording a knob can be put on trial as in a run. `enter` then runs the recording again from the
//! moment looked at with that setting, and shows old and new incidents side by side. Up to that moment
//! everything is as it was, orders included; after it there are no orders. The recording stays as it
//! is.
//!
//! | setting | decided again by |
//! |---|---|
//! | `arl0`, `vote` | the server, on the messages it heard |
//! | `tau_c`, `tau_a`, `deadband`, of all or of one client | the sites, from their recorded distances, with the noise that was drawn then |
//! | `epsilon_flag`, `epsilon_flag_a` | the sites: their true symbols or flags are released again with other noise |
//! | `mode` | the sites: what the other method would have sent, where the recording holds that; evidence mode needs symbols, which only a console or a run in evidence mode makes |
//! | `epsilon_c`, `epsilon_a`, `epsilon_g` | not possible: they shape the models, which are trained again with the session |
//! | `delta` | not possible: it changes how releases are counted, and no decision |
//! | `budget` | not possible: what it would have let through follows from the ledger step by step, and a recording holds it by the hour |
//!
//! `headwater compare RECORDING --set-b KEY=VALUE` asks the same from the first step on, and takes several
//! settings at once; `"tau_c P1=99%"` is one of a single client. Another `mode` goes only with `arl0` and
//! `vote`. What cannot be answered is refused with the reason.
//!
//! What sites send again needs their models, which a recording holds since version 2 of its tables.
//! Where a run drew its noise from the operating system, nothing is released again: it would tell more.
//! A setting that the deciding method does not go by is refused.
//!
//! # A server whose sites are elsewhere
//!
//! `headwater serve SESSION --broker URL --record FILE` stores what the server knows: messages, events,
//! incidents, settings, the course of training, digests and seed. The file opens, is exported and decides
//! again as any other. Distances, norms and ledgers stay with the sites and are not in it: it says so when
//! it is opened, and an export of them is refused. A server that was stopped and goes on needs another
//! file, which then holds the run from its first step on.
//!
//! # One site
//!
//! `headwater site SESSION --client NAME --broker URL --record FILE` stores what that site knows: its
//! distances and residual norms, its flags or symbol levels before their release, the messages it sent, the
//! orders it carried out, and its ledger by the hour and at the end. Measurements are stored only where the
//! session asks for them: one row a step, of this client alone. The file stays on the machine of the site.
//! It holds no verdicts, since only the server decides: `headwater open` and reports refuse it and say so,
//! `headwater run FILE` prints what it holds, and `headwater export` writes `residuals`, `flags`, `messages`
//! and `ledger`. Steps have the numbers that the server gave them; a live site that was away leaves numbers
//! out. A site that was killed loses at most its last second. When it is started again it needs another
//! file, and takes its kept steps again: the new file begins with the first of them. The messages of a live
//! site that the server had acknowledged before are not in it.
//!
//! # Two days under one cursor
//!
//! `headwater compare A B` at a terminal shows both days, one above the other. Whatever is looked at in
//! one is looked at in the other; `tab` changes which one the keys are for. Days that do not overlap in
//! time are laid over each other by their beginnings. `--table` prints the table instead.
//!
//! # A live session that is started again
//!
//! A live session with `history: Learned` or `history: Table` goes on where it was: incidents keep their
//! numbers, acknowledgements and notes, shelves end at their times, clients out of service stay out, what
//! was accepted as normal stays normal, and settings are made again. The log says so with the first step.
//! An incident that was open goes on when its root, or a member of it, is found again within an hour;
//! until then it is over, and asks if nobody had acknowledged it. A setting that was changed in the
//! session file meanwhile stays as the file has it. Accepted normals are forgotten when the models are
//! others. Orders from before a restart cannot be undone after it. What is handed on stands in the
//! session's folder below `HEADWATER_LIVE`: `operator.json` (the server's half), `normals.json` (the
//! sites' half). One run at a time writes them.
//!
//! Every replay, and a live session with `history: First`, begins anew: its recording shows what was done.
//!
//! # Calibrations and their versions
//!
//! Models and thresholds of a live session with `history: Learned` are made from the rows that it learned
//! from. Those rows have a version, counted from 1; recordings store it as `calibration_version` and
//! `calibration_sha256`. The models and thresholds that were made of them are in the recording
//! themselves (`site_models`), with their digest: a safetensors file, as it is kept beside the session. `headwater calibration SESSION --renew` sets
//! the version in use aside: the next start learns anew, and watches nothing until it has learned.
//! `--roll-back N` uses an earlier version again, with the models that were made from it. No version is
//! deleted. While a run is going on both are refused.
//!
//! # What is never stored
//!
//! Measurements are stored only where the session asks for it: `record: (measurements: true)`. Keys and
//! passwords are never stored: a session names the variables that hold them.
//!
//! # When something goes wrong
//!
//! A run goes on without its recording. The console shows `NOT RECORDED` from then on; `run` says it at
//! once, and again with exit code 1 at its end. A process that is killed loses at most its last second.
//! The file is one SQLite database in WAL mode: as long as it is written, `FILE-wal` and `FILE-shm` stand
//! beside it and belong to it. After the end of a run it stands alone.
//!
//! # The tables
//!
//! `PRAGMA application_id` is 0x48777472, `PRAGMA user_version` is the version of the tables: 3. Times are
//! RFC 3339, or nanoseconds since 1970 in columns that end in `_ns`. `crc` is the CRC-32 of the text
//! before it. Steps are counted from 1. Clients are numbered from 0, in the order of `clients` in `about`.
//!
//! | table | columns | what it holds |
//! |---|---|---|
//! | `about` | key, value | `holds` (`server` or `site`, where it is not both), `site_client` (the number of that site's client), session (RON), its name, folder and SHA-256, seed, randomness, mode, clients, period, models, version of the calibration, program, begun, ended |
//! | `steps` | first, steps, from_ns, until_ns, data | the time grid, in blocks |
//! | `step_notes` | step, json | rows that were left out before a step, and where its data comes from |
//! | `site_about` | key, value | sensors and their units, τ of every client, sensors that are not watched |
//! | `site_steps` | first, client, data | distances and norms of residuals, in blocks |
//! | `site_truth` | first, client, data | flags and levels before anything of them was released, in blocks |
//! | `site_models` | kind, sha256, data | `models`: the models and thresholds of the run, a safetensors file |
//! | `site_messages` | first, data | of one site: messages that it sent and orders that it carried out, in blocks |
//! | `site_measurements` | first, frames, from_ns, until_ns, data | measurements, where the session asks for them |
//! | `site_ledger` | step, client, time, json | what a client had given away, once an hour and at the end |
//! | `server_about` | key, value | disturbances that the data is known to hold, losses of training, what was taken over from the run before |
//! | `server_models` | kind, sha256, data | `influences`: who influences whom, as the server learned it; `enrolments`: the last ones whose messages had to go |
//! | `server_steps` | first, client, data | flags, levels and evidence, in blocks |
//! | `server_messages` | first, data | every message, in blocks |
//! | `server_facts` | number, step, line | the lines of `run --json` |
//! | `server_events` | number, step, after_end, time, who, incident, json | the log |
//! | `server_incidents` | number, json | every incident as it stood last |
//! | `server_actions` | number, step, time, who, incident, json | a view: what operators did |
//! | `server_settings` | number, step, time, what, from, to | a view: settings that were changed |
//! | `server_loss` | round, server_loss, client_loss | a view: the course of training |
//!
//! A file that holds a site's tables is for the machine of that site. In one process both are in one file.
//! A server alone has `step_layout` and what belongs to it in `server_about`. The recording of one site has no
//! rows in the tables of the server, and its `step_layout` and τ are those of its client alone.
//!
//! # Blocks
//!
//! `data` is packed by zlib. It holds columns one after the other, each with one little-endian number a
//! step:
//!
//! | table | columns of a block |
//! |---|---|
//! | `steps` | time in ns (i64), follows (u8: 0 a new run, 1 the step before, 2 a gap), label (i32: −1 unknown, 0 normal, 1 anomalous, 2 + n event n), seconds of the gap (f64) |
//! | `site_steps` | d_c, d_a, r_c, r_a, surprise (f32; NaN is missing) |
//! | `site_truth` | flags (u8: 0 none, 1 + Z_c + 2 Z_a), level (u8: 255 none), level of what its explainer does not explain (u8: 255 none) |
//! | `server_steps` | evidence (f32), flags (u8: 0 none, 1 + Z_c + 2 Z_a), level (u8: 255 none), standing (u8); then the same four of the method that does not decide |
//! | `server_messages`, `site_messages` | a log: tag (0 everything was taken, 1 to the server, 2 to a site), length (varint), encoded message |
//!
//! A block of `site_measurements` is a packed block as in `steps`, then a packed block of one f32 column a
//! sensor, then the length of the first in bytes (u32).
