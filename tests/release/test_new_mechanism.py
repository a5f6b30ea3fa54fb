"""A mechanism of its own file and a line in the table answers questions: it is described, stored and served again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import ClassVar, Self

import pytest

from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Enclosure
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms import DiscreteLaplace, Sensitivity
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss
from lapwing.query.pricing import quote
from lapwing.release import restoring
from tests.support.release.small import PURE, opened

COUNT = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
MEDIAN = "SELECT MEDIAN(age) AS m, DP_INTERVAL_LOW(MEDIAN(age)) AS low FROM visits"
EVERYBODY = [{"person": person, "plan": "ab"[person % 2]} for person in range(40)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """Discrete Laplace noise, and one more of it."""

    name: ClassVar[str] = "toy"
    scale: Fraction

    @property
    def _part(self) -> DiscreteLaplace:
        return DiscreteLaplace(scale=self.scale)

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity) -> Self:
        return cls(scale=DiscreteLaplace.for_loss(loss, sensitivity).scale)

    @classmethod
    def for_half_width(cls, h: int, confidence: Number) -> Self:
        return cls(scale=DiscreteLaplace.for_half_width(h // 2, confidence).scale)

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(2) * self._part.standard_deviation

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        return self._part.loss(sensitivity, kind)

    def distance(self, sensitivity: Sensitivity) -> float:
        return float(sensitivity.l1)

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        return self._part.release(self._part.release(values, entropy), entropy)

    def coverage(self, h: int) -> Enclosure:
        return self._part.coverage(h // 2)

    def half_width(self, confidence: Number) -> int:
        return 2 * self._part.half_width(1 - (1 - Fraction(str(confidence))) / 2)

    def record(self) -> list[str]:
        return [str(self.scale)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        (scale,) = map(Fraction, parameters)
        return cls(scale=scale)


@sum_half_width.register
def _(noise: Toy, weight: Fraction, tail: Fraction) -> int:
    return sum_half_width(DiscreteLaplace(scale=noise.scale), 2 * weight, tail)  # each weight stands at two numbers


def test_whatever_is_listed_serves_quantiles_too() -> None:
    """The narrowest of all is chosen, so that one without a rule would stop every quantile of its ledgers."""
    listed = set(chain(*quote.MECHANISMS.values()))
    assert all(sum_half_width.dispatch(kind) is not sum_half_width.dispatch(object) for kind in listed)
    assert len({kind.name for kind in listed}) == len(listed)


def test_a_mechanism_without_a_rule_is_found() -> None:
    assert sum_half_width.dispatch(Sensitivity) is sum_half_width.dispatch(object)


def test_a_mechanism_of_one_file_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(quote.MECHANISMS, "pure", (Toy,))
    monkeypatch.setitem(vars(restoring)["_NOISES"], Toy.name, Toy)  # as it would be, were the table so from the start
    vars(quote)["narrowest"].cache_clear()
    with opened(tmp_path, EVERYBODY, budget=PURE) as session:
        (described,) = session.explain(COUNT, epsilon=1).measures
        assert (described.mechanism, described.scale) == ("toy", 2.0)  # a unit may add two rows
        first = session.sql(COUNT, epsilon=1)
        (noise,) = first.mechanisms.values()
        assert isinstance(noise, Toy)
        (facts,) = [column for column in first.describe() if column.name == "n"]
        assert facts.half_width == described.half_width
        again, sharper = session.sql(COUNT, epsilon=0.5), session.sql(COUNT, epsilon=2)
        assert again.stored
        assert again.rows() == first.rows()
        assert not sharper.stored
        assert session.explain(MEDIAN, epsilon=1).measures[0].mechanism == "toy"
        assert len(session.sql(MEDIAN, epsilon=1).rows()) == 1
    vars(quote)["narrowest"].cache_clear()
