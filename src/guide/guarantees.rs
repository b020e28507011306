//! What is promised under which fault. Every promise names a test that fails when it is broken.
//!
//! # A client keeps its data
//!
//! | fault | promise | test |
//! |---|---|---|
//! | an attacker reads every byte between sites and server | no measurement is among them, and facts depend on nothing else | `no_measurement_crosses_in_any_form_and_bytes_are_all_that_facts_depend_on` |
//! | code that hands a row to the server or to a message | it does not compile | the examples of [`crate::wire`], [`crate::server`] and [`crate::stream`] |
//! | another method begins to decide | the server knows only what crossed the wire, entered in the ledgers | `a_server_that_begins_to_decide_knows_only_what_crossed_the_wire` |
//! | a trial that sends protected data again | it is refused until it is paid for | `with_real_noise_a_trial_that_sends_again_must_be_agreed_to_and_is_paid_for`, `with_real_noise_the_other_method_is_paid_for_too_also_after_epsilon_changed` |
//! | a training that no run follows, or that diverges | what it released is in the ledger | `what_a_training_released_is_in_the_ledger_although_no_run_follows_it`, `what_a_training_that_diverges_had_released_is_in_the_ledger` |
//! | a run with noise from a seed | every view says that it is not private | `a_seeded_run_says_so_on_every_view_at_every_size` |
//!
//! # A client that lies
//!
//! | fault | promise | test |
//! |---|---|---|
//! | one client sends any states or symbols it likes | no innocent client becomes the root by it (tier 2) | `whoever_lies_about_states_or_symbols_no_innocent_becomes_the_root_in_tier_2` |
//! | bytes that are no message | they are refused in words, and allocate nothing large | `no_message_does_harm` |
//!
//! It is not promised that a lying client is recognised, nor that its own faults are found. Where clients are
//! struck at once and no influence is declared, a client that tells a wrong severity can pass the blame to
//! another one that is struck too.
//!
//! # Sites and server on a broker
//!
//! | fault | promise | test |
//! |---|---|---|
//! | an attacker reads everything that passes the broker | no measurement is among it | `nothing_that_passes_the_broker_holds_a_measurement` |
//! | a site publishes or reads as another one | the broker refuses it | `a_certificate_of_one_site_can_neither_publish_nor_read_for_another` |
//! | a program without a certificate of the authority | the broker refuses it | `nobody_without_a_certificate_of_the_authority_is_let_in` |
//! | envelopes that are malformed, sent again or of another site | each is refused whole and counted, and facts stay the same | `what_a_rogue_publishes_is_refused_whole_and_counted_and_changes_nothing` |
//! | a site, the server or the broker is killed | nothing is lost and nothing applied twice | `kills_of_sites_server_and_broker_lose_nothing_and_apply_nothing_twice` |
//! | the network of a site or of the server is cut | nothing is lost and nothing applied twice | `cuts_of_the_network_lose_nothing_and_apply_nothing_twice` |
//! | a site is away while steps have a deadline | the server goes on, counts what is missing, and what comes late changes nothing | `with_a_deadline_the_server_goes_on_without_a_site_that_is_away_and_counts_what_it_missed` |
//! | a site or the server is killed in training | the training begins anew, and comes out the same | `a_lost_round_is_repeated_and_a_server_or_site_killed_in_training_makes_all_begin_anew` |
//! | a site with a live source is killed | it goes on with what it kept; the steps between are counted as missing | `a_live_site_that_is_killed_goes_on_with_what_it_kept_and_the_steps_between_are_missing` |
//! | a site leaves for good | the run goes on, facts say it, and nobody else is started again | `a_site_leaves_a_running_federation_for_good_and_the_others_are_not_started_again` |
//!
//! # Wrong input
//!
//! | fault | promise | test |
//! |---|---|---|
//! | a wild value, once or for twenty rows | its sensor stays under watch | `one_wild_value_does_not_disable_its_sensor`, `twenty_rows_of_the_smallest_integer_do_not_disable_their_sensor` |
//! | a wild value in nominal data | it is taken out and reported, and its sensor is not blinded by it | `a_wild_value_in_nominal_data_does_not_blind_its_sensor_and_is_told`, `sensors_that_are_wild_in_one_nominal_row_do_not_repeat_each_other` |
//! | a live value too large for any model | it is reported as out of range | `a_live_value_beyond_every_float_of_the_model_is_told_and_not_taken_as_missing` |
//! | rows of another period than that of the models, or than the session says | they are refused | `rows_of_another_period_than_that_of_the_models_are_refused`, `a_period_that_the_rows_contradict_is_refused` |
//! | a range without a row that can be used | it is an error that counts its rows | `a_range_without_a_row_that_can_be_used_is_an_error_that_counts_its_rows` |
//! | one wrong time stamp | it costs its own row | `a_row_stamped_2099_costs_itself_and_nothing_else`, `any_one_corrupted_stamp_loses_at_most_that_row`, `a_stamp_at_the_end_of_the_calendar_costs_its_row_and_nothing_else`, `one_row_of_a_long_table_with_a_wrong_time_costs_itself_and_nothing_else` |
//! | the repeated hour at the end of summer time | its rows are used, and it is reported | `the_repeated_hour_at_the_end_of_summer_time_is_followed_and_said` |
//! | summer time of other zones, and a clock that jumps at random | every row is used or counted | `summer_time_of_every_zone_costs_no_row_of_a_minute_and_is_told_once_each_way`, `a_clock_that_jumps_at_random_makes_every_row_a_frame_or_a_counted_row` |
//! | rows that a historian wrote twice | they are left out and counted, and the clock is not taken to have moved | `rows_that_a_historian_wrote_twice_are_left_out_and_the_clock_has_not_moved` |
//! | rows that cannot be used | each is counted by reason | `stamps_that_are_all_equal_are_one_frame_and_every_other_row_is_counted` |
//! | the same in nominal data | facts, summary and screen say it too | `rows_of_the_nominal_data_that_are_not_used_are_told_by_run_as_well` |
//! | a sensor without value, infinite, stuck, out of range or wild, and text for a number | it is reported with its client, or refused by line and column | `every_kind_of_sensor_fault_in_a_table_is_told_and_its_client_named`, `every_kind_of_sensor_fault_is_told_by_its_name_and_disturbs_no_other_client`, `every_kind_of_sensor_fault_in_every_release_is_read_as_it_is_or_refused_by_its_place` |
//! | a number in a session that is too large | it is refused with its bound before anything is allocated | `a_size_that_no_machine_has_is_refused_with_its_bound_before_anything_is_allocated` |
//! | any bytes as a session, table, ledger, recording or file of keys | it is read or refused in words | `no_session_does_harm`, `no_table_does_harm`, `no_ledger_does_harm`, `no_recording_does_harm`, `no_file_of_keys_does_harm` |
//! | any bytes on the socket of a service and its consoles | they are understood or refused, and every view can be drawn of them | `no_packet_of_a_console_or_a_service_does_harm`, `what_a_service_sends_that_does_not_fit_together_is_refused` |
//! | any bytes from a terminal, as a file of alarms or of the truth | they are read or refused in words | `no_bytes_of_a_terminal_do_harm`, `no_file_of_alarms_or_of_the_truth_does_harm` |
//! | any lines from a live source, any bytes from a broker | they are used, counted as unreadable, or refused in words | `no_line_of_a_live_source_does_harm`, `no_envelope_of_a_broker_does_harm` |
//! | nominal rows that are labelled anomalous, a clock that moves among nominal rows | both are told | `nominal_rows_that_are_labelled_anomalous_and_a_nominal_clock_that_moves_are_told` |
//! | a number too large for a float | it is out of range, and not missing | `a_number_too_large_for_a_float_is_out_of_range_and_not_missing` |
//! | a client's name with control characters, or one that fills the screen | it is refused | `a_name_that_would_change_the_terminal_or_fill_the_screen_is_refused` |
//! | a clock that moves while a live source is learned from | it is told, at every start | `a_clock_that_moves_while_a_live_source_is_learned_from_is_told_at_every_start` |
//! | a clock that jumps ahead, or a source that is away, while it is learned from | the learning goes on until rows have covered the time that the session asks for | `a_clock_that_jumps_ahead_while_a_live_source_is_learned_from_does_not_end_the_learning`, `the_time_between_two_starts_does_not_count_as_learned` |
//! | a tag of a live source that is silent for a while | it is waited for again once it sends | `a_silent_tag_that_sends_again_is_waited_for_again_although_others_send_before_it` |
//! | a megabyte of letters pasted at once | Ctrl-C goes before them | `after_a_megabyte_of_letters_control_c_ends_the_program_before_all_of_them_are_answered` |
//! | a paste or a sequence that is never finished | Ctrl-C is seen within it | `control_c_within_a_paste_that_is_never_closed_ends_the_program_at_once` |
//! | keys typed while the program ends or is suspended | the shell gets them | `what_is_typed_after_the_reader_was_stopped_is_left_for_the_shell`, `a_shell_gets_the_terminal_and_gives_it_back` |
//! | thousands of sizes, keys and pastes | a whole picture and a program that answers | `thousands_of_sizes_keys_and_pastes_leave_a_whole_picture_and_a_program_that_answers` |
//!
//! # Power loss, a killed process, a full disk
//!
//! | fault | promise | test |
//! |---|---|---|
//! | a killed run | its ledger is continued, a torn last line is noted | `a_second_writer_is_refused_and_a_killed_run_is_continued`, `a_torn_last_line_is_noted_and_the_ledger_goes_on` |
//! | a power loss | at most the last second of a ledger is missing: entries reach the disk once a second | no test cuts the power |
//! | a process that records is killed | every file opens, at most the last second is missing, and its facts are the beginning of those of the whole run | `a_recording_that_is_killed_opens_and_holds_the_beginning_of_the_facts` |
//! | a full disk, a read-only folder or a taken file for a recording | the run goes on without it, and says so | `a_run_goes_on_without_a_recording_that_cannot_be_written_and_says_so` |
//! | a recording that is cut, changed, of a newer program or of none | it is refused in words | `cut_and_changed_files_give_errors_in_words_and_never_a_panic`, `a_newer_file_and_another_database_are_refused_in_words` |
//! | a killed `make` or `train` | no partial file is taken for a whole one, and the next start removes it | `a_partial_file_of_a_killed_make_is_removed_by_the_next_one` |
//! | SIGTERM at any moment of training | no partial file, a clear word, an exit code that is not 0, the terminal as it was | `sigterm_at_any_moment_of_training_leaves_no_partial_file_and_ends_with_an_error`, `sigterm_at_any_moment_of_a_console_that_trains_gives_the_terminal_back` |
//! | SIGTERM in the middle of work that cannot stop | the program ends within seconds, as a failure that says so | `sigterm_ends_a_run_in_the_middle_of_work_that_takes_hours` |
//! | Ctrl-C, SIGTERM or SIGHUP | partial files are removed and what remains is said; with `nohup` the work goes on | `an_interrupted_make_leaves_no_partial_file_and_says_what_remains`, `a_make_that_was_started_to_outlive_its_terminal_does` |
//! | Ctrl-C in a study whose jobs take minutes | it ends within seconds, as a failure; what is finished is kept | `ctrl_c_ends_a_study_within_seconds_and_says_that_it_is_incomplete` |
//! | two programs that learn one live session | the second says who has it; a killed one leaves no lock | `a_second_program_that_would_learn_the_same_live_session_says_that_it_is_in_use` |
//! | rows gathered so far that cannot be read | they are not thrown away | `rows_gathered_so_far_are_not_thrown_away_where_they_cannot_be_read` |
//! | a full or unwritable cache | the run goes on without it, and says so | `a_full_cache_is_done_without_and_nothing_is_left_behind`, `a_cache_in_an_impossible_place_is_done_without` |
//! | a flipped bit in a file of models | it is noticed and the models are made again | `a_flipped_bit_in_kept_models_is_said_and_they_are_made_again` |
//! | a damaged history of a live source | it is not learned from, and not forgotten in silence | `a_damaged_history_of_a_live_source_is_not_learned_from_and_not_forgotten_in_silence` |
//! | any bytes in what a live session keeps, in an outbox, a journal or a queue of outputs | they are used or refused in words | `nothing_that_a_live_session_keeps_does_harm`, `no_outbox_of_a_site_does_harm`, `no_journal_of_a_server_does_harm`, `no_queue_of_outputs_does_harm` |
//! | a damaged outbox | it is told, and nothing of it is sent | `a_damaged_outbox_is_told_and_nothing_of_it_is_sent` |
//! | a damaged journal | sites are asked again for what it lost | `a_damaged_step_of_a_journal_is_asked_for_again` |
//! | a damaged queue of outputs, a clock that is set back | what is damaged is counted, the rest goes out | `a_damaged_fact_is_given_up_and_counted_and_those_behind_it_go_out`, `a_clock_that_is_set_back_does_not_keep_facts_back` |
//! | damage in what operators did before a restart | it is not taken over, and it is said | `what_operators_did_is_not_taken_over_from_a_file_with_a_flipped_bit`, `more_incidents_than_there_can_have_been_are_not_taken_over` |
//! | models changed by somebody who knows how to enter a checksum | they are read or refused in words | `no_change_of_models_with_a_fitting_checksum_does_harm` |
//! | a file of models that is cut, spliced, of another version or damaged in any other way | it is not used | `no_damaged_file_of_models_is_used_and_one_with_a_fitting_checksum_does_no_harm` |
//!
//! # A changed ledger
//!
//! | fault | promise | test |
//! |---|---|---|
//! | a changed, dropped or added line | it is noticed | `any_flipped_bit_of_a_signed_ledger_is_noticed`, `any_dropped_line_is_noticed` |
//! | hashes computed anew | the signature does not fit without the key | `hashes_computed_anew_without_the_key_do_not_pass` |
//! | a ledger that was emptied | the new one does not begin in silence | `a_ledger_that_was_emptied_does_not_begin_anew_in_silence` |
//! | the last run cut off | a reader who kept the printed head notices; without it this cannot be noticed | `a_dropped_last_run_is_noticed_with_the_head_that_was_printed` |
//!
//! With the key any ledger can be written. Keep it secret.
//!
//! # What the program is built from
//!
//! | fault | promise | test |
//! |---|---|---|
//! | a dependency from another place, under another licence, or one that is banned | the tests fail | `everything_comes_from_one_registry_with_a_checksum`, `everything_that_is_built_may_be_shipped_under_its_licence`, `no_banned_crate_is_built_and_crates_in_two_versions_are_known` |
