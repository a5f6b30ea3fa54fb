"""Every command and every line of Python in the documentation runs, and prints what the page shows."""

import contextlib
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.cli.progress import BLANK
from lapwing.datasets import rand_hie_catalog
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.server.openid.settings import read_settings
from lapwing.tabulation.budget_plan import entries_from_file
from tests.support.docs.pages import (
    DOCS,
    PAGES,
    ROOT,
    Block,
    blocks,
    inside,
    left_standing,
    lies,
    prepare,
    run_page,
    same,
    spread_of,
)

RUN = {"python", "console"}
ON_SPARK = DOCS / "how-to" / "scale.md"
"""The page whose examples are run with the other tests of Spark."""
WITH_EXAMPLES = [page for page in PAGES if page != ON_SPARK and any(block.language in RUN for block in blocks(page))]
SLOW = {
    *("start/analyse.md", "start/own.md", "start/teach.md", "start/choose-epsilon.md", "start/troubleshooting.md"),
    *("local/simulate.md", "local/shuffling.md", "local/repeated.md", "local/sketches.md"),
    *(
        "tutorial.md",
        "how-to/account-for-a-list.md",
        "how-to/join-protected-tables.md",
        "how-to/synthesize.md",
        "how-to/release-each-month.md",
        "how-to/release-examples.md",
        "mechanisms/race-to-the-top.md",
        "how-to/learn.md",
        "how-to/graphs.md",
        "how-to/secure.md",
        "how-to/watch-over-time.md",
        "how-to/local.md",
        "how-to/ask-across-tables.md",
        "how-to/train.md",
        "how-to/adaptive.md",
        "how-to/choose-bounds.md",
        "how-to/private-keys.md",
        "mechanisms/continual.md",
        "course/selection.md",
        "local/over-time.md",
        "how-to/ask-questions.md",
        "how-to/read-an-answer.md",
        "how-to/change-the-data.md",
        "how-to/disjoint-parts.md",
        "how-to/sharpen-and-batch.md",
        "mechanisms/unbounded-quantile.md",
        "how-to/use-ibis.md",
        "how-to/connect.md",
        "how-to/spend-a-budget.md",
        "how-to/speed.md",
        "course/adaptive.md",
    ),
}
"""Pages whose examples draw millions, compose thousands, or ask several data sets: the long run is for them."""
SQL = [(page, block) for page in PAGES for block in blocks(page) if block.language == "sql"]
TOML = [(page, block) for page in PAGES for block in blocks(page) if block.language == "toml"]

NOON = datetime(2026, 3, 31, 12)  # what the clock says to queries that look at it


def test_examples_are_found() -> None:
    assert {"README.md", "protect-a-table.md", "use-from-python.md"} <= {page.name for page in WITH_EXAMPLES}
    assert SQL
    assert TOML


def slow_ones_marked() -> list[Any]:
    slow = {DOCS / name for name in SLOW}
    return [pytest.param(page, marks=pytest.mark.long) if page in slow else page for page in WITH_EXAMPLES]


def test_slow_pages_are_there() -> None:
    assert {DOCS / name for name in SLOW} <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("page", slow_ones_marked(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_shows_what_happens(page: Path, tmp_path: Path) -> None:
    prepare(page, tmp_path)
    with inside(tmp_path):
        complaints = list(run_page(page))
    assert not complaints, "\n\n".join(complaints)


SITES = """
[tables.sites]
source = "sites.csv"
public = true

[tables.sites.columns]
site = { type = "integer" }
region = { type = "string" }
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """The shipped catalog and the public table that the pages join to it."""
    (tmp_path / "sites.csv").write_text("site,region\n1,plains\n2,coast\n3,coast\n4,coast\n5,south\n6,south\n")
    return loads(rand_hie_catalog().read_text(encoding="utf-8") + SITES, file="lapwing.toml", folder=tmp_path)


@pytest.mark.parametrize(("page", "block"), SQL, ids=lambda part: str(getattr(part, "line", "")))
def test_sql_is_answered_or_refused_as_said(page: Path, block: Block, catalog: Catalog) -> None:
    with contextlib.closing(PublicData(catalog)) as public:
        for question in filter(str.strip, f"{block.text}\n".split(";\n")):
            if block.text.startswith("-- refused"):
                with pytest.raises(lw.QueryRefused):
                    bind(question, catalog, public, moment=NOON)
            else:
                plan = bind(question, catalog, public, moment=NOON)
                assert plan.outputs
                assert not plan.question.private_keys


@pytest.mark.parametrize(("page", "block"), TOML, ids=lambda part: str(getattr(part, "line", "")))
def test_catalogs_and_settings_are_valid(page: Path, block: Block, tmp_path: Path) -> None:
    if block.text.startswith("issuer = "):  # what `lapwing serve --openid` reads
        file, secret = tmp_path / "login.toml", tmp_path / "login.secret"
        file.write_text(block.text)
        secret.write_text("a secret")
        secret.chmod(0o600)
        assert read_settings(file).client_secret == "a secret"
    elif block.text.startswith("title = "):  # a release file
        assert lw.tabulation.TableRelease.from_text(block.text).tables
    elif block.text.startswith("epsilon = "):  # what `lapwing budget plan` reads
        release = next(other.text for _, other in TOML if other.text.startswith("title = "))
        (tmp_path / "release.toml").write_text(release)
        (tmp_path / "year.toml").write_text(block.text)
        assert entries_from_file(tmp_path / "year.toml")[0]
    else:
        assert loads(block.text, file=page.name, folder=tmp_path).tables


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("n\n8,093 ±100", "n\n8,101 ±100\n"),
        ("first\n…\nlast 1", "first\nmiddle\nmiddle\nlast 2"),
        ("…\nlast", "first\nlast"),
        ("first\n…", "first\nlast"),
        ("────\nbudget ██░░ 1 %", "──────\nbudget █░░░░ 25.5 %"),
        ("2026-01-01 10:00", "2027-12-31 23:59"),
    ],
)
def test_outputs_are_compared_up_to_numbers(shown: str, real: str) -> None:
    assert same(shown, real)


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("n\n8,093 ±100", "years\n8,093 ±100"),
        ("first\nlast", "first\nmiddle\nlast"),
        ("first\n…\nlast", "first\nmiddle"),
        ("price 1 %", "price 1 %\nnote more"),
        ("price 1 %", ""),
    ],
)
def test_another_output_is_noticed(shown: str, real: str) -> None:
    assert not same(shown, real)


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("n\n8,093 ±100", "n\n8,301 ±100"),
        ("m  3.58 ±0.50", "m  3.50 ±0.46"),
        ("a 486 ±61\nb 1,447 ±61", "a 391 ±61\nb 1,281 ±61"),
        ("at 2026-01-01 10:00 ±5 %", "at 2027-12-31 23:59 ±5 %"),
        ("price    epsilon 1 alone, 13.4 %", "price    epsilon 1 alone, 13.4 %"),
        ("first 1\n…\nlast 7 ±2", "first 2\nmiddle 9\nlast 8 ±2"),
    ],
)
def test_noise_is_no_lie(shown: str, real: str) -> None:
    assert same(shown, real)
    assert lies(shown, real) == []


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("n\n8,093 ±100", "n\n8,893 ±100"),
        ("m  3.58 ±0.72", "m  3.50 ±0.46"),
        ("a 486 ±61\nb 1,447 ±61", "a 391 ±70\nb 1,281 ±70"),
        ("noise     correlated, ±70.22 in each", "noise     correlated, ±62.1 in each"),
        ("price    epsilon 1 alone, 13.4 %", "price    epsilon 1 alone, 13.5 %"),
        ("first 1\n…\nlast 7 ±2", "first 1\nmiddle 9\nlast 70 ±2"),
    ],
)
def test_a_lie_is_noticed(shown: str, real: str) -> None:
    assert same(shown, real)
    assert lies(shown, real)


@pytest.mark.parametrize(
    ("command", "shown", "real", "is_lie"),
    [
        ("lapwing graph ask edge_count --epsilon 1", "20,904 ±274", "20,700 ±137", False),
        ("lapwing graph ask edge_count --epsilon 1", "20,904 ±274", "20,950 ±548", False),
        ("lapwing graph ask edge_count --epsilon 1", "20,904 ±274", "20,950 ±6", True),
        ("lapwing graph ask edge_count --epsilon 1", "20,904 ±274", "24,904 ±274", True),
        ("lapwing query q --epsilon 1", "20,904 ±274", "20,700 ±137", True),
    ],
)
def test_graphs_have_levels_that_noise_chose(command: str, shown: str, real: str, is_lie: bool) -> None:
    assert bool(lies(shown, real, spread=spread_of(command))) is is_lie


def test_progress_is_not_left_standing() -> None:
    assert left_standing(f"a\n{BLANK}Reading 7 %{BLANK}Reading 9 %{BLANK}b\nc") == "a\nb\nc"


def test_each_task_of_accounting_is_shown_in_five_lines() -> None:
    """Ten tasks, each with its imports; a task that takes more is not a task that is easy."""
    page = (DOCS / "how-to" / "account-for-a-list.md").read_text(encoding="utf-8").partition("## From Python")[2]
    tasks = re.split(r"^\*\*(\d+)\. ", page, flags=re.MULTILINE)[1:]
    assert tasks[::2] == [str(n) for n in range(1, 11)]
    for number, task in zip(tasks[::2], tasks[1::2], strict=True):
        code = re.findall(r"^```python\n(.*?)^```$", task, flags=re.MULTILINE | re.DOTALL)
        assert code, number
        assert sum(bool(line.strip()) for line in code[0].splitlines()) <= 5, number
