//! A federation whose sites and server are processes of their own, on an MQTT 5 broker.
//!
//! # On one machine
//!
//! Certificates, a broker, one process for each client, and the server. `certs` prints what it made;
//! the order in which the others are started does not matter:
//!
//! ```text
//! headwater certs plant-attack-day certs
//! mosquitto -c certs/broker/mosquitto.conf
//! headwater site plant-attack-day --client P1 --broker mqtts://127.0.0.1 --certs certs
//! headwater site plant-attack-day --client P2 --broker mqtts://127.0.0.1 --certs certs
//! headwater site plant-attack-day --client P3 --broker mqtts://127.0.0.1 --certs certs
//! headwater serve plant-attack-day --broker mqtts://127.0.0.1 --certs certs --until +2h
//! ```
//!
//! The server prints the incidents that `headwater run plant-attack-day --until +2h` prints, with the
//! same roots, and then, for each site: bytes, skew of its clock, ε by its own ledger, and what was late,
//! missing, sent twice or refused. Each site prints what its ledger has entered. Without `--until` it is
//! the whole day.
//!
//! # On two machines
//!
//! The broker and the server stand on the machine `control`, the sites elsewhere. Make the certificates
//! on `control`, with the name under which sites reach it. Copy to each machine the folder of its party
//! and the session file, and nothing else:
//!
//! ```text
//! control$ headwater certs plant-attack-day certs --host control
//! control$ mosquitto -c certs/broker/mosquitto.conf
//! control$ headwater serve plant-attack-day --broker mqtts://control --certs certs/server --until +2h
//! boiler$  headwater site plant-attack-day --client P1 --broker mqtts://control --certs P1
//! boiler$  headwater site plant-attack-day --client P2 --broker mqtts://control --certs P2
//! boiler$  headwater site plant-attack-day --client P3 --broker mqtts://control --certs P3
//! ```
//!
//! `certs/ca/ca.key` signs certificates: keep it off the network. `the_guide_works_as_written` runs
//! both. `assets/federation/compose.yaml` has broker, server and three sites as containers.
//!
//! `--broker mqtt://… --insecure` does without certificates. It is for tests: anybody who reaches the
//! broker can then publish as any site, and the program says so at its start.
//!
//! # Who may do what
//!
//! The broker takes the user name and the client identifier from the certificate. Its access list
//! lets a site write to `headwater/1/SESSION/NAME/up` and `…/state` and read `…/down`, with its own
//! NAME. The server reads `up` and `state` of all and writes `down`. What else is tried is refused:
//! `a_certificate_of_one_site_can_neither_publish_nor_read_for_another`.
//!
//! The server refuses an envelope whole, and counts it, when it is malformed, too long, not finite or out
//! of range; when its sequence number came before; when it holds a message of another client or step;
//! when it is of another session; and when a site sends more than 20,000 envelopes or 32 MiB a second.
//!
//! # What happens when something fails
//!
//! | fault | what happens |
//! |---|---|
//! | a site is killed | the server waits; the site takes its steps again up to where it was, sends what its outbox holds, and goes on |
//! | the server is killed | it begins anew and hears the whole run again from the outboxes: the same facts |
//! | the broker is killed | everybody connects again, and the server asks for the step it waits for |
//! | the network of a site or of the server is cut | as for the broker |
//! | a message comes twice | it is counted and changes nothing |
//!
//! `kills_of_sites_server_and_broker_lose_nothing_and_apply_nothing_twice` and
//! `cuts_of_the_network_lose_nothing_and_apply_nothing_twice` show it.
//!
//! # Deadlines
//!
//! Without `--deadline` a step is closed when every site has sent it: a replay gives the same facts
//! each time. With `serve --deadline S` a step is closed S seconds after it was asked for, without the
//! sites that have not sent it. The server counts those steps as missing. A site that was away delivers
//! them when it is back: they are counted as late, and change nothing that was decided.
//! `with_a_deadline_the_server_goes_on_without_a_site_that_is_away_and_counts_what_it_missed` shows it.
//!
//! # Sites that join, leave or return
//!
//! | what | what to do | what follows |
//! |---|---|---|
//! | a new site joins | add the client to the session, run `certs` again in the same folder, give the broker the new `acl` (SIGHUP), copy the session to all, start all again | the federation is trained and calibrated again for all clients; old outboxes are refused, as they are of another session |
//! | a site leaves for good | take the client out of the session, then as above | its certificate no longer opens any topic; the others are trained and calibrated again without it |
//! | a site returns as it was | start it again with the same outbox | nothing: it goes on where it was |
//! | a site returns without its outbox | start the server and all sites again | the run begins anew; in a private run what is released again is spent again |
//! | a site returns with another model | a change of `model` or of its columns is another session for all: as for a new site | as for a new site |
//!
//! # Many sites
//!
//! `headwater bench --federation mqtt://127.0.0.1:1883` measures a step with 500 simulated sites on a
//! broker without certificates.
//!
//! # Limits
//!
//! - Models are made by every process from the session's nominal data, or read from its cache:
//!   training does not go over the broker.
//! - Sites replay data. A live source is not read by `site` yet; `--deadline` with `--speed` rehearses it.
//! - `thresholds.tier: States` is refused.
//! - An outbox survives a killed process. After a power loss its last steps may be missing.
//! - The server tells of sites what they send: it cannot show a site's sensors.
