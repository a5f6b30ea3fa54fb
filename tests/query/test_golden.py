"""Golden SQL: every question becomes the SQL of its file, and both mean the same on DuckDB."""

import os
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from math import isclose
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.answer import Answer
from lapwing.catalog.model import Catalog
from lapwing.engines import FAILED, DuckDB
from lapwing.engines.duckdb import literals
from lapwing.engines.duckdb import printers as sql_functions
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.mechanisms import RoundedGaussian
from lapwing.privacy.measures import GaussianDP
from lapwing.query.bind.bind import bind
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.expressions.conversion import SUMMABLE_BITS
from lapwing.query.measures.measures import Sum
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.relation import public_tables_of
from lapwing.release import composing
from lapwing.release.cells import cells_of, columns_of, exact_values
from tests.support.effort import one_in, only
from tests.support.engines.tables import digests, run
from tests.support.query import clean, composed, golden
from tests.support.query.golden import Entry

ENTRIES = [entry for file in golden.files(refused=False) for entry in golden.read(file)]
REFUSALS = [entry for file in golden.files(refused=True) for entry in golden.read(file)]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return clean.catalog_in(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def facts(catalog: Catalog) -> Iterator[PublicData]:
    facts = PublicData(catalog)
    yield facts
    facts.close()


@pytest.fixture(scope="module")
def engine(catalog: Catalog) -> Iterator[DuckDB]:
    engine = DuckDB(catalog)
    for table in catalog.tables:
        engine.digest(table)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def sources(catalog: Catalog, engine: DuckDB) -> dict[str, Location]:
    return {table.name: engine._describe(table).source for table in catalog.tables}


@pytest.fixture(scope="module")
def plain(catalog: Catalog) -> Iterator[duckdb.DuckDBPyConnection]:
    """Plain DuckDB over the same rows, typed as the catalog says."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in ("visits", "ballots"):
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{catalog.folder}/{name}.parquet')")
    for public in catalog.public_tables:
        source = catalog.source_path(public)
        connection.execute(f"CREATE TABLE {public.name} AS SELECT * FROM read_parquet('{source}')")
    for view in catalog.views:
        connection.execute(f"CREATE VIEW {view.name} AS {view.sql}")
    columns = ", ".join(clean.SHEET)
    connection.execute(f"CREATE TABLE sheets AS SELECT {columns} FROM visits")
    yield connection
    connection.close()


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.long)])
def test_the_sql_is_the_golden_sql(
    every: int, catalog: Catalog, facts: PublicData, sources: dict[str, Location]
) -> None:
    writing = bool(os.environ.get("LAPWING_WRITE_GOLDEN"))
    different = []
    for file in [*golden.files(refused=False), *golden.files(refused=True)]:
        entries = golden.read(file)[:: 1 if writing else every]
        anew = [replace(entry, sections=golden.written(entry, catalog, facts, sources)) for entry in entries]
        different += [f"{new.name}\n{new}" for old, new in zip(entries, anew, strict=True) if old != new]
        if writing:
            golden.write(file, anew)
    assert writing or not different, "\n\n".join(different)


TEXTS = clean.FIXTURES / "refusal_texts.txt"


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.long)])
def test_the_texts_of_refusals_are_those_that_were_reviewed(every: int, catalog: Catalog, facts: PublicData) -> None:
    writing = bool(os.environ.get("LAPWING_WRITE_GOLDEN"))
    asked = [(entry, "refused" not in entry.sections) for entry in [*REFUSALS, *ENTRIES]]
    asked = [one for one in asked if {"refused", "spark refused"} & one[0].sections.keys()][:: 1 if writing else every]
    refusals = [golden.refusal_of(entry.question, catalog, facts, spark=spark) for entry, spark in asked]
    said = golden.texts_of(refused for refused in refusals if refused is not None)
    if writing:
        TEXTS.write_text("\n\n".join(said) + "\n", encoding="utf-8")
    reviewed = TEXTS.read_text(encoding="utf-8").strip().split("\n\n")
    if every == 1 or writing:
        assert said == reviewed
    known = {(paragraph.split("\n")[0], line) for paragraph in reviewed for line in paragraph.split("\n")[1:]}
    assert {(one.split("\n")[0], line) for one in said for line in one.split("\n")[1:]} <= known
    assert len(known) > 300


# ---- both sides run --------------------------------------------------------------------------------------------------


def exact_answer(plan: Plan, engine: DuckDB, facts: PublicData) -> Answer:
    """Return the answer without noise: what the released numbers are made from."""
    nothing, question = GaussianDP.from_amount(0), plan.question
    if plan.composition is not None:
        answers = (exact_answer(leaf, engine, facts) for leaf in composing._leaves(plan))
        return composing._made(plan, answers, nothing)[0]
    noiseless = [RoundedGaussian.for_half_width(10, Decimal("0.95")) for _ in question.measures]
    keys, whole = columns_of(cells_of(question), len(question.keys)), []
    if question.measures:
        leaves = engine.run(question, digests(engine, question)).leaves if question.distributions else {}
        values = exact_values(question, exact_cells(question, engine, facts), cells_of(question), leaves)
        whole = [numbers if numbers.ndim > 1 else list(map(int, numbers)) for numbers in values]
    return Answer(plan=plan, mechanisms=noiseless, keys=keys, values=whole, cost=nothing)


def bound_to_numbers(text: str, catalog: Catalog, engine: DuckDB, facts: PublicData) -> Plan:
    """Bind a question, with the exact numbers in the place of those that are asked for first."""
    plan = bind(text, catalog, facts)
    known = [
        (constant, [tuple(row.values()) for row in exact_answer(constant, engine, facts).rows()])
        for constant in plan.constants
    ]
    return bind(text, catalog, facts, (), {}, engine.capabilities, known) if known else plan


def exact_cells(question: Question, engine: DuckDB, facts: PublicData) -> dict[Any, Any]:
    if not public_tables_of(question.selection.relation):
        return run(engine, question)
    with composed.connect() as connection:
        return composed.cells(connection, question, engine._describe(question.table).source, facts)


def listed(plan: Plan, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out plain SQL's rows of keys that are not public."""
    named = {output.name: output.value.key for output in plan.outputs if isinstance(output.value, KeyValue)}
    return [row for row in rows if all(row[name] in key.domain for name, key in named.items())]


def rounding(plan: Plan) -> float:
    """Return how far a sum may be off because its argument is first rounded to public steps, half a step a row."""
    sums = [measure for measure in plan.question.measures if isinstance(measure, Sum)]
    rounded = [s for s in sums if str(s).startswith("SUM(to_fixed") or (s.type.high or 0) >= 2 ** (SUMMABLE_BITS - 1)]
    return max((float(s.step) / 2 * len(clean.visits()) for s in rounded), default=0.0)


def alike(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float | Decimal | int) and isinstance(other, float | Decimal | int):
        return one == other or isclose(float(one), float(other), rel_tol=1e-9, abs_tol=max(1e-9, tolerance))
    return bool(one == other)


def asked(plain: duckdb.DuckDBPyConnection, question: str) -> list[dict[str, Any]]:
    rows = plain.execute(question)
    names = [str(column[0]) for column in rows.description or []]
    return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


@pytest.mark.parametrize("entry", one_in(40, ENTRIES), ids=lambda entry: entry.name)
def test_the_question_and_its_sql_mean_the_same(
    entry: Entry, catalog: Catalog, facts: PublicData, engine: DuckDB, plain: duckdb.DuckDBPyConnection
) -> None:
    plan = bound_to_numbers(entry.question, catalog, engine, facts)
    ours = exact_answer(plan, engine, facts).rows()
    question = entry.sections.get("plain", entry.question)
    question = question.replace(", contribution_bounds_per_row => AUTO", "")  # the widest cut nothing here
    for key in plan.keys:
        if key.other is not None:  # plain SQL has no word for it
            column, values = key.name, ", ".join(map(literals.text, map(str, key.values or ())))
            folded = f"CASE WHEN {column} IN ({values}) THEN {column} ELSE {literals.text(key.other)} END AS {column}"
            question = question.replace("FROM visits", f"FROM (SELECT * REPLACE ({folded}) FROM visits)")
    theirs = listed(plan, asked(plain, question))
    if not plan.order:
        keys = [output.name for output in plan.outputs if isinstance(output.value, KeyValue)]
        names = keys or [output.name for output in plan.outputs]
        ours, theirs = (sorted(rows, key=lambda row: [repr(row[name]) for name in names]) for rows in (ours, theirs))
    assert len(ours) == len(theirs), (ours, theirs)
    tolerance = rounding(plan)
    for one, other in zip(ours, theirs, strict=True):
        assert list(one) == list(other)
        assert all(alike(one[name], other[name], tolerance) for name in one), (one, other)


def test_the_golden_rows_break_no_bound(plain: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
    """Otherwise plain SQL and bounded SQL would rightly differ."""
    most = plain.execute("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY person)").fetchall()
    assert most == [(catalog.tables[0].max_rows_per_unit,)]
    keys = plain.execute(
        "SELECT COUNT(DISTINCT (plan, member)) FROM visits WHERE plan <> 'unlisted' AND member IS NOT NULL"
    )
    assert keys.fetchall() == [(6,)]


# ---- planted bugs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printer", "bug", "question"),
    only(
        [0],
        [
            ("round_to", sql_functions.PRINTERS["floor_to"], "SELECT SUM(ROUND(cost)) AS s FROM visits"),
            ("greater_equal", sql_functions.PRINTERS["greater"], "SELECT COUNT(*) AS n FROM visits WHERE age >= 37"),
            ("and", sql_functions.PRINTERS["or"], "SELECT COUNT(*) AS n FROM visits WHERE member AND age > 50"),
        ],
        many=True,
    ),
)
def test_a_wrong_printer_is_found(
    printer: str,
    bug: Any,
    question: str,
    catalog: Catalog,
    facts: PublicData,
    engine: DuckDB,
    plain: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = Entry(file=Path("planted.sql"), comment="", question=question, sections={})
    test_the_question_and_its_sql_mean_the_same(entry, catalog, facts, engine, plain)
    monkeypatch.setitem(sql_functions.PRINTERS, printer, bug)
    with pytest.raises(AssertionError):
        test_the_question_and_its_sql_mean_the_same(entry, catalog, facts, engine, plain)


@pytest.mark.long
def test_the_engine_needs_a_file_that_it_has_read_through(catalog: Catalog) -> None:
    question = bind("SELECT COUNT(*) AS n FROM visits", catalog).question
    first, engine = DuckDB(catalog), DuckDB(catalog)
    with pytest.raises(Exception, match=FAILED[:20]):
        engine.run(question, digests(first, question))
    first.close()
    engine.close()
