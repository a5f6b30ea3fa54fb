"""How many pairs of rows of a unit there are in an order: as many as are claimed. Old answers stay free."""

import random
from dataclasses import replace
from itertools import product
from math import comb
from pathlib import Path

import pytest

from lapwing.catalog.toml import load
from lapwing.opening import open_session
from lapwing.query.relations import ordered_rows
from tests.support.effort import one_in
from tests.support.query.tightness import Data, Form, Neighbours, Setting, club, placed

JOIN = "FROM visits a JOIN visits b ON a.guest = b.guest"
THREE = f"{JOIN} JOIN visits c ON b.guest = c.guest"
ROWS = 4
SETTING = Setting(measure="pure", neighbouring="add_remove")
BOUNDS = {
    f"{JOIN} WHERE a.place < b.place": comb(ROWS, 2),
    f"{JOIN} WHERE b.place < a.place AND a.x > 3": comb(ROWS, 2),
    f"{JOIN} AND a.note < b.note": comb(ROWS, 2),
    f"{JOIN} WHERE a.x + a.y > b.x + b.y": comb(ROWS, 2),
    f"{JOIN} WHERE a.place <> b.place": ROWS * (ROWS - 1),
    f"{JOIN} WHERE a.place <= b.place": ROWS**2,
    f"{JOIN} WHERE a.x < b.y": ROWS**2,
    f"{JOIN} WHERE a.place < b.place OR a.x < b.x": ROWS**2,
    f"{JOIN} WHERE a.x < b.x + 1": ROWS**2,
    f"{THREE} WHERE a.place < b.place AND b.place < c.place": comb(ROWS, 3),
    f"{THREE} WHERE a.place < b.place AND b.x < c.x": comb(ROWS, 2) * ROWS,
    f"{THREE} WHERE a.place < b.place AND a.place < c.place": comb(ROWS, 2) * ROWS,
    f"{THREE} WHERE a.place < b.place": comb(ROWS, 2) * ROWS,
    f"{JOIN} JOIN orders ON buyer = b.guest WHERE a.place < b.place": comb(ROWS, 2) * 3,
    "FROM visits a LEFT JOIN visits b ON a.guest = b.guest AND a.place < b.place": ROWS**2,
    "FROM visits a JOIN orders b ON a.guest = b.buyer WHERE a.place < b.shop": ROWS * 3,
    f"FROM (SELECT a.guest, b.x {JOIN} WHERE a.place < b.place) WHERE x > 3": comb(ROWS, 2),
}
"""What queries are of, and the most rows of a unit, of which `visits` has four."""


def test_conditions_on_pairs_leave_so_many_rows(tmp_path: Path) -> None:
    with club(tmp_path, SETTING, ROWS) as here:
        for text, most in BOUNDS.items():
            question = here.priced(Form("", f"SELECT COUNT(*) {text}")).question
            assert question.selection.rows_per_unit == most, text


def rows_of(chance: random.Random) -> Neighbours:
    visits = [
        {
            "plan": "a",
            "note": chance.choice("pqr"),
            "place": chance.choice((1, 2, 5, 10, None)),
            "x": chance.choice((0, 5, 10)),
            "y": chance.choice((-4, 1, 6)),
            "z": 2,
        }
        for _ in range(ROWS)
    ]
    orders = [{"shop": 1, "kind": "a", "paid": 0}] * 3
    gone: Data = {"people": [{"home": 1, "age": 5}], "visits": visits, "orders": orders}
    return Neighbours(gone=gone, comes={}, others={})


def most_found(folder: Path, text: str) -> int:
    """Return how far a count moves by one unit at most, of random ones and one with all rows different."""
    folder.mkdir()
    with club(folder, SETTING, ROWS) as here:
        question = here.priced(Form("", f"SELECT COUNT(*) {text}")).question
        found = 0
        for seed in range(12):
            neighbours = rows_of(random.Random(seed))
            if seed < 2:
                for place, row in enumerate(neighbours.gone["visits"]):
                    row |= {"place": place * (1 - 2 * seed), "note": "pqrs"[place], "x": (10, 10, 10, 10)[place]}
            tables = placed(neighbours.gone, 1)
            counted = here.exact(question, {name: tables.get(name, []) for name in here_tables()}).cells[()]
            found = max(found, int(counted[0]))
        return found


def here_tables() -> list[str]:
    return ["people", "visits", "orders", "items", "shops"]


ATTAINED = [text for text, most in BOUNDS.items() if most in (comb(ROWS, 2), comb(ROWS, 3), ROWS * (ROWS - 1))]


@pytest.mark.parametrize("text", one_in(5, ATTAINED))
def test_no_unit_has_more_rows_than_that_and_some_has_as_many(text: str, tmp_path: Path) -> None:
    if "x +" in text or "a.x > 3" in text:
        assert most_found(tmp_path / "a", text) <= BOUNDS[text]
    else:
        assert most_found(tmp_path / "a", text) == BOUNDS[text]


def test_the_claim_by_brute_force() -> None:
    """Of all values of up to five rows: tuples in an order are at most the sets of rows."""
    for rows in range(1, 5):
        for values in product(range(rows), repeat=rows):
            pairs = sum(one < other for one, other in product(values, repeat=2))
            triples = sum(a < b < c for a, b, c in product(values, repeat=3))
            assert pairs <= comb(rows, 2)
            assert triples <= comb(rows, 3)
            assert sum(one != other for one, other in product(values, repeat=2)) <= rows * (rows - 1)


def test_a_bound_that_takes_equal_rows_for_one_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twins: a bound of one pair fewer, and <= taken for <."""
    text = f"{JOIN} WHERE a.place < b.place"
    monkeypatch.setattr(ordered_rows, "comb", lambda rows, of: comb(rows, of) - 1)
    with club(tmp_path, SETTING, ROWS) as here:
        assert here.priced(Form("", f"SELECT COUNT(*) {text}")).question.selection.rows_per_unit < comb(ROWS, 2)
    assert most_found(tmp_path / "one", text) > comb(ROWS, 2) - 1
    monkeypatch.setattr(ordered_rows, "comb", comb)
    for name, order in (("less_equal", (0, 1)), ("greater_equal", (1, 0))):
        monkeypatch.setitem(ordered_rows._LESS, name, order)
    text = text.replace("<", "<=")
    with club(tmp_path, SETTING, ROWS) as here:
        most = here.priced(Form("", f"SELECT COUNT(*) {text}")).question.selection.rows_per_unit
    assert most_found(tmp_path / "equal", text) > most


CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:visits.db"
[budget]
epsilon = 10
measure = "pure"
[tables.visits]
source = "visits.csv"
privacy_unit = "guest"
max_rows_per_unit = 3
[tables.visits.columns]
guest = { type = "integer" }
place = { type = "integer" }
"""


def test_what_was_bought_with_more_noise_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is bought now has less noise, under a name of its own."""
    (tmp_path / "visits.csv").write_text("guest,place\n1,1\n1,2\n2,1\n")
    (tmp_path / "catalog.toml").write_text(CATALOG)
    catalog = load(tmp_path / "catalog.toml")
    text = f"SELECT COUNT(*) AS n {JOIN} WHERE a.place < b.place"
    now = ordered_rows.most_tuples
    with open_session(catalog) as session:
        monkeypatch.setattr(ordered_rows, "most_tuples", lambda _: None)
        before = session.sql(text, epsilon=1)
        monkeypatch.setattr(ordered_rows, "most_tuples", now)
        again = session.sql(text, epsilon=1)
        assert again.stored
        assert again.rows() == before.rows()
        assert again.interval() == before.interval()
        assert session.budget().spent.amount == 1
        sharper = session.sql(text, epsilon=2)
        assert not sharper.stored
        assert session.sql(text, epsilon=2).stored
    with open_session(catalog) as session:
        fresh = session.sql(text.replace("AS n", "AS m").replace("a.place < b.place", "a.place > b.place"), epsilon=1)
        assert str(before.mechanisms) != str(fresh.mechanisms)


def test_a_relation_is_the_same_but_for_its_rows(tmp_path: Path) -> None:
    with club(tmp_path, SETTING, ROWS) as here:
        selection = here.priced(Form("", f"SELECT COUNT(*) {JOIN} WHERE a.place < b.place")).question.selection
        before = ordered_rows.with_all_pairs(selection)
        assert str(before) == str(selection)
        assert (before.rows_per_unit, selection.rows_per_unit) == (ROWS**2, comb(ROWS, 2))
        assert ordered_rows.told_apart(before) == selection
        assert replace(selection, where=None).rows_per_unit == ROWS**2
