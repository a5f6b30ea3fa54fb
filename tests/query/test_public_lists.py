"""What is computed of public rows and meets rows of units: lists of constants, as if their author had written them."""

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lapwing.answer.public_values import public_values
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import InvalidParameter
from lapwing.query.bind.bind import bind
from lapwing.query.relations.set_operations import Union
from tests.support.query.differing.comparing import DIFFERS, EQUAL, Question, judged
from tests.support.query.differing.worlds import Pair, opened, world_of
from tests.support.query.fuzzing import Case, Place, answered, ask_some, found_with, generous
from tests.support.query.neighbours import catalog
from tests.support.query.questions import NUMBER, TEXT, VISITS, Grower, Rows
from tests.support.query.worlds import VISITS as GROUND
from tests.support.refusals import refused_as

BY_SITE = "SELECT site, MIN(region) AS region, COUNT(*) AS c, SUM(rate) AS s FROM places GROUP BY site"
LISTED = (
    "(VALUES ('n', 'north', 1, 5.23), ('s', 'north', 1, 3.07), ('w', 'north', 1, 7.54), ('x', 'south', 1, 0.87)) "
    "AS q(site, region, c, s)"
)
DEAR = "SELECT site FROM places GROUP BY site HAVING SUM(rate) > 4"
RANKED = "SELECT site, ROW_NUMBER() OVER (ORDER BY rate DESC) AS r FROM places"
SAME = [
    (f"SELECT q.region, COUNT(*) AS a0 FROM visits v JOIN ({BY_SITE}) AS q ON v.site = q.site GROUP BY q.region",
     f"SELECT q.region, COUNT(*) AS a0 FROM visits v JOIN {LISTED} ON v.site = q.site GROUP BY q.region"),
    (f"WITH q AS ({BY_SITE}) SELECT SUM(q.s) AS a0 FROM visits v LEFT JOIN q USING (site)",
     f"SELECT SUM(q.s) AS a0 FROM visits v LEFT JOIN {LISTED} USING (site)"),
    (f"SELECT COUNT(*) AS a0 FROM visits v, ({BY_SITE}) AS q WHERE v.site = q.site AND v.age > q.s",
     f"SELECT COUNT(*) AS a0 FROM visits v JOIN {LISTED} ON v.site = q.site WHERE v.age > q.s"),
    (f"SELECT q.r, COUNT(*) AS a0 FROM visits v JOIN ({RANKED}) AS q USING (site) GROUP BY q.r",
     "SELECT q.r, COUNT(*) AS a0 FROM visits v JOIN (VALUES ('n', 2), ('s', 3), ('w', 1), ('x', 4)) AS q(site, r) "
     "USING (site) GROUP BY q.r"),
    ("SELECT q.a, COUNT(*) AS a0 FROM visits v JOIN (SELECT region, AVG(rate) AS a FROM places GROUP BY region) AS q "
     "ON v.age > q.a GROUP BY q.a",
     "SELECT q.a, COUNT(*) AS a0 FROM visits v JOIN (VALUES ('north', 5.28), ('south', 0.87)) AS q(region, a) "
     "ON v.age > q.a GROUP BY q.a"),
    (f"SELECT COUNT(*) AS a0 FROM visits WHERE site IN ({DEAR})",
     "SELECT COUNT(*) AS a0 FROM visits WHERE site IN ('n', 'w')"),
    (f"SELECT COUNT(*) AS a0 FROM visits WHERE site NOT IN ({DEAR})",
     "SELECT COUNT(*) AS a0 FROM visits WHERE site NOT IN ('n', 'w')"),
    ("SELECT COUNT(*) AS a0 FROM visits v WHERE NOT EXISTS "
     "(SELECT 1 FROM places p WHERE p.site = v.site GROUP BY p.site HAVING SUM(p.rate) > 4)",
     "SELECT COUNT(*) AS a0 FROM visits v WHERE NOT (v.site IS NOT NULL AND v.site IN ('n', 'w'))"),
    (f"SELECT COUNT(*) AS a0 FROM visits v WHERE EXISTS (SELECT 1 FROM ({BY_SITE}) q WHERE q.site = v.site AND s > 4)",
     "SELECT COUNT(*) AS a0 FROM visits v WHERE (v.site IS NOT NULL AND v.site IN ('n', 'w'))"),
    ("SELECT COUNT(*) AS a0 FROM visits WHERE age > (SELECT MAX(s) FROM "
     "(SELECT region, SUM(rate) AS s FROM places GROUP BY region) AS q)",
     "SELECT COUNT(*) AS a0 FROM visits WHERE age > 15.84"),
    ("SELECT SUM(n) AS a0 FROM (SELECT v.person, SUM(q.c) AS n FROM visits v JOIN "
     f"({BY_SITE}) AS q ON v.site = q.site GROUP BY v.person) AS u",
     f"SELECT SUM(n) AS a0 FROM (SELECT v.person, SUM(q.c) AS n FROM visits v JOIN {LISTED} ON v.site = q.site "
     "GROUP BY v.person) AS u"),
]  # fmt: skip


def in_any_order(text: str, pair: Pair) -> object:
    """Return a plan with the rows of its lists of conditions in order: IN is a set."""
    plan = pair.session.plan(text, (), epsilon=1)
    return plan.question, plan.outputs


@pytest.mark.parametrize(("text", "same"), SAME)
def test_it_is_the_same_question_and_answer(text: str, same: str, pair: Pair) -> None:
    assert in_any_order(text, pair) == in_any_order(same, pair)
    assert judged(Question(text=text), pair).state == EQUAL


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("SELECT COUNT(*) FROM visits v LEFT JOIN (SELECT site, COUNT(*) AS c FROM places GROUP BY site "
         "HAVING COUNT(*) > 9) AS q ON v.site = q.site", "result_too_large"),
        ("SELECT COUNT(*) FROM visits v LEFT JOIN (SELECT region, COUNT(*) AS c FROM places GROUP BY region) AS q "
         "ON v.age > q.c", "subquery_not_supported"),
        ("SELECT COUNT(*) FROM visits WHERE age > (SELECT rate FROM places ORDER BY rate LIMIT 2)",
         "subquery_not_one_row"),
        ("SELECT COUNT(*) FROM visits v JOIN (SELECT a.x FROM generate_series(1, 60) AS a(x), places p GROUP BY a.x) q "
         "ON v.age > q.x", "result_too_large"),
    ],
)  # fmt: skip
def test_other_lists_are_refused(text: str, cause: str, pair: Pair) -> None:
    with refused_as(cause):
        pair.session.explain(text, epsilon=1)


def test_other_rows_of_the_public_table_are_another_question(tmp_path: Path) -> None:
    """The constants stand in the plan, and so in the key of the result."""
    listed, plans = "(SELECT plan, SUM(factor) AS n FROM codes GROUP BY plan)", []
    text = f"SELECT SUM(q.n) AS n FROM visits v JOIN {listed} AS q ON v.plan = q.plan"
    for more in (0, 1):
        (tmp_path / str(more)).mkdir()
        described = catalog(tmp_path / str(more))
        if more:
            file = tmp_path / "1" / "codes.parquet"
            table = pq.read_table(file)
            place = table.schema.get_field_index("factor")
            pq.write_table(table.set_column(place, table.schema.field(place), pc.add(table["factor"], 1)), file)
        facts = PublicData(described)
        plans.append(bind(text, described, facts))
        facts.close()
    assert plans[0].question != plans[1].question


def test_nothing_of_rows_of_units_is_computed_beforehand(pair: Pair) -> None:
    with pytest.raises(InvalidParameter):
        public_values(pair.session.plan("SELECT COUNT(*) AS n FROM visits", (), epsilon=1))


def test_twin_exists_that_is_null_is_noticed(pair: Pair) -> None:
    """Planted: NOT IN in the place of NOT EXISTS leaves out rows that have no value."""
    text = "SELECT COUNT(*) AS a0 FROM visits v WHERE NOT EXISTS (SELECT 1 FROM places p WHERE p.opened = v.day " \
        "GROUP BY p.opened HAVING COUNT(*) > 0)"  # fmt: skip
    planted = text.replace("NOT EXISTS (SELECT 1", "v.day NOT IN (SELECT p.opened").replace("p.opened = v.day", "TRUE")
    assert judged(Question(text=text), pair).state == EQUAL
    assert judged(Question(text=planted, theirs=text), pair).state == DIFFERS


# ---- random ones -----------------------------------------------------------------------------------------------------


def drawn(chance: random.Random) -> str:
    """Return a question with something that is computed of places."""
    value = chance.choice(("COUNT(*)", "SUM(rate)", "MIN(rate)", "MAX(rate)", "AVG(rate)", "COUNT(DISTINCT region)"))
    key = chance.choice(("site", "site", "region"))
    having = chance.choice(("", f" HAVING {value} > {chance.randint(0, 5)}", " HAVING COUNT(*) > 0"))
    where = chance.choice(("", f" WHERE rate > {chance.randint(0, 4)}", " WHERE opened > DATE '2010-01-01'"))
    inner = f"SELECT {key} AS k, {value} AS x FROM places{where} GROUP BY {key}{having}"
    if chance.random() < 0.3:
        over = chance.choice(("ORDER BY rate, site", "PARTITION BY region ORDER BY rate, site"))
        rank = chance.choice(("ROW_NUMBER()", "RANK()", "SUM(rate)", "COUNT(*)"))
        inner = f"SELECT site AS k, {rank} OVER ({over}) AS x FROM places{where}"
    aggregate = chance.choice(("COUNT(*)", "SUM(v.age)", "COUNT(q.x)", "SUM(q.x)", "COUNT(DISTINCT v.person)"))
    alone, limit = chance.choice(("COUNT(*)", "SUM(age)")), chance.randint(1, 3)
    left = chance.choice(("", "", "LEFT "))
    on = chance.choice(("v.site = q.k", "v.site = q.k", "q.k = v.site" if left else "v.site = q.k AND v.age > q.x"))
    kept = chance.choice(("", " WHERE v.member", " WHERE v.age > 20"))
    return chance.choice(
        (
            f"SELECT {aggregate} AS a0 FROM visits v {left}JOIN ({inner}) AS q ON {on}{kept}",
            f"WITH q AS ({inner}) SELECT {aggregate} AS a0 FROM visits v {left}JOIN q ON {on}{kept}",
            f"SELECT v.plan, {aggregate} AS a0 FROM visits v {left}JOIN ({inner}) AS q ON {on}{kept} GROUP BY v.plan",
            f"SELECT {aggregate} AS a0 FROM visits v, ({inner}) AS q WHERE v.site = q.k AND v.age > 3",
            f"SELECT q.x, COUNT(*) AS a0 FROM visits v JOIN ({inner}) AS q ON v.age > q.x GROUP BY q.x",
            f"SELECT {alone} AS a0 FROM visits WHERE site IN (SELECT k FROM ({inner}) AS q)",
            f"SELECT {alone} AS a0 FROM visits WHERE site NOT IN (SELECT k FROM ({inner}) AS q WHERE x > 2)",
            f"SELECT {alone} AS a0 FROM visits WHERE site IN (SELECT site FROM places ORDER BY rate LIMIT {limit})",
            f"SELECT {alone} AS a0 FROM visits v WHERE EXISTS (SELECT 1 FROM ({inner}) AS q WHERE q.k = v.site)",
            f"SELECT {alone} AS a0 FROM visits v WHERE NOT EXISTS (SELECT 1 FROM places p WHERE p.site = v.site "
            f"GROUP BY p.site HAVING MAX(rate) > {limit})",
            f"SELECT {alone} AS a0 FROM visits WHERE age > (SELECT MAX(x) FROM ({inner}) AS q)",
        )
    )


def asked(seeds: range, pair: Pair) -> list[str]:
    """Ask random questions, and return what became of each."""
    verdicts = [judged(Question(text=drawn(random.Random(f"computed {seed}"))), pair) for seed in seeds]
    assert not [verdict.said for verdict in verdicts if verdict.state not in (EQUAL, "refused", "noted")]
    return [verdict.state for verdict in verdicts]


def test_a_few_random_ones_are_as_duckdb_answers_them(pair: Pair) -> None:
    assert asked(range(12), pair).count(EQUAL) >= 8


@pytest.mark.long
@pytest.mark.parametrize("world", range(4))
def test_random_ones_are_as_duckdb_answers_them(world: int, tmp_path: Path) -> None:
    with opened(world_of(world), tmp_path) as pair:
        states = asked(range(world * 100, world * 100 + 100), pair)
    assert len(states) - states.count("refused") >= 75


# ---- neighbours ------------------------------------------------------------------------------------------------------


def computed(chance: random.Random, *, with_unit: bool) -> Rows:
    """Return visits beside what is computed of codes."""
    value = chance.choice(("COUNT(*)", "SUM(factor)", "MAX(factor)"))
    listed = f"SELECT tier AS word, {value} AS k FROM codes GROUP BY tier"
    if chance.random() < 0.4:
        listed = "SELECT plan AS word, ROW_NUMBER() OVER (ORDER BY factor, plan) AS k FROM codes"
    on = chance.choice(("v.plan = q.word", "v.age > q.k", "v.age >= q.k AND v.plan = q.word", "v.pay <= q.k"))
    shown = ", ".join(f"v.{name}" for name in VISITS)
    text = f"(SELECT v.person, {shown}, q.word, q.k FROM visits v JOIN ({listed}) AS q ON {on})"
    return Rows(text, {**VISITS, "word": TEXT, "k": NUMBER}, "person")


def grown(seed: int, _kind: str) -> tuple[str, dict[str, int | str]]:
    """Return the question of a number, with its parameters."""
    grower = Grower(random.Random(f"computed {seed}"), begin=computed)
    return grower.question(), grower.values


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("neighbours")
    kinds = (("add_remove", 2), ("replace_one", 3))
    catalogs = {kind: generous(catalog(folder, rows=rows, neighbouring=kind)) for kind, rows in kinds}
    facts = PublicData(catalogs["add_remove"])
    yield Place(catalogs=catalogs, facts=facts, ground=GROUND, grow=grown, worlds={}, unit_by_unit=3).elsewhere(0)
    facts.close()


def test_neighbours_move_a_few_no_further_than_stated(place: Place, tmp_path: Path) -> None:
    ask_some((Case.of(number, place) for number in range(4)), place, tmp_path, share=0.3)


@pytest.mark.long
def test_neighbours_move_many_no_further_than_stated(place: Place, tmp_path: Path) -> None:
    ask_some((Case.of(number, place) for number in range(400)), place, tmp_path, share=0.3)
    found = answered(["ROW_NUMBER", "SUM(factor)", "v.age > q.k"], (Case.of(seed, place) for seed in range(60)), place)
    assert min(found.values()) > 0, found


def test_twin_copies_that_are_not_counted_are_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a row that meets three rows of a list is one row of its unit."""
    bug = (0, Union, "rows_within", lambda node, _: node.parts[0].source.rows_per_unit)
    assert found_with(bug, place, monkeypatch) is not None
