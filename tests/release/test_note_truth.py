"""Notes on values outside bounds say what the engine does with them: sums move them, groups leave them out."""

from pathlib import Path

import pytest

import lapwing as lw
from lapwing.answer.notes import CLAMPED, EMPTY_NUMBER, PUBLIC_FLOATS, SHARED_ROWS, TOO_NOISY, UNLISTED_KEYS, code_of

TYPES = {"person": "integer", "age": "integer", "town": "string"}
AGES = (-5, 3, 7, 12)
"""Of which -5 and 12 lie outside."""


@pytest.fixture
def session(tmp_path: Path) -> lw.Session:
    lines = [f"{person},{age},a" for person, age in enumerate(AGES)]
    (tmp_path / "t.csv").write_text("\n".join(["person,age,town", *lines]) + "\n")
    return lw.protect(
        tmp_path / "t.csv",
        privacy_unit="person",
        max_rows_per_unit=1,
        epsilon=10**6,
        types=TYPES,
        bounds={"age": (0, 10)},
        domains={"town": ["a", "b"]},
    )


def codes(notes: tuple[str, ...]) -> list[str]:
    return [code_of(note) for note in notes]


def test_a_value_outside_is_in_no_group_and_only_that_is_noted(session: lw.Session) -> None:
    with session:
        answer = session.sql("SELECT age, COUNT(*) AS n FROM t GROUP BY age", epsilon=10**4)
    assert sum(row["n"] for row in answer.rows()) == 2  # type: ignore[misc]
    assert CLAMPED not in codes(answer.notes)
    (said,) = [note for note in answer.notes if code_of(note) == UNLISTED_KEYS]
    assert "below 0" in said
    assert "above 10" in said


def test_a_value_outside_is_summed_as_a_bound_and_only_that_is_noted(session: lw.Session) -> None:
    with session:
        answer = session.sql("SELECT SUM(age) AS s FROM t", epsilon=10**4)
    assert answer.rows() == [{"s": 0 + 3 + 7 + 10}]
    assert CLAMPED in codes(answer.notes)
    assert UNLISTED_KEYS not in codes(answer.notes)


def test_a_condition_sees_the_value_as_it_is(session: lw.Session) -> None:
    with session:
        answer = session.sql("SELECT COUNT(*) AS n FROM t WHERE age > 10", epsilon=10**4)
    assert answer.rows() == [{"n": 1}]
    assert CLAMPED not in codes(answer.notes)


def test_both_are_noted_where_both_happen(session: lw.Session) -> None:
    with session:
        notes = session.explain("SELECT age, SUM(age) AS s FROM t GROUP BY age", epsilon=1).notes
    assert {CLAMPED, UNLISTED_KEYS} <= set(codes(notes))


def test_a_count_of_few_listed_values_says_when_it_is_noise(session: lw.Session) -> None:
    text = "SELECT COUNT(DISTINCT town) AS n FROM t"
    with session:
        assert TOO_NOISY in codes(session.explain(text, epsilon=0.01).notes)
        assert TOO_NOISY not in codes(session.explain(text, epsilon=100).notes)


def test_the_note_on_a_limit_names_it(session: lw.Session) -> None:
    text = "SELECT COUNT(*, contribution_bounds_per_group => (0, 5)) AS n FROM t a JOIN t b ON a.town = b.town"
    with session:
        said = [note for note in session.explain(text, epsilon=1).notes if code_of(note) == SHARED_ROWS]
    assert "far larger" in said[0]
    assert said[1].startswith("n: one person adds at most 5 ")


@pytest.mark.parametrize(("epsilon", "is_empty"), [(10**4, False), (1e-4, True)])
def test_an_empty_number_has_a_note(session: lw.Session, epsilon: float, is_empty: bool) -> None:
    from lapwing.answer.empty_cells import notes_on_empty_cells

    text = "SELECT CORR(age, age) AS c FROM t" + (" WHERE age > 100" if is_empty else "")
    with session:
        answers = [session.sql(f"{text} -- {number}", epsilon=epsilon * (1 + number / 8)) for number in range(24)]
    noted = [bool(notes_on_empty_cells(answer.describe(), answer.rows())) for answer in answers]
    assert noted == [answer.rows()[0]["c"] is None for answer in answers]
    assert codes(notes_on_empty_cells(answers[0].describe(), answers[0].rows())) in ([], [EMPTY_NUMBER])
    assert is_empty in noted


CATALOG = """
[dataset]
name = "d"
ledger = "sqlite:d.db"
[budget]
epsilon = 1000000000
delta = 1e-6
[tables.visits]
source = "visits.csv"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
person = {{ type = "integer" }}
cost = {{ type = "float", lower = -10, upper = 100 }}
[tables.bands]
source = "bands.csv"
public = true
[tables.bands.columns]
name = {{ type = "string" }}
least = {{ type = "float"{step} }}
"""


@pytest.mark.parametrize(
    ("least", "greatest", "step", "noted"),
    [(99.99, 10**9, "", True), (99.99, 100, ", step = 0.01", False), (50, 100, "", False), (50, 10**9, "", True)],
)
def test_sums_and_groups_of_rounded_public_numbers_are_noted_and_joins_are_not(
    least: float, greatest: int, step: str, noted: bool, tmp_path: Path
) -> None:
    """99.99 is no multiple of a power of two: with a step in the catalog both are alike, and so is a small 50."""
    (tmp_path / "visits.csv").write_text(f"person,cost\n1,{least}\n2,0.1\n3,50\n4,33.3\n")
    (tmp_path / "bands.csv").write_text(f"name,least\na,{least}\nb,0.5\nc,{greatest}\n")
    (tmp_path / "d.toml").write_text(CATALOG.format(step=step))
    equal = "visits v JOIN bands b ON v.cost = b.least"
    with lw.connect(tmp_path / "d.toml") as session:

        def is_noted(select: str) -> tuple[object, bool]:
            answer = session.sql(select, epsilon=10**5)
            return answer.rows(), PUBLIC_FLOATS in codes(answer.notes)

        for condition in ("JOIN bands b ON v.cost = b.least", "WHERE v.cost IN (SELECT least FROM bands)"):
            found = 1 if least != 50 else 2
            assert is_noted(f"SELECT COUNT(*) AS n FROM visits v {condition}") == ([{"n": found}], False)
        for select in ("COUNT(b.least)", "SUM(CASE WHEN b.least > 60 THEN 1 ELSE 0 END)"):
            assert not is_noted(f"SELECT {select} AS n FROM {equal}")[1]
        for select in ("SUM(b.least)", "AVG(b.least)"):
            assert is_noted(f"SELECT {select} AS n FROM {equal}")[1] is noted
        assert is_noted(f"SELECT b.least, COUNT(*) AS n FROM {equal} GROUP BY b.least")[1] is noted
