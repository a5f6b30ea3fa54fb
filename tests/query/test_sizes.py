"""Short texts that would be large: refused in a moment, by explain as well, before anything is paid."""

from pathlib import Path
from typing import Any

import pytest

from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.from_clause import subqueries
from lapwing.query.from_clause.scope import KnownSelect
from lapwing.query.plan.plan import Plan
from lapwing.query.relations import size
from tests.support.effort import only
from tests.support.query import neighbours
from tests.support.refusals import refused_as

DEEP = 16
UNION_SIDES = 95


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    catalog = neighbours.catalog(tmp_path, rows=4)
    facts = PublicData(catalog)

    def plan(text: str) -> Plan:
        return bind(text, catalog, facts)

    return plan


def nested(depth: int, member: str) -> str:
    query = "SELECT person FROM visits"
    for _ in range(depth):
        query = f"SELECT person FROM visits WHERE {member.format(query)}"
    return query


def bound_subqueries(ask: Any, depth: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many subqueries are bound for one that is nested so deep."""
    calls = []
    real = subqueries._subquery

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(subqueries, "_subquery", counted)
        ask(f"SELECT COUNT(*) FROM visits WHERE person IN ({nested(depth, 'person IN ({})')})")
    return len(calls)


def check_linear(ask: Any, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, many = (bound_subqueries(ask, levels, monkeypatch) for levels in (1, 2, depth))
    assert many == one + (depth - 1) * (two - one)


def test_what_is_nested_is_bound_as_often_as_it_is_deep(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_linear(ask, DEEP, monkeypatch)


def test_twin_binding_twice_a_level_is_noticed(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownSelect, "is_of", lambda *_: False)
    with pytest.raises(AssertionError):
        check_linear(ask, 6, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("operator", only((2, 3), ["UNION", "INTERSECT", "EXCEPT", "UNION ALL"]))
def test_long_chains_of_set_operations(ask: Any, operator: str) -> None:
    """Refused or answered, with no fault of Python's stack."""
    sides = f" {operator} ".join(["SELECT person, age FROM visits"] * UNION_SIDES)
    text = f"SELECT COUNT(*) FROM ({sides}) AS u"
    if operator == "UNION ALL":
        assert ask(text)
    else:
        with refused_as("query_too_complex"):
            ask(text)


def heavy(levels: int, copies: int) -> str:
    """Return relations on relations, each with an expression as large as one may be, united with themselves."""
    parts, before = ["b AS (SELECT person, member AS m, age FROM visits)"], "b"
    for level in range(levels):
        parts.append(f"a{level}_0 AS (SELECT person, m, (m AND age > {level}) OR m IS NULL AS k, age FROM {before})")
        for step in range(9):
            column = "k IS DISTINCT FROM (k = m)"
            parts.append(f"a{level}_{step + 1} AS (SELECT person, m, {column} AS k, age FROM a{level}_{step})")
        parts.append(f"b{level} AS (SELECT DISTINCT person, k AS m, age FROM a{level}_9)")
        before = f"b{level}"
    union = " UNION ALL ".join([f"SELECT person, m, age FROM {before}"] * copies)
    return f"WITH {', '.join(parts)}, u AS ({union}) SELECT COUNT(*) FROM u WHERE m"


@pytest.mark.long
@pytest.mark.parametrize(("levels", "copies"), [(7, 1), pytest.param(12, 6, marks=pytest.mark.long)])
def test_what_is_small_one_by_one_and_large_together_is_refused(ask: Any, levels: int, copies: int) -> None:
    assert ask(heavy(1, 1))
    with refused_as("query_too_complex"):
        ask(heavy(levels, copies))


@pytest.mark.long
def test_twin_relations_that_are_not_added_up_are_noticed(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "accumulate", lambda weights: weights)
    assert ask(heavy(7, 1)), "too much, and let through"
