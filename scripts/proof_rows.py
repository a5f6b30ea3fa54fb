"""Rows of the proof index about graphs, local mechanisms, monitors, secure sums, accounting and holdouts."""

from typing import Final, NamedTuple


class Row(NamedTuple):
    """Where one guarantee is stated, proven and tested: the twin is a test with a bug planted, which must fail."""

    code: str  # a file below the package, and a name in it; the file alone where its module states the guarantee
    theorem: str  # a page below docs/, and perhaps a heading
    twin: str  # a file below tests/, and a test in it; the file alone where there is no twin
    machine: str = ""  # a theorem in proofs/
    says: str = ""  # the guarantee, where no docstring says it of this name alone


SAMPLES, FIGURES = "theory/measures.md#samples", "theory/loss-distributions.md#when-it-is-valid"
CONVERSIONS: Final = "theory/measures.md#conversions"
RANGE_TWIN: Final = "privacy/test_bounded_range.py:test_twins_with_less_are_caught"
RENYI_TWIN: Final = "privacy/test_renyi.py:test_twins_are_caught"
LAPLACE_TWIN: Final = "privacy/test_laplace_implies.py:test_twins_are_caught"

MORE_CONVERSIONS: Final = (
    Row("privacy/bounded_range.py:zcdp_from_bounded_range", CONVERSIONS, RANGE_TWIN),
    Row(
        "privacy/bounded_range.py:interval_amount",
        CONVERSIONS,
        "privacy/test_bounded_range.py:test_pairs_within_an_interval_are_covered_and_coins_attain_it",
    ),
    Row(
        "privacy/guesses.py:right_guesses_up",
        "start/choose-epsilon.md",
        "privacy/test_guesses.py:test_a_figure_that_is_too_low_is_found",
    ),
    Row("privacy/laplace_divergence.py:zcdp_from_laplace_up", CONVERSIONS, LAPLACE_TWIN),
    Row("privacy/laplace_divergence.py:zcdp_from_discrete_laplace_up", CONVERSIONS, LAPLACE_TWIN),
    Row(
        "privacy/continuous_laplace.py:gdp_from_laplace_up",
        CONVERSIONS,
        "privacy/test_laplace_implies.py:test_twins_of_mu_are_caught",
    ),
    Row("privacy/renyi_curves.py:pure_up", "theory/measures.md#other-kinds-of-concentrated-privacy", RENYI_TWIN),
    Row("privacy/renyi_curves.py:laplace_up", "theory/measures.md#other-kinds-of-concentrated-privacy", RENYI_TWIN),
    Row(
        "privacy/renyi_curves.py:discrete_laplace_up",
        "theory/measures.md#other-kinds-of-concentrated-privacy",
        "privacy/test_renyi.py:test_twins_of_two_routes_are_caught",
    ),
    Row(
        "privacy/renyi_curves.py:bounded_range_up",
        "theory/measures.md#other-kinds-of-concentrated-privacy",
        "privacy/test_renyi.py:test_twins_of_two_routes_are_caught",
    ),
    Row(
        "privacy/analytic_gaussian.py:analytic_gaussian_sigma_up",
        CONVERSIONS,
        "privacy/test_plans.py:test_the_analytic_gaussian",
    ),
    Row(
        "privacy/advanced_composition.py:advanced_rho_down",
        "theory/measures.md#many-ε-δ-statements",
        "privacy/test_advanced_composition.py:test_twin_a_smaller_budget_is_seen",
    ),
    Row(
        "privacy/groups.py:group_delta_up",
        "theory/measures.md#groups-of-people",
        "privacy/test_conversions.py:test_twins_of_groups_are_caught",
    ),
    Row(
        "privacy/groups.py:gaussian_group_delta_up",
        "theory/measures.md#groups-of-people",
        "privacy/test_groups.py:test_twins_are_caught",
    ),
)

ACCOUNTING: Final = (
    Row("privacy/amplification.py:subsampled", SAMPLES, "privacy/test_amplification.py:test_twins_are_caught"),
    Row("privacy/amplification.py:epsilon_up", SAMPLES, "privacy/test_amplification.py:test_twins_are_caught"),
    Row(
        "privacy/amplification.py:inner_epsilon_down",
        SAMPLES,
        "mechanisms/test_subsampling.py:test_twins_of_the_amplified_loss_are_caught",
    ),
    Row(
        "privacy/sampled_divergence.py:sampled_log_moments_up", SAMPLES, "privacy/test_sampled_divergence.py:test_twins"
    ),
    Row("privacy/sampled_curves.py:log_moments_up", SAMPLES, "privacy/test_sampled_curves.py:test_twins"),
    Row("privacy/subset_divergence.py:subset_log_moments_up", SAMPLES, "privacy/test_sampled_divergence.py:test_twins"),
    Row(
        "privacy/loss_laws.py:log_moment_up",
        "theory/loss-distributions.md#how-the-interval-is-computed",
        "privacy/test_loss_laws.py:test_twin_infinite_mass_dropped",
    ),
    Row("privacy/dominating_gaussian.py:gaussian_above", FIGURES, "privacy/test_dominating_gaussian.py:test_twins"),
    Row(
        "privacy/dominating_gaussian.py:best_gaussian_above", FIGURES, "privacy/test_dominating_gaussian.py:test_twins"
    ),
    Row("privacy/loss_arrays.py:arrays_of", FIGURES, "privacy/test_loss_arrays.py:test_twins"),
    Row("privacy/running.py:RunningLoss", FIGURES, "privacy/test_running.py:test_twin_law_not_multiplied_in"),
    Row(
        "privacy/parameter_search.py:calibrate",
        "theory/measures.md#planning",
        "privacy/test_parameter_search.py:test_twin_a_list_that_is_stated_by_its_lower_end",
    ),
    Row("privacy/interchange.py:to_dp_event", FIGURES, "privacy/test_interchange.py:test_twins"),
    Row(
        "privacy/interchange.py:from_opendp",
        FIGURES,
        "privacy/test_interchange.py:test_twins_of_opendp_are_caught",
    ),
    Row(
        "privacy/odometers.py:Odometer",
        "theory/measures.md#spending-as-an-ε",
        "privacy/test_odometers.py:test_twin_the_figure_of_a_cap_does_not",
    ),
    Row(
        "privacy/raises.py",
        "theory/raising.md#if-answers-made-somebody-raise-it",
        "privacy/test_raises.py:test_the_cap_alone_would_claim_too_little",
    ),
    Row(
        "privacy/wallet.py",
        "theory/wallet.md#the-theorem",
        "privacy/test_wallet.py:test_twin_that_counts_used_slots_only_is_caught",
    ),
)

COUNTED: Final = (
    Row(
        "mechanisms/first_of_thresholds.py:FirstOfThresholds",
        "mechanisms/sparse-vector.md#guarantee",
        "query/test_replay.py:test_thresholds_as_if_replacing_moved_all_one_way_are_found",
        says="The loss of one answer of AboveThreshold, in equal shares for the numbers",
    ),
    Row(
        "mechanisms/largest_cells.py:LargestCells",
        "mechanisms/top-k.md",
        "release/test_largest_cells.py:test_twin_as_if_a_person_had_one_row_is_caught",
    ),
    Row(
        "mechanisms/quantile_of_counts.py:QuantileOfCounts",
        "mechanisms/quantile.md#guarantee",
        "mechanisms/test_quantile_of_counts.py:test_twin_an_inner_node_read_as_a_leaf_is_caught",
    ),
    Row(
        "mechanisms/quantiles_of_counts.py:QuantilesOfCounts",
        "mechanisms/quantiles.md#guarantee",
        "mechanisms/test_quantiles_of_counts.py:test_twin_halves_that_are_charged_as_one_choice_are_caught",
    ),
    Row(
        "mechanisms/combined_noise.py:CombinedNoise",
        "theory/noise.md#several-numbers-of-the-same-rows",
        "mechanisms/test_laplace_combinations.py:test_ratios_that_are_rounded_down_are_noticed",
        says="The error of a weighted sum of noisy integers is within the half-width; it is post-processing",
    ),
    Row(
        "mechanisms/combined_noise.py:NoNoise",
        "theory/noise.md#several-numbers-of-the-same-rows",
        "release/test_refinement.py",
        says="A number that everybody knows has no error. It needs no twin: it draws nothing and takes no values",
    ),
    Row(
        "mechanisms/continual/planning.py:continual_mechanism",
        "mechanisms/continual.md",
        "mechanisms/continual/test_banded.py:test_twin_coefficients_that_are_stated_too_small_are_noticed",
    ),
)

SENSITIVITIES: Final = "graphs/test_sensitivities.py"
GRAPHS: Final = (
    Row(
        "mechanisms/graphs/ladder.py:Ladder",
        "theory/graphs.md#triangles-and-stars-the-ladder",
        "mechanisms/graphs/test_ladder.py:test_a_ladder_that_does_not_rise_is_found",
        says="Bounded range 2·changes/scale, hence PureDP(2·changes/scale)",
    ),
    Row(
        "mechanisms/graphs/local_sensitivity.py",
        "theory/graphs.md#triangles-and-wedges-a-bound-that-is-bought",
        f"{SENSITIVITIES}:test_planted_errors_of_bounds_are_found",
    ),
    Row(
        "mechanisms/graphs/local_sensitivity.py:NoisyLocalSensitivity",
        "theory/graphs.md#triangles-and-wedges-a-bound-that-is-bought",
        "mechanisms/graphs/test_local_sensitivity.py:test_twins",
    ),
    Row(
        "mechanisms/packing.py",
        "theory/graphs.md#edges-and-triangles-a-packing",
        "mechanisms/test_packing.py:test_twin_settling_too_much_is_found",
    ),
    Row(
        "mechanisms/packing.py:value",
        "theory/graphs.md#edges-and-triangles-a-packing",
        "mechanisms/test_packing.py:test_twin_a_level_that_is_one_too_high_is_found",
    ),
    Row(
        "mechanisms/graphs/forests.py:forest_sensitivity",
        "theory/graphs.md#components-a-forest",
        "mechanisms/graphs/test_forests.py:test_twin_the_best_forest_of_a_search_moves_by_more",
    ),
    Row(
        "mechanisms/graphs/truncation.py:edge_sensitivity",
        "theory/graphs.md#edges-and-triangles-a-packing",
        f"{SENSITIVITIES}:test_a_planted_error_of_node_privacy_is_found",
    ),
    Row(
        "mechanisms/graphs/truncation.py:triangle_sensitivity",
        "theory/graphs.md#edges-and-triangles-a-packing",
        f"{SENSITIVITIES}:test_a_planted_error_of_node_privacy_is_found",
    ),
    Row(
        "mechanisms/graphs/truncation.py:star_sensitivity",
        "theory/graphs.md#degrees-and-stars-a-projection",
        f"{SENSITIVITIES}:test_half_a_histogram_is_found",
        says="A node moves the stars of the projected graph by at most this number",
    ),
    Row(
        "graphs/max_degree.py:max_degree",
        "theory/graphs.md#choosing-the-level",
        f"{SENSITIVITIES}:test_a_choice_that_is_charged_too_little_is_found",
    ),
    Row(
        "graphs/asking.py",
        "theory/graphs.md#values-that-always-exist",
        "graphs/test_replay.py:test_a_replay_finds_numbers_that_depend_on_rows",
        says="The output depends on the query, the catalog, the ledgers and paid mechanisms, and on nothing else",
    ),
    Row(
        "graphs/graph_session.py:ask",
        "theory/graphs.md#two-caps",
        f"{SENSITIVITIES}:test_a_node_that_goes_without_its_edges_is_found",
    ),
)

COINS, ESTIMATED = "theory/local.md#exact-coins", "local/test_mechanisms.py"
LOUDER: Final = f"{ESTIMATED}:test_nine_tenths_of_the_noise"
LOCAL: Final = (
    Row("local/frequencies/binary.py:BinaryResponse", COINS, f"{ESTIMATED}:test_two_coins_of_one_output"),
    Row("local/frequencies/kary.py:KaryResponse", COINS, LOUDER),
    Row("local/frequencies/subset.py:SubsetSelection", COINS, LOUDER),
    Row("local/frequencies/hashing.py:LocalHashing", COINS, LOUDER),
    Row("local/frequencies/unary.py:UnaryEncoding", COINS, f"{ESTIMATED}:test_one_bit_of_unary_encoding"),
    Row("local/means/duchi.py:DuchiMean", "theory/local.md#means", "local/test_means.py:test_twins_of_ratios"),
    Row("local/means/piecewise.py:PiecewiseMean", "theory/local.md#means", "local/test_means.py:test_twins_of_ratios"),
    Row("local/means/hybrid.py:HybridMean", "theory/local.md#means", "local/test_means.py:test_twins_of_ratios"),
    Row(
        "local/attributes.py:OneAttribute",
        "theory/local.md#several-attributes",
        "local/test_attributes.py:test_a_draw_that_looks_at_answers_is_caught",
    ),
    Row(
        "local/attributes.py:AllAttributes",
        "theory/local.md#several-attributes",
        "local/test_joint.py:test_parts_that_share_randomness_are_caught",
    ),
    Row(
        "local/heavy_hitters/sketches.py:CountMeanSketch",
        COINS,
        "local/test_sketch.py:test_one_bit_is_not_the_whole_loss",
    ),
    Row(
        "local/heavy_hitters/sketches.py:HadamardSketch",
        COINS,
        "local/test_sketch.py:test_one_bit_is_not_the_whole_loss",
    ),
    Row(
        "local/heavy_hitters/prefix_extending.py:PrefixExtending",
        COINS,
        "local/test_prefixes.py:test_twin_nine_tenths_of_the_noise_is_caught",
    ),
    Row("local/longitudinal/dyadic_tree.py:DyadicTree", COINS, "local/test_tree.py:test_planted_bugs_are_caught"),
    Row(
        "local/longitudinal/memoised.py:Memoised",
        COINS,
        "local/test_memoised.py:test_a_curve_that_forgets_the_other_values_is_caught",
    ),
    Row(
        "local/longitudinal/memoised.py:MemoisedUnary",
        COINS,
        "local/test_memoised_unary.py:test_a_curve_of_one_bit_is_caught",
    ),
    Row(
        "local/longitudinal/repeated.py:repeated_reports",
        COINS,
        "local/test_repeated.py:test_twin_a_report_that_is_not_counted_is_caught",
    ),
    Row("local/rappor/basic.py:BasicRappor", COINS, "local/test_rappor.py:test_half_of_the_loss_is_noticed"),
    Row("local/rappor/full.py:Rappor", COINS, "local/test_rappor.py:test_half_of_the_loss_is_noticed"),
    Row(
        "local/graphs/edge_count.py:EdgeCount",
        "theory/local.md#graphs",
        "local/test_graphs.py:test_twins_of_edge_counts_are_caught",
    ),
    Row(
        "local/graphs/two_rounds.py:TwoRoundTriangles",
        "theory/local.md#graphs",
        "local/test_graphs.py:test_an_edge_moves_a_second_report_by_no_more_than_is_claimed",
    ),
    Row(
        "local/client/task.py:report",
        COINS,
        "local/test_client.py:test_a_report_of_less_noise_than_the_task_says_is_caught",
    ),
    Row(
        "local/client/task.py:report_with_memory",
        COINS,
        "local/test_memoised.py:test_a_device_that_forgets_is_caught",
        says="All reports together lose at most the total ε of the task",
    ),
    Row(
        "local/client/device.py:report_from_device",
        COINS,
        "local/test_device.py:test_a_limit_that_looks_at_answers_is_caught",
    ),
    Row(
        "local/shuffling/amplification.py:amplified_delta",
        "theory/local.md#limits",
        "local/test_shuffling.py:test_twins_of_the_upper_bound_are_caught",
    ),
    Row(
        "local/shuffling/amplification.py:local_epsilon",
        "theory/local.md#limits",
        "local/test_shuffling.py:test_twins_of_a_mechanism_are_caught",
    ),
)

MONITORS: Final = (
    Row(
        "monitors/counting.py",
        "theory/monitors.md#a-count-is-a-sum-over-units",
        "monitors/test_counting.py:test_twin_a_limit_that_is_one_too_high_is_noticed",
    ),
    Row(
        "monitors/charging.py",
        "theory/monitors.md#the-mechanism-hides-it",
        "monitors/test_losses.py:test_twin_a_loss_that_is_not_looked_for_is_noticed",
    ),
    Row(
        "monitors/monitor.py:create_monitor",
        "theory/monitors.md#the-mechanism-hides-it",
        "monitors/test_days.py:test_twin_days_that_add_up_by_their_squares_alone_are_noticed",
    ),
    Row(
        "monitors/planning.py:planned",
        "theory/monitors.md#a-unit-moves-within-bounds",
        "monitors/test_creating.py:test_a_mechanism_that_loses_more_than_was_charged_is_refused",
        says="The mechanisms of a monitor together lose at most the monitor's loss",
    ),
    Row(
        "monitors/running.py:release",
        "theory/monitors.md#noise-is-drawn-once",
        "monitors/test_crash.py:test_twin_noise_that_is_drawn_again_is_noticed",
    ),
)

PROMISE, CHECKED = "theory/secure.md#the-promise", "theory/secure.md#checked-answers"
SECURE: Final = (
    Row("secure/task.py:Task", PROMISE, "secure/test_views.py:test_randomness_that_is_used_twice_is_noticed"),
    Row(
        "secure/noisy_totals.py:noisy_total",
        PROMISE,
        "secure/test_views.py:test_noise_by_one_server_only_is_noticed",
        says="To someone who knows the parts of all other servers, it is the task's noise added to the totals",
    ),
    Row(
        "secure/field.py:split",
        "theory/secure.md#any-m-1-parts-are-uniform",
        "secure/test_views.py:test_randomness_that_is_used_twice_is_noticed",
    ),
    Row("secure/field.py:on_lines", CHECKED, "secure/test_grid.py:test_a_part_that_is_used_again_is_noticed"),
    Row(
        "secure/adding.py:AddingServer",
        PROMISE,
        "secure/test_server.py:test_a_part_in_the_ledger_is_noticed",
        says="Every release is charged in the ledger, and all releases together are within its budget",
    ),
    Row(
        "secure/adding.py:test",
        CHECKED,
        "secure/test_checking.py:test_summands_without_masks_are_noticed",
        says="The test of an honest client is uniform without the summands of the other servers",
    ),
    Row(
        "secure/grid.py",
        "theory/secure.md#many-values-on-a-grid",
        "secure/test_grid.py:test_sums_without_masks_are_noticed",
    ),
    Row(
        "secure/heavy_hitters.py",
        "theory/secure.md#frequent-words",
        "secure/test_heavy_hitters.py:test_less_noise_than_stated_is_noticed",
    ),
    Row(
        "secure/joint_noise.py",
        "theory/secure.md#one-noise-for-all-servers",
        "secure/test_joint_noise.py:test_what_is_not_drawn_is_noticed",
    ),
    Row(
        "secure/joint_noise.py:digits_for",
        "theory/secure.md#one-noise-for-all-servers",
        "secure/test_joint_noise.py:test_thresholds_that_are_rounded_down_are_noticed",
    ),
    Row(
        "secure/estimates.py:largest",
        "theory/secure.md#intervals",
        "secure/test_grid.py:test_intervals_of_the_largest_hold_together",
    ),
    Row(
        "secure/prio3/prio3.py",
        CHECKED,
        "secure/prio3/test_prio3.py:test_randomness_that_is_used_twice_is_noticed",
    ),
    Row(
        "secure/prio3/proofs.py",
        CHECKED,
        "secure/prio3/test_prio3.py:test_a_verifier_tells_nothing_of_a_valid_measurement",
    ),
    Row(
        "secure/prio3/task.py:Prio3Task",
        PROMISE,
        "secure/prio3/test_server.py:test_noise_for_less_than_a_measurement_moves_is_noticed",
    ),
    Row(
        "secure/prio3/server.py:Prio3Server",
        PROMISE,
        "secure/prio3/test_server.py:test_each_server_adds_all_of_the_noise",
    ),
    Row(
        "secure/prio3/server.py:noisy_share",
        PROMISE,
        "secure/prio3/test_server.py:test_each_server_adds_all_of_the_noise",
    ),
    Row(
        "secure/repetition.py:mechanism",
        "theory/secure.md#a-task-that-repeats",
        "secure/test_repeating.py:test_the_horizon_loses_epsilon_and_no_more",
    ),
    Row(
        "secure/repeating_device.py:answer_today",
        "theory/secure.md#a-task-that-repeats",
        "secure/test_repeating.py:test_days_that_a_device_forgets_are_noticed",
    ),
    Row(
        "secure/repeating_server.py:RepeatingServer",
        "theory/secure.md#a-task-that-repeats",
        "secure/test_repeating.py:test_an_older_copy_of_the_days_is_noticed",
    ),
)

HOLDOUTS: Final = (
    Row(
        "holdout/terms.py:HoldoutTerms",
        "theory/generalisation.md#protected-tables",
        "holdout/test_sql.py:test_a_gap_of_one_person_where_two_change_is_noticed",
    ),
    Row(
        "holdout/formula.py",
        "theory/generalisation.md#protected-tables",
        "holdout/test_questions.py:test_twin_a_question_that_is_asked_here",
        says="The value of a formula for a person is a function of that person's row",
    ),
    Row(
        "holdout/gaussian.py:GaussianStrategy",
        "theory/generalisation.md#noise-answers-that-are-seen",
        "holdout/test_coverage.py:test_a_transfer_term_that_is_dropped_is_found_out",
    ),
    Row(
        "holdout/thresholdout.py:Thresholdout",
        "theory/generalisation.md#thresholdout",
        "holdout/test_coverage.py:test_each_failure_gets_a_threshold_with_fresh_noise",
    ),
    Row(
        "generalisation/gaussian_answers.py:GaussianAnswers",
        "theory/generalisation.md#noise-answers-that-are-seen",
        "generalisation/test_answers.py:test_twins_fewer_questions_or_more_people_lose_less",
    ),
)
