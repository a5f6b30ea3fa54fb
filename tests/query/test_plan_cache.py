"""Plans that are remembered: the same question is planned once, and nothing else is taken for the same."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.plan import plan as plans
from lapwing.query.plan.plan import LONGEST_TEXT, MOST_PLANS, Plan, PlanCache
from tests.support.refusals import refused_as

CATALOG: Any = SimpleNamespace(public_tables=())
OTHER: Any = SimpleNamespace(public_tables=())
WITH_PUBLIC: Any = SimpleNamespace(public_tables=("places",))
QUESTION: dict[str, Any] = {
    "catalog": CATALOG,
    "principal": "alice",
    "text": "SELECT ?",
    "parameters": (1,),
    "numbers": (Fraction(1, 2), None, None),
}
ASKED_APART: list[dict[str, Any]] = [
    {"principal": "bob"},
    {"catalog": OTHER},
    {"text": "SELECT  ?"},
    {"parameters": (True,)},
    {"parameters": (1.0,)},
    {"parameters": ("1",)},
    {"parameters": (Decimal(1),)},
    {"parameters": (Decimal("1.0"),)},
    {"parameters": (Fraction(1),)},
    {"parameters": (None,)},
    {"parameters": (date(2026, 1, 1),)},
    {"parameters": (1, 1)},
    {"parameters": {"a": 1}},
    {"parameters": {"b": 1}},
    {"numbers": (None, Fraction(1, 2), None)},
    {"numbers": (Fraction(1, 2), None, Fraction(1, 2))},
    {"numbers": (0.5, None, None)},
]


@pytest.fixture
def made() -> Callable[[], int]:
    """Count what is planned."""
    count = 0

    def make() -> int:
        nonlocal count
        count += 1
        return count

    return make


def check_that_only_the_same_is_the_same(make: Callable[[], int]) -> None:
    for changed in ASKED_APART:
        plans = PlanCache[int]()
        first = plans.planned(make, **QUESTION)
        assert plans.planned(make, **QUESTION | changed) != first, changed
        assert plans.planned(make, **QUESTION | changed) != first, changed


def test_only_the_same_question_is_the_same(made: Callable[[], int]) -> None:
    check_that_only_the_same_is_the_same(made)


@pytest.mark.parametrize(
    "name",
    [
        lambda principal, text, parameters, numbers: (text, repr(parameters), repr(numbers)),
        lambda principal, text, parameters, numbers: (principal, text, tuple(parameters), numbers),
        lambda principal, text, parameters, numbers: (
            principal,
            text,
            repr(parameters),
            repr(sorted(map(str, numbers))),
        ),
        lambda principal, text, parameters, numbers: (principal, text.split()[0], repr(parameters), repr(numbers)),
    ],
    ids=["for everybody", "equal values", "whatever the price is called", "texts that are alike"],
)
def test_a_question_that_is_taken_for_another_is_noticed(
    name: Any, made: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "_name", name)
    with pytest.raises(AssertionError):
        check_that_only_the_same_is_the_same(made)


def test_the_same_is_planned_once(made: Callable[[], int]) -> None:
    plans = PlanCache[int]()
    assert {plans.planned(made, **QUESTION) for _ in range(5)} == {1}
    assert plans.planned(made, **QUESTION | {"parameters": [1]}) == 1  # a list is as good as a tuple


@pytest.mark.parametrize(
    "changed",
    [
        {"catalog": WITH_PUBLIC},  # whose files may have changed
        {"parameters": (object(),)},
        {"parameters": ([1],)},
        {"parameters": {1: 1}},
        {"parameters": iter([1])},
        {"text": "x" * (LONGEST_TEXT + 1)},
        {"text": b"SELECT ?"},
        {"numbers": (SimpleNamespace(), None, None)},
    ],
)
def test_what_is_not_plain_is_planned_each_time(changed: dict[str, Any], made: Callable[[], int]) -> None:
    plans = PlanCache[int]()
    assert [plans.planned(made, **QUESTION | changed) for _ in range(2)] == [1, 2]


def test_a_refusal_is_not_remembered(made: Callable[[], int]) -> None:
    plans = PlanCache[int]()

    def refuse() -> int:
        raise QueryRefused("no", remedy="none")

    with pytest.raises(QueryRefused):
        plans.planned(refuse, **QUESTION)
    assert plans.planned(made, **QUESTION) == 1


def test_so_many_are_remembered_and_no_more(made: Callable[[], int]) -> None:
    plans = PlanCache[int]()
    for number in range(MOST_PLANS + 1):
        plans.planned(made, **QUESTION | {"text": str(number)})
    assert plans.planned(made, **QUESTION | {"text": str(MOST_PLANS)}) == MOST_PLANS + 1
    assert plans.planned(made, **QUESTION | {"text": "0"}) == MOST_PLANS + 2


def test_a_session_binds_a_question_once_and_refuses_to_answer_a_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, bound = tmp_path / "visits.parquet", []
    pq.write_table(pa.table({"person": list(range(20)), "plan": ["a", "b"] * 10}), path)
    real = bind

    def noted(text: str, *given: Any, **named: Any) -> Plan:
        bound.append(text)
        return real(text, *given, **named)

    monkeypatch.setattr("lapwing.session.bind", noted)
    text = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
    asked: dict[str, Any] = {"privacy_unit": "person", "max_rows_per_unit": 1, "domains": {"plan": ["a", "b"]}}
    with lw.protect(path, epsilon=3, delta=1e-6, **asked) as session:
        first = session.sql(text, epsilon=0.5)
        price = session.explain(text, epsilon=0.5)
        again = session.sql(text, epsilon=0.5)
        assert bound == [text]
        assert price.stored
        assert again.stored
        assert again.rows() == first.rows()
        session.acting_for("bob").sql(text, epsilon=0.5)
        assert bound == [text, text]
        only_priced = f"EXPLAIN PRIVACY {text}"
        session.explain(only_priced, epsilon=0.5)
        with refused_as("explain_needs_its_call"):
            session.sql(only_priced, epsilon=0.5)
