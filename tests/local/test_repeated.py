"""Fresh noise again and again: the sum, what is tight, and how soon the majority is the answer."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.local import BinaryResponse, over_days, repeated_reports
from tests.support.privacy.oracle import real


@pytest.mark.parametrize(("reports", "recovered"), [(21, "0.9885"), (101, "0.9999996")])
def test_the_majority_is_the_answer(reports: int, recovered: str) -> None:
    found = repeated_reports(1, reports).recovered
    assert f"{found:.{len(recovered) - 2}f}" == recovered


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("reports", [1, 2, 3, 20, 21, 400])
def test_how_often_it_is_not_is_exact(epsilon: Fraction, reports: int) -> None:
    p = mp.exp(real(epsilon)) / (1 + mp.exp(real(epsilon)))
    terms = [comb(reports, k) * p**k * (1 - p) ** (reports - k) for k in range(reports // 2 + 1)]
    true = mp.fsum(terms) - (terms[-1] / 2 if reports % 2 == 0 else 0)
    found = mpf(repeated_reports(epsilon, reports).mistaken)
    assert found >= true * (1 - mpf("1e-8"))
    assert found <= max(true * (1 + mpf("1e-8")), mpf("1e-40"))
    assert abs(mp.fsum(terms) / true - 1) > mpf("1e-8") or reports % 2  # ties are no majority


def test_no_guess_is_better() -> None:
    """Of all 2^8 ways to guess from three reports none is right more often, for both answers on average."""
    p = BinaryResponse.for_epsilon(1).rates(1).p
    runs = list(product((0, 1), repeat=3))
    chances = {run: [p ** run.count(v) * (1 - p) ** (3 - run.count(v)) for v in (0, 1)] for run in runs}
    best = max(
        sum((chances[run][guess] for run, guess in zip(runs, guesses, strict=True)), Fraction(0)) / 2
        for guesses in product((0, 1), repeat=8)
    )
    assert float(best) == pytest.approx(repeated_reports(1, 3).recovered, rel=1e-9)


def lost_by(reports: int) -> mpf:
    """The loss of the worst run of reports at ε = 2 each, from the probabilities of all runs."""
    matrix = BinaryResponse.for_epsilon(2).transition_matrix()
    laws = [
        [mp.fprod(real(row[report]) for report in run) for run in product((0, 1), repeat=reports)]
        for row in matrix.rows
    ]
    return max(abs(mp.log(a / b)) for a, b in zip(*laws, strict=True))


@pytest.mark.parametrize("reports", [1, 2, 4])
def test_the_sum_is_attained(reports: int) -> None:
    """By a run of equal reports, so that no smaller ε holds: a limit by day says nothing about two days."""
    worst = lost_by(reports)
    stated = repeated_reports(2, reports).epsilon
    assert stated == 2 * reports
    assert 0 <= real(stated) - worst < mpf("1e-9") * reports
    assert reports == 1 or worst > 2 * reports - 1


@pytest.mark.parametrize("reports", [2, 4])
def test_twin_a_report_that_is_not_counted_is_caught(reports: int) -> None:
    assert real(repeated_reports(2, reports - 1).epsilon) < lost_by(reports) - 1


@pytest.mark.parametrize(("epsilon", "reports"), [(1, 5), (1, 40), (Fraction(1, 2), 101), (4, 3)])
def test_tight_is_the_least_epsilon(epsilon: Fraction, reports: int) -> None:
    """δ at an ε is Σ max(0, P − e^ε·Q) over the number of agreeing reports."""
    delta = mpf("1e-6")
    e = real(Fraction(epsilon))
    p = mp.exp(e) / (1 + mp.exp(e))

    def delta_at(total: mpf) -> mpf:
        gap = [
            comb(reports, k) * (p**k * (1 - p) ** (reports - k) - mp.exp(total) * p ** (reports - k) * (1 - p) ** k)
            for k in range(reports + 1)
        ]
        return mp.fsum(max(term, 0) for term in gap)

    found = repeated_reports(epsilon, reports)
    assert delta_at(mpf(found.tight.upper)) <= delta
    assert delta_at(mpf(found.tight.lower) - mpf("1e-9")) >= delta
    assert delta_at(mpf(found.tight.upper) * mpf("0.99")) > delta
    assert found.tight.upper <= float(found.epsilon)
    assert found.tight.upper <= found.concentrated
    assert found.concentrated == pytest.approx(
        float(reports * e * mp.tanh(e / 2) + 2 * mp.sqrt(reports * e * mp.tanh(e / 2) * mp.log(1 / delta))), rel=0.25
    )


def test_days_add_up() -> None:
    days = over_days(4, 2, 30)
    assert [day.reports for day in days] == list(range(2, 61, 2))
    assert days[-1].epsilon == 240
    assert days[-1] == repeated_reports(4, 60)
    assert all(a.mistaken >= b.mistaken and a.tight.upper <= b.tight.upper for a, b in pairwise(days))
    assert days[-1].tight.lower > 239


@pytest.mark.parametrize("given", [(0, 5), (33, 5), (1, 0), (1, 10**6), (1, 5, 0), (1, 5, 1)], ids=str)
def test_what_means_nothing_is_refused(given: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter):
        repeated_reports(*given)
    with pytest.raises(InvalidParameter):
        over_days(1, 1000, 1000)
