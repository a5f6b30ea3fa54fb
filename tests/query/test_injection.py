"""Constants and names arrive in the engine as they are, whatever they look like, and nothing else arrives."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import literals
from lapwing.engines.duckdb.cleaned import Location
from lapwing.query.bind.bind import bind
from tests.support.effort import one_in
from tests.support.engines.tables import run
from tests.support.query import rendering

NASTY = [
    "'",
    "''",
    "'''",
    '"',
    '"";--',
    "\\",
    "\\'",
    "\\'; DROP TABLE visits; --",
    "'; DROP TABLE visits; --",
    "' OR '1'='1",
    "') UNION SELECT * FROM read_csv('/etc/passwd'); --",
    "x'; COPY (SELECT 1) TO '/tmp/out'; --",
    "--",
    "/*",
    "*/",
    "/* */ -- \n;",
    ";",
    "$$",
    "$$; SELECT 1; $$",
    "$1",
    "?",
    ":a",
    "{0}",
    "{}",
    "%s",
    "%",
    "_",
    "\n\r\t",
    "\x01\x7f",
    "\u2019",
    "\uff07",  # a full-width apostrophe
    "\u02bc OR 1=1",
    "Ünï",
    "e\u0301",  # an accent of its own
    "\u00e9",
    "\U0001f600",
    "\u202eevil",
    "\u200b",
    "\ufeff",
    "NULL",
    "nan",
    "E'x'",
    "x" * 5000,
]
# A table whose every name is as bad.
NAMES = [
    'no"te',
    "it's",
    "a; DROP TABLE x",
    "key0",
    "measure0",
    "kept",
    "cleaned",
    "unit",
    "SELECT",
    "ü n ï",
    "a.b",
    "--",
    "%",
]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def toml(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\U{ord(c):08x}" if ord(c) < 0x20 or ord(c) == 0x7F else c for c in escaped) + '"'


def written(folder: Path) -> Catalog:
    columns = {name: [*NASTY, "other"] for name in NAMES} | {"who's": list(range(len(NASTY) + 1))}
    source = "vi'si\"ts;.parquet"
    pq.write_table(pa.table(columns), folder / source)
    keys = ", ".join(map(toml, NASTY))
    text = f"""
[dataset]
name = "nasty"
ledger = "sqlite:nasty.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.{toml('vi"si--ts')}]
source = {toml(source)}
privacy_unit = {toml("who's")}
max_rows_per_unit = 1
[tables.{toml('vi"si--ts')}.columns]
""" + "\n".join(f'{toml(name)} = {{ type = "string", values = [{keys}], other = "rest" }}' for name in NAMES)
    return loads(text, file="nasty.toml", folder=folder)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return written(tmp_path_factory.mktemp("na'sty;--"))


@pytest.fixture(scope="module")
def engine(catalog: Catalog) -> Iterator[DuckDB]:
    engine = DuckDB(catalog)
    engine.digest(catalog.tables[0])
    yield engine
    engine.close()


TABLE = quoted('vi"si--ts')


def counted(where: str, catalog: Catalog, engine: DuckDB) -> int:
    """Return the exact count, having seen that the SQL is one statement."""
    question = bind(f"SELECT COUNT(*) AS n FROM {TABLE} WHERE {where}", catalog).question
    source = Location(relation="t", types=dict.fromkeys([*NAMES, "who's"], "VARCHAR"))
    sql = rendering.render(question, {question.table.name: source})
    assert len(duckdb.extract_statements(sql)) == 1
    (count,) = run(engine, question)[()]
    return int(count)


@pytest.mark.parametrize("value", one_in(15, NASTY))
def test_a_constant_arrives_intact(value: str, catalog: Catalog, engine: DuckDB) -> None:
    name = quoted(NAMES[0])
    assert counted(f"{name} = {literal(value)}", catalog, engine) == 1
    assert counted(f"{name} IN ({literal(value)}, 'absent')", catalog, engine) == 1
    assert counted(f"{name} <> {literal(value)}", catalog, engine) == len(NASTY)
    assert (
        counted(f"CASE WHEN {name} = {literal(value)} THEN {literal(value)} END = {literal(value)}", catalog, engine)
        == 1
    )
    if not set(value) & set("%_") and len(value) <= 1000:
        assert counted(f"{name} LIKE {literal(value)}", catalog, engine) == 1


@pytest.mark.parametrize("name", one_in(4, NAMES))
def test_a_name_arrives_intact(name: str, catalog: Catalog, engine: DuckDB) -> None:
    assert counted(f"{quoted(name)} = 'other'", catalog, engine) == 1
    text = f"SELECT {quoted(name)}, COUNT(*) AS {quoted(name + ' n')} FROM {TABLE} GROUP BY {quoted(name)}"
    plan = bind(text, catalog)
    assert run(engine, plan.question) == {(value,): (1,) for value in [*NASTY, "rest"]}
    assert [output.name for output in plan.outputs] == [name, f"{name} n"]


def test_two_keys_with_the_names_of_others(catalog: Catalog, engine: DuckDB) -> None:
    """`key0` is also what the first key is called in the SQL."""
    plan = bind(
        f"SELECT key0, key1_, COUNT(*) FROM {TABLE} GROUP BY measure0, key0".replace("key1_", "measure0"), catalog
    )
    assert run(engine, plan.question) == {(value, value): (1,) for value in [*NASTY, "rest"]}


def test_the_unit_is_found_by_its_name(catalog: Catalog, engine: DuckDB) -> None:
    question = bind(f'SELECT COUNT(DISTINCT "who\'s") AS n FROM {TABLE}', catalog).question
    assert run(engine, question) == {(): (len(NASTY) + 1,)}


def test_quoting_that_is_forgotten_is_found(catalog: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "text", lambda value: f"'{value}'")
    with pytest.raises(duckdb.Error):
        counted(f"{quoted(NAMES[0])} = {literal(NASTY[0])}", catalog, engine)
