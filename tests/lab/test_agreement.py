"""A check errs as seldom as it says, by all that can come; and one that is looser, or that looks away, is found out."""

from collections.abc import Iterator
from contextlib import contextmanager

import mpmath
import numpy as np
import pytest
from scipy import stats

from lapwing.lab import agreement
from lapwing.lab.agreement import RISK, bounded, exactly, mean, share
from tests.support.effort import only

PROBABILITIES = (1e-6, 0.00034, 0.01, 0.25, 0.5, 0.731, 0.95, 0.99999)
TRIALS = (1, 2, 10, 40, 200, 5_000, 100_000)


def error_of_share(probability: float, trials: int, kind: agreement.Kind = "equal") -> float:
    """Return the exact probability that a share is refused although it has the predicted probability."""
    hits = np.arange(trials + 1)
    check = share("", probability, 0, trials, kind)
    refused = (hits / trials < check.low) | (hits / trials > check.high)
    return float(stats.binom.pmf(hits[refused], trials, probability).sum())


@pytest.mark.parametrize("kind", only([0], ["equal", "at most", "at least"]))
@pytest.mark.parametrize("trials", only([0], TRIALS))
def test_a_share_errs_as_seldom_as_it_says(trials: int, kind: agreement.Kind) -> None:
    errors = [error_of_share(probability, trials, kind) for probability in PROBABILITIES]
    assert max(errors) <= (RISK if kind == "equal" else RISK / 2)


def test_a_share_is_refused_exactly_outside_its_ends() -> None:
    hits = range(201)
    check = share("", 0.3, 0, 200)
    assert [share("", 0.3, h, 200).holds for h in hits] == [check.low <= h / 200 <= check.high for h in hits]


@contextmanager
def looser(monkeypatch: pytest.MonkeyPatch, risk: float) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(agreement, "RISK", risk)
        yield


@pytest.mark.parametrize("risk", [1e-4, 1e-7])
def test_ends_that_are_too_near_are_found_out(monkeypatch: pytest.MonkeyPatch, risk: float) -> None:
    """Planted bug: the ends of a larger risk. The exact error then exceeds what is promised."""
    with looser(monkeypatch, risk):
        assert error_of_share(0.25, 5_000) > RISK


def test_a_bound_of_only_one_side_is_half_as_risky(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is no looser than Chernoff's: with a hundred times the risk it errs visibly more."""
    tight = error_of_share(0.5, 5_000, "at most")
    with looser(monkeypatch, 100 * RISK):
        assert error_of_share(0.5, 5_000, "at most") > 10 * tight > 0


@pytest.mark.parametrize(("probability", "observed"), [(0.25, 0.28), (0.25, 0.22), (0.5, 0.53), (0.01, 0.02)])
def test_a_share_that_is_off_is_refused(probability: float, observed: float) -> None:
    trials = 100_000
    assert not share("", probability, round(observed * trials), trials).holds


def test_a_bound_looks_at_one_side_only() -> None:
    assert share("", 0.5, 0, 1_000, "at most").holds
    assert not share("", 0.5, 1_000, 1_000, "at most").holds
    assert share("", 0.5, 1_000, 1_000, "at least").holds
    assert not share("", 0.5, 0, 1_000, "at least").holds


@pytest.mark.parametrize(("probability", "right", "wrong"), [(0.0, 0, 1), (1.0, 1_000, 999)])
def test_what_never_or_always_happens_leaves_no_room(probability: float, right: int, wrong: int) -> None:
    assert share("", probability, right, 1_000).holds
    assert not share("", probability, wrong, 1_000).holds


def test_means_are_refused_beyond_the_stated_deviations_of_a_normal_law() -> None:
    beyond = mpmath.erfc(mpmath.mpf(agreement.DEVIATIONS) / mpmath.sqrt(2))
    assert beyond < RISK
    inside, outside = 3 + 6.1 * 2 / 10, 3 + 6.3 * 2 / 10
    assert mean("", 3, inside, 2, 100).holds
    assert not mean("", 3, outside, 2, 100).holds
    assert not mean("", 3, 3 - 6.3 * 2 / 10, 2, 100).holds
    assert mean("", 3, 0, 2, 100, "at most").holds
    assert not mean("", 3, outside, 2, 100, "at most").holds
    assert not mean("", 3, 0, 2, 100, "at least").holds


def test_fewer_deviations_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: five deviations, which one run in two million exceeds."""
    monkeypatch.setattr(agreement, "DEVIATIONS", 5.0)
    assert mpmath.erfc(mpmath.mpf(agreement.DEVIATIONS) / mpmath.sqrt(2)) > RISK


@pytest.mark.parametrize("rate", [1e-6, 1e-4, 1e-2])
def test_means_of_rare_events_err_as_seldom_as_is_said(rate: float) -> None:
    """The mean of coins that are hardly ever 1, by their exact law: the normal law's ends are too near for these."""
    trials = 1_000
    chances = [float(mpmath.binomial(trials, m) * rate**m * (1 - rate) ** (trials - m)) for m in range(60)]

    def errs(largest: float | None) -> float:
        check = agreement.mean("", rate, 0.0, (rate * (1 - rate)) ** 0.5, trials, largest=largest)
        return sum(chance for m, chance in enumerate(chances) if not check.low <= m / trials <= check.high)

    assert errs(1.0) <= agreement.RISK < errs(None)


def test_what_is_computed_is_compared_within_its_rounding() -> None:
    assert exactly("", 0.39, 0.3934, 0.005).holds
    assert not exactly("", 0.39, 0.3951, 0.005).holds
    assert not exactly("", 1.0, 1.0 + 1e-8).holds
    assert bounded("", 0.73, 0.7, "at most").holds
    assert not bounded("", 0.73, 0.74, "at most").holds
    assert bounded("", 0.73, 0.74, "at least").holds
    assert not bounded("", 0.73, 0.72, "at least").holds


def test_nothing_agrees_with_a_figure_that_is_no_number() -> None:
    assert not exactly("", 1.0, float("nan")).holds
    assert not bounded("", 1.0, float("nan"), "at most").holds
