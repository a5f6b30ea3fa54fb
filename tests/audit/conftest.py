"""One installation with a history, copied for every test."""

import shutil
from pathlib import Path

import pytest

import lapwing as lw
from tests.support.cli.command import INIT, write_visits

QUERIES = (
    "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "SELECT AVG(cost) AS cost FROM visits",
    "SELECT COUNT(DISTINCT person_id) AS people FROM visits WHERE cost < 100",
)


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a catalog and a ledger of three queries."""
    from lapwing.cli import main

    folder = tmp_path_factory.mktemp("audited")
    write_visits(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(INIT) == 0
    with lw.connect(folder / "lapwing.toml") as session:
        for query in QUERIES:
            session.sql(query, epsilon=0.1)
    return folder


@pytest.fixture
def catalog(history: Path, tmp_path: Path) -> Path:
    """The catalog of a copy of it."""
    shutil.copytree(history, tmp_path / "copy")
    return tmp_path / "copy" / "lapwing.toml"
