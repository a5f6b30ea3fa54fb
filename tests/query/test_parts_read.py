"""Which parts a question reads: what is said, and what the SQL computes when people of the other parts change."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.plan import parts_read as parts
from lapwing.query.plan.parts_read import parts_read
from lapwing.query.relations.node import Relation
from tests.support.effort import one_in, only, some
from tests.support.engines.tables import by_value

CATALOG = """
[dataset]
name = "wards"
ledger = "sqlite:wards.db"
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
part = "{part}"
[tables.visits.columns]
site = {{ type = "integer", values = [1, 2, 3] }}
ward = {{ type = "string", values = ["a", "", "it's"] }}
day = {{ type = "date", values = [2026-01-01, 2026-01-02] }}
ill = {{ type = "boolean" }}
cost = {{ type = "integer", lower = 0, upper = 100 }}
note = {{ type = "string" }}
[tables.codes]
source = "codes.parquet"
public = true
[tables.codes.columns]
place = {{ type = "integer" }}
region = {{ type = "string" }}
"""

CONFINED = {
    "site = 1": "1",
    "1 = site": "1",
    "site IN (1, 3)": "1 3",
    "site IN (1, 99)": "1",
    "site = 1 AND cost > 3": "1",
    "cost > 3 AND (ward = 'a' AND site = 2)": "2",
    "site IN (1, 2) AND site IN (2, 3)": "2",
    "site = 1 OR site = 3": "1 3",
    "site = 1 OR (site = 3 AND cost > 3)": "1 3",
    "site = 1 OR site = 99": "1",
    "(site = 1 OR cost > 3) AND site IN (1, 2)": "1 2",
}
UNCONFINED = [
    "cost > 3",
    "site = 1 OR cost > 3",
    "cost > 3 OR site = 1",
    "(site = 1 AND cost > 3) OR ill",
    "NOT site = 1",
    "site <> 1",
    "site IN (1, 2, 3)",
    "site = 99",
    "site = 1 AND site = 2",
    "site > 2",
    "site IS NOT NULL",
    "site = cost",
    "site = CASE WHEN cost > 3 THEN 1 ELSE 2 END",
    "COALESCE(site, 1) = 1",
    "LEAST(site, 1) = 1",
    "(site = 1) IS TRUE",
    "(site = 1) IS NOT TRUE",
    "ward = 'a'",
    "site NOT IN (1, 2)",
]
N = "SELECT COUNT(*) AS n FROM"
RELATIONS = {
    "SELECT SUM(cost) AS s FROM (SELECT * FROM visits WHERE site = 1)": "1",
    f"{N} (SELECT person, SUM(cost) AS c FROM visits WHERE site = 2 GROUP BY person) WHERE c > 3": "2",
    f"{N} (SELECT person, site, COUNT(*) AS k FROM visits GROUP BY person, site) WHERE site = 2": "2",
    f"{N} (SELECT person, site, COUNT(*) AS k FROM visits GROUP BY person, site) WHERE k = 2": None,
    f"{N} (SELECT person, MAX(site) AS site FROM visits GROUP BY person) WHERE site = 2": None,
    f"{N} (SELECT DISTINCT person, site FROM visits) WHERE site = 3": "3",
    f"{N} (SELECT DISTINCT person, cost AS site FROM visits) WHERE site = 3": None,
    f"{N} (SELECT site AS cost, cost AS site FROM visits) WHERE site = 3": None,
    f"{N} (SELECT site AS cost, cost AS site FROM visits) WHERE cost = 3": "3",
    f"{N} (SELECT cost FROM visits WHERE site = 1 UNION ALL SELECT cost FROM visits WHERE site = 3)": "1 3",
    f"{N} (SELECT cost FROM visits WHERE site = 1 UNION ALL SELECT cost FROM visits)": None,
    f"{N} (SELECT site AS x FROM visits UNION ALL SELECT site FROM visits) WHERE x = 2": "2",
    f"{N} (SELECT site AS x FROM visits UNION ALL SELECT cost FROM visits) WHERE x = 2": None,
    f"{N} (SELECT site AS x FROM visits UNION ALL SELECT 2 FROM visits) WHERE x = 2": None,
    "SELECT region, COUNT(*) AS n FROM visits JOIN codes ON site = place WHERE site = 3 GROUP BY region": "3",
    f"{N} visits LEFT JOIN codes ON site = place WHERE place = 3": None,
    f"{N} visits WHERE site = 1 AND site IN (SELECT place FROM codes)": "1",
    f"{N} visits WHERE site IN (SELECT place FROM codes WHERE place = 1)": None,
    "SELECT COUNT(*) FILTER (WHERE site = 1) AS n FROM visits": None,
    "SELECT SUM(cost) FILTER (WHERE ill) AS s FROM visits WHERE site = 1": "1",
    "SELECT site, COUNT(*) AS n FROM visits GROUP BY site HAVING site = 1": None,
    "SELECT note, COUNT(DISTINCT person) AS n FROM visits WHERE site = 2 GROUP BY note": "2",
    "SELECT site, COUNT(*) AS n FROM visits WHERE site IN (2, 3) GROUP BY ROLLUP (site)": "2 3",
    f"{N} (SELECT site, ROW_NUMBER() OVER (PARTITION BY person ORDER BY cost) AS r FROM visits) "
    "WHERE r = 1 AND site = 2": "2",
    "WITH v AS (SELECT * FROM visits WHERE site IN (1, 2)) SELECT COUNT(*) AS n FROM v WHERE site <> 1": "1 2",
}


def catalog(folder: Path, part: str = "site") -> Catalog:
    rows = {"place": [1, 2, 3, 3], "region": ["north", "south", "south", None]}
    pq.write_table(pa.table(rows), folder / "codes.parquet")
    return loads(CATALOG.format(part=part), file="lapwing.toml", folder=folder)


@pytest.fixture(scope="module")
def wards(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return catalog(tmp_path_factory.mktemp("wards"))


@pytest.fixture(scope="module")
def facts(wards: Catalog) -> Iterator[PublicData]:
    found = PublicData(wards)
    yield found
    found.close()


def named(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(text.split())


def check_said(text: str, expected: str | None, wards: Catalog, facts: PublicData) -> None:
    assert parts_read(bind(text, wards, facts).question) == named(expected)


@pytest.mark.parametrize("condition", CONFINED)
def test_conditions_that_confine(condition: str, wards: Catalog, facts: PublicData) -> None:
    check_said(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", CONFINED[condition], wards, facts)


@pytest.mark.parametrize("condition", UNCONFINED)
def test_conditions_that_do_not(condition: str, wards: Catalog, facts: PublicData) -> None:
    check_said(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", None, wards, facts)


@pytest.mark.parametrize("text", one_in(4, RELATIONS))
def test_relations(text: str, wards: Catalog, facts: PublicData) -> None:
    check_said(text, RELATIONS[text], wards, facts)


def test_parts_of_every_type(tmp_path: Path) -> None:
    for part, condition, expected in (
        ("ward", "ward = ''", {""}),
        ("ward", "ward IN ('it''s', 'other')", {"it's"}),
        ("day", "day = DATE '2026-01-02'", {"2026-01-02"}),
        ("ill", "ill = TRUE", {"true"}),
        ("ill", "ill", {"true"}),
        ("ill", "NOT ill", {"false"}),
        ("ill", "ill <> TRUE", {"false"}),
        ("ill", "ill IS NOT NULL", None),
    ):
        question = bind(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", catalog(tmp_path, part)).question
        assert parts_read(question) == expected


BOUNDED = {
    "site = 2": {"2"},
    "site = 1": {"1"},
    "site IN (1, 2)": {"1", "2"},
    "site IN (1, 99)": {"1", "3"},
    "site = 99": {"3"},
    "site = -5 OR site = 2": {"1", "2"},
}
"""A number beyond the bounds is in the part at the bound, and conditions see it as it is read."""


@pytest.mark.parametrize("condition", BOUNDED)
def test_a_number_beyond_the_bounds_is_of_the_part_at_the_bound(condition: str, tmp_path: Path) -> None:
    text = CATALOG.format(part="site").replace("values = [1, 2, 3]", "lower = 1, upper = 3, values = [1, 2, 3]")
    bounded = loads(text, file="lapwing.toml", folder=tmp_path)
    for asked in (f"visits WHERE {condition}", f"(SELECT person, site FROM visits GROUP BY 1, 2) WHERE {condition}"):
        assert parts_read(bind(f"SELECT COUNT(*) AS n FROM {asked}", bounded).question) == frozenset(BOUNDED[condition])


def test_twin_that_takes_no_rows_to_be_beyond_the_bounds_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_within", lambda value, _column: value)
    with pytest.raises(AssertionError):
        test_a_number_beyond_the_bounds_is_of_the_part_at_the_bound("site IN (1, 99)", tmp_path)


def test_a_table_without_parts_has_none(tmp_path: Path) -> None:
    text = CATALOG.format(part="site").replace('part = "site"\n', "")
    plain = loads(text, file="lapwing.toml", folder=tmp_path)
    assert parts_read(bind("SELECT COUNT(*) AS n FROM visits WHERE site = 1", plain).question) is None


# ---- what the SQL computes -------------------------------------------------------------------------------------------

Row = tuple[int, int | None, str, bool, int, str]


def some_people(chance: random.Random, people: Sequence[int]) -> list[Row]:
    """Rows of several sites for one person too: the engine keeps those of one."""
    rows: list[Row] = []
    for person in people:
        for _ in range(chance.randint(1, 5)):
            site = chance.choice([1, 2, 3, 3, None])
            rows.append((person, site, chance.choice("ab"), chance.random() < 0.5, chance.randint(0, 9), "x"))
    return rows


def part_of(rows: Sequence[Row], person: int) -> int | None:
    return min((row[1] for row in rows if row[0] == person and row[1] is not None), default=None)


def exact(wards: Catalog, facts: PublicData, rows: Sequence[Row], texts: Sequence[str]) -> list[object]:
    names = ("person", "site", "ward", "ill", "cost", "note")
    types = (pa.int64(), pa.int64(), pa.string(), pa.bool_(), pa.int64(), pa.string())
    columns = {
        name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(zip(names, types, strict=True))
    }
    path = wards.folder / "visits.parquet"
    path.unlink(missing_ok=True)
    pq.write_table(pa.table(columns | {"day": pa.nulls(len(rows), pa.date32())}), path)
    engine = DuckDB(wards, public=facts)
    try:
        known = {wards.tables[0].name: engine.digest(wards.tables[0])}
        found = [engine.run(bind(text, wards, facts).question, known) for text in texts]
    finally:
        engine.close()
    return [({cell: n for cell, n in each.cells.items() if any(n)}, by_value(each.holders)) for each in found]


QUESTIONS = [
    *(f"SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE {where} GROUP BY ward" for where in CONFINED),
    *(f"SELECT COUNT(*) AS n, COUNT(DISTINCT person) AS k FROM visits WHERE {where}" for where in UNCONFINED[:10]),
    *RELATIONS,
]


def check_read(wards: Catalog, facts: PublicData, texts: Sequence[str]) -> None:
    """Answers do not change when the people of parts that are not read are others, and some do when those are."""
    chance = random.Random("parts")
    rows = some_people(chance, range(60))
    others = some_people(chance, range(100, 187))
    before = exact(wards, facts, rows, texts)
    changes = dict.fromkeys((1, 2, 3), [True] * len(texts))
    for part in (1, 2, 3):
        after = [row for row in rows if part_of(rows, row[0]) != part]
        after += [row for row in others if part_of(others, row[0]) == part]
        changes[part] = [old != new for old, new in zip(before, exact(wards, facts, after, texts), strict=True)]
    for place, text in enumerate(texts):
        read = parts_read(bind(text, wards, facts).question)
        changed = {str(part) for part in (1, 2, 3) if changes[part][place]}
        assert changed <= (read or {"1", "2", "3"}), text
        assert read is None or changed, f"{text}: the data are to show that something is read"


@pytest.mark.parametrize("part", only([0], range(12)))
def test_answers_depend_on_the_parts_that_are_read_alone(wards: Catalog, facts: PublicData, part: int) -> None:
    check_read(wards, facts, list(QUESTIONS)[part::12])


def test_twin_an_or_that_confines_by_one_side_is_caught(
    wards: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_either", parts._both)
    for text in some(2, ("SELECT COUNT(*) AS n FROM visits WHERE site = 1 OR cost > 3", list(RELATIONS)[10])):
        with pytest.raises(AssertionError):
            check_read(wards, facts, [text])


@pytest.mark.long
def test_twin_a_column_of_the_same_name_is_caught(
    wards: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group's least site is not a row's; nor is every column that shows something under a part's name."""
    texts = [text for text, read in RELATIONS.items() if read is None]
    monkeypatch.setattr(parts, "_part_columns", lambda relation: {column.name for column in relation.columns})
    caught = []
    for text in texts:
        try:
            check_read(wards, facts, [text])
        except AssertionError:
            caught.append(text)
        if len(caught) == 2:
            return
    pytest.fail(f"no more was caught than {caught}")


def test_subqueries_in_each_other_are_looked_at_once(wards: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for anew at every column, each level would multiply the work, and `explain` is free."""
    looked_at: list[Relation] = []
    part_columns = parts._part_columns

    def noted(relation: Relation) -> frozenset[str]:
        looked_at.append(relation)
        return part_columns(relation)

    monkeypatch.setattr(parts, "_part_columns", noted)
    source = "visits"
    for _ in range(9):
        source = f"(SELECT DISTINCT person, site, ward, day, ill, cost, note FROM {source})"
    question = bind(f"SELECT COUNT(*) AS n FROM {source} WHERE site = 1", wards).question
    assert parts_read(question) == frozenset({"1"})
    assert len(looked_at) <= 200
