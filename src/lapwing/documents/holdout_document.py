"""Holdouts of a service as JSON documents: what one promises, and what it answers."""

from typing import Literal

from typing_extensions import TypedDict  # pydantic describes those of `typing` from Python 3.12 on only


class HoldoutDocument(TypedDict):
    """A holdout: all its intervals hold at once with the `confidence`, for so many `questions` at most.

    `half_width` is about what each interval is within, as a share of the range of values; `why` says what it does.
    `asked` counts the questions that were charged, and those that are under way; `left` are the others.
    """

    id: str
    person: str
    dataset: str
    created: str
    people: int
    questions: int
    confidence: float
    strategy: str
    half_width: float
    why: str
    asked: int
    left: int


class HoldoutAnswerDocument(TypedDict):
    """An answer of a holdout: the mean in the population is between `low` and `high`, for all its answers at once.

    `question` is its number, from 1; `bounds` are those of the values, and `answer` the id of the sum it rests on.
    """

    question: int
    sql: str
    value: float
    low: float
    high: float
    confidence: float
    strategy: str
    source: Literal["noise"]
    bounds: list[float]
    created: str
    answer: str
