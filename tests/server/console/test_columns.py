"""What the page of tables says that a column allows is what the binder of questions takes."""

import re
from dataclasses import replace
from typing import Final

import pytest

from lapwing.catalog import Catalog
from lapwing.documents.dataset_document import dataset_document
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.server.console.data import columns
from lapwing.server.console.data.columns import ColumnText, tables_of
from tests.support.catalog.examples import TEXT, catalog

MORE: Final = """
income = { type = "integer", lower = 0, upper = 30000 }
code = { type = "integer" }
few = { type = "decimal", lower = 0, upper = 99.99, step = 0.01 }
many = { type = "decimal", lower = 0, upper = 100, step = 0.01 }
"Day of birth" = { type = "date", lower = 1926-01-01, upper = 2026-01-01 }
left = { type = "date", lower = 2020-01-01, upper = 2026-01-01 }
unknown = { type = "date" }
long_ago = { type = "timestamp", lower = 1900-01-01T00:00:00Z, upper = 2026-01-01T00:00:00Z }
"""
DESCRIBED: Final = catalog(TEXT + MORE)


def texts(described: Catalog) -> list[ColumnText]:
    (table,) = tables_of({**dataset_document("clinic", described), "relations": []})
    return list(table.columns)


def taken(sql: str) -> bool:
    """Tell whether a question is taken, by keys with public values."""
    try:
        return not bind(sql, DESCRIBED).question.private_keys
    except QueryRefused:
        return False


def wrong(told: list[ColumnText]) -> list[str]:
    """Return the columns of which more, or less, is said than is taken."""
    found = []
    for column in told:
        name, said = column.written, column.allows
        keys = re.findall(r"(?:GROUP BY (?!for a|where)|, or )([^;]+?)(?=, or |;|$)", said)
        tries = {
            f"SELECT {name}, COUNT(*) AS n FROM visits GROUP BY {name}": re.match("GROUP BY(,|;|$)", said) is not None,
            f"SELECT SUM({name}) AS s, AVG({name}) AS a, MEDIAN({name}) AS m FROM visits": "sum, mean" in said,
            f"SELECT COUNT({name}) AS n, COUNT(DISTINCT {name}) AS d FROM visits": True,
            **{f"SELECT {key} AS v, COUNT(*) AS n FROM visits GROUP BY v": True for key in keys},
        }
        found += [f"{name}: {said}: {sql}" for sql, expected in tries.items() if taken(sql) != expected]
    return found


def test_what_is_said_of_columns_is_what_is_taken() -> None:
    told = texts(DESCRIBED)
    assert len(told) == 16
    assert wrong(told) == []


@pytest.mark.long
@pytest.mark.parametrize("planted", ["MOST_KEYS", "FEW_KEYS"])
def test_a_limit_that_is_another_one_is_found(monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    monkeypatch.setattr(columns, planted, 100_000)
    assert wrong(texts(DESCRIBED)) != []


def test_what_a_person_is_and_what_has_no_public_values_is_said() -> None:
    allows = {column.name: column.allows for column in texts(DESCRIBED)}

    assert allows["town"] == "GROUP BY for a δ, with the values that enough people have"
    assert allows["income"] == "GROUP BY FLOOR(income / 1000); sum, mean, quantile"
    assert allows["Day of birth"] == "GROUP BY DATE_TRUNC('year', \"Day of birth\")"
    budget = replace(DESCRIBED.budget, delta_keys=DESCRIBED.budget.delta_keys * 0)
    without = {column.name: column.allows for column in texts(replace(DESCRIBED, budget=budget))}
    assert without["town"] == "GROUP BY where listed: WHERE town IN (…)"
