"""Questions across linked tables, replayed through sessions: all that an analyst sees of neighbours is the same.

Several questions are replayed on each pair of data sets (`shop`), answered or refused; one that names private keys is
not, as their noise is not added by what is recorded: those are for `test_linked_fuzz`. Each planted bug is found by one
question.
"""

import random
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from tests.support.effort import is_long, numbers, one_in
from tests.support.query import linked_meetings, linked_questions, linked_stalls, shop
from tests.support.query.fuzzing import CASES
from tests.support.query.linked_bugs import BUGS, MEETING
from tests.support.replay import Data, Row, compare, with_budget

PRICE = {"epsilon": 1}
PAIRS, MEETINGS, TOGETHER = numbers(4, CASES // 100), numbers(2, CASES // 200), (4, 8)
"""The numbers of pairs of data sets, and of those where units meet; how many questions are replayed on each, in the
short run and in the long one."""
MEASURES = ("gdp", "pure", "zcdp")


def described(folder: Path, seed: int, of: ModuleType = shop) -> Catalog:
    """Return the catalog of a number: all ways to link, kinds of neighbours and measures take turns."""
    linked = ("by unit", "by key")[seed % 2]
    kind, measure = ("add_remove", "add_remove", "replace_one")[seed % 3], MEASURES[seed // 2 % 3]
    place = folder / f"{of.__name__} {linked} {kind} {measure}".replace(" ", "_")
    place.mkdir(exist_ok=True)
    return with_budget(of.catalog(place, linked=linked, neighbouring=kind, measure=measure), epsilon=Fraction(10_000))


def replayed(folder: Path, seed: int, of: ModuleType = shop, grow: ModuleType = linked_questions) -> list[str]:
    """Replay random questions on random neighbours, and return the violations."""
    catalog = described(folder, seed, of)
    linked, together = ("by unit", "by key")[seed % 2], TOGETHER[is_long()]
    one, other = of.neighbours(random.Random(seed), catalog)
    facts = PublicData(catalog)
    try:
        texts = [grow.grown(1000 * seed + place, linked) for place in range(2 * together)]
        questions = [text for text, values in texts if not values and not _has_private_keys(text, catalog, facts)]
    finally:
        facts.close()
    schemas = of.GROUND.schemas
    return compare(catalog, data(one, schemas), data(other, schemas), questions[:together], PRICE)


def _has_private_keys(text: str, catalog: Catalog, facts: PublicData) -> bool:
    try:
        return bool(bind(text, catalog, facts).question.private_keys)
    except QueryRefused:
        return False


def data(rows: Any, schemas: Mapping[str, pa.Schema] = shop.SCHEMAS) -> Data:
    return Data(rows=rows, schemas=schemas)


@pytest.mark.parametrize("seed", one_in(4, PAIRS))
def test_neighbours_look_the_same(folders: Path, seed: int) -> None:
    assert replayed(folders, seed) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", one_in(2, MEETINGS))
def test_neighbours_look_the_same_where_units_meet(folders: Path, seed: int) -> None:
    assert replayed(folders, seed, linked_stalls, linked_meetings) == []


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def customer(ck: int) -> Row:
    return {"who": ck, "ck": ck, "plan": "a", "age": 30, "member": True}


def order(ok: int, ock: int | None, **values: Any) -> Row:
    return {"ok": ok, "ock": ock, "day": date(2026, 1, 1 + ok % 2), "kind": "xyz"[ok % 3], "pay": Decimal(9)} | values


def item(iok: int) -> Row:
    return {"iok": iok, "iday": None, "tag": 0, "unit": "kg", "cost": 1e6}


CROWDED = {
    "customers": [customer(ck) for ck in (1, 2, 3)],
    "orders": [*(order(ok, 1, kind="x", pay=Decimal("9e9")) for ok in range(1, 4)), order(4, 2, kind="y"), order(5, 3)],
    "items": [item(iok) for iok in (1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5)],
    "calls": [],
}
"""One customer has as much as may be, of items too much."""
ORPHANS = {
    **CROWDED,
    "orders": [*(order(ok, 1) for ok in range(1, 40)), *(order(ok, 9, kind="y") for ok in range(40, 44))],
    "items": [],
}
"""And here so many orders that it depends on whose they are which are kept."""
LAST = "(SELECT ock, MAX(ok) AS m FROM orders GROUP BY ock)"
FOUND_BY = {
    "rows of the wrong unit": "SELECT COUNT(*) AS n FROM items",
    "orphans that are kept": "SELECT kind, day, COUNT(*) AS n FROM orders GROUP BY kind, day",
    "joins with other units": "SELECT COUNT(*) AS n FROM orders AS a LEFT JOIN orders AS b ON a.ock = b.ock",
    "semi-joins with other units": "SELECT COUNT(*) AS n FROM customers WHERE ck IN (SELECT ock FROM orders "
    "WHERE kind = 'x')",
    "a fan-out that is not bounded": "SELECT COUNT(*) AS n FROM orders AS a JOIN orders AS b ON a.ock = b.ock",
    "keys believed to be unique": "SELECT COUNT(*) AS n FROM orders AS a JOIN orders AS b ON a.ock = b.ock",
    "rows that match nothing told apart": "SELECT COUNT(*) AS n FROM orders AS b JOIN (SELECT o.ock FROM orders AS o "
    f"LEFT JOIN {LAST} AS c ON o.ock = c.ock AND o.ok = c.m) AS x ON x.ock = b.ock",
    "numbers that are not clamped": "SELECT SUM(pay) AS s FROM customers JOIN orders ON ock = ck",
    "units' sums that are not clamped": "SELECT SUM(pay, contribution_bounds_per_group => (0, 2)) AS s FROM orders, "
    "customers WHERE ock = ck",
}


def crowded(folder: Path, *questions: str, orphans: bool) -> list[str]:
    """Replay questions on neighbours of which one lacks a customer, and nobody's rows stay."""
    rows = ORPHANS if orphans else CROWDED
    other = shop.removed(rows, "ck", everywhere=not orphans)
    return compare(described(folder, 0), data(rows), data(other), questions, PRICE)


@pytest.mark.long
@pytest.mark.parametrize("orphans", one_in(2, [False, True]))
def test_neighbours_look_the_same_to_the_questions_that_show_bugs(folders: Path, orphans: bool) -> None:
    questions = dict.fromkeys(question for bug, question in FOUND_BY.items() if ("orphans" in bug) == orphans)
    assert crowded(folders, *questions, orphans=orphans) == []


@pytest.mark.parametrize("bug", one_in(9, BUGS))
def test_planted_bugs_are_found(bug: str, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BUGS[bug])
    violations = crowded(folders, FOUND_BY[bug], orphans="orphans" in bug)
    assert any("moved by" in violation for violation in violations)


SOCIABLE = {
    **CROWDED,
    "orders": [
        *(order(ok, 1, kind="x") for ok in (1, 2)),
        *(order(3, 1, kind="y"), order(4, 2, kind="x"), order(5, 3, kind="y")),
    ],
}
"""One customer meets the others, who do not meet each other."""
MET = (
    "SELECT a.kind, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM orders AS a JOIN orders AS b "
    "ON a.kind = b.kind AND a.ock <> b.ock GROUP BY a.kind"
)
MET_BY = {
    "a level that is one too high": MET.replace("GROUP BY a.kind", "").replace("a.kind, ", "", 1),
    "sums that are not truncated": MET,
    "groups that are not added up": MET,
}


def sociable(folder: Path, *questions: str) -> list[str]:
    other = shop.removed(SOCIABLE, "ck", everywhere=True)
    return compare(described(folder, 0), data(SOCIABLE), data(other), questions, PRICE)


@pytest.mark.long
def test_neighbours_look_the_same_to_the_questions_that_show_bugs_of_meetings(folders: Path) -> None:
    assert sociable(folders, *dict.fromkeys(MET_BY.values())) == []


@pytest.mark.long
@pytest.mark.parametrize("bug", one_in(3, MET_BY))
def test_planted_bugs_of_meetings_are_found(bug: str, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MEETING[bug])
    assert any("moved by" in violation for violation in sociable(folders, MET_BY[bug]))


@pytest.mark.long
def test_scores_of_a_choice_that_move_too_far_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A level is chosen by sums over all groups: planted, what a unit adds to several is not added up."""
    question = MET.replace("(0, 2)", "AUTO")
    sociable = {
        **SOCIABLE,
        "orders": [*SOCIABLE["orders"], *(order(10 + n, 2 + n % 2, kind="xy"[n % 2]) for n in range(12))],
    }
    other = shop.removed(sociable, "ck", everywhere=True)

    def found() -> list[str]:
        return compare(described(folders, 0), data(sociable), data(other), question, PRICE)

    assert found() == []
    monkeypatch.setattr(*MEETING["groups that are not added up"])
    assert any("scores moved by" in violation for violation in found())
