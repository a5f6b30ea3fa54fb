"""Tables to begin with, options beside an expression, and what is no question."""

import builtins
from collections.abc import Callable
from typing import Any

import ibis
import pytest
from ibis import _
from tests.support.effort import only
from tests.support.query.ibis_world import World, same
from tests.support.refusals import refused_as

import lapwing as lw
from lapwing.tables import ibis_questions
from lapwing.tables.ibis_questions import text_of, texts_of


@pytest.mark.long
def test_a_table_has_the_declared_columns(world: World) -> None:
    visits = world.tables.visits
    assert list(visits.columns)[:2] == ["person", "plan"]
    types = {name: str(kind) for name, kind in visits.schema().items()}
    assert (types["person"], types["member"], types["share"]) == ("unknown", "boolean", "float64")
    assert (types["cost"], types["born"], types["seen"]) == ("decimal(38, 2)", "date", "timestamp")
    for name in world.tables:
        assert world.tables.table(name).get_name() == name


def test_names_of_tables(world: World) -> None:
    assert {"visits", "codes"} <= set(dir(world.tables))
    assert world.tables.visits.equals(world.tables.table("VISITS"))
    assert world.tables["visits"].name == "visits"  # the description
    assert not hasattr(world.tables, "visit")
    with refused_as("unknown_table", saying="'visit'.*'visits'"):
        world.tables.table("visit")


def test_without_ibis(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "ibis":
            raise ModuleNotFoundError("No module named 'ibis'", name="ibis")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(lw.InvalidParameter, match=r"pip install 'lapwing-dp\[ibis\]'"):
        world.tables.table("visits")
    assert text_of("SELECT 1") == "SELECT 1"


# ---- options ---------------------------------------------------------------------------------------------------------

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda t: t.group_by("plan").agg(n=_.count()),
    "around": lambda t: t.group_by("plan").agg(n=_.count()).filter(_.n > 3),
    "with": lambda t: ibis.union(t.filter(_.age > 3), t.filter(_.member)).group_by("plan").agg(n=_.count()),
}
SQL = {
    "plain": "SELECT {} plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "around": "SELECT {} plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > 3",
    "with": "SELECT {} plan, COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 3 UNION ALL "
    "SELECT * FROM visits WHERE member) GROUP BY plan",
}


@pytest.mark.parametrize("kind", only([0], QUESTIONS))
@pytest.mark.parametrize(
    ("options", "said"),
    only(
        [0],
        [
            ({"max_rows_contributed": 2}, "max_rows_contributed = 2"),
            ({"max_groups_contributed": 1}, "max_groups_contributed = 1"),
            (
                {"group_selection_strategy": "PUBLIC_GROUPS", "max_rows_contributed": 1},
                "group_selection_strategy = PUBLIC_GROUPS, max_rows_contributed = 1",
            ),
        ],
        many=True,
    ),
)
def test_options_are_those_of_sql(world: World, kind: str, options: dict[str, Any], said: str) -> None:
    question = QUESTIONS[kind](world.tables.visits)
    text = SQL[kind].format(f"WITH DIFFERENTIAL_PRIVACY OPTIONS ({said})")
    assert not same(world.plan(text), world.plan(question, **options)), text_of(question, **options)
    assert same(world.plan(question), world.plan(question, **options))


def test_an_option_in_a_wrong_place_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    question = world.tables.visits.group_by("person").agg(n=_.count()).filter(_.n > 1).count()
    last = text_of(question).rindex("SELECT") + len("SELECT")
    monkeypatch.setattr(ibis_questions, "_select_of_the_whole", lambda _text: last)
    with refused_as("nothing_released"):
        world.plan(question, max_rows_contributed=2)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_row_contributed": 2}, "Did you mean 'max_rows_contributed'"),
        ({"epsilon": 2}, "no option 'epsilon'"),
        ({"max_rows_contributed": "2) AS x"}, "must be a finite number"),
        ({"max_rows_contributed": True}, "must be a finite number"),
        ({"group_selection_strategy": "a = 1"}, "allowed: LAPLACE_THRESHOLD, PUBLIC_GROUPS"),
        ({"group_selection_strategy": "OTHER"}, "allowed: LAPLACE_THRESHOLD, PUBLIC_GROUPS"),
    ],
)
def test_options_that_are_refused(world: World, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(lw.InvalidParameter, match=reason):
        text_of(world.tables.visits.count(), **options)


def test_a_text_says_its_options_itself() -> None:
    with pytest.raises(lw.InvalidParameter, match="which says max_rows_contributed itself"):
        text_of("SELECT COUNT(*) FROM visits", max_rows_contributed=2)


# ---- what is no question ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [5, None, b"SELECT 1", object(), _.count(), ibis])
def test_what_is_no_question(given: Any) -> None:
    with pytest.raises(lw.InvalidParameter, match="A question is a text or an Ibis expression, not"):
        text_of(given)


def test_what_ibis_cannot_write(world: World) -> None:
    visits = world.tables.visits
    with pytest.raises(lw.InvalidParameter, match="Ibis cannot write this expression as SQL"):
        text_of(visits.agg(c=visits.age.corr(visits.cost)))


def test_batches() -> None:
    pair = ("SELECT COUNT(*) FROM visits WHERE age > ?", (3,))
    assert texts_of(["SELECT 1", pair]) == ["SELECT 1", pair]
    with pytest.raises(lw.InvalidParameter, match="a list of questions, and this is a text"):
        texts_of("SELECT 1")
    with pytest.raises(lw.InvalidParameter, match="holds no question"):
        texts_of([])
