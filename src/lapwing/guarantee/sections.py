"""The words of the guarantee: what is promised, to whom, on what it rests, and what it leaves out.

Everything here is a function of the catalog, of the ledger's account and of policy; nothing of it comes from a row. The
hash of the ledger's newest entry is a function of the digest of the data, so it is shown to those alone who may see
the ledger itself: with all else known, it would let somebody test a guess at the data.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final, final

from lapwing.budget import BudgetView, budget_view
from lapwing.catalog import spelling
from lapwing.catalog.condition import in_words
from lapwing.catalog.graph import Graph
from lapwing.catalog.large_delta import delta_warnings
from lapwing.catalog.model import Budget, Catalog, Column, PublicTable, Table
from lapwing.catalog.protection import units_of
from lapwing.guarantee.meaning import GROUPS, LEVELS, odds_factor_up, power_up, towards_group
from lapwing.ledger.state import State
from lapwing.privacy import figures
from lapwing.privacy.additive import Loss
from lapwing.privacy.amount_texts import short
from lapwing.privacy.odometers import Reading

MOST_VALUES: Final = 20
WHO_READS: Final = ("Everybody who can read the files of data and catalog on their machine.",)
NEIGHBOURS: Final = {
    "add_remove": "two data sets of which one has one unit more, with all its rows",
    "replace_one": "two data sets in which the rows of one unit are other ones",
}
WONDERED: Final = {
    "add_remove": (
        "is it there",
        ", of one that is there,",
        ("Which of two sets of rows a unit has is hidden as well as two units together are, below.",),
    ),
    "replace_one": ("are its rows these or those", "", ()),
}
Row = tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A heading, paragraphs, and a table whose first row names the columns."""

    title: str
    paragraphs: tuple[str, ...] = ()
    table: tuple[Row, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where the ledger stands: its name, its newest entry, and that entry's hash for those who may see the ledger."""

    ledger: str
    sequence: int
    hash: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is printed."""

    dataset: str
    date: str
    sections: tuple[PageSection, ...]


def page_of(catalog: Catalog, state: State, charges: int, asking: Sequence[str] = (), *, sealed: bool = False) -> Page:
    """Return the guarantee of a data set, as it is now.

    Args:
        charges: How many there were.
        asking: Who may ask, in sentences.
        sealed: Whether to show the hash of the ledger's newest entry, which is for those alone who may see the ledger
            itself.
    """
    view = budget_view(state, ())
    head = Head(ledger=catalog.ledger_path.name, sequence=state.sequence, hash=state.hash if sealed else None)
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    budget = replace(catalog.budget, epsilon=view.epsilon, delta=view.delta)  # as the ledger has it
    sections = (
        _promise(catalog, view),
        _meaning(budget, view.total),
        _groups(budget, view.total),
        _spent(view, charges),
        *map(_protected, catalog.tables),
        *map(_public, catalog.public_tables),
        *map(_graph, catalog.graphs),
        PageSection(title="Access", paragraphs=tuple(asking) or WHO_READS),
        PageSection(title="Limits of the promise", paragraphs=tuple(_left_out(catalog))),
        _record(view, head),
    )
    return Page(dataset=catalog.name, date=date, sections=sections)


def promise(epsilon: Fraction, delta: Fraction) -> str:
    """Return an (ε, δ) in words."""
    return f"ε = {figures.epsilon(epsilon)}" + (f", δ = {figures.delta(delta)}" if delta else "")


def _promise(catalog: Catalog, view: BudgetView) -> PageSection:
    budget = catalog.budget
    rows = [
        ("what", "value"),
        ("protected (the privacy unit)", units_of(catalog.tables)),
        ("neighbours", NEIGHBOURS[budget.neighbouring]),
        ("promise, for everything ever asked by everybody", promise(view.epsilon, view.delta)),
        ("kept by the ledger as", f"{figures.AMOUNTS[view.total.kind]} of at most {short(view.total.amount)}"),
    ]
    if view.delta_keys:
        rows.append(("of δ, for keys that are not public", figures.delta(view.delta_keys)))
    text = (
        f"This holds for all queries of {catalog.name}, by any people, in any order, even if each query is chosen "
        "after all earlier results. Take any two neighbours, and any set of possible results. The probability of that "
        "set under one neighbour is at most e^ε times its probability under the other, plus δ.",
    )
    parts = () if view.by_part is None else (_in_parts(view),)
    closed = ("The data set is closed: nothing more is answered.",) if view.closed else ()
    warnings = delta_warnings(view.delta, [table.people for table in catalog.tables])
    return PageSection(
        title="The promise",
        paragraphs=(*text, *(f"Warning: {warning}" for warning in warnings), *parts, *_raised(view), *closed),
        table=tuple(rows),
    )


def _raised(view: BudgetView) -> tuple[str, ...]:
    """Say what a raised budget promises, and when."""
    if view.raised is None:
        return ()
    steps = ", then ".join(promise(*pair) for pair in view.earlier)
    history = f"The budget was raised by the curator: it was {steps}."
    if not view.raised.delta:
        return (f"{history} The promise above holds for all that was released, before and after.",)
    return (
        f"{history} The promise above, and the figures below, hold if that raise did not depend on results. It may "
        "have been settled in advance, or it could never have gone beyond this figure. If the curator raised the "
        "budget because of results, the proof covers only "
        f"ε = {_up(view.raised.epsilon)}, δ = {figures.delta(view.raised.delta)}, {view.raised.holds}.",
    )


def _in_parts(view: BudgetView) -> str:
    names = ", ".join(map(_named, list(view.parts)[:MOST_VALUES]))
    return (
        f"The data are in {len(view.parts)} parts, {names}. Each unit is in one of them, and the promise is the same "
        "in each: a question about some parts is charged to these."
    )


def _meaning(budget: Budget, total: Loss) -> PageSection:
    """Say what one presence changes.

    With δ = 0, P(S)/Q(S) ≤ e^ε for every set S, hence so for odds. With δ > 0 let S be where ln(P/Q) > ε + ln 2:
    P(S) ≤ e^ε·Q(S) + δ ≤ P(S)/2 + δ, so P(S) ≤ 2δ; and where ln(Q/P) > ε + ln 2, Q ≤ 2δ by the same and P ≤ e^(−ε)·δ.
    Together less than 3δ. Neighbours are told apart no better. Under add_remove two data sets that differ in what one
    unit's rows hold are two steps apart, by way of the one without it: what holds for them is what holds for two units.
    """
    factor, delta = odds_factor_up(budget.epsilon), budget.delta
    times = f"{_up(factor)} times" if not delta else f"{_up(2 * factor)} times (2·e^ε)"
    but = "" if not delta else f", but for a chance of less than {figures.delta(3 * delta)} (3δ)"
    asked, right, more = WONDERED[budget.neighbouring]
    odds = (
        f"Somebody wonders about one unit: {asked}? All results together make the odds of it at most {times} as large, "
        f"or as small{but}. That is true for any knowledge they already have. The promise does not hide facts that "
        "hold for everybody, or that follow from other people's rows."
    )
    test = (
        "Somebody decides that by the answers. If they say so wrongly at the rate on the left, they say so "
        f"rightly{right} at most at the rate on the right:"
    )
    rows = [("wrong", "right")]
    for level in LEVELS:
        power = math.ceil(1000 * Fraction(power_up(budget, total, level)))
        rows.append((figures.level(level), figures.level(Fraction(power, 1000))))
    return PageSection(title="Meaning for one unit", paragraphs=(odds, *more, test), table=tuple(rows))


def _groups(budget: Budget, total: Loss) -> PageSection:
    text = (
        "The promise is for one unit. It hides facts that several units share (a household, a ward) less well. For "
        "groups of units, the same results have these figures:"
    )
    rows = [("units", "ε", "δ")]
    for people in GROUPS:
        towards = towards_group(budget, total, people)
        if towards.epsilon is None or towards.delta is None:
            rows.append((str(people), "nothing is promised", ""))
        else:
            rows.append((str(people), _up(towards.epsilon), figures.delta(towards.delta)))
    return PageSection(title="Several units together", paragraphs=(text,), table=tuple(rows))


def _spent(view: BudgetView, charges: int) -> PageSection:
    sign = figures.AMOUNTS[view.total.kind]
    rows = [
        ("", sign, "share"),
        ("spent", short(view.spent.amount), figures.share(view.share_spent)),
        ("left", short(view.remaining.amount, down=True), figures.share(1 - view.share_spent)),
    ]
    if view.by_part is not None:
        parts = list(view.parts.items())
        rows += [(f"spent of {_named(part)}", short(loss.amount), "") for part, loss in parts[:MOST_VALUES]]
        rows += [(f"and {len(parts) - MOST_VALUES} parts more", "", "")] if len(parts) > MOST_VALUES else []
    if view.delta_keys:
        part = figures.share(view.delta_keys_spent / view.delta_keys)
        rows.append(("spent of δ for keys", figures.delta(view.delta_keys_spent), part))
    asked = {0: "No question was", 1: "One question was"}.get(charges, f"{charges:,} questions were")
    paragraphs = [f"{asked} charged, up to version {view.version} of the data."]
    if view.spent.amount or view.delta_keys_spent:
        cap, whenever = view.as_if_cap, view.whenever
        paragraphs.append(
            f"Spent so far: ε = {_up(cap.epsilon)}{_with(cap)}, {cap.holds}"
            + (f"; {whenever.holds}, at most ε = {_up(whenever.epsilon)}{_with(whenever)}." if whenever != cap else ".")
        )
    if view.lost:
        paragraphs.append(
            "That is not the sum of the queries above. Entries of the ledger were lost before it was restored from a "
            "copy. They count as if they had cost the whole budget of that time."
        )
    paragraphs.append("The promise is about the whole budget, because all of it may be spent.")
    return PageSection(title="Spending", paragraphs=tuple(paragraphs), table=tuple(rows))


def _with(reading: Reading) -> str:
    return f", δ = {figures.delta(reading.delta)}" if reading.delta else ""


def _protected(table: Table) -> PageSection:
    paragraphs = [
        f"Queries use at most {table.max_rows_per_unit:,} row{'s' if table.max_rows_per_unit != 1 else ''} of each "
        "unit. They see none of its other rows. The columns that queries may use, and their bounds, are public. "
        "Queries cannot see any other column."
    ]
    if table.where:
        paragraphs.append(f"Of its source it has the rows of which {in_words(table.where)}; the others do not exist.")
    if table.link is not None:
        on = " and ".join(f"{here} = {there}" for here, there in table.link.on)
        paragraphs.append(f"A row belongs to the unit of the row of {table.link.parent.name} with {on}.")
    if table.part is not None:
        paragraphs.append(
            f"The column {table.part} gives the part of a unit. Queries do not see its rows of other parts."
        )
    return PageSection(title=f"The table {table.name}", paragraphs=tuple(paragraphs), table=_columns(table.columns))


def _public(table: PublicTable) -> PageSection:
    text = "Nobody is protected in this table: all that it holds may be seen in results, costs and errors."
    return PageSection(title=f"The public table {table.name}", paragraphs=(text,), table=_columns(table.columns))


def _graph(graph: Graph) -> PageSection:
    beside = graph.beside_people
    paragraphs = (f"Protected is {graph.unit}.", *([] if beside is None else [f"{beside[0].upper()}{beside[1:]}."]))
    return PageSection(title=f"The graph {graph.name}", paragraphs=paragraphs)


def _columns(columns: Sequence[Column]) -> tuple[Row, ...]:
    return (("column", "type", "public bounds or values"), *((c.name, c.type, _range(c)) for c in columns))


def _range(column: Column) -> str:
    parts = []
    if column.bounded:
        step = "" if column.step is None else f", in steps of {short(column.step)}"
        parts.append(f"{_value(column.lower)} to {_value(column.upper)}{step}")
    if column.values is not None:
        shown = ", ".join(map(_value, column.values[:MOST_VALUES]))
        more = len(column.values) - MOST_VALUES
        parts.append(f"public keys {shown}" + (f" and {more:,} more" if more > 0 else ""))
    if column.other is not None:
        parts.append(f"{_named(column.other)} for all others")
    length = "" if column.max_length is None else f"; texts of at most {column.max_length:,} bytes"
    return ("; ".join(parts) or "none: values are not public") + length


def _value(content: object) -> str:
    return spelling.value(content)


def _named(text: str) -> str:
    return spelling.text(text)


def _left_out(catalog: Catalog) -> Iterator[str]:
    """Say what the promise rests on, and what it does not promise."""
    yield (
        "The curator wrote bounds, public keys, row limits, steps and the budget. They must not come from the data, "
        "and nothing can check that. Lapwing trusts the curator about which tables are public."
    )
    yield (
        "The time that a result takes can depend on the data. So can a failure for lack of memory, disk or time. "
        "After three such failures Lapwing answers no query until the curator has looked."
    )
    yield (
        "New versions of the data share this one budget, because they are about the same people. Everybody can see "
        "that the data changed, and how often."
    )
    yield (
        "One person under two identifiers is two units. Rows of other people (relatives, contacts) that say something "
        "about a unit are not hidden with it."
    )
    if len(catalog.tables) > 1:
        yield "Where tables have units of different kinds, each is protected for itself, and who is both, less well."
    if catalog.budget.delta:
        yield "δ is the chance that anything may happen; it has to be far below one in the number of units."
    yield (
        "This promise does not stop people who can read the files of data, catalog and ledger. Nor does it stop a "
        "curator from making a second ledger for the same data. Then the losses of both add up."
    )


def _record(view: BudgetView, head: Head) -> PageSection:
    rows = [("ledger", head.ledger), ("entries", f"{head.sequence:,}"), ("version of the data", str(view.version))]
    text = ["Every charge is an entry of the ledger, sealed over the entry before."]
    if head.hash is None:
        text.append(
            "The seal of the newest entry is only for auditors, because it was made from the data's own digest, among "
            "others."
        )
    else:
        rows.append(("seal of the newest entry", head.hash))
        text.append("Do not publish the seal, because it was made from the data's own digest, among others.")
    return PageSection(title="The record", paragraphs=tuple(text), table=(("what", "value"), *rows))


def _up(value: float) -> str:
    return figures.epsilon(value) if value < 1e300 else "more than 1e300"
