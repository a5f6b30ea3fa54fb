"""What a reader of an answer should know beside its numbers: public facts, and the biases that intervals do not cover.

Everything here is a function of the plan and its price. It is computed before anything is paid, so that whatever could
go wrong costs nothing.
"""

from collections.abc import Sequence

from lapwing.catalog.model import Column, Table
from lapwing.query.plan import Plan
from lapwing.query.quote import Quote
from lapwing.query.relations.per_unit import FirstGroups, FirstRows
from lapwing.release.rare_notes import notes_on_races, notes_on_ranks, notes_on_selection, notes_on_shared


def notes_of(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Say which values are clamped, what is left out of each unit, and what else the question makes worth knowing."""
    question = plan.question
    return (
        *_clamping(plan),
        *_bounding(plan),
        *(notes_on_shared(plan, priced) if question.units_of_row > 1 else ()),
        *(notes_on_races(plan) if plan.asked.weights else ()),
        *(notes_on_selection(priced.selecting) if priced.selecting is not None else ()),
        *(notes_on_ranks(plan, priced) if question.distributions else ()),
    )


def _clamping(plan: Plan) -> tuple[str, ...]:
    """Say which columns are clamped by design."""
    read = plan.question.columns
    tables = plan.question.tables
    clamped = [c for table in tables for c in table.columns if (table.name, c.name) in read and c.numeric and c.bounded]
    return tuple(f"{column.name} is {_range(column)}; values outside count as the nearest bound" for column in clamped)


def _bounding(plan: Plan) -> tuple[str, ...]:
    """Say what is left out of each unit."""
    notes = []
    if not plan.question.table.unit_is_row:
        notes.append(f"{bound_of(plan.question.lineage)} count; further rows do not exist for any question")
    match plan.question.selection.relation:
        case FirstGroups(most=most):
            notes.append(f"at most {most} groups of each unit count, as this question limits it")
        case FirstRows(most=most):
            notes.append(f"at most {most} rows of each unit count, as this question limits it")
    return tuple(notes)


def units_of(tables: Sequence[Table]) -> str:
    """Say whom a question about tables protects: of each kind of units one after the other."""
    kinds = {table.units: table.root for table in tables}
    named = ("each row" if root.unit_is_row else f"each {root.privacy_unit}" for root in kinds.values())
    return " and ".join(dict.fromkeys(named))


def bound_of(tables: Sequence[Table]) -> str:
    """Say what is kept of one privacy unit in tables: those of a kind of units together, parents first."""
    kinds = dict.fromkeys(table.units for table in tables)
    return "; ".join(_bound_of([table for table in tables if table.units == kind], len(kinds)) for kind in kinds)


def _bound_of(tables: Sequence[Table], kinds: int) -> str:
    first, *others = tables
    if first.unit_is_row:
        return "each row is protected by itself"
    rows = first.max_rows_per_unit
    said = f"at most {rows} {'row' if rows == 1 else 'rows'} of each {first.root.privacy_unit}"
    if not others:
        return said if kinds == 1 else f"{said} in {first.name}"
    return f"{said} in {first.name}, {', '.join(f'{table.max_rows_per_unit} in {table.name}' for table in others)}"


def _range(column: Column) -> str:
    step = f" in steps of {float(column.step):g}" if column.step is not None and column.step != 1 else ""
    return f"between {float(column.low * (column.step or 1)):g} and {float(column.high * (column.step or 1)):g}{step}"
