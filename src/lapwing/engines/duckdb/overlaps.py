"""Rows that several units share, asked for by the set of their units; `engines.truncated_rows` truncates them."""

from collections.abc import Callable, Sequence

from lapwing.engines.duckdb.database import ColumnReader, Rows
from lapwing.engines.duckdb.expressions import group_by, have_keys, keys_as_columns
from lapwing.engines.duckdb.literals import clamp
from lapwing.engines.duckdb.relations import selected, unit_names
from lapwing.engines.truncated_rows import taken, truncated, weights
from lapwing.mechanisms.packing import MOST_LEVEL
from lapwing.query.measures.measures import NumberMeasure
from lapwing.query.plan.plan import Question


def shared(question: Question, totals: Sequence[str]) -> str:
    """Return the query for rows that several units share.

    Its rows are sets of units, in any order of their places: the keys, the units, and for each weight what the rows of
    these units add, up to more than any level allows.

    Args:
        totals: The aggregates of `truncated_rows.weights`.
    """
    keys = keys_as_columns(question.keys)
    units = [f"{name} AS unit{i}" for i, name in enumerate(unit_names(question.selection.relation))]
    sums = [f"CAST({clamp(total, 0, MOST_LEVEL)} AS BIGINT) AS weight{i}" for i, total in enumerate(totals)]
    rows = selected(question.selection, have_keys(question.keys))
    return f"SELECT {', '.join([*keys, *units, *sums])} {rows}{group_by(len(keys) + len(units))}"


def ask_shared(
    question: Question, layers: str, columns: ColumnReader, measured: Callable[[NumberMeasure, str], str]
) -> Rows:
    """Return the cells of rows that several units share: truncated sums.

    Args:
        layers: The common table expressions that the question reads.
        measured: Prints a measure.
    """
    totals = [measured(measure, "") for measure in weights(question)]
    return list(truncated(question, columns(f"{layers} {shared(question, totals)}", taken)))
