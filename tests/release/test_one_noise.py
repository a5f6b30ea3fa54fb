"""Counts of units that select their own private keys: the law of keys and counts, thresholds, and what is asked for.

Laws are exact, as in `test_private_keys`; thresholds and intervals are compared with formulas written down anew.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing.answer.notes import CHOSEN_KEYS, code_of
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian, WeightedGaussian
from lapwing.mechanisms.noise_above import NoiseAboveThreshold
from lapwing.mechanisms.thresholding import CountNoise, CountThresholding, upper_tail
from lapwing.opening import open_session
from lapwing.privacy.measures import ApproximateGaussianDP, GaussianDP, PureDP
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.pricing.quote import Quote
from lapwing.query.pricing.selection_mechanisms import KeySelectionQuote
from lapwing.release import release
from lapwing.release.stored import Purchase
from tests.release.test_private_keys import CLOSE, DELTA, hockey_stick, towns
from tests.support.effort import one_in, only
from tests.support.enumeration import Law, law_of
from tests.support.privacy.oracle import normal, real
from tests.support.release.small import BUDGETS, PURE, catalog, exact, opened, priced, row, shown, write

PEOPLE = "SELECT town, COUNT(DISTINCT person) AS n FROM visits GROUP BY town"
BOTH = PEOPLE.replace(" AS n", " AS n, COUNT(age) AS m")
OF_TWO = PEOPLE.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 2)")
OF_ONE_GROUP = PEOPLE.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1)")


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    with mp.workdps(40):
        yield


def asked(folder: Path, text: str = PEOPLE, **facts: Any) -> Quote:
    write(folder, [])
    return priced(text, catalog(folder, **facts), epsilon=2, delta=1e-5)


def selecting(found: Quote) -> CountThresholding:
    assert found.key_selection is not None
    assert found.key_selection.counting is not None
    return found.key_selection.counting


def narrow(found: Quote, law: CountNoise, delta: Fraction = DELTA, **changes: Any) -> Quote:
    """The same question with noise that can be enumerated, and a δ that can be seen."""
    mechanism = replace(selecting(found), law=law, delta=delta, **changes)
    terms = (replace(found.terms[0], mechanism=law), *found.terms[1:])
    keys = KeySelectionQuote(mechanism=mechanism, loss=found.loss.nothing(), delta=delta)
    return replace(found, terms=terms, key_selection=keys, loss=type(found.loss)(100))


def answer_law(folder: Path, bought: Quote, held: tuple[str, ...], **facts: Any) -> Law:
    """The law of the keys and their counts together."""
    found = exact(bought.question, catalog(folder, **facts), towns(*held))
    charged: Any = type("Charge", (), {"sequence": 3})

    def run(entropy: Any) -> Any:
        released = release._answer(Purchase(key="", bought=bought), charged, found, entropy)
        return released.keys, tuple(tuple(map(int, values)) for values in released.values)

    return law_of(run)


# ---- the loss --------------------------------------------------------------------------------------------------------

NEIGHBOURS = [((), "u"), (("u",), "u"), ((), "uv"), (("uv", "uv", "uv"), "uv")]
LAPLACE, GAUSS = DiscreteLaplace(scale=Fraction(1, 2)), RoundedGaussian(sigma=Fraction(1, 2))


def excess(
    folder: Path, text: str, budget: str, delta: Fraction = DELTA, first: int = 0, **changes: Any
) -> Iterator[mpf]:
    """Yield by how much keys and counts on neighbouring tables are further apart than is charged: at most 0."""
    pure, facts = budget == "pure", {"budget": BUDGETS[budget], "most": 2}
    bought = narrow(asked(folder, text, **facts), LAPLACE if pure else GAUSS, delta, **changes)
    for held, unit in NEIGHBOURS[first:]:
        p, q = (answer_law(folder, bought, table, **facts) for table in (held, (*held, unit)))
        for epsilon in [Fraction(4)] if pure else [Fraction(0), Fraction(3), Fraction(9)]:  # two keys at scale 1/2
            loss = ApproximateGaussianDP.of(GaussianDP.from_mu_squared(2 / GAUSS.sigma**2), delta)
            allowed = real(delta) if pure else mpf(loss.to_delta(epsilon=epsilon))
            yield max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) - allowed


@pytest.mark.parametrize("budget", only([1], ["pure", "gdp"]))
@pytest.mark.parametrize("text", one_in(2, [PEOPLE, OF_TWO]))
def test_keys_and_their_counts_lose_what_is_charged(tmp_path: Path, text: str, budget: str) -> None:
    assert max(excess(tmp_path, text, budget)) <= CLOSE


def lower_threshold(monkeypatch: pytest.MonkeyPatch, by: int) -> None:
    stated: Any = vars(CountThresholding)["threshold"].fget
    monkeypatch.setattr(CountThresholding, "threshold", property(lambda self: stated(self) - by))


@pytest.mark.parametrize("budget", one_in(2, ["pure", "gdp"]))
def test_a_threshold_that_is_one_too_low_is_found(tmp_path: Path, budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lower_threshold(monkeypatch, 1)
    assert any(found > 100 * CLOSE for found in excess(tmp_path, PEOPLE, budget))


def test_a_minimum_without_its_threshold_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower_threshold(monkeypatch, 1)  # OF_TWO's is one higher than that of one unit
    assert any(found > 100 * CLOSE for found in excess(tmp_path, OF_TWO, "pure"))


@pytest.mark.long
def test_too_little_noise_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    less = DiscreteLaplace(scale=LAPLACE.scale * Fraction(9, 10))
    drawn = DiscreteLaplace.release
    monkeypatch.setattr(DiscreteLaplace, "release", lambda self, values, entropy: drawn(less, values, entropy))
    assert any(found > 100 * CLOSE for found in excess(tmp_path, PEOPLE, "pure"))


@pytest.mark.long
def test_units_of_more_keys_than_counted_are_found(tmp_path: Path) -> None:
    delta = Fraction(1, 50)  # of one key of two it would take 0.016
    assert max(excess(tmp_path, PEOPLE, "pure", delta, 2)) <= CLOSE  # of units with two keys
    assert any(found > 100 * CLOSE for found in excess(tmp_path, PEOPLE, "pure", delta, 2, max_keys=1))


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_price_is_the_noise_s(tmp_path: Path, budget: str) -> None:
    """The count has all of it, and noise of √k or k a unit; a second measure leaves it two thirds."""
    for text, share in ((PEOPLE, Fraction(1)), (BOTH, Fraction(2, 3))):
        found = asked(tmp_path, text, budget=BUDGETS[budget], most=2)
        law, (term,) = selecting(found).law, (t for t in found.terms if t.measure == CountUnits())
        lost = term.loss(budget).amount
        assert found.key_selection is not None
        assert found.key_selection.loss.amount == 0
        assert term.mechanism == law
        assert share * Fraction(999, 1000) < lost / found.loss.amount <= share
        assert found.delta == Fraction("0.00001")
    if budget == "pure":
        assert selecting(asked(tmp_path, budget=PURE, most=2)).law == DiscreteLaplace(scale=Fraction(1))


# ---- the threshold ---------------------------------------------------------------------------------------------------


@cache
def tail(law: CountNoise, least: int) -> mpf:
    """P(noise ≥ least) by the laws' formulas."""
    if isinstance(law, RoundedGaussian):
        return normal(-(mpf(least) - mpf(1) / 2) / real(law.sigma))
    q = mp.exp(-1 / real(law.scale))
    return q**least / (1 + q) if least > 0 else 1 - q ** (1 - least) / (1 + q)


LAWS: list[CountNoise] = [DiscreteLaplace(scale=Fraction(3)), RoundedGaussian(sigma=Fraction(9, 2))]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_thresholds_are_the_least_that_hide(law: CountNoise) -> None:
    for least in (-20, -1, 0, 1, 2, 30):
        bounds = upper_tail(law, least)
        assert real(bounds.lower) * (1 - CLOSE) <= tail(law, least) <= real(bounds.upper) * (1 + CLOSE)
    for keys, delta in ((1, Fraction(1, 4)), (3, Fraction(1, 10**6)), (500, Fraction(1, 10**12)), (7, Fraction(9, 10))):
        least = CountThresholding(law=law, delta=delta, max_keys=keys).threshold
        assert (1 - tail(law, least - 1)) ** keys >= 1 - real(delta)
        assert least == 1 or (1 - tail(law, least - 2)) ** keys < 1 - real(delta), "one less would do"
        # Of t ≤ k keys the most are the worst.
        assert all((1 - tail(law, least - 1)) ** t >= 1 - real(delta) for t in range(1, keys))
        assert CountThresholding(law=law, delta=delta, max_keys=keys, minimum=40).threshold == least + 39


# ---- intervals -------------------------------------------------------------------------------------------------------


def coverages(law: CountNoise, threshold: int, minimum: int, ends: Any) -> list[mpf]:
    """Return the chance that an interval contains n, given that its key is shown, for n from the minimum on."""
    values = np.arange(threshold, threshold + 300)
    low, high = ends(values)
    found = []
    for n in range(minimum, threshold + 120):
        chances = [tail(law, int(y) - n) - tail(law, int(y) + 1 - n) for y in values]
        covered = mp.fsum(p for p, a, b in zip(chances, low, high, strict=True) if a <= n <= b)
        found.append(covered / tail(law, threshold - n))
    return found


@pytest.mark.long
@pytest.mark.parametrize("law", one_in(3, LAWS), ids=lambda law: law.name)
@pytest.mark.parametrize("minimum", one_in(2, [12, 1]))
def test_intervals_hold_given_that_the_key_is_shown(law: CountNoise, minimum: int) -> None:
    threshold = 30
    shown_law = NoiseAboveThreshold(law=law, threshold=threshold, minimum=minimum)
    found = coverages(law, threshold, minimum, lambda values: shown_law.ends(values, Fraction(95, 100)))
    assert min(found) >= mpf("0.95")
    h = law.half_width(Fraction(95, 100))
    plain = coverages(law, threshold, minimum, lambda values: (values - h, values + h))
    assert min(plain) < mpf("0.05"), "the twin: of a small number that is shown the interval around it has little"
    low, high = shown_law.ends(np.array([threshold, 1000]), Fraction(95, 100))
    assert (int(low[1]), int(high[1])) == (1000 - h, 1000 + h), "far above the threshold it is the plain one"
    assert int(low[0]) == minimum


# ---- what takes it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "facts", "one"),
    [
        (PEOPLE, {"budget": PURE, "most": 50}, True),
        (PEOPLE, {"most": 3}, True),
        (PEOPLE, {"most": 4}, False),  # units of one key would show far fewer keys
        (OF_ONE_GROUP, {"most": 5}, True),
        (PEOPLE.replace("DISTINCT person", "*"), {"most": 1}, True),
        (PEOPLE.replace("DISTINCT person", "*"), {"most": 2}, False),
        (PEOPLE.replace("DISTINCT person", "age"), {"most": 1}, False),
        (PEOPLE.replace("DISTINCT person", "*"), {"unit": "row"}, True),
        (PEOPLE.replace("person)", "CASE WHEN age > 1 THEN person END)"), {"most": 2}, False),
        (PEOPLE.replace("town,", "town, plan,") + ", plan", {"most": 2}, False),
        (PEOPLE.replace("town,", "town, code,") + ", code", {"most": 2}, True),
        (
            PEOPLE.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_epsilon = 0.5)"),
            {"most": 2},
            False,
        ),
    ],
)
def test_a_count_of_all_units_selects_where_that_is_better(
    tmp_path: Path, text: str, facts: dict[str, Any], one: bool
) -> None:
    found = asked(tmp_path, text, **facts).key_selection
    assert found is not None
    assert (found.counting is not None) == one


def everybody() -> list[dict[str, Any]]:
    return [row(person, town="u" if person % 3 else "v", age=1) for person in range(600)]


@pytest.mark.parametrize("budget", only([0], BUDGETS))
def test_an_answer_is_kept_with_its_intervals(tmp_path: Path, budget: str) -> None:
    facts: dict[str, Any] = {"budget": BUDGETS[budget], "most": 2}
    with opened(tmp_path, everybody(), **facts) as session:
        first = session.sql(BOTH, epsilon=3, delta=1e-6)
        assert [shop["town"] for shop in shown(first)] == ["u", "v"]
        preview = session.explain(BOTH, epsilon=2, delta=1e-6)
        spent = session.budget().spent
    with open_session(catalog(tmp_path, **facts)) as session:
        again = session.sql(BOTH, epsilon=3, delta=1e-6)
        assert session.budget().spent == spent
    assert again.stored
    assert shown(again) == shown(first)
    for name, ends in first.interval().items():
        assert [end.tolist() for end in ends] == [end.tolist() for end in again.interval()[name]]
    assert preview.selection is not None
    assert (preview.selection.mechanism, preview.selection.price_share) == ("thresholding", 0)
    assert [code_of(note) for note in first.notes].count(CHOSEN_KEYS) > 1
    people, others = first.describe()[1:]
    assert people.half_width is None, "it is not the same in every cell"
    assert others.half_width is not None


@pytest.mark.long
def test_a_sharper_answer_is_bought_afresh_and_a_blunter_one_is_free(tmp_path: Path) -> None:
    with opened(tmp_path, everybody(), budget=PURE, most=2) as session:
        session.sql(PEOPLE, epsilon=2, delta=1e-6)
        assert session.sql(PEOPLE, epsilon=1, delta=1e-6).stored
        assert not session.sql(PEOPLE, epsilon=3, delta=1e-6).stored
        assert session.budget().spent == PureDP(5)


def test_weights_are_still_read(tmp_path: Path) -> None:
    """What was stored of two noises says which selection it was."""
    found = asked(tmp_path, PEOPLE, most=5).key_selection
    assert found is not None
    assert isinstance(found.mechanism, WeightedGaussian)
    law = CountThresholding(law=LAWS[0], delta=Fraction(1, 100), max_keys=2, minimum=3)
    assert CountThresholding.from_record(*law.record()) == law  # type: ignore[arg-type]
    above = NoiseAboveThreshold(law=LAWS[1], threshold=9, minimum=2)
    assert NoiseAboveThreshold.from_record(above.record()) == above
