"""A wallet against every adaptive strategy on small ones, exactly, and the twins that some strategy gains from."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from statistics import NormalDist
from typing import final

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import DiscreteLaplace, Sensitivity
from lapwing.privacy.bounded_range import bounded_range_amount
from lapwing.privacy.combined_pairs import MixturePair, SubsampledPair
from lapwing.privacy.continuous_laplace import laplace_loss
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.filters import Account, charge, fits
from lapwing.privacy.loss_distribution import compose
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.pairs import (
    ApproximatePair,
    BoundedRangePair,
    Direction,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
)
from lapwing.privacy.wallet import Slot, Wallet, WalletGranted, WalletRefused
from tests.support.docs.pages import DOCS
from tests.support.effort import one_in, only
from tests.support.privacy import exact_composition as exact

NOW = "data of Monday"
HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
UNIT = GaussianDP(HALF)
"""What one step of a Gaussian account is charged."""

Outcomes = tuple[tuple[float, float], ...]
"""One question, as the probabilities p under P and q under Q of each answer."""

Actions = Callable[[Wallet], Iterator[tuple[Outcomes | None, Wallet]]]
"""What can be done next: a question, or None for a change without one, and the wallet after it."""

Reading = Callable[[Wallet], float]


def coins(p: float, q: float) -> Outcomes:
    return (p, q), (1 - p, 1 - q)


def response(epsilon: float) -> Outcomes:
    high = 1 / (1 + math.exp(-epsilon))
    return coins(high, 1 - high)


def together(*questions: Outcomes) -> Outcomes:
    return tuple((math.prod(p for p, _ in each), math.prod(q for _, q in each)) for each in product(*questions))


def bounded_range(eta: float, high: float) -> Outcomes:
    """Coins of which heads have the loss `high`, and tails high − η."""
    low = math.exp(high - eta)
    q = (1 - low) / (math.exp(high) - low)
    return coins(math.exp(high) * q, q)


def discrete_laplace(scale: float, moved: int) -> Outcomes:
    """Noise P(x) ∝ e^(−|x|/scale) around `moved` and around 0, all beyond both centres taken together."""
    r = math.exp(-1 / scale)

    def mass(x: int) -> float:
        return (1 - r) / (1 + r) * r ** abs(x)

    tail, end = r**moved / (1 + r), 1 / (1 + r)
    return (end, tail), *((mass(x), mass(moved - x)) for x in range(1, moved)), (tail, end)


@cache
def seen_coarsely(mu: float, loss: float) -> Outcomes:
    """N(μ, 1) against N(0, 1), of which it is told only when it is far from the middle, and on which side.

    What is far is such that to be told so has the loss ±`loss`: all losses are then multiples of 0.1.
    """
    normal, near, far = NormalDist(), 0.0, 10.0
    for _ in range(60):
        cut = (near + far) / 2
        high, low = normal.cdf(mu / 2 - cut), normal.cdf(-mu / 2 - cut)
        near, far = (cut, far) if high < low * math.exp(loss) else (near, cut)
    low = high * math.exp(-loss)
    return (high, low), (1 - high - low, 1 - high - low), (low, high)


def sampled(rate: float, question: Outcomes) -> Outcomes:
    return tuple(((1 - rate) * q + rate * p, q) for p, q in question)


def swapped(question: Outcomes) -> Outcomes:
    return tuple((q, p) for p, q in question)


@final
@dataclass(frozen=True)
class Menu:
    """The questions that a strategy may put to each slot, and how many units it may charge for a Gaussian one."""

    slots: dict[str, tuple[Outcomes, ...]]
    most: int = 0
    direction: Direction = "remove"

    def actions(self, wallet: Wallet) -> Iterator[tuple[Outcomes | None, Wallet]]:
        for name, questions in self.slots.items():
            decision = wallet.use(name, data_version=NOW)
            if isinstance(decision, WalletGranted):
                for question in questions:
                    yield question if self.direction == "remove" else swapped(question), decision.wallet
        for units in range(1, self.most + 1):
            decision = wallet.charge(GaussianDP.from_amount(units * UNIT.amount), data_version=NOW)
            if isinstance(decision, WalletGranted):
                mu = math.sqrt(units * UNIT.amount)
                for loss in (0.7, 1.0, 1.6):
                    yield seen_coarsely(mu, loss), decision.wallet


def best(wallet: Wallet, actions: Actions, reading: Reading) -> float:
    """The most that P(E) − E_Q[e^U; E] can be, over all strategies and events E, for a reading U at the end.

    To end at a privacy loss l under the reading u, and to count that in E, is worth 1 − e^(u − l) under P.
    """
    numbers: dict[Wallet, int] = {}
    readings: list[float] = []
    moves: list[list[tuple[Outcomes, int]]] = []

    def number_of(wallet: Wallet) -> int:
        """Number the wallets, with what each reads and what leads where: there are few, and to hash one takes long."""
        if wallet not in numbers:
            number = numbers[wallet] = len(numbers)
            readings.append(reading(wallet))
            moves.append([])
            moves[number] = [
                (tuple((p, math.log(p / q)) for p, q in question or ((1.0, 1.0),)), number_of(after))
                for question, after in actions(wallet)
            ]
        return numbers[wallet]

    values: dict[tuple[int, float], float] = {}

    def value(number: int, loss: float) -> float:
        place = number, round(loss, 9)
        if place not in values:
            most = -math.expm1(min(0.0, readings[number] - loss))
            for answers, after in moves[number]:
                most = max(most, sum(p * value(after, loss + own) for p, own in answers))
            values[place] = most
        return values[place]

    return value(number_of(wallet), 0.0)


def check(wallet: Wallet, actions: Actions, delta: Fraction, reading: Reading | None = None) -> float:
    stated = wallet.to_epsilon(delta).upper
    found = best(wallet, actions, reading or (lambda _: stated))
    assert found <= delta + Fraction(1, 10**8)
    return found


def opened(*slots: Slot, units: int = 0) -> Wallet:
    return Wallet.opened(slots, data_version=NOW, budget=GaussianDP.from_amount(units * UNIT.amount))


def mixed() -> tuple[Wallet, Menu]:
    wallet = opened(
        Slot(name="response", pair=RandomizedResponsePair(HALF), count=2),
        Slot(name="choice", pair=BoundedRangePair(Fraction(1)), count=2),
        Slot(name="count", pair=DiscreteLaplacePair(Fraction(2), 2)),
        units=3,
    )
    menu = Menu(
        {
            "response": (response(0.5), response(0.3)),
            "choice": tuple(bounded_range(1.0, high) for high in (0.1, 0.3, 0.5, 0.7, 0.9)),
            "count": (
                discrete_laplace(2, 2),
                discrete_laplace(2, 1),
                together(discrete_laplace(2, 1), discrete_laplace(2, 1)),
            ),
        },
        most=3,
    )
    return wallet, menu


@pytest.mark.parametrize("delta", only([1], ["0.001", "0.02", "0.2"]))
def test_no_strategy_gains_more_than_is_stated(delta: str) -> None:
    wallet, menu = mixed()
    found = check(wallet, menu.actions, Fraction(delta))
    assert found > 0.3 * float(Fraction(delta))


@pytest.mark.parametrize("delta", ["0.01", "0.1"])
def test_what_is_stated_can_be_reached(delta: str) -> None:
    """With slots that have a worst question, by always asking that."""
    wallet = opened(
        Slot(name="response", pair=RandomizedResponsePair(HALF), count=4),
        Slot(name="count", pair=DiscreteLaplacePair(Fraction(2), 3), count=2),
    )
    menu = Menu({"response": (response(0.5), response(0.2)), "count": (discrete_laplace(2, 3), discrete_laplace(2, 1))})
    assert check(wallet, menu.actions, Fraction(delta)) == pytest.approx(float(Fraction(delta)), rel=1e-3)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_slots_with_two_directions(direction: Direction) -> None:
    pair = SubsampledPair(RandomizedResponsePair(Fraction(1)), Fraction(1, 4))
    wallet = opened(
        Slot(name="sample", pair=pair, count=3), Slot(name="response", pair=RandomizedResponsePair(HALF), count=2)
    )
    menu = Menu(
        {"sample": tuple(sampled(0.25, response(e)) for e in (1.0, 0.6)), "response": (response(0.5),)},
        direction=direction,
    )
    check(wallet, menu.actions, Fraction(1, 50))


SMALL, LARGE = RandomizedResponsePair(HALF), RandomizedResponsePair(Fraction(3, 2))
DELTA = Fraction(1, 20)


def exchanging(wallet: Wallet) -> Iterator[tuple[Outcomes | None, Wallet]]:
    """Offer, after an answer, another list of slots that has no larger ε together with what is used."""
    menu = Menu({"small": (response(0.5),), "large": (response(1.5),)})
    yield from menu.actions(wallet)
    if wallet.used == (1, 0) and wallet.slots == TERMS.slots:
        other = (Slot(name="small", pair=SMALL, count=11), Slot(name="large", pair=LARGE))
        twin = replace(wallet, slots=other, used=(1, 1))
        assert compose([(SMALL, 11)]).to_epsilon(DELTA).upper <= wallet.to_epsilon(DELTA).lower
        yield None, twin


TERMS = opened(Slot(name="small", pair=SMALL), Slot(name="large", pair=LARGE, count=2))


def test_twin_with_new_terms_after_an_answer_is_caught() -> None:
    """Ten small questions for two large ones: equally dear beforehand, and worth it after some answers only."""
    menu = Menu({"small": (response(0.5),), "large": (response(1.5),)})
    check(TERMS, menu.actions, DELTA)
    with pytest.raises(AssertionError):
        check(TERMS, exchanging, DELTA)
    stated = TERMS.to_epsilon(DELTA).upper
    assert best(TERMS, exchanging, lambda _: stated) == pytest.approx(1.0926 * float(DELTA), rel=1e-3)


def used_only(delta: Fraction) -> Reading:
    def reading(wallet: Wallet) -> float:
        used = [(slot.pair, used) for slot, used in zip(wallet.slots, wallet.used, strict=True) if used]
        return compose(used).to_epsilon(delta).upper

    return reading


@pytest.mark.long
def test_twin_that_counts_used_slots_only_is_caught() -> None:
    """Who may stop when the answers suit gains half as much again."""
    wallet = opened(Slot(name="response", pair=RandomizedResponsePair(HALF), count=12))
    menu, delta = Menu({"response": (response(0.5),)}), Fraction(1, 100)
    check(wallet, menu.actions, delta)
    with pytest.raises(AssertionError):
        check(wallet, menu.actions, delta, used_only(delta))
    assert best(wallet, menu.actions, used_only(delta)) == pytest.approx(1.499 * float(delta), rel=1e-3)


def test_twin_slots_of_a_greater_sensitivity_are_caught() -> None:
    wallet = opened(Slot(name="count", pair=DiscreteLaplacePair(Fraction(2), 2), count=3))
    check(wallet, Menu({"count": (discrete_laplace(2, 2),)}).actions, TENTH)
    with pytest.raises(AssertionError):
        check(wallet, Menu({"count": (discrete_laplace(2, 3),)}).actions, TENTH)


def test_twin_a_slot_used_twice_is_caught() -> None:
    wallet = opened(Slot(name="response", pair=RandomizedResponsePair(HALF), count=3))
    with pytest.raises(AssertionError):
        check(wallet, Menu({"response": (together(response(0.5), response(0.5)),)}).actions, TENTH)


@pytest.mark.parametrize(
    ("first", "second"), only([1], [("0.3", "0.3"), ("0.9", "0.2"), ("2", "0.01"), ("1.5", "1.1")], many=True)
)
def test_laplace_noise_on_a_vector_is_dominated_by_that_on_one_number(first: str, second: str) -> None:
    """By the formula of docs/theory/wallet.md, against quadrature."""
    a, b = mpf(first), mpf(second)
    x = a + b
    for n in range(12):
        epsilon = x * n / 12
        product_curve = exact.laplaces_delta(epsilon, [a, b])
        rest = x - epsilon - max(mpf(0), abs(a - b) - epsilon)
        assert mp.almosteq(product_curve, 1 - mp.exp((epsilon - x) / 2) * (1 + rest / 4), rel_eps=mpf(10) ** -12)
        assert product_curve < exact.laplace_delta(epsilon, x)


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), only([2], [(1, 1), (2, 1), (5, 2), (4, 4), (7, 1)], many=True))
@pytest.mark.parametrize("rate", one_in(2, ["0.1", "1"]))
def test_discrete_laplace_noise_on_a_vector_is_dominated_by_that_on_one_number(
    first: int, second: int, rate: str
) -> None:
    """By the formula of docs/theory/wallet.md, against sums of all atoms."""
    step = Fraction(rate)
    n, r = first + second, mp.exp(-mpf(rate))
    vector = exact.convolve(exact.discrete_laplace(step, first), exact.discrete_laplace(step, second))
    single = exact.discrete_laplace(step, n)
    for k in range(n // 2 + 1):
        curve, epsilon = exact.lattice_delta(vector, step, (n - 2 * k) * step), (n - 2 * k) * step
        one = exact.lattice_delta(single, step, epsilon)
        assert mp.almosteq(one, 1 - r**k, abs_eps=mpf(10) ** -40)
        said = 1 - r**k * (1 + min(k, first, second) * (1 - r) / (1 + r))
        assert mp.almosteq(curve, said, abs_eps=mpf(10) ** -40)
        assert curve <= one + mpf(10) ** -40


def test_the_guarantee_is_fixed_from_the_start() -> None:
    wallet, _ = mixed()
    before = wallet.guarantee()
    assert before == compose(
        [
            (RandomizedResponsePair(HALF), 2),
            (BoundedRangePair(Fraction(1)), 2),
            (DiscreteLaplacePair(Fraction(2), 2), 1),
            (GaussianPair(Fraction(3, 4)), 1),
        ]
    )
    after = wallet.use("choice", data_version=NOW)
    assert isinstance(after, WalletGranted)
    charged = after.wallet.charge(UNIT, data_version=NOW)
    assert isinstance(charged, WalletGranted)
    assert charged.wallet.guarantee() == before
    assert charged.wallet.to_epsilon(TENTH) == before.to_epsilon(TENTH)
    assert charged.wallet.to_delta(1) == before.to_delta(1)
    assert charged.wallet.left("choice") == 1
    assert charged.wallet.account.spent == UNIT


def test_what_is_spent_is_refused() -> None:
    wallet = opened(Slot(name="response", pair=SMALL, count=2), units=2)
    for _ in range(2):
        used = wallet.use("response", data_version=NOW)
        charged = used.wallet.charge(UNIT, data_version=NOW) if isinstance(used, WalletGranted) else used
        assert isinstance(charged, WalletGranted)
        wallet = charged.wallet
    assert isinstance(wallet.use("response", data_version=NOW), WalletRefused)
    refusal = wallet.charge(GaussianDP(Fraction(1, 10**9)), data_version=NOW)
    assert isinstance(refusal, WalletRefused)
    assert "lacks" in refusal.reason


def test_other_data_are_refused() -> None:
    wallet = opened(Slot(name="response", pair=SMALL), units=1)
    for refusal in (wallet.use("response", data_version="Tuesday"), wallet.charge(UNIT, data_version="Tuesday")):
        assert isinstance(refusal, WalletRefused)
        assert "Tuesday" in refusal.reason


def test_slots_are_bought_before_the_first_answer() -> None:
    wallet = opened(Slot(name="response", pair=SMALL), units=1)
    more = Slot(name="more", pair=LARGE)
    assert wallet.bought(more).left("more") == 1
    used, charged = wallet.use("response", data_version=NOW), wallet.charge(UNIT, data_version=NOW)
    for after in (used, charged):
        assert isinstance(after, WalletGranted)
        assert not after.wallet.untouched
        with pytest.raises(InvalidParameter, match="has answered a query already"):
            after.wallet.bought(more)
    with pytest.raises(InvalidParameter, match="same name"):
        wallet.bought(Slot(name="response", pair=LARGE))


@final
@dataclass(frozen=True)
class OwnPair:
    """A pair of which nothing is known."""

    symmetric = closed = True


@pytest.mark.parametrize(
    "pair",
    one_in(
        2,
        [
            ApproximatePair(HALF, TENTH),
            BoundedRangePair(HALF),
            DiscreteGaussianPair(Fraction(4)),
            DiscreteLaplacePair(Fraction(4)),
            GaussianPair(HALF),
            LaplacePair(HALF),
            RandomizedResponsePair(HALF),
            SubsampledPair(GaussianPair(HALF), TENTH),
            MixturePair(((HALF, GaussianPair(HALF)), (HALF, LaplacePair(HALF)))),
        ],
    ),
    ids=lambda pair: type(pair).__name__,
)
def test_pairs_of_slots(pair: Pair) -> None:
    interval = opened(Slot(name="one", pair=pair)).to_epsilon(Fraction(3, 20))
    assert 0 <= interval.lower <= interval.upper


@pytest.mark.parametrize("pair", [OwnPair(), "laplace", MixturePair(((Fraction(1), OwnPair()),))])  # type: ignore[arg-type]
def test_other_pairs_are_refused(pair: Pair) -> None:
    with pytest.raises(InvalidParameter, match="no proof"):
        Slot(name="one", pair=pair)


def test_what_else_is_refused() -> None:
    for arguments in ({"name": ""}, {"count": 0}, {"count": True}, {"count": 1.0}):
        with pytest.raises(InvalidParameter):
            Slot(**{"name": "one", "pair": SMALL, **arguments})  # type: ignore[arg-type]
    wallet = opened(Slot(name="one", pair=SMALL), units=1)
    with pytest.raises(InvalidParameter, match="'one'"):
        wallet.use("two", data_version=NOW)
    with pytest.raises(InvalidParameter, match="do not add or compare"):
        wallet.charge(PureDP(TENTH), data_version=NOW)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="measure gdp"):
        Wallet.opened([], data_version=NOW, budget=PureDP(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="one version"):
        Wallet.opened([], data_version="")
    for used in ((2,), (-1,), ()):
        with pytest.raises(InvalidParameter, match="from 0 to its count"):
            replace(wallet, used=used)


def test_a_loss_distribution_is_no_account() -> None:
    loss = compose([(SMALL, 3)])
    account = Account.opened(GaussianDP(1))
    with pytest.raises(InvalidParameter, match=r"2602\.06756.*GaussianDP.*wallet"):
        Account.opened(loss)  # type: ignore[type-var]
    with pytest.raises(InvalidParameter, match="list fixed in advance"):
        charge(account, loss)  # type: ignore[type-var]
    with pytest.raises(InvalidParameter, match="list fixed in advance"):
        fits(account, loss)  # type: ignore[type-var]


def text(name: str) -> str:
    return " ".join((DOCS / "theory" / name).read_text(encoding="utf-8").split())


def test_the_figures_of_the_page_on_wallets() -> None:
    page, delta = text("wallet.md"), Fraction(1, 10**6)
    choice, alarm, budget = Fraction(1, 5), Fraction(3, 10), GaussianDP(HALF)
    wallet = opened(
        Slot(name="medians", pair=BoundedRangePair(choice), count=20),
        Slot(name="alarms", pair=RandomizedResponsePair(alarm), count=3),
        Slot(name="counts", pair=DiscreteLaplacePair(Fraction(15), 3), count=10),
        units=1,
    )
    assert f" {wallet.to_epsilon(delta).upper:.3f} " in page
    noise = DiscreteLaplace(scale=Fraction(15))
    single: dict[str, Loss] = {"gdp": budget, "zcdp": budget.to_kind("zcdp")}
    for kind, measure in (("gdp", GaussianDP), ("zcdp", ZeroConcentratedDP)):
        total = single[kind] + 20 * measure.from_amount(bounded_range_amount(kind, choice))
        total = total + 3 * PureDP(alarm).to_kind(kind) + 10 * noise.loss(Sensitivity(l1=3, l2_squared=9), kind)
        assert f"{total.to_epsilon(delta=delta):.3f}" in page
    stated, small = TERMS.to_epsilon(DELTA), compose([(SMALL, 11)]).to_epsilon(DELTA)
    assert f"have ε = {stated.upper:.3f} at δ = 0.05; eleven at 0.5 have less, {small.upper + 0.0005:.3f}" in page


ROWS = [line.strip("| ").split(" | ") for line in (DOCS / "theory/loss-distributions.md").read_text().splitlines()]
"""The rows of the page's tables, and other lines as one cell."""


@pytest.mark.parametrize(
    "row", [row for row in ROWS if len(row) == 4 and row[0].startswith("1e-")], ids=lambda row: row[0]
)
def test_the_figures_of_five_hundred_questions(row: list[str]) -> None:
    delta = Fraction(row[0])
    listed = compose([(GaussianPair(TENTH**2), 200), (LaplacePair(TENTH), 200), (RandomizedResponsePair(TENTH), 100)])
    figures = [listed.to_epsilon(delta).upper]
    for kind in ("zcdp", "gdp"):
        laplace = laplace_loss(TENTH, kind)
        total = 200 * GaussianDP(TENTH).to_kind(kind) + 200 * laplace + 100 * PureDP(TENTH).to_kind(kind)
        figures.append(total.to_epsilon(delta=delta))
    assert row[1:] == [f"{figure:.3f}" for figure in figures]


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 3 and row[1] == "1e-6"], ids=lambda row: row[0])
def test_the_figures_to_check(row: list[str]) -> None:
    count, _, what = row[0].replace(",", "").partition(" ")
    pair: Pair
    if what == "Laplace at 0.1":
        pair = LaplacePair(TENTH)
    else:
        pair = RandomizedResponsePair(TENTH) if what.startswith("randomized") else BoundedRangePair(TENTH)
    found = compose([(pair, int(count))]).to_epsilon(Fraction(row[1]))
    assert found.lower - 1e-4 <= float(row[2]) <= found.upper + 1e-4
