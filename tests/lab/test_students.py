"""The course's data set has what its examples rely on, and is the same everywhere."""

from collections import Counter
from datetime import date
from hashlib import sha256
from importlib import import_module

import pyarrow as pa
import pytest

from lapwing.lab import students
from lapwing.lab.course import BOUNDS, DOMAINS, protected_students
from lapwing.lab.students import BOB, BOBS_BIRTHDAY, BOBS_SCHOLARSHIP, COUNT, EDITORS, GENDERS, LARGEST_SCHOLARSHIP

ROWS = students().to_pylist()


def alike(table: pa.Table) -> list[int]:
    """Return the ids of those who use Notepad and were born on 1994-09-23."""
    rows = table.to_pylist()
    return [row["id"] for row in rows if row["editor"] == "Notepad" and row["birth_date"] == date(1994, 9, 23)]


def test_there_are_a_thousand_of_whom_each_has_one_row() -> None:
    assert students().column_names == ["id", "birth_date", "gender", "editor", "scholarship", "cheated"]
    assert [row["id"] for row in ROWS] == list(range(COUNT))
    assert COUNT == 1_000
    assert all(value is not None for row in ROWS for value in row.values())


def test_bob_is_the_only_one_of_his_kind() -> None:
    """55 use Notepad, and of these Bob alone was born on 1994-09-23; the second question has 54."""
    assert sum(row["editor"] == "Notepad" for row in ROWS) == 55
    assert alike(students()) == [BOB] == [0]
    assert ROWS[BOB]["scholarship"] == BOBS_SCHOLARSHIP == 4_500
    assert date(1994, 9, 23) == BOBS_BIRTHDAY


def test_values_are_within_their_public_bounds_and_domains() -> None:
    assert EDITORS == ("Notepad", "Vim", "Emacs", "Atom", "Sublime")
    assert {row["editor"] for row in ROWS} == set(DOMAINS["editor"]) == set(EDITORS)
    assert {row["gender"] for row in ROWS} == set(DOMAINS["gender"]) == set(GENDERS)
    low, high = BOUNDS["scholarship"]
    assert (low, high) == (0, LARGEST_SCHOLARSHIP) == (0, 6_000)
    paid = [row["scholarship"] for row in ROWS]
    assert min(paid) == low
    assert max(paid) == high
    assert {row["birth_date"].year for row in ROWS} == set(range(1990, 2000))


def test_shares_are_those_of_a_course_that_one_can_believe() -> None:
    editors = Counter(row["editor"] for row in ROWS)
    assert editors == {"Notepad": 55, "Vim": 340, "Emacs": 180, "Atom": 150, "Sublime": 275}
    assert 250 < sum(row["cheated"] for row in ROWS) < 310
    assert 550 < sum(row["scholarship"] == 0 for row in ROWS) < 650
    assert sum(row["scholarship"] for row in ROWS) == 1_198_600


def test_it_is_the_same_on_every_machine() -> None:
    assert students().equals(students())
    said = "\n".join(",".join(str(value) for value in row.values()) for row in ROWS)
    assert sha256(said.encode()).hexdigest() == "661083a0517fef8d393984244555910977a6295f9b18c3ac346df6850174960b"


@pytest.mark.long
def test_the_engine_takes_it_and_leaves_nothing() -> None:
    with protected_students(1_000_000) as session:
        folder = session.catalog.folder
        (row,) = session.sql("SELECT COUNT(*) AS n, SUM(scholarship) AS s FROM students", epsilon=1_000_000).rows()
        assert folder.exists()
    assert [float(str(figure)) for figure in row.values()] == pytest.approx([COUNT, 1_198_600], abs=1)
    assert not folder.exists()


def test_nobody_else_is_like_bob_even_if_all_are_born_on_his_birthday(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("lapwing.lab.students")
    monkeypatch.setattr(module, "FIRST_DAY", BOBS_BIRTHDAY)
    monkeypatch.setattr(module, "DAYS", 1)
    assert alike(students()) == [BOB]
    monkeypatch.setattr(module, "BOBS_BIRTHDAY", date(1990, 1, 1))  # planted: nobody is moved to the day after
    assert len(alike(students())) == 54
