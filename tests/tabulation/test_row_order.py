"""Published rows stand in the order in which people look for them."""

from pathlib import Path
from typing import Any

import lapwing as lw
from lapwing.tabulation import (
    PublishedRelease,
    TableRelease,
    changes_between,
    plan_release,
    rehearse_release,
    run_release,
)

CATALOG = """
[dataset]
name = "people"
ledger = "sqlite:people.db"
[budget]
epsilon = 100
delta = 1e-3
delta_keys = 5e-4
[tables.people]
source = "people.csv"
privacy_unit = "row"
[tables.people.columns]
age = { type = "string", nullable = false, values = ["5", "20", "100", "1"] }
word = { type = "string" }
[tables.ages]
source = "ages.csv"
public = true
[tables.ages.columns]
band = { type = "string" }
age = { type = "string" }
"""
RELEASE = """
title = "Ages"
epsilon = 20
delta = 1e-4
adjusted = true
[hierarchies.age]
table = "ages"
levels = ["band", "age"]
[tables.n]
select = "COUNT(*) AS n"
from = "people"
by = [["band"], ["age"]]
[tables.listed]
query = "SELECT age, COUNT(*) AS n FROM people WHERE word <> 'none' GROUP BY age"
[tables.words]
query = "SELECT word, COUNT(*) AS n FROM people GROUP BY word"
"""
TOP = """
title = "Top lists"
epsilon = 3
delta = 1e-4
adjusted = true
unreliable_cells = "coarsen"
formats = ["csv", "parquet"]
[tables.all]
query = "SELECT COUNT(*) AS n FROM people"
[tables.words]
query = "SELECT word, COUNT(*) AS n FROM people GROUP BY word ORDER BY n DESC, word LIMIT 2"
[tables.ages]
query = "SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY n DESC LIMIT 3"
"""
AGES = ["5"] * 40 + ["20"] * 80 + ["100"] * 20 + ["1"] * 60


def opened(folder: Path) -> lw.Session:
    rows = [f"{age},{('ward 10', 'ward 9', 'ward 9', 'b')[n % 4]}" for n, age in enumerate(AGES)]
    (folder / "people.csv").write_text("\n".join(["age,word", *rows]))
    (folder / "ages.csv").write_text("band,age\n5 to 9,5\n100 and over,100\n20 to 24,20\n0 to 4,1\n")
    (folder / "catalog.toml").write_text(CATALOG)
    return lw.connect(folder / "catalog.toml")


def made_up(folder: Path) -> Path:
    words = ("ward 10", "ward 9", "b")
    (folder / "other.csv").write_text(
        "\n".join(["age,word", *(f"{AGES[3 * n % 200]},{words[n % 3]}" for n in range(90))])
    )
    return folder / "other.csv"


def released(session: lw.Session, text: str) -> list[dict[str, list[Any]]]:
    found = run_release(session, TableRelease.from_text(text))
    return [found.arrow(place).to_pydict() for place in range(len(found.tables))]


def test_numbers_in_texts_are_numbers_and_rows_stay_whole(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        band, age, listed, words = released(session, RELEASE)
    assert band["band"] == ["0 to 4", "5 to 9", "20 to 24", "100 and over"]
    assert age["age"] == ["1", "5", "20", "100"]
    for table in (band, age):  # the cell of each number goes with it
        for column in ("n", "n_adjusted"):
            assert all(abs(n - true) < 15 for n, true in zip(table[column], (60, 40, 80, 20), strict=True))
    assert listed["age"] == ["5", "20", "100", "1"]
    assert words["word"] == ["b", "ward 9", "ward 10"]


def test_a_top_list_from_the_plan_to_the_comparison(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        release = TableRelease.from_text(TOP)
        plan = plan_release(session, release)
        found = run_release(session, release)
        words, ages = found.arrow(1).to_pydict(), found.arrow(2).to_pydict()
        manifest = found.write(tmp_path / "published")
        assert run_release(session, release).stored
        rehearsed = rehearse_release(session, release, {"people": str(made_up(tmp_path))}, times=2)
    assert [table.cells for table in plan.tables] == [1, None, 4]  # all of them have noise, and the first are shown
    assert words["word"][0] == "ward 9"
    assert ages["age"] == ["20", "1", "5"]
    for table, size in ((words, 2), (ages, 3)):
        numbers = [number for number in table["n"] if number is not None]
        assert len(table["n"]) == size
        assert numbers == sorted(numbers, reverse=True)
    assert all(abs(n - true) < 25 for n, true in zip(ages["n_adjusted"], (80, 60, 40), strict=True) if n is not None)
    published = PublishedRelease.from_file(manifest)
    assert [len(number.figures) for number in published.numbers] == [1, 2, 3]
    assert all(change.is_same for change in changes_between(published, published))
    assert "ages" in (tmp_path / "published" / "method.html").read_text("utf-8")
    assert {number.table for number in rehearsed.numbers} == {"all", "words", "ages"}
