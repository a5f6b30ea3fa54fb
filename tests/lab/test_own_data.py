"""A class of one's own: experiments that look at students take other students, and say what these must be like."""

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

import lapwing as lw
from lapwing import lab
from lapwing.lab.experiment import Cell
from lapwing.lab.first_student import FirstStudent
from lapwing.lab.sums import total_of
from tests.support.effort import one_in, only

CLASS = 150
TAKEN = {name for name, experiment in lab.experiments().items() if experiment.takes_data}
LOOKING = {"coin", "pseudonyms", "unicity", "k-anonymity", "one-query", "differencing", "auditing", "sum"}


def own(**columns: list[Any]) -> pa.Table:
    """Return a class with editors, ids and a quote in a name that the course has not."""
    usual: dict[str, list[Any]] = {
        "id": [7 * student + 1_000 for student in range(CLASS)],
        "birth_date": [date(2003, 2, 1) + timedelta(days=3 * student) for student in range(CLASS)],
        "gender": [("f", "m", "x")[student % 3] for student in range(CLASS)],
        "editor": ["Helix" if student % 3 else "O'Vim" for student in range(CLASS)],
        "scholarship": [(student * 997) % 9_000 for student in range(CLASS)],
        "cheated": [student % 4 == 0 for student in range(CLASS)],
    }
    return pa.table(usual | columns).cast(lab.students().schema)


def test_what_looks_at_students_takes_others() -> None:
    assert TAKEN == LOOKING


@pytest.mark.parametrize("name", one_in(9, sorted(LOOKING)))
def test_it_holds_of_other_students(name: str) -> None:
    found = lab.run(name, data=own(), short=True)
    assert found.holds, [check for check in found.checks if not check.holds]


@pytest.mark.long
def test_it_is_of_these_students() -> None:
    """The exact attacks find what is in the table, and the share of an error is of its own total."""
    assert total_of(own()) == sum(min(one, 6_000) for one in own()["scholarship"].to_pylist())

    def error(found: lab.Finding) -> Cell:
        return next(row["predicted"] for row in found.rows if row["figure"] == "relative mean error")

    shares = [error(lab.run("sum", data=data, short=True)) for data in (None, own())]
    totals = [total_of(table) for table in (lab.students(), own())]
    first, second = (float(share or 0) * total for share, total in zip(shares, totals, strict=True))
    assert first == pytest.approx(second)
    bob = FirstStudent.of(own())
    assert (bob.editor, bob.users, bob.without.num_rows) == ("O'Vim", 50, CLASS - 1)
    assert "'O''Vim'" in bob.alone


@pytest.mark.parametrize(
    ("columns", "said"),
    only(
        [0],
        [
            ({"birth_date": [date(2003, 2, 1)] * CLASS}, "only one"),
            ({"editor": ["Nano", *["Helix"] * (CLASS - 1)]}, "with this editor 1"),
            ({"id": [1] * CLASS}, "id occurs twice"),
            ({"id": list(range(-1, CLASS - 1))}, "below 0"),
        ],
        many=True,
    ),
)
def test_what_is_not_possible_is_said(columns: dict[str, list[Any]], said: str) -> None:
    for name in ("one-query", "differencing", "auditing", "sum"):
        with pytest.raises(lw.InvalidParameter, match=said):
            lab.run(name, data=own(**columns), short=True)


def test_a_total_of_nothing_has_no_share() -> None:
    with pytest.raises(lw.InvalidParameter, match="Nobody"):
        lab.run("sum", data=own(scholarship=[0] * CLASS), short=True)
