"""The word for one of those whom a table protects: pages say it, and it changes nothing else."""

from pathlib import Path

import pytest

from lapwing.catalog.codebook_texts import with_unit_title
from lapwing.catalog.protection import bound_of, noun_of, units_of
from lapwing.catalog.toml import dumps, load, loads
from lapwing.errors import CatalogError
from lapwing.query.bind.bind import bind

CATALOG = """[dataset]
name = "d"
ledger = "sqlite:visits.lapwing.db"
[budget]
epsilon = 1
neighbouring = "add_remove"
[tables.visits]
source = "visits.csv"
privacy_unit = "Patient Nr"
max_rows_per_unit = 3
{word}
[tables.visits.columns]
age = {{ type = "integer", lower = 0, upper = 110 }}
"""


def written(folder: Path, word: str = "") -> Path:
    path = folder / "lapwing.toml"
    path.write_text(CATALOG.format(word=word))
    return path


def test_it_is_said_with_the_column_and_changes_no_digest(tmp_path: Path) -> None:
    plain, said = load(written(tmp_path)), load(written(tmp_path, 'unit_title = "patient"'))
    assert units_of(said.tables, said.dictionary) == "each patient (column Patient Nr)"
    assert noun_of(said.tables, said.dictionary) == "patient"
    assert "patient" in bound_of(said.tables, said.dictionary)
    assert units_of(plain.tables, plain.dictionary) == "each Patient Nr"
    assert units_of(plain.tables, plain.dictionary, public=True) == "each person or other unit (column Patient Nr)"
    assert (said.digest, said.tables[0].digest) == (plain.digest, plain.tables[0].digest)


def test_a_draft_is_given_the_same_word(tmp_path: Path) -> None:
    given = with_unit_title(load(written(tmp_path)), "patient")
    assert units_of(given.tables, given.dictionary) == "each patient (column Patient Nr)"


@pytest.mark.parametrize("word", ["", "p" * 61, "pa\x00tient"])
def test_a_word_that_is_none_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(CatalogError, match="unit_title"):
        with_unit_title(load(written(tmp_path)), word)


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(age)", "COUNT(DISTINCT age)"])
def test_no_plan_and_no_stored_catalog_changes(tmp_path: Path, aggregate: str) -> None:
    plain, said = load(written(tmp_path)), load(written(tmp_path, 'unit_title = "patient"'))
    sql = f"SELECT {aggregate} AS n FROM visits"
    assert bind(sql, plain) == bind(sql, said)
    stored = dumps(plain)
    assert "unit_title" not in stored
    assert loads(stored, file="stored", folder=tmp_path) == plain
    assert loads(dumps(said), file="stored", folder=tmp_path) == said


def test_twin_another_bound_is_another_plan(tmp_path: Path) -> None:
    plain = load(written(tmp_path))
    other = written(tmp_path)
    other.write_text(other.read_text().replace("max_rows_per_unit = 3", "max_rows_per_unit = 4"))
    assert bind("SELECT COUNT(*) AS n FROM visits", plain) != bind("SELECT COUNT(*) AS n FROM visits", load(other))
