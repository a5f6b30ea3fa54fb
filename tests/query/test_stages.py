"""A question in stages: each SELECT is bound once, whatever it is, and what it is follows from what it names."""

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from lapwing import query
from lapwing.errors import QueryRefused
from lapwing.query.bind import bind as bind_module
from lapwing.query.classify import kinds as kinds_module
from lapwing.query.classify.kinds import Kinds, RelationKind
from lapwing.query.classify.select_kinds import SelectKind, kind_of
from lapwing.query.from_clause import comma_joins, subqueries
from lapwing.query.from_clause.public_joins import bind_join
from lapwing.query.from_clause.scope import KnownSelect, Scope
from lapwing.query.from_clause.select_list import bind_list
from lapwing.query.plan.plan import Plan
from lapwing.query.text.parse import parse
from tests.support.effort import one_in
from tests.support.query.ibis_world import World, world

__all__ = ["world"]

UNITS = "SELECT person, COUNT(*) AS n FROM visits GROUP BY person"
ANSWER = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
OTHER = "SELECT plan, SUM(age) AS s FROM visits GROUP BY plan"

KINDS = {
    "SELECT plan FROM visits": RelationKind.PROTECTED,
    UNITS: RelationKind.PROTECTED,
    f"SELECT n, COUNT(*) AS m FROM ({UNITS}) AS u GROUP BY n": RelationKind.RELEASED,
    f"SELECT person, MAX(n) AS m FROM ({UNITS}) AS u GROUP BY person": RelationKind.PROTECTED,
    "SELECT person, x FROM (SELECT person, plan AS x, COUNT(*) FROM visits GROUP BY 1, 2) AS u": RelationKind.PROTECTED,
    "SELECT COUNT(*) AS n FROM visits": RelationKind.RELEASED,
    ANSWER: RelationKind.RELEASED,
    f"SELECT * FROM ({ANSWER}) AS a": RelationKind.RELEASED,
    f"WITH a AS ({ANSWER}), b AS (SELECT * FROM a) SELECT n FROM b": RelationKind.RELEASED,
    f"SELECT * FROM ({ANSWER}) AS a JOIN codes USING (plan)": RelationKind.RELEASED,
    f"{ANSWER} UNION ALL {ANSWER}": RelationKind.RELEASED,
    "SELECT plan FROM codes": RelationKind.PUBLIC,
    "SELECT plan FROM visits JOIN codes USING (plan)": RelationKind.PROTECTED,
    "SELECT plan FROM visits UNION ALL SELECT plan FROM visits": RelationKind.PROTECTED,
}
SELECTS = {
    "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan": SelectKind.OVER_ROWS,
    f"SELECT AVG(n) AS a FROM ({UNITS}) AS u": SelectKind.OVER_ROWS,
    "SELECT COUNT(*) FROM visits WHERE plan IN (SELECT plan FROM codes)": SelectKind.OVER_ROWS,
    f"SELECT AVG(n) AS a FROM ({ANSWER}) AS u": SelectKind.OVER_RESULT,
    f"SELECT n FROM (SELECT n FROM ({ANSWER}) AS a WHERE n > 3) AS b": SelectKind.OVER_RESULT,
    f"WITH a AS ({ANSWER}), b AS ({OTHER}) SELECT n, s FROM a JOIN b USING (plan)": SelectKind.OVER_RESULTS,
    f"WITH a AS ({ANSWER}) SELECT n FROM a JOIN codes USING (plan)": SelectKind.OVER_RESULTS,
    f"SELECT plan, SUM(n) AS n FROM ({ANSWER}) AS a GROUP BY ROLLUP (plan)": SelectKind.SETS_OF_RESULTS,
    "SELECT COUNT(*) / (SELECT COUNT(*) FROM visits) AS s FROM visits": SelectKind.BESIDE_AGGREGATES,
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)": SelectKind.WITH_CONSTANTS,
    f"SELECT COUNT(*) FROM visits WHERE plan IN (SELECT plan FROM ({ANSWER}) AS a)": SelectKind.WITH_CONSTANTS,
    "SELECT plan, (SELECT COUNT(*) FROM visits) AS n FROM codes": SelectKind.OVER_PUBLIC_ROWS,
    "SELECT (SELECT COUNT(*) FROM visits) FROM codes": SelectKind.OVER_PUBLIC_ROWS,
    "SELECT (SELECT COUNT(*) FROM visits), COUNT(*) FROM visits": SelectKind.BESIDE_AGGREGATES,
}
BOUND = {
    **dict.fromkeys((text for text, kind in SELECTS.items() if kind is SelectKind.OVER_ROWS), 1),
    **dict.fromkeys((text for text, kind in SELECTS.items() if kind is SelectKind.OVER_RESULT), 1),
    f"WITH a AS ({ANSWER}), b AS ({OTHER}) SELECT n, s FROM a JOIN b USING (plan)": 2,
    f"WITH a AS ({ANSWER}) SELECT x.plan, y.n, z.n AS m FROM a AS x, a AS y, a AS z WHERE x.plan = y.plan AND "
    "y.plan = z.plan": 1,
    f"WITH a AS ({ANSWER}) SELECT plan, n FROM a WHERE n > (SELECT AVG(n) FROM a)": 1,
    "SELECT COUNT(*) / (SELECT COUNT(*) FROM visits WHERE age > 3) AS s FROM visits": 2,
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)": 2,
    "SELECT APPROX_COUNT_DISTINCT(plan) AS n FROM main.visits": 1,
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT plan, member FROM visits) AS d": 1,
}
"""How many questions each is made of."""


def within(world: World, text: str) -> Scope:
    return Scope(text=text, catalog=world.catalog, facts=world.facts)


def query_of(text: str) -> exp.Expression:
    inner = parse(f"SELECT * FROM ({text}) AS q").select.args["from_"].this.this
    assert isinstance(inner, exp.Expression)
    return inner


@pytest.mark.parametrize("text", KINDS)
def test_what_a_query_gives_follows_from_what_it_names(world: World, text: str) -> None:
    assert Kinds(within(world, text)).of(query_of(text)) is KINDS[text]


@pytest.mark.parametrize("text", SELECTS)
def test_what_a_select_is_follows_from_what_it_names(world: World, text: str) -> None:
    scope = within(world, text)
    assert kind_of(parse(text).select, Kinds(scope), scope) is SELECTS[text]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every SELECT that is bound as a question."""
    bound, texts = bind_module._bind_parsed, list[str]()

    def noting(*given: Any, **others: Any) -> Plan:
        texts.append(str(given[0]))
        return bound(*given, **others)

    monkeypatch.setattr(bind_module, "_bind_parsed", noting)
    return texts


@pytest.mark.parametrize("text", one_in(4, BOUND))
def test_each_question_is_bound_once(world: World, counted: list[str], text: str) -> None:
    assert bind_module.bind(text, world.catalog, world.facts).outputs
    assert len(counted) == BOUND[text]


def test_a_refused_question_is_bound_once(world: World, counted: list[str]) -> None:
    for text in ("SELECT COUNT(*) FROM visits WHERE agee > 3", f"SELECT AVG(m) FROM ({UNITS}) AS u"):
        counted.clear()
        with pytest.raises(QueryRefused):
            bind_module.bind(text, world.catalog, world.facts)
        assert len(counted) == 1


MONTHS = "SELECT member, DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY member, m"
INSIDE = (
    f"SELECT AVG(n) AS a FROM ({UNITS}) AS u",
    f"SELECT AVG(m) AS a FROM (SELECT person, MAX(n) AS m FROM ({UNITS}) AS u GROUP BY person) AS v",
    f"WITH u AS ({UNITS}), v AS (SELECT person, MAX(n) AS m FROM u GROUP BY person) SELECT AVG(v.m) AS a FROM v",
    f"WITH u AS ({UNITS}) SELECT SUM(x.n) AS s FROM u AS x JOIN u AS y ON x.person = y.person",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT person, plan FROM (SELECT person, plan FROM visits) AS v) AS d",
    f"SELECT AVG(n) AS a FROM (SELECT person, COUNT(*) AS n FROM ({UNITS} UNION ALL {UNITS}) u GROUP BY person) AS v",
)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count how often each SELECT inside another is bound: its list, as every one has."""
    times, seen = Counter[int](), list[exp.Expression]()

    def noting(node: exp.Select, *others: Any) -> Any:
        seen.append(node)  # so that no other node takes its place in memory
        times[id(node)] += 1
        return bind_list(node, *others)

    monkeypatch.setattr(subqueries, "bind_list", noting)
    return times


@pytest.mark.parametrize("text", INSIDE)
def test_each_select_inside_is_bound_once(world: World, inside: Counter[int], text: str) -> None:
    assert bind_module.bind(text, world.catalog, world.facts).outputs
    assert set(inside.values()) == {1}


def test_twin_a_select_that_is_bound_again_is_noticed(
    world: World, inside: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownSelect, "is_of", lambda *_: False)
    bind_module.bind(INSIDE[1], world.catalog, world.facts)
    assert max(inside.values()) > 1


JOINED = (
    "SELECT AVG(n) AS a FROM (SELECT a.person, COUNT(*) AS n FROM visits a JOIN visits b ON a.person = b.person "
    "WHERE a.age > 3 AND b.plan IN (SELECT plan FROM codes) GROUP BY a.person) AS u",
    "SELECT AVG(n) AS a FROM (SELECT a.person, COUNT(*) AS n FROM visits a, visits b WHERE a.person = b.person "
    "GROUP BY a.person) AS u",
    f"WITH u AS ({UNITS}) SELECT AVG(m) AS a FROM (SELECT x.person, MAX(x.n + y.n) AS m FROM u x JOIN u y "
    "ON x.person = y.person GROUP BY x.person) AS v",
)
"""Of each whose rows FROM gives is asked before it is bound."""


@pytest.mark.parametrize("text", JOINED)
def test_each_join_is_bound_once(world: World, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    joins = list[object]()

    def noting(join: exp.Expression, *others: Any, **more: Any) -> Any:
        joins.append(join)
        return bind_join(join, *others, **more)

    for place in (comma_joins, subqueries):
        monkeypatch.setattr(place, "bind_join", noting)
    assert bind_module.bind(text, world.catalog, world.facts).outputs
    assert len(joins) == 1


def test_a_select_that_was_changed_or_names_something_else_is_bound_anew(world: World) -> None:
    scope = within(world, UNITS)
    node = query_of(UNITS)
    first = subqueries.unnamed(node, scope)
    assert subqueries.unnamed(node, scope) is first
    node.set("where", exp.Where(this=exp.column("member")))
    assert subqueries.unnamed(node, scope) != first
    reader = query_of("SELECT person FROM u")
    named = [replace(scope, named={"u": subqueries.unnamed(query_of(text), scope)}) for text in (UNITS, UNITS)]
    assert subqueries.unnamed(reader, named[0]) is not subqueries.unnamed(reader, named[1])


def test_twin_an_answer_taken_for_rows_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of different units would be taken for rows of one: then it is the binding of rows that refuses them."""
    monkeypatch.setattr(kinds_module, "settles_unit", lambda *_: True)
    text = f"SELECT AVG(n) AS a FROM ({ANSWER}) AS u"
    assert Kinds(within(world, text)).of(query_of(ANSWER)) is RelationKind.PROTECTED
    with pytest.raises(QueryRefused):
        bind_module.bind(text, world.catalog, world.facts)


def test_twin_units_taken_for_an_answer_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds_module, "settles_unit", lambda *_: False)
    with pytest.raises(QueryRefused):
        bind_module.bind(f"SELECT AVG(n) AS a FROM ({UNITS}) AS u", world.catalog, world.facts)


def calls(node: ast.AST) -> list[ast.Call]:
    return [part for part in ast.walk(node) if isinstance(part, ast.Call)]


def is_same(raised: ast.expr | None, name: str | None) -> bool:
    """Tell whether what is raised is what was caught, or made of it: `refused.pointing_at(…)`."""
    while isinstance(raised, ast.Call | ast.Attribute):
        raised = raised.func if isinstance(raised, ast.Call) else raised.value
    return raised is None or (isinstance(raised, ast.Name) and raised.id == name)


def attempts(source: str) -> int:
    """Return how often a refusal is caught and neither raised again nor passed on, nor asked for its cause."""
    handlers = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)]
    return sum(
        node.type is not None
        and "QueryRefused" in ast.unparse(node.type)
        and not any(isinstance(part, ast.Attribute) and part.attr in ("cause", "reason") for part in ast.walk(node))
        and not any(isinstance(part, ast.Raise) and is_same(part.exc, node.name) for part in node.body)
        and not any(isinstance(part, ast.Name) and part.id == node.name for call in calls(node) for part in call.args)
        for node in handlers
    )


@pytest.mark.long
def test_no_refusal_is_an_answer_whatever_its_cause() -> None:
    """What is bound to see whether it is refused says which causes answer: `attempted`."""
    room = Path(query.__file__).parent
    texts = {str(path.relative_to(room)): path.read_text(encoding="utf-8") for path in sorted(room.rglob("*.py"))}
    found = Counter({name: attempts(text) for name, text in texts.items() if "except QueryRefused" in text})
    assert found
    assert +found == Counter()


def test_an_attempt_that_is_planted_is_found() -> None:
    planted = "try:\n    plan = bound(parsed)\nexcept QueryRefused:\n    plan = composed(parsed)"
    assert attempts(planted) == 1
    assert attempts(planted.replace("plan = composed(parsed)", "raise")) == 0
    assert attempts(planted.replace("QueryRefused:", "QueryRefused as no:").replace("(parsed)", "(no, parsed)")) == 0
