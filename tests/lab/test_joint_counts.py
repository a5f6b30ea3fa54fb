"""*joint_counts* is what the engine says of the noise of its counts, and what its draws do."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from lapwing.lab.agreement import share
from lapwing.lab.course import protected_students
from lapwing.lab.joint_counts import JointCountNoise
from tests.support.lab.laws import discrete_laplace


def test_the_engine_has_this_noise() -> None:
    columns = {f"a{j}": pa.array([False, True]) for j in range(12)}
    counts = ", ".join(f"COUNT_IF({name}) AS {name}" for name in columns)
    with protected_students(1, pa.table({"id": [1, 2], **columns}), bounds={}, domains={}) as session:
        answer = session.sql(f"SELECT {counts} FROM students", epsilon=Fraction(3, 4))
    noise = JointCountNoise(count=12, epsilon=Fraction(3, 4))
    scales = sorted(float(law.scale) / 2 for law in noise.laws)
    for column in answer.describe():
        (facts,) = column.measures
        assert sorted(drawn.scale for drawn in facts.noises) == pytest.approx(scales, rel=1e-6)
        assert facts.scale == pytest.approx(noise.scale, rel=1e-6)


def test_its_law_is_the_sum_of_both() -> None:
    noise = JointCountNoise(count=5, epsilon=Fraction(2))
    own, common = (discrete_laplace(float(law.scale), 0, 400) for law in noise.laws)
    both = np.convolve(own, common)
    halves = np.abs(np.arange(-800, 801))
    variance = float(both @ halves**2) / 4 + 1 / 8
    assert noise.standard_deviation == pytest.approx(variance**0.5)
    for reach in (0, 3, 10):
        inside = both[halves < 2 * reach + 1].sum() + both[halves == 2 * reach + 1].sum() / 2
        assert noise.within(reach) == pytest.approx(float(inside))


def test_draws_are_as_often_within_a_reach_and_share_what_is_common() -> None:
    noise, counts = JointCountNoise(count=8, epsilon=Fraction(1)), np.arange(8 * 5_000).reshape(8, -1)
    errors = noise.release(counts) - counts
    for row in errors[:2]:
        assert share("within", noise.within(8), int((np.abs(row) <= 8).sum()), 5_000).holds
    covariance = np.cov(errors)[~np.eye(8, dtype=bool)].mean()
    assert covariance == pytest.approx(noise.common**2, rel=0.25)
    assert not share("within", noise.within(8), int((np.abs(errors[0] * 0.7) <= 8).sum()), 5_000).holds
