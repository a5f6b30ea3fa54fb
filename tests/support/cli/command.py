"""The command line run in this process, in a folder with a small protected data set: fixtures to import."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet
import pytest

from lapwing.cli import main

# So many that a mean is never NULL: at epsilon 0.5 a plan's noisy count of 600 is below 1 with probability below 1e-40.
PEOPLE = 600
INIT = (
    *("init", "visits.parquet", "--privacy-unit", "person_id", "--epsilon", "3", "--delta", "1e-6"),
    *("--max-rows", "3", "--bounds", "cost=0:500", "--values", "plan=a,b"),
)
BY_PLAN = "SELECT plan, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command said, and how it ended."""

    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("LAPWING_CATALOG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def running(*arguments: str, stdin: bytes = b"") -> Outcome:
        if stdin:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        status = main(arguments)
        said = capsys.readouterr()
        return Outcome(status=status, out=said.out, err=said.err)

    return running


def write_visits(folder: Path, people: int = PEOPLE) -> Path:
    path = folder / "visits.parquet"
    rows = [(person, "ab"[person % 2], 10 * person % 300) for person in range(people) for _ in range(1 + person % 3)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("person_id", "plan", "cost"))}
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data and nothing else, which is the current one."""
    write_visits(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


_CATALOGS: Final[list[str]] = []
"""What `init` writes of the data, once it was asked in this process."""


@pytest.fixture
def visits(folder: Path, run: Run) -> Path:
    """The same folder with a catalog."""
    catalog = folder / "lapwing.toml"
    if _CATALOGS:
        catalog.write_text(_CATALOGS[0], encoding="utf-8")
    else:
        assert run(*INIT).status == 0
        _CATALOGS.append(catalog.read_text(encoding="utf-8"))
    return folder
