"""SQLAlchemy's dialect: engines, reflection from public facts, and SQL that Lapwing reads."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import (
    BigInteger,
    Date,
    DateTime,
    Double,
    Engine,
    MetaData,
    Numeric,
    String,
    Table,
    case,
    create_engine,
    distinct,
    exc,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import make_url

from lapwing import dbapi
from lapwing.catalog.toml import write
from lapwing.dbapi.sqlalchemy.dialect import LapwingDialect
from lapwing.dbapi.sqlalchemy.urls import connect_arguments
from lapwing.session import Session
from lapwing.tables import ColumnDescription, TableDescription, Tables
from tests.support.server.world import World, data_set

pandas = pytest.importorskip("pandas")


@pytest.fixture(params=["local", "remote"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Return an engine by its address, whose queries cost ε = 1 unless they say otherwise."""
    if request.param == "local":
        with data_set(tmp_path, "open") as session:
            write(session.catalog, tmp_path / "open" / "lapwing.toml", overwrite=True)
        made = create_engine(f"lapwing:///{tmp_path / 'open'}?epsilon=1")
    else:
        made = engine_of(request.getfixturevalue("shared"))
    yield made
    made.dispose()


def engine_of(world: World, options: str = "epsilon=1") -> Engine:
    parts = urlsplit(world.address)
    return create_engine(f"lapwing://:{world.tokens['alice']}@{parts.netloc}/open?tls=off&{options}")


def answer_of(result: Any) -> Any:
    return result.context.answer


def visits_of(engine: Engine) -> Table:
    return Table("visits", MetaData(), autoload_with=engine)


def test_a_text_is_answered(engine: Engine) -> None:
    with engine.connect() as connection:
        query = text(
            "SELECT plan, COUNT(*) AS n FROM visits WHERE age > :age AND day < :day GROUP BY plan ORDER BY plan"
        )
        result = connection.execute(query, {"age": 0, "day": date(2026, 5, 1)})
        assert [*result.keys()] == ["plan", "n"]
        assert [row.plan for row in result] == ["a", "b"]
        connection.commit()
    assert engine.dialect.default_schema_name == "open"


def test_tables_are_reflected(engine: Engine) -> None:
    facts = inspect(engine)
    assert facts.get_schema_names() == ["open"]
    assert facts.get_table_names() == facts.get_table_names("open") == ["visits", "codes"]
    assert facts.get_table_names("other") == facts.get_view_names() == []
    assert facts.has_table("codes")
    assert not facts.has_table("nothing")
    with pytest.raises(exc.NoSuchTableError):
        facts.get_columns("nothing")
    visits = visits_of(engine)
    kinds = {column.name: type(column.type) for column in visits.columns}
    assert (kinds["plan"], kinds["age"], kinds["cost"]) == (String, BigInteger, Double)
    assert (kinds["day"], kinds["seen"]) == (Date, DateTime)
    assert visits.comment
    assert "-1 to 3" in str(visits.c.age.comment)
    assert not visits.primary_key.columns
    assert not facts.get_indexes("visits")
    assert not facts.get_unique_constraints("visits")
    assert not facts.get_check_constraints("visits")
    assert visits.c.person.comment == "whose row it is"  # which the catalog does not declare as a column


class Described:
    """A session of which only the tables are asked."""

    dataset = "clinic"
    tables = Tables(
        [
            TableDescription(name="people", kind="protected", columns=(ColumnDescription(name="id", type="integer"),)),
            TableDescription(
                name="visits",
                kind="protected",
                columns=(
                    ColumnDescription(name="who", type="integer", nullable=False),
                    ColumnDescription(name="cost", type="decimal", step="0.01"),
                    ColumnDescription(name="code", type=None),
                ),
                link=("people", {"who": "id"}),
                references={"codes": {"code": "code"}},
            ),
            TableDescription(name="dear", kind="view", columns=(), sql="SELECT 1"),
        ]
    )

    def sql(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None: ...


def test_links_views_and_decimals_are_reflected() -> None:
    facts = inspect(create_engine("lapwing://", creator=lambda: dbapi.connect(Described())))
    assert facts.get_view_names() == ["dear"]
    assert facts.get_view_definition("dear") == "SELECT 1"
    who, cost, code = facts.get_columns("visits")
    assert (who["nullable"], cost["nullable"]) == (False, True)
    assert isinstance(cost["type"], Numeric)
    assert (cost["type"].precision, cost["type"].scale) == (38, 2)
    assert str(code["type"]) == "NULL"
    keys = facts.get_foreign_keys("visits")
    pairs = [(key["constrained_columns"], key["referred_table"], key["referred_columns"]) for key in keys]
    assert pairs == [(["who"], "people", ["id"]), (["code"], "codes", ["code"])]


def statements(t: Table) -> dict[str, Any]:
    """Return statements by what they show."""
    count = func.count().label("n")
    grown = case((t.c.age > 0, "old"), else_="young").label("g")
    inner = select(t.c.plan, func.count().label("n")).group_by(t.c.plan).subquery()
    return {
        "group": select(t.c.plan, count).group_by(t.c.plan).order_by(count.desc()).limit(1).offset(1),
        "having": select(t.c.plan, count).group_by(t.c.plan).having(func.count() > 3),
        "in": select(count).where(t.c.plan.in_(["a", "b"]), t.c.age.not_in([7])),
        "between": select(count).where(t.c.age.between(0, 2) | t.c.day.is_(None)),
        "startswith": select(count).where(t.c.plan.startswith("a")),
        "endswith": select(count).where(~t.c.plan.endswith("a")),
        "contains": select(count).where(t.c.plan.contains("a"), ~t.c.plan.contains("b")),
        "not startswith": select(count).where(~t.c.plan.startswith("a"), t.c.plan.endswith("b")),
        "ilike": select(count).where(t.c.plan.ilike("A%"), t.c.plan.not_ilike("%b", escape="/")),
        "regexp": select(count).where(t.c.plan.regexp_match("^a"), ~t.c.plan.regexp_match("b$")),
        "means": select(func.avg(t.c.cost), func.sum(t.c.size), func.count(distinct(t.c.person))).select_from(t),
        "division": select((func.sum(t.c.size) / func.count()).label("mean")).select_from(t),
        "floor": select((t.c.size // 5).label("g"), count).group_by("g"),
        "case": select(grown, count).group_by(grown),
        "filter": select(func.count().filter(t.c.age > 0)).select_from(t),
        "inner": select(func.sum(inner.c.n)).select_from(inner),
        "dates": select(count).where(
            t.c.day >= date(2026, 1, 1), func.date_trunc("month", t.c.day) == date(2026, 1, 1)
        ),
    }


def test_statements_are_answered(engine: Engine) -> None:
    with engine.connect() as connection:
        for name, statement in statements(visits_of(engine)).items():
            assert connection.execute(statement.execution_options(lapwing_epsilon=2)).keys(), name
        qualified = Table("visits", MetaData(schema="open"), autoload_with=engine)
        query = select(qualified.c.plan, func.count()).group_by(qualified.c.plan)
        assert len(connection.execute(query).all()) == 2


def test_lists_without_values_decide(engine: Engine) -> None:
    """All of 20 people, or none of them, and noise far below the half."""
    t = visits_of(engine)
    with engine.connect() as connection:
        for column in (t.c.plan, t.c.age, t.c.day, t.c.seen):
            options = {"lapwing_epsilon": 8}
            none = connection.scalar(select(func.count()).where(column.in_([])), execution_options=options)
            all_ = connection.scalar(select(func.count()).where(column.not_in([])), execution_options=options)
            assert none is not None
            assert all_ is not None
            assert none < 10 < all_, column.name


def test_prices_labels_and_results(tmp_path: Path) -> None:
    with data_set(tmp_path, "open") as session:
        made = create_engine("lapwing://", creator=lambda: dbapi.connect(session, epsilon=1))
        t = visits_of(made)
        query = select(func.count().label("n")).select_from(t)
        with made.connect() as connection:
            result = connection.execute(query.execution_options(lapwing_epsilon=3, lapwing_label="mine"))
            assert answer_of(result).cost == session.price(3)
            result.all()
            assert answer_of(result).interval()["n"]  # though its cursor is closed
            with pytest.raises(exc.StatementError, match="intervals=true"):
                connection.execute(query.execution_options(lapwing_intervals=True))
        with made.execution_options(lapwing_error=4).connect() as cheaper:
            facts = answer_of(cheaper.execute(select(func.count().label("n")).where(t.c.age > 0))).describe()
            assert facts[0].half_width <= 4
        labels = [row.wording and row.wording.label for row in session.budget().history]
        assert labels == ["mine", None]
        made.dispose()
        assert session.budget()  # which a closed engine left open


def test_columns_of_intervals_are_those_of_an_engine(shared: World) -> None:
    """SQLAlchemy keeps the columns of a statement for its next run: the second run must have them too."""
    made = engine_of(shared, "epsilon=1&intervals=on&confidence=0.9")
    t = visits_of(made)
    query = select(t.c.plan, func.count().label("n")).group_by(t.c.plan)
    with made.connect() as connection:
        for _ in range(2):
            result = connection.execute(query)
            assert [*result.keys()] == ["plan", "n", "n_low", "n_high"]
            row = result.first()
            assert row is not None
            assert row.n_low < row.n < row.n_high
            assert row._mapping[t.c.plan] == "a"
    made.dispose()


def test_refusals_and_writes(engine: Engine) -> None:
    t = visits_of(engine)
    with engine.connect() as connection:
        with pytest.raises(exc.ProgrammingError) as caught:
            connection.execute(text("SELECT nothing FROM visits"))
        assert getattr(caught.value.orig, "code", None) == "query_refused"
        with pytest.raises(exc.NotSupportedError):
            connection.execute(t.insert(), [{"age": 1}, {"age": 2}])
        with pytest.raises(exc.CompileError):
            connection.execute(select(func.count()).where(t.c.plan.startswith("a", autoescape=True)))
    with pytest.raises(exc.NotSupportedError):
        pandas.DataFrame({"a": [1]}).to_sql("new", engine)
    dialect = engine.dialect
    assert isinstance(dialect, LapwingDialect)
    assert dialect.do_ping(engine.raw_connection().dbapi_connection)  # type: ignore[arg-type]


def test_pandas_reads(engine: Engine) -> None:
    t = visits_of(engine)
    frame = pandas.read_sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", engine)
    assert [*frame.columns] == ["plan", "n"]
    with engine.connect() as connection:
        again = pandas.read_sql(select(t.c.plan, func.count().label("n")).group_by(t.c.plan), connection)
    assert again.equals(frame)


def test_threads_share_an_engine(engine: Engine) -> None:
    def ask(age: int) -> int:
        with engine.connect() as connection:
            return len(connection.execute(text("SELECT COUNT(*) FROM visits WHERE age > :age"), {"age": age}).all())

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(ask, range(3))] == [1, 1, 1]


def test_names_like_words_are_quoted() -> None:
    prepare = LapwingDialect().identifier_preparer
    assert [prepare.quote(name) for name in ("plan", "pivot", "select", "Town")] == [
        "plan",
        '"pivot"',
        '"select"',
        '"Town"',
    ]


THIRD = Fraction(1, 3)
ADDRESSES: list[tuple[str, str, dict[str, object]]] = [
    ("lapwing://", "lapwing.toml", {}),
    ("lapwing:///data/visits.lapwing.toml", "data/visits.lapwing.toml", {}),
    ("lapwing:////srv/clinic?epsilon=1/3&label=all", "/srv/clinic", {"epsilon": THIRD, "label": "all"}),
    ("lapwing://:t@dp.example.org", "https://dp.example.org", {"token": "t"}),
    ("lapwing://me:t%2F@dp.example.org:84/a", "https://dp.example.org:84", {"token": "t/", "dataset": "a"}),
    ("lapwing://:t@[::1]:80?tls=off", "http://[::1]:80", {"token": "t"}),
    ("lapwing://dp.example.org?intervals=1", "https://dp.example.org", {"token": "kept", "intervals": True}),
    ("lapwing:///?assuming_count=9", "lapwing.toml", {"assuming_count": 9}),
]


@pytest.mark.parametrize(("address", "target", "options"), ADDRESSES)
def test_addresses(monkeypatch: pytest.MonkeyPatch, address: str, target: str, options: dict[str, object]) -> None:
    monkeypatch.setenv("LAPWING_TOKEN", "kept")
    assert connect_arguments(make_url(address)) == (target, options)


WRONG = ("epslon=1", "epsilon=x", "epsilon=1/0", "assuming_count=1.5", "intervals=maybe", "tls=so")


@pytest.mark.parametrize("options", WRONG)
def test_wrong_options_are_named(options: str) -> None:
    with pytest.raises(exc.ArgumentError, match=options.partition("=")[0]):
        create_engine(f"lapwing:///clinic?{options}").connect()


def test_what_stands_for_a_session_has_nothing_that_it_lacks(tmp_path: Path) -> None:
    with data_set(tmp_path, "open") as session:
        assert {name for name in vars(Described) if not name.startswith("_")} <= {*dir(Session), *vars(session)}
