"""Random chains of verbs mean what the same steps mean in SQL that is written with every parenthesis and one subquery
a step; and the tree of an expression survives being written with as few parentheses as the builder uses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

import lapwing as lw
from lapwing.builder import nodes
from lapwing.builder.functions import Groupings
from lapwing.builder.table import Table
from lapwing.builder.values import Value
from lapwing.query.plan import Plan
from lapwing.query.text.parse import parse
from tests.support.builder.world import World, same
from tests.support.effort import examples, is_long

col = lw.col


@dataclass(frozen=True)
class Both:
    """The same expression in Python and in SQL."""

    value: Value
    text: str


def binary(symbol: str, build: Callable[[Any, Any], Value]) -> Callable[[Both, Both], Both]:
    return lambda a, b: Both(build(a.value, b.value), f"(({a.text}) {symbol} ({b.text}))")


def between(a: Both, b: Both) -> Both:
    return Both(a.value.between(b.value, 3), f"(({a.text}) BETWEEN ({b.text}) AND 3)")


def choice(a: Both, b: Both, c: Both) -> Both:
    return Both(a.value.ifelse(b.value, c.value), f"(CASE WHEN {a.text} THEN {b.text} ELSE {c.text} END)")


def ends(text: str) -> Both:
    written = text.replace("'", "''")
    return Both(col.note.concat(text).like("%" + text), f"((note || '{written}') LIKE '%{written}')")


NUMBERS = st.recursive(
    st.one_of(
        st.sampled_from(["age", "cost", "share"]).map(lambda name: Both(col[name], name)),
        st.integers(-5, 5).map(lambda n: Both(lw.literal(n), f"({n})")),
    ),
    lambda inner: st.one_of(
        *(
            st.builds(binary(symbol, build), inner, inner)
            for symbol, build in (
                ("+", lambda a, b: a + b),
                ("-", lambda a, b: a - b),
                ("*", lambda a, b: a * b),
                ("/", lambda a, b: a / b),
                ("%", lambda a, b: a % b),
            )
        ),
        inner.map(lambda a: Both(-a.value, f"(-({a.text}))")),
        inner.map(lambda a: Both(a.value.abs(), f"ABS({a.text})")),
    ),
    max_leaves=6,
)
CONDITIONS = st.recursive(
    st.one_of(
        st.just(Both(col.member, "member")),
        st.builds(binary("=", lambda a, b: a == b), NUMBERS, NUMBERS),
        st.builds(binary("<", lambda a, b: a < b), NUMBERS, NUMBERS),
        st.builds(binary(">=", lambda a, b: a >= b), NUMBERS, NUMBERS),
        NUMBERS.map(lambda a: Both(a.value.isnull(), f"(({a.text}) IS NULL)")),
        NUMBERS.map(lambda a: Both(a.value.isin([1, -2]), f"(({a.text}) IN (1, (-2)))")),
        st.builds(between, NUMBERS, NUMBERS),
        st.sampled_from(["a", "it's"]).map(ends),
    ),
    lambda inner: st.one_of(
        st.builds(binary("AND", lambda a, b: a & b), inner, inner),
        st.builds(binary("OR", lambda a, b: a | b), inner, inner),
        st.builds(binary("=", lambda a, b: a == b), inner, inner),
        inner.map(lambda a: Both(~a.value, f"(NOT ({a.text}))")),
        st.builds(choice, inner, inner, inner),
    ),
    max_leaves=6,
)


def bare(text: str) -> exp.Expression:
    """Return the syntax of an expression without its parentheses and quotes."""
    tree = parse(f"SELECT {text} AS x FROM visits").select
    for paren in list(tree.find_all(exp.Paren)):
        paren.replace(paren.this)
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", False)
    node: exp.Expression = tree.expressions[0].this
    return node


@examples(100, 3_000)
@given(st.one_of(NUMBERS, CONDITIONS))
def test_few_parentheses_mean_as_much_as_all(both: Both) -> None:
    assert bare(nodes.sql(both.value.node)) == bare(both.text)


def test_a_wrong_precedence_is_noticed() -> None:
    value = col.age - (col.age - 1)
    assert bare(nodes.sql(value.node)) == bare("(age) - ((age) - (1))")
    assert bare(nodes.sql(value.node)) != bare("age - age - 1")


@dataclass(frozen=True)
class Chain:
    """A table expression, and the SQL of the same steps, each a subquery of the one before."""

    table: Table[lw.Answer]
    text: str
    columns: tuple[str, ...]

    def then(
        self, table: Table[lw.Answer], shown: str, rest: str = "", columns: tuple[str, ...] | None = None
    ) -> "Chain":
        kept = self.columns if columns is None else columns
        return Chain(table, f"(SELECT {shown} FROM {self.text} AS q {rest})", kept)


COLUMNS = ("person", "age", "cost", "share", "member", "note", "plan")


@st.composite
def chains(draw: st.DrawFn, world: World) -> Chain:
    chain = Chain(world.table("visits").select(*COLUMNS), f"(SELECT {', '.join(COLUMNS)} FROM visits)", COLUMNS)
    for number in range(draw(st.integers(0, 5))):
        verb = draw(
            st.sampled_from(["filter", "mutate", "replace", "drop", "rename", "distinct", "semi", "union", "first"])
        )
        extra = [name for name in chain.columns if name.startswith("x")]
        table = chain.table
        match verb:
            case "filter":
                both = draw(CONDITIONS)
                chain = chain.then(table.filter(both.value), "*", f"WHERE {both.text}")
            case "mutate":
                both, name = draw(NUMBERS), f"x{number}"
                columns = (*chain.columns, name)
                chain = chain.then(table.mutate(both.value.name(name)), f"*, {both.text} AS {name}", "", columns)
            case "replace":
                both = draw(NUMBERS)
                others = tuple(name for name in chain.columns if name != "age")
                shown = f"{', '.join(others)}, {both.text} AS age"
                chain = chain.then(table.mutate(age=both.value), shown, "", (*others, "age"))
            case "drop" if extra:
                others = tuple(name for name in chain.columns if name != extra[0])
                chain = chain.then(table.drop(extra[0]), ", ".join(others), "", others)
            case "rename" if extra:
                new = tuple("x_" + name if name == extra[0] else name for name in chain.columns)
                shown = ", ".join(f"{a} AS {b}" for a, b in zip(chain.columns, new, strict=True))
                chain = chain.then(table.rename({"x_" + extra[0]: extra[0]}), shown, "", new)
            case "distinct":
                chain = chain.then(table.distinct(), "DISTINCT *")
            case "semi":
                codes = world.table("codes")
                kept = table.semi_join(codes, "plan")
                chain = chain.then(kept, "*", "SEMI JOIN codes USING (plan)")
            case "union" if number < 2:
                again = table.filter(col.member)
                shown = ", ".join(chain.columns)
                text = (
                    f"(SELECT {shown} FROM {chain.text} UNION ALL SELECT {shown} FROM {chain.text} AS q WHERE member)"
                )
                chain = Chain(table.union(again), text, chain.columns)
            case "first":
                first = lw.row_number().over(group_by="person", order_by=lw.desc("age")) == 1
                text = "QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY age DESC) = 1"
                chain = chain.then(table.filter(first), "*", text)
    return chain


KEYS: list[tuple[Any, str]] = [
    (["plan"], "GROUP BY plan"),
    (["plan", "member"], "GROUP BY plan, member"),
    ([lw.rollup("plan", "member")], "GROUP BY ROLLUP (plan, member)"),
    ([], ""),
]


def test_random_chains(world: World) -> None:
    answered = []

    @examples(60, 1_500)
    @given(st.data())
    def law(data: st.DataObject) -> None:
        text, answer = data.draw(questions(world))
        first, second = outcome(world, text), outcome(world, answer)
        if isinstance(first, Plan) and isinstance(second, Plan):
            answered.append(text)
            assert not same(first, second), f"{answer}\n{text}"
        else:
            assert first == second, f"{answer}\n{text}"

    law()
    assert len(answered) > (50 if is_long() else 20)  # the law would be empty if most were refused


@st.composite
def questions(draw: st.DrawFn, world: World) -> tuple[str, Table[lw.Answer]]:
    chain = draw(chains(world))
    keys, clause = draw(st.sampled_from(KEYS))
    where = draw(st.none() | CONDITIONS)
    names = [n for key in keys for n in (["plan", "member"] if isinstance(key, Groupings) else [key])]
    measured = lw.count(where=where.value) if where else lw.count()
    answer = chain.table.group_by(*keys).agg(n=measured, m=lw.mean("cost"), u=lw.nunique("person"))
    count = f"COUNT(*) FILTER (WHERE {where.text})" if where else "COUNT(*)"
    shown = [*names, f"{count} AS n", "AVG(cost) AS m", "COUNT(DISTINCT person) AS u"]
    text = f"SELECT {', '.join(shown)} FROM {chain.text} AS q {clause}"
    if draw(st.booleans()):
        answer = answer.mutate(r=col.m / col.n).filter(col.n > 3).order_by(lw.desc("m"), *names).limit(7)
        shown.append("AVG(cost) / n AS r")
        order = ", ".join(["AVG(cost) DESC", *names])
        text = f"SELECT {', '.join(shown)} FROM {chain.text} AS q {clause} HAVING n > 3 ORDER BY {order} LIMIT 7"
    return text, answer


def outcome(world: World, question: str | Table[lw.Answer]) -> Plan | tuple[str, str]:
    """Return a plan, or the reason and remedy of a refusal."""
    try:
        return world.plan(question)
    except lw.QueryRefused as refused:
        return refused.reason, refused.remedy
