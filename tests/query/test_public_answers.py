"""Answers joined to public tables: computed from released rows and public ones, at no further price."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind import public_answers
from lapwing.query.plan.composition import plans_asked
from tests.support.effort import only
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "towns"
ledger = "sqlite:towns.lapwing.db"
[budget]
epsilon = 10000
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.visits.columns]
site = { type = "string", values = ["x", "y", "z"] }
age = { type = "integer", lower = 0, upper = 80 }
[tables.sites]
source = "sites.parquet"
public = true
[tables.sites.columns]
site = { type = "string" }
region = { type = "string" }
beds = { type = "integer" }
note = { type = "string" }
"""
SITES = {
    "site": ["x", "y", "z", "w"],
    "region": ["north", "south", "north", "east"],
    "beds": [10, 20, 30, 40],
    "note": ["a", None, "b", "c"],
}
A = "SELECT site, COUNT(*) AS n FROM visits GROUP BY site"
B = "SELECT COUNT(*) AS n FROM visits WHERE age > 40"
OVER = [
    "SELECT region, SUM(n) AS n FROM a JOIN sites USING (site) GROUP BY region ORDER BY region",
    "SELECT a.site, region, n / beds AS r FROM a JOIN sites AS s ON a.site = s.site AND beds < 25 ORDER BY n DESC",
    "SELECT s.site, n FROM sites s LEFT JOIN a ON a.site = s.site ORDER BY s.site",
    "SELECT site, n, beds FROM a FULL JOIN (SELECT site, beds FROM sites WHERE region <> 'south') USING (site) "
    "ORDER BY site",
    "SELECT x.site, y.region, n FROM a x, sites y WHERE x.n > 500 OR y.site = 'w' ORDER BY x.site, y.site",
    "SELECT a.site, COUNT(*) AS k, MAX(beds) AS m FROM a JOIN sites t ON t.site >= a.site GROUP BY a.site ORDER BY 1",
    "SELECT a.site, a.n, t.region FROM a JOIN b ON a.n < b.n JOIN sites t ON a.site = t.site ORDER BY a.site",
    "SELECT region, (SELECT n FROM b) AS n, (SELECT n FROM b) > beds AS m FROM sites ORDER BY beds",
    "SELECT (SELECT MAX(n) FROM a) FROM sites AS s WHERE s.beds < 25",
    "SELECT b.n, s.region FROM b, sites s WHERE s.beds > 15 AND region <> 'east' ORDER BY region",
    "SELECT b.n, s.region FROM b CROSS JOIN sites s ORDER BY region",  # two rows are alike in what is named
    "SELECT b.n, note FROM b CROSS JOIN sites s ORDER BY note",
    "SELECT note, COUNT(*) AS k, SUM(n) AS n FROM a JOIN sites USING (site) GROUP BY note ORDER BY note",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Session]:
    folder, rows = tmp_path_factory.mktemp("public"), range(3_000)
    columns = {
        "person": [n // 3 for n in rows],
        "site": ["xyz"[n * n % 7 % 3] for n in rows],
        "age": [n % 80 for n in rows],
    }
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    pq.write_table(pa.table(SITES), folder / "sites.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    with lw.connect(folder / "lapwing.toml") as opened:
        yield opened


def of_sql(session: lw.Session, over: str) -> list[tuple[object, ...]]:
    """Return what DuckDB makes of the released rows and the public ones."""
    with duckdb.connect() as connection:
        for name, inner in (("a", A), ("b", B)):
            released = session.sql(inner, epsilon=0.5).to_arrow()
            connection.register(f"{name}_", released)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
        connection.register("sites_", pa.table(SITES))
        connection.execute("CREATE TABLE sites AS SELECT * FROM sites_")
        return [tuple(map(plain, row)) for row in connection.execute(over).fetchall()]


def plain(value: object) -> object:
    return round(float(value), 9) if isinstance(value, int | float) else value


def answered(session: lw.Session, over: str) -> list[tuple[object, ...]]:
    answer = session.sql(f"WITH a AS ({A}), b AS ({B}) {over}", epsilon=0.5)
    return [tuple(map(plain, row.values())) for row in answer.rows()]


@pytest.mark.parametrize("over", only([0], OVER))
def test_it_is_what_sql_makes_of_released_and_public_rows(over: str, session: lw.Session) -> None:
    expected = of_sql(session, over)
    assert len(expected) > 1
    assert answered(session, over) == expected


@pytest.mark.long
def test_nothing_is_read_or_paid_but_the_answer_inside(session: lw.Session) -> None:
    text = f"SELECT region, n FROM ({A.replace('GROUP', 'WHERE age > 7 GROUP')}) JOIN sites USING (site)"
    (leaf,) = plans_asked(session.plan(text, (), epsilon=1))
    alone = session.explain(A.replace("GROUP", "WHERE age > 7 GROUP"), epsilon=1)
    assert leaf.question == session.plan(A.replace("GROUP", "WHERE age > 7 GROUP"), (), epsilon=1).question
    assert session.explain(text, epsilon=1).price == alone.price
    answer = session.sql(text, epsilon=1)
    assert answer.cost == alone.price
    assert [column.half_width is not None for column in answer.describe()] == [False, True]
    assert set(answer.interval()) == {"n"}
    assert str(answer).count("±") == 3
    assert session.explain(text, error=20).price.amount > 0


def test_too_many_public_rows_are_refused(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_answers, "MOST_PUBLIC", 3)
    with refused_as("public_rows_not_distinct", saying="3"):
        session.explain(f"WITH a AS ({A}) {OVER[0]}", epsilon=1)


@pytest.mark.long
def test_rows_that_are_alike_and_values_that_are_missing_are_joined_as_they_are(
    session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: rows that are alike are joined as one."""
    for over in OVER[-3:]:
        assert answered(session, over) == of_sql(session, over)
    rows = PublicData.rows
    monkeypatch.setattr(PublicData, "rows", lambda *given: tuple(dict.fromkeys(rows(*given) or ())))
    assert answered(session, OVER[-3]) != of_sql(session, OVER[-3])


@pytest.mark.long
def test_of_many_public_rows_those_that_where_keeps_are_joined(
    session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = "SELECT b.n, s.region FROM b, sites AS s WHERE s.beds > 15 AND b.n > 0 ORDER BY region"
    expected = of_sql(session, over)
    monkeypatch.setattr(public_answers, "MOST_PUBLIC", 3)
    assert answered(session, over) == expected
    with refused_as("public_rows_not_distinct", saying="3"):  # where a join keeps rows that WHERE is not asked of
        session.explain(f"WITH b AS ({B}) {over.replace('b, sites AS s', 'b LEFT JOIN sites AS s ON b.n > 0')}")
    # Planted: what is about an answer is asked of public rows, and one is lost.
    lost = over.replace("b.n > 0", "b.n > 0 AND s.beds > 25")
    assert answered(session, lost) != expected


def test_answers_of_numbers_are_divided_by_public_ones_in_every_row(session: lw.Session) -> None:
    """A public number rests on no noise: intervals are those of the count, divided."""
    text = f"WITH a AS ({A}) SELECT a.n, n / beds AS r, beds FROM a JOIN sites USING (site) ORDER BY site"
    answer = session.sql(text, epsilon=0.5)
    counts, ratios = answer.interval()["n"], answer.interval()["r"]
    for row, low, high, least, most in zip(answer.rows(), *counts, *ratios, strict=True):
        assert (least, most) == pytest.approx((low / row["beds"], high / row["beds"]))


@pytest.mark.long
def test_rows_of_units_are_still_joined_to_public_ones(session: lw.Session) -> None:
    units = (
        "(SELECT person, MAX(age) AS age, COUNT(*) AS n FROM visits GROUP BY person) AS p JOIN sites ON age = beds + 5"
    )
    plain_rows = session.sql(f"SELECT COUNT(*) AS n FROM {units} WHERE beds > 15", epsilon=1)
    noisy = session.sql(f"SELECT COUNT(*) AS n FROM {units} WHERE n > (SELECT COUNT(*) / 10000 FROM visits)", epsilon=1)
    assert [list(answer.rows()[0]) for answer in (plain_rows, noisy)] == [["n"], ["n"]]
    assert len(noisy.notes) > len(plain_rows.notes)  # it says what the number was
