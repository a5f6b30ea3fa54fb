"""Memoised responses: their exact curve, and how badly published claims fail where answers change."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import comb, exp, inf, log
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from lapwing.errors import InvalidParameter
from lapwing.local import KaryResponse, Memoised, client, collect, estimate, likeliest, new_task
from lapwing.local.client import longitudinal
from lapwing.local.client.longitudinal import MEMOISED
from tests.local.test_client import DAYS
from tests.support.effort import one_in, only
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy

WHOLE = client.WHOLE
HALVES = KaryResponse(categories=2, threshold=WHOLE // 4 * 3)
NOTED = Memoised(first=HALVES, second=HALVES)
"""Three quarters truth in both rounds."""
LASTING = Memoised(first=KaryResponse.for_epsilon(1, 2), second=HALVES)
SHELF = {
    "three quarters twice": NOTED,
    "ε∞ = 1": LASTING,
    "two values": Memoised.for_epsilons(Fraction(1, 2), 1, 2),
    "three values": Memoised.for_epsilons(Fraction(1, 2), 2, 3),
    "four values": Memoised.for_epsilons(1, 3, 4),
}
Law = dict[tuple[int, ...], Fraction]


def law(p1: Fraction, p2: Fraction, k: int, history: Sequence[int]) -> Law:
    """The law of the reports of a history, summed over every table of kept answers: an oracle of its own."""
    q1, q2 = (1 - p1) / (k - 1), (1 - p2) / (k - 1)
    total: Law = defaultdict(Fraction)
    for table in product(range(k), repeat=k):
        drawn = Fraction(1)
        for value, kept in enumerate(table):
            drawn *= p1 if kept == value else q1
        for said in product(range(k), repeat=len(history)):
            chance = drawn
            for value, report in zip(history, said, strict=True):
                chance *= p2 if report == table[value] else q2
            total[said] += chance
    return total


def laws(mechanism: Memoised, periods: int) -> dict[tuple[int, ...], Law]:
    k = mechanism.categories
    p1, p2 = mechanism.first.rates(0).p, mechanism.second.rates(0).p
    return {history: law(p1, p2, k, history) for history in product(range(k), repeat=periods)}


def worst(one: Law, other: Law) -> Fraction | float:
    """The worst ratio of two laws; infinite if something can be said in one case only."""
    return max(chance / other[said] if other[said] else inf for said, chance in one.items() if chance)


# The curve


@pytest.mark.parametrize("mechanism", one_in(3, SHELF.values()), ids=SHELF)
def test_the_curve_is_the_worst_ratio_of_all_reports(mechanism: Memoised) -> None:
    k = mechanism.categories
    p1, p2 = mechanism.first.rates(0).p, mechanism.second.rates(0).p
    for reports in range(1, 6 if k == 2 else 4):
        first, second = (law(p1, p2, k, [value] * reports) for value in (0, 1))
        assert worst(first, second) == worst(second, first) == mechanism.unchanged_ratio(reports)


def test_a_curve_that_forgets_the_other_values_is_caught() -> None:
    """The formula for two values, taken for three."""

    def two(a: Fraction, b: Fraction, reports: int) -> Fraction:
        return (a * b**reports + 1) / (b**reports + a)

    for name, mechanism in SHELF.items():
        claimed = two(mechanism.first.ratio, mechanism.second.ratio, 2)
        assert (claimed == mechanism.unchanged_ratio(2)) == (mechanism.categories == 2), name


def test_the_curve_rises_from_one_report_to_the_kept_answer() -> None:
    epsilons = [round(log(NOTED.unchanged_ratio(t)), 3) for t in (1, 2, 3, 4, 5, 10, 100)]
    assert epsilons == [0.511, 0.847, 1.006, 1.066, 1.088, 1.099, 1.099]
    for mechanism in SHELF.values():
        ratios = [mechanism.unchanged_ratio(t) for t in (*range(40), 200)]
        assert ratios == sorted(set(ratios))
        assert ratios[0] == 1
        assert ratios[1] == mechanism.ratio == mechanism.transition_matrix().worst_ratio()
        assert ratios[-1] < mechanism.first.ratio
        assert mechanism.first.ratio - mechanism.unchanged_ratio(500) < Fraction(1, 10**12)


@pytest.mark.parametrize(("one", "forever", "k"), [(0.5, 1, 2), (0.5, 2, 3), (1, 3, 10), (2, 2.5, 100), (0.01, 9, 5)])
def test_one_report_loses_what_is_asked_for(one: float, forever: float, k: int) -> None:
    mechanism = Memoised.for_epsilons(one, forever, k)
    assert 0 <= one - log(mechanism.ratio) < 1e-12
    assert 0 <= forever - log(mechanism.first.ratio) < 1e-12
    a, c = exp(forever), exp(one)
    published = Fraction((a * c - 1) / (a - c))  # L-GRR: right for two values only
    ratio = log(longitudinal.unchanged_ratio(mechanism.first.ratio, published, k, 1))
    assert (abs(ratio - one) < 1e-9) == (k == 2)
    assert ratio < one + 1e-9


def test_fresh_reports_average_out() -> None:
    """As documented: the majority of 21 reports at ε = 1 is right with probability 0.9885, of 101 with 0.9999996."""
    p = exp(1) / (1 + exp(1))
    right = [sum(comb(n, m) * p**m * (1 - p) ** (n - m) for m in range(n // 2 + 1, n + 1)) for n in (21, 101)]
    assert (round(right[0], 4), round(right[1], 7)) == (0.9885, 0.9999996)


# Change


def identical(history: Sequence[int], p1: Fraction, k: int) -> Law:
    """Without a second round: the kept answer is said each time."""
    return law(p1, Fraction(1), k, history)


def test_without_a_second_round_one_change_tells_all() -> None:
    p1 = Fraction(3, 4)
    steady, changed = (identical(history, p1, 2) for history in ((0, 0, 0), (0, 0, 1)))
    assert worst(changed, steady) == inf
    assert worst(*(identical((value,) * 3, p1, 2) for value in (0, 1))) == 3


def largest(mechanism: Memoised, periods: int) -> Fraction:
    every = laws(mechanism, periods).values()
    found = max(worst(one, other) for one in every for other in every)
    assert isinstance(found, Fraction)
    return found


Claim = Callable[[Memoised, int], Fraction]
UNSAFE: dict[str, Claim] = {
    "different values times ε∞": lambda m, periods: m.first.ratio**m.categories,
    "reports times ε₁": lambda m, periods: m.ratio**periods,
}


def check_claim(claim: Claim, mechanism: Memoised, pairs: Iterator[tuple[Sequence[int], Sequence[int]]]) -> None:
    for values, others in pairs:
        assert mechanism.ratio_between(values, others) <= claim(mechanism, len(values))


def alternating(lengths: Sequence[int]) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    for periods in lengths:
        yield [0, 1] * (periods // 2), [0] * periods


@pytest.mark.parametrize("claim", UNSAFE.values(), ids=UNSAFE)
def test_published_claims_fail_on_change(claim: Claim) -> None:
    """Sixteen reports of an answer that changes each time, against one that never does."""
    with pytest.raises(AssertionError):
        check_claim(claim, LASTING, alternating([2, 4, 8, 16]))
    check_claim(Memoised.changing_ratio, LASTING, alternating([2, 4, 8, 16]))


@pytest.mark.long
def test_by_how_much_they_fail() -> None:
    loss = log(LASTING.ratio_between([0, 1] * 8, [0] * 16))
    assert (round(loss, 2), round(16 * log(LASTING.ratio), 2), round(2 * log(LASTING.first.ratio), 2)) == (
        8.16,
        7.53,
        2,
    )
    losses = [log(LASTING.ratio_between([0, 1] * half, [0] * 2 * half)) for half in (8, 16, 32, 64)]
    steps = [later - sooner for sooner, later in pairwise(losses)]
    assert steps == pytest.approx([8 * log(3), 16 * log(3), 32 * log(3)], rel=1e-3)  # without limit


@pytest.mark.parametrize("name", only([0], ["three quarters twice", "ε∞ = 1", "two values"]))
def test_the_bound_for_changing_answers_holds_for_all_histories(name: str) -> None:
    mechanism = SHELF[name]
    for periods in (1, 2, 3, 4):
        assert mechanism.ratio <= largest(mechanism, periods) <= mechanism.changing_ratio(periods)
    assert largest(mechanism, 1) == mechanism.changing_ratio(1)


def test_the_bound_holds_for_three_values() -> None:
    mechanism = SHELF["three values"]
    assert log(largest(mechanism, 2)) > 2 * log(mechanism.ratio) + 0.05
    assert largest(mechanism, 2) <= mechanism.changing_ratio(2)


@pytest.mark.parametrize("name", only([0], ["ε∞ = 1", "three values"]))
def test_ratios_between_histories_are_exact(name: str) -> None:
    mechanism = SHELF[name]
    every = laws(mechanism, 3 if mechanism.categories == 2 else 2)
    for values, others in product(every, repeat=2):
        assert mechanism.ratio_between(values, others) == worst(every[values], every[others])


# The client


def client_laws(mechanism: Memoised, history: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> Law:
    """The law of what the client says over a history, over every way that its coins can fall."""
    given, k = dict(mechanism.parameters), mechanism.categories
    ways: list[tuple[Fraction, Any, tuple[int, ...]]] = [(Fraction(1), {}, ())]
    for value in history:
        then = []
        for chance, kept, said in ways:
            for likely, (report, after) in faces(given, k, value, kept, monkeypatch):
                then.append((chance * likely, after, (*said, report)))
        ways = then
    total: Law = defaultdict(Fraction)
    for chance, _, said in ways:
        total[said] += chance
    return total


def faces(given: Any, k: int, value: int, kept: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Fraction, Any]]:
    """Every outcome of one report: each face that is shown is k-ary, by `test_client`."""
    calls = 1 if str(value) in kept else 2
    for drawn in product(range(k), repeat=calls):
        chance, path = [Fraction(1)], list(drawn)

        def shown(threshold: int, bound: int, true: int, read: Any, path: Any = path, chance: Any = chance) -> int:
            face = path.pop(0)
            p = Fraction(threshold, WHOLE)
            chance[0] *= p if face == true else (1 - p) / (bound - 1)
            return int(face)

        monkeypatch.setattr(longitudinal, "randomized_response", shown)
        outcome = MEMOISED.say(given, k, value, StreamEntropy("unused").read, kept, 1)
        assert not path
        yield chance[0], outcome


@pytest.mark.parametrize("name", ["ε∞ = 1", "three values"])
def test_the_client_has_the_law_of_every_history(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = SHELF[name]
    for history, true in laws(mechanism, 3 if mechanism.categories == 2 else 2).items():
        assert client_laws(mechanism, history, monkeypatch) == true


def test_a_device_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It draws the kept answer anew each time, and so has fresh noise."""
    monkeypatch.setattr(longitudinal, "kept", lambda *given: None)
    with pytest.raises((AssertionError, IndexError)):
        assert client_laws(LASTING, (0, 0), monkeypatch) == laws(LASTING, 2)[0, 0]


def test_what_a_task_states() -> None:
    mechanism = SHELF["three values"]
    task = new_task("Which?", ["a", "b", "c"], mechanism, **DAYS)
    assert [str(epsilon) for _, epsilon in task.epsilons] == ["0.500000000000", "2.000000000000"]
    assert task.asked.together(4) == (mechanism.unchanged_ratio(4), mechanism.changing_ratio(4))
    assert "all reports of an answer that never changes have epsilon 2" in task.promise
    with pytest.raises(client.AnswerRefused, match="memory"):
        client.report(task, "a", StreamEntropy("none").read)
    for damaged in ({"0": 3}, {"0": -1}, {"0": True}, {"0": "1"}):
        with pytest.raises(client.AnswerRefused, match="damaged"):
            client.report_with_memory(task, "a", StreamEntropy("none").read, damaged)


def test_many_reports_lose_no_less_than_few() -> None:
    """Beyond 1,024, a device counts what all reports together stay below."""
    task = new_task("Which?", ["a", "b", "c"], SHELF["three values"], **DAYS)
    kept, ratios = SHELF["three values"], [task.asked.together(reports)[0] for reports in (1023, 1024, 1025, 5000)]
    assert ratios == [kept.unchanged_ratio(1023), kept.unchanged_ratio(1024), kept.first.ratio, kept.first.ratio]
    assert ratios == sorted(ratios)


@pytest.mark.parametrize("reports", [1, 2, 4, 8, 9, 100, 3000])
def test_epsilons_of_long_fractions_are_rounded_up(reports: int) -> None:
    """Beyond 512 bits only the first are taken: an oracle of 400 digits says by how much that is too much."""
    ratio = SHELF["three values"].ratio ** reports
    with mp.workdps(400):
        exact = mp.log(mp.mpf(ratio.numerator)) - mp.log(mp.mpf(ratio.denominator))
        over = mp.mpf(str(client.epsilon_up(ratio))) - exact
        assert 0 <= over <= mp.mpf("1.001e-12")


def test_the_same_answer_is_kept_once() -> None:
    task = new_task("Which?", ["a", "b", "c"], SHELF["three values"], **DAYS)
    read, memories = StreamEntropy("kept").read, []
    kept: client.Memory = {}
    for answer in "aabab":
        _, kept = client.report_with_memory(task, answer, read, kept)
        memories.append(kept)
    assert list(memories[-1]) == ["0", "1"]
    assert memories[0]["0"] == memories[-1]["0"]
    assert memories[2] == memories[-1]


def test_rounds_that_favour_another_value_are_refused() -> None:
    ranges = MEMOISED.ranges(4)
    assert WHOLE // 4 not in ranges["threshold_first"]
    assert WHOLE // 4 + 1 in ranges["threshold_second"]


# Estimates


def test_simulated_reports_fit_over_time() -> None:
    """Shares in each period are those of one report, and two reports of an answer agree as the law says."""
    mechanism, people = SHELF["three values"], 60_000
    histories = np.stack([np.arange(people) % 3, np.arange(people) % 3, np.zeros(people, dtype=np.int64)], axis=1)
    reports = mechanism.simulate(histories, StreamEntropy("over time"))
    for t in range(3):
        found = estimate(mechanism, reports[:, t])
        truth = np.bincount(histories[:, t], minlength=3) / people
        assert (np.abs(found.raw - truth) <= 7 * found.standard_error()).all()
        assert np.abs(likeliest(mechanism, reports[:, t]).shares - truth).max() < 0.1
    expected = laws(mechanism, 2)[0, 0]
    pairs = reports[histories[:, 0] == 0][:, :2]
    seen = np.bincount(3 * pairs[:, 0] + pairs[:, 1], minlength=9)
    fits = p_value(seen, np.array([expected[divmod(i, 3)] for i in range(9)], dtype=float))
    assert fits > LEAST_P_VALUE
    fresh = mechanism.randomize(np.zeros(len(pairs), dtype=np.int64), StreamEntropy("fresh"))
    seen = np.bincount(3 * pairs[:, 0] + fresh, minlength=9)
    assert p_value(seen, np.array([expected[divmod(i, 3)] for i in range(9)], dtype=float)) < LEAST_P_VALUE


def test_reports_of_devices_are_collected() -> None:
    mechanism = SHELF["three values"]
    task = new_task("Which?", ["a", "b", "c"], mechanism, **DAYS)
    read = StreamEntropy("devices").read
    lines = [client.report_with_memory(task, "abc"[i % 3], read, {})[0] or b"" for i in range(300)]
    taken = collect(task, lines)
    assert (taken.mechanism, len(taken.reports), taken.rejected) == (mechanism, 300, ())
    assert estimate(taken.mechanism, taken.reports, task.values).reports == 300


@pytest.mark.parametrize(
    "make",
    [
        lambda: Memoised.for_epsilons(1, 1, 3),
        lambda: Memoised.for_epsilons(2, 1, 3),
        lambda: Memoised(first=HALVES, second=KaryResponse.for_epsilon(1, 3)),
        lambda: NOTED.unchanged_ratio(-1),
        lambda: NOTED.ratio_between([0, 1], [0]),
        lambda: SHELF["four values"].ratio_between([0, 1, 2, 3] * 9, [3, 2, 1, 0] * 9),
    ],
)
def test_what_means_nothing_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()
