"""Tables of two questions asked together: how many have both answers, from reports that tell each with its own noise.

Theory of operation. A report has a part for each of two questions, made noisy independently of each other. Let s be
whether the first part supports value u, with probability p₁ if u is true and q₁ if not, and t the same of the second
part and v. Then z = (s − q₁)/(p₁ − q₁) · (t − q₂)/(p₂ − q₂) is 1 on average for a respondent with both answers, and 0
for all others, as the expectation of independent factors is the product of theirs. So the mean of z over reports is an
unbiased share of the pair. It takes four values, by s and t; how often each occurred is all that the estimate needs,
so tables add up while reports come in.

Intervals are for the population of which respondents are a random sample: z has its sample variance there. They are
near, not certified, and none is given where one of the four cases was seen fewer than `FEW` times.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.frequencies.binary import BinaryResponse
from lapwing.local.frequencies.consistency import on_simplex
from lapwing.local.frequencies.randomizer import Randomizer, Reports, codes
from lapwing.local.registry import randomizer_of
from lapwing.privacy.amounts import Number, probability

FEW: Final = 10
MOST_CELLS: Final = 1_000_000
"""Of one table."""
_AT_ONCE: Final = 1 << 22
"""Reports times values whose supports are looked at together."""

Table = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointEstimate:
    """The shares of pairs of answers to two questions.

    Args:
        questions: Of the two.
        values: Of the two.
        mechanisms: Of the two.
        reports: How many.
        first: How many support each value of the one question, and of the other.
        second: As `first`.
        both: How many support both of two values, by row and column.
    """

    questions: tuple[str, str]
    values: tuple[tuple[str, ...], tuple[str, ...]]
    mechanisms: tuple[Randomizer, Randomizer]
    reports: int
    first: NDArray[np.int64] = field(repr=False)
    second: NDArray[np.int64] = field(repr=False)
    both: NDArray[np.int64] = field(repr=False)

    @property
    def raw(self) -> Table:
        """Unbiased shares, a row for each value of the first question; some may be below 0."""
        return self._moment(1)

    @property
    def consistent(self) -> Table:
        """The nearest shares that are at least 0 and add up to 1."""
        raw = self.raw
        shares: Table = on_simplex(raw.ravel()).reshape(raw.shape)
        return shares

    @property
    def standard_error(self) -> Table:
        """Of each raw share, for the population."""
        return np.sqrt(np.maximum(self._moment(2) - self.raw**2, 0) / self.reports)

    def interval(self, confidence: Number = 0.95, *, together: bool = False) -> tuple[Table, Table]:
        """Return the ends of an interval for each share of the population; not a number where there are too few.

        Args:
            together: All intervals hold at once with this confidence (Bonferroni), not each by itself.
        """
        level = 1 - float(probability(confidence, "confidence"))
        reach = NormalDist().inv_cdf(1 - level / (self.both.size if together else 1) / 2) * self.standard_error
        few = np.min(self._cases(), axis=0) < FEW
        return np.where(few, np.nan, self.raw - reach), np.where(few, np.nan, self.raw + reach)

    def rows(self, confidence: Number = 0.95, *, together: bool = False) -> list[dict[str, Any]]:
        """Return one record a pair; `seen` is whether its interval is above 0, `low` and `high` are None of too few."""
        low, high = self.interval(confidence, together=together)
        tables = {"share": self.raw, "standard_error": self.standard_error, "low": low, "high": high}
        tables["consistent"] = self.consistent
        return [
            {
                "value": f"{one} × {other}",
                **{name: None if np.isnan(table[i, j]) else float(table[i, j]) for name, table in tables.items()},
                "seen": bool(low[i, j] > 0),
            }
            for i, one in enumerate(self.values[0])
            for j, other in enumerate(self.values[1])
        ]

    def _cases(self) -> NDArray[np.int64]:
        """Return how many reports support both, the first alone, the second alone, and neither."""
        one, other = self.first[:, None] - self.both, self.second[None, :] - self.both
        return np.stack([self.both, one, other, self.reports - one - other - self.both])

    def _moment(self, power: int) -> Table:
        """Return the mean of z to a power."""
        (p1, q1), (p2, q2) = (_rates(mechanism) for mechanism in self.mechanisms)
        yes, no = ((1 - q1) / (p1 - q1))[:, None], (-q1 / (p1 - q1))[:, None]
        true, false = ((1 - q2) / (p2 - q2))[None, :], (-q2 / (p2 - q2))[None, :]
        z = np.stack([yes * true, yes * false, no * true, no * false])
        moment: Table = (self._cases() * z**power).sum(axis=0) / self.reports
        return moment


@final
@dataclass(slots=True)
class JointReportCounts:
    """What reports on two questions add up to.

    Args:
        numbers: Of the two questions, in their record.

    Raises:
        InvalidParameter: For a table of more than a million cells.
    """

    numbers: tuple[int, int]
    questions: tuple[str, str]
    values: tuple[tuple[str, ...], tuple[str, ...]]
    mechanisms: tuple[Randomizer, Randomizer]
    reports: int = 0
    first: NDArray[np.int64] = field(init=False)
    second: NDArray[np.int64] = field(init=False)
    both: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        rows, columns = map(len, self.values)
        if rows * columns > MOST_CELLS:
            raise InvalidParameter(f"A joint table has {MOST_CELLS:,} cells at most, not {rows:,} times {columns:,}.")
        self.first, self.second = np.zeros(rows, dtype=np.int64), np.zeros(columns, dtype=np.int64)
        self.both = np.zeros((rows, columns), dtype=np.int64)

    @classmethod
    def of(cls, asked: client.Attributes, one: int, other: int) -> Self:
        """Return empty counts of two questions, by their numbers.

        Raises:
            InvalidParameter: Unless both ask for one of a list of values.
        """
        questions, each = zip(*(asked.each[number] for number in (one, other)), strict=True)
        made = randomizer_of(each[0]), randomizer_of(each[1])
        texts = tuple(part.answers.texts for part in each if isinstance(part.answers, client.Values))
        return cls((one, other), (questions[0], questions[1]), (texts[0], texts[1]), made)

    def add(self, reports: tuple[Any, ...]) -> None:
        """Add reports on all questions, as their mechanism gathers them."""
        one, other = (reports[number] for number in self.numbers)
        step = max(1, _AT_ONCE // sum(map(len, self.values)))
        for start in range(0, len(one), step):
            s = supports_of(self.mechanisms[0], one[start : start + step])
            t = supports_of(self.mechanisms[1], other[start : start + step])
            self.first += s.sum(axis=0)
            self.second += t.sum(axis=0)
            # Sums of ones, below 2^53 in floats, which are multiplied far more quickly than integers.
            self.both += (s.T.astype(np.float64) @ t.astype(np.float64)).astype(np.int64)
        self.reports += len(one)

    def estimate(self) -> JointEstimate:
        """Return the estimate of what was added so far.

        Raises:
            InvalidParameter: If nothing was.
        """
        if not self.reports:
            raise InvalidParameter("There are no reports to estimate from.")
        return JointEstimate(
            questions=self.questions,
            values=self.values,
            mechanisms=self.mechanisms,
            reports=self.reports,
            first=self.first.copy(),
            second=self.second.copy(),
            both=self.both.copy(),
        )


def estimate_joint(task: client.Task, reports: tuple[Any, ...], first: str, second: str) -> JointEstimate:
    """Return the table of two questions of a task whose reports tell all of them.

    Args:
        reports: As `collect_for` returns them, a part for each question.
        first: The questions, both for one of a list of values.
        second: The questions, both for one of a list of values.

    Raises:
        InvalidParameter: For another task, for questions that it does not have, or without reports.
    """
    asked = task.asked
    if not isinstance(asked, client.Attributes) or asked.mechanism != client.ALL_ATTRIBUTES:
        raise InvalidParameter(
            "Joint tables need tasks whose reports cover all questions: new_record_task(joint=True)."
        )
    questions = [question for question, _ in asked.each]
    for question in (first, second):
        if question not in questions or first == second:
            raise InvalidParameter(f"Give two of the questions {', '.join(questions)}.")
    counts = JointReportCounts.of(asked, questions.index(first), questions.index(second))
    counts.add(reports)
    return counts.estimate()


def joint_counts(asked: client.Attributes) -> Iterator[JointReportCounts]:
    """Yield empty counts for every two questions for one of a list of values, if reports tell all of them."""
    listed = [number for number, (_, each) in enumerate(asked.each) if isinstance(each.answers, client.Values)]
    if asked.mechanism == client.ALL_ATTRIBUTES:
        for one, other in combinations(listed, 2):
            yield JointReportCounts.of(asked, one, other)


def supports_of(mechanism: Randomizer, reports: Reports) -> NDArray[np.bool_]:
    """Return whether each report supports each value: those that it is likelier for, but with two answers the named."""
    if isinstance(mechanism, BinaryResponse):
        return np.asarray(codes(reports, 2)[:, None] == np.arange(2))
    return np.asarray(mechanism.likelihoods(reports) > 1, dtype=np.bool_)


def _rates(mechanism: Randomizer) -> tuple[Table, Table]:
    p, q = zip(*(mechanism.rates(value) for value in range(mechanism.categories)), strict=True)
    return np.array(p, dtype=np.float64), np.array(q, dtype=np.float64)
