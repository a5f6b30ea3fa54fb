"""Release files: the same as a value of Python, and errors that name the key, what was given and what is allowed."""

from dataclasses import replace
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
            ('by = [[], ["plan"], ["plan", "size"]]', "all_margins_of = 3", "tables.visits.all_margins_of: 3 is"),
            (
                'by = [[], ["plan"], ["plan", "size"]]',
                f"all_margins_of = [{[f'key_{place}' for place in range(40)]}]",
                "tables.visits.all_margins_of: key_0, key_1",
            ),
            ("epsilon = 0.1", 'epsilon = 0.1\nadjustment = "top down"', "adjustment is of adjusted numbers"),
            ("[tables.size]", "[tables.size", "not TOML"),
            ("importance = 2", "importance = 1e-55", "tables.visits: importance must be at least"),
            ('query = "SELECT', 'by = []\nquery = "SELECT', 'tables.size: unknown "by"'),
            ("importance = 2", "relative_error = 0.05", "tables.visits: relative_error needs assumed_cell"),
            (
                "assumed_cell = 100",
                "assumed_cell = 100\nerror = 3\nrelative_error = 0.05",
                "tables.size: 'size' has an err",
            ),
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


def test_a_relative_error_is_an_error_of_the_smallest_cell() -> None:
    relative = FILE.replace("importance = 2", "assumed_cell = 1000\nrelative_error = 0.05")
    relative = relative.replace("assumed_cell = 100\n", "error = 3\n")
    absolute = relative.replace("relative_error = 0.05", "error = 50")
    one, other = (TableRelease.from_text(text) for text in (relative, absolute))
    assert [replace(table, relative_error=None) for table in one.tables] == list(other.tables)
    assert one.tables[0].error == 50


def test_all_margins_are_the_lists_that_somebody_would_write() -> None:
    """Several lists share margins; levels of one hierarchy, named or not, stand in no list together."""
    levels = '[hierarchies.place]\ntable = "places"\nlevels = ["region", "district", "town"]\n'
    short = 'all_margins_of = [["plan", "place"], ["size", "town", "region"]]\nby = [["plan"], ["plan", "size"]]'
    of_place, of_two = [[], ["region"], ["district"], ["town"]], [[], ["town"], ["region"]]
    lists = [plan + place for plan in ([], ["plan"]) for place in of_place]
    lists += [["size", *place] for place in of_two] + [["plan", "size"]]
    given = 'by = [[], ["plan"], ["plan", "size"]]'
    texts = [FILE.replace(given, keys) + levels for keys in (short, f"by = {lists}")]
    one, other = map(TableRelease.from_text, texts)
    assert one == other
    assert len(one.tables) == 12 + 1


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
