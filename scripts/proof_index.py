"""Write `docs/theory/proof-index.md`: from each guarantee to its theorem, its docstring, its test and its twin.

    python scripts/proof_index.py            check that the page shows what is so
    python scripts/proof_index.py --write    write the table into the page

A row is about one class, function or module. What it promises is read from the docstring; the rest stands in `ROWS`
and in `proof_rows.py`.
`tests/docs/test_proof_index.py` holds that all of it exists, and that nothing lacks a row.
"""

import ast
import re
import sys
from pathlib import Path
from typing import Final

from proof_rows import ACCOUNTING, COUNTED, GRAPHS, HOLDOUTS, LOCAL, MONITORS, MORE_CONVERSIONS, SECURE, Row

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "theory" / "proof-index.md"
BEGIN, END = "<!-- proof index: written by scripts/proof_index.py -->", "<!-- end of the proof index -->"


CASES: Final = "mechanisms/test_mechanism_cases.py:test_twin_a_planted_bug_is_caught"
NOISE: Final = "mechanisms/test_additive.py:test_twin_noise_of_nine_tenths_the_scale_is_caught"
RELATIONS: Final = "query/test_relations.py"
LONGEST: Final = 20
BOUNDS: Final = "theory/sensitivity.md#the-bounds"

GROUPS: Final[dict[str, tuple[Row, ...]]] = {
    "Mechanisms": (
        Row("mechanisms/discrete_laplace.py:DiscreteLaplace", "theory/noise.md#discrete-laplace", NOISE),
        Row("mechanisms/rounded_gaussian.py:RoundedGaussian", "theory/noise.md#rounded-gaussian", NOISE),
        Row("mechanisms/discrete_gaussian.py:DiscreteGaussian", "mechanisms/discrete-gaussian.md", NOISE),
        Row(
            "mechanisms/randomized_response.py:RandomizedResponse",
            "mechanisms/randomized-response.md",
            "mechanisms/test_randomized_response.py:test_twins_of_losses_are_caught",
        ),
        Row("mechanisms/private_selection.py:ExponentialMechanism", "mechanisms/exponential.md", CASES),
        Row("mechanisms/private_selection.py:PermuteAndFlip", "mechanisms/permute-and-flip.md", CASES),
        Row("mechanisms/private_selection.py:ReportNoisyMax", "mechanisms/noisy-max.md", CASES),
        Row("mechanisms/top_k.py:TopK", "mechanisms/top-k.md", CASES),
        Row("mechanisms/interval_exponential.py:IntervalExponential", "mechanisms/interval-exponential.md", CASES),
        Row(
            "mechanisms/generalised.py:GeneralisedExponential",
            "mechanisms/generalised-exponential.md",
            "mechanisms/test_generalised.py:test_twins_of_the_defect_are_caught",
        ),
        Row(
            "mechanisms/quantile.py:Quantile",
            "mechanisms/quantile.md",
            "mechanisms/test_quantile.py:test_twins_of_the_range_are_caught",
        ),
        Row(
            "mechanisms/quantiles.py:Quantiles",
            "mechanisms/quantiles.md",
            "mechanisms/test_quantiles.py:test_twin_a_level_that_is_not_charged_is_caught",
        ),
        Row(
            "mechanisms/quantile_tree.py:QuantileTree",
            "mechanisms/quantile-tree.md",
            "mechanisms/test_quantile_tree.py:test_twin_a_level_that_is_not_charged_is_caught",
        ),
        Row(
            "mechanisms/clipping.py:UnboundedQuantile",
            "mechanisms/unbounded-quantile.md",
            "mechanisms/test_clipping.py:test_twin_a_wrong_price_of_a_quantile_is_caught",
        ),
        Row(
            "mechanisms/clipping.py:RaceToTheTop",
            "mechanisms/race-to-the-top.md",
            "mechanisms/test_clipping.py:test_twin_one_level_s_loss_for_all_is_caught",
        ),
        Row("mechanisms/truncated_geometric.py:TruncatedGeometric", "mechanisms/truncated-geometric.md", CASES),
        Row("mechanisms/weighted_gaussian.py:WeightedGaussian", "mechanisms/weighted-gaussian.md", CASES),
        Row(
            "mechanisms/adaptive_degree.py:AdaptiveDegree",
            "mechanisms/adaptive-degree.md#guarantee",
            "mechanisms/test_partitions_adaptive.py:test_twin_weights_that_are_too_long_are_caught",
        ),
        Row(
            "mechanisms/sparse_vector.py:AboveThreshold",
            "mechanisms/sparse-vector.md",
            "mechanisms/test_sparse_vector.py:test_twin_a_wrong_price_is_caught",
        ),
        Row(
            "mechanisms/subsampling.py:Subsampled",
            "mechanisms/subsampling.md",
            "mechanisms/test_subsampling.py:test_twins_of_the_amplified_loss_are_caught",
        ),
        Row(
            "mechanisms/group.py:GroupView",
            "mechanisms/group.md",
            "mechanisms/test_group.py:test_twin_the_loss_of_one_unit_is_not_enough",
        ),
        Row(
            "mechanisms/residual_marginals.py:ResidualMarginals",
            "mechanisms/residual-marginals.md",
            "mechanisms/test_residual_marginals.py:test_less_noise_on_one_residual_is_found",
        ),
        Row(
            "mechanisms/continual/gaussian.py:ContinualGaussian",
            "mechanisms/continual.md",
            "mechanisms/continual/test_buffered.py:test_twin_stays_that_count_once_are_noticed",
        ),
        Row(
            "mechanisms/continual/tree.py:ContinualLaplace",
            "mechanisms/continual.md",
            "mechanisms/continual/test_honaker.py:test_twin_a_level_that_is_not_paid_for_is_noticed",
        ),
        *COUNTED,
    ),
    "Relations": (
        Row(
            "query/relations/relation.py:ProtectedRows",
            "theory/sensitivity.md#three-layers",
            f"{RELATIONS}:test_ties_broken_by_position_are_found",
            "Relations.unit_local",
        ),
        Row(
            "query/relations/relation.py:FilteredRows",
            "theory/sensitivity.md#relations",
            "query/test_row_numbers.py:test_twins_a_wrong_rule_lets_rows_through",
            "Relations.at_most_rows_per_unit",
        ),
        Row(
            "query/relations/public_join.py:PublicJoin",
            "theory/relations.md#4-comparisons-are-intervals",
            f"{RELATIONS}:test_a_multiplicity_off_by_one_is_found",
            "Relations.at_most_rows_per_unit",
        ),
        Row(
            "query/relations/unit_join.py:UnitJoin",
            "theory/sensitivity.md#relations",
            f"{RELATIONS}:test_a_join_across_units_is_found",
            "Relations.at_most_rows_per_unit",
        ),
        Row(
            "query/relations/set_operations.py:DistinctRows",
            "theory/sensitivity.md#relations",
            f"{RELATIONS}:test_rows_made_distinct_across_units_are_found",
            "Relations.at_most_rows_per_unit",
        ),
        Row(
            "query/relations/set_operations.py:Union",
            "theory/sensitivity.md#relations",
            f"{RELATIONS}:test_a_union_with_the_bound_of_one_part_is_found",
            "Relations.at_most_rows_per_unit",
        ),
        Row(
            "query/relations/per_unit.py:PerUnit",
            "theory/sensitivity.md#relations",
            f"{RELATIONS}:test_a_group_of_several_units_is_found",
            "Relations.groups_tell_apart",
        ),
        Row(
            "query/relations/per_unit.py:FirstRows",
            "theory/sensitivity.md#relations",
            "proofs/test_planted_bugs.py:test_a_wrong_statement_has_no_proof",
            "Relations.at_most_rows_per_unit",
        ),
        Row(
            "query/relations/per_unit.py:FirstGroups",
            "theory/sensitivity.md#relations",
            "release/test_unit_totals.py:test_a_histogram_of_more_groups_than_are_paid_for_is_found",
            "Relations.at_most_groups",
        ),
        Row(
            "query/relations/windowed.py:Windowed",
            "theory/sensitivity.md#relations",
            f"{RELATIONS}:test_a_window_over_all_units_is_found",
            "Relations.at_most_rows_per_unit",
        ),
        Row(
            "query/relations/shared_join.py:SharedJoin",
            "theory/sensitivity.md#rows-that-several-units-share",
            "query/test_shared.py:test_twin_a_sum_that_is_not_truncated_is_found",
            says="Rows joined with rows of any unit: each belongs to the units of both",
        ),
    ),
    "Sensitivities": (
        Row(
            "query/sensitivity/stability.py:_rows",
            BOUNDS,
            "query/test_stability.py:test_a_range_that_forgets_rows_which_add_nothing_is_found",
            "Sensitivity.rows_replaced",
            says="Counts and sums move by at most the rows of a unit times the largest value",
        ),
        Row(
            "query/sensitivity/stability.py:_units",
            BOUNDS,
            "proofs/test_sensitivity_model.py:test_a_number_that_is_smaller_by_one_has_no_derivation",
            "Sensitivity.unit_counts_replaced",
            says="Counts of units move by at most the groups of a unit",
        ),
        Row(
            "query/sensitivity/stability.py:_clamped",
            BOUNDS,
            "release/test_unit_totals.py:test_a_clamp_that_is_missing_is_found",
            "Sensitivity.units_replaced",
            says="Clamped sums move by at most the groups of a unit times the larger end",
        ),
        Row(
            "query/sensitivity/stability.py:_tree",
            BOUNDS,
            "proofs/test_planted_bugs.py:test_a_wrong_statement_has_no_proof",
            "Sensitivity.levels_replaced",
            says="Trees of counts move by at most the rows of a unit on each level",
        ),
        Row(
            "query/sensitivity/set_stability.py:of_sets",
            "theory/machine-checked.md#counts-over-union-intersect-and-except",
            "proofs/test_planted_bugs.py:test_a_wrong_statement_has_no_proof",
            "SetCounts.sets_replaced",
        ),
    ),
    "Conversions": (
        Row(
            "privacy/conversions.py:gdp_from_pure_up",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_what_pure_implies_are_caught",
        ),
        Row(
            "privacy/conversions.py:pure_from_gdp_down",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_the_inverses_are_caught",
        ),
        Row(
            "privacy/conversions.py:pure_epsilon_down",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_the_inverses_are_caught",
        ),
        Row(
            "privacy/conversions.py:amount_in",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_the_inverses_are_caught",
        ),
        Row(
            "privacy/pure_concentrated.py:zcdp_from_pure_up",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_what_pure_implies_are_caught",
        ),
        Row(
            "privacy/pure_concentrated.py:pure_from_zcdp_down",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_the_inverses_are_caught",
        ),
        Row(
            "privacy/gaussian_epsilon.py:gdp_epsilon_up",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twin_a_bisection_that_returns_its_lower_end_is_caught",
        ),
        Row(
            "privacy/gaussian_profile.py:gdp_delta_up",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twin_a_wrong_sign_in_the_formula_is_caught",
        ),
        Row(
            "privacy/gaussian_profile.py:gdp_mu_squared_down",
            "theory/measures.md#conversions",
            "privacy/test_calibration.py:test_twin_one_grid_step_more_is_caught",
        ),
        Row(
            "privacy/concentrated_profile.py:zcdp_rho_down",
            "theory/measures.md#conversions",
            "privacy/test_calibration.py:test_twin_one_grid_step_more_is_caught",
        ),
        Row(
            "privacy/concentrated_profile.py:zcdp_delta_up",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_deltas_are_caught",
        ),
        Row(
            "privacy/concentrated_profile.py:zcdp_epsilon_up",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_epsilons_are_caught",
        ),
        Row(
            "privacy/laplace_implies.py:gdp_from_discrete_laplace_up",
            "theory/measures.md#conversions",
            "privacy/test_laplace_implies.py:test_twins_of_mu_are_caught",
        ),
        Row(
            "privacy/pure_profile.py:pure_delta_up",
            "theory/measures.md#conversions",
            "privacy/test_conversions.py:test_twins_of_deltas_are_caught",
        ),
        Row(
            "privacy/bounded_range.py:gdp_from_bounded_range_up",
            "theory/measures.md#conversions",
            "privacy/test_bounded_range.py:test_twins_with_less_are_caught",
        ),
        Row(
            "privacy/bounded_range.py:bounded_range_down",
            "theory/measures.md#conversions",
            "privacy/test_bounded_range.py:test_twins_of_inverses_are_caught",
        ),
        *MORE_CONVERSIONS,
    ),
    "Filters and the ledger": (
        Row(
            "privacy/filters.py:charge",
            "theory/measures.md#adding-up",
            "privacy/test_filters.py:test_twins_are_caught",
            "Ledger.never_overspent",
        ),
        Row("privacy/filters.py:fits", "theory/measures.md#adding-up", "privacy/test_filters.py:test_twins_are_caught"),
        Row(
            "ledger/parts.py:Division",
            "theory/parts.md",
            "privacy/test_parts.py:test_twins_are_caught",
            says="The losses that one unit can meet stay within the budget, part by part",
        ),
        Row(
            "ledger/transitions.py:fold",
            "theory/machine-checked.md#the-ledger",
            "proofs/test_ledger_model.py:test_a_model_that_forgets_to_round_is_found",
            "Ledger.never_overspent",
            says="The losses of a chain never exceed its budget, in exact arithmetic",
        ),
        Row(
            "ledger/transaction.py:Transaction",
            "theory/query-life.md",
            "proofs/test_planted_bugs.py:test_a_wrong_statement_has_no_proof",
            "Ledger.what_ran_was_paid",
            says="Nobody acts on an entry before its commit has made it durable",
        ),
    ),
    "Accounting": ACCOUNTING,
    "Graphs": GRAPHS,
    "Local mechanisms": LOCAL,
    "Monitors": MONITORS,
    "Secure sums": SECURE,
    "Reusable holdouts": HOLDOUTS,
}
ROWS: Final = tuple(row for rows in GROUPS.values() for row in rows)


def promised(code: str) -> str:
    """Return how a docstring's promise begins: the first words of its guarantee, or else of itself."""
    path, _, name = code.partition(":")
    tree = ast.parse((ROOT / "src" / "lapwing" / path).read_text(encoding="utf-8"))
    named = (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == name)
    text = ast.get_docstring(next(named, tree)) or ast.get_docstring(tree) or ""
    own = text.partition("Guarantee:")[2] or text
    sentence = re.split(r"(?<=[^.])\.(?:\s|$)", " ".join(own.split("\n\n")[0].split()), maxsplit=1)[0]
    words = sentence.split(" ")
    sentence = sentence if len(words) <= LONGEST else f"{' '.join(words[:LONGEST])} …"
    return sentence.replace("|", r"\|").replace("_", r"\_").replace("*", r"\*").replace("`", "")


def line(row: Row) -> str:
    """Return a row of the table."""
    code, _, name = row.code.partition(":")
    page, _, heading = row.theorem.partition("#")
    shown = heading.replace("-", " ") or page.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    link = page.removeprefix("theory/") if page.startswith("theory/") else f"../{page}"
    test, _, twin = row.twin.partition(":")
    coq = f"[`{row.machine}`](machine-checked.md)" if row.machine else ""
    where = f"[{shown}]({link}{'#' + heading if heading else ''})"
    cells = (
        f"`{name or code.rpartition('/')[2]}`",
        row.says or promised(row.code),
        where,
        f"`{code}`",
        f"`{test}`",
        twin and f"`{twin}`",
        coq,
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """Return the tables, one for each group."""
    head = (
        "| of | guarantee, as its docstring begins | theorem | docstring | tests | twin | machine |\n"
        "|---|---|---|---|---|---|---|"
    )
    return "\n\n".join(
        f"## {name}\n\n" + "\n".join([head, *(line(row) for row in rows)]) for name, rows in GROUPS.items()
    )


def with_table(page: str) -> str:
    """Return a page with the tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Check the page, or write it."""
    page = PAGE.read_text(encoding="utf-8")
    whole = with_table(page)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(whole, encoding="utf-8")
    elif whole != page:
        sys.exit(f"{PAGE.name} is not what the code says: python scripts/proof_index.py --write")


if __name__ == "__main__":
    main()
