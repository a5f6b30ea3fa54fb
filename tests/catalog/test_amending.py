"""A catalog's file with another budget: nothing else of it changes, or it is left alone."""

import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.catalog import amending
from lapwing.catalog.amending import write_budget
from lapwing.catalog.toml import load
from lapwing.errors import CatalogError

TABLE = """
[tables.visits]
source = "visits.parquet"
privacy_unit = "person_id"
max_rows_per_unit = 3
[tables.visits.columns]
epsilon = { type = "integer", lower = 0, upper = 3 }
"""
FORMS = {
    "usual": '# me\n[dataset]\nname = "v"\nledger = "sqlite:v.db"\n\n[budget]\nepsilon = 3.0    # much\ndelta = 1e-6\n',
    "spaced": '[budget]  # all\n  delta=1e-6\n  epsilon  =  3\n[dataset]\nname = "v"\nledger = "sqlite:v.db"\n',
    "no delta": '[budget]\nepsilon = 3\n[dataset]\nname = "v"\nledger = "sqlite:v.db"\n',
    "crlf": '[dataset]\r\nname = "v"\r\nledger = "sqlite:v.db"\r\n[budget]\r\nepsilon = 3\r\ndelta = 1e-6\r\n',
}
OTHER_FORMS = {
    "inline": 'budget = { epsilon = 3, delta = 1e-6 }\n[dataset]\nname = "v"\nledger = "sqlite:v.db"\n',
    "dotted": 'budget.epsilon = 3\nbudget.delta = 1e-6\n[dataset]\nname = "v"\nledger = "sqlite:v.db"\n',
    "quoted": '["budget"]\nepsilon = 3\ndelta = 1e-6\n[dataset]\nname = "v"\nledger = "sqlite:v.db"\n',
}


def written(folder: Path, text: str) -> Path:
    path = folder / "v.toml"
    path.write_bytes((text + TABLE).encode())
    path.chmod(0o640)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_the_figures_change_and_nothing_else(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, FORMS[form])
    before = load(path)
    budget = replace(before.budget, epsilon=Fraction("4.5"))
    write_budget(before, budget)
    assert load(path) == replace(before, budget=budget)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    old, new = (FORMS[form] + TABLE).split("\n"), path.read_bytes().decode().split("\n")
    changed = [(was, now) for was, now in zip(old, new, strict=True) if was != now]
    assert all(was.split("=")[0] == now.split("=")[0] for was, now in changed)
    assert 1 <= len(changed) <= 2  # 1e-6 may be spelled otherwise
    assert [path.name] == [other.name for other in tmp_path.iterdir()]


def test_a_comment_stays_in_its_column(tmp_path: Path) -> None:
    path = written(tmp_path, FORMS["usual"])
    write_budget(load(path), replace(load(path).budget, epsilon=Fraction(4)))
    assert "epsilon = 4      # much" in path.read_text()


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_what_is_written_otherwise_is_left_alone(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, OTHER_FORMS[form])
    before = path.read_bytes()
    with pytest.raises(CatalogError, match=r"write epsilon = 4 and delta = 1e-6 into its section"):
        write_budget(load(path), replace(load(path).budget, epsilon=Fraction(4)))
    assert path.read_bytes() == before


def test_a_change_of_anything_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: lines of other sections are changed too, here those of a column that is called epsilon."""
    path = written(tmp_path, FORMS["usual"])
    monkeypatch.setattr(amending, "amended", lambda text, budget: text.replace("upper = 3", "upper = 4"))
    with pytest.raises(CatalogError):
        write_budget(load(path), replace(load(path).budget, epsilon=Fraction(4)))
    assert "upper = 3" in path.read_text()


def test_a_catalog_that_is_no_file_has_nothing_to_write(tmp_path: Path) -> None:
    catalog = replace(load(written(tmp_path, FORMS["usual"])), file=None)
    with pytest.raises(CatalogError, match="not in a file"):
        write_budget(catalog, catalog.budget)
