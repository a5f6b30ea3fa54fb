"""The guarantee of links: to remove a unit from the root is to remove its rows everywhere, and nothing else."""

import hashlib
from collections.abc import Hashable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog import Column, Link, Table
from tests.support.catalog import existing as model
from tests.support.catalog.existing import Data, Existing, Order, Row, bag, bounded, existing
from tests.support.effort import examples

KEY, DAY = Column(name="k", type="integer"), Column(name="day", type="integer")
ROOT = Table(
    name="root",
    source="r",
    privacy_unit="who",
    max_rows_per_unit=2,
    columns=(KEY, Column(name="who", type="integer"), Column(name="site", type="integer", values=(1, 2))),
    part="site",
)
CHILD = Table(
    name="child",
    source="c",
    max_rows_per_unit=3,
    columns=(KEY, DAY, Column(name="of", type="integer")),
    link=Link(parent=ROOT, on=(("of", "k"),)),
)
LEAF = Table(
    name="leaf",
    source="l",
    max_rows_per_unit=4,
    columns=(Column(name="of", type="integer"), DAY),
    link=Link(parent=CHILD, on=(("of", "k"), ("day", "day"))),
)
TABLES = (ROOT, CHILD, LEAF)
SMALL = st.integers(0, 3)
MAYBE = st.none() | SMALL


def digest(unit: Hashable, row: Row) -> str:
    """Order rows as an engine does: by a hash of the unit and of what is in the row."""
    return hashlib.sha256(repr((unit, sorted(row.items()))).encode()).hexdigest()


def rows(*, unique: bool) -> st.SearchStrategy[Data]:
    """Return data in which the keys of parents are unique, or need not be."""
    root = st.fixed_dictionaries({"k": MAYBE, "who": MAYBE, "site": MAYBE})
    child = st.fixed_dictionaries({"k": MAYBE, "day": MAYBE, "of": MAYBE})
    leaf = st.fixed_dictionaries({"of": MAYBE, "day": MAYBE, "n": SMALL})
    roots = st.lists(root, max_size=8, unique_by=(lambda row: row["k"]) if unique else None)
    children = st.lists(child, max_size=8, unique_by=(lambda row: (row["k"], row["day"])) if unique else None)
    return st.fixed_dictionaries({"root": roots, "child": children, "leaf": st.lists(leaf, max_size=10)})


def without(data: Data, unit: int) -> Data:
    """Remove a unit's rows from the root, and from nothing else."""
    return {**data, "root": [row for row in data["root"] if row["who"] != unit]}


def cascaded(data: Data, unit: int) -> Data:
    """Remove a unit's rows from all tables: also those that do not exist for questions."""
    keys = {row["k"] for row in data["root"] if row["who"] == unit} - {None}
    theirs = [row for row in data["child"] if row["of"] in keys]
    further = {(row["k"], row["day"]) for row in theirs if None not in (row["k"], row["day"])}
    return {
        **without(data, unit),
        "child": [row for row in data["child"] if row not in theirs],
        "leaf": [row for row in data["leaf"] if (row["of"], row["day"]) not in further],
    }


def others(found: Existing, unit: int) -> Existing:
    return [(whose, row) for whose, row in found if whose != unit]


@examples(50, 2000)
@given(rows(unique=True), SMALL)
def test_to_remove_a_unit_is_to_remove_its_rows_everywhere(data: Data, unit: int) -> None:
    for table in TABLES:
        left = bag(others(existing(table, data, digest), unit))
        assert bag(existing(table, without(data, unit), digest)) == left
        assert bag(existing(table, cascaded(data, unit), digest)) == left


@examples(50, 2000)
@given(rows(unique=False), SMALL)
def test_keys_that_are_not_unique_let_no_unit_touch_another(data: Data, unit: int) -> None:
    """What the linked tables say is then held fixed: only whether a unit is in the root is hidden."""
    for table in TABLES:
        assert bag(existing(table, without(data, unit), digest)) == bag(others(existing(table, data, digest), unit))


@given(rows(unique=False))
def test_no_unit_has_more_rows_than_its_bound(data: Data) -> None:
    for table in TABLES:
        found = [unit for unit, _ in existing(table, data, digest)]
        assert all(found.count(unit) <= table.max_rows_per_unit for unit in found)


def test_rows_that_do_not_exist_have_no_children() -> None:
    data: Data = {
        "root": [{"k": 1, "who": 7, "site": 1}, {"k": 2, "who": 7, "site": 2}, {"k": 3, "who": None, "site": 1}],
        "child": [{"k": 10 + of, "day": 0, "of": of} for of in (1, 2, 3, 4)] + [{"k": 20, "day": 0, "of": None}],
        "leaf": [{"of": 10 + of, "day": day, "n": 0} for of in (1, 2, 3) for day in (0, 1, None)],
    }
    assert existing(ROOT, data, digest) == [(7, data["root"][0])]
    assert existing(CHILD, data, digest) == [(7, data["child"][0])]
    assert existing(LEAF, data, digest) == [(7, data["leaf"][0])]
    assert existing(replace(ROOT, part=None), data, digest) != existing(ROOT, data, digest)


# ---- planted bugs ----------------------------------------------------------------------------------------------------

MIXED: Data = {
    "root": [{"k": who, "who": who, "site": 1} for who in (0, 1)],
    "child": [{"k": number, "day": 0, "of": number % 2} for number in range(8)] + [{"k": 9, "day": 0, "of": 5}],
    "leaf": [],
}


def is_caught(data: Data = MIXED) -> bool:
    """Tell whether removing some unit does anything but remove its rows."""
    found = [existing(CHILD, data, digest), *(existing(CHILD, without(data, unit), digest) for unit in (0, 1))]
    return any(bag(found[1 + unit]) != bag(others(found[0], unit)) for unit in (0, 1))


def test_what_is_right_is_not_caught() -> None:
    assert not is_caught()
    assert len(existing(CHILD, MIXED, digest)) == 6


def test_a_bound_over_all_units_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "bounded", lambda found, most, order: sorted(found, key=lambda row: order(*row))[:most])
    assert is_caught()


def test_an_orphan_that_is_kept_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once its parent is gone, it would count under no name."""
    right = model.linked

    def outer(table: Table, data: Data, order: Order) -> Existing:
        found = right(table, data, order)
        return found + [(None, row) for row in data[table.name] if all(row is not other for _, other in found)]

    monkeypatch.setattr(model, "linked", outer)
    assert is_caught()


def test_the_first_of_several_parents_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If keys are not unique: a row must not move to another unit when the first is removed."""
    right = model.linked

    def first(table: Table, data: Data, order: Order) -> Existing:
        found = right(table, data, order)
        return [pair for index, pair in enumerate(found) if all(pair[1] is not other for _, other in found[:index])]

    twice: Data = {**MIXED, "root": [*MIXED["root"], {"k": 0, "who": 1, "site": 1}]}
    assert not is_caught(twice)
    monkeypatch.setattr(model, "linked", first)
    assert is_caught(twice)


def test_a_bound_for_each_parent_would_be_caught() -> None:
    """It lets a unit with several rows in the parent have more than its bound."""
    data: Data = {
        "root": [{"k": number, "who": 1, "site": 1} for number in (0, 1)],
        "child": [{"k": number, "day": 0, "of": number % 2} for number in range(8)],
    }
    by_parent = [bounded(rows, 3, digest) for rows in _by_parent(data)]
    assert sum(map(len, by_parent)) > CHILD.max_rows_per_unit == len(existing(CHILD, data, digest))


def _by_parent(data: Data) -> list[Existing]:
    found = model.linked(CHILD, data, digest)
    return [[pair for pair in found if pair[1]["of"] == parent] for parent in (0, 1)]
