//! What is promised under which fault. Every promise names a test that fails when it is broken.
//!
//! # A client keeps its data
//!
//! | fault | promise | test |
//! |---|---|---|
//! | somebody reads every byte between sites and server | no measurement is among them, and facts depend on nothing else | `no_measurement_crosses_in_any_form_and_bytes_are_all_that_facts_depend_on` |
//! | code that hands a row to the server or to a message | it does not compile | the examples of [`crate::wire`], [`crate::server`] and [`crate::stream`] |
//! | another method begins to decide | the server knows only what crossed the wire, entered in the ledgers | `a_server_that_begins_to_decide_knows_only_what_crossed_the_wire` |
//! | a trial that sends protected data again | it is refused until it is paid for | `with_real_noise_a_trial_that_sends_again_must_be_agreed_to_and_is_paid_for`, `with_real_noise_the_other_method_on_trial_is_paid_for_too_even_after_protection_ended` |
//! | a run with noise from a seed | every view says that it is not private | `a_seeded_run_says_so_on_every_view_at_every_size` |
//!
//! # A client that lies
//!
//! | fault | promise | test |
//! |---|---|---|
//! | one client sends any states or symbols it likes | no innocent client becomes the root by it (tier 2) | `whoever_lies_about_states_or_symbols_no_innocent_becomes_the_root_in_tier_2` |
//! | bytes that are no message | they are refused in words, and allocate nothing large | `no_message_does_harm` |
//!
//! It is not promised that a lying client is recognised, nor that its own faults are found.
//!
//! # Wrong input
//!
//! | fault | promise | test |
//! |---|---|---|
//! | a wild value, once or for twenty rows | its sensor stays under watch | `one_wild_value_does_not_disable_its_sensor`, `twenty_rows_of_the_smallest_integer_do_not_disable_their_sensor` |
//! | one wrong time stamp | it costs its own row | `a_row_stamped_2099_costs_itself_and_nothing_else`, `any_one_corrupted_stamp_loses_at_most_that_row` |
//! | the repeated hour at the end of summer time | its rows are used, and it is said | `the_repeated_hour_at_the_end_of_summer_time_is_followed_and_said` |
//! | rows that cannot be used | each is counted by reason | `stamps_that_are_all_equal_are_one_frame_and_every_other_row_is_counted` |
//! | a number in a session that is too large | it is refused with its bound before anything is allocated | `a_size_that_no_machine_has_is_refused_with_its_bound_before_anything_is_allocated` |
//! | any text as a session, table, ledger or file of keys | it is read or refused in words | `no_session_does_harm`, `no_table_does_harm`, `no_ledger_does_harm`, `no_file_of_keys_does_harm` |
//! | a megabyte of letters pasted at once | Ctrl-C goes before them | `after_a_megabyte_of_letters_control_c_ends_the_program_before_all_of_them_are_answered` |
//!
//! # Power loss, a killed process, a full disk
//!
//! | fault | promise | test |
//! |---|---|---|
//! | a killed run | its ledger is continued, a torn last line is noted | `a_second_writer_is_refused_and_a_killed_run_is_continued`, `a_torn_last_line_is_noted_and_the_ledger_goes_on` |
//! | a power loss | at most the last second of a ledger is missing: entries reach the disk once a second | no test cuts the power |
//! | a killed `make` or `train` | no partial file is taken for a whole one, and the next start removes it | `a_partial_file_of_a_killed_make_is_removed_by_the_next_one` |
//! | an interrupt | partial files are removed and what remains is said | `an_interrupted_make_leaves_no_partial_file_and_says_what_remains` |
//! | a full or unwritable cache | the run goes on without it, and says so | `a_full_cache_is_done_without_and_nothing_is_left_behind`, `a_cache_in_an_impossible_place_is_done_without` |
//! | a flipped bit in a file of models | it is noticed and the models are made again | `a_flipped_bit_in_kept_models_is_said_and_they_are_made_again` |
//!
//! # A ledger that somebody changed
//!
//! | fault | promise | test |
//! |---|---|---|
//! | a changed, dropped or added line | it is noticed | `any_flipped_bit_of_a_signed_ledger_is_noticed`, `any_dropped_line_is_noticed` |
//! | hashes computed anew | the signature does not fit without the key | `hashes_computed_anew_without_the_key_do_not_pass` |
//! | the last run cut off | whoever kept the head that was printed notices; nobody else can | `a_dropped_last_run_is_noticed_with_the_head_that_was_printed` |
//!
//! Somebody who has the key can write any ledger. Keep it as you keep a signature stamp.
