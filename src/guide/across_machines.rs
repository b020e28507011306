//! A federation whose sites and server are processes of their own, on an MQTT 5 broker.
//!
//! # On one machine
//!
//! A broker, the server, and one process for each client:
//!
//! ```text
//! mosquitto -p 1883
//! headwater site plant-attack-day --client P1 --broker mqtt://127.0.0.1 --insecure
//! headwater site plant-attack-day --client P2 --broker mqtt://127.0.0.1 --insecure
//! headwater site plant-attack-day --client P3 --broker mqtt://127.0.0.1 --insecure
//! headwater serve plant-attack-day --broker mqtt://127.0.0.1 --insecure
//! ```
//!
//! The order in which they are started does not matter. The server prints the incidents that `headwater
//! run plant-attack-day` prints, with the same roots. Each site prints what its ledger has entered.
//! `three_sites_and_a_server_over_a_broker_say_of_incidents_what_one_process_says` shows it in both modes.
//!
//! # On several machines
//!
//! Every machine needs the session file. `--insecure` is for tests: anybody who reaches the broker
//! can publish as any site. For work use `mqtts://` and `--certs DIR`. The folder of the site `P1` holds
//! `ca.crt`, `P1.crt` and `P1.key`, that of the server `ca.crt`, `server.crt` and `server.key`; the
//! certificates are made by the tools of the plant. The broker's access list should allow the
//! owner of a certificate to write to `headwater/1/+/NAME/up` and `headwater/1/+/NAME/state`, and to read
//! `headwater/1/+/NAME/down`; the server writes `down` and reads `up` and `state` of all.
//!
//! # What happens when something fails
//!
//! | fault | what happens |
//! |---|---|
//! | a site is killed | the server waits; the site takes its steps again up to where it was, sends what its outbox holds, and goes on |
//! | the server is killed | it begins anew and hears the whole run again from the outboxes: the same facts |
//! | the broker is killed | everybody connects again, and the server asks for the step it waits for |
//! | a message comes twice | it is counted and changes nothing |
//! | a message is malformed, from the wrong site or of another session | its envelope is refused whole and counted |
//!
//! `kills_of_sites_server_and_broker_lose_nothing_and_apply_nothing_twice` shows the first three.
//!
//! # Limits
//!
//! - Models are made by every process from the session's nominal data, or read from its cache:
//!   training does not go over the broker.
//! - Runs are replays in lock step: a step is closed when every site has sent it, and there is no
//!   deadline.
//! - `thresholds.tier: States` is refused.
//! - An outbox survives a killed process. After a power loss its last steps may be missing.
