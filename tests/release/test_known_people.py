"""Means over a known number of people: what they release, what they cost, and what a wrong number does."""

from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer.notes import PUBLIC_NUMBER, PUBLIC_PEOPLE, code_of
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import dumps, loads
from lapwing.engines import DuckDB
from lapwing.errors import CatalogError, QueryRefused
from lapwing.mechanisms import DiscreteLaplace
from lapwing.query.bind.bind import bind
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.pricing import measured_vectors
from lapwing.query.sensitivity import stability
from tests.support.effort import one_in, only
from tests.support.engines.tables import run
from tests.support.refusals import refused_as
from tests.support.release.small import priced, shown

PEOPLE = 1000
CATALOG = """
[dataset]
name = "poll"
ledger = "sqlite:poll.db"
[budget]
epsilon = 100
measure = "pure"
neighbouring = "replace_one"
[tables.poll]
source = "poll.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
people = {people}
[tables.poll.columns]
agrees = {{ type = "boolean", nullable = false }}
cost = {{ type = "integer", lower = 0, upper = 100, nullable = false }}
age = {{ type = "integer", lower = 0, upper = 100 }}
"""


def described(folder: Path, people: int = PEOPLE, **other: str) -> Catalog:
    text = CATALOG.format(people=people)
    for old, new in other.items():
        text = text.replace({"neighbours": '"replace_one"', "rows": "max_rows_per_unit = 1"}[old], new)
    return loads(text, file="lapwing.toml", folder=folder)


def poll(folder: Path, people: int = PEOPLE, first: int = 0) -> None:
    persons = list(range(people))
    columns = {
        "person": pa.array(persons, pa.int64()),
        "agrees": pa.array([p % 10 < 3 for p in persons], pa.bool_()),
        "cost": pa.array([first, *persons[1:]], pa.int64()),
        "age": pa.nulls(people, pa.int64()),
    }
    pq.write_table(pa.table(columns), folder / "poll.parquet")


def asked(folder: Path, text: str, **facts: Any) -> Any:
    return bind(text, described(folder, **facts))


@pytest.mark.parametrize(
    ("aggregate", "known"),
    [
        ("AVG(cost)", True),
        ("AVG(agrees)", True),
        ("AVG(CASE WHEN cost > 50 THEN 1 ELSE 0 END)", True),
        ("AVG(COALESCE(age, 40))", True),
        ("AVG(age)", False),
        ("AVG(cost) FILTER (WHERE agrees)", False),
        ("AVG(cost) FROM poll WHERE agrees", False),
        ("AVG(cost) FROM (SELECT cost FROM poll WHERE agrees)", False),
        ("AVG(cost) FROM (SELECT cost FROM poll LIMIT 5)", None),
        ("agrees, AVG(cost) FROM poll GROUP BY agrees", False),
        ("agrees, AVG(cost) FROM poll GROUP BY ROLLUP (agrees)", False),
    ],
)
def test_only_means_over_everybody_know_their_number(tmp_path: Path, aggregate: str, known: bool | None) -> None:
    text = f"SELECT {aggregate}" + ("" if "FROM" in aggregate else " FROM poll")
    if known is None:
        with pytest.raises(QueryRefused):
            asked(tmp_path, text)
        return
    plan = asked(tmp_path, text)
    assert isinstance(plan.outputs[-1].value, KnownMean) == known
    assert any(not isinstance(measure, Sum) for measure in plan.question.measures) != known


@pytest.mark.long
def test_the_share_of_a_thousand_is_that_of_the_lecture_notes(tmp_path: Path) -> None:
    poll(tmp_path)
    (tmp_path / "lapwing.toml").write_text(CATALOG.format(people=PEOPLE))
    with lw.connect(tmp_path / "lapwing.toml") as session:
        preview = session.explain("SELECT AVG(agrees) AS share FROM poll", epsilon=1)
        assert preview.columns[0].half_width == pytest.approx(0.003)
        assert [m.scale for m in preview.measures] == [1]
        answer = session.sql("SELECT AVG(agrees) AS share FROM poll", epsilon=1)
        ((low,), (high,)) = answer.interval()["share"]
        share = float(answer.rows()[0]["share"])  # type: ignore[arg-type]
        assert (share - low, high - share) == (pytest.approx(0.003), pytest.approx(0.003))
        assert abs(share - 0.3) < 0.03
        assert any("1,000 people" in note for note in answer.notes)
        (facts,) = answer.describe()
        assert any("1,000" in note for note in facts.notes)
        # A wanted error of 3 people takes a little less than ε = 1, whose noise is within 3 more often than is asked.
        assert session.explain("SELECT AVG(agrees) AS share FROM poll", error=0.003).epsilon == pytest.approx(
            0.83, 0.01
        )
        wider = session.explain("SELECT AVG(cost) AS m, COUNT(*) AS n FROM poll", error=2)
        assert [column.half_width for column in wider.columns] == [pytest.approx(2, rel=0.01), 0]
        with refused_as("assumes_rows"):
            session.explain("SELECT AVG(age) FROM poll", error=1)


def sensitivity(folder: Path, people: int, neighbouring: str = "replace_one") -> tuple[int, int]:
    """Return what is stated, and how far the sum moves when one person's row is another."""
    plan = asked(folder, "SELECT AVG(cost) FROM poll", people=people)
    ((bound,),) = stability.of_question(plan.question, neighbouring)
    found = []
    for value in (0, 100):
        poll(folder, people=3, first=value)
        with closing(DuckDB(described(folder, people))) as engine:
            found.append(run(engine, plan.question)[()])
    ((before,), (after,)) = found
    return bound.sensitivity.l1, abs(after - before)


@pytest.mark.parametrize("people", one_in(3, [1, 3, 10**6]))
def test_a_wrong_number_changes_neither_sum_nor_price(tmp_path: Path, people: int) -> None:
    """What is released does not depend on it: the number is met after the noise."""
    assert sensitivity(tmp_path, people) == (100, 100)
    stated, moved = sensitivity(tmp_path, people, "add_remove")
    assert stated < moved, "the twin: what a unit that comes or goes moves is not enough for one in another's place"


def test_a_wrong_number_moves_the_mean_to_the_middle(tmp_path: Path) -> None:
    poll(tmp_path, people=500)
    (tmp_path / "lapwing.toml").write_text(CATALOG.format(people=1000))
    with lw.connect(tmp_path / "lapwing.toml") as session:
        share = float(session.sql("SELECT AVG(agrees) AS s FROM poll", epsilon=50).rows()[0]["s"])  # type: ignore[arg-type]
    # The middle of 0 and 1, in whole steps, is 0: half of the people, half of the share.
    assert abs(share - 0.15) < 0.01


ALL_OF_THEM = "COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a, SUM(cost) / COUNT(*) AS q"


@pytest.mark.long
@pytest.mark.parametrize("measure", only([0], ["pure", "gdp", "zcdp"]))
def test_counts_and_sums_of_everybody_pay_for_no_count(tmp_path: Path, measure: str) -> None:
    """Only the sum around the middle is measured: it has the noise of AVG(x) alone, which is free afterwards."""
    poll(tmp_path)
    other = f'measure = "{measure}"' + ("" if measure == "pure" else "\ndelta = 1e-6")
    (tmp_path / "lapwing.toml").write_text(CATALOG.format(people=PEOPLE).replace('measure = "pure"', other))
    with lw.connect(tmp_path / "lapwing.toml") as session:
        alone = session.explain("SELECT AVG(cost) AS a FROM poll", epsilon=1)
        preview = session.explain(f"SELECT {ALL_OF_THEM} FROM poll", epsilon=1)
        assert preview.cost == alone.cost == session.price(1)
        widths = {column.name: column.half_width for column in preview.columns}
        assert widths["n"] == 0
        assert widths["a"] == alone.columns[0].half_width
        assert widths["s"] == pytest.approx(1000 * (widths["a"] or 0))
        assert {code_of(note) for note in preview.notes} >= {PUBLIC_NUMBER}
        answer = session.sql(f"SELECT {ALL_OF_THEM} FROM poll", epsilon=1)
        (told,) = shown(answer)
        assert told["n"] == PEOPLE
        assert told["s"] == pytest.approx(1000 * told["a"])
        assert told["q"] == pytest.approx(told["a"])
        assert [ends.tolist() for ends in answer.interval()["n"]] == [[PEOPLE], [PEOPLE]]
        low, high = answer.interval()["q"]
        assert high[0] - low[0] == pytest.approx(2 * (widths["a"] or 0), rel=0.01)
        assert PUBLIC_NUMBER in map(code_of, answer.notes)
        assert answer.consistent().rows()[0]["n"] == PEOPLE
        assert session.sql("SELECT AVG(cost) AS a FROM poll", epsilon=1).stored
        assert session.sql(f"SELECT {ALL_OF_THEM} FROM poll", epsilon=1).rows() == answer.rows()
        alone_count = session.sql("SELECT COUNT(*) AS n FROM poll", epsilon=1)  # that compares it with the data
        assert alone_count.cost == session.price(1)


@pytest.mark.parametrize(
    "columns", only([0], ["COUNT(*) AS n, VARIANCE(cost) AS v", "COUNT(*) AS n, COUNT(DISTINCT cost) AS d"])
)
def test_what_stands_beside_a_public_count_gets_its_price(tmp_path: Path, columns: str) -> None:
    poll(tmp_path)
    (tmp_path / "lapwing.toml").write_text(CATALOG.format(people=PEOPLE))
    with lw.connect(tmp_path / "lapwing.toml") as session:
        beside = session.explain(f"SELECT {columns} FROM poll", epsilon=1)
        others = {one.measure: one.scale for one in beside.measures if one.mechanism != "public"}
        alone = session.explain(f"SELECT {columns.partition(', ')[2]} FROM poll", epsilon=1).measures
        assert others == {one.measure: one.scale for one in alone if one.mechanism != "public"}
        answer = session.sql(f"SELECT {columns} FROM poll", epsilon=1)
        assert shown(answer)[0]["n"] == PEOPLE
        assert answer.interval().keys() == {one.name for one in answer.plan.outputs}


@pytest.mark.parametrize("people", [1, PEOPLE])
def test_what_is_measured_does_not_know_the_number(tmp_path: Path, people: int) -> None:
    """Whatever the catalog says, the same sum has the same noise, and a row in another's place moves no more."""
    found = priced(f"SELECT {ALL_OF_THEM} FROM poll", described(tmp_path, people=people), epsilon=1)
    assert found.vector is not None
    (term,) = found.vector.bought.terms
    assert str(term.measure).endswith("- 50; 1)")
    assert term.mechanism.scale == 100
    assert sensitivity(tmp_path, people) == (100, 100)
    assert [int(constant) for constant in found.vector.constants] == [
        {"COUNT(*)": people, "0": 50 * people}.get(str(m) if m == Count() else str(cast(Sum, m).origin), 0)
        for m in found.question.measures
    ]


def test_a_count_that_was_bought_stays_free_and_noisy(tmp_path: Path, monkeypatch: Any) -> None:
    poll(tmp_path)
    (tmp_path / "lapwing.toml").write_text(CATALOG.format(people=PEOPLE))
    with lw.connect(tmp_path / "lapwing.toml") as session:
        with monkeypatch.context() as patch:
            patch.setattr(measured_vectors, "with_vector", lambda priced, *_: priced)
            before = session.sql(f"SELECT {ALL_OF_THEM} FROM poll", epsilon=1)
        assert PUBLIC_NUMBER not in map(code_of, before.notes)
    with lw.connect(tmp_path / "lapwing.toml") as session:
        again = session.sql(f"SELECT {ALL_OF_THEM} FROM poll", epsilon=1)
        assert again.stored
        assert again.rows() == before.rows()
        assert PUBLIC_NUMBER not in map(code_of, again.notes)


def test_an_origin_is_no_part_of_the_noise(tmp_path: Path) -> None:
    (term,) = asked(tmp_path, "SELECT AVG(cost) FROM poll").question.measures
    assert term.origin == 50
    assert DiscreteLaplace(scale=Fraction(100)).half_width(0.95) < 301


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"neighbours": '"add_remove"'}, "replace_one"),
        ({"rows": "max_rows_per_unit = 2"}, "max_rows_per_unit = 1"),
        ({"people": 0}, "an integer from 1"),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(CatalogError, match=reason):
        described(tmp_path, **change)


def test_a_catalog_keeps_it(tmp_path: Path) -> None:
    catalog = described(tmp_path)
    assert loads(dumps(catalog), file="lapwing.toml", folder=tmp_path) == catalog
    assert catalog.tables[0].people == PEOPLE
    text = CATALOG.replace("people = {people}\n", "").format()
    without = loads(text, file="lapwing.toml", folder=tmp_path)
    assert catalog.digest != without.digest


UNKNOWN = CATALOG.replace("people = {people}\n", "")
ADD_REMOVE = UNKNOWN.replace('"replace_one"', '"add_remove"')


def public_people(folder: Path, text: str, question: str, **asked: Any) -> list[str]:
    """Return the notes of a price that say what a public number of people would give."""
    poll(folder)
    (folder / "lapwing.toml").write_text(text.format(people=PEOPLE))
    with lw.connect(folder / "lapwing.toml") as session:
        preview = session.explain(question, **({"epsilon": 1} | asked))
    return [note for note in preview.notes if getattr(note, "code", "") == PUBLIC_PEOPLE]


@pytest.mark.parametrize(
    ("measure", "assumed", "wanted"),
    only([0], [("pure", None, 3 / 1000), ("gdp", 1000, 3 / 1000), ("gdp", 500, 3 / 500)], many=True),
)
def test_a_price_says_what_a_public_number_would_give(
    tmp_path: Path, measure: str, assumed: int | None, wanted: float
) -> None:
    """The half-width that it names is that of the catalog with these lines, at the same price."""
    other = 'measure = "gdp"\ndelta = 1e-6'
    text = ADD_REMOVE if measure == "pure" else ADD_REMOVE.replace('measure = "pure"', other)
    (note,) = public_people(tmp_path, text, "SELECT AVG(agrees) AS share FROM poll", assuming_count=assumed)
    assert f"share ±{wanted:.3g} for" in note
    assert f"{assumed or 1000:,} people a pure ledger" in note
    for line in ('neighbouring = "replace_one"', "people ="):
        assert line in note
    assert "nullable" not in note
    (tmp_path / "other").mkdir()
    poll(tmp_path / "other")
    (tmp_path / "other" / "lapwing.toml").write_text(CATALOG.format(people=assumed or 1000))
    with lw.connect(tmp_path / "other" / "lapwing.toml") as session:
        (column,) = session.explain("SELECT AVG(agrees) AS share FROM poll", epsilon=1).columns
    assert column.half_width == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("text", "question", "said"),
    only(
        [0],
        [
            (ADD_REMOVE, "SELECT AVG(age) FROM poll", True),
            (UNKNOWN, "SELECT AVG(cost), COUNT(*) FROM poll", True),
            (CATALOG, "SELECT AVG(cost) FROM poll", False),
            (CATALOG, "SELECT AVG(age) FROM poll", True),
            (ADD_REMOVE, "SELECT AVG(cost) FROM poll WHERE agrees", False),
            (ADD_REMOVE, "SELECT AVG(cost) FILTER (WHERE agrees) FROM poll", False),
            (ADD_REMOVE, "SELECT agrees, AVG(cost) FROM poll GROUP BY agrees", False),
            (ADD_REMOVE, "SELECT COUNT(*) FROM poll", False),
            (ADD_REMOVE.replace("max_rows_per_unit = 1", "max_rows_per_unit = 2"), "SELECT AVG(cost) FROM poll", False),
        ],
        many=True,
    ),
)
def test_it_speaks_of_means_over_everybody_alone(tmp_path: Path, text: str, question: str, said: bool) -> None:
    assert bool(public_people(tmp_path, text, question)) is said


def test_neighbours_that_are_settled_are_not_advised_against(tmp_path: Path) -> None:
    poll(tmp_path)
    (tmp_path / "lapwing.toml").write_text(ADD_REMOVE.format())
    with lw.connect(tmp_path / "lapwing.toml") as session:
        session.sql("SELECT COUNT(*) AS n FROM poll", epsilon=1)
    assert not public_people(tmp_path, ADD_REMOVE, "SELECT AVG(cost) FROM poll")
