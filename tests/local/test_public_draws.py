"""Draws that anybody may look at: honest ones are called uneven as rarely as said, and chosen ones are noticed."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from lapwing.errors import InvalidParameter
from lapwing.local import (
    CountMeanSketch,
    HadamardSketch,
    KaryResponse,
    LocalHashing,
    OneAttribute,
    PrefixExtending,
    Rappor,
    UnaryEncoding,
    check_draws,
    estimate,
    estimate_mean,
)
from lapwing.local.advice import advise, advise_mean
from lapwing.local.client import Number
from lapwing.local.public_draws import UNLIKELY, DrawCheck, EqualDraw, OnesDraw
from tests.support.fixed_entropy import StreamEntropy

WORDS = tuple(f"w{i}" for i in range(20))
UNARY, HASHING = UnaryEncoding.optimised(1, 30), LocalHashing.for_epsilon(1, 30)
PREFIXES = PrefixExtending.for_epsilon(2, 4)
SKETCH = CountMeanSketch.for_epsilon(2, functions=64, buckets=32, entropy=StreamEntropy("seeds")).among(WORDS)
HADAMARD = HadamardSketch.for_epsilon(2, functions=64, order=5, entropy=StreamEntropy("seeds")).among(WORDS)
RAPPOR = Rappor.once(2)


def honest(mechanism: Any, people: int, label: str) -> Any:
    """Reports of people who nearly all have the same answer, which must not matter."""
    entropy = StreamEntropy(label)
    codes = np.where(np.arange(people) % 10 == 0, np.arange(people) % 7, 0)
    if isinstance(mechanism, PrefixExtending):
        return mechanism.randomize([b"abcd" if code == 0 else b"xy%d" % code for code in codes], entropy)
    if isinstance(mechanism, Rappor):
        return mechanism.randomize(WORDS, codes, entropy)
    return mechanism.randomize(codes, entropy)


def checks(mechanism: Any, reports: Any) -> list[DrawCheck]:
    return check_draws(mechanism.public_draws(reports))


def test_a_bound_on_the_most_frequent_outcome_is_the_binomial_tail() -> None:
    """12 outcomes, 1,000 reports, 130 of one. The tail is scipy's, times the 77 windows that are looked at."""
    seen = np.concatenate([np.full(130, 5), np.arange(870) % 12])
    (check,) = check_draws([EqualDraw(name="group", outcomes=12, seen=seen)])
    most = int(np.bincount(seen).max())
    assert check.p_value == pytest.approx(77 * binom.sf(most - 1, len(seen), 1 / 12), rel=1e-6)
    assert [(one.first, one.last, one.reports) for one in check.crowded] == [(5, 5, most)]


@pytest.mark.parametrize(
    "mechanism", [UNARY, HASHING, PREFIXES, SKETCH, HADAMARD, RAPPOR], ids=lambda mechanism: mechanism.name
)
def test_honest_draws_are_hardly_ever_uneven(mechanism: Any) -> None:
    found = checks(mechanism, honest(mechanism, 3000, f"honest {mechanism.name}"))
    assert found
    assert min(check.p_value for check in found) > UNLIKELY


@pytest.mark.long
def test_p_values_are_upper_bounds() -> None:
    """Of 2,000 honest draws of each kind at most a share of p has a p-value of p or less, by a margin of chance."""
    generator, p, q = np.random.default_rng(7), Fraction(1, 2), Fraction(1, 4)
    kinds: dict[str, Callable[[], EqualDraw | OnesDraw]] = {
        "few outcomes": lambda: EqualDraw(name="d", outcomes=7, seen=generator.integers(7, size=2000)),
        "many outcomes": lambda: EqualDraw(name="d", outcomes=5000, seen=generator.integers(5000, size=2000)),
        "ones": lambda: OnesDraw(
            name="d",
            reports=500,
            bits=20,
            ones=int(generator.binomial(500, 0.5) + generator.binomial(9500, 0.25)),
            p=p,
            q=q,
        ),
    }
    for draw in kinds.values():
        values = np.array([draw().check().p_value for _ in range(2000)])
        for level in (0.3, 0.1, 0.02):
            assert (values <= level).mean() <= level + 4 * np.sqrt(level / 2000)
    planted = np.array([kinds["few outcomes"]().check().p_value / 27 for _ in range(2000)])  # no union bound
    assert (planted <= 0.02).mean() > 0.02 + 4 * np.sqrt(0.02 / 2000)


def passes(mechanism: Any, reports: Any) -> list[DrawCheck]:
    """The planted bug: a check that finds every draw even."""
    return [replace(check, p_value=1.0, crowded=()) for check in checks(mechanism, reports)]


@pytest.mark.parametrize(("checking", "noticed"), [(checks, True), (passes, False)], ids=["shipped", "planted"])
def test_forged_reports_in_two_groups_are_noticed(checking: Callable[..., list[DrawCheck]], *, noticed: bool) -> None:
    """2 % forged, all of the groups that measure: their words win .4 of the shares, and the groups are named."""
    reports = honest(PREFIXES, 20_000, "groups")
    last = len(PREFIXES.sizes) - 1
    forged = reports[:400].copy()
    forged[:, 0] = np.where(np.arange(400) % 2 == 0, last, last - 1)
    found = checking(PREFIXES, np.concatenate([reports[400:], forged]))
    group = next(check for check in found if check.name == "group")
    assert group.uneven == noticed
    assert [(one.first, one.last) for one in group.crowded[:1]] == [(last - 1, last)] * noticed
    assert not any(check.uneven for check in checking(PREFIXES, reports))


def chosen(name: str) -> tuple[Any, Any, str]:
    """A mechanism, reports of which 5 % are made to move one estimate, and the draw that tells."""
    mechanism: Any = {
        "unary": UNARY,
        "hashing": HASHING,
        "sketch": SKETCH,
        "hadamard": HADAMARD,
        "rappor-once": RAPPOR,
    }[name]
    reports = honest(mechanism, 4000, f"chosen {name}").copy()
    own = slice(0, 200)
    if name == "unary":
        reports[own] = np.arange(30) < mechanism.weights[-1]  # as many ones as a report may have
        return mechanism, reports, "ones"
    if name in ("hashing", "hadamard"):
        reports[own] = reports[0]  # one report, copied
        return mechanism, reports, "a of the hash function" if name == "hashing" else "function"
    reports[own] = reports[:1]
    return mechanism, reports, "function" if name == "sketch" else "cohort"


@pytest.mark.parametrize("name", ["unary", "hashing", "sketch", "hadamard", "rappor-once"])
def test_chosen_draws_are_noticed(name: str) -> None:
    mechanism, reports, telling = chosen(name)
    assert telling in {check.name for check in checks(mechanism, reports) if check.uneven}


def test_a_question_that_too_many_answer_is_noticed() -> None:
    mechanism = OneAttribute(questions=("a", "b"), each=(UNARY, KaryResponse.for_epsilon(1, 3)))
    ones, values = honest(UNARY, 1100, "one"), np.zeros(900, dtype=np.int64)
    (question, bits) = checks(mechanism, (ones, values))
    assert (question.name, question.uneven, bits.name, bits.uneven) == ("question", True, "ones, a", False)
    assert question.crowded[0].reports == 1100
    assert not checks(mechanism, (ones[:1010], np.zeros(990, dtype=np.int64)))[0].uneven


def test_nothing_is_said_where_nothing_is_drawn() -> None:
    """No report, a draw with one outcome, and devices that keep their cohort."""
    assert check_draws([EqualDraw(name="group", outcomes=5, seen=np.zeros(0, dtype=np.int64))])[0].p_value == 1
    assert check_draws([EqualDraw(name="group", outcomes=1, seen=np.zeros(9, dtype=np.int64))])[0].p_value == 1
    assert checks(Rappor.memoised(2), np.zeros(9, dtype=Rappor.memoised(2).record)) == []
    assert checks(UNARY, np.zeros((0, 30), dtype=np.bool_))[0].p_value == 1


def farthest(honest_reports: Any, kinds: Any, estimated: Any) -> None:
    """Ten of each kind among all: within the bound of the estimate that is seen, and one kind reaches each end."""
    without = estimated(honest_reports)
    moved = []
    for kind in kinds:
        seen = estimated(np.concatenate([honest_reports, np.repeat(kind[None], 10, axis=0)]))
        down, up = seen.forged(10)
        change = np.atleast_1d(seen.raw - without.raw)
        assert (change <= np.atleast_1d(up) + 1e-9).all()
        assert (-change <= np.atleast_1d(down) + 1e-9).all()
        moved.append((np.isclose(change, up), np.isclose(-change, down)))
    reached_up, reached_down = (np.any([side[i] for side in moved], axis=0) for i in (0, 1))
    assert reached_up.all()
    assert reached_down.all()


@pytest.mark.parametrize("place", range(5))
def test_forged_reports_move_shares_no_further_than_said(place: int) -> None:
    """Relative to the estimate without them, also where that is below 0; the worst reports reach the bound."""
    mechanism = advise(1, 6, 1).options[place].mechanism
    reports = mechanism.randomize(np.zeros(300, dtype=np.int64), StreamEntropy(f"moved {place}"))
    farthest(reports, reports, lambda given: estimate(mechanism, given))


@pytest.mark.parametrize("place", range(3))
def test_forged_reports_move_a_mean_no_further_than_said(place: int) -> None:
    mechanism = advise_mean(1, Number(lower=Decimal(0), upper=Decimal(10), steps=10), 1).options[place].mechanism
    points = np.concatenate([np.zeros(150, dtype=np.int64), np.full(150, 10)])
    reports = mechanism.randomize(points, StreamEntropy(f"mean {place}"))
    found = estimate_mean(mechanism, reports)
    for kind in np.unique(reports):
        seen = estimate_mean(mechanism, np.append(reports, np.repeat(kind, 10)))
        down, up = seen.forged(10)
        assert -down - 1e-9 <= seen.raw - found.raw <= up + 1e-9
    with pytest.raises(InvalidParameter):
        found.forged(300)
