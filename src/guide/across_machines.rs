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
//! # How models are made
//!
//! Parties that hold models of the same training begin the run with them. Else they learn together, over
//! the broker:
//!
//! | step | up, from a site | down, from the server |
//! |---|---|---|
//! | beginning | at which rows of the shared grid it has data, how many numbers a state has | the rows that count |
//! | a round of Algorithm 1 | its states, clipped and noised as the session says, entered in its ledger | its gradient |
//! | influence | summaries of its states over the fit and the calibration range | nothing |
//! | end | nothing: it calibrates by itself | the name of the training |
//!
//! A site reads the columns of its own client and no other; the server needs no data. Losses and
//! thresholds of a site stay with it, so that `calibrated` has no τ when the server prints it. What comes
//! out is the same, bit by bit, as what one process makes:
//! `sites_with_their_own_data_alone_learn_with_a_server_without_any_what_one_process_learns`.
//!
//! A round needs the one before, so that one is on its way at a time. Rounds are sent once (`QoS` 0) and
//! not written to disk. A round that is lost is asked for again and counted; the site answers with what it
//! has sent, not with a new draw of noise. When a site or the server is killed in training, the training
//! begins anew for all, and that is said. Without a seed what was released before is spent: a site writes
//! down what a whole training will release before the first round leaves it, and a site that was killed
//! in training enters that in full. Everybody keeps its own part in its cache: a new start does not
//! learn again. A cache with the models of all clients, as `headwater train` leaves it, is used too.
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
//! | the server is killed | it decides again what its journal holds, prints the same facts, and asks sites for the step after it |
//! | a site is killed in training | the training begins anew for all |
//! | the broker is killed | everybody connects again, and the server asks for the step it waits for |
//! | the network of a site or of the server is cut | as for the broker |
//! | a message comes twice | it is counted and changes nothing |
//!
//! `kills_of_sites_server_and_broker_lose_nothing_and_apply_nothing_twice` and
//! `cuts_of_the_network_lose_nothing_and_apply_nothing_twice` show it;
//! `a_server_that_was_killed_goes_on_where_it_was_and_asks_for_no_step_that_it_has_heard` shows that a
//! journal is used. `serve --anew` forgets it. It is removed when a run ends.
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
//! | a site leaves a run that goes on | stop the server (Ctrl-C) and start it again with `--without NAME`; sites and broker stay up | it goes on at the step where it was; nobody is trained or calibrated again; faults of that site are not seen, and nothing is explained by it |
//! | it returns | start the server again without `--without` | the site delivers the steps it missed, which count as late and change nothing, and is heard from the present step on |
//! | a site leaves for good | take the client out of the session, then as for a new site | its certificate no longer opens any topic; the others are trained and calibrated again without it |
//! | a site returns as it was | start it again with the same outbox | nothing: it goes on where it was |
//! | a site returns without its outbox | start the server and all sites again | the run begins anew; in a private run what is released again is spent again |
//! | a site returns with another model | a change of `model` or of its columns is another session for all: as for a new site | as for a new site |
//!
//! # Many sites
//!
//! `headwater bench --federation mqtt://127.0.0.1:1883` measures a step with 500 simulated sites on a
//! broker without certificates. On two cores that were busy with other work (load 10): median step 50 ms,
//! 95 % of steps within 220 ms, 6 steps of 100,000 asked for again. More than 500 sites were not measured.
//!
//! # Limits
//!
//! - A training that was broken off by a kill is not continued.
//! - `sampling.decimate: Auto` is chosen by each site from its own data; where they differ, the training is
//!   refused, and the session must say `Every(N)`.
//! - Sites replay data. A live source is not read by `site` yet; `--deadline` with `--speed` rehearses it.
//! - `thresholds.tier: States` is refused.
//! - An outbox and a journal survive a killed process. After a power loss their last steps may be missing.
//! - The server tells of sites what they send: it cannot show a site's sensors.
