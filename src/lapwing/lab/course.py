"""The course's data set on the real engine, in a folder that lasts as long as the experiment, and many answers from it.

The same words bring the stored answer, so many answers are bought in other words each time, or drawn from the noise of
one. An experiment that needs many answers of one law gives its session a budget for all of them: no curator would, and
what each of them tells is the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import lapwing as lw
from lapwing.errors import BudgetExhausted
from lapwing.lab.students import EDITORS, GENDERS, LARGEST_SCHOLARSHIP, students
from lapwing.mechanisms import DiscreteLaplace
from lapwing.privacy.amounts import Number
from lapwing.session import Session

BOUNDS: Final = {"scholarship": (0, LARGEST_SCHOLARSHIP)}
DOMAINS: Final = {"editor": EDITORS, "gender": GENDERS}


@contextmanager
def protected_students(epsilon: Number, table: pa.Table | None = None, **named: Any) -> Iterator[Session]:
    """Give a session of the students, or of others like them, with a budget of its own; all is gone at the end.

    The keys of others are those that are in them, which no curator may say: the lesson says it for all who run it.

    Args:
        **named: What else `lapwing.protect` takes, such as `delta`; a budget of pure ε unless said otherwise.
    """
    with TemporaryDirectory(prefix="lapwing-lab-") as folder:
        file = Path(folder) / "students.parquet"
        pq.write_table(students() if table is None else table, file)
        settings = {"bounds": BOUNDS, "domains": _domains(table), "max_rows_per_unit": 1, **named}
        with lw.protect(file, privacy_unit="id", epsilon=epsilon, **settings) as session:
            yield session


def _domains(table: pa.Table | None) -> dict[str, tuple[str, ...]]:
    """Return the keys of the course, and those of a table that are others."""
    if table is None or not set(DOMAINS) <= set(table.column_names):
        return DOMAINS
    return {
        name: (*known, *sorted(set(table[name].unique().to_pylist()) - set(known))) for name, known in DOMAINS.items()
    }


def wordings(question: str, count: int) -> list[str]:
    """Return a question that ends in a condition, with one condition more that all students meet: no id is below 0."""
    return [f"{question} AND id >= {-1 - number}" for number in range(count)]


def fresh_answers(session: Session, question: str, epsilon: Fraction, count: int) -> NDArray[np.int64]:
    """Return answers of ε each to a question whose one figure is called n."""
    answers = session.batch(wordings(question, count), epsilon=count * epsilon)
    return np.array([answer.rows()[0]["n"] for answer in answers], dtype=np.int64)


def is_refused(session: Session, question: str, epsilon: Fraction) -> bool:
    """Ask a question, and tell whether the budget did not allow it."""
    try:
        session.sql(question, epsilon=epsilon)
    except BudgetExhausted:
        return True
    return False


def noise_of(session: Session, question: str, epsilon: Fraction) -> DiscreteLaplace:
    """Return the mechanism that a session with a pure budget answered a question by, to draw from it more often."""
    (mechanism,) = session.sql(question, epsilon=epsilon).mechanisms.values()
    if not isinstance(mechanism, DiscreteLaplace):
        raise TypeError(f"The answer has {mechanism.name} noise; ask in a pure budget.")
    return mechanism


def drawn(mechanism: DiscreteLaplace, true: int, count: int) -> NDArray[np.int64]:
    """Return answers of a mechanism to a question with a known true answer."""
    return mechanism.release(np.full(count, true, dtype=np.int64)).astype(np.int64)
