"""Normal forms: what means the same is the same question, what does not is not, and the engine finds no difference."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import expressions as printers
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import calls, normal_forms
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.types import BOOLEAN
from lapwing.release.stored import key_of
from tests.query.test_expressions import QUESTION, argument, differences, row_as_read
from tests.query.test_expressions import catalog as catalog_fixture
from tests.query.test_expressions import engine as engine_fixture
from tests.support import strategies
from tests.support.effort import examples, one_in

catalog, engine = catalog_fixture, engine_fixture

SAME = [
    ("member AND age > 30", "age > 30 AND member"),
    ("member AND (age > 30 AND note = 'x')", "(note = 'x' AND member) AND age > 30"),
    ("member AND age > 30 AND member", "member AND age > 30"),
    ("member OR age > 30 OR member", "(age > 30) OR (member)"),
    ("age > 30", "30 < age"),
    ("age >= 30", "30 <= age"),
    ("age < age", "age > age"),
    ("plan = note", "note = plan"),
    ("plan <> note", "note <> plan"),
    ("age < pay", "pay > age"),
    ("age BETWEEN 18 AND 64", "age >= 18 AND 64 >= age"),
    ("age NOT BETWEEN 18 AND 64", "age < 18 OR age > 64"),
    ("day BETWEEN '2026-01-01' AND '2026-01-02'", "day >= DATE '2026-01-01' AND day <= '2026-01-02'"),
    ("NOT plan = 'a'", "plan <> 'a'"),
    ("NOT age < 30", "age >= 30"),
    ("NOT NOT member", "member"),
    ("NOT (member AND age > 30)", "NOT member OR age <= 30"),
    ("NOT (member OR NOT age > 30)", "age > 30 AND NOT member"),
    ("plan IN ('b', 'a', 'a')", "plan IN ('a', 'b')"),
    ("plan IN ('b')", "plan = 'b'"),
    ("plan = 'a' OR plan = 'b'", "plan IN ('b', 'a')"),
    ("plan = 'a' OR member OR plan IN ('b', 'c')", "plan IN ('c', 'b', 'a') OR member"),
    ("plan <> 'a' AND plan <> 'b'", "plan NOT IN ('b', 'a')"),
    ("plan NOT IN ('a', 'b') AND plan <> 'c'", "NOT plan IN ('c', 'b', 'a')"),
    ("member = TRUE", "member"),
    ("member = FALSE", "NOT member"),
    ("member <> TRUE", "NOT member"),
    ("1 = 1 AND member", "member"),
    ("member OR 1 > 2", "member"),
    ("age + pay > 1", "pay + age > 1"),
    ("age * cost > 1", "1 < cost * age"),
    ("LEAST(age, pay, 5) = 5", "5 = LEAST(5, pay, age)"),
    ("GREATEST(age, pay) = 5", "GREATEST(pay, age) = 5"),
    ("age IS DISTINCT FROM score", "score IS DISTINCT FROM age"),
    ("XOR(member, plan = 'a')", "XOR('a' = plan, member)"),
]
DIFFERENT = [
    ("age - pay > 1", "pay - age > 1"),
    ("age / pay > 1", "pay / age > 1"),
    ("age < pay", "pay < age"),
    ("(age + pay) + cost > 1", "age + (pay + cost) > 1"),
    ("COALESCE(age, pay) > 1", "COALESCE(pay, age) > 1"),
    ("NULLIF(age, pay) > 1", "NULLIF(pay, age) > 1"),
    (
        "CASE WHEN member THEN 1 WHEN age > 3 THEN 2 END = 1",
        "CASE WHEN age > 3 THEN 2 WHEN member THEN 1 END = 1",
    ),
    ("plan || note = 'x'", "note || plan = 'x'"),
    ("member AND age > 3 OR plan = 'a'", "member AND (age > 3 OR plan = 'a')"),
    ("age BETWEEN 1 AND 3", "age BETWEEN 3 AND 1"),
    ("member IS TRUE", "member"),
    ("(plan = 'a') IS NULL", "(plan <> 'a')"),
]


def key(condition: str, catalog: Catalog) -> str:
    return key_of(bind(QUESTION.format(condition), catalog).question)


@pytest.mark.parametrize(("one", "other"), one_in(18, SAME, many=True))
def test_what_means_the_same_is_one_question(
    one: str, other: str, catalog: Catalog, engine: duckdb.DuckDBPyConnection
) -> None:
    assert key(one, catalog) == key(other, catalog)
    for text in (one, other):
        assert differences(text, condition(text, catalog), engine, row_as_read) == []


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_does_not_is_not(one: str, other: str, catalog: Catalog) -> None:
    assert key(one, catalog) != key(other, catalog)


def condition(text: str, catalog: Catalog) -> Expression:
    where = bind(QUESTION.format(text), catalog).question.where
    assert where is not None
    return where


@pytest.mark.parametrize("nothing", ["TRUE", "1 = 1", "NOT FALSE", "2 > 1 OR member"])
def test_a_condition_that_always_holds_is_none(nothing: str, catalog: Catalog) -> None:
    asked = "SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 3)"
    assert key_of(bind(f"{asked} WHERE {nothing}", catalog).question) == key_of(bind(asked, catalog).question)


def test_filters_of_subqueries_and_of_the_question_are_one(catalog: Catalog) -> None:
    nested = "SELECT COUNT(*) AS n FROM (SELECT * FROM (SELECT * FROM visits WHERE {}) WHERE {}) WHERE {}"
    parts = ["member", "age > 3", "note LIKE 'a%'"]
    keys = {key_of(bind(nested.format(*random.Random(i).sample(parts, 3)), catalog).question) for i in range(20)}
    assert keys == {key(" AND ".join(parts), catalog)}


@pytest.mark.long
def test_memberships_stand_in_any_order(catalog: Catalog) -> None:
    """Each keeps or leaves out rows by their own columns."""
    parts = [
        "plan IN (SELECT plan FROM codes WHERE factor > 1)",
        "age IN (SELECT factor FROM codes)",
        "NOT EXISTS (SELECT 1 FROM codes WHERE codes.plan = visits.note)",
        "member",
        "age IN (SELECT factor FROM codes)",
    ]
    facts = PublicData(catalog)
    shuffled = [" AND ".join(random.Random(i).sample(parts, 5)) for i in range(20)]
    texts = {str(bind(QUESTION.format(text), catalog, facts).question) for text in shuffled}
    other = str(bind(QUESTION.format(" AND ".join(parts[1:])), catalog, facts).question)
    facts.close()
    assert len(texts) == 1
    assert other not in texts


def test_aggregates_and_keys_have_one_form_too(catalog: Catalog) -> None:
    asked = "SELECT {} AS k, COUNT_IF({}) AS n, SUM({}) AS s FROM visits GROUP BY k"
    one = asked.format("age > 3 AND member", "plan = 'a' AND member", "age + pay")
    other = asked.format("member AND 3 < age", "member AND 'a' = plan", "pay + age")
    assert key_of(bind(one, catalog).question) == key_of(bind(other, catalog).question)


# ---- in any order ----------------------------------------------------------------------------------------------------


_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}


def reworded(tree: exp.Expr, chance: random.Random) -> exp.Expr:
    """Return a text of the same meaning: sides exchanged, parts repeated, conditions denied twice."""

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.And | exp.Or | exp.EQ | exp.NEQ | exp.Add | exp.Mul) and chance.random() < 0.5:
            return type(node)(this=node.expression.copy(), expression=node.this.copy())
        if type(node) in _MIRRORED and chance.random() < 0.5:
            return _MIRRORED[type(node)](this=node.expression.copy(), expression=node.this.copy())
        if isinstance(node, exp.Between) and chance.random() < 0.5:
            low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
            high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
            return exp.Paren(this=exp.And(this=high, expression=low))
        if isinstance(node, exp.And | exp.Or) and chance.random() < 0.2:
            return exp.Paren(this=type(node)(this=node.copy(), expression=exp.Paren(this=node.this.copy())))
        return node

    return tree.transform(change)


@pytest.mark.long
@examples(12, 600)
@given(text=strategies.conditions, seed=st.integers(0, 2**32))
def test_a_reworded_question_is_the_same_question(catalog: Catalog, text: str, seed: int) -> None:
    """The price is paid once, however the conditions are arranged."""
    try:
        first = key(text, catalog)
    except QueryRefused:  # an expression may outgrow its integers
        return
    other = reworded(sqlglot.parse_one(text, dialect="duckdb"), random.Random(seed)).sql(dialect="duckdb")
    try:
        second = key(other, catalog)
    except QueryRefused as refused:
        if "nested" in refused.reason:  # more parentheses than a question may have
            return
        raise
    assert first == second, other


def test_a_normal_form_is_its_own(catalog: Catalog) -> None:
    """Denying twice, and conjoining the parts of a conjunction, change nothing."""
    for text, _ in SAME:
        found = condition(text, catalog)
        assert normal_forms.denial(normal_forms.denial(found)) == found
        assert normal_forms.conjunction([found, found]) == found
        assert normal_forms.disjunction([found]) == found


def test_three_values(engine: duckdb.DuckDBPyConnection) -> None:
    """AND, OR and NOT of constants are what the engine says of them."""
    truths: list[bool | None] = [True, False, None]
    constants = [Literal(value=value, type=BOOLEAN) for value in truths]
    for one in constants:
        assert_same(normal_forms.denial(one), f"NOT {printers.expression(one)}", engine)
        for other in constants:
            pair = [printers.expression(one), printers.expression(other)]
            assert_same(normal_forms.conjunction([one, other]), " AND ".join(pair), engine)
            assert_same(normal_forms.disjunction([one, other]), " OR ".join(pair), engine)


def assert_same(found: Expression, sql: str, engine: duckdb.DuckDBPyConnection) -> None:
    ours, theirs = (engine.execute(f"SELECT {text}").fetchone() for text in (printers.expression(found), sql))
    assert ours == theirs


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def sorting(node: type[exp.Expression], names: tuple[str, ...]) -> Callable[[exp.Expression, Any], Expression]:
    """Return a handler that puts the arguments of a node in order before it is bound."""
    handler = calls.HANDLERS[node]

    def bound(tree: exp.Expression, rows: Any) -> Expression:
        copied = tree.copy()
        parts = sorted((copied.args[name] for name in names), key=lambda part: part.sql())
        for name, part in zip(names, parts, strict=True):
            copied.set(name, part)
        return handler(copied, rows)

    return bound


@pytest.mark.parametrize(
    ("node", "names", "text"),
    [
        (exp.Sub, ("this", "expression"), "pay - age"),
        (exp.Div, ("this", "expression"), "pay / age"),
        (exp.Nullif, ("this", "expression"), "NULLIF(pay, age)"),
        (exp.If, ("true", "false"), "IF(member, pay, age)"),
    ],
)
def test_sorting_what_does_not_commute_is_found(
    node: type[exp.Expression],
    names: tuple[str, ...],
    text: str,
    catalog: Catalog,
    engine: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert differences(text, argument(text, catalog), engine) == []
    monkeypatch.setitem(calls.HANDLERS, node, sorting(node, names))
    assert differences(text, argument(text, catalog), engine)


@pytest.mark.parametrize("text", ["COALESCE(pay, age)", "CASE WHEN pay > 3 THEN 1 WHEN age > 3 THEN 2 END"])
def test_sorting_branches_is_found(text: str, catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    whole = argument(text, catalog)
    assert isinstance(whole, Operation)
    assert differences(text, whole, engine) == []
    swapped = whole.arguments[2:4] + whole.arguments[:2] + whole.arguments[4:]
    if whole.function == "coalesce":
        swapped = whole.arguments[::-1]
    broken = Operation(function=whole.function, arguments=swapped, type=whole.type)
    assert differences(text, broken, engine)


@pytest.mark.parametrize(
    ("name", "bug", "text"),
    [
        ("_TURNED", {**normal_forms._TURNED, "greater": "greater"}, "age > pay"),
        ("_OPPOSITE", {**normal_forms._OPPOSITE, "less": "greater"}, "NOT pay < age"),
        ("_flat", lambda _function, conditions: list(conditions)[:1], "member AND age > 30"),
        ("conjunction", normal_forms.disjunction, "NOT (member OR age > 30)"),
    ],
)
def test_a_wrong_rule_is_found(
    name: str,
    bug: Any,
    text: str,
    catalog: Catalog,
    engine: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert differences(text, condition(text, catalog), engine, row_as_read) == []
    monkeypatch.setattr(normal_forms, name, bug)
    assert differences(text, condition(text, catalog), engine, row_as_read)


def test_the_values_of_keys_are_part_of_what_a_stored_answer_is_called(catalog: Catalog) -> None:
    """A later version may know that values are public which were private, or list others."""
    question = bind("SELECT age // 10 AS decade, COUNT(*) FROM visits GROUP BY decade", catalog).question
    (key,) = question.keys
    assert key.values is not None
    others = [None, key.values[:-1], (*key.values[:-1], key.values[0])]
    names = {key_of(replace(question, keys=(replace(key, values=values),))) for values in (key.values, *others)}
    assert len(names) == 4
