"""Coarser cells beside public totals and levels: the released number around a cell, and never an adjusted one."""

from pathlib import Path

from lapwing.tabulation import TableRelease, run_release
from tests.tabulation.test_hierarchies import RELEASE, opened

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
    (total,) = tables["n in all"]
    (known,) = [cell for cell in tables["n by region"] if cell["region"] == "r0"]
    assert not known["n_unreliable"]
    assert known["n_adjusted"] == 100
    assert known["n_low"] <= known["n"] <= known["n_high"]  # of the released number, whatever the total is
    cells = tables["n by municipality, sex"]
    unreliable = [cell for cell in cells if cell["n_unreliable"]]
    assert unreliable
    sexes = {cell["sex"]: cell for cell in tables["more by sex"]}
    for cell in unreliable:
        assert cell["n"] is None
        assert cell["n_adjusted"] is None
        around = sexes[cell["sex"]]
        expected = total if around["n_unreliable"] else around
        assert cell["n_coarser_by"] == ("in all" if expected is total else "sex")
        assert [cell[f"n_coarser{end}"] for end in ("", "_low", "_high")] == [
            expected[f"n{end}"] for end in ("", "_low", "_high")
        ]
