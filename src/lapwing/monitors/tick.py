"""What a monitor has released, as people read it. All of it is post-processing of what is public."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, sqrt
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, final

import numpy as np

from lapwing.answer import Answer
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell
from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.continual.gaussian import ContinualGaussian
from lapwing.mechanisms.continual.mixtures import UPWARDS
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.mechanisms.continual.saved import from_bytes, to_bytes
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.monitors.horizons import Horizons
from lapwing.monitors.planning import MeasureStream, MonitorPlan
from lapwing.monitors.schedule import EPOCH, TickSchedule
from lapwing.privacy.amounts import Number, probability
from lapwing.query.derivation.derived import MeasureValue, measures_of
from lapwing.query.measures.distribution import Distribution
from lapwing.release.cells import columns_of

if TYPE_CHECKING:
    import pyarrow as pa

CONFIDENCE: Final = 0.95


@final
@dataclass(frozen=True)
class TickNoise:
    """What an estimate of one tick errs by, in whole steps: the noise of this tick and of those before it, rounded."""

    name: ClassVar[str] = "correlated noise"
    mechanism: ContinualMechanism
    tick: int
    entries: int = 1

    @property
    def scale(self) -> Fraction:
        """Of the noise that is drawn at each tick."""
        mechanism = self.mechanism
        return mechanism.sigma if isinstance(mechanism, ContinualGaussian) else mechanism.scale

    @property
    def standard_deviation(self) -> float:
        """Of the estimate."""
        return self.mechanism.standard_deviation(self.tick)

    def half_width(self, confidence: Number) -> int:
        """Return an h with P(|estimate − truth| ≤ h) ≥ confidence; half a step of it is for rounding to whole steps."""
        tail = 1 - probability(confidence, "confidence")
        return ceil(self.mechanism.half_width(self.tick, tail) + 0.5)

    def record(self) -> list[str]:
        """Return the tick; a monitor's file has the rest."""
        return [str(self.tick)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> NoReturn:
        """Refuse: no stored answer has this noise."""
        raise NotImplementedError(parameters)


@sum_half_width.register
def _(noise: TickNoise, weight: Fraction, tail: Fraction) -> int:
    """Bound a weighted sum of the errors of different entries, |c| ≤ 1 and Σc² ≤ weight.

    Gaussian: the sum of the noise before any rounding is normal, with weight times the variance of one. Roundings move
    an entry by at most r in size, hence the sum by Σ|c|·r ≤ √(entries · weight)·r. Laplace: an entry's error is the
    noise of so many nodes, each with its sign, so that all of them together have weights of at most 1 whose squares add
    up to so many times the weight.
    """
    mechanism = noise.mechanism
    if isinstance(mechanism, ContinualGaussian):
        rounding = mechanism.rounding(noise.tick)
        normal, moved = mechanism.half_width(noise.tick, tail) - rounding, rounding + 0.5
        return ceil(sqrt(weight) * (normal + moved * sqrt(noise.entries)) * UPWARDS)
    nodes = weight * mechanism.weight(noise.tick)
    reach: int = sum_half_width(DiscreteLaplace(scale=mechanism.scale), nodes, tail)
    return reach


@final
class Tick:
    """The release at one tick.

    `answer` is the table, of which every reading is free; `begins` and `time` are when the tick's events happened, UTC.

    Args:
        number: From 1.
        values: The estimates of each stream, in whole steps.
    """

    def __init__(self, number: int, schedule: TickSchedule, plan: MonitorPlan, values: Sequence[IntArray]) -> None:
        self.number = number
        self.begins = _time(schedule.end_of(number - 1))
        self.time = _time(schedule.end_of(number))
        self._within = schedule.within_horizon(number)
        self.answer = answer_of(plan, self._within, values)
        self._plan, self._schedule, self._values = plan, schedule, values

    def __repr__(self) -> str:
        return f"<Tick {self.number} at {self.time:%Y-%m-%d %H:%M:%S}: {len(self.answer)} rows>"

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter(self.rows())

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts, as `Answer.rows`."""
        return self.answer.rows()

    def interval(
        self, confidence: Number = CONFIDENCE, *, simultaneous: bool = False
    ) -> dict[str, tuple[EndArray, EndArray]]:
        """Return the ends of an interval in every row, of every noisy column, as `Answer.interval`.

        Args:
            simultaneous: Let all intervals of all ticks of the horizon hold together with this confidence.
        """
        level = probability(confidence, "confidence")
        return self.answer.interval(self.each(level) if simultaneous else level)

    def each(self, level: Fraction) -> Fraction:
        """Return the confidence of each interval at which all of the horizon hold.

        For Gaussian noise with any correlation, intervals around 0 hold together with at least the product of their
        confidences (Šidák 1967). So each has the N-th root, rounded up. Of other noise, and of what is computed of
        several numbers, each has an N-th of the chance to fail. Where horizons double, the k-th has 2^−k of the chance.
        """
        outputs = [output.value for output in self._plan.plan.outputs if measures_of(output.value)]
        horizon, ticks = self._schedule.horizon_at(self.number), self._schedule.ticks
        if self._schedule.doubling:
            ticks, level = self._schedule.length(horizon), 1 - (1 - level) / 2**horizon
        number = max(1, len(outputs)) * len(self._plan.cells) * ticks
        plain = all(isinstance(value, MeasureValue) for value in outputs)
        gaussian = all(isinstance(stream.mechanism, ContinualGaussian) for stream in self._plan.streams)
        if not (plain and gaussian):
            return 1 - (1 - level) / number
        fails = Fraction(float(-np.expm1(np.log(float(level)) / number)))  # 1 − level^(1/number), to 15 digits
        return 1 - fails * (1 - Fraction(1, 10**9))

    def consistent(self) -> Answer:
        """Return counts that can be true together, beside the raw ones: not negative, and adding up to the same total.

        It is the nearest such table (a projection on a simplex), rounded to whole numbers. The adjustment makes small
        counts too large on average, and large ones too small. Sums that may be negative stay as they are. Intervals
        belong to the raw numbers.
        """
        values = []
        for stream, numbers in zip(self._plan.streams, self._values, strict=True):
            signed = (stream.kind == "rows" and stream.range[0] < 0) or stream.entries > 1
            values.append(numbers if signed else nearest_counts(numbers))
        return answer_of(self._plan, self._within, values)

    def to_arrow(self, confidence: Number | None = None) -> "pa.Table":
        """Return a PyArrow table, as `Answer.to_arrow`, that begins with the columns `tick` and `time`."""
        import pyarrow as pa  # here: few ticks leave as Arrow

        table = self.answer.to_arrow(confidence)
        stamps = pa.array([self.time] * len(table), pa.timestamp("us", tz="UTC"))
        table = table.add_column(0, "time", stamps)
        return table.add_column(0, "tick", pa.array([self.number] * len(table), pa.int64()))


def _time(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def answer_of(plan: MonitorPlan, tick: int, values: Sequence[IntArray]) -> Answer:
    """Return the answer of a tick of its horizon, of whole numbers for each stream."""
    return Answer(
        plan=plan.plan,
        mechanisms=[TickNoise(stream.mechanism, tick, stream.entries) for stream in plan.streams],
        values=values,
        keys=columns_of(plan.cells, len(plan.plan.question.keys)),
        cost=plan.loss.nothing(),
        stored=True,
    )


def noisy_columns(plan: MonitorPlan) -> list[str]:
    """Return the names of the columns that are noisy numbers."""
    return [output.name for output in plan.plan.outputs if measures_of(output.value)]


def nearest_counts(numbers: IntArray) -> IntArray:
    """Return whole numbers ≥ 0 with the sum of these, or 0 if that is below, which are nearest to them."""
    total = int(max(0, numbers.sum()))
    if total == 0:
        return np.zeros(len(numbers), dtype=np.int64)
    falling = np.sort(numbers.astype(np.float64))[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = np.flatnonzero(falling > excess)
    moved = np.maximum(numbers.astype(np.float64) - (excess[last[-1]] if len(last) else 0), 0)
    counts = np.floor(moved).astype(np.int64)
    missing = total - int(counts.sum())
    if 0 < missing <= len(counts):
        counts[np.argsort(counts - moved, kind="stable")[:missing]] += 1
    return counts


def _in_cells(numbers: IntArray, stream: MeasureStream) -> IntArray:
    """Return a number a cell, or of a distribution a row of them."""
    return numbers.reshape(-1, stream.entries) if isinstance(stream.measure, Distribution) else numbers


@final
class TickEstimator:
    """Makes estimates of what was released, one tick after the other from the beginning of a horizon on.

    Args:
        tick: The newest that is over, the last of a horizon.
    """

    def __init__(self, horizons: Horizons, schedule: TickSchedule, tick: int = 0) -> None:
        self._horizons, self._schedule = horizons, schedule
        self.tick = tick

    def read(self, released: Sequence[IntArray]) -> bytes:
        """Take what was released of the next tick, and return its estimates in whole steps, for `shown_tick`."""
        self.tick += 1
        if self._schedule.within_horizon(self.tick) == 1:
            plan = self._horizons.plan(self._schedule.horizon_at(self.tick))
            cells = len(plan.cells)
            self._estimates = [stream.mechanism.estimates(cells * stream.entries) for stream in plan.streams]
        pairs = zip(self._estimates, released, strict=True)
        return to_bytes([np.rint(estimates.advance(array)).astype(np.int64) for estimates, array in pairs])


def shown_tick(number: int, schedule: TickSchedule, plan: MonitorPlan, shown: bytes) -> Tick:
    """Return a tick of the estimates that a `TickEstimator` made of it."""
    values = [_in_cells(array, stream) for array, stream in zip(from_bytes(shown), plan.streams, strict=True)]
    return Tick(number, schedule, plan, values)
