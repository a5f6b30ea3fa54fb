"""What is said of public tables is true of the rows that questions see, and of one version of the data."""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lapwing.catalog import public as completion
from lapwing.catalog.model import PublicTable
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb import stamps
from lapwing.engines.duckdb.cleaned import clean
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import DataFault, InvalidParameter
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import TEXT, Fixed, Real
from lapwing.query.relations.public_rows import PublicFacts
from tests.support.effort import one_in, only
from tests.support.engines.tables import HEAD, parquet

PROTECTED = '[tables.people]\nsource = "people.parquet"\nprivacy_unit = "row"\n'


class Opened:
    """One public table t, and its facts."""

    def __init__(self, folder: Path, columns: dict[str, str], source: str = "t.parquet") -> None:
        lines = "".join(f'"{name}" = {declared}\n' for name, declared in columns.items())
        text = f'{HEAD}{PROTECTED}[tables.t]\nsource = "{source}"\npublic = true\n[tables.t.columns]\n{lines}'
        self.catalog = loads(text, file="t.toml", folder=folder)
        (self.table,) = self.catalog.public_tables
        self.data = PublicData(self.catalog, threads=1)

    def ends(self, name: str) -> object:
        (kind,) = (column.type for column in self.data.columns(self.table) if column.name == name)
        return kind.interval() if isinstance(kind, Fixed) and kind.bounded else None

    def cleaned(self, name: str) -> list[Any]:
        """Return a column as questions see it: in steps if it is bounded."""
        described = next(c for c in self.data.described(self.table).columns if c.name == name)
        source = self.data.source(self.table)
        query = f"SELECT {clean(described, source.types[name])} FROM {source.relation}"
        return [value for (value,) in self.data._open().connection.cursor().execute(query).fetchall()]


Open = Callable[..., Opened]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Write a file and open it as a public table."""
    found: list[Opened] = []

    def open_table(content: dict[str, Any] | str, columns: dict[str, str]) -> Opened:
        source = "t.csv" if isinstance(content, str) else "t.parquet"
        if isinstance(content, str):
            (tmp_path / source).write_text(content, encoding="utf-8")
        else:
            parquet(tmp_path, content)
        found.append(Opened(tmp_path, columns, source))
        return found[-1]

    yield open_table
    for one in found:
        one.data.close()


CODES = "code,chapter,weight\nA00,1,0.5\nA00,2,2.25\nB10,2,\n,2,-1\n"
COLUMNS = {
    "code": '{ type = "string" }',
    "chapter": '{ type = "integer" }',
    "weight": '{ type = "decimal", step = 0.1 }',
}


@pytest.mark.long
def test_the_facts_of_a_small_table(opened: Open) -> None:
    codes = opened(CODES, COLUMNS)
    facts: PublicFacts = codes.data
    table = codes.table
    assert facts.columns(table) == (
        ColumnReference(name="code", type=TEXT),
        ColumnReference(name="chapter", type=Fixed(step=Fraction(1), low=1, high=2)),
        ColumnReference(name="weight", type=Fixed(step=Fraction(1, 10), low=-10, high=23)),
    )
    assert codes.ends("weight") == (Fraction(-1), Fraction(23, 10))
    assert codes.ends("code") is None
    assert facts.values(table, "code", 10) == ("A00", "B10")
    assert facts.values(table, "chapter", 2) == (1, 2)
    assert facts.values(table, "chapter", 1) is None
    assert [facts.multiplicity(table, names) for names in (["code"], ["chapter"], ["code", "chapter"], [])] == [
        2,
        3,
        1,
        4,
    ]


def test_a_described_table_is_asked_about_like_its_own(opened: Open) -> None:
    codes = opened(CODES, COLUMNS)
    described = codes.data.described(codes.table)
    assert described != codes.table
    assert codes.data.described(described) == described
    assert codes.data.digest(described) == codes.data.digest(codes.table)


# ---- bounds ----------------------------------------------------------------------------------------------------------

RANDOM = random.Random("public bounds")
NUMBERS: dict[str, tuple[str, list[Any]]] = {
    "integers": ('{ type = "integer" }', [RANDOM.randrange(-(10**6), 10**6) for _ in range(50)]),
    "integers in fives": ('{ type = "integer", step = 5 }', [-7, 8, None, 13]),
    "floats": ('{ type = "float" }', [RANDOM.uniform(-1, 1000) for _ in range(50)] + [nan, None]),
    "floats far from zero": ('{ type = "float" }', [1e9 + RANDOM.random() * 1e-6 for _ in range(50)]),
    "floats near zero": ('{ type = "float" }', [RANDOM.uniform(-1e-9, 1e-9) for _ in range(50)]),
    "floats of all sizes": ('{ type = "float" }', [2.0**e for e in range(-1000, 60, 7)]),
    "large floats": ('{ type = "float" }', [-1e30, 5e31]),
    "one float": ('{ type = "float" }', [0.1, 0.1]),
    "zeros": ('{ type = "float" }', [0.0, -0.0]),
    "floats in tenths": ('{ type = "float", step = 0.1 }', [0.04, 0.05, 0.15, -3.25]),
    "decimals": ('{ type = "decimal", step = 0.01 }', [0.005, 0.015, -0.005, 17.0]),
    "declared bounds": ('{ type = "integer", lower = 0, upper = 100 }', [5, 17, None]),
}


@pytest.mark.parametrize("name", only([0], NUMBERS))
def test_bounds_hold_and_move_nothing(name: str, opened: Open) -> None:
    declared, values = NUMBERS[name]
    assert not moved(opened({"x": values}, {"x": declared}), values)


def moved(table: Opened, values: list[Any]) -> list[object]:
    """Return the values that questions see outside the bounds, or by more than half a step elsewhere."""
    column, *_ = table.data.columns(table.table)
    assert isinstance(column.type, Fixed)
    assert column.type.low is not None
    assert column.type.high is not None
    step, slack = column.type.step, Fraction(1, 2**20)
    wrong: list[object] = []
    for value, cleaned in zip(values, table.cleaned("x"), strict=True):
        if value is None or value != value:
            wrong += [value] if cleaned is not None else []
        elif not column.type.low <= cleaned <= column.type.high:
            wrong.append(cleaned)
        elif isfinite(value) and abs(Fraction(value) - cleaned * step) > step / 2 * (1 + slack):
            wrong.append(value)
    return wrong


def test_a_bound_inside_the_data_is_found(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "ceil", lambda value: int(value) - 1)
    assert moved(opened({"x": [0.0, 0.3, 0.9]}, {"x": '{ type = "float" }'}), [0.0, 0.3, 0.9]) == [0.9]


def test_bounds_are_tight(opened: Open) -> None:
    table = opened({"x": [3, 9], "y": [0.25, 0.5]}, {"x": '{ type = "integer" }', "y": '{ type = "float" }'})
    assert table.ends("x") == (3, 9)
    assert table.ends("y") == (Fraction(1, 4), Fraction(1, 2))


def test_declared_bounds_are_narrowed_and_never_widened(opened: Open) -> None:
    declared = '{ type = "integer", lower = 0, upper = 10 }'
    table = opened({"x": [-5, 3], "y": [30, 40], "z": [2, 4]}, dict.fromkeys("xyz", declared))
    assert [table.ends(name) for name in "xyz"] == [(0, 3), (10, 10), (2, 4)]


def test_infinities_become_the_bounds(opened: Open) -> None:
    values = [-inf, 1.0, 4.0, inf, nan]
    table = opened({"x": values}, {"x": '{ type = "float" }'})
    assert table.ends("x") == (1, 4)
    step = next(column.step for column in table.data.described(table.table).columns)
    assert step is not None
    assert [None if cleaned is None else cleaned * step for cleaned in table.cleaned("x")] == [1, 1, 4, 4, None]


@pytest.mark.parametrize(
    ("declared", "values"),
    only(
        [0],
        [
            ('{ type = "float" }', [None, nan, inf]),
            ('{ type = "float" }', [1e100, -1e300]),
            ('{ type = "integer" }', [0, 2**62]),
            ('{ type = "decimal", step = 0.0000000001 }', [0.0, 1e9]),
            ('{ type = "integer" }', pa.array([None, None], pa.int64())),
        ],
        many=True,
    ),
)
def test_what_no_catalog_can_hold_stays_unbounded(declared: str, values: Any, opened: Open) -> None:
    table = opened({"x": values}, {"x": declared})
    (column,) = table.data.columns(table.table)
    assert isinstance(column.type, Fixed | Real)
    assert not column.type.bounded
    assert table.ends("x") is None
    if isinstance(column.type, Real):
        assert table.data.values(table.table, "x", 10) is None


# ---- values ----------------------------------------------------------------------------------------------------------


def test_values_are_sorted_by_bytes_and_number(opened: Open) -> None:
    content = {
        "s": ["b", "Z", "é", "\U0001f600", "", "a\0", None, "\uffff"],
        "i": [10, 9, -1, 10, None, 9, 9, 9],
        "d": [date(2020, 1, 2), date(1999, 1, 1), *[None] * 6],
        "b": [True, *[None] * 7],
        "t": pa.array([datetime(2020, 1, 2, 3, tzinfo=UTC), *[None] * 7], pa.timestamp("us", "UTC")),
    }
    kinds = {"s": "string", "i": "integer", "d": "date", "b": "boolean", "t": "timestamp"}
    table = opened(content, {name: f'{{ type = "{kind}" }}' for name, kind in kinds.items()})
    found = {name: table.data.values(table.table, name, 10) for name in kinds}
    assert found == {
        "s": ("", "Z", "b", "é", "\uffff", "\U0001f600"),
        "i": (-1, 9, 10),
        "d": (date(1999, 1, 1), date(2020, 1, 2)),
        "b": (False, True),
        "t": (datetime(2020, 1, 2, 3),),
    }
    assert all(type(value) is Fraction for value in found["i"] or ())


def test_dates_that_python_cannot_hold_are_no_keys(opened: Open) -> None:
    days = "d,t\n2020-01-01,2020-01-01 00:00:00\ninfinity,infinity\n10000-01-01,20000-01-01 00:00:00\n"
    table = opened(days, {"d": '{ type = "date" }', "t": '{ type = "timestamp" }'})
    assert table.data.values(table.table, "d", 10) == (date(2020, 1, 1),)
    assert table.data.values(table.table, "t", 10) == (datetime(2020, 1, 1),)


def test_listed_values_are_those_of_the_catalog(opened: Open) -> None:
    columns = {"size": '{ type = "string", values = ["S", "M", "L"] }', "n": '{ type = "integer", values = [7, 1] }'}
    table = opened({"size": ["L", "S", "XL", "S"], "n": [1, 7, 1, 2]}, columns)
    assert table.data.values(table.table, "size", 1) == ("S", "M", "L")
    assert table.data.values(table.table, "n", 1) == (7, 1)
    assert table.ends("n") == (1, 7)


def test_a_listed_value_that_the_data_lack_stays_inside_the_bounds(opened: Open) -> None:
    for declared in (
        '{ type = "integer", values = [3, 9] }',
        '{ type = "integer", lower = 0, upper = 10, values = [9] }',
    ):
        table = opened({"n": [3]}, {"n": declared})
        assert table.ends("n") == (3, 9)


# ---- repetitions -----------------------------------------------------------------------------------------------------


def most(rows: list[tuple[Any, ...]]) -> int:
    return max(Counter(row for row in rows if None not in row).values(), default=0)


def wrong_multiplicities(table: Opened, content: dict[str, list[Any]]) -> list[tuple[str, ...]]:
    """Return the sets of columns whose stated multiplicity is not what counting in Python finds."""
    subsets = [("a",), ("b",), ("c",), ("a", "b"), ("c", "a"), ("a", "b", "c"), ("a", "a")]
    return [
        names
        for names in subsets
        if table.data.multiplicity(table.table, names)
        != most(list(zip(*(content[name] for name in names), strict=True)))
    ]


KEYS = {"a": '{ type = "integer" }', "b": '{ type = "string" }', "c": '{ type = "date" }'}


def some_content(seed: str) -> dict[str, list[Any]]:
    source = random.Random(seed)
    days = [date(2020, 1, 1), date(2020, 1, 2), None]
    size = source.randrange(1, 40)
    return {
        "a": [source.choice([1, 2, 3, None]) for _ in range(size)],
        "b": [source.choice(["x", "X", "", None]) for _ in range(size)],
        "c": [source.choice(days) for _ in range(size)],
    }


def typed(content: dict[str, list[Any]]) -> dict[str, Any]:
    kinds = {"a": pa.int64(), "b": pa.string(), "c": pa.date32()}
    return {name: pa.array(values, kinds[name]) for name, values in content.items()}


@pytest.mark.parametrize("seed", only([0], [f"seed {i}" for i in range(12)]))
def test_multiplicity_is_the_most_rows_that_share_values(seed: str, opened: Open) -> None:
    content = some_content(seed)
    assert wrong_multiplicities(opened(typed(content), KEYS), content) == []


def test_counting_null_as_a_value_is_found(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    content: dict[str, list[Any]] = {"a": [1, None, None], "b": ["x", "y", "z"], "c": [None] * 3}
    table = opened(typed(content), KEYS)
    fetch = PublicData.fetch
    monkeypatch.setattr(
        PublicData, "fetch", lambda self, read, sql: fetch(self, read, sql.replace("IS NOT NULL", "IS NULL OR true"))
    )
    assert ("a",) in wrong_multiplicities(table, content)


def test_a_join_finds_no_more_rows_than_was_said(opened: Open) -> None:
    """Values that cleaning makes equal are equal: here 1.04 and 0.96, and everything above the bound."""
    declared = '{ type = "decimal", lower = 0, upper = 5, step = 0.1 }'
    table = opened({"x": [1.04, 0.96, 1.0, 5.0, 6.0, 7.0, inf, None]}, {"x": declared})
    cleaned = [value for value in table.cleaned("x") if value is not None]
    assert table.data.multiplicity(table.table, ["x"]) == max(Counter(cleaned).values()) == 4


def test_floats_without_steps_repeat_by_value(opened: Open) -> None:
    table = opened({"x": [1e300, 0.0, -0.0, nan, nan, nan, None, None, None]}, {"x": '{ type = "float" }'})
    assert table.data.multiplicity(table.table, ["x"]) == 2


@pytest.mark.long
def test_an_empty_table(opened: Open) -> None:
    table = opened("code,chapter,weight\n", COLUMNS)
    assert table.data.multiplicity(table.table, []) == 0
    assert table.data.multiplicity(table.table, ["code"]) == 0
    assert table.data.values(table.table, "code", 10) == ()
    assert table.ends("chapter") is None


def test_a_table_without_columns(opened: Open) -> None:
    table = opened({"x": [1, 2, 3]}, {})
    assert table.data.multiplicity(table.table, []) == 3


# ---- files -----------------------------------------------------------------------------------------------------------


def facts(table: Opened) -> list[Callable[[], object]]:
    data, described = table.data, table.table
    return [
        lambda: data.described(described),
        lambda: data.columns(described),
        lambda: data.values(described, "code", 10),
        lambda: data.multiplicity(described, ["code"]),
        lambda: data.multiplicity(described, []),
        lambda: data.digest(described),
        lambda: data.source(described),
    ]


def test_facts_are_of_the_version_that_was_read_first(opened: Open, tmp_path: Path) -> None:
    codes = opened(CODES, COLUMNS)
    first = [fact() for fact in facts(codes)]
    (tmp_path / "t.csv").write_text(CODES.replace("A00,2", "A00,3"), encoding="utf-8")
    for fact in facts(codes):
        with pytest.raises(DataFault, match=r"t\.csv of table t is not what it was .* open a new session"):
            fact()
    (tmp_path / "t.csv").write_text(CODES, encoding="utf-8")
    assert [fact() for fact in facts(codes)] == first
    os.link(tmp_path / "t.csv", tmp_path / "other.csv")
    assert [fact() for fact in facts(codes)] == first
    (tmp_path / "t.csv").unlink()
    for fact in facts(codes):
        with pytest.raises(DataFault, match=r"t\.csv of table t is missing"):
            fact()


def test_facts_that_outlive_their_data_would_be_found(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = opened(CODES, COLUMNS)
    codes.data.multiplicity(codes.table, [])
    monkeypatch.setattr(stamps, "stamp_of", lambda path, table: codes.data._read["t"].stamp)
    (tmp_path / "t.csv").write_text(CODES.replace("A00,2", "A00,3"), encoding="utf-8")
    assert codes.ends("chapter") == (1, 2)


def test_a_file_that_changes_while_it_is_read(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = opened(CODES, COLUMNS)
    fetch = PublicData.fetch

    def change(*given: Any) -> Any:
        (tmp_path / "t.csv").write_text(CODES * 2, encoding="utf-8")
        return fetch(*given)

    with monkeypatch.context() as patched:
        patched.setattr(PublicData, "fetch", change)
        with pytest.raises(DataFault, match="is not what it was"):
            codes.data.multiplicity(codes.table, [])
    (tmp_path / "t.csv").write_text(CODES, encoding="utf-8")
    assert codes.data.multiplicity(codes.table, []) == 4


def test_the_digest_is_of_the_content(opened: Open, tmp_path: Path) -> None:
    codes = opened(CODES, COLUMNS)
    first = codes.data.digest(codes.table)
    assert opened(CODES, COLUMNS).data.digest(codes.table) == first
    assert opened(CODES + "C,9,9\n", COLUMNS).data.digest(codes.table) != first


BROKEN = {
    "a field too many": ("code,chapter,weight\na,1,1,1\n", "cannot be read to its end"),
    "an open quote": ('code,chapter,weight\n"a,1,1\nb,2,2\n', "cannot be read to its end"),
    "nothing": ("", "cannot be read to its end"),
    "a column less": ("code,chapter\na,1\n", "has no column weight; it has code, chapter"),
}


@pytest.mark.parametrize("name", one_in(4, BROKEN))
def test_a_broken_file(name: str, opened: Open) -> None:
    content, message = BROKEN[name]
    codes = opened(content, COLUMNS)
    for _ in range(2):
        with pytest.raises(DataFault, match=message):
            codes.data.multiplicity(codes.table, [])


def test_names_that_differ_by_case_alone(opened: Open) -> None:
    codes = opened({"code": ["a"], "Code": ["b"]}, {"code": '{ type = "string" }'})
    with pytest.raises(DataFault, match="several columns called code that differ only in case"):
        codes.data.multiplicity(codes.table, [])


def test_a_file_that_is_no_parquet(opened: Open, tmp_path: Path) -> None:
    codes = opened({"code": ["a"]}, {"code": '{ type = "string" }'})
    (tmp_path / "t.parquet").write_bytes(b"PAR1" * 10)
    with pytest.raises(DataFault, match="cannot be read to its end"):
        codes.data.multiplicity(codes.table, [])


def test_a_path_that_is_a_pattern(tmp_path: Path) -> None:
    parquet(tmp_path, {"x": [1]}, "t[1].parquet")
    found = Opened(tmp_path, {"x": '{ type = "integer" }'}, "t[1].parquet")
    with pytest.raises(DataFault, match="which the engine reads as a pattern"):
        found.data.multiplicity(found.table, [])


def test_a_protected_file_by_another_name_is_not_public(opened: Open, tmp_path: Path) -> None:
    codes = opened({"x": [1]}, {"x": '{ type = "integer" }'})
    for link in (os.link, os.symlink):
        link(tmp_path / "t.parquet", tmp_path / "people.parquet")
        with pytest.raises(DataFault, match="is the source of the protected table people, and a protected file"):
            codes.data.multiplicity(codes.table, [])
        (tmp_path / "people.parquet").unlink()
    assert codes.data.multiplicity(codes.table, []) == 1


def test_nothing_else_can_be_read(opened: Open, tmp_path: Path) -> None:
    parquet(tmp_path, {"x": [42]}, "people.parquet")
    codes = opened({"x": [1]}, {"x": '{ type = "integer" }'})
    codes.data.multiplicity(codes.table, [])
    for query in (f"SELECT * FROM read_parquet('{tmp_path}/people.parquet')", "SET threads = 64", "INSTALL httpfs"):
        with pytest.raises(duckdb.Error):
            codes.data._open().connection.cursor().execute(query)


def test_unknown_names(opened: Open) -> None:
    codes = opened(CODES, COLUMNS)
    with pytest.raises(InvalidParameter, match="public table t has no column cod; it has code, chapter, weight"):
        codes.data.multiplicity(codes.table, ["cod"])
    with pytest.raises(InvalidParameter, match="no public table u"):
        codes.data.multiplicity(PublicTable(name="u", source="t.csv", columns=()), [])
    assert codes.data.multiplicity(replace(codes.table, columns=()), []) == 4


@pytest.mark.long
def test_many_threads_get_the_same_facts(opened: Open) -> None:
    codes = opened(CODES, COLUMNS)
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = [list(pool.map(lambda fact: fact(), facts(codes))) for _ in range(3)]
    assert found[0] == found[1] == found[2]


def test_nothing_is_opened_before_it_is_wanted(tmp_path: Path) -> None:
    data = Opened(tmp_path, COLUMNS, "absent.csv").data
    assert data._database is None
    data.close()


def test_the_folder_goes_with_the_database(opened: Open) -> None:
    codes = opened(CODES, COLUMNS)
    codes.data.multiplicity(codes.table, [])
    ((folder,),) = codes.data._open().connection.cursor().execute("SELECT current_setting('temp_directory')").fetchall()
    assert Path(folder).is_dir()
    codes.data.close()
    assert not Path(folder).exists()
    codes.data.close()


@pytest.mark.long
def test_ctrl_c_stops_a_fact(opened: Open, interruptible: None) -> None:
    codes = opened(CODES, COLUMNS)
    codes.data.multiplicity(codes.table, [])
    read = codes.data._read["t"]
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def interrupted() -> None:  # caught as well if the machine is so slow that the signal comes before the query
        timer.start()
        codes.data.fetch(read, "SELECT COUNT(*) FROM range(1000000000000000) WHERE hash(range) % 7 = 3")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    timer.join()
    assert codes.data.multiplicity(codes.table, []) == 4
