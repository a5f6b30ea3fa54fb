"""Public totals are met exactly by numbers that add up; impossible ones are refused by public values alone."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.errors import CatalogError, InvalidParameter
from lapwing.tabulation import PublicTotal, ReleasedTables, ReleaseTable, TableRelease, plan_release, run_release
from lapwing.tabulation.common_table import Margin
from lapwing.tabulation.public_totals import Owners
from tests.support.effort import one_in
from tests.support.release.small import opened, row

ROWS = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1) for n in range(60)]
COUNTS = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[[], ["plan"], ["plan", "size"]])
SUMS = ReleaseTable(name="s", query="SELECT plan, SUM(size) AS s FROM visits GROUP BY plan")
SOURCE = {"source": "Register of patients, 2026", "licence": "CC BY 4.0"}


def total(value: Any, cell: dict[str, object] | None = None, table: str = "n in all", **facts: Any) -> PublicTotal:
    return PublicTotal(table=table, value=value, cell=cell or {}, **SOURCE, **facts)


def by_plan(value: Any, plan: str) -> PublicTotal:
    return total(value, {"plan": plan}, "n by plan")


TOTALS = (
    total(90),
    by_plan(20, "a"),
    total(0, {"plan": "a", "size": Decimal("5.0")}, "n by plan, size"),  # as files have it
    total(215, {"plan": "b"}, "s"),
)
RELEASE = TableRelease(title="t", epsilon=1, tables=(*COUNTS, SUMS), adjusted=True, public_totals=TOTALS)


def adjusted(released: ReleasedTables, place: int, name: str = "n") -> dict[tuple[Any, ...], int]:
    keys = ("plan", "size")
    return {
        tuple(told[key] for key in keys if key in told): told[f"{name}_adjusted"]
        for told in released.arrow(place).to_pylist()
    }


def require_met(released: ReleasedTables) -> None:
    """Assert that totals are met, though they are far from the data, and that tables still add up."""
    whole, by_plan, crossed = (adjusted(released, place) for place in range(3))
    assert (whole[()], by_plan["a",], crossed["a", 5]) == (90, 20, 0)
    assert adjusted(released, 3, "s")["b",] == 215
    for plan in "ab":  # rows may lack a value of each key, as far as the catalog says
        assert sum(number for (one, _), number in crossed.items() if one == plan) <= by_plan[plan,]
    assert sum(by_plan.values()) <= 90
    assert min((*by_plan.values(), *crossed.values())) >= 0


def test_totals_are_met_exactly(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as session:
        released = run_release(session, RELEASE)
        require_met(released)
        plain = run_release(session, replace(RELEASE, public_totals=()))
        assert plain.stored  # of the same prices: totals are post-processing
        with pytest.raises(AssertionError):
            require_met(plain)
    assert released.tables[0].answer.rows() == plain.tables[0].answer.rows()
    document = json.loads(released.write(tmp_path / "out").read_text())
    assert document["public_totals"][0] == {"table": "n in all", "cell": {}, "value": "90", **SOURCE}
    page = (tmp_path / "out" / "method.html").read_text()
    assert "90 in n in all. Source: Register of patients, 2026. Licence: CC BY 4.0." in page


IMPOSSIBLE = {
    "a part above its whole": (total(10), by_plan(11, "a")),
    "negative": (by_plan(-1, "a"),),
    "of one cell two values": (by_plan(3, "a"), by_plan(4, "a")),
    "too large": (total(10**30),),
    "half a person": (by_plan(1.5, "a"),),
    "overlapping": (total(3, {"size": 0}, "n by size"), by_plan(4, "a")),
    "no such group": (by_plan(3, "z"),),
    "no such key": (total(3, {"planned": "a"}, "n by plan"),),
    "no key": (total(3, {}, "n by plan"),),
    "no such table": (total(3, {}, "n by age"),),
    "no such number": (total(3, number="m"),),
    "a mean": (total(3, {}, "m"),),
}


@pytest.mark.parametrize("name", one_in(3, list(IMPOSSIBLE)))
def test_the_impossible_is_refused_before_the_charge(tmp_path: Path, name: str) -> None:
    more = ReleaseTable(name="n by size", query="SELECT size, COUNT(*) AS n FROM visits GROUP BY size")
    mean = ReleaseTable(name="m", query="SELECT AVG(age) AS m FROM visits")
    release = replace(RELEASE, tables=(*COUNTS, more, mean), public_totals=IMPOSSIBLE[name])
    with opened(tmp_path, ROWS) as session:
        for step in (plan_release, run_release):
            with pytest.raises(InvalidParameter, match="Nothing was charged"):
                step(session, release)
        assert not session.history()


SHAPE = (3, 4)
ROW = Margin(shape=SHAPE, kept=(0,), places=np.arange(3, dtype=np.int32), size=3, deviation=1.0)
ALL = Margin(shape=SHAPE, kept=(), places=np.zeros(1, dtype=np.int32), size=1, deviation=1.0)


@pytest.mark.parametrize("sign", [1, 0, -1])
def test_any_table_is_brought_to_its_totals(sign: int) -> None:
    random = np.random.default_rng(3)
    for _ in range(30):
        table = random.integers(0, 9, 12) * (sign or random.choice([-1, 1], 12))
        values = (random.integers(0, 60, 3) * (sign or -1)).tolist()
        extra = int(random.integers(0, 9)) * (sign or 1)
        whole = sum(values[:2]) + extra
        owners = Owners.of([(ROW, dict(enumerate(values[:2]))), (ALL, {0: whole})], 12, sign)
        assert owners is not None
        found = owners.met(table, sign)
        assert ROW.exactly(found)[:2].tolist() == values[:2]
        assert found.sum() == whole
        assert not sign or (sign * found >= 0).all()
    complete = {0: 1 * sign, 1: 2 * sign, 2: 3 * sign}
    assert Owners.of([(ROW, complete), (ALL, {0: 6 * sign})], 12, sign) is not None
    with pytest.raises(InvalidParameter, match="not the sum"):
        Owners.of([(ROW, complete), (ALL, {0: 7})], 12, sign)


FILE = """
title = "t"
epsilon = 1
adjusted = true
[tables.n]
select = "COUNT(*) AS n"
from = "visits"
by = [[], ["plan"]]
[[public_totals]]
table = "n by plan"
cell = { plan = "a" }
value = 20
source = "Register"
licence = "CC0"
"""


def test_a_file_has_totals() -> None:
    (found,) = TableRelease.from_text(FILE).public_totals
    assert found == PublicTotal(table="n by plan", cell={"plan": "a"}, value=20, source="Register", licence="CC0")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("adjusted = true", "adjusted = false"),
        ('source = "Register"', ""),
        ('licence = "CC0"', 'licence = ""'),
        ("value = 20", 'value = "many"'),
        ("value = 20", "value = 20\nwhere = 3"),
        ('cell = { plan = "a" }', "cell = { plan = [1] }"),
        ("[[public_totals]]", "[public_totals]"),
    ],
)
def test_a_wrong_file_is_refused(old: str, new: str) -> None:
    with pytest.raises(CatalogError):
        TableRelease.from_text(FILE.replace(old, new))
