"""Queries over only public tables: exact, free, and what DuckDB answers."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import DataFault, InvalidParameter
from lapwing.query.bind import public_answers
from lapwing.query.classify.kinds import Kinds, RelationKind
from lapwing.query.plan.composition import plans_asked
from lapwing.query.pricing.joint_price import free_quote
from tests.support.effort import one_in
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "towns"
ledger = "sqlite:towns.lapwing.db"
[budget]
epsilon = 10
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.visits.columns]
site = { type = "string", values = ["x", "y", "z"] }
[tables.sites]
source = "sites.parquet"
public = true
[tables.sites.columns]
site = { type = "string" }
region = { type = "string" }
beds = { type = "integer" }
note = { type = "string" }
opened = { type = "date" }
rate = { type = "float" }
[tables.regions]
source = "regions.parquet"
public = true
[tables.regions.columns]
region = { type = "string" }
head = { type = "string" }
[views.northern]
sql = "SELECT site, beds FROM sites WHERE region = 'north'"
"""
SITES = {
    "site": ["x", "y", "z", "w", "x"],
    "region": ["north", "south", "north", "east", "north"],
    "beds": [10, 20, 30, 40, 10],
    "note": ["a", None, "b", "c", "a"],
    "opened": [date(2020, 1, 5), date(2020, 3, 5), None, date(2021, 1, 5), date(2020, 1, 5)],
    "rate": [1.5, 2.25, None, 0.1, 1.5],
}
REGIONS = {"region": ["north", "south", "east", "west"], "head": ["A", "B", "C", None]}
SAME = [
    "SELECT region, COUNT(*) FROM sites GROUP BY region",
    "SELECT * FROM sites",
    "SELECT COUNT(*) FROM sites",
    "SELECT COUNT(note), COUNT(DISTINCT region), COUNT(DISTINCT note) FROM sites",
    "SELECT DISTINCT region FROM sites ORDER BY region",
    "SELECT note, COUNT(*) AS n FROM sites GROUP BY note ORDER BY n DESC, note",
    "SELECT s.site, r.head FROM sites s JOIN regions r ON s.region = r.region",
    "SELECT r.region, COUNT(s.site) AS n FROM regions r LEFT JOIN sites s USING (region) GROUP BY r.region",
    "SELECT s.site, r.region FROM sites s FULL JOIN regions r ON r.region = s.region AND r.head <> 'A'",
    "SELECT s.site, r.head FROM sites s, regions r WHERE s.region = r.region AND r.head LIKE 'A%' AND beds > 5",
    "SELECT region, AVG(beds) AS a, MIN(beds), MAX(beds) FROM sites WHERE beds > 10 GROUP BY region "
    "HAVING COUNT(*) >= 1 ORDER BY a DESC LIMIT 2",
    "SELECT UPPER(region) AS u, COUNT(*) FROM sites GROUP BY UPPER(region)",
    "SELECT DATE_TRUNC('month', opened) AS m, SUM(beds) FROM sites GROUP BY 1 ORDER BY 1",
    "SELECT site FROM sites WHERE note LIKE 'a%'",
    "SELECT COUNT(*) FROM sites WHERE REGEXP_MATCHES(site, '[xy]')",
    "SELECT region, MAX(note), MIN(opened) FROM sites GROUP BY region ORDER BY region",
    "SELECT region, SUM(rate) FROM sites WHERE rate >= 0.1 GROUP BY region",
    "SELECT site FROM sites WHERE rate > 0.1 ORDER BY site",
    "SELECT x.region, n, head FROM (SELECT region, COUNT(*) AS n FROM sites GROUP BY region) AS x "
    "JOIN regions USING (region) WHERE n > 1",
    "WITH t AS (SELECT region, COUNT(*) AS n FROM sites GROUP BY region) SELECT MAX(n), SUM(n) FROM t",
    "SELECT region, beds, SUM(beds) OVER (PARTITION BY region) AS t FROM sites ORDER BY 1, 2",
    "SELECT site FROM sites WHERE beds > (SELECT AVG(beds) FROM sites)",
    "SELECT DISTINCT (region) FROM sites ORDER BY region",
    "SELECT site FROM sites s WHERE beds > (SELECT AVG(o.beds) FROM sites o WHERE o.region = s.region)",
    "SELECT site, beds - (SELECT MIN(o.beds) FROM sites o WHERE o.region = s.region) AS more FROM sites s",
    "SELECT region FROM regions r WHERE (SELECT COUNT(*) FROM sites s WHERE s.region = r.region) = 0",
    "SELECT site, (SELECT MAX(beds) FROM sites) - beds AS less FROM sites",
    "SELECT site FROM sites WHERE region IN (SELECT region FROM regions WHERE head <> 'B')",
    "SELECT COUNT(*) FROM sites WHERE note IN (SELECT LOWER(head) FROM regions) AND beds < 35",
    "SELECT CASE WHEN beds > 15 THEN 'big' ELSE 'small' END AS k, COUNT(*) FROM sites GROUP BY 1",
    "SELECT site FROM sites UNION ALL SELECT region FROM regions",
    "SELECT region FROM sites UNION SELECT region FROM regions",
    "SELECT COUNT(*) FILTER (WHERE beds > 10) AS n, SUM(beds) FILTER (WHERE region = 'north') AS k FROM sites",
    "SELECT region, COUNT(*) FROM sites GROUP BY ROLLUP (region) ORDER BY region",
    "SELECT COUNT(*), SUM(beds), MAX(site) FROM sites WHERE beds > 999",
    "SELECT COUNT(*) + 1 AS k, COUNT(note) FROM sites WHERE beds > 999 HAVING COUNT(*) = 0",
    "SELECT region, COUNT(*) FROM sites WHERE beds > 999 GROUP BY region",
    "SELECT SUM(x.n) FROM (SELECT region, COUNT(*) AS n FROM sites WHERE beds > 999 GROUP BY region) AS x",
    "SELECT COUNT(*) FROM northern WHERE beds < 25",
    "SELECT s.site FROM sites s LEFT JOIN regions r ON s.region = r.region AND r.head = 'A' WHERE r.head IS NULL",
    "SELECT region, SUM(1) AS n, SUM(2.5) AS k FROM sites GROUP BY region",
    "SELECT SUM(1) AS n FROM sites WHERE beds > 999",
    "SELECT MAX(beds), COUNT(*) FROM (SELECT s.beds, r.head FROM sites s JOIN regions r ON s.region = r.region) AS q",
    "WITH r AS (SELECT region FROM regions WHERE head ILIKE 'a%'), b AS (SELECT beds FROM sites s JOIN r "
    "ON s.region = r.region) SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY beds) AS m FROM b",
    "WITH q AS (SELECT s.site, r.head FROM sites s LEFT JOIN regions r ON s.region = r.region AND r.head = 'B') "
    "SELECT q.head, COUNT(*) AS n, SUM(t.beds) AS b FROM q JOIN sites t ON q.site = t.site GROUP BY q.head",
    "SELECT site FROM sites WHERE region IN (SELECT r.region FROM regions r JOIN sites s ON r.region = s.region "
    "WHERE s.beds > 10) ORDER BY site",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rows = tmp_path_factory.mktemp("public_queries"), range(300)
    visits = {"person": [n // 3 for n in rows], "site": ["xyz"[n % 3] for n in rows]}
    for name, columns in (("visits", visits), ("sites", SITES), ("regions", REGIONS)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    return folder


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[lw.Session]:
    with lw.connect(folder / "lapwing.toml") as opened:
        yield opened


@pytest.fixture(scope="module")
def exact() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, columns in (("sites", SITES), ("regions", REGIONS)):
            connection.register(f"{name}_", pa.table(columns))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
        connection.execute("CREATE VIEW northern AS SELECT site, beds FROM sites WHERE region = 'north'")
        yield connection


def plain(value: object) -> object:
    return float(value) if isinstance(value, int | float | Decimal) else value


def in_order(rows: list[tuple[object, ...]], text: str) -> list[tuple[object, ...]]:
    return rows if "ORDER BY" in text else sorted(rows, key=lambda row: [str(value) for value in row])


def check_same(text: str, session: lw.Session, exact: duckdb.DuckDBPyConnection) -> None:
    expected = [tuple(map(plain, row)) for row in exact.execute(text).fetchall()]
    rows = [tuple(map(plain, row.values())) for row in session.sql(text).rows()]
    assert in_order(rows, text) == in_order(expected, text)


@pytest.mark.parametrize("text", one_in(3, SAME))
def test_it_is_what_duckdb_answers(text: str, session: lw.Session, exact: duckdb.DuckDBPyConnection) -> None:
    check_same(text, session, exact)


def test_twins_rows_that_are_lost_or_rounded_are_noticed(
    session: lw.Session, exact: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: rows that are alike are one; numbers without a step are seen in steps."""
    rows = PublicData.rows
    with monkeypatch.context() as planted:
        planted.setattr(PublicData, "rows", lambda *given: tuple(dict.fromkeys(rows(*given) or ())))
        with pytest.raises(AssertionError):
            check_same(SAME[0], session, exact)
    with monkeypatch.context() as planted:
        planted.setattr(public_answers, "as_stored", lambda _: {})
        with pytest.raises(AssertionError):
            check_same(SAME[16], session, exact)


def test_it_is_free_takes_no_price_and_is_in_no_history(session: lw.Session) -> None:
    text = "SELECT region, COUNT(*) AS n FROM sites GROUP BY region ORDER BY region"
    before, entries = session.budget(), len(session.history())
    for epsilon, error in ((None, None), (1, None), (None, 5)):
        answer = session.sql(text, epsilon=epsilon, error=error)
        assert [row["n"] for row in answer.rows()] == [1, 3, 1]
        assert answer.cost.amount == 0
        assert not answer.stored
        assert (answer.entries, len(answer.interval())) == ((), 0)
        preview = session.explain(text, epsilon=epsilon, error=error)
        assert (preview.price.amount, preview.refusal, preview.cells) == (Fraction(0), None, 5)
        assert preview.epsilon == 0
    with pytest.raises(InvalidParameter):
        session.sql(text, epsilon=1, error=5)
    assert (session.budget().spent, len(session.history())) == (before.spent, entries)
    assert session.sql(text, epsilon=10**6).cost.amount == 0  # no budget bears this


def test_only_what_names_no_protected_table_is_free(session: lw.Session) -> None:
    """A query in which one protected row is read has a leaf that is paid, however deep it stands."""
    for text in (
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM visits JOIN sites USING (site)",
        "SELECT site, (SELECT COUNT(*) FROM visits) AS n FROM sites",
        "SELECT COUNT(*) AS n FROM sites WHERE beds > (SELECT COUNT(*) / 50 FROM visits)",
        "SELECT region, SUM(n) FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) JOIN sites USING (site) "
        "GROUP BY region",
        "SELECT site FROM sites WHERE site IN (SELECT site FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site)"
        " WHERE n > 10)",
        "SELECT COUNT(*) AS n FROM sites UNION ALL SELECT COUNT(*) FROM visits",
    ):
        with pytest.raises(InvalidParameter):
            session.explain(text)
        plan = session.plan(text, (), epsilon=1)
        assert plans_asked(plan)
        assert session.explain(text, epsilon=0.5).price.amount > 0
        if plan.composition is not None:  # planted: it is priced as if it touched no data
            with pytest.raises(InvalidParameter):
                free_quote(plan, session.catalog.budget)


def test_twin_a_protected_table_that_is_taken_for_public_is_not_read(
    session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a protected table has the kind of a public one. Its rows still do not come into a plan."""
    monkeypatch.setattr(Kinds, "in_from", lambda *_: [RelationKind.PUBLIC])
    for text in ("SELECT * FROM (SELECT site FROM visits) v", "SELECT x.n FROM (SELECT COUNT(*) AS n FROM visits) x"):
        with pytest.raises(lw.errors.LapwingError):
            session.sql(text)


def test_public_queries_stand_in_a_batch(session: lw.Session) -> None:
    one, other = session.batch(["SELECT COUNT(*) AS n FROM sites", "SELECT COUNT(*) AS n FROM visits"], epsilon=0.5)
    assert one.rows() == [{"n": 5}]
    assert one.cost.amount == 0
    assert other.cost.amount > 0
    (alone,) = session.batch(["SELECT COUNT(*) AS n FROM regions"], epsilon=0.5)
    assert alone.rows() == [{"n": 4}]
    assert alone.cost.amount == 0


def test_what_is_not_answered_says_why(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused_as("subquery_not_supported"):
        session.sql("SELECT site FROM sites WHERE region NOT IN (SELECT region FROM regions WHERE head = 'A')")
    with refused_as("subquery_not_supported"):
        session.sql("SELECT site FROM sites s WHERE EXISTS (SELECT 1 FROM regions r WHERE r.region = s.region)")
    with refused_as("subquery_not_one_column"):
        session.sql("SELECT site FROM sites WHERE region IN (SELECT region, head FROM regions)")
    monkeypatch.setattr(public_answers, "MOST_PUBLIC", 3)
    with refused_as("public_rows_not_distinct", saying="3"):
        session.sql("SELECT COUNT(*) FROM sites")
    assert session.sql("SELECT COUNT(*) AS n FROM sites WHERE beds < 15").rows() == [{"n": 2}]


@pytest.mark.long
def test_rows_of_one_version_of_a_file_are_shown(tmp_path: Path, folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "lapwing.toml").write_text(CATALOG)
    with lw.connect(tmp_path / "lapwing.toml") as session:
        assert session.sql("SELECT COUNT(*) AS n FROM regions").rows() == [{"n": 4}]
        pq.write_table(pa.table(REGIONS)[:3], tmp_path / "regions.parquet")
        with pytest.raises(DataFault):
            session.sql("SELECT COUNT(*) AS n FROM regions")
    infinite = {**SITES, "rate": [float("inf"), 1.0, 2.0, 3.0, 4.0]}
    pq.write_table(pa.table(infinite), tmp_path / "sites.parquet")
    with lw.connect(tmp_path / "lapwing.toml") as session:
        with refused_as("public_rows_not_distinct"):
            session.sql("SELECT rate FROM sites")
        assert session.sql("SELECT COUNT(*) AS n FROM sites").rows() == [{"n": 5}]
