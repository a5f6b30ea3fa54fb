"""`lapwing init` writes a catalog from names and types, and nothing else."""

from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from lapwing.catalog.toml import load
from tests.support.cli.command import INIT, Run
from tests.support.effort import one_in


def test_the_catalog_says_what_was_given(folder: Path, run: Run) -> None:
    outcome = run(*INIT)
    assert (outcome.status, outcome.out) == (0, "")
    catalog = load(folder / "lapwing.toml")
    (table,) = catalog.tables
    columns = {column.name: column for column in table.columns}
    assert (catalog.budget.epsilon, catalog.budget.delta, catalog.budget.measure) == (
        Fraction(3),
        Fraction(1, 10**6),
        "gdp",
    )
    assert (table.source, table.privacy_unit, table.max_rows_per_unit) == ("visits.parquet", "person_id", 3)
    assert (columns["cost"].lower, columns["cost"].upper) == (Fraction(0), Fraction(500))
    assert columns["plan"].values == ("a", "b")


def test_nothing_but_the_catalog_is_made(folder: Path, run: Run) -> None:
    run(*INIT)
    assert {path.name for path in folder.iterdir()} == {"visits.parquet", "lapwing.toml"}


def test_it_says_what_to_type_next_and_that_works(folder: Path, run: Run) -> None:
    said = run(*INIT).err
    assert 'lapwing explain "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5' in said
    assert run("explain", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5").status == 0


def test_a_number_is_read_exactly(folder: Path, run: Run) -> None:
    run(*INIT[:5], "0.1", *INIT[6:])
    assert load(folder / "lapwing.toml").budget.epsilon == Fraction(1, 10)


def test_a_catalog_is_never_overwritten_unasked(folder: Path, run: Run) -> None:
    (folder / "lapwing.toml").write_text("mine")
    outcome = run(*INIT)
    assert outcome.status == 2
    assert "--force" in outcome.err
    assert (folder / "lapwing.toml").read_text() == "mine"
    assert run(*INIT, "--force").status == 0
    assert load(folder / "lapwing.toml").name == "visits"


def test_another_output_is_named_in_what_to_type_next(folder: Path, run: Run) -> None:
    (folder / "below").mkdir()
    outcome = run(*INIT, "--output", "below/v.toml")
    assert outcome.status == 0
    assert "--catalog below/v.toml" in outcome.err
    assert run("explain", "SELECT COUNT(*) FROM visits", "--epsilon", "1", "--catalog", "below/v.toml").status == 0


def test_every_option_reaches_the_catalog(folder: Path, run: Run) -> None:
    options = ("--measure", "zcdp", "--neighbouring", "replace_one", "--delta-keys", "1e-7", "--people", "60")
    assert run(*INIT, *options).status == 0
    budget = load(folder / "lapwing.toml").budget
    assert (budget.measure, budget.neighbouring, budget.delta_keys) == ("zcdp", "replace_one", Fraction(1, 10**7))


def test_the_length_of_texts_is_written(folder: Path, run: Run) -> None:
    assert run(*INIT, "--max-length", "plan=2000").status == 0
    columns = {column.name: column for column in load(folder / "lapwing.toml").tables[0].columns}
    assert columns["plan"].max_length == 2000
    assert "max_length = 2000" in (folder / "lapwing.toml").read_text()


def test_without_delta_the_budget_is_pure(folder: Path, run: Run) -> None:
    run(*INIT[:6], *INIT[8:])
    assert load(folder / "lapwing.toml").budget.measure == "pure"


def test_a_delta_too_large_for_the_people_is_noted(folder: Path, run: Run) -> None:
    outcome = run(*INIT[:7], "0.05", *INIT[8:], "--people", "60")
    assert outcome.status == 0
    assert "one in 60 people" in outcome.err


def test_values_with_commas_and_bounds_in_time(folder: Path, run: Run) -> None:
    content = {"person_id": [1], "plan": ["c"], "seen": [datetime(2024, 5, 1)]}
    pyarrow.parquet.write_table(pa.table(content), folder / "times.parquet")
    bounds = "seen=2024-01-01T00:00:00:2024-12-31T23:59:59"
    outcome = run("init", "times.parquet", *INIT[2:10], "--values", 'plan="a, b",c', "--bounds", bounds)
    assert outcome.status == 0, outcome.err
    columns = {column.name: column for column in load(folder / "lapwing.toml").tables[0].columns}
    assert columns["plan"].values == ("a, b", "c")
    assert str(columns["seen"].upper) == "2024-12-31 23:59:59+00:00"


@pytest.mark.parametrize(
    ("options", "said"),
    one_in(
        4,
        [
            (("--bounds", "cost"), "COLUMN=LOWER:UPPER"),
            (("--bounds", "cost=5"), "COLUMN=LOWER:UPPER"),
            (("--bounds", "cost=:"), "COLUMN=LOWER:UPPER"),
            (("--bounds", "cost=x:5"), "not a number"),
            (("--bounds", "cost=5:1"), "swap"),
            (("--bounds", "none=0:1"), "no column"),
            (("--max-length", "plan"), "COLUMN=BYTES"),
            (("--max-length", "plan=many"), "COLUMN=BYTES"),
            (("--max-length", "plan=0"), "whole bytes from 1"),
            (("--max-length", "cost=5"), "only a text has a length"),
            (("--max-length", "none=5"), "no column"),
            (("--bounds", "cost=0:1", "--bounds", "cost=0:2"), "twice"),
            (("--values", "plan"), "COLUMN=A,B"),
            (("--values", "plan="), "has no values"),
            (("--measure", "other"), "'other'"),
            (("--people", "0"), "people"),
            (("--max-rows", "0"), "max_rows_per_unit"),
        ],
        many=True,
    ),
)
def test_bad_options_write_nothing(folder: Path, run: Run, options: tuple[str, ...], said: str) -> None:
    outcome = run(*INIT[:10], *options)
    assert outcome.status == 2
    assert said in outcome.err
    assert not (folder / "lapwing.toml").exists()


def test_missing_maximum_of_rows(folder: Path, run: Run) -> None:
    outcome = run(*INIT[:8])
    assert outcome.status == 2
    assert "--max-rows" in outcome.err


def test_missing_file(folder: Path, run: Run) -> None:
    outcome = run("init", "none.parquet", *INIT[2:])
    assert outcome.status == 6
    assert outcome.err.startswith("lapwing: ")


@pytest.mark.parametrize("text", ['plan="a,b', 'plan="a"b,c'])
def test_a_quote_without_its_partner_is_refused(folder: Path, run: Run, text: str) -> None:
    outcome = run(*INIT[:-1], text)
    assert outcome.status == 2
    assert "double quote" in outcome.err
    assert not (folder / "lapwing.toml").exists()
    assert run(*INIT[:-1], 'plan="a,b",c').status == 0
    assert load(folder / "lapwing.toml").tables[0].columns[1].values == ("a,b", "c")


def test_what_is_missing_or_meant_otherwise_is_said(folder: Path, run: Run) -> None:
    (folder / "empty").mkdir()
    assert "has no data files" in run("init", "empty", *INIT[2:]).err
    start = INIT.index("--max-rows")
    assert "--max-rows is missing" in run(*INIT[:start], *INIT[start + 2 :]).err
    assert "too large" in run(*INIT[:5], "1e400", *INIT[6:]).err
    assert 'no column "a=b"' in run(*INIT, "--bounds", "a=b=0:5").err
    assert not (folder / "lapwing.toml").exists()
