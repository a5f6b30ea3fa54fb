"""What is said of names and texts that nothing has, and that no slip of the pen counts nobody without a word."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.suggestions import did_you_mean, listed, meant, slip_of

TOWNS = ("Berlin Mitte", "Site 1", "Site 2", "female", "male")


@pytest.mark.parametrize(
    ("typed", "is_meant"),
    [("Male", "male"), ("MALE ", "male"), ("femle", "female"), ("berlin-mitte", "Berlin Mitte"), ("site1", "Site 1")],
)
def test_slips(typed: str, is_meant: str) -> None:
    assert slip_of(typed, TOWNS, near=True) == is_meant


@pytest.mark.parametrize("typed", ["Site 3", "Site 12", "men", "", "Hamburg", "mail"])
def test_other_texts_are_no_slips(typed: str) -> None:
    """They may be in the data though they are no keys."""
    assert slip_of(typed, TOWNS, near=True) is None


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Session]:
    folder = tmp_path_factory.mktemp("slips")
    table = pa.table({"person": [1, 2, 3], "sex": ["male", "female", "male"], "plan": ["a", "b", "c"]})
    pq.write_table(table, folder / "people.parquet")
    facts: Any = {"privacy_unit": "person", "max_rows_per_unit": 1, "domains": {"sex": ["male", "female"]}}
    with lw.protect(folder / "people.parquet", epsilon=3, delta=1e-6, **facts) as opened:
        yield opened


@pytest.mark.parametrize(
    "condition",
    [
        "sex = 'Male'",
        "'Male' = sex",
        "sex <> 'Male'",
        "NOT sex = 'Male'",
        "p.sex = 'male '",
        "sex IN ('female', 'Male')",
        "sex NOT IN ('Male')",
        "plan = 'a' OR (plan = 'b' AND sex = 'Male')",
    ],
)
def test_a_slip_is_refused_before_it_costs_anything(session: lw.Session, condition: str) -> None:
    with pytest.raises(lw.QueryRefused, match=r"Did you mean 'male'\? Values: male, female\.") as refused:
        session.sql(f"SELECT COUNT(*) AS n FROM people AS p WHERE {condition}", epsilon=0.1)
    assert refused.value.position is not None
    assert session.history() == ()


def test_a_parameter_is_in_no_message(session: lw.Session) -> None:
    with pytest.raises(lw.QueryRefused) as refused:
        session.sql("SELECT COUNT(*) AS n FROM people WHERE sex = ?", ["MALE"], epsilon=0.1)
    assert "MALE" not in str(refused.value)


@pytest.mark.parametrize(
    "condition", ["sex = 'male'", "sex = 'unknown'", "plan = 'A'", "LOWER(sex) = 'Male'", "sex < 'Male'"]
)
def test_what_may_be_meant_is_answered(session: lw.Session, condition: str) -> None:
    """A text that resembles none may be in the data; of a column without a list nothing is known."""
    assert session.explain(f"SELECT COUNT(*) AS n FROM people WHERE {condition}", epsilon=0.1).epsilon


def test_long_lists_are_cut() -> None:
    names = [f"column_{number}" for number in range(99)]
    assert listed(names) == f"{', '.join(names[:12])} and 87 more"
    assert listed(names[:13]) == ", ".join(names[:13])
    assert listed([]) == "none"
    assert meant("Columns", "colunm_7", names[:3]).startswith("Did you mean 'column_")
    assert did_you_mean("price", names) == ""
    assert len(listed(["x" * 500])) == 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT MEDAIN(person) AS m FROM people",
            "The function MEDAIN is not supported here .* Did you mean 'MEDIAN'",
        ),
        ("SELECT COUNT(*) FROM people WHERE LENGHT(plan) > 1", "Did you mean 'LENGTH'"),
        ("SELECT COUNT(*) FROM people WHERE plna = 'a'", "Did you mean 'plan'.* Columns: person, sex, plan"),
        ("SELECT COUNT(*) FROM poeple", "Did you mean 'people'.* Tables: people"),
        ("SELECT COUNT(*) FROM q", r"There is no table 'q' \(line 1, column 22\)\. Tables: people\."),
        (
            "SELECT AVG(person, contribution_bound_per_row => (0, 1)) FROM people",
            "Did you mean 'contribution_bounds_per_",
        ),
        ('SELECT COUNT(*) FROM people WHERE plan = "a"', "a text stands in single quotes: 'a'"),
        ("SELECT COUNT(*) FROM people INTERSECT SELECT COUNT(*) FROM people", "GROUP BY ROLLUP"),
        ("SELECT COUNT(*) FROM people EXCEPT SELECT COUNT(*) FROM people", "GROUP BY ROLLUP"),
        ("SELECT COUNT(*) FROM theirs.people", "Write only the name of the table"),
        ("PIVOT people ON plan", r"PIVOT \(SUM"),
    ],
)
def test_what_people_type(session: lw.Session, text: str, said: str) -> None:
    with pytest.raises(lw.QueryRefused, match=said):
        session.sql(text, epsilon=0.1)


@pytest.mark.parametrize(
    ("text", "position", "suggestion"),
    [
        ("SELECT MEDAIN(person) AS m FROM people", (1, 8), "MEDIAN"),
        ("SELECT COUNT(*) FROM people WHERE plna = 'a'", (1, 35), "plan"),
        ("SELECT COUNT(*)\nFROM poeple", (2, 6), "people"),
        ("SELECT AVG(person, epsilom => 0.1) FROM people", (1, 20), "epsilon"),
        ("SELECT AVG(person, contribution_bounds_per_ => (0, 1)) FROM people", (1, 20), None),  # two resemble it
        ("SELECT COUNT(*) FROM q", (1, 22), None),
        ('SELECT COUNT(*) FROM people WHERE "plna" = 1', (1, 35), None),  # it may be a text
        ("SELECT COUNT(*) FROM people WHERE sex = 'Male'", (1, 35), None),  # the column is no slip
        ("SELECT COUNT(*) FROM (SELECT person, plna FROM people) AS p", (1, 38), "plan"),
        ("WITH a AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT sxe FROM a", (1, 71), "sex"),
    ],
)
def test_a_program_reads_the_name_that_is_meant(
    session: lw.Session, text: str, position: tuple[int, int], suggestion: str | None
) -> None:
    with pytest.raises(lw.QueryRefused) as refused:
        session.sql(text, epsilon=0.1)
    assert (refused.value.position, refused.value.suggestion) == (position, suggestion)


def test_a_suggested_name_is_written_as_sql_has_it(tmp_path: Path) -> None:
    table = pa.table({"person": [1, 2], "order date": ["a", "b"]})
    pq.write_table(table, tmp_path / "people.parquet")
    with lw.protect(tmp_path / "people.parquet", privacy_unit="person", max_rows_per_unit=1, epsilon=3) as opened:
        with pytest.raises(lw.QueryRefused) as refused:
            opened.sql("SELECT COUNT(*) FROM people WHERE order_date = 'a'", epsilon=0.1)
        assert refused.value.suggestion == '"order date"'
        assert opened.explain(f"SELECT COUNT(*) FROM people WHERE {refused.value.suggestion} = 'a'", epsilon=0.1)


def test_quoted_names_ignore_case(session: lw.Session) -> None:
    asked = 'SELECT "SEX", COUNT(*) AS n FROM "People" GROUP BY "Sex"'
    assert session.plan(asked, (), epsilon=0.1).question == session.plan(asked.lower(), (), epsilon=0.1).question


def test_a_question_needs_one_price(session: lw.Session) -> None:
    with pytest.raises(lw.InvalidParameter, match=r"has no cost yet\. Give epsilon, .*error") as none:
        session.sql("SELECT COUNT(*) FROM people")
    assert none.value.missing == "epsilon"
    with pytest.raises(lw.InvalidParameter, match="not both"):
        session.sql("SELECT COUNT(*) FROM people", epsilon=0.1, error=5)


def test_long_lists_are_searched_for_the_same_letters_alone() -> None:
    """So that a question with thousands of texts beside thousands of values is bound at once."""
    known = tuple(f"town {number}" for number in range(3000))
    assert slip_of("Town-7", known, near=False) == "town 7"
    assert slip_of("towm 7", known, near=False) is None
