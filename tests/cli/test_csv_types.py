"""One person's cell decides nothing public of a CSV file: no type, no step, no price, whichever way it is protected.

Files that differ in one cell give the same catalog, to the byte, and the same prices, once the curator has said that
what is not of its type counts as NULL; else such a file is refused, which nobody learns but the curator. The twins take
the types from a guess, as the draft that `init` shows the curator does, and are found out.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import ne
from pathlib import Path
from typing import Any, Final

import pytest

import lapwing as lw
from lapwing.catalog import draft
from lapwing.catalog.file_columns import FileColumn, guessed_types, read_columns
from lapwing.catalog.toml import load
from tests.support.cli.command import Outcome, Run
from tests.support.effort import one_in, only

HEADER: Final = "person_id,visits,cost,day,rare\n"
ROW: Final = "7,5,1.5,2026-01-05,1\n"
OTHERWISE: Final = {  # the same row with another cell
    "a half": "7,5.5,1.5,2026-01-05,1\n",
    "a text for a date": "7,5,1.5,soon,1\n",
    "nothing": "7,5,1.5,2026-01-05,\n",
    "a text for a number": "7,5,free,2026-01-05,1\n",
    "a text for an identifier": "07b,5,1.5,2026-01-05,1\n",
}
OTHERS: Final = "".join(f"{person},{person % 4},{person}.25,2026-01-0{person},\n" for person in range(1, 7))

GIVEN: Final = {"visits": "integer", "cost": "decimal:0.01", "day": "date"}
BOUNDS: Final = {"visits": (0, 10), "cost": (0, 100)}
COUNT: Final = "SELECT COUNT(*) AS n FROM visits"
QUESTIONS: Final = (
    COUNT,
    "SELECT SUM(visits) AS n FROM visits",
    "SELECT SUM(cost) AS n FROM visits WHERE day > '2026-01-03'",
)

Public = tuple[bytes, tuple[str, ...]]
Way = Callable[[Path, Run, bool], Public]


def options(*, typed: bool) -> list[str]:
    start = ["--privacy-unit", "person_id", "--epsilon", "3", "--max-rows", "1", "--unreadable", "null"]
    types = ["--types", ",".join(f"{name}={kind}" for name, kind in GIVEN.items())]
    return start + ([*types, "--bounds", "visits=0:10", "--bounds", "cost=0:100"] if typed else [])


def by_protect(file: Path, _run: Run, typed: bool) -> Public:
    facts = {"types": GIVEN, "bounds": BOUNDS} if typed else {}
    with protected(file, **facts) as session:
        questions = QUESTIONS if typed else (COUNT,)
        prices = tuple(repr(session.explain(question, error=30)) for question in questions)
    return (file.parent / "visits.lapwing.toml").read_bytes(), prices


def by_init(file: Path, run: Run, typed: bool) -> Public:
    other = [] if typed else ["--types", "rare=string"]
    done = run("init", str(file), *options(typed=typed), *other, "--output", str(file.parent / "lapwing.toml"))
    assert done.status == 0, done.err
    return (file.parent / "lapwing.toml").read_bytes(), ()


def by_serve(file: Path, run: Run, typed: bool) -> Public:
    stopped = run("serve", str(file), *options(typed=typed))  # before it listens: there is no curator to be made
    assert "LAPWING_CURATOR_PASSWORD" in stopped.err
    return (file.parent / "visits.lapwing.toml").read_bytes(), ()


def protected(file: Path, **facts: Any) -> lw.Session:
    same: dict[str, Any] = {"privacy_unit": "person_id", "epsilon": 3, "max_rows_per_unit": 1, "unreadable": "null"}
    return lw.protect(file, **same, **facts)


WAYS: Final[dict[str, tuple[Way, tuple[str, ...]]]] = {
    "protect": (by_protect, tuple(OTHERWISE)),
    "init": (by_init, tuple(OTHERWISE)),
    "serve": (by_serve, ("a half",)),  # it protects as `protect` does
}


def differences(folder: Path, way: str, run: Run, *, typed: bool) -> dict[str, tuple[bool, ...]]:
    """Protect files that differ in one cell; return where the catalog and what else is public, prices above all, do."""
    protect, cells = WAYS[way]

    def public(name: str, row: str) -> Public:
        (folder / name).mkdir()
        (folder / name / "visits.csv").write_text(HEADER + OTHERS + row)
        return protect(folder / name / "visits.csv", run, typed)

    catalog, facts = public("as it is", ROW)
    found = {cell: public(cell, OTHERWISE[cell]) for cell in cells}
    return {cell: (catalog != other, *map(ne, facts, others)) for cell, (other, others) in found.items()}


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("LAPWING_CURATOR_PASSWORD", raising=False)
    return run


@pytest.mark.parametrize("typed", only([1], [True, False]), ids=["typed", "text"])
@pytest.mark.parametrize("way", only([0], WAYS))
def test_t22_one_cell_decides_nothing_public(tmp_path: Path, run: Run, way: str, typed: bool) -> None:
    for cell, differs in differences(tmp_path, way, run, typed=typed).items():
        assert not any(differs), cell


@pytest.fixture
def guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the bug: what the first rows look like overrules what the curator says."""

    def columns(source: Path, types: Mapping[str, str], _text: object) -> tuple[FileColumn, ...]:
        return read_columns(source, {**types, **guessed_types(source)})

    monkeypatch.setattr(draft, "read_columns", columns)


@pytest.mark.usefixtures("guessing")
@pytest.mark.parametrize("way", one_in(3, WAYS))
def test_t22_twin_a_guess_is_found_out(tmp_path: Path, run: Run, way: str) -> None:
    for cell, (catalog_differs, *_) in differences(tmp_path, way, run, typed=False).items():
        assert catalog_differs, cell


@pytest.mark.long
@pytest.mark.usefixtures("guessing")
def test_t22_twin_a_guess_decides_a_price(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, "protect", (by_protect, ("a half",)))
    assert differences(tmp_path, "protect", run, typed=True)["a half"] == (True, False, True, False)


def test_nothing_but_the_draft_for_the_curator_guesses() -> None:
    package = Path(lw.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search("guessed_types|guessed_writing", path.read_text())
    }
    assert users == {
        *("catalog/file_columns.py", "catalog/public_draft.py", "cli/init.py", "cli/interview.py"),
        "catalog/guessed_writing.py",
        "cli/first_contact.py",  # shows them, and takes none
        "server/preparation.py",  # shows the guesses to a curator, who sends types and settings with the draft
    }


# ---- the draft that init shows ---------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "visits.csv"
    path.write_text(HEADER + OTHERS)
    return path


def refused(file: Path, run: Run, *more: str) -> Outcome:
    """Run init without types, which leaves nothing behind."""
    outcome = run("init", file.name, *options(typed=False), *more)
    assert outcome.status == 2
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert "--types is missing: only Parquet files hold types, and visits.csv is not one" in outcome.err
    return outcome


def drafted(outcome: Outcome) -> list[str]:
    """Return the option that init says to type."""
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("  --types ")]
    return shlex.split(line)


def test_init_shows_a_draft_and_writes_nothing(file: Path, run: Run) -> None:
    outcome = refused(file, run)
    assert drafted(outcome) == ["--types", "person_id=integer,visits=integer,cost=float,day=date"]
    assert "A single row may decide a guess" in outcome.err
    refused(file, run, "--bounds", "visits=0:10")


def test_the_draft_is_typed_to_confirm_it(file: Path, run: Run) -> None:
    file.write_text('person_id,"a,b",c=d,it\'s\n1,2,3,4\n')
    assert run("init", file.name, *options(typed=False), *drafted(refused(file, run))).status == 0
    with lw.connect() as session:
        columns = {column.name: column.type for column in session.catalog.tables[0].columns}
    assert columns == {"person_id": "integer", "a,b": "integer", "c=d": "integer", "it's": "integer"}


def test_a_draft_of_texts_alone_names_one_to_confirm(file: Path, run: Run) -> None:
    file.write_text("person_id,plan\nx,a\n")
    assert drafted(refused(file, run)) == ["--types", "person_id=string"]


def test_a_file_of_no_rows_and_a_broken_one(file: Path, run: Run) -> None:
    file.write_text(HEADER)
    refused(file, run)
    file.write_text(HEADER + "1,2\n")
    broken = run("init", file.name, *options(typed=False))
    assert broken.status == 6
    assert "cannot be read as csv" in broken.err


def test_what_is_text_for_want_of_a_type_is_said(file: Path, run: Run) -> None:
    said = run("init", file.name, *options(typed=True)).err
    assert "Columns read as text, because the file holds no types and you gave none: person_id, rare." in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--types", "visits"), "--types 'visits' names no column; write COLUMN=TYPE"),
        (("--types", ""), "has no values; write COLUMN=TYPE"),
        (("--types", '"visits'), "unpaired double quote"),
        (("--types", "visits=integer,visits=float"), "given twice for 'visits'"),
        (("--types", "visits=integer", "--types", "visits=float"), "given twice for 'visits'"),
        (("--types", "visits=number"), 'types.visits: "number" is unknown; write one of integer'),
        (("--types", "visit=integer"), 'no column "visit"'),
        (("--types", "day=date", "--bounds", "visits=0:9"), "give its type, like --types visits=integer"),
    ],
)
def test_bad_types_write_nothing(file: Path, run: Run, more: tuple[str, ...], said: str) -> None:
    outcome = run("init", file.name, *options(typed=False), *more)
    assert outcome.status == 2
    assert said in outcome.err
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_types_go_with_a_file_to_serve(run: Run) -> None:
    assert "--types needs --privacy-unit" in run("serve", "--types", "visits=integer").err


# ---- protecting again ------------------------------------------------------------------------------------------------


def test_types_stay_as_the_catalog_has_them(file: Path) -> None:
    protected(file, types=GIVEN, bounds=BOUNDS).close()
    beside = file.parent / "visits.lapwing.toml"
    beside.write_text(beside.read_text().replace("step = 0.01", "step = 0.25, nullable = false") + "# a note\n")
    kept = beside.read_text()
    file.write_text(HEADER + OTHERS + "7,5.5,free,soon,often\n")
    protected(file).close()
    assert beside.read_text() == kept
    protected(file, bounds={"visits": (0, 10), "cost": (0, 200)}).close()
    (column,) = [column for column in load(beside).tables[0].columns if column.name == "cost"]
    assert (column.type, column.step, column.upper, column.nullable) == (
        "decimal",
        Fraction(1, 4),
        Fraction(200),
        False,
    )


def test_types_may_change_and_are_all_said_again(file: Path) -> None:
    protected(file, types=GIVEN, bounds=BOUNDS).close()
    with protected(file, types=GIVEN | {"cost": "decimal:0.5", "rare": "boolean"}) as session:
        columns = {column.name: column for column in session.catalog.tables[0].columns}
    assert (columns["cost"].step, columns["rare"].type, columns["visits"].type) == (
        Fraction(1, 2),
        "boolean",
        "integer",
    )
    with pytest.raises(lw.CatalogError, match=r"columns\.visits: .* it is text, which has no bounds"):
        protected(file, types={"cost": "decimal:0.5"})
