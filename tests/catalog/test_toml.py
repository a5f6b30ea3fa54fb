"""What is read is exact, what is written reads back as the same, and nothing is overwritten unasked."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog import Budget, Catalog, Column, Link, Table, spelling
from lapwing.catalog.checks import KEY_TYPES
from lapwing.catalog.toml import dumps, load, loads, write
from lapwing.errors import CatalogError
from lapwing.privacy.calibration import loss_for
from tests.support.catalog.examples import FOLDER, TEXT, catalog, changed
from tests.support.effort import examples


def column(name: str, content: str = TEXT) -> Column:
    return next(found for found in catalog(content).tables[0].columns if found.name == name)


def test_the_example_is_read_exactly() -> None:
    read = catalog()
    budget = Budget(
        epsilon=Fraction(3),
        delta=Fraction(1, 10**6),
        delta_keys=Fraction(1, 10**7),
        measure="gdp",
        neighbouring="add_remove",
    )
    assert (read.name, read.engine, read.ledger, read.budget) == (
        "clinic",
        "duckdb",
        "sqlite:visits.lapwing.db",
        budget,
    )
    assert (read.ledger_path, read.source_path(read.tables[0])) == (
        FOLDER / "visits.lapwing.db",
        FOLDER / "visits.parquet",
    )
    assert column("cost") == Column(
        name="cost", type="decimal", lower=Fraction(0), upper=Fraction(5000), step=Fraction(1, 100)
    )
    assert column("day").values == (date(2020, 2, 29),)
    assert column("seen").upper == datetime(2024, 12, 31, 10, tzinfo=UTC)


def test_a_number_is_its_digits() -> None:
    tenth = column("cost", changed("upper = 5000, step = 0.01", "upper = 1_000.1, step = 1e-1"))
    assert (tenth.upper, tenth.step) == (Fraction(10001, 10), Fraction(1, 10))
    assert tenth.step != Fraction(0.1), "reading through a float must be caught"


def test_a_time_without_an_offset_is_in_utc() -> None:
    assert column("seen", changed("2020-01-01T00:00:00Z", "2020-01-01T00:00:00")) == column("seen")


def test_the_budget_without_the_part_for_keys() -> None:
    assert catalog().budget.loss == loss_for("gdp", Fraction(3), Fraction(9, 10**7))
    assert catalog().budget.loss != loss_for("gdp", Fraction(3), Fraction(1, 10**6))


@pytest.mark.parametrize(
    ("budget", "measure"), [("delta = 1e-6", "gdp"), ("", "pure"), ("delta = 1e-6\nmeasure = 'zcdp'", "zcdp")]
)
def test_defaults(budget: str, measure: str) -> None:
    text = f"""
        dataset = {{ name = "d", ledger = "sqlite:d.db" }}
        [budget]
        epsilon = 1
        {budget}
        [tables.t]
        source = "t.csv"
        privacy_unit = "row"
    """
    read = catalog(text)
    assert (read.engine, read.budget.measure, read.budget.neighbouring) == ("duckdb", measure, "add_remove")
    assert (read.tables[0].max_rows_per_unit, read.tables[0].columns, read.tables[0].unit_is_row) == (1, (), True)


def test_a_pure_ledger_may_keep_a_delta_for_keys() -> None:
    budget = Budget(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        delta_keys=Fraction(1, 10**6),
        measure="pure",
        neighbouring="add_remove",
    )
    assert budget.loss == loss_for("pure", Fraction(1), Fraction(0))


# Every catalog that can be meant.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
NUMBERS = st.decimals(-(10**9), 10**9, allow_nan=False, places=6).map(Fraction)
STEPS = st.decimals(Decimal("0.001"), 10, places=3).map(Fraction)
DATES = st.dates()
TIMES = st.datetimes(timezones=st.just(UTC))


def pairs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(values, values).map(lambda pair: (min(pair), max(pair)))


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(("integer", "decimal", "float", "boolean", "string", "date", "timestamp")))
    lower = upper = step = other = None
    values: tuple[Any, ...] | None = None
    with_bounds = draw(st.booleans())
    if kind in ("integer", "decimal", "float"):
        step = draw(st.none() | (STEPS if kind != "integer" else st.integers(1, 5).map(Fraction)))
        if with_bounds:
            ends = NUMBERS if kind != "integer" else st.integers(-(10**9), 10**9).map(Fraction)
            lower, upper = draw(pairs(ends))
            step = step or (Fraction(1, 1000) if kind == "decimal" else None)
            upper = max(upper, lower + (step or 1) * 2)
    elif kind in ("date", "timestamp") and with_bounds:
        lower, upper = draw(pairs(DATES if kind == "date" else TIMES))
    if kind == "string" and draw(st.booleans()):
        values = tuple(draw(st.lists(TEXTS | st.just(""), min_size=1, max_size=4, unique=True)))
        other = draw(st.none() | st.just(max(values, key=len) + "?"))
    if kind in ("integer", "date") and not with_bounds:
        keys: st.SearchStrategy[Any] = st.integers(-(2**63), 2**63 - 1) if kind == "integer" else DATES
        values = tuple(draw(st.lists(keys, min_size=1, max_size=4, unique=True)))
    return Column(name=name, type=kind, lower=lower, upper=upper, step=step, values=values, other=other)


@st.composite
def tables(draw: st.DrawFn, name: str) -> Table:
    listed = draw(further_columns())
    whose = draw(st.sampled_from(("row", "unit", "key")))
    unit = draw(st.none() | st.just(f"{name}?")) if whose == "key" else None
    rows = 1 if whose == "row" else draw(st.integers(1, 10**9))
    return Table(name=name, source=draw(TEXTS), privacy_unit=whose, max_rows_per_unit=rows, columns=listed, unit=unit)


@st.composite
def linked_tables(draw: st.DrawFn, name: str, parent: Table) -> Table:
    kind = next(column.type for column in parent.columns if column.name == "key")
    columns = (*draw(further_columns()), Column(name='of "é"', type=kind))
    rows, link = draw(st.integers(1, 10**9)), Link(parent=parent, on=(('of "é"', "key"),))
    return Table(name=name, source=draw(TEXTS), max_rows_per_unit=rows, columns=columns, link=link)


@st.composite
def further_columns(draw: st.DrawFn) -> tuple[Column, ...]:
    names = draw(st.lists(TEXTS, max_size=4, unique_by=str.casefold))
    found = [draw(columns(name)) for name in names if name.casefold() not in ("row", "unit", "key")]
    return (*found, Column(name="key", type=draw(st.sampled_from(KEY_TYPES))))


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    delta = draw(st.just(Fraction(0)) | st.decimals(Decimal("1e-15"), Decimal("0.5"), places=40).map(Fraction))
    budget = Budget(
        epsilon=draw(st.decimals(Decimal("1e-9"), 100).map(Fraction)),
        delta=delta,
        delta_keys=delta / 4,
        measure=draw(st.sampled_from(("gdp", "zcdp"))) if delta else "pure",
        neighbouring=draw(st.sampled_from(("add_remove", "replace_one"))),
    )
    names = draw(st.lists(TEXTS, min_size=1, max_size=5, unique_by=str.casefold))
    listed: list[Table] = []
    for name in names:
        parents = [table for table in listed if not table.unit_is_row]
        child = bool(parents) and draw(st.booleans())
        listed.append(draw(linked_tables(name, draw(st.sampled_from(parents))) if child else tables(name)))
    return Catalog(
        name=draw(TEXTS),
        engine=draw(st.sampled_from(("duckdb", "postgres", "spark"))),
        ledger="sqlite:" + draw(TEXTS),
        budget=budget,
        tables=tuple(draw(st.permutations(listed))),
        folder=FOLDER,
    )


@examples(5, 600)
@given(catalogs())
def test_what_is_written_reads_back(any_catalog: Catalog) -> None:
    again = loads(dumps(any_catalog), file="x", folder=FOLDER)
    assert again == any_catalog
    assert again.digest == any_catalog.digest
    assert dumps(again) == dumps(any_catalog)


def test_a_bug_in_writing_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    steep = catalog(changed("step = 0.01", "step = 0.010000000000000000000001"))
    monkeypatch.setattr(spelling, "number", lambda value: f"{float(value)!r}")
    assert loads(dumps(steep), file="x", folder=FOLDER) != steep


@given(st.decimals(-(10**12), 10**12, allow_nan=False).map(Fraction))
def test_a_number_is_written_exactly(number: Fraction) -> None:
    assert Fraction(Decimal(spelling.number(number))) == number


def test_write_and_load(tmp_path: Path) -> None:
    path = tmp_path / "lapwing.toml"
    here = replace(catalog(), folder=tmp_path)
    write(here, path)
    assert load(path) == here
    with pytest.raises(CatalogError, match=r"^lapwing\.toml: exists already"):
        write(here, path)
    assert load(path) == here
    other = replace(here, name="other")
    write(other, path, overwrite=True)
    assert load(path) == other
    assert [found.name for found in tmp_path.iterdir()] == ["lapwing.toml"]


def test_write_only_where_the_paths_start(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="its paths start from another folder"):
        write(catalog(), tmp_path / "lapwing.toml")
    nowhere = tmp_path / "missing"
    with pytest.raises(CatalogError, match=r"^lapwing\.toml: cannot be written: No such file"):
        write(replace(catalog(), folder=nowhere), nowhere / "lapwing.toml")


def test_paths_start_from_the_file_wherever_it_is_called_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lapwing.toml").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load(Path("lapwing.toml")).folder == tmp_path
