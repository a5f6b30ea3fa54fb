"""Coarser cells beside public totals and levels: the released number around a cell, and never an adjusted one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lapwing.tabulation import TableRelease, run_release
from tests.tabulation.test_hierarchies import PLACES, RELEASE, opened

WITH_ALL = 'unreliable_cells = "coarsen"\nunreliable = 0.3\n' + RELEASE
TOTAL = """
[[public_totals]]
table = "n by region"
cell = { region = "r0" }
value = 100
source = "Register"
licence = "CC0"
"""


def test_totals_and_levels_keep_their_cells(tmp_path: Path) -> None:
    release = TableRelease.from_text(WITH_ALL + TOTAL)
    with opened(tmp_path) as session:
        released = run_release(session, release)
    tables = {table.name: released.arrow(place).to_pylist() for place, table in enumerate(release.tables)}
    (known,) = [cell for cell in tables["n by region"] if cell["region"] == "r0"]
    assert not known["n_unreliable"]
    assert known["n_adjusted"] == 100
    assert known["n_low"] <= known["n"] <= known["n_high"]  # of the released number, whatever the total is
    cells = tables["n by municipality, sex"]
    unreliable = [cell for cell in cells if cell["n_unreliable"]]
    assert unreliable
    around = coarser_cells(tables)
    for cell in unreliable:
        assert cell["n"] is None
        assert cell["n_adjusted"] is None
        by, expected = next(one for one in around(cell) if not one[1]["n_unreliable"])
        assert cell["n_coarser_by"] == by
        assert [cell[f"n_coarser{end}"] for end in ("", "_low", "_high")] == [
            expected[f"n{end}"] for end in ("", "_low", "_high")
        ]
    assert {cell["n_coarser_by"] for cell in unreliable} - {"sex", "in all"}  # of a higher level
    months = [cell for cell in tables["n by month"] if cell["n_unreliable"]]
    assert {cell["n_coarser_by"] for cell in months} <= {"quarter", "in all"}


def coarser_cells(tables: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], list[tuple[str, Any]]]:
    """Return what gives the cells around one by municipality and sex, the tables with the most cells first."""
    parents = {municipality: (region, district) for region, district, municipality in PLACES}

    def around(cell: Mapping[str, Any]) -> list[tuple[str, Any]]:
        region, district = parents[cell["municipality"]]
        wanted = (
            ("n by district", "district", district),
            ("n by region", "region", region),
            ("more by sex", "sex", cell["sex"]),
        )
        found = [(key, next(other for other in tables[name] if other[key] == value)) for name, key, value in wanted]
        return [*found, ("in all", tables["n in all"][0])]

    return around


def test_a_level_that_no_table_has_is_climbed_over(tmp_path: Path) -> None:
    """A gap: municipalities and regions, and no districts. The twin: without the levels, nothing lies around a cell."""
    with_gap = WITH_ALL.replace('["district"], ', "").replace("[], ", "").replace('["sex"], ', "")
    with opened(tmp_path) as session:
        released = run_release(session, TableRelease.from_text(with_gap))
    place = next(at for at, table in enumerate(released.tables) if table.planned.name == "n by municipality, sex")
    regions = {cell["region"]: cell for cell in released.arrow(0).to_pylist()}
    region_of = {municipality: region for region, _, municipality in PLACES}
    cells = [cell for cell in released.arrow(place).to_pylist() if cell["n_unreliable"]]
    assert cells
    for cell in cells:
        expected = regions[region_of[cell["municipality"]]]
        assert cell["n_coarser"] == expected["n"]
        assert cell["n_coarser_by"] == (None if expected["n_unreliable"] else "region")
    assert any(cell["n_coarser_by"] for cell in cells)
    apart = replace(released, nestings=()).arrow(place).to_pylist()
    assert not any(cell["n_coarser_by"] for cell in apart)
