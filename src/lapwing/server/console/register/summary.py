"""The contents of a catalog in a table, so that a curator can check them without reading TOML."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from lapwing.catalog import spelling
from lapwing.catalog.model import Budget, Catalog
from lapwing.catalog.protection import name_of, noun_of
from lapwing.catalog.table import Column
from lapwing.catalog.toml import loads
from lapwing.errors import CatalogError, LapwingError
from lapwing.guarantee.meaning import times_of_100

PRESENCE: Final = "add_remove"
"""Neighbours that differ by whether a person is in the data."""
MOST: Final = 12
"""Values of a list that the table names."""


def guess_of(epsilon: str, delta: str) -> int | None:
    """Return how often out of 100 a guess about a person is right at most with a new budget; None if there is none.

    >>> guess_of("1", "0"), guess_of("1", "0.000001"), guess_of("much", "0")
    (74, 55, None)
    """
    try:
        size, probability = Fraction(epsilon), Fraction(delta)
        budget = _budget(size, probability)
        return times_of_100(budget, budget.loss)
    except (ValueError, ZeroDivisionError, LapwingError):
        return None


@cache
def examples() -> tuple[tuple[str, int], ...]:
    """Return of some ε, with the δ that the form proposes, how often out of 100 a guess about a person is right."""
    budgets = [_budget(Fraction(epsilon), Fraction(1, 10**6)) for epsilon in (1, 3, 5, 10)]
    return tuple((spelling.value(budget.epsilon), times_of_100(budget, budget.loss)) for budget in budgets)


def _budget(epsilon: Fraction, delta: Fraction) -> Budget:
    """Return the budget of a new data set: one with a δ is for Gaussian noise."""
    measure = "gdp" if delta else "pure"
    return Budget(epsilon=epsilon, delta=delta, delta_keys=Fraction(0), measure=measure, neighbouring=PRESENCE)


def summary_of(text: str, form: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what a catalog with one protected table says; None if it is another one, or cannot be read.

    Args:
        form: The fields of the second step, which name the columns that are left out.
    """
    try:
        catalog = loads(text, file="catalog", folder=Path.cwd())
    except CatalogError:
        return None
    if len(catalog.tables) != 1 or catalog.public_tables or catalog.views or catalog.graphs:
        return None
    (table,) = catalog.tables
    known = {column.name for column in table.columns}
    return {
        "name": catalog.name,
        "table": table.name,
        "source": table.source,
        "unit": name_of(table),
        "noun": noun_of([table], catalog.dictionary) if catalog.dictionary.table(table.name).unit_title else "unit",
        "rows": table.max_rows_per_unit,
        "epsilon": spelling.value(catalog.budget.epsilon),
        "delta": spelling.value(catalog.budget.delta),
        "neighbouring": catalog.budget.neighbouring,
        "times": times_of_100(catalog.budget, catalog.budget.loss),
        "unreadable": table.unreadable == "null",
        "columns": [_column(catalog, column) for column in table.columns],
        "left_out": [name for key, name in form.items() if key.startswith("column-") and name not in known],
    }


def _column(catalog: Catalog, column: Column) -> dict[str, Any]:
    texts = catalog.dictionary.column(catalog.tables[0].name, column.name)
    reading = column.reading
    return {
        "name": column.name,
        "title": texts.title,
        "type": column.type if column.step is None else f"{column.type}:{spelling.value(column.step)}",
        "range": f"{_plain(column.lower)} to {_plain(column.upper)}" if column.bounded else None,
        "listed": list(_values(column)),
        "more": max(0, len(column.values or ()) - MOST),
        "missing": [_plain(code) for code in reading.missing] if reading else [],
    }


def _values(column: Column) -> Iterator[str]:
    yield from map(_plain, (column.values or ())[:MOST])
    if column.other is not None:
        yield f"{column.other} (all others)"


def _plain(content: object) -> str:
    return content if isinstance(content, str) else spelling.value(content)
