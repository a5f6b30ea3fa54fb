"""Files of JSON lines: their columns are those that the curator types, and what cannot be read is refused or NULL."""

import gzip
import json
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.catalog.file_columns import guessed_types
from lapwing.cli import main
from tests.support.effort import one_in, only

TYPES = {"person": "integer", "plan": "string", "cost": "decimal:0.01", "day": "date", "member": "boolean"}


def rows_of(count: int = 300) -> list[dict[str, object]]:
    return [
        {"person": n, "plan": "ab"[n % 2], "cost": n % 7 + 0.5, "day": f"2024-01-{n % 28 + 1:02}", "member": n % 3 == 0,
         "more": {"of": [n]}}
        for n in range(count)
    ]  # fmt: skip


def write(path: Path, lines: list[str]) -> Path:
    text = "\n".join([*lines, ""]).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def protected(path: Path, **more: object) -> lw.Session:
    usual = {
        "privacy_unit": "person",
        "epsilon": 10**7,
        "max_rows_per_unit": 1,
        "types": TYPES,
        "bounds": {"cost": (0, 10), "day": ("2024-01-01", "2024-12-31")},
        "domains": {"plan": ["a", "b"]},
    }
    return lw.protect(path, **{**usual, **more})  # type: ignore[arg-type]


def one(session: lw.Session, expression: str) -> object:
    (row,) = session.sql(f"SELECT {expression} AS x FROM visits", epsilon=10**5)
    return row["x"]


@pytest.mark.long
@pytest.mark.parametrize("ending", one_in(3, [".jsonl", ".ndjson", ".jsonl.gz"]))
def test_it_is_read_like_any_other(tmp_path: Path, ending: str) -> None:
    rows = rows_of()
    with protected(write(tmp_path / f"visits{ending}", [json.dumps(row) for row in rows])) as session:
        answer = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=10**5)
        assert [(row["plan"], row["n"]) for row in answer] == [("a", 150), ("b", 150)]
        assert one(session, "SUM(cost)") == sum(float(str(row["cost"])) for row in rows)
        assert one(session, "COUNT(*) FILTER (WHERE day = DATE '2024-01-05')") == 11
        assert one(session, "COUNT(*) FILTER (WHERE member)") == 100


def test_what_a_line_lacks_is_null_and_an_empty_line_is_no_row(tmp_path: Path) -> None:
    lines = ['{"person": 1, "plan": "a"}', "", '{"person": 2, "plan": null}', "  ", '{"person": 3, "plan": ""}']
    with protected(write(tmp_path / "visits.jsonl", lines)) as session:
        assert one(session, "COUNT(*)") == 3
        assert one(session, "COUNT(plan)") == 2, "an empty text is a text"


def test_a_text_that_is_a_number_is_a_number_where_one_is_declared(tmp_path: Path) -> None:
    lines = ['{"person": "1", "cost": "2.50"}', '{"person": 2, "cost": 2.5}', '{"person": 3, "cost": 25e-1}']
    with protected(write(tmp_path / "visits.jsonl", lines)) as session:
        assert one(session, "SUM(cost)") == 7.5


@pytest.mark.parametrize("value", only([0], ['"A1"', "true", "[1]", '{"a": 1}', '"3.5.2024"']))
def test_what_is_not_of_its_type_is_refused_unless_it_is_to_be_null(tmp_path: Path, value: str) -> None:
    lines = [json.dumps(row) for row in rows_of(100)] + [f'{{"person": 100, "cost": {value}}}']
    path = write(tmp_path / "visits.jsonl", lines)
    with pytest.raises(lw.DataFault, match="not of the declared type in cost"):
        protected(path)
    with protected(path, unreadable="null") as session:
        assert (one(session, "COUNT(*)"), one(session, "COUNT(cost)")) == (101, 100)


@pytest.mark.parametrize(
    "line",
    only(
        [0],
        [
            '{"person": 1',
            "[1, 2]",
            "5",
            '{"person": 1}{"person": 2}',
            '{"person": 1, "person": 2}',
            '{"plan": "\\ud800"}',
        ],
    ),
)
@pytest.mark.parametrize("first", only([0], [True, False]))
def test_a_line_that_is_no_object_is_no_data(tmp_path: Path, line: str, first: bool) -> None:
    lines = [json.dumps(row) for row in rows_of(100)]
    path = write(tmp_path / "visits.jsonl", [line, *lines] if first else [*lines, line])
    with pytest.raises(lw.DataFault, match="cannot be read to its end"):
        protected(path)
    assert not (tmp_path / "visits.lapwing.toml").exists()


def test_a_file_that_is_cut_off_is_no_data(tmp_path: Path) -> None:
    path = write(tmp_path / "visits.jsonl.gz", [json.dumps(row) for row in rows_of(1000)])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(lw.DataFault, match="cannot be read to its end"):
        protected(path)


def test_rows_do_not_decide_the_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "visits.jsonl", [json.dumps(row) for row in rows_of(100)])
    with pytest.raises(lw.CatalogError, match=r"must not decide its columns, so name each with its type"):
        protected(path, types=None, bounds={}, domains={})
    usual = ["--privacy-unit", "person", "--epsilon", "3", "--max-rows", "1", "--output", str(tmp_path / "c.toml")]
    assert main(["init", str(path), *usual]) == 2
    said = capsys.readouterr().err
    assert "person=integer,plan=string,cost=float,day=date,member=boolean" in said
    assert "more" not in said.partition("--types")[2].partition("\n")[0], "an object makes no column"
    with protected(path, types={"person": "integer"}, bounds={}, domains={}) as session:
        assert [column.name for column in session.tables["visits"].columns] == ["person"]
        with pytest.raises(lw.LapwingError, match="plan"):
            one(session, "COUNT(plan)")


def test_types_are_guessed_for_a_curator(tmp_path: Path) -> None:
    lines = ['{"a": 1, "b": 1, "c": null, "d": "2024-01-01", "e": "2024-01-01T10:00:00Z", "f": {}}',
             '{"a": 2.5, "b": "x", "d": "2024-01-02", "g": true, "": 1}']  # fmt: skip
    guessed = guessed_types(write(tmp_path / "visits.jsonl", lines))
    kinds = {"a": "float", "b": "string", "c": "string", "d": "date", "e": "timestamp", "g": "boolean"}
    assert guessed == kinds
    write(tmp_path / "visits.jsonl", ["[]"])
    with pytest.raises(lw.DataFault, match="not every line is an object"):
        guessed_types(tmp_path / "visits.jsonl")


def test_there_is_no_delimiter(tmp_path: Path) -> None:
    path = write(tmp_path / "visits.jsonl", [json.dumps(row) for row in rows_of(100)])
    with pytest.raises(lw.CatalogError, match="are for CSV files"):
        protected(path, delimiter=";")
