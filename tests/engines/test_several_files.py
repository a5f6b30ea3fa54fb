"""Sources of several files: folders, patterns, and columns that the names of folders hold."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.file_columns import guessed_types
from lapwing.catalog.patterns import files_of, folder_of
from lapwing.catalog.several_files import named, partition_keys
from lapwing.catalog.source_names import stem
from lapwing.catalog.toml import load
from lapwing.cli import main
from lapwing.server.registration import require_apart
from tests.support.effort import one_in

PEOPLE = 60


def parquet(path: Path, first: int, plan: str = "a", **more: pa.Array) -> None:
    """Write a row each of 20 people."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"person": list(range(first, first + 20)), "plan": [plan] * 20, **more}
    pq.write_table(pa.table(table), path)


def csv(path: Path, first: int, plan: str = "a", delimiter: str = ",", encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{person}{delimiter}{plan}" for person in range(first, first + 20)]
    path.write_text("\n".join([f"person{delimiter}plan", *rows, ""]), encoding=encoding)


def protected(source: Path | str, **more: object) -> lw.Session:
    """Protect a source whose people have a row each, with hardly any noise."""
    usual = {"privacy_unit": "person", "epsilon": 10**7, "max_rows_per_unit": 3, "domains": {"plan": ["a", "b", "é"]}}
    return lw.protect(source, **{**usual, **more})  # type: ignore[arg-type]


def counts(session: lw.Session, key: str, table: str = "visits") -> dict[object, object]:
    answer = session.sql(f"SELECT {key}, COUNT(*) AS n FROM {table} GROUP BY {key}", epsilon=10**5)
    return {row[key]: row["n"] for row in answer}


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Return a folder with three Parquet files in folders of years."""
    for place, year in enumerate(("2013", "2014", "2015")):
        parquet(tmp_path / "visits" / f"year={year}" / "part-0.parquet", 20 * place, "ab"[place % 2])
    (tmp_path / "visits" / "_SUCCESS.parquet").write_text("no data")
    (tmp_path / "visits" / ".part-0.parquet").write_text("no data")
    return tmp_path / "visits"


# ---- names -----------------------------------------------------------------------------------------------------------


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["flights/**/*.parquet", "data/visits-*.csv.gz", "visits_2013_*.csv", "data/*.tsv", "a?.csv"]
    assert [stem(Path(name)) for name in names] == ["flights", "visits", "visits_2013", "data", "a"]
    assert [str(folder_of(Path(name))) for name in names] == ["flights", "data", ".", "data", "."]
    assert stem(Path("*.csv")) == tmp_path.name


def test_a_folder_is_the_pattern_of_its_files(visits: Path) -> None:
    assert named(visits) == visits / "**" / "*.parquet"
    assert len(files_of(named(visits))) == 3, "what begins with . or _ is a note of a writer"
    csv(visits / "more.csv", 0)
    with pytest.raises(lw.DataFault, match=r"files of several kinds, \.csv, \.parquet; name the files"):
        named(visits)
    (visits.parent / "empty").mkdir()
    with pytest.raises(lw.DataFault, match="has no data files"):
        protected(visits.parent / "empty")
    with pytest.raises(lw.DataFault, match="No file matches"):
        protected(visits / "none-*.parquet")


# ---- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_folders_name_columns(visits: Path) -> None:
    with protected(visits, types={"year": "integer"}, bounds={"year": (2013, 2015)}) as session:
        assert counts(session, "year") == {2013: 20, 2014: 20, 2015: 20}
        assert counts(session, "plan") == {"a": 40, "b": 20, "é": 0}
    (table,) = load(visits / "visits.lapwing.toml").tables
    assert (table.name, table.source) == ("visits", "**/*.parquet")
    with protected(visits) as session:
        assert counts(session, "year") == {2013: 20, 2014: 20, 2015: 20}, "what was declared stays"


@pytest.mark.long
def test_a_folder_of_no_year_is_null(visits: Path) -> None:
    parquet(visits / "year=__HIVE_DEFAULT_PARTITION__" / "part-0.parquet", 60)
    with protected(visits, domains={"year": ["2013", "2014"]}) as session:
        assert counts(session, "year") == {"2013": 20, "2014": 20}
        (row,) = session.sql("SELECT COUNT(*) AS n FROM visits WHERE year IS NULL", epsilon=10**5)
        assert row["n"] == 20


@pytest.mark.long
def test_a_folder_name_is_unescaped(tmp_path: Path) -> None:
    parquet(tmp_path / "visits" / "town=S%C3%A3o%20Paulo" / "p.parquet", 0)
    parquet(tmp_path / "visits" / "town=Köln" / "p.parquet", 20)
    with protected(tmp_path / "visits", domains={"town": ["São Paulo", "Köln"]}) as session:
        assert counts(session, "town") == {"São Paulo": 20, "Köln": 20}


@pytest.mark.long
def test_a_pattern_of_csv_files_is_one_table(tmp_path: Path) -> None:
    for place in range(3):
        csv(tmp_path / f"visits-{place}.csv", 20 * place, "ab"[place % 2], ";")
    csv(tmp_path / "others.csv", 500)
    with protected(tmp_path / "visits-*.csv") as session:
        assert counts(session, "plan") == {"a": 40, "b": 20, "é": 0}
        assert [row["n"] for row in session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=10**5)] == [PEOPLE]
    assert (tmp_path / "visits.lapwing.toml").is_file()


@pytest.mark.long
def test_files_of_another_encoding_in_folders(tmp_path: Path) -> None:
    for place, year in enumerate(("2013", "2014")):
        csv(tmp_path / "visits" / f"year={year}" / "p.csv", 20 * place, "é", encoding="cp1252")
    with protected(tmp_path / "visits", encoding="windows-1252", domains={"year": ["2013", "2014"]}) as session:
        assert counts(session, "year") == {"2013": 20, "2014": 20}
    with protected(tmp_path / "visits", domains={"plan": ["é"]}) as session:
        assert counts(session, "plan")["é"] == 40


def test_a_person_in_two_files_is_one_person(tmp_path: Path) -> None:
    for place in range(3):
        parquet(tmp_path / "visits" / f"{place}.parquet", 0)
    with protected(tmp_path / "visits", max_rows_per_unit=2) as session:
        (row,) = session.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT person) AS p FROM visits", epsilon=10**5)
    assert (row["n"], row["p"]) == (40, 20), "two of the three rows of each"


# ---- what is no table ------------------------------------------------------------------------------------------------


def test_other_columns_are_refused(visits: Path) -> None:
    with protected(visits) as session:
        assert counts(session, "plan")
    parquet(visits / "year=2016" / "part-0.parquet", 60, cost=pa.array([1] * 20))
    with pytest.raises(lw.DataFault, match=r"2016.part-0\.parquet has other columns or types than .*2013"):
        protected(visits)
    with (
        lw.connect(visits / "visits.lapwing.toml") as session,
        pytest.raises(lw.DataFault, match="differ in columns"),
    ):
        session.accept_data()


def test_other_types_are_refused(tmp_path: Path) -> None:
    parquet(tmp_path / "visits" / "0.parquet", 0, cost=pa.array([1] * 20))
    parquet(tmp_path / "visits" / "1.parquet", 20, cost=pa.array([1.5] * 20))
    with pytest.raises(lw.DataFault, match="has other columns or types"):
        protected(tmp_path / "visits")


@pytest.mark.long
def test_other_names_in_the_first_line_are_refused(tmp_path: Path) -> None:
    csv(tmp_path / "visits-0.csv", 0)
    with protected(tmp_path / "visits-*.csv") as session:
        assert counts(session, "plan")["a"] == 20
    (tmp_path / "visits-1.csv").write_text("plan,person\na,5\n")
    with pytest.raises(lw.DataFault, match="has other columns"):
        protected(tmp_path / "visits-*.csv")
    with (
        lw.connect(tmp_path / "visits.lapwing.toml") as session,
        pytest.raises(lw.DataFault, match="differ in columns, their order or their types"),
    ):
        session.accept_data()


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("month=1", "of other columns than others"),
        ("year=2013/year=2014", "name the same column"),
        ("year=20=13", "not the form column=value"),
    ],
)
def test_folders_that_disagree_are_refused(visits: Path, folder: str, why: str) -> None:
    parquet(visits / folder / "p.parquet", 60)
    if "/" in folder:
        for year in ("2013", "2014", "2015"):
            (visits / f"year={year}" / "part-0.parquet").unlink()
    with pytest.raises(lw.DataFault, match=f"cannot be read as one table: .*{why}"):
        protected(visits)


@pytest.mark.parametrize("above", [False, True])
def test_a_column_in_files_and_folders_is_refused(tmp_path: Path, above: bool) -> None:
    # The engine would believe the folder, of whose column the catalog knows nothing.
    base = tmp_path / "plan=b" / "visits" if above else tmp_path / "visits"
    parquet(base / ("year=1" if above else "plan=b") / "p.parquet", 0)
    with pytest.raises(lw.DataFault, match="has the column plan in the files and in the names of their folders"):
        protected(base)


def test_a_folder_above_a_single_file_names_no_column(tmp_path: Path) -> None:
    parquet(tmp_path / "plan=b" / "visits.parquet", 0)
    with protected(tmp_path / "plan=b" / "visits.parquet") as session:
        assert counts(session, "plan") == {"a": 20, "b": 0, "é": 0}


# ---- data that change ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", one_in(4, ["added", "removed", "renamed", "written"]))
def test_data_that_change_are_refused_until_they_are_accepted(visits: Path, change: str) -> None:
    first = visits / "year=2013" / "part-0.parquet"
    with protected(visits) as session:
        assert counts(session, "plan")["a"] == 40
        match change:
            case "added":
                parquet(visits / "year=2016" / "part-0.parquet", 60)
            case "removed":
                first.unlink()
            case "renamed":
                first.rename(first.with_name("part-1.parquet"))
            case "written":
                parquet(first, 100)
        with pytest.raises(lw.LapwingError):
            counts(session, "plan")
    with lw.connect(visits / "visits.lapwing.toml") as session, pytest.raises(lw.DataChanged):
        counts(session, "plan")
    assert main(["data", "accept", "--catalog", str(visits / "visits.lapwing.toml")]) == 0
    with lw.connect(visits / "visits.lapwing.toml") as session:
        expected = {"added": 60, "removed": 20, "renamed": 40, "written": 40}[change]
        assert counts(session, "plan")["a"] == expected


def test_what_is_passed_over_changes_nothing(visits: Path) -> None:
    with protected(visits) as session:
        before = counts(session, "plan")
        (visits / "_committed_17").write_text("")
        os.utime(visits)
        assert counts(session, "plan") == before


@pytest.mark.long
def test_the_index_is_of_all_files(visits: Path) -> None:
    toml = visits / "visits.lapwing.toml"
    with protected(visits) as session:
        before = counts(session, "plan")
    assert main(["index", "build", "--catalog", str(toml)]) == 0
    assert (visits / "visits.lapwing.index").is_file()
    with lw.connect(toml) as session:
        assert counts(session, "plan") == before
        answer = session.sql("SELECT COUNT(*) AS n FROM visits WHERE year = '2014'", epsilon=10**5)
        assert answer.rows()[0]["n"] == 20


# ---- with others -----------------------------------------------------------------------------------------------------


def test_what_is_protected_is_not_public(visits: Path) -> None:
    with protected(visits) as session:
        text = (visits / "visits.lapwing.toml").read_text(encoding="utf-8")
        assert counts(session, "plan")
    public = '[tables.plans]\npublic = true\nsource = "year=2013/part-*.parquet"\n\n[tables.plans.columns]\n'
    (visits / "both.toml").write_text(f'{text}\n{public}plan = {{ type = "string" }}\n', encoding="utf-8")
    with lw.connect(visits / "both.toml") as session, pytest.raises(lw.DataFault, match="and a protected file"):
        session.sql("SELECT COUNT(*) AS n FROM visits JOIN plans USING (plan)", epsilon=10**5)


def test_two_data_sets_do_not_share_a_file(visits: Path) -> None:
    protected(visits).close()
    protected(visits / "year=2013" / "part-0.parquet").close()
    pattern, single = (load(visits / name) for name in ("visits.lapwing.toml", "year=2013/part-0.lapwing.toml"))
    for one, other in ((pattern, single), (single, pattern)):
        with pytest.raises(lw.CatalogError, match="its people have one budget"):
            require_apart(one, [other])


@pytest.mark.long
def test_no_answer_is_written_among_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    csv(tmp_path / "visits-0.csv", 0)
    protected(tmp_path / "visits-*.csv").close()
    question = ["query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1"]
    there = [*question, "--catalog", str(tmp_path / "visits.lapwing.toml"), "--output"]
    assert main([*there, str(tmp_path / "visits-1.csv")]) == 2
    assert "belongs to the data set" in capsys.readouterr().err
    assert main([*there, str(tmp_path / "answer.json")]) == 0


@pytest.mark.long
def test_public_files_may_be_several(visits: Path) -> None:
    protected(visits).close()
    for place, plan in enumerate("ab"):
        path = visits.parent / "plans" / f"{place}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"plan,kind\n{plan},kind {plan}\n")
    command = ["init", str(visits), "--privacy-unit", "person", "--epsilon", "10000000", "--max-rows", "1"]
    toml = visits.parent / "lapwing.toml"
    more = ["--public", str(visits.parent / "plans"), "--output", str(toml), "--types", "year=integer"]
    assert main([*command, *more]) == 0
    catalog = load(toml)
    sources = [catalog.tables[0].source, catalog.public_tables[0].source]
    assert sources == ["visits/**/*.parquet", "plans/**/*.csv"]
    with lw.connect(toml) as session:
        answer = session.sql(
            "SELECT COUNT(*) AS n FROM visits JOIN plans USING (plan) WHERE kind = 'kind a'", epsilon=10**5
        )
        assert answer.rows()[0]["n"] == 40


# ---- for a draft -----------------------------------------------------------------------------------------------------


def test_types_of_folders_are_guessed_for_a_curator(tmp_path: Path) -> None:
    for folder in ("day=2024-01-01/n=1/code=01", "day=2024-01-02/n=20/code=02"):
        parquet(tmp_path / "visits" / folder / "p.parquet", 0)
    source = named(tmp_path / "visits")
    assert partition_keys(source) == ("day", "n", "code")
    assert guessed_types(source) == {"day": "date", "n": "integer", "code": "string"}


def test_types_are_for_folders_where_files_have_theirs(visits: Path) -> None:
    with pytest.raises(lw.CatalogError, match="declares its types"):
        protected(visits, types={"person": "string"})
