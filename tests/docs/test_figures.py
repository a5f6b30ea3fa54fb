"""The figures in the theory pages are what the code computes."""

import re
from fractions import Fraction
from math import ceil
from statistics import NormalDist

import pytest
from mpmath import exp, log, mpf, ncdf

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.cli.figures import margin
from lapwing.datasets import rand_hie_catalog
from lapwing.ledger import events
from lapwing.ledger.faults import most_bits
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian, Sensitivity
from lapwing.mechanisms.merged_gaussian import sharpened
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.odometers import Odometer
from lapwing.privacy.plans import choices
from lapwing.query.bind.bind import bind
from tests.support.docs.pages import DOCS
from tests.support.effort import one_in

EPSILON, DELTA = Fraction(3), Fraction(1, 10**6)
CONFIDENCE = Fraction(95, 100)
FIVE_ROWS = Sensitivity(l1=5, l2_squared=25)
PEOPLE = Sensitivity(l1=5, l2_squared=5)


def text(name: str) -> str:
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


def table(name: str, heading: str) -> list[list[str]]:
    """Return the cells of the table whose header line begins as given."""
    lines = (DOCS / name).read_text(encoding="utf-8").split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith(heading))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def many(kind: str, epsilon: Fraction) -> int:
    budget = loss_for(kind, EPSILON, DELTA)
    return fits(Account.opened(budget), loss_for(kind, epsilon, DELTA))


def half_width(kind: str, questions: int) -> int:
    budget = loss_for(kind, EPSILON, DELTA)
    each = type(budget).from_amount(budget.amount / questions)
    mechanism = DiscreteLaplace if kind == "pure" else RoundedGaussian
    return mechanism.for_loss(each, FIVE_ROWS).half_width(CONFIDENCE)


@pytest.mark.parametrize("row", table("theory/measures.md", "| ε | μ |"), ids=lambda row: f"epsilon {row[0]}")
def test_prices(row: list[str]) -> None:
    epsilon = Fraction(row[0])
    loss = loss_for("gdp", epsilon, DELTA)
    assert isinstance(loss, lw.GaussianDP)
    assert row[1:] == [
        f"{loss.mu:.5f}",
        f"{float(loss.amount):.6f}",
        f"{loss.mu / float(epsilon):.3f}",
        str(many("gdp", epsilon)),
        str(many("pure", epsilon)),
    ]


@pytest.mark.parametrize(
    "row", one_in(3, table("theory/measures.md", "| threshold")), ids=lambda row: f"above {row[0]}"
)
def test_a_threshold_after_gaussian_noise_may_need_a_larger_tau(row: list[str]) -> None:
    """The least τ² of two outcomes, by trying every λ; and that their Rényi divergences stay those of ½-zCDP."""
    half, threshold = mpf(1) / 2, mpf(row[0])
    above = [ncdf(half - threshold), ncdf(-half - threshold)]
    found = []
    for p, q in (above, reversed(above)):
        loss = (log(p / q), log((1 - p) / (1 - q)))
        mean = p * loss[0] + (1 - p) * loss[1]
        found += [
            2 * log(p * exp(rate * (loss[0] - mean)) + (1 - p) * exp(rate * (loss[1] - mean))) / rate**2
            for rate in (mpf(k) / 20 for k in range(-400, 401) if k)
        ]
        for order in (mpf(3) / 2, mpf(2), mpf(8), mpf(64)):
            moment = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
            assert log(moment) / (order - 1) <= order / 2
    assert row[1] == f"{float(max(found)):.3f}"


def test_how_many_questions_fit() -> None:
    assert [[price, str(many("gdp", Fraction(price)))] for price, _ in table("how-to/spend-a-budget.md", "| cost")] == (
        table("how-to/spend-a-budget.md", "| cost")
    )
    half = loss_for("gdp", Fraction(1, 2), DELTA)
    together, beyond = 27 * half, 28 * half
    assert f"27 × 0.015402 = {float(together.amount):.6f}" in text("theory/measures.md")
    assert f"a 28th would make {float(beyond.amount):.6f}" in text("theory/measures.md")
    assert f"({together.to_epsilon(delta=DELTA) + 0.0005:.3f}, 1e-6)-DP" in text("theory/measures.md")
    assert many("zcdp", Fraction(1, 2)) == 27


@pytest.mark.parametrize("row", table("theory/noise.md", "| k |"), ids=lambda row: f"{row[0]} questions")
def test_half_widths(row: list[str]) -> None:
    assert row[1:] == [f"±{half_width(kind, int(row[0]))}" for kind in ("pure", "gdp", "zcdp")]


def test_a_pure_ledger_is_better_for_fewer_than_nine_questions() -> None:
    assert all(half_width("pure", k) < half_width("gdp", k) for k in range(1, 9))
    assert all(half_width("pure", k) >= half_width("gdp", k) for k in range(9, 40))


def test_zcdp_needs_more_noise() -> None:
    rho, mu_squared = loss_for("zcdp", EPSILON, DELTA).amount, loss_for("gdp", EPSILON, DELTA).amount
    assert f"{100 * (float(mu_squared / (2 * rho)) ** 0.5 - 1):.1f} % more noise" in text("theory/noise.md")


@pytest.mark.parametrize("row", table("theory/guarantee.md", "| wrong"), ids=lambda row: row[0])
def test_what_an_attacker_can_tell(row: list[str]) -> None:
    loss, normal = loss_for("gdp", EPSILON, DELTA), NormalDist()
    alarms = float(row[0].removesuffix(" %")) / 100
    assert row[1] == f"{tenth_up(100 * normal.cdf(normal.inv_cdf(alarms) + float(loss.amount) ** 0.5))} %"


def test_a_family_of_four() -> None:
    loss = loss_for("gdp", EPSILON, DELTA).for_group(4)
    assert isinstance(loss, lw.GaussianDP)
    assert f"μ = 4 × 0.6477 = {loss.mu:.2f}" in text("theory/measures.md")
    for name in ("theory/measures.md", "limitations.md"):
        assert f"ε = {loss.to_epsilon(delta=DELTA):.2f}" in text(name)


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (RoundedGaussian(sigma=Fraction(10)), r"σ = 10 has h = (\d+) at 95 %, and covers in ([\d.]+) %"),
        (DiscreteLaplace(scale=Fraction(10)), r"scale 10 has h = (\d+), and covers in ([\d.]+) %"),
    ],
    ids=["Gaussian", "Laplace"],
)
def test_coverage(mechanism: RoundedGaussian | DiscreteLaplace, said: str) -> None:
    found = re.search(said, text("theory/intervals.md"))
    assert found
    h = mechanism.half_width(CONFIDENCE)
    assert found.groups() == (str(h), f"{100 * float(mechanism.coverage(h).lower):.2f}")


def test_half_a_budget_in_epsilon() -> None:
    budget = loss_for("gdp", EPSILON, DELTA)
    half = type(budget).from_amount(budget.amount / 2)
    spent = half.to_epsilon(delta=DELTA)
    page = text("how-to/spend-a-budget.md")
    assert f"ε spent is {spent:.2f}, and ε remaining is {spent:.2f} too: {2 * spent:.2f} together" in page
    assert f"the odometer reads {Odometer.up_to(budget, DELTA).reading(half).epsilon:.2f}." in page


@pytest.mark.parametrize("questions", [6, 40])
def test_advice_on_the_measure(questions: int) -> None:
    advised = choices(questions, 5, EPSILON, DELTA)
    page = text("how-to/protect-a-table.md").split(f"{questions} queries, each", 1)[1]
    for kind in ("pure", "gdp", "zcdp"):
        width = next(choice.half_width for choice in advised if choice.kind == kind)
        assert re.search(rf"{kind} epsilon 3, delta \S+ \w+ {re.escape(margin(float(width)))} ", page)


@pytest.mark.parametrize(
    ("aggregate", "count"),
    [("AVG(income)", 2), ("VAR_POP(income)", 3), ("COVAR_SAMP(income, age)", 4), ("CORR(income, age)", 6)],
)
def test_how_many_noisy_numbers_an_aggregate_takes(aggregate: str, count: int) -> None:
    measures = bind(f"SELECT {aggregate} AS x FROM rand_hie", load(rand_hie_catalog())).question.measures
    assert len(measures) == count
    assert "A variance is three, a covariance four, a correlation six." in text("reference/sql.md")


def more_for_two(bought: RoundedGaussian, wanted: RoundedGaussian) -> float:
    """Return how many percent a stored answer and what it lacks cost more than the wanted one."""
    further = sharpened(bought, wanted, CONFIDENCE)
    assert further is not None
    first, second, one = (float(noise.loss(PEOPLE, "gdp").amount) for noise in (bought, further[0], wanted))
    return 100 * ((first + second) / one - 1)


def test_what_a_sharper_answer_costs_in_all() -> None:
    for half_width, most in ((35, 9.05), (1000, 1)):
        wanted = RoundedGaussian.for_half_width(half_width, CONFIDENCE)
        assert most / 2 - 0.4 < more_for_two(RoundedGaussian(sigma=2 * wanted.sigma), wanted) < most
    assert "At ±35 the two answers cost 9 % more than one at most, at ±1000 less than 1 %" in text(
        "theory/refinement.md"
    )
    bought, wanted = (
        RoundedGaussian.for_loss(loss_for("gdp", Fraction(epsilon), DELTA), PEOPLE) for epsilon in ("0.3", "0.5")
    )
    shown = f"Here, with ±{wanted.half_width(CONFIDENCE)}, it is {more_for_two(bought, wanted):.0f} percent"
    assert shown in text("how-to/sharpen-and-batch.md")


def test_intervals_of_who_decides_after_looking() -> None:
    normal, edge, steps = NormalDist(), NormalDist().inv_cdf(0.975), 20_000

    def covers(first: float) -> float:
        """Return the chance that the mean's interval covers, given the first error: noise is halved, they correlate."""
        rest = NormalDist(first / 2, 0.75**0.5)
        return rest.cdf(edge) - rest.cdf(-edge)

    def weighed(low: float, high: float) -> float:
        width = (high - low) / steps
        points = (low + (i + 0.5) * width for i in range(steps))
        return sum(normal.pdf(x) * covers(x) * width for x in points)

    assert f"cover in {100 * weighed(-9, edge):.0f} % of cases" in text("theory/refinement.md")
    assert f"just where the first interval misses, in {100 * weighed(-edge, edge):.0f} %" in text(
        "theory/refinement.md"
    )
    assert f"At worst it covers in {100 * weighed(-edge, edge):.0f} % of cases" in text("how-to/sharpen-and-batch.md")


def test_delta_set_aside_for_keys_takes_little() -> None:
    whole, kept = (loss_for("gdp", EPSILON, delta).amount for delta in (DELTA, DELTA * 9 / 10))
    assert kept > whole * 99 / 100
    assert "costs less than a hundredth of the rest" in text("how-to/private-keys.md")


def tenth_up(bits: float) -> str:
    return f"{ceil(10 * bits) / 10:.1f}"


def test_bits_of_faults() -> None:
    deadlines, life = text("theory/deadlines.md"), text("theory/query-life.md")
    for page in (deadlines, text("limitations.md")):
        assert f"{tenth_up(events.most_bits(10_000))} bits of 10,000 queries" in page
    assert f"{tenth_up(events.most_bits(100_000))} of 100,000" in deadlines
    assert f"the bound would be {tenth_up(events.most_bits(10_000, 3))} bits" in deadlines
    assert f"about {most_bits(100):.0f} bits where n is 100" in life
