"""What a reader of an answer should know beside its numbers: public facts, and the biases that intervals do not cover.

Everything here is a function of the plan and its price. It is computed before anything is paid, so that whatever could
go wrong costs nothing.
"""

from collections.abc import Sequence
from fractions import Fraction

from lapwing.catalog.model import Column, Table
from lapwing.errors import InvalidParameter
from lapwing.query.derivation.derived import OrderStatistic, measures_of, parts_of
from lapwing.query.plan import Plan
from lapwing.query.quote import CONFIDENCE, Priced
from lapwing.query.relations.per_unit import FirstGroups, FirstRows
from lapwing.query.selections import Selecting


def notes_of(plan: Plan, priced: Priced) -> tuple[str, ...]:
    """Say which values are clamped, what is left out of each unit, and what else the question makes worth knowing."""
    question = plan.question
    return (
        *_clamping(plan),
        *_bounding(plan),
        *(_shared(plan, priced) if question.units_of_row > 1 else ()),
        *(_races(plan) if plan.asked.weights else ()),
        *(_selection(priced.selecting) if priced.selecting is not None else ()),
        *(_ranks(plan, priced) if question.distributions else ()),
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


def units_needed(selecting: Selecting) -> tuple[int, int] | None:
    """Return how many units make a key appear with 95 % probability: with one key each, and with the most.

    None if that is more than 2^31.
    """
    try:
        return selecting.mechanism.units_needed(CONFIDENCE)
    except InvalidParameter:
        return None


def _shared(plan: Plan, priced: Priced) -> tuple[str, ...]:
    """Say how rows that several units share are truncated, at which levels, and for what part of the price."""
    units = plan.question.units_of_row
    notes = [f"{units} units share a row; what each adds is limited by a linear program, which leaves out little"]
    terms = {term.measure: term for term in priced.terms}
    for output in plan.outputs:
        levels = measures_of(output.value)
        ends = [float(m.clamp[1] * m.step) for m in levels if m.clamp is not None]
        spent = sum((terms[measure].loss(priced.loss.kind).amount for measure in levels), Fraction(0))
        share = f"{float(100 * spent / priced.loss.amount):.3g} % of the price"
        if len(ends) > 1:
            limits = f"{len(ends)} limits from {min(ends):,.10g} to {max(ends):,.10g}"
            notes.append(f"{output.name} is a race of {limits}, for {share}")
    return tuple(notes)


def _races(plan: Plan) -> tuple[str, ...]:
    """Say which columns are found by a race to the top, and that they err to one side."""
    raced = [output.name for output in plan.outputs if set(measures_of(output.value)) & plan.asked.weights.keys()]
    return tuple(
        f"{name} is at most the true value with 95 % probability: what a unit may add is found" for name in raced
    )


def _selection(selecting: Selecting) -> tuple[str, ...]:
    """Say which private keys the answer has."""
    units = units_needed(selecting)
    if units is None:
        return ("keys that billions of units hold may still be missing; give a larger epsilon or delta",)
    fewest, most = units
    many = f", and by {most:,} if each holds {selecting.mechanism.max_keys} keys" if most > fewest else ""
    return (f"keys held by at least {fewest:,} units appear with 95 % probability{many}; rarer ones seldom",)


def _ranks(plan: Plan, priced: Priced) -> tuple[str, ...]:
    """Say how far the ranks of order statistics are off."""
    terms = {term.measure: term for term in priced.terms}
    found = {part: output.name for output in plan.outputs for part in parts_of(output.value)}
    ranked = [(part, name) for part, name in found.items() if isinstance(part, OrderStatistic)]
    return tuple(f"{name}: {part.note(terms[part.distribution].mechanism)}" for part, name in ranked)


def _range(column: Column) -> str:
    step = f" in steps of {float(column.step):g}" if column.step is not None and column.step != 1 else ""
    return f"between {float(column.low * (column.step or 1)):g} and {float(column.high * (column.step or 1)):g}{step}"
