"""Many answers to one question: bought from the engine in other words each time, or drawn from an answer's own noise.

The same words bring the stored answer. An experiment that needs many answers of one law gives its session a budget for
all of them: no curator would, and what each of them tells is the same.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms import DiscreteLaplace
from lapwing.session import Session


def wordings(question: str, count: int) -> list[str]:
    """Return a question that ends in a condition, with one condition more that all students meet: no id is below 0."""
    return [f"{question} AND id >= {-1 - number}" for number in range(count)]


def fresh_answers(session: Session, question: str, epsilon: Fraction, count: int) -> NDArray[np.int64]:
    """Return answers of ε each to a question whose one figure is called n."""
    answers = session.batch(wordings(question, count), epsilon=count * epsilon)
    return np.array([answer.rows()[0]["n"] for answer in answers], dtype=np.int64)


def noise_of(session: Session, question: str, epsilon: Fraction) -> DiscreteLaplace:
    """Return the mechanism that a session with a pure budget answered a question by, to draw from it more often."""
    (mechanism,) = session.sql(question, epsilon=epsilon).mechanisms.values()
    if not isinstance(mechanism, DiscreteLaplace):
        raise TypeError(f"The answer has {mechanism.name} noise; ask in a pure budget.")
    return mechanism


def drawn(mechanism: DiscreteLaplace, true: int, count: int) -> NDArray[np.int64]:
    """Return answers of a mechanism to a question with a known true answer."""
    return mechanism.release(np.full(count, true, dtype=np.int64)).astype(np.int64)
