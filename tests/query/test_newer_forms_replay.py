"""Rows of neighbours by named lists, EXISTS over public rows, IS TRUE and LATERAL: none moves further than is stated.

Each form is text that the stages before binding write in other words. So each is replayed, and each replay finds a
bound that is planted away. That the words mean the same is what `test_differential` asks, in families of their own.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.relations.relation import ProtectedRows
from lapwing.query.relations.set_operations import Union
from tests.support.effort import only
from tests.support.query.fuzzing import Case, Place, answered, ask_some, found_with, generous
from tests.support.query.neighbours import catalog
from tests.support.query.questions import NUMBER, TEXT, VISITS, Grower, Rows
from tests.support.query.worlds import VISITS as GROUND

SHOWN: Final = ", ".join(f"v.{name}" for name in VISITS)


LISTS: Final = (
    "VALUES ('a', 2), ('b', 30), ('zz', 4), (NULL, 9)",
    "VALUES ('a', 1), ('a', 2), ('b', 3)",
    "SELECT tier, COUNT(*) FROM codes GROUP BY tier",
    "SELECT plan, factor FROM codes",
)


def named_list(chance: random.Random, *, with_unit: bool) -> Rows:
    """Return visits beside rows of f (word, k), whose columns ON may name without f."""
    on = chance.choice(("v.plan = word", "word = v.plan", "v.plan = f.word", "v.age > k", "v.pay <= f.k"))
    text = f"(SELECT v.person, {SHOWN}, f.word, f.k FROM visits v JOIN f ON {on})"
    return Rows(text, {**VISITS, "word": TEXT, "k": NUMBER}, "person")


def existence(chance: random.Random, *, with_unit: bool) -> Rows:
    """Return visits for which there is some public row, or none."""
    sign, denied = chance.choice(("<", "<=", ">", ">=")), chance.choice(("", "NOT "))
    kept = chance.choice(("", " AND c.tier = 'gold'", " AND c.factor > 1000"))
    compared = chance.choice((f"v.age {sign} c.factor", f"c.factor {sign} v.pay", "c.plan = v.plan"))
    where = f"{denied}EXISTS (SELECT 1 FROM codes c WHERE {compared}{kept})"
    return Rows(f"(SELECT v.person, {SHOWN} FROM visits v WHERE {where})", dict(VISITS), "person")


def truth(chance: random.Random, *, with_unit: bool) -> Rows:
    """Return visits for which a condition is true, or is not false, and whether another one is."""
    conditions = ("v.age > 40", "v.pay <= 3", "v.member", "v.plan = 'a'", "v.note LIKE '%x%'", "v.age > v.score")
    one, other = (f"({chance.choice(conditions)}) IS {chance.choice(WORDS)}" for _ in range(2))
    text = f"(SELECT v.person, {SHOWN}, CASE WHEN {other} THEN 1 ELSE 0 END AS k FROM visits v WHERE {one})"
    return Rows(text, {**VISITS, "k": NUMBER}, "person")


def copies(chance: random.Random, *, with_unit: bool) -> Rows:
    """Return visits with what LATERAL lists of each, in as many copies."""
    rows = chance.sample(("('x', v.age)", "('y', v.pay)", "('z', v.age - 3)", "('x', 7)"), chance.choice((1, 2, 3)))
    listed = f"{chance.choice(('CROSS JOIN', 'LEFT JOIN'))} LATERAL (VALUES {', '.join(rows)}) AS f (word, k)"
    always = " ON TRUE" if listed.startswith("LEFT") else ""
    text = f"(SELECT v.person, {SHOWN}, f.word, f.k FROM visits v {listed}{always})"
    return Rows(text, {**VISITS, "word": TEXT, "k": NUMBER}, "person")


WORDS: Final = ("TRUE", "NOT TRUE", "FALSE", "NOT FALSE")
FORMS: Final[dict[str, Callable[..., Rows]]] = {
    "WITH f": named_list,
    "EXISTS": existence,
    "IS ": truth,
    "LATERAL": copies,
}


FIRST: Final = {"WITH f": 17, "EXISTS": 3, "IS ": 9, "LATERAL": 17}
"""The number of a question that shows what is planted, so that a twin takes little time."""


def grown(form: str) -> Callable[[int, str], tuple[str, dict[str, int | str]]]:
    """Return what makes the question of a number that begins with a form."""

    def grow(seed: int, _kind: str) -> tuple[str, dict[str, int | str]]:
        chance = random.Random(f"{form} {seed}")
        grower = Grower(chance, begin=FORMS[form])
        text = grower.question()
        clause = f"WITH f (word, k) AS ({chance.choice(LISTS)}) " if form == "WITH f" else ""
        return clause + text, grower.values

    return grow


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Place]]:
    folder = tmp_path_factory.mktemp("neighbours")
    kinds = (("add_remove", 2), ("replace_one", 3))
    catalogs = {kind: generous(catalog(folder, rows=rows, neighbouring=kind)) for kind, rows in kinds}
    facts = PublicData(catalogs["add_remove"])
    yield {
        form: Place(
            catalogs=catalogs, facts=facts, ground=GROUND, grow=grown(form), worlds={}, unit_by_unit=3
        ).elsewhere(0)
        for form in FORMS
    }
    facts.close()


@pytest.mark.parametrize("form", only([1], FORMS))
def test_neighbours_move_a_few_no_further_than_stated(form: str, places: dict[str, Place], tmp_path: Path) -> None:
    ask_some((Case.of(number, places[form]) for number in range(2)), places[form], tmp_path, share=0.3)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_neighbours_move_many_no_further_than_stated(form: str, places: dict[str, Place], tmp_path: Path) -> None:
    ask_some((Case.of(number, places[form]) for number in range(250)), places[form], tmp_path, share=0.3)
    assert answered([form], (Case.of(seed, places[form]) for seed in range(60)), places[form])[form] > 20


@pytest.mark.parametrize("form", FORMS)
def test_twin_rows_of_a_unit_that_are_not_counted_are_found(
    form: str, places: dict[str, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the rows of a table are one for each person."""
    bug = (FIRST[form], ProtectedRows, "rows_per_unit", property(lambda _: 1))
    assert found_with(bug, places[form], monkeypatch) is not None


def test_twin_copies_for_a_list_that_are_not_counted_are_found(
    places: dict[str, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a row that meets three rows of a named list is one row of its unit."""
    bug = (18, Union, "rows_within", lambda node, _: node.parts[0].source.rows_per_unit)
    assert found_with(bug, places["WITH f"], monkeypatch) is not None
