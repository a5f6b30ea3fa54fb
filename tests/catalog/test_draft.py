"""A draft holds names and types only, and what the curator gave."""

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from lapwing.catalog import Catalog, Column
from lapwing.catalog.draft import Draft, draft, table_name
from lapwing.catalog.toml import dumps, loads
from lapwing.errors import CatalogError, DataFault, InvalidParameter, LapwingError
from tests.support.effort import one_in

FILE = "visits.parquet: "
IN = FILE + "tables.visits"

ROWS = pa.table(
    {
        "person_id": pa.array([1, 2], pa.int64()),
        "small": pa.array([1, 2], pa.uint8()),
        "cost": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
        "tens": pa.array([None, None], pa.decimal128(9, 0)),
        "fare": pa.array([1.0, 2.0], pa.float32()),
        "paid": pa.array([True, None]),
        "plan": pa.array(["a", "b"]).dictionary_encode(),
        "town": pa.array(["x", "y"], pa.large_string()),
        "day": pa.array([date(2020, 1, 1), None]),
        "seen": pa.array([datetime(2020, 1, 1, tzinfo=UTC), None]),
        "list": pa.array([[1], [2]]),
        "blob": pa.array([b"a", b"b"]),
    }
)


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(ROWS, path)
    return path


def drafted(source: Path, **changes: Any) -> Draft:
    settings: dict[str, Any] = {"privacy_unit": "person_id", "epsilon": 3, "delta": 1e-6, "max_rows_per_unit": 5}
    return draft(source, **(settings | changes))


def by_name(catalog: Catalog) -> dict[str, Column]:
    return {column.name: column for column in catalog.tables[0].columns}


def test_bounds_may_have_a_decimal_comma(parquet: Path) -> None:
    bounds = by_name(drafted(parquet, bounds={"cost": ("0", "500,25")}).catalog)["cost"]
    assert (bounds.lower, bounds.upper) == (Fraction(0), Fraction(2001, 4))
    for grouped in ("5.000,00", "5,000.00", "5 000", "5\u202f000,0", "5'000"):
        assert by_name(drafted(parquet, bounds={"cost": ("0", grouped)}).catalog)["cost"].upper == 5000
    with pytest.raises(CatalogError, match=r"Write 5000, or 5\.000 with a decimal point"):  # it can mean two numbers
        drafted(parquet, bounds={"cost": ("0", "5,000")})


def test_parquet(parquet: Path) -> None:
    result = drafted(parquet, bounds={"cost": (0, 5000.5), "fare": (0, 1)}, values={"plan": ["a", "b"]})
    catalog = result.catalog
    table = catalog.tables[0]
    assert (catalog.name, catalog.engine, catalog.ledger) == ("visits", "duckdb", "sqlite:visits.lapwing.db")
    assert (table.name, table.source, table.privacy_unit, table.max_rows_per_unit) == (
        "visits", "visits.parquet", "person_id", 5,
    )  # fmt: skip
    assert catalog.folder == parquet.parent
    assert (catalog.budget.delta, catalog.budget.measure) == (Fraction(1, 10**6), "gdp")
    assert [(name, column.type) for name, column in by_name(catalog).items()] == [
        ("person_id", "integer"), ("small", "integer"), ("cost", "decimal"), ("tens", "decimal"), ("fare", "float"),
        ("paid", "boolean"), ("plan", "string"), ("town", "string"), ("day", "date"), ("seen", "timestamp"),
    ]  # fmt: skip
    cost = by_name(catalog)["cost"]
    assert (cost.lower, cost.upper, cost.step) == (Fraction(0), Fraction(10001, 2), Fraction(1, 100))
    assert by_name(catalog)["tens"].step == 1
    assert by_name(catalog)["plan"].values == ("a", "b")
    assert result.notes == (
        "Left out, because catalogs do not have their type: list (list<element: int64>), blob (binary).",
        "Without bounds, so not available for SUM and AVG: small, tens.",
        "Without listed values, so GROUP BY cannot use them unless part of delta is set aside for that "
        "(delta_keys): town.",
    )
    assert loads(dumps(catalog), file="x", folder=parquet.parent) == catalog


def test_text_is_read_as_the_column_s_type(parquet: Path) -> None:
    result = drafted(
        parquet,
        bounds={
            "cost": ("0", "5e3"),
            "day": ("2020-01-01", date(2024, 1, 1)),
            "seen": ("2020-01-01", datetime(2024, 1, 1)),
        },
        values={"small": ["1", 2], "paid": ["true"], "day": ["2021-01-01"], "plan": ["1", "true"]},
    )
    columns = by_name(result.catalog)
    assert columns["cost"].upper == 5000
    assert (columns["day"].lower, columns["day"].upper) == (date(2020, 1, 1), date(2024, 1, 1))
    assert columns["seen"].lower == datetime(2020, 1, 1, tzinfo=UTC)
    assert columns["seen"].upper == datetime(2024, 1, 1, tzinfo=UTC)
    assert columns["small"].values == (1, 2)
    assert columns["paid"].values == (True,)
    assert columns["day"].values == (date(2021, 1, 1),)
    assert columns["plan"].values == ("1", "true")


def poison(path: Path) -> None:
    """Destroy every page of rows; keep the footer."""
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = b"\xff" * (len(content) - footer - 4)
    path.write_bytes(content)


def test_rows_are_never_read(parquet: Path) -> None:
    clean = drafted(parquet)
    poison(parquet)
    assert drafted(parquet) == clean
    with pytest.raises((OSError, pa.ArrowException)):  # a draft that looked at rows would be caught
        pyarrow.parquet.read_table(parquet)


def test_statistics_are_never_read(parquet: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "visits.parquet"
    other.parent.mkdir()
    pyarrow.parquet.write_table(ROWS.slice(0, 0), other)
    assert dumps(drafted(parquet).catalog) == dumps(drafted(other).catalog)


VISITS = b"person_id,cost,plan,day,nothing,\np1,1.5,a,2020-01-01,,\np2,2,b,2020-01-02,,\n"
TYPES = {"cost": "decimal:0.01", "day": "date", "nothing": "integer"}


def csv(folder: Path, content: bytes = VISITS, name: str = "visits.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def types_of(drafted: Draft) -> dict[str, str]:
    return {column.name: column.type for column in drafted.catalog.tables[0].columns}


def test_csv(tmp_path: Path) -> None:
    result = drafted(csv(tmp_path, name="2024 visits.csv"), types=TYPES, bounds={"cost": (0, 10)})
    table = result.catalog.tables[0]
    assert (table.name, table.source) == ("t_2024_visits", "2024 visits.csv")
    assert result.catalog.ledger == "sqlite:2024 visits.lapwing.db"
    assert types_of(result) == {
        "person_id": "string", "cost": "decimal", "plan": "string", "day": "date", "nothing": "integer",
    }  # fmt: skip
    assert by_name(result.catalog)["cost"].step == Fraction(1, 100)
    assert result.notes[:3] == (
        'Left out, because catalogs do not have their type: "" (unnamed).',
        "Columns read as text, because the file holds no types and you gave none: person_id, plan.",
        "Without bounds, so not available for SUM and AVG: nothing.",
    )


def test_a_csv_file_without_types_is_text(tmp_path: Path) -> None:
    result = drafted(csv(tmp_path), values={"cost": ["2", "1.5"]})
    assert set(types_of(result).values()) == {"string"}
    assert by_name(result.catalog)["cost"].values == ("2", "1.5")


def test_all_types_of_a_catalog_can_be_given(tmp_path: Path) -> None:
    names = ("integer", "decimal", "float", "boolean", "string", "date", "timestamp")
    path = csv(tmp_path, ",".join(["person_id", *names]).encode() + b"\n")
    assert types_of(drafted(path, types={name: name for name in names})) == {"person_id": "string"} | {
        name: name for name in names
    }
    steps = drafted(path, types={"integer": "integer:10", "float": "float:0.5"}, bounds={"integer": (0, 100)}).catalog
    assert (by_name(steps)["integer"].step, by_name(steps)["float"].step) == (Fraction(10), Fraction(1, 2))


@pytest.mark.parametrize("rows", [b"", b"x,\xff\xfe,,,,\n", b'"', b"1,2\n1,2,3\n", b"5.5,a,,soon,0,\n"])
def test_rows_of_csv_are_never_read(tmp_path: Path, rows: bytes) -> None:
    names = VISITS.splitlines()[0] + b"\n"
    assert drafted(csv(tmp_path, names + rows), types=TYPES) == drafted(csv(tmp_path), types=TYPES)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"\xef\xbb\xbfperson_id,cost\n", ["person_id", "cost"]),
        (b'person_id,"a,""b"\r\n1,2\r\n', ["person_id", 'a,"b']),
        (b'person_id,"a\nb"\n', ["person_id", "a\nb"]),
        (b"person_id;cost,x", ["person_id;cost", "x"]),
        ("person_id,Größe\n".encode(), ["person_id", "Größe"]),
    ],
)
def test_the_first_line_of_csv_holds_the_names(tmp_path: Path, content: bytes, names: list[str]) -> None:
    assert list(types_of(drafted(csv(tmp_path, content), privacy_unit=names[0]))) == names


def test_tabs_stand_between_the_fields_of_tsv(tmp_path: Path) -> None:
    assert list(types_of(drafted(csv(tmp_path, b"person_id\ta,b\n", "visits.TSV")))) == ["person_id", "a,b"]


TEXT = "the file holds no type and none was given, so it is text, "


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"bounds": {"cost": (0, 1)}},
            f"tables.visits.columns.cost: {TEXT}which has no bounds; give its type, like --t",
        ),
        ({"values": {"cost": [1]}}, f"tables.visits.columns.cost: {TEXT}and its values must be texts; write them so,"),
        ({"types": {"cost": "number"}}, 'types.cost: "number" is unknown; write one of integer, decimal, float,'),
        ({"types": {"cost": "Integer"}}, 'types.cost: "Integer" is unknown'),
        ({"types": {"cost": 1}}, "types.cost: 1 is not a text; write one like 'integer' or 'decimal:0.01'"),
        ({"types": {"costs": "float"}}, 'types: there is no column "costs"; the columns are person_id, cost,'),
        ({"types": {"": "float"}}, 'types: the column "" has a type that a catalog cannot hold'),
        ({"types": {"day": "date:1"}}, 'types.day: "date:1" has a step, which is for numbers; write date'),
        ({"types": {"cost": "decimal:"}}, 'types.cost: "decimal:" has a step that is not a number'),
        ({"types": {"cost": "decimal:nan"}}, "types.cost: NaN is not a finite number"),
        ({"types": {"cost": "decimal:0"}}, "tables.visits.columns.cost.step: 0 is not allowed"),
        (
            {"types": {"cost": "string"}, "bounds": {"cost": (0, 1)}},
            "tables.visits.columns.cost.lower: a string column",
        ),
        (
            {"types": {"cost": "decimal"}, "bounds": {"cost": (0, 1)}},
            "tables.visits.columns.cost.step: missing; give it with the type, like decimal:0.01",
        ),
        ({"types": {"person_id": "float"}}, 'tables.visits.privacy_unit: "person_id" is of type float'),
    ],
)
def test_refusals_of_csv(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        drafted(csv(tmp_path), **changes)
    assert str(caught.value).startswith(f"visits.csv: {message}")


def test_parquet_declares_its_types(parquet: Path) -> None:
    with pytest.raises(
        CatalogError, match=r"^visits\.parquet: types: visits\.parquet declares its types; leave them out"
    ):
        drafted(parquet, types={"cost": "integer"})


@pytest.mark.parametrize(
    ("stem", "name"),
    [("visits", "visits"), ("a b-c.d", "a_b_c_d"), ("1x", "t_1x"), ("äö", "ao"), ("日本", "data"), ("Größe", "Grosse")],
)
def test_table_names(stem: str, name: str) -> None:
    assert table_name(Path(f"{stem}.parquet")) == name


def test_paths_from_the_catalog_s_folder(parquet: Path, tmp_path: Path) -> None:
    below = drafted(parquet, folder=tmp_path.parent).catalog
    assert below.tables[0].source == f"{tmp_path.name}/visits.parquet"
    beside = drafted(parquet, folder=tmp_path / "elsewhere").catalog
    assert beside.tables[0].source == str(parquet)
    assert all(found.source_path(found.tables[0]) == parquet for found in (below, beside))


def test_each_row_alone(parquet: Path) -> None:
    table = drafted(parquet, privacy_unit="row", max_rows_per_unit=None).catalog.tables[0]
    assert (table.privacy_unit, table.max_rows_per_unit) == ("row", 1)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    one_in(
        3,
        [
            (
                {"privacy_unit": "person"},
                CatalogError,
                IN + '.privacy_unit: "person" is not a column; write one of person_id, small,',
            ),
            (
                {"privacy_unit": "list"},
                CatalogError,
                IN + '.privacy_unit: "list" is stored as list<element: int64>; store',
            ),
            ({"privacy_unit": "fare"}, CatalogError, IN + '.privacy_unit: "fare" is of type float'),
            ({"max_rows_per_unit": None}, CatalogError, IN + ".max_rows_per_unit: missing; write the most"),
            ({"max_rows_per_unit": 0}, CatalogError, IN + ".max_rows_per_unit: 0 is not allowed"),
            ({"max_rows_per_unit": 2.0}, CatalogError, IN + ".max_rows_per_unit: 2.0 is not an integer"),
            (
                {"bounds": {"costs": (0, 1)}},
                CatalogError,
                FILE + 'bounds: there is no column "costs"; the columns are person_id,',
            ),
            ({"values": {"plans": ["a"]}}, CatalogError, FILE + 'values: there is no column "plans"; the columns are'),
            (
                {"values": {"blob": ["a"]}},
                CatalogError,
                FILE + 'values: the column "blob" has a type that a catalog cannot hold',
            ),
            (
                {"bounds": {"cost": (5000, 0)}},
                CatalogError,
                IN + ".columns.cost.lower: 5000 is above the upper bound, 0; swap them",
            ),
            ({"bounds": {"plan": (0, 1)}}, CatalogError, IN + ".columns.plan.lower: a string column has no bounds"),
            ({"bounds": {"paid": (0, 1)}}, CatalogError, IN + ".columns.paid.lower: a boolean column has no bounds"),
            ({"bounds": {"day": (0, 1)}}, CatalogError, IN + ".columns.day.lower: 0 is not a date"),
            ({"bounds": {"day": ("soon", "late")}}, CatalogError, IN + '.columns.day.lower: "soon" is not a date'),
            (
                {"bounds": {"seen": ("0001-01-01T00:00:00+02:00", "2020-01-01")}},
                CatalogError,
                IN + ".columns.seen.lower: 0001-01-01 00:00:00+02:00 is outside the years",
            ),
            ({"bounds": {"cost": ("0", "many")}}, CatalogError, IN + '.columns.cost.upper: "many" is not a number'),
            ({"bounds": {"cost": (0, float("nan"))}}, InvalidParameter, "columns.cost.upper is nan"),
            ({"bounds": {"cost": (0, float("inf"))}}, InvalidParameter, "columns.cost.upper is inf"),
            ({"bounds": {"cost": (0, date(2020, 1, 1))}}, InvalidParameter, "columns.cost.upper is datetime.date"),
            ({"bounds": {"cost": (0, 1, 2)}}, InvalidParameter, 'The bounds of "cost" are (0, 1, 2); give a pair'),
            ({"bounds": {"cost": "05"}}, InvalidParameter, "The bounds of \"cost\" are '05'; give a pair"),
            ({"values": {"plan": "abc"}}, InvalidParameter, 'The values of "plan" are one text'),
            ({"values": {"plan": []}}, CatalogError, IN + ".columns.plan.values: an empty list"),
            ({"values": {"small": ["x"]}}, CatalogError, IN + '.columns.small.values: "x" is a string'),
            ({"values": {"paid": ["yes"]}}, CatalogError, IN + '.columns.paid.values: "yes" is a string'),
            ({"values": {"cost": [1]}}, CatalogError, IN + ".columns.cost.values: a decimal column cannot list"),
            ({"epsilon": 0}, CatalogError, "budget.epsilon: 0 is not allowed"),
            ({"epsilon": "3"}, InvalidParameter, "epsilon is '3'"),
            ({"epsilon": float("nan")}, InvalidParameter, "epsilon is nan"),
            ({"epsilon": Fraction(1, 3)}, CatalogError, "budget.epsilon: 1/3 is not a decimal"),
            ({"delta": 1}, CatalogError, "budget.delta: 1 is not allowed"),
            ({"delta": 0, "measure": "gdp"}, CatalogError, "budget.delta: 0, but"),
            ({"delta_keys": 1}, CatalogError, "budget.delta_keys: 1 is not between"),
            ({"measure": ""}, CatalogError, 'budget.measure: "" is unknown'),
            ({"neighbouring": "swap"}, CatalogError, 'budget.neighbouring: "swap" is unknown'),
            ({"people": 0}, InvalidParameter, "people is 0; give a public figure"),
            ({"people": 2.5}, InvalidParameter, "people is 2.5; give a public figure"),
        ],
        many=True,
    ),
)
def test_refusals(parquet: Path, changes: dict[str, Any], error: type[LapwingError], message: str) -> None:
    with pytest.raises(error) as caught:
        drafted(parquet, **changes)
    assert str(caught.value).startswith(message)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".parquet", b"person_id"),
        (".parquet", b""),
        (".csv", b""),
        (".csv", b'a,"b\n1,2\nsecret,3'),
        (".csv", b"a,\xff\n"),
    ],
)
def test_a_damaged_file(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"visits{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataFault, match=rf"^visits{suffix} cannot be read as {suffix[1:]}: (it|its) ") as caught:
        drafted(path)
    assert "secret" not in str(caught.value)


def test_a_truncated_file(parquet: Path) -> None:
    cut(parquet)
    with pytest.raises(DataFault, match=r"^visits\.parquet cannot be read as parquet"):
        drafted(parquet)


def test_a_missing_file_and_an_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(DataFault, match=r"^There is no file .*visits\.parquet; check the path"):
        drafted(tmp_path / "visits.parquet")
    with pytest.raises(
        DataFault, match=r"^visits\.xlsx is not of a supported kind; give a file whose name ends in \.parquet"
    ):
        drafted(tmp_path / "visits.xlsx")


@pytest.mark.parametrize(
    ("delta", "people", "note"),
    [
        (1e-5, None, None),
        (1.1e-5, None, "δ = 1.1e-5 is large; choose it well below one in the number of people."),
        (9.9e-4, 1000, None),
        (1e-3, 1000, "δ = 0.001 is one in 1000 people, which would allow giving away"),
        (1e-3, 1001, "δ = 0.001 is above one in 1001 people, which would allow giving away"),
    ],
)
def test_delta_is_judged(parquet: Path, delta: float, people: int | None, note: str | None) -> None:
    notes = [text for text in drafted(parquet, delta=delta, people=people).notes if text.startswith("δ")]
    assert (notes[0].startswith(note) if notes else False) if note else not notes


def test_columns_that_differ_only_by_case(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table({"person_id": [1], "Cost": [1], "cost": [1]}), path)
    with pytest.raises(
        CatalogError, match=r'visits\.parquet: tables\.visits\.columns: "Cost" and "cost" are the same name'
    ):
        drafted(path)


def test_a_column_called_row_makes_the_unit_ambiguous(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table({"row": [1, 1]}), path)
    with pytest.raises(CatalogError, match=r'tables\.visits\.privacy_unit: "row" protects each row by itself, but'):
        drafted(path, privacy_unit="row", max_rows_per_unit=None)


def test_a_note_has_names_as_they_are(tmp_path: Path) -> None:
    names = pa.table({"id": [1], "Größe": ["L"], "Rabatt %": ["9"], "a, b": ["x"], "c\nd": ["y"]})
    pa.parquet.write_table(names, tmp_path / "names.parquet")
    notes = draft(
        tmp_path / "names.parquet", privacy_unit="id", max_rows_per_unit=1, epsilon=Fraction(3), delta=Fraction(0)
    ).notes
    assert any('Größe, Rabatt %, "a, b", "c\\nd".' in note for note in notes)
