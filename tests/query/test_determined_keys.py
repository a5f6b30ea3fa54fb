"""What the keys of a public table determine is shown without being grouped by: the same question as the longer one."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.relations.public_rows import PublicFacts
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "towns"
ledger = "sqlite:towns.lapwing.db"
[budget]
epsilon = 1000
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
town = { type = "string" }
head = { type = "string" }
[tables.wards]
source = "wards.parquet"
public = true
[tables.wards.columns]
site = { type = "string" }
ward = { type = "string" }
"""
DATA = {
    "visits": {"person": [1, 1, 2, 3], "site": ["x", "x", "y", "y"]},
    "sites": {"site": ["x", "y", "z"], "town": ["A", "B", "B"], "head": ["P", None, "Q"]},
    "wards": {"site": ["x", "y", "y"], "ward": ["a", "b", "c"]},
}
JOINED = "FROM visits v JOIN sites s ON v.site = s.site"
SAME = [  # without what is in brackets, and with it
    f"SELECT s.town, COUNT(*) AS n {JOINED} GROUP BY s.site[, s.town]",
    f"SELECT town, COUNT(*) AS n {JOINED} GROUP BY v.site[, town]",
    "SELECT site, town, COUNT(*) AS n FROM visits JOIN sites USING (site) GROUP BY site[, town]",
    "SELECT s.site, COUNT(*) AS n FROM visits v, sites s WHERE v.site = s.site GROUP BY s.site[, s.town] ORDER BY town",
    "SELECT s.town, COUNT(v.person) AS n, RANK() OVER (ORDER BY COUNT(v.person), s.town) AS k FROM sites s "
    "LEFT JOIN visits v ON v.site = s.site GROUP BY s.site[, s.town]",
    f"WITH t AS (SELECT s.site, s.town, COUNT(*) AS n {JOINED} GROUP BY s.site[, s.town]) "
    "SELECT town, SUM(n) AS k FROM t GROUP BY town",
]
REFUSED = [
    "SELECT w.ward, COUNT(*) AS n FROM visits v JOIN wards w ON v.site = w.site GROUP BY w.site",  # y has two
    f"SELECT s.head, COUNT(*) AS n {JOINED} GROUP BY s.site",  # y has none, and its group would be nowhere
    f"SELECT s.site, COUNT(*) AS n {JOINED} GROUP BY s.town",  # B has two
    "SELECT s.town, COUNT(*) AS n FROM visits v LEFT JOIN sites s ON v.site = s.site GROUP BY v.site",  # or NULL
    "SELECT v.site, COUNT(v.person) AS n FROM sites s LEFT JOIN visits v ON v.site = s.site GROUP BY s.site",
    f"SELECT s.town, COUNT(*) AS n {JOINED} GROUP BY ROLLUP (s.site)",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("determined")
    for name, columns in DATA.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    return folder


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[lw.Session]:
    with lw.connect(folder / "lapwing.toml") as opened:
        yield opened


@pytest.mark.parametrize("text", SAME)
def test_it_is_the_question_with_all_of_them(text: str, session: lw.Session) -> None:
    short, whole = re.sub(r"\[.*?\]", "", text), text.replace("[", "").replace("]", "")
    assert session.plan(short, (), epsilon=1) == session.plan(whole, (), epsilon=1)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (f"SELECT v.site, MIN(s.town), COUNT(*) AS n {JOINED} GROUP BY v.site",
         f"SELECT v.site, s.town AS min_town, COUNT(*) AS n {JOINED} GROUP BY v.site, s.town"),
        (f"SELECT UPPER(MAX(s.town)) AS t, COUNT(*) AS n {JOINED} GROUP BY s.site HAVING MIN(s.town) <> 'B'",
         f"SELECT UPPER(s.town) AS t, COUNT(*) AS n {JOINED} GROUP BY s.site, s.town HAVING s.town <> 'B'"),
        (f"SELECT MAX(s.site) AS x, COUNT(*) AS n {JOINED} GROUP BY s.site ORDER BY MIN(s.site)",
         f"SELECT s.site AS x, COUNT(*) AS n {JOINED} GROUP BY s.site ORDER BY s.site"),
    ],
)  # fmt: skip
def test_the_least_of_a_text_that_the_keys_determine_is_that_text(text: str, same: str, session: lw.Session) -> None:
    assert session.plan(text, (), epsilon=1) == session.plan(same, (), epsilon=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MIN(w.ward), COUNT(*) AS n FROM visits v JOIN wards w ON v.site = w.site GROUP BY w.site",
        f"SELECT MIN(s.head), COUNT(*) AS n {JOINED} GROUP BY s.site",
        f"SELECT MIN(s.site), COUNT(*) AS n {JOINED} GROUP BY s.town",
        f"SELECT MIN(s.town) FILTER (WHERE s.town <> 'A'), COUNT(*) AS n {JOINED} GROUP BY s.site",
    ],
)
def test_the_least_of_other_texts_is_refused(text: str, session: lw.Session) -> None:
    with refused_as("wrong_type"):
        session.explain(text, epsilon=1)


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_keys_do_not_determine_is_refused(text: str, session: lw.Session) -> None:
    with refused_as("not_grouped"):
        session.explain(text, epsilon=1)


def test_public_rows_keep_what_is_null(session: lw.Session) -> None:
    rows = session.sql("SELECT site, head, COUNT(*) AS n FROM sites GROUP BY site ORDER BY site").rows()
    assert [row["head"] for row in rows] == ["P", None, "Q"]


def test_twin_a_key_that_repeats_would_split_groups(folder: Path) -> None:
    """Planted: every key is taken for unique, so that a site is shown once for each of its wards."""
    catalog = load(folder / "lapwing.toml")
    with closing(PublicData(catalog)) as facts:
        names = ("columns", "values", "combinations", "rows", "digest")
        planted = SimpleNamespace(multiplicity=lambda *_: 1, **{name: getattr(facts, name) for name in names})
        plan = bind(REFUSED[0], catalog, cast(PublicFacts, planted))
    assert len(plan.keys) == 2
