"""Nothing that a user of the builder gives as a name or a value becomes anything else in the question."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

import lapwing as lw
from lapwing.builder.relations import Named
from lapwing.builder.table import Table
from lapwing.builder.values import Value
from lapwing.query.bind import bind
from lapwing.query.text.parse import parse
from tests.builder.test_literals import TEXTS
from tests.support.builder.world import World, same

ATTACKS = [
    "'", '"', "' OR '1' = '1", "x' UNION SELECT person FROM visits --", '" FROM visits --', 'n", person AS "who',
    "; DROP TABLE visits", "/*", "*/", "--", "$$", "$x", "?", ":x", "\\", "\\'", "a\nb", "é\u2028ü", "{{x}}", "%s",
    "E'", "=> 1", "() OVER ()", "NULL", "*",
]  # fmt: skip


def table_of(world: World, *names: str) -> Table[lw.Answer]:
    """Return a table with such columns, as a hostile catalog might have."""
    table = world.table("visits")
    return table._then(Named(name=names[0], names=names))


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_text_is_only_compared(world: World, attack: str) -> None:
    question = world.table("visits").filter(lw.col.note == attack).agg(n=lw.count())
    text = "SELECT COUNT(*) AS n FROM visits WHERE note = ?"
    assert not same(bind(text, world.catalog, world.facts, [attack]), world.plan(question))
    several = world.table("visits").filter(lw.col.note.isin([attack, "b"])).agg(n=lw.count())
    text = "SELECT COUNT(*) AS n FROM visits WHERE note IN (?, ?)"
    assert not same(bind(text, world.catalog, world.facts, [attack, "b"]), world.plan(several))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_alias_is_only_a_name(world: World, attack: str) -> None:
    plain = world.plan("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > 3 ORDER BY COUNT(*)")
    question = (
        world.table("visits").group_by("plan").agg(lw.count().name(attack)).filter(lw.col[attack] > 3).order_by(attack)
    )
    found = world.plan(question)
    assert same(plain, found) == ["outputs"]
    assert [output.name for output in found.outputs] == ["plan", attack]
    inner = world.table("visits").mutate(**{attack: lw.col.age + 1}).agg(s=lw.sum(attack))
    assert not same(world.plan("SELECT SUM(age + 1) AS s FROM visits"), world.plan(inner))
    renamed = world.table("visits").rename({attack: "age"}).group_by("person").agg(lw.max(attack).name(attack))
    assert not same(
        world.plan("SELECT SUM(m) AS s FROM (SELECT person, MAX(age) AS m FROM visits GROUP BY person)"),
        world.plan(renamed.agg(s=lw.sum(attack))),
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_name_that_nobody_has_is_refused(world: World, attack: str) -> None:
    for wrong in (
        lambda: world.table(attack),
        lambda: world.table("visits").filter(lw.col[attack] > 1),
        lambda: world.table("visits").group_by(attack),
        lambda: world.table("visits").select(attack),
        lambda: world.table("visits").order_by(attack),
        lambda: world.table("visits").agg(n=lw.sum(attack)),
        lambda: world.table("visits").join(world.table("codes"), attack),
        lambda: world.table("visits")[attack],
        lambda: world.table("visits").drop(attack),
        lambda: world.table("visits").rename(n=attack),
    ):
        with pytest.raises(lw.QueryRefused):
            wrong()


WORDS: list[Callable[[str], Any]] = [
    lambda word: lw.col.a.cast(word),
    lambda word: lw.col.a.truncate(word),
    lambda word: lw.col.a.delta(lw.col.b, word),
    lambda word: lw.col.a.var(how=word),  # type: ignore[arg-type]
    lambda word: lw.col.a.cov("b", how=word),  # type: ignore[arg-type]
    lambda word: lw.sum("a", contribution_bounds_per_group=word),  # type: ignore[arg-type]
    lambda word: lw.sum("a", epsilon=word),  # type: ignore[arg-type]
    lambda word: lw.sum("a", **{word: 1}),  # type: ignore[arg-type]
    lambda word: lw.col.a.round(word),  # type: ignore[arg-type]
    lambda word: lw.col.a.left(word),  # type: ignore[arg-type]
    lambda word: lw.col.a.lag(word),  # type: ignore[arg-type]
    lambda word: lw.interval(**{word: 1}),
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("place", range(len(WORDS)))
def test_a_word_is_one_of_a_few(place: int, attack: str) -> None:
    try:
        value = WORDS[place](attack)
    except (lw.InvalidParameter, TypeError):
        return
    assert repr(value) == f"ROUND(\"a\", '{attack.replace(chr(39), chr(39) * 2)}')"  # a text, which the binder refuses


@pytest.mark.parametrize("attack", ATTACKS)
def test_options_and_limits_are_numbers(world: World, attack: str) -> None:
    answer = world.table("visits").group_by("plan").agg(n=lw.count())
    for wrong in (
        lambda: answer.options(epsilon=attack),
        lambda: answer.options(group_selection_strategy=attack),
        lambda: answer.options(**{attack: 1}),
        lambda: answer.limit(attack),  # type: ignore[arg-type]
        lambda: answer.limit(1, offset=attack),  # type: ignore[arg-type]
        lambda: answer.join(answer, "plan", how=attack),  # type: ignore[arg-type]
    ):
        with pytest.raises(lw.InvalidParameter):
            wrong()  # type: ignore[no-untyped-call]
    named = answer.options(privacy_unit_column=attack)
    with pytest.raises(lw.QueryRefused):
        world.plan(named)


@given(st.lists(TEXTS.filter(bool), min_size=2, max_size=4, unique_by=str.casefold), TEXTS)
def test_any_catalog_any_value(world: World, names: list[str], value: str) -> None:
    """The syntax of a question about odd names is that about plain ones."""

    def question(names: list[str], value: str) -> Table[lw.Answer]:
        table = table_of(world, *names)
        first, second = names[0], names[1]
        joined = table.mutate((lw.col[first] + 1).name("new")).join(table, [(first, second)], rname="{name} r")
        return (
            joined.filter(lw.col[second] == value)
            .group_by(second)
            .agg(lw.sum(first).name(first))
            .order_by(lw.desc(first))
        )

    if any(name.casefold().endswith(" r") or name.casefold() == "new" for name in names):
        return
    plain = [f"c{place}" for place in range(len(names))]
    odd, even = (parse(question(*given).to_sql()).select for given in ((names, value), (plain, "v")))
    found = [(type(a), type(b)) for a, b in zip(odd.walk(), even.walk(), strict=True)]
    assert all(one is other for one, other in found)
    texts = {node.this for node in odd.find_all(exp.Literal) if node.is_string}
    assert texts == {value}
    known = {*names, *(f"{name} r" for name in names), "new", "step1", "step2", "step3"}
    known |= {f"{names[0]}_right"}
    assert {node.this for node in odd.find_all(exp.Identifier)} <= known


def test_pieces_of_sql_hold_no_text_of_a_user() -> None:
    """Every piece of a formula is one of this package's own words: nothing of `secret` is in any."""
    secret = "zq"
    value = lw.col[secret].upper().concat(secret).isin([secret]) & (lw.col[secret].like(secret))
    pending: list[Any] = [value.node]
    while pending:
        for piece in getattr(pending.pop(), "pieces", ()):
            if isinstance(piece, str):
                assert secret not in piece
            else:
                pending.append(piece.node)
    assert isinstance(value, Value)
