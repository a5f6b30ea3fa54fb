"""Naive targets of the attacks: what is published without differential privacy, or with too little.

None of it has a way into the engine.
"""

from datetime import date
from fractions import Fraction
from math import ceil, exp
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lapwing.lab.chance import generator

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HIDDEN_BELOW: Final = 5
"""Smaller counts are not shown: a rule of many offices of statistics."""
BASE: Final = 5
"""Counts are rounded at random to multiples of this, as some offices do; the expected count is the true one."""
UNIT: Final = 2.0**-53
"""The step of the uniform numbers that noise in double precision is made of."""
_COINS: Final = generator()


# Exact figures.


def exact_count(table: pa.Table, editor: str, *, born: date | None = None, not_born: date | None = None) -> int:
    """Count who use an editor, of all, or of those who were born on a day, or on another."""
    mask = pc.equal(table["editor"], editor)
    if born is not None:
        mask = pc.and_(mask, pc.equal(table["birth_date"], born))
    if not_born is not None:
        mask = pc.and_(mask, pc.not_equal(table["birth_date"], not_born))
    return int(pc.sum(mask).as_py() or 0)


def hidden_if_small(count: int) -> int | None:
    """Return a count, or None for a small one."""
    return count if count >= HIDDEN_BELOW else None


def exact_total(table: pa.Table, column: str, editor: str, *, without: int | None = None) -> int | None:
    """Sum a column over those who use an editor, except one student; or None for a small group."""
    mask = pc.equal(table["editor"], editor)
    if without is not None:
        mask = pc.and_(mask, pc.not_equal(table["id"], without))
    group = table.filter(mask)
    return int(pc.sum(group[column]).as_py()) if group.num_rows >= HIDDEN_BELOW else None


def exact_means(members: NDArray[np.int8]) -> Floats:
    """Return the share of yes for each attribute, a column."""
    means: Floats = members.mean(axis=0)
    return means


# Noise that does not grow with the number of questions, or is drawn anew for each.


def rounded_at_random(counts: Integers) -> Integers:
    """Return the multiple of 5 above or below, each with the probability that keeps the expectation."""
    rest = counts % BASE
    up = generator().integers(0, BASE, counts.shape) < rest
    return counts - rest + BASE * up


def within(counts: Integers, reach: int) -> Integers:
    """Return counts with uniform noise that is never larger than `reach`."""
    return counts + generator().integers(-reach, reach + 1, counts.shape)


def with_laplace(true: float, scale: float, size: int | tuple[int, ...]) -> Floats:
    """Return answers with fresh continuous Laplace noise, as often as one likes."""
    return true + generator().laplace(0.0, scale, size)


def reports_with_fresh_coins(answers: Integers, epsilon: Fraction, days: int) -> NDArray[np.int8]:
    """Return what each person reports, a row each, on so many days: the truth with probability e^ε/(1 + e^ε).

    The coins are as good as ours, only that they are thrown anew every day.
    """
    lies = generator().random((answers.size, days)) < 1 / (1 + exp(float(epsilon)))
    reports: NDArray[np.int8] = (answers[:, None] != lies).astype(np.int8)
    return reports


# Noise in double precision, as textbooks and libraries wrote it, and what it can give.


def laplace_in_doubles(true: float, scale: float, size: int) -> Floats:
    """Return true + noise, noise = ±scale·ln u of a uniform u of 53 bits."""
    drawing = generator()
    sign = 2.0 * drawing.integers(0, 2, size) - 1.0
    noisy: Floats = true + sign * (scale * np.log(drawing.integers(1, 2**53 + 1, size) * UNIT))
    return noisy


def can_give(answer: Floats, true: float, scale: float) -> NDArray[np.bool_]:
    """Tell for each answer whether some u leads to it from a true figure: by trying all that may.

    If true + noise was rounded to y, then noise is y − true up to an ulp of y and one of itself, and so u·2^53 is
    e^(−|y − true|/scale)·2^53 up to 2 + 2/scale or so: as many are tried on both sides, and some more.
    """
    noise = answer - true
    sign = np.where(noise < 0, 1.0, -1.0)
    nearest = np.rint(np.exp(-np.abs(noise) / scale) / UNIT)
    possible = np.zeros(answer.shape, dtype=np.bool_)
    reach = 6 + ceil(2 / scale)
    for step in range(-reach, reach + 1):
        u = np.clip(nearest + step, 1.0, 2.0**53) * UNIT
        possible |= true + sign * (scale * np.log(u)) == answer
    return possible


# A sampler whose time tells.


class Draw(NamedTuple):
    """A number and how many coins it took."""

    noise: int
    coins: int


def laplace_by_coins(scale: float) -> Draw:
    """Return discrete Laplace noise: a sign, and as many coins as succeed; anew if that is −0."""
    uniform, again = _COINS.random, exp(-1 / scale)
    coins = 0
    while True:
        sign = -1 if uniform() < 0.5 else 1
        size = 0
        coins += 1
        while uniform() < again:
            size += 1
            coins += 1
        if size or sign > 0:
            return Draw(sign * size, coins)
