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
//! | a site or the server is killed in training | the training begins anew for all, and sites say that one was broken off |
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
//! # Live sources
//!
//! A site reads whatever its own session file names: rows of a table, or `Live` rows from standard input, a
//! file that grows, a broker or an OPC UA server (a program with that feature). Only the source may differ
//! between the session files of the parties; the server's own is never opened. Rows are made by the
//! assembler that `run` uses.
//!
//! - Steps are numbered by the clock of the data. Step 1 is the first that most sites have. A site takes a
//!   step when its rows are there, whether or not the server is, and keeps it until the server has it. With
//!   `tier: States` it keeps the rows until then (see "Tier 2").
//! - The server closes a step when every awaited site has sent it, or has said that its source had no row
//!   for it; or at the deadline. The deadline counts from the moment that half of the awaited sites have
//!   sent the step, so that one site alone cannot hurry the others. It is `--deadline S`, or else the
//!   session's `lateness_s` and 3 s more. A site that missed 3 steps in a row is not awaited until it is
//!   near again.
//! - Late, doubled and missing steps are counted for each site. What the assembler left out is counted at
//!   the site, which prints it at its end.
//! - With `history: Table` nominal rows come from files of the site. Else the site learns from its first
//!   rows, once, and keeps them. It begins at a full ten minutes of the data's clock: start all sites
//!   within the same ten minutes, or the training is refused because their rows are of different times.
//! - A site keeps the rows of its steps in its outbox, on its own machine, so that it stands where it
//!   stood when it is started again: 8 bytes a value and step. Rows that came while it was down are gone.
//!
//! `sites_with_live_sources_open_the_incidents_of_one_process_with_all_rows` and
//! `a_live_site_that_is_killed_goes_on_with_what_it_kept_and_the_steps_between_are_missing` show it.
//!
//! # Screens
//!
//! `serve --console` shows every site with its state, how long ago it was heard, the steps it is behind,
//! the skew of its clock, bytes, ε by its own ledger, and what was late, missing, sent twice or refused. It
//! says that it cannot show a site's sensors. `site --console` shows the sensors of that site alone, what it
//! made of them, and what left it. Both say in their first line when noise is seeded (not private) and when
//! the broker is not encrypted.
//!
//! # Sites that join, leave or return
//!
//! All of these are done while the broker and all other sites stay up. The server says what follows on
//! standard error, on its screen and in a `quality` fact.
//!
//! | what | what to do | what follows |
//! |---|---|---|
//! | a client joins that the session names | start the server with `--later NAME`; start the site whenever it is there | see below |
//! | a client joins that the session does not name | add it behind the others in the session of the server, run `certs` again in the same folder, let the broker read the new `acl` (SIGHUP), start the server again: it goes on from its journal; start the site with the new session | see below; the other sites keep running with the session that they have |
//! | a site returns with another model | start it; it says that it waits | as for a client that joins |
//! | a site leaves for good, and the run goes on | stop the site, then `headwater site SESSION --client NAME … --leave` | nobody is trained or calibrated again; faults of that site are not seen, it is no root and explains nobody; the server, also after a new start of its own, does not wait for it |
//! | it returns after all | start the site again, with its outbox and its models | it is heard from the present step on; no client is calibrated again |
//! | a site is left out by the server | stop the server (Ctrl-C) and start it again with `--without NAME` | as for a site that leaves; without `--without` it is back, and the steps it missed count as late |
//! | a site returns as it was | start it again with the same outbox | nothing: it goes on where it was |
//! | a site returns without its outbox, data replayed | start the server and all sites again | the run begins anew; in a private run what is released again is spent again |
//! | a site returns without its outbox, source live, models kept | start it again | it is heard from the present step on; its ledger no longer has what it released before |
//! | a client is taken out of the federation | take it out of the session, give all the new session, start all again | its certificate no longer opens any topic; the others are trained and calibrated again without it |
//!
//! A site that holds the models of the run joins with them at once. One that does not makes a model of its
//! own from its own rows and calibrates itself, which releases nothing, and tells the digest of that model.
//! It is not heard before an operator has accepted the digest, on the machine of the server:
//!
//! ```text
//! headwater serve SESSION --accept NAME
//! ```
//!
//! or with the key `a` in `serve --console`. Then it enrols, and the first step that is heard from it is
//! stored in the journal with its enrolment. What that means:
//!
//! - It alone is calibrated. The others keep models, calibration and ledgers, and are not started again.
//! - As long as it has not enrolled, everything is decided as if the session did not name it.
//! - From its enrolment on it can be the root or an effect of incidents that open. The wanted rate of
//!   false alarms of the federation (`arl0`) is shared with one client more, so that the limits of all
//!   rise a little: by about ln(4/3) when a fourth one joins.
//! - A site that enrols again begins with no evidence. What it released before stays spent: it is added to
//!   the ε that it shows, and printed at its end.
//! - Learned influences and f_s are those of the training. A client that joined later influences nobody
//!   there until all train again.
//! - With `--mode paper`, or with `tier: States`, models are learned by all together: a site without the
//!   models of the run is refused in words and takes part after the next training. What is decided about
//!   the others holds.
//!
//! `a_new_client_joins_a_running_federation_and_no_other_site_is_started_again`,
//! `a_site_that_returns_with_another_model_is_known_by_its_digest_and_waits_until_it_is_accepted` and
//! `in_paper_mode_a_client_without_the_models_of_the_run_takes_part_after_the_next_training` show it.
//!
//! # Tier 2
//!
//! With `thresholds.tier: States` a step takes two round trips: sites announce it, the server tells each
//! what the states of another foretell of it, and then they release symbols and states. Facts and ledgers
//! are those of one process: `states_of_tier_2_cross_the_broker_and_give_the_facts_of_one_process_also_after_kills`.
//!
//! With a live source a row is kept in the outbox of its site when it comes. The step is announced, looked at
//! and released when the server has come to it. So:
//!
//! - While the server is away rows wait, also where the site is started again. Nothing is released in that
//!   time, and nothing is lost. When the server is back it asks for one step after the other.
//! - The server closes an announced step when all have released it, or at the deadline. Releases that were
//!   missing then stay missing for that step, also when the server is started again. A site that announced 3
//!   steps in a row and released none in time is not awaited.
//! - A step that the server closed without a site is looked at without a prediction and entered in the
//!   ledger of the site. The server counts it as late.
//!
//! `sites_with_live_sources_learn_and_send_states_and_say_what_one_process_says` and
//! `rows_wait_for_a_server_that_is_away_also_where_their_site_is_killed_before_it_is_back` show it.
//!
//! # Many sites
//!
//! `headwater bench --federation mqtt://127.0.0.1:1883 --sites N --steps S` measures a step with simulated
//! sites on a broker without certificates: the server asks all sites and has the answers of all. Server and
//! simulated sites are one process. On two cores that were busy with other work (load 7), mosquitto 2.0 with
//! `set_tcp_nodelay true`:
//!
//! | sites × steps | all enrolled after | median step | 95 % of steps | longest | asked again |
//! |---|---|---|---|---|---|
//! | 500 × 200 | 1.4 s | 27 ms | 82 ms | 101 ms | 0 |
//! | 1000 × 60 | 1.4 s | 127 ms | 166 ms | 187 ms | 0 |
//! | 2000 × 40 | 1.6 s | 150 ms | 213 ms | 274 ms | 0 |
//!
//! The broker's memory was 13 MB at most. At a load of 17 to 20, without `set_tcp_nodelay`, the medians were 115, 191
//! and 488 ms. CPU time hardly depends on the load, and grows with the number of sites: 68 to 74 µs of the program and
//! 50 to 53 µs of the broker for each site and step. By it, 10,000 sites would take 0.7 s of one core and 0.5 s of the
//! other a step, an estimate: enough for steps of 5 s, not for steps of 1 s.
//!
//! # Long runs
//!
//! What takes minutes is not among the tests that always run. From a copy of the source, with mosquitto
//! installed; `STORM_SEED=N` chooses other moments for kills and cuts:
//!
//! ```text
//! cargo test --release --test cli -- --ignored --nocapture fifty_kills
//! cargo test --release --test cli -- --ignored --nocapture twenty_cuts
//! cargo test --release --test cli -- --ignored --nocapture whole_attack_day
//! printf 'listener 1883 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n' > open.conf
//! mosquitto -c open.conf
//! cargo run --release -- bench --federation mqtt://127.0.0.1:1883 --sites 500 --steps 200
//! ```
//!
//! `STORM_KILLS=N` and `STORM_CUTS=N` set other numbers than 50 and 20, `DAY_UNTIL=+3h` a shorter day.
//! Without `set_tcp_nodelay` a broker holds answers back: with 20 sites a step took 44.0 ms, with it 1.4 ms.
//!
//! # Limits
//!
//! - A training that was broken off by a kill is not continued.
//! - `sampling.decimate: Auto` is chosen by each site from its own data; where they differ, the training is
//!   refused, and the session must say `Every(N)`.
//! - A client that joins after the training stands behind the others in the session.
//! - A live source whose clock goes back delivers nothing until it has caught up.
//! - A journal, and the outbox of a live site, grow as long as the run: a new start takes all steps again.
//! - An outbox and a journal survive a killed process. After a power loss their last steps may be missing.
//! - The server tells of sites what they send: it cannot show a site's sensors.
