"""Sharper answers to questions that were answered before: the law of the mean, what the path costs, what is refused.

The noise of an answer is read off by asking about a table whose true answer is known.
"""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from mpmath import mp, mpf

import lapwing as lw
from lapwing.answer.notes import REFINED, code_of
from lapwing.mechanisms import RoundedGaussian
from lapwing.mechanisms.combined_noise import CombinedNoise
from lapwing.mechanisms.merged_gaussian import MergedGaussian
from lapwing.opening import open_session
from lapwing.privacy.measures import Loss
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.release import refinement, release
from lapwing.release.refinement import Sharpening
from lapwing.release.request import Release
from lapwing.release.stored import Purchase
from lapwing.session import Session
from tests.support.effort import one_in
from tests.support.enumeration import law_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.release.small import BUDGETS, GDP, PURE, catalog, exact, opened, priced, row, shown, write

COUNT = "SELECT COUNT(*) AS n FROM visits"
EVERYBODY = [row(n, plan="ab"[n % 2], age=n % 3, cost=(n % 17) / 2) for n in range(80)]


@pytest.fixture(params=one_in(2, ["gdp", "zcdp"]))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, EVERYBODY, budget=BUDGETS[request.param]) as found:
        yield found


def spent(session: Session) -> Fraction:
    return session.budget().spent.amount


def mechanism(answer: lw.Answer) -> Any:
    (found,) = answer.mechanisms.values()
    return found


# ---- what it costs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", one_in(3, [(0.5, 1), (0.1, 0.2, 0.4, 0.8, 1), (0.3, 0.30001, 1)]))
def test_the_path_costs_what_one_sharp_answer_would(session: Session, steps: tuple[float, ...]) -> None:
    """But for what makes up for the roundings of its parts, which is little where the noise is wide."""
    text = "SELECT SUM(cost) AS s FROM visits"
    for epsilon in steps:
        before, preview = spent(session), session.explain(text, epsilon=epsilon)
        answer = session.sql(text, epsilon=epsilon)
        assert spent(session) - before == answer.cost.rounded_up().amount == preview.cost.rounded_up().amount
        low, high = answer.interval()["s"]
        assert preview.columns[0].half_width is not None
        assert (high - low)[0] / 2 <= preview.columns[0].half_width
    sharp = session.price(steps[-1]).amount
    assert sharp <= spent(session) <= sharp * Fraction(12, 10)


def test_no_path_is_charged_less_than_what_it_released(session: Session) -> None:
    """Every answer of the path is a Gaussian release of its own: their losses add up to at most what is charged."""
    released: list[Loss] = []
    add_noise = release.add_noise

    def recorded(terms: Any, sums: Any, entropy: Any) -> Any:
        kind = session.price(1).kind
        released.extend(term.mechanism.loss(term.candidate.sensitivity, kind) for term in terms)
        return add_noise(terms, sums, entropy)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(release, "add_noise", recorded)
        for epsilon in (0.2, 0.5, 0.9, 1.7):
            text = "SELECT plan, COUNT(*) AS n, SUM(COALESCE(cost, 1)) AS s FROM visits GROUP BY plan"
            session.sql(text, epsilon=epsilon)
    assert len(released) >= 8
    assert sum(loss.amount for loss in released) <= spent(session)


def test_a_difference_that_is_not_the_mechanism_s_own_loss_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: Any = vars(refinement.Refinement)["priced"].fget

    def half(needed: refinement.Refinement) -> Quote:
        found: Quote = own(needed)
        object.__setattr__(found, "loss", type(found.loss).from_amount(found.loss.amount / 2))
        return found

    monkeypatch.setattr(refinement.Refinement, "priced", property(half))
    with opened(tmp_path, EVERYBODY) as session, pytest.raises(AssertionError):
        test_no_path_is_charged_less_than_what_it_released(session)


def test_the_same_again_is_free_at_every_step(session: Session) -> None:
    for epsilon in (0.3, 0.7, 1.9):
        sharpens = session.explain(COUNT, epsilon=epsilon).sharpens
        assert sharpens or epsilon != 0.7
        first = session.sql(COUNT, epsilon=epsilon)
        assert (REFINED in map(code_of, first.notes)) == sharpens
        before = spent(session)
        for text in (COUNT, COUNT.replace("AS n", "AS many"), "SELECT COUNT(*) * 1 AS n FROM visits"):
            again = session.sql(text, epsilon=epsilon)
            assert again.stored
            assert REFINED not in map(code_of, again.notes)
            assert list(shown(again)[0].values()) == list(shown(first)[0].values())
        assert session.sql(COUNT, epsilon=epsilon / 2).rows() == first.rows(), "the sharpest serves all"
        assert spent(session) == before
    assert len(session.budget().history) == 3


@pytest.mark.long
def test_wanted_errors_are_sharpened_as_well(session: Session) -> None:
    session.sql(COUNT, epsilon=0.5)
    for error in (14, 11, 10, 9):
        preview = session.explain(COUNT, error=error)
        answer = session.sql(COUNT, error=error)
        low, high = answer.interval()["n"]
        assert (high - low)[0] / 2 <= error
        assert answer.cost == preview.cost
        assert session.sql(COUNT, error=error).stored
        assert session.explain(COUNT, error=error).stored


@pytest.mark.long
def test_explain_says_that_it_is_a_difference(session: Session) -> None:
    text = "SELECT SUM(cost) AS s FROM visits"
    full = session.explain(text, epsilon=2)
    assert not full.sharpens
    session.sql(text, epsilon=1)
    before = session.budget()
    further = session.explain(text, epsilon=2)
    assert further.sharpens
    assert further.price == further.cost < full.price
    assert further.share_of_remaining < full.share_of_remaining
    assert session.budget() == before, "explaining costs nothing"
    answer = session.sql(text, epsilon=2)
    view = session.budget()
    assert further.share_of_budget == float(answer.cost.amount / view.total.amount)
    assert further.epsilon_before == before.spent.to_epsilon(delta=view.delta - view.delta_keys)
    assert further.epsilon_in_all == view.spent.to_epsilon(delta=view.delta - view.delta_keys)


@pytest.mark.long
def test_a_difference_that_costs_more_than_an_answer_is_not_bought(session: Session) -> None:
    """Where noise is of a few steps, what makes up for the roundings is dearer than to begin anew."""
    session.sql(COUNT, epsilon=20)
    answer = session.sql(COUNT, epsilon=21)
    assert not answer.stored
    assert answer.cost <= session.price(21)


@pytest.mark.long
def test_a_sharper_answer_fits_where_one_afresh_would_not(tmp_path: Path) -> None:
    with opened(tmp_path, EVERYBODY, budget="epsilon = 2\ndelta = 1e-6") as session:
        session.sql("SELECT SUM(cost) AS s FROM visits", epsilon=1.5)
        assert session.price(1.8) > session.budget().remaining
        assert not session.sql("SELECT SUM(cost) AS s FROM visits", epsilon=1.8).stored
        with pytest.raises(lw.BudgetExhausted):
            session.sql("SELECT SUM(age) AS s FROM visits", epsilon=1.8)


# ---- where it is not -------------------------------------------------------------------------------------------------


def test_pure_ledgers_buy_afresh(tmp_path: Path) -> None:
    with opened(tmp_path, EVERYBODY, budget=PURE) as session:
        session.sql(COUNT, epsilon=1)
        assert not session.explain(COUNT, epsilon=2).sharpens
        assert session.sql(COUNT, epsilon=2).cost.amount == 2
        assert spent(session) == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "ask"),
    [
        ("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", {"delta": 1e-5}),
        ("SELECT MEDIAN(age) AS m FROM visits", {}),
    ],
)
def test_private_keys_and_distributions_are_bought_afresh(tmp_path: Path, text: str, ask: dict[str, Any]) -> None:
    with opened(tmp_path, EVERYBODY) as session:
        session.sql(text, epsilon=1, **ask)
        assert not session.explain(text, epsilon=2, **ask).sharpens
        before = spent(session)
        session.sql(text, epsilon=2, **ask)
        assert spent(session) - before >= session.price(2).amount * Fraction(99, 100)


@pytest.mark.long
def test_other_data_are_another_question(tmp_path: Path) -> None:
    with opened(tmp_path, EVERYBODY) as session:
        session.sql(COUNT, epsilon=1)
        write(tmp_path, EVERYBODY[:50])
        session.accept_data()
        assert not session.explain(COUNT, epsilon=2).sharpens
        answer = session.sql(COUNT, epsilon=2)
        assert isinstance(mechanism(answer), RoundedGaussian)
        assert answer.cost == session.price(2)


def test_only_what_is_not_accurate_enough_is_bought(session: Session) -> None:
    """An average after its count: the count's part is served, the sum's is bought, the values are of both."""
    text = "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits"
    first = session.sql(text, error=20)
    bought = dict(zip(first.columns, first.mechanisms.values(), strict=True))
    width = first.interval()["n"][1][0] - shown(first)[0]["n"]
    further = session.sql(text, error=19)
    assert further.interval()["n"][1][0] - shown(further)[0]["n"] <= min(width, 19)
    assert not further.stored
    mixed = session.sql("SELECT AVG(cost) AS a, COUNT(*) AS n FROM visits", epsilon=1)
    sharper = session.sql("SELECT AVG(cost) AS a, COUNT(*) AS n FROM visits", epsilon=2)
    assert sharper.cost < session.price(2)
    assert all(isinstance(law, MergedGaussian) for noise in sharper.mechanisms.values() for law in used(noise))
    assert not mixed.stored
    assert bought


def used(noise: Any) -> tuple[Any, ...]:
    """The noise of the numbers that a number is computed from."""
    return noise.used if isinstance(noise, CombinedNoise) else (noise,)


def one_of_two(tmp_path: Path) -> tuple[Quote, list[Any]]:
    """A stored answer of two numbers, of which one is accurate enough already."""
    write(tmp_path, EVERYBODY)
    found = priced("SELECT COUNT(*) AS n, SUM(age) AS s FROM visits", catalog(tmp_path), epsilon=1)
    assert found.vector is not None
    wanted = found.vector.bought
    noises = [term.mechanism for term in wanted.terms]
    return wanted, [noises[0], RoundedGaussian(sigma=3 * noises[1].scale)]


def test_a_number_that_is_accurate_enough_stays_as_it_is(tmp_path: Path) -> None:
    wanted, stored = one_of_two(tmp_path)
    needed = refinement.refinement(wanted, stored)
    assert needed is not None
    assert list(needed.fresh) == [1]
    assert needed.priced.loss.amount < wanted.loss.amount / 2
    values, noises = needed.merge((np.array([100]), np.array([5])), (np.array([7]),))
    assert values[0].tolist() == [100]
    assert noises[0] == stored[0]
    assert values[1].tolist() in ([6], [7])
    assert isinstance(noises[1], MergedGaussian)


# ---- the law ---------------------------------------------------------------------------------------------------------


def test_the_law_of_the_mean_is_unbiased_and_covered(tmp_path: Path) -> None:
    """The whole release, with its sampler enumerated, on top of a stored answer with noise of its own law."""
    write(tmp_path, EVERYBODY)
    described = catalog(tmp_path)
    wanted = priced(COUNT, described, epsilon=3)
    found = exact(wanted.question, described, EVERYBODY)
    (term,) = wanted.terms
    assert isinstance(term.mechanism, RoundedGaussian)
    first = RoundedGaussian(sigma=2 * term.mechanism.sigma)
    charged: Any = type("Charge", (), {"sequence": 3})
    needed = refinement.refinement(wanted, [first])
    assert needed is not None

    def run(entropy: Any) -> Any:
        stored = Release(
            question=wanted.question,
            mechanisms=(first,),
            selection=None,
            keys=(),
            values=(first.release(np.array([80]), entropy),),
            sequence=2,
            cost=wanted.loss,
            stored=True,
        )
        further = Sharpening(stored=stored, refinement=needed)
        answer = release._answer(Purchase(key="", bought=needed.priced, refinement=further), charged, found, entropy)
        return int(answer.values[0][0]), answer.mechanisms[0]

    law = {cast(tuple[int, Any], outcome): p for outcome, p in law_of(run).items()}
    ((noise,),) = [{noise for _, noise in law}]
    assert isinstance(noise, MergedGaussian)
    assert abs(mp.fsum(p * (value - 80) for (value, _), p in law.items())) < mpf("0.51")
    for confidence in (Fraction(1, 2), Fraction(9, 10), CONFIDENCE):
        h = noise.half_width(confidence)
        assert mp.fsum(p for (value, _), p in law.items() if abs(value - 80) <= h) >= float(confidence) - 1e-9
    assert noise.half_width(CONFIDENCE) <= term.mechanism.half_width(CONFIDENCE)


def errors_of(tmp_path: Path, label: str, count: int = 60) -> list[float]:
    """How far sharpened answers are off, in standard deviations of what they are said to err by."""
    found = []
    with opened(tmp_path, EVERYBODY, entropy=StreamEntropy(label), budget=GDP.replace("100", "10000")) as session:
        for number in range(count):
            text = f"SELECT SUM(cost) AS s FROM visits WHERE code > {number - 100}"
            session.sql(text, epsilon=1)
            answer = session.sql(text, epsilon=3)
            noise = mechanism(answer)
            off = (shown(answer)[0]["s"] - Decimal(sum(r["cost"] for r in EVERYBODY))) / Decimal("0.5")
            found.append(float(off) / float(noise.sigma))
    return found


@pytest.mark.long
@pytest.mark.parametrize(("count", "least", "most"), [(10, 0.1, 52), pytest.param(60, 20, 130, marks=pytest.mark.long)])
def test_sharpened_answers_err_by_what_they_say(tmp_path: Path, count: int, least: float, most: float) -> None:
    squares = float(np.square(errors_of(tmp_path, "sharpened", count)).sum())
    assert least < squares < most, "χ² of so many degrees: outside with probability below 1e-6"


@pytest.mark.long
def test_a_mean_of_the_stored_answer_alone_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merge = refinement.Refinement.merge
    monkeypatch.setattr(
        refinement.Refinement, "merge", lambda self, stored, fresh: (stored, merge(self, stored, fresh)[1])
    )
    assert float(np.square(errors_of(tmp_path, "sharpened", 20)).sum()) > 74


# ---- crashes ---------------------------------------------------------------------------------------------------------

CRASH = """
import os, signal
from pathlib import Path
from lapwing.ledger.ledger import Ledger
from lapwing.opening import open_session
from tests.support.release.small import catalog

with open_session(catalog(Path({folder!r}))) as session:
    Ledger.record_answer = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
    session.sql({text!r}, epsilon=2)
"""


@pytest.mark.long
def test_a_death_between_charge_and_answer_pays_the_difference_again(tmp_path: Path) -> None:
    with opened(tmp_path, EVERYBODY) as session:
        first = session.sql(COUNT, epsilon=1)
        price = session.explain(COUNT, epsilon=2).cost
        one = spent(session)
    code = textwrap.dedent(CRASH.format(folder=str(tmp_path), text=COUNT))
    died = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    with open_session(catalog(tmp_path)) as session:
        assert spent(session) == one + price.rounded_up().amount
        assert session.sql(COUNT, epsilon=1).rows() == first.rows(), "the stored answer is what it was"
        again = session.sql(COUNT, epsilon=2)
        assert again.cost == price
        assert spent(session) == one + 2 * price.rounded_up().amount
        assert session.sql(COUNT, epsilon=2).rows() == again.rows()
