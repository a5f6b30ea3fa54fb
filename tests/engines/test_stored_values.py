"""How a catalog says that stored values are read: on DuckDB, against an independent reading in Python."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Column
from lapwing.engines import stored_values
from lapwing.engines.duckdb import bounded_values, cleaned
from lapwing.sources import fetch
from lapwing.sources.conforming import candidates
from tests.support.effort import one_in, only
from tests.support.engines.stored_values import CASES, Case, awkward_texts
from tests.support.sources import rows


def read(column: Column, stored: pa.Array) -> list[Any]:
    with duckdb.connect() as connection:
        stored_rows = pa.table({"place": range(len(stored)), "x": stored})  # noqa: F841  # which the query names
        ((physical,),) = connection.execute("SELECT DISTINCT typeof(x) FROM stored_rows").fetchall()
        query = f"SELECT {cleaned.clean(column, physical)} FROM stored_rows ORDER BY place"
        return [value for (value,) in connection.execute(query).fetchall()]


@pytest.mark.parametrize("name", only([0], CASES))
def test_values_are_read_as_the_catalog_says(name: str) -> None:
    case = CASES[name]
    if name == "dates with codes":  # which names a form that Python's reading here does not have
        assert [str(value)[:10] for value in read(case.column, case.stored)] == [
            "2024-01-05", "None", "None", "2024-03-01", "None", "None",
        ]  # fmt: skip
        return
    assert read(case.column, case.stored) == case.expected()


@pytest.mark.parametrize(
    "name", only([0], [name for name, case in CASES.items() if pa.types.is_string(case.stored.type)])
)
def test_every_text_has_an_outcome(name: str) -> None:
    texts = awkward_texts(300)
    found = read(CASES[name].column, pa.array(texts))
    assert len(found) == len(texts)
    kinds = {"string": str, "boolean": bool, "date": object, "timestamp": object}
    assert all(value is None or isinstance(value, kinds.get(CASES[name].kind, int)) for value in found)


def test_a_twin_that_bounds_first_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing values that are looked for after bounds are never found: the tests above see it."""
    case = CASES["codes in text"]

    def bounded_first(column: Column, physical: str) -> str:
        bounded = cleaned._clean(replace(column, reading=None), physical)
        codes = ", ".join(str(code) for code in case.missing if isinstance(code, int))
        return f"CASE WHEN {bounded} IN ({codes}) THEN NULL ELSE {bounded} END"

    monkeypatch.setattr(cleaned, "clean", bounded_first)
    assert read(case.column, case.stored) != case.expected()


def test_a_twin_that_forgets_an_option_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_values, "_marks", lambda reading: ())
    case = CASES["money"]
    assert read(case.column, case.stored) != case.expected()


@pytest.mark.long
def test_a_code_is_looked_up_once() -> None:
    """What a value stands for is not looked up again."""
    case = Case(
        entry='type = "integer", lower = 0, upper = 9, missing = [1], recode = { "2" = 1, "1000" = 2 }',
        stored=pa.array(["1", "2", "1000", "3"]),
        kind="integer",
    )
    assert read(case.column, case.stored) == [None, 1, 2, 3]


# ---- through to answers ----------------------------------------------------------------------------------------------

POLL: dict[str, Any] = {
    "privacy_unit": "id",
    "max_rows_per_unit": 1,
    "epsilon": 10_000,
    "types": {"id": "integer", "x": "integer"},
}


@pytest.mark.long
def test_a_code_for_no_answer_is_in_no_mean(tmp_path: Path) -> None:
    """-99 is 'no answer' in the codebook, and bounds are 0 to 60: they came first, so that the mean was 23.84."""
    values = [-99 if i % 5 == 0 else i % 60 for i in range(2000)]
    (tmp_path / "poll.csv").write_text("id,x\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    with lw.protect(tmp_path / "poll.csv", **POLL, bounds={"x": (0, 60)}, missing={"x": [-99]}) as session:
        asked = ("AVG(x) AS m", "AVG(x) AS m, COUNT(x) AS n", "COUNT(*) FILTER (WHERE x IS NULL) AS n")
        means: list[Any] = [session.sql(f"SELECT {one} FROM poll", epsilon=2000).rows()[0] for one in asked]
    there = [value for value in values if value != -99]
    assert abs(means[0]["m"] - sum(there) / len(there)) < 0.01
    assert abs(means[1]["n"] - len(there)) <= 1
    assert abs(means[2]["n"] - 400) <= 1


CODES = (
    ("x < 5", 1), ("x > 100", 1), ("x <> 7", 2), ("x IS NULL", 3), ("x IS DISTINCT FROM 7", 5), ("NOT x = -99", 4),
    ("x = 7", 2), ("FLOOR(x / 10) = 1", 0), ("x + 1 < 5", 1), ("x < -50", 0),
)  # fmt: skip
"""Conditions, and how many rows of 2, 7, 7, 999, NULL and twice the code -99 they keep, as x has bounds 0 to 60."""
STORED = [2, 7, 7, 999, None, -99, -99]


@pytest.mark.parametrize("kind", one_in(2, [pa.int64(), pa.string()]))
def test_a_code_for_no_answer_is_null_in_conditions(kind: pa.DataType, tmp_path: Path) -> None:
    assert kept_by_conditions(kind, tmp_path) == [count for _, count in CODES]


@pytest.mark.long
def test_a_twin_whose_conditions_see_the_code_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_values, "read", lambda column, physical: cleaned.plain(column, physical, '"x"'))
    assert kept_by_conditions(pa.int64(), tmp_path) != [count for _, count in CODES]


def kept_by_conditions(
    kind: pa.DataType, folder: Path, engine: str = "", codes: Iterable[tuple[str, int]] = CODES
) -> list[Any]:
    """Ask how many rows the conditions keep."""
    values = [value if value is None or kind == pa.int64() else str(value) for value in STORED]
    pq.write_table(pa.table({"id": range(len(values)), "x": pa.array(values, kind)}), folder / "poll.parquet")
    (folder / "lapwing.toml").write_text(
        f"""
[dataset]
name = "poll"
ledger = "sqlite:poll.db"
{engine}
[budget]
epsilon = 1e7
[tables.poll]
source = "poll.parquet"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.poll.columns]
x = {{ type = "integer", lower = 0, upper = 60, missing = [-99] }}
"""
    )
    with lw.connect(folder / "lapwing.toml") as session:
        asked = [f"SELECT COUNT(*) AS n FROM poll WHERE {condition}" for condition, _ in codes]
        return [session.sql(text, epsilon=10_000).rows()[0]["n"] for text in asked]


@pytest.mark.long
def test_a_unit_that_is_missing_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "poll.csv").write_text("id,x\n" + "-1,5\n" * 300 + "".join(f"{i},7\n" for i in range(10)))
    with lw.protect(tmp_path / "poll.csv", **{**POLL, "max_rows_per_unit": 400}, missing={"id": [-1]}) as session:
        found: Any = session.sql("SELECT COUNT(*) AS n FROM poll", epsilon=9000).rows()[0]["n"]
    assert abs(found - 10) <= 2


@pytest.mark.long
def test_public_tables_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("id,code\n1,a\n2,b\n3,a\n")
    (tmp_path / "codes.csv").write_text('code,price\na,"1.234,50 €"\nb,-99\n')
    (tmp_path / "lapwing.toml").write_text(
        """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1000
[tables.visits]
source = "visits.csv"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.visits.columns]
id = { type = "integer" }
code = { type = "string" }
[tables.codes]
source = "codes.csv"
public = true
[tables.codes.columns]
code = { type = "string" }
price = { type = "decimal", step = 0.5, decimal_mark = ",", thousands_mark = ".", currency = "€", missing = [-99] }
"""
    )
    with lw.connect(tmp_path / "lapwing.toml") as session:
        found: Any = session.sql("SELECT SUM(price) AS s FROM visits JOIN codes USING (code)", epsilon=900).rows()[0][
            "s"
        ]
        assert session.tables["codes"].columns[1].missing == ("-99",)
    assert abs(float(found) - 2469) < 60


def test_a_source_stores_what_it_delivers(tmp_path: Path) -> None:
    """Whether all texts look like dates must not decide how each is read."""
    pq.write_table(pa.table({"id": [1, 2], "day": ["2024-03-01", "2024-03-02"]}), tmp_path / "t.parquet")
    made = rows.catalog(
        tmp_path,
        "parquet:t.parquet",
        columns={"id": '{ type = "integer" }', "day": '{ type = "date", format = "%Y-%d-%m" }'},
        unit="id",
    )
    assert candidates(made.tables[0].columns[1]) == []
    snapshot = fetch(made)
    assert rows.exact(snapshot.located(made), "SELECT COUNT(*) FROM visits WHERE day = DATE '2024-01-03'") == {(): (1,)}
