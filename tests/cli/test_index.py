"""`lapwing index`: built, seen and dropped; the same answers with and without."""

from pathlib import Path

import pytest

from lapwing.engines.duckdb.indexing import Indexing
from tests.support.cli.command import BY_PLAN, Run, write_visits

ABSENT = "visits: there is no index.\n"
CURRENT = "visits: there is an index, and queries use it.\n"


@pytest.mark.long
def test_an_index_is_built_seen_and_dropped(visits: Path, run: Run) -> None:
    assert run("index", "status").out == ABSENT
    built = run("index", "build")
    assert (built.status, built.out, built.err) == (0, "visits: the index is written.\n", "")
    assert (visits / "visits.lapwing.index").stat().st_mode & 0o777 == 0o600
    assert run("index", "build").out == "visits: there is an index already.\n"
    assert run("index", "status").out == CURRENT
    assert run("query", BY_PLAN, "--epsilon", "0.5").status == 0
    assert run("index", "drop").out == "visits: the index is removed.\n"
    assert run("index", "drop").out == "visits: there was no index.\n"
    assert run("index", "status").out == ABSENT


@pytest.mark.long
def test_an_index_of_older_data_is_not_used(visits: Path, run: Run) -> None:
    run("index", "build")
    write_visits(visits, people=20)
    assert "it is not used" in run("index", "status").out
    assert run("index", "build").out == "visits: the index is written.\n"
    assert run("index", "status").out == CURRENT


def test_it_charges_nothing(visits: Path, run: Run) -> None:
    run("index", "build")
    assert not list(visits.glob("*.db"))


def test_what_cannot_be_written_is_a_fault(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Indexing, "build", failing)
    ended = run("index", "build")
    assert ended.status == 6
    assert "could not be written next to visits.parquet" in ended.err


def test_missing_data_are_a_fault(visits: Path, run: Run) -> None:
    (visits / "visits.parquet").unlink()
    for command in ("build", "status"):
        ended = run("index", command)
        assert (ended.status, ended.out) == (6, "")
        assert "visits.parquet" in ended.err
    assert run("index", "drop").status == 0


def test_other_engines_have_none(visits: Path, run: Run) -> None:
    catalog = visits / "lapwing.toml"
    catalog.write_text(catalog.read_text().replace('engine = "duckdb"', 'engine = "spark"'))
    ended = run("index", "status")
    assert ended.status == 2
    assert "keeps no index" in ended.err
