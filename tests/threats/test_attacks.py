"""T27–T35: what attackers compute from many answers, and what auditors cannot see, stays within what was promised."""

import itertools
import math
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray

import lapwing as lw
from lapwing.exact.entropy import SYSTEM
from lapwing.ledger import transitions
from lapwing.mechanisms import AboveThreshold, DiscreteLaplace
from lapwing.opening import open_session
from lapwing.release import stored
from tests.mechanisms.test_sparse_vector import check_neighbours, law_of_run, stated, true_law
from tests.support.enumeration import law_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.release.tables import protected, visits

Integers = NDArray[np.int64]
COUNT = "SELECT COUNT(*) AS n FROM visits"
CHANCE = 1e-9
"""Of a healthy test failing: the slack of every frequency is Hoeffding's for it."""


def slack(trials: int) -> float:
    return math.sqrt(math.log(2 / CHANCE) / (2 * trials))


def advantage(epsilon: float) -> float:
    """Return the most by which two worlds can be told apart: (e^ε − 1)/(e^ε + 1)."""
    return math.tanh(epsilon / 2)


def noise(epsilon: float, sensitivity: int = 1) -> DiscreteLaplace:
    return DiscreteLaplace(scale=sensitivity / Fraction(epsilon).limit_denominator(10**6))


# ---- T27 -------------------------------------------------------------------------------------------------------------


def averaged(path: Path, repeats: int = 100) -> None:
    """The same question any number of times is one answer; other words are other charges, and the budget ends them."""
    with protected(path, epsilon=1, delta=0) as session:
        same = {session.sql(COUNT, epsilon=Fraction(1, 10)).rows()[0]["n"] for _ in range(repeats)}
        assert len(same) == 1
        assert session.budget().spent.amount == Fraction(1, 10)
        answers = 0
        for other in range(repeats):
            try:
                session.sql(f"{COUNT} WHERE cost > {-other - 1}", epsilon=Fraction(1, 10))
            except lw.BudgetExhausted:
                break
            answers += 1
        assert answers == 9, "ten answers of a tenth of the budget, whatever the words"


def test_t27_averaging(tmp_path: Path) -> None:
    averaged(visits(tmp_path))


@pytest.mark.parametrize("bug", ["fresh noise", "a budget that forgets"])
def test_t27_twins(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug == "fresh noise":
        monkeypatch.setattr(stored, "stored_answer", lambda *_: None)
    else:
        monkeypatch.setattr(transitions, "paid", lambda state, charge: state)
    with pytest.raises((AssertionError, lw.BudgetExhausted)):
        averaged(visits(tmp_path))


# ---- T28 -------------------------------------------------------------------------------------------------------------

TRIALS = 10_000


def told_apart(first: DiscreteLaplace, second: DiscreteLaplace) -> float:
    """Ask for everybody, and for all but the victim; return how much better than chance the victim's bit is guessed."""
    rights = []
    for bit in (0, 1):
        everybody = first.release(np.full(TRIALS, 1_000 + bit), SYSTEM)
        others = second.release(np.full(TRIALS, 1_000), SYSTEM)
        guesses = (np.asarray(everybody) - np.asarray(others)) >= 1
        rights.append(float(np.mean(guesses == bit)))
    return sum(rights) - 1


def test_t28_differencing() -> None:
    """Two questions of half a price each tell no more than the whole price allows."""
    assert told_apart(noise(0.5), noise(0.5)) <= advantage(1) + 2 * slack(TRIALS)


def test_t28_twin_a_question_that_is_not_charged() -> None:
    """Had the second question been free, its noise would not have been paid from the same price."""
    with pytest.raises(AssertionError):
        assert told_apart(noise(2), noise(100)) <= advantage(1) + 2 * slack(TRIALS)


# ---- T29 -------------------------------------------------------------------------------------------------------------


def of_its_own(sessions: list[lw.Session], questions: int = 8) -> None:
    """Noise is no function of the question: of two ledgers on the same data the answers are others.

    At scale 20 two draws are equal with a probability below 1/40, so all 8 of them with less than 10⁻¹².
    """
    texts = [f"{COUNT} WHERE cost > {-number - 1}" for number in range(questions)]
    first, second = (
        [session.sql(text, epsilon=Fraction(1, 10)).rows()[0]["n"] for text in texts] for session in sessions
    )
    assert first != second


def two(folder: Path, **entropy: Any) -> list[lw.Session]:
    sessions = []
    for name in ("one", "other"):
        (folder / name).mkdir()
        with protected(visits(folder / name), epsilon=10, delta=0) as session:
            catalog = session.catalog
        sessions.append(open_session(catalog, **{key: make() for key, make in entropy.items()}))
    return sessions


def test_t29_sticky_noise(tmp_path: Path) -> None:
    with ExitStack() as stack:
        of_its_own([stack.enter_context(session) for session in two(tmp_path)])


def test_t29_twin_noise_that_sticks_to_the_question(tmp_path: Path) -> None:
    with ExitStack() as stack:
        sessions = two(tmp_path, entropy=lambda: StreamEntropy("sticky"))
        for session in sessions:
            stack.enter_context(session)
        with pytest.raises(AssertionError):
            of_its_own(sessions)


# ---- T30 -------------------------------------------------------------------------------------------------------------

BITS, SUBSETS, RUNS = 64, 512, 40


def reconstructed(mechanism: DiscreteLaplace) -> float:
    """Ask for sums of secret bits over random groups, solve, and return the share of bits that comes out right."""
    generator = np.random.default_rng(30)
    right = []
    for _ in range(RUNS):
        secret = generator.integers(0, 2, BITS)
        groups = generator.integers(0, 2, (SUBSETS, BITS))
        answers = np.asarray(mechanism.release(groups @ secret, SYSTEM), dtype=float)
        solved = np.linalg.lstsq(groups.astype(float), answers, rcond=None)[0]
        right.append(np.mean((solved > 0.5) == secret))
    return float(np.mean(right))


def test_t30_reconstruction() -> None:
    """A bit is one person's, so that nobody guesses it more often than ε = 1 for all questions together allows."""
    most = (1 + advantage(1)) / 2 + slack(RUNS * BITS)
    assert reconstructed(noise(1 / SUBSETS)) <= most


def test_t30_twin_a_budget_for_each_question() -> None:
    with pytest.raises(AssertionError):
        assert reconstructed(noise(1)) <= (1 + advantage(1)) / 2 + slack(RUNS * BITS)


# ---- T31 -------------------------------------------------------------------------------------------------------------

MEMBERS, ATTRIBUTES, ROUNDS = 20, 400, 50


def traced(mechanism: DiscreteLaplace) -> float:
    """Publish noisy counts of many attributes, and return by how much members look more like them than others do.

    That is the advantage of the best threshold on the inner product, over members and as many others.
    """
    generator = np.random.default_rng(31)
    inside, outside = [], []
    for _ in range(ROUNDS):
        people = generator.integers(0, 2, (2 * MEMBERS, ATTRIBUTES))
        counts = np.asarray(mechanism.release(people[:MEMBERS].sum(axis=0), SYSTEM), dtype=float)
        scores = (people - 0.5) @ (counts - MEMBERS / 2)
        inside.append(scores[:MEMBERS])
        outside.append(scores[MEMBERS:])
    yes, no = np.concatenate(inside), np.concatenate(outside)
    return max(float(np.mean(yes >= level) - np.mean(no >= level)) for level in np.quantile(yes, np.linspace(0, 1, 21)))


def test_t31_tracing() -> None:
    assert traced(noise(1 / ATTRIBUTES)) <= advantage(1) + 2 * slack(ROUNDS * MEMBERS)


def test_t31_twin_a_budget_for_each_attribute() -> None:
    with pytest.raises(AssertionError):
        assert traced(noise(1)) <= advantage(1) + 2 * slack(ROUNDS * MEMBERS)


# ---- T32 -------------------------------------------------------------------------------------------------------------


def pooled(sessions: list[lw.Session], cap: Fraction) -> None:
    """Let several people ask until nobody is answered, and add up what they hold together."""
    held = Fraction(0)
    for person, session in enumerate(sessions):
        for number in itertools.count():
            try:
                answer = session.sql(f"{COUNT} WHERE cost > {-person * 100 - number - 1}", epsilon=Fraction(1, 4))
            except lw.BudgetExhausted:
                break
            held += answer.cost.amount
    assert held == cap


def test_t32_collusion(tmp_path: Path) -> None:
    """However many pool what they were told: together they hold what one could have bought."""
    with protected(visits(tmp_path), epsilon=1, delta=0) as session:
        pooled([session.acting_for(name) for name in ("alice", "bob", "mallory")], Fraction(1))


def test_t32_twin_a_budget_for_each_analyst(tmp_path: Path) -> None:
    with ExitStack() as stack:
        each = []
        for name in ("alice", "bob"):
            (tmp_path / name).mkdir()
            each.append(stack.enter_context(protected(visits(tmp_path / name), epsilon=1, delta=0)))
        with pytest.raises(AssertionError):
            pooled(each, Fraction(1))


# ---- T33 -------------------------------------------------------------------------------------------------------------

SAMPLE, VARIABLES = 2_000, 8_000


def overfitted(mechanism: DiscreteLaplace | None) -> float:
    """Choose variables by how they agree with a label that is pure chance; return how well they seem to predict it.

    The label is a coin, so that in the population nothing predicts better than one half.
    """
    generator = np.random.default_rng(33)
    label = generator.integers(0, 2, SAMPLE, dtype=np.int8)
    variables = generator.integers(0, 2, (SAMPLE, VARIABLES), dtype=np.int8)
    agreeing = (variables == label[:, None]).sum(axis=0)
    seen = agreeing if mechanism is None else np.asarray(mechanism.release(agreeing, SYSTEM))
    kept = np.asarray(seen) > SAMPLE / 2
    votes = variables[:, kept].mean(axis=1) if kept.any() else np.full(SAMPLE, 0.5)
    return float(np.mean((votes > 0.5) == label))


def test_t33_false_discovery() -> None:
    """Under ε for all answers, what is found holds in the population but for e^ε − 1 in the mean."""
    epsilon = 0.1
    assert overfitted(noise(epsilon / VARIABLES)) <= 0.5 + math.expm1(epsilon) + slack(SAMPLE)


def test_t33_twin_a_sample_that_is_used_again_and_again() -> None:
    with pytest.raises(AssertionError):
        assert overfitted(None) <= 0.5 + math.expm1(0.1) + slack(SAMPLE)


# ---- T34 -------------------------------------------------------------------------------------------------------------


def test_t34_sparse_vector() -> None:
    """The exact law of every run is within the price that is charged, for every neighbour, and attains it."""
    check_neighbours(true_law, stated)


@pytest.mark.parametrize("bug", ["no noise on the answers", "no cap"])
def test_t34_twins_of_versions_that_are_not_private(bug: str) -> None:
    def wrong(mechanism: AboveThreshold, answers: tuple[int, ...]) -> dict[Any, mpf]:
        if bug == "no cap":
            return law_of_run(mechanism, answers, cap=3)
        return law_of_run(mechanism, answers, noisy=False)

    with pytest.raises(AssertionError):
        check_neighbours(wrong, stated)


# ---- T35 -------------------------------------------------------------------------------------------------------------

RARE = Fraction(1, 10**7)


def exactly_within(law: Callable[[int], dict[Any, mpf]], loss: Any) -> None:
    """Compare whole laws, not draws: an event of one in ten million is seen as well as any other."""
    delta = mpf(loss.delta.numerator) / loss.delta.denominator
    growth = mp.exp(mpf(loss.epsilon.numerator) / loss.epsilon.denominator)
    for one, other in itertools.permutations((law(5), law(6))):
        excess = mp.fsum(max(p - growth * other.get(outcome, mpf(0)), mpf(0)) for outcome, p in one.items())
        assert excess <= delta + mpf(10) ** -12


def test_t35_rare_events() -> None:
    """Where a black-box audit of a million draws would see nothing, the enumerated law shows what is there."""
    mechanism = noise(1)
    price = lw.ApproxDP(1, 0)

    def law(value: int) -> dict[Any, mpf]:
        return dict(law_of(lambda entropy: int(mechanism.release(np.array([value]), entropy)[0])))

    exactly_within(law, price)

    def leaking(value: int) -> dict[Any, mpf]:
        """With a probability of one in ten million, the secret itself."""
        rare = mpf(RARE.numerator) / RARE.denominator
        return {outcome: (1 - rare) * p for outcome, p in law(value).items()} | {("secret", value): rare}

    with pytest.raises(AssertionError):
        exactly_within(leaking, price)
