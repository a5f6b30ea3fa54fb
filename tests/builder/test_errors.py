"""What is not understood is refused where it is written, with what was given, what is allowed and what to do."""

from collections.abc import Callable
from datetime import timedelta

import pytest

import lapwing as lw
from lapwing.builder.nodes import DEEPEST
from lapwing.builder.table import Table
from lapwing.query.text.parse import MAX_TOKENS, MAX_TREE_DEPTH
from tests.support.builder.world import World

col = lw.col
CASES: list[tuple[str, Callable[[Table[lw.Answer]], object]]] = [
    ("Write & for and", lambda t: t.filter(col.age > 3 and col.age < 5)),
    ("Write & for and", lambda t: t.filter(not col.member)),
    ("x.between", lambda t: t.filter(1 < col.age < 5)),
    ("x.isin", lambda t: "a" in col.plan),
    ("no parts in Python", lambda t: list(col.plan)),
    ("x.isnull()", lambda t: t.filter(col.age == None)),  # noqa: E711
    ("filter takes conditions", lambda t: t.filter(True)),
    ("filter takes conditions", lambda t: t.filter("age > 3")),  # type: ignore[arg-type]
    ("not aggregates. Write agg first", lambda t: t.filter(lw.count() > 3)),
    ("not aggregates", lambda t: t.mutate(n=lw.sum("age"))),
    ("not aggregates", lambda t: t.group_by(lw.sum("age").name("n"))),
    ("is no aggregate", lambda t: t.agg(n=col.age)),
    ("agg takes aggregates", lambda t: t.agg(n="age")),  # type: ignore[arg-type]
    ("at least one aggregate", lambda t: t.agg()),
    ("needs a name", lambda t: t.agg(lw.count())),
    ("needs a name", lambda t: t.mutate(col.age + 1)),
    ("needs a name", lambda t: t.group_by(col.age // 10)),
    ("Did you mean 'age'?", lambda t: t.filter(col.agee > 3)),
    ("Did you mean 'age'?", lambda t: t.filter(col.Age > 3)),
    ("Columns: plan, n.", lambda t: t.group_by("plan").agg(n=lw.count()).filter(col.age > 3)),
    ("Two columns are called 'N'", lambda t: t.agg(n=lw.count(), N=lw.count())),
    ("Two columns are called", lambda t: t.rename(age="cost")),
    ("takes columns, not constants", lambda t: t.group_by(lw.literal(1).name("x"))),
    ("takes columns, not constants", lambda t: t.order_by(lw.literal(1))),
    ("at least one column", lambda t: t.order_by()),
    ("at least one column", lambda t: t.select()),
    ("leaves no column", lambda t: t.select("age").drop("age")),
    ("from 0 up", lambda t: t.limit(-1)),
    ("from 0 up", lambda t: t.limit(2.5)),  # type: ignore[arg-type]
    ("from 0 up", lambda t: t.limit(True)),
    ("isin takes a list", lambda t: col.plan.isin("abc")),
    ("use semi_join", lambda t: col.plan.isin(t)),  # type: ignore[arg-type]
    ("at least one value", lambda t: col.plan.isin([])),
    ("at least one pair", lambda t: lw.cases()),
    ("takes pairs", lambda t: lw.cases(col.member)),  # type: ignore[arg-type]
    ("at least one value", lambda t: lw.coalesce()),
    ("at least one key", lambda t: lw.rollup()),
    ("The type is 'text'; allowed: int8", lambda t: col.age.cast("text")),
    ("The unit is 'dy'; allowed: year", lambda t: col.born.truncate("dy")),
    ("how is 'outer'", lambda t: t.join(t, "plan", how="outer")),  # type: ignore[arg-type]
    ("join takes a table", lambda t: t.join("codes", "plan")),  # type: ignore[arg-type]
    ("at least one column that is equal", lambda t: t.join(t, [])),
    ("pairs: [", lambda t: t.join(t, [("a", "b", "c")])),  # type: ignore[list-item]
    ("two sessions", lambda t: t.join(Table(relation=t.relation, asker=object(), taken=()), "plan")),  # type: ignore[arg-type]
    ("rname lacks {name}", lambda t: t.join(t, "plan", rname="x")),
    ("the same columns", lambda t: t.union(t.drop("age"))),
    ("options follows agg", lambda t: t.options(epsilon=1)),
    ("no option 'eps'. Allowed: epsilon", lambda t: t.count().options(eps=1)),
    ("There is no argument 'bounds'. Allowed: where", lambda t: lw.sum("age", bounds=(0, 1))),  # type: ignore[call-arg]
    ("takes two numbers", lambda t: lw.sum("age", contribution_bounds_per_row=5)),  # type: ignore[arg-type]
    ("where is a condition", lambda t: lw.sum("age", where=True)),  # type: ignore[arg-type]
    ("count_where takes a condition", lambda t: lw.count_where("age")),  # type: ignore[arg-type]
    ("A number is needed", lambda t: lw.quantile("age", "0.5")),  # type: ignore[arg-type]
    ("The name of a column, or an expression", lambda t: lw.sum(3)),  # type: ignore[arg-type]
    ("over follows an aggregate", lambda t: col.age.over(group_by="person")),
    ("not aggregates", lambda t: t.mutate(x=col.age.lag())),
    ("Windows over the answer", lambda t: t.count().mutate(x=lw.rank().over(group_by="count", order_by="count"))),
    ("one unit", lambda t: lw.interval(days=1, months=2)),
    ("not a whole number of days", lambda t: col.born + timedelta(hours=3)),
    ("Filter, then order, then limit", lambda t: t.count().limit(3).filter(col["count"] > 3).to_sql()),
    ("of the type bytes", lambda t: t.filter(col.note == b"x")),
    ("is empty", lambda t: t.agg(**{"": lw.count()})),
    ("Write it flatter", lambda t: _long(t)),
]


def _long(table: Table[lw.Answer]) -> Table[lw.Answer]:
    condition = col.age == 0
    for age in range(1, DEEPEST + 1):
        condition = condition | (col.age == age)
    return table.filter(condition)


@pytest.mark.parametrize(("said", "wrong"), CASES, ids=[f"{i} {said[:30]}" for i, (said, _) in enumerate(CASES)])
def test_an_error_says_what_to_do(world: World, said: str, wrong: Callable[[Table[lw.Answer]], object]) -> None:
    with pytest.raises((lw.InvalidParameter, lw.QueryRefused)) as refused:
        wrong(world.table("visits"))
    assert said in str(refused.value)


def test_unknown_tables(world: World) -> None:
    with pytest.raises(lw.QueryRefused, match="Did you mean 'visits'"):
        world.table("Visit")
    with pytest.raises(lw.InvalidParameter):
        world.table(3)  # type: ignore[arg-type]


def test_limits_are_those_of_a_question() -> None:
    from lapwing.builder import nodes

    assert DEEPEST == MAX_TREE_DEPTH
    assert nodes.LARGEST == MAX_TOKENS


def test_growth_is_stopped_before_it_is_written(world: World) -> None:
    answer = world.table("visits").agg(n=lw.count())
    for _ in range(60):
        answer = answer.mutate(n=col.n + col.n)
    with pytest.raises(lw.InvalidParameter, match="parts"):
        answer.to_sql()


def test_many_steps_are_refused(world: World) -> None:
    table = world.table("visits")
    for number in range(300):
        table = table.mutate(x=col.age + number)
    with pytest.raises(lw.QueryRefused, match="steps"):
        table.count().to_sql()


def test_col_is_left_alone_by_notebooks() -> None:
    for name in ("_repr_html_", "_ipython_display_", "__wrapped__"):
        assert not hasattr(col, name)
    assert repr(col["_private"]) == '"_private"'
