"""Release files: the same as a value of Python, and errors that name the key, what was given and what is allowed."""

from pathlib import Path

import pytest

from lapwing.errors import CatalogError, InvalidParameter
from lapwing.tabulation import Objective, ReleaseTable, TableRelease
from tests.support.effort import one_in

FILE = """
title = "Visits"
epsilon = 0.1
objective = "sum of variances"

[tables.visits]
select = "COUNT(*) AS n"
from = "visits"
where = "age > 0"
by = [[], ["plan"], ["plan", "size"]]
importance = 2

[tables.size]
query = "SELECT SUM(size) AS s FROM visits"
assumed_cell = 100
"""


def test_a_file_is_a_value() -> None:
    release = TableRelease.from_text(FILE)
    counts = ReleaseTable.margins(
        "visits",
        select="COUNT(*) AS n",
        source="visits",
        where="age > 0",
        by=[[], ["plan"], ["plan", "size"]],
        importance=2,
    )
    sums = ReleaseTable(name="size", query="SELECT SUM(size) AS s FROM visits", assumed_cell=100)
    objective = Objective.SUM_OF_VARIANCES
    assert release == TableRelease(title="Visits", epsilon=0.1, tables=(*counts, sums), objective=objective)
    assert [table.name for table in counts] == ["visits in all", "visits by plan", "visits by plan, size"]
    assert counts[2].query == "SELECT plan, size, COUNT(*) AS n FROM visits WHERE age > 0 GROUP BY ALL"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    one_in(
        3,
        [
            ('title = "Visits"', "", "title: missing"),
            ("epsilon = 0.1", 'epsilon = "much"', 'epsilon: "much" is a string; write a number'),
            ("epsilon = 0.1", "epsilon = 0", "epsilon is 0"),
            ("sum of variances", "least squares", 'must be "largest error" or "sum of variances"'),
            ("importance = 2", "importanec = 2", 'tables.visits: unknown "importanec" (did you mean importance?)'),
            ("importance = 2", "importance = -1", "tables.visits: importance is -1"),
            ("importance = 2", "error = 5", "'size' has none"),
            ('by = [[], ["plan"], ["plan", "size"]]', 'by = ["plan"]', "tables.visits.by: has 'plan'"),
            ('by = [[], ["plan"], ["plan", "size"]]', "by = []", "tables.visits.by: is empty"),
            ('from = "visits"', "", "tables.visits.from: missing"),
            ("[tables.size]", "[tables.size", "not TOML"),
            ("importance = 2", "importance = 1e-55", "tables.visits: importance must be at least"),
            ('query = "SELECT', 'by = []\nquery = "SELECT', 'tables.size: unknown "by"'),
            ("assumed_cell = 100", "error = 3\nimportance = 2", "has a wanted error and"),
        ],
        many=True,
    ),
)
def test_errors_name_the_key(before: str, after: str, said: str) -> None:
    assert before in FILE
    with pytest.raises(CatalogError) as refused:
        TableRelease.from_text(FILE.replace(before, after))
    assert said in str(refused.value)


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"release\.toml: cannot be read"):
        TableRelease.from_file(tmp_path / "release.toml")
    (tmp_path / "release.toml").write_text('title = ""\nepsilon = 1\n[tables.n]\nquery = "SELECT 1"')
    with pytest.raises(CatalogError, match=r"release\.toml: title is ''"):
        TableRelease.from_file(tmp_path / "release.toml")


def test_tables_have_names_of_their_own() -> None:
    table = ReleaseTable(name="n", query="SELECT 1")
    with pytest.raises(InvalidParameter, match="Two tables are called 'n'"):
        TableRelease(title="t", epsilon=1, tables=(table, table))
    with pytest.raises(InvalidParameter, match="no table"):
        TableRelease(title="t", epsilon=1, tables=())
