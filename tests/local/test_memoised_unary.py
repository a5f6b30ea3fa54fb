"""Memoised unary encoding: the exact curve of L-OSUE, and the client's own law."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.local import MemoisedUnary, UnaryEncoding, client, collect, estimate, new_task
from lapwing.local.client import frequencies, longitudinal
from lapwing.local.client.longitudinal import MEMOISED_UNARY
from lapwing.local.frequencies.variance import mean_variance
from tests.local.test_client import DAYS
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy

WHOLE = client.WHOLE
OPTIMISED = MemoisedUnary.for_epsilons(Fraction(1, 2), 2, 3)
UNEVEN = MemoisedUnary.from_thresholds(3, WHOLE // 10 * 9, WHOLE // 2, WHOLE // 5 * 3, WHOLE // 10)
"""Both rounds favour a one."""
SHELF = {"optimised": OPTIMISED, "uneven": UNEVEN, "of two": MemoisedUnary.for_epsilons(1, 3, 2)}
Law = dict[tuple[Any, ...], Fraction]


def bit_law(kept: Fraction, second: Sequence[Fraction], reports: int) -> dict[tuple[int, ...], Fraction]:
    """The law of the reports of one bit, which is kept as a one with a probability."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for truth, chance in ((1, kept), (0, 1 - kept)):
        for said in product((0, 1), repeat=reports):
            each = second[0] if truth else second[1]
            likely = chance
            for bit in said:
                likely *= each if bit else 1 - each
            law[said] += likely
    return law


def law(mechanism: MemoisedUnary, value: int, reports: int) -> Law:
    """The law of all bits of so many reports of a value that never changes: an oracle of its own."""
    (own, other), second = mechanism.first.rates(0), mechanism.second.rates(0)
    bits = [bit_law(own if v == value else other, second, reports) for v in range(mechanism.categories)]
    whole: Law = {}
    for said in product(*bits):
        chance = Fraction(1)
        for v, each in enumerate(said):
            chance *= bits[v][each]
        whole[tuple(zip(*said, strict=True))] = chance
    return whole


def worst(one: Law, other: Law) -> Fraction:
    return max(chance / other[said] for said, chance in one.items())


@pytest.mark.parametrize("mechanism", SHELF.values(), ids=SHELF)
def test_the_curve_is_the_worst_ratio_of_all_reports(mechanism: MemoisedUnary) -> None:
    for reports in (1, 2, 3):
        first, second = law(mechanism, 0, reports), law(mechanism, 1, reports)
        assert sum(first.values()) == 1
        assert worst(first, second) == worst(second, first) == mechanism.unchanged_ratio(reports)
    assert mechanism.ratio == mechanism.transition_matrix().worst_ratio()


def test_a_curve_of_one_bit_is_caught() -> None:
    """Two answers differ in two bits: counting one states half."""
    (own, other), (one, zero) = OPTIMISED.first.rates(0), OPTIMISED.second.rates(0)
    claimed = (own * one + (1 - own) * zero) / (other * one + (1 - other) * zero)
    assert worst(law(OPTIMISED, 0, 1), law(OPTIMISED, 1, 1)) > claimed


@pytest.mark.parametrize("mechanism", SHELF.values(), ids=SHELF)
def test_the_curve_rises_to_the_kept_bits(mechanism: MemoisedUnary) -> None:
    ratios = [mechanism.unchanged_ratio(reports) for reports in (*range(40), 300)]
    assert ratios == sorted(set(ratios))
    assert ratios[0] == 1
    assert 0 < mechanism.first.ratio - ratios[-1] < Fraction(1, 100)


@pytest.mark.parametrize(("one", "forever", "k"), [(0.5, 1, 2), (0.5, 2, 30), (1, 3, 1000), (2, 2.5, 5)])
def test_one_report_loses_what_is_asked_for(one: float, forever: float, k: int) -> None:
    mechanism = MemoisedUnary.for_epsilons(one, forever, k)
    assert 0 <= one - log(mechanism.ratio) < 1e-12
    assert 0 <= forever - log(mechanism.first.ratio) < 1e-12
    a, c = exp(forever), exp(one)
    assert float(mechanism.second.rates(0).p) == pytest.approx((1 - a * c) / (c - a - a * c + 1))  # as published


def test_of_many_values_it_is_more_accurate_than_k_ary() -> None:
    from lapwing.local import Memoised

    for k, more in ((3, False), (100, True)):
        kary, unary = (kind.for_epsilons(1, 2, k) for kind in (Memoised, MemoisedUnary))
        assert (mean_variance(unary) < mean_variance(kary)) == more


def bits_of(digits: str, k: int) -> tuple[int, ...]:
    number = int.from_bytes(bytes.fromhex(digits), "little")
    return tuple(number >> bit & 1 for bit in range(k))


def client_law(mechanism: MemoisedUnary, history: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> Law:
    """The law of what the client says over a history, over every way that its coins can fall."""
    given, k = dict(mechanism.parameters), mechanism.categories
    ways: list[tuple[Fraction, Any, tuple[Any, ...]]] = [(Fraction(1), {}, ())]
    for value in history:
        then = []
        for before, kept, said in ways:
            for falls in product((0, 1), repeat=k if str(value) in kept else 2 * k):
                chance, path = [before], list(falls)

                def coin(threshold: int, read: Any, path: Any = path, chance: Any = chance) -> bool:
                    shown = path.pop(0)
                    chance[0] *= Fraction(threshold if shown else WHOLE - threshold, WHOLE)
                    return bool(shown)

                for module in (frequencies, longitudinal):
                    monkeypatch.setattr(module, "coin", coin)
                report, after = MEMOISED_UNARY.say(given, k, value, StreamEntropy("unused").read, kept, 1)
                assert not path
                then.append((chance[0], after, (*said, bits_of(str(report), k))))
        ways = then
    total: Law = defaultdict(Fraction)
    for chance_of_all, _, said in ways:
        total[said] += chance_of_all
    return total


def test_the_client_has_that_law(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = SHELF["of two"]
    for value in (0, 1):
        assert client_law(mechanism, [value, value], monkeypatch) == law(mechanism, value, 2)
    assert client_law(UNEVEN, [1], monkeypatch) == law(UNEVEN, 1, 1)


def test_the_bound_for_changing_answers_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """All histories of two periods, as the client has them; the number of different values bounds nothing."""
    mechanism = MemoisedUnary.for_epsilons(1, Fraction(5, 4), 2)
    laws = [client_law(mechanism, history, monkeypatch) for history in product((0, 1), repeat=2)]
    largest = max(worst(one, other) for one in laws for other in laws)
    bound = mechanism.changing_ratio(2)
    assert bound is not None
    assert mechanism.first.ratio < largest <= bound
    assert mechanism.changing_ratio(1) == mechanism.ratio
    assert MemoisedUnary.for_epsilons(1, 2, 1000).changing_ratio(100) is None


def test_a_device_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It draws the kept bits anew each time: more than the curve allows."""
    mechanism = SHELF["of two"]
    fresh = {
        (first, second): law(mechanism, 0, 1)[(first,)] * law(mechanism, 0, 1)[(second,)]
        for (first,), (second,) in product(law(mechanism, 0, 1), repeat=2)
    }
    assert fresh != law(mechanism, 0, 2)
    assert mechanism.ratio**2 > mechanism.unchanged_ratio(2)


def test_from_devices_to_shares() -> None:
    mechanism = MemoisedUnary.for_epsilons(1, 2, 20)
    task = new_task("Which?", [f"v{v}" for v in range(20)], mechanism, **DAYS)
    assert [str(epsilon) for _, epsilon in task.epsilons] == ["1.000000000000", "2.000000000000"]
    assert task.asked.together(7) == (mechanism.unchanged_ratio(7), mechanism.changing_ratio(7))
    read, lines = StreamEntropy("devices").read, []
    for person in range(300):
        memory: client.Memory = {}
        for period in (1, 2):
            line, memory = client.report_with_memory(task, f"v{person % 4}", read, memory, period)
        lines.append(line or b"")
        assert len(memory) == 1
    taken = collect(task, [*lines, lines[0].replace(lines[0][-12:-3], b'"fffffff')])
    assert (taken.mechanism, len(taken.reports), len(taken.rejected)) == (mechanism, 300, 1)
    found = estimate(taken.mechanism, taken.reports, task.values)
    truth = np.array([0.25] * 4 + [0] * 16)
    assert (np.abs(found.raw - truth) <= 7 * found.standard_error("population")).all()


def test_simulated_reports_fit() -> None:
    mechanism, people = SHELF["of two"], 40_000
    reports = mechanism.simulate(np.zeros((people, 2), dtype=np.int64), StreamEntropy("simulated"))
    with pytest.raises(InvalidParameter, match="never change"):
        mechanism.simulate(np.array([[0, 1]]))
    expected = law(mechanism, 0, 2)
    seen = np.bincount(reports.reshape(people, 4) @ (1 << np.arange(4)), minlength=16)
    chances = np.zeros(16)
    for (first, second), chance in expected.items():
        chances[first[0] + 2 * first[1] + 4 * second[0] + 8 * second[1]] = chance
    assert p_value(seen, chances) > LEAST_P_VALUE
    once = mechanism.randomize(np.zeros(people, dtype=np.int64), StreamEntropy("once"))
    mixed = np.bincount(np.hstack([reports[:, 0], once]) @ (1 << np.arange(4)), minlength=16)
    assert p_value(mixed, chances) < LEAST_P_VALUE


@pytest.mark.parametrize("damaged", [{"0": 3}, {"0": ""}, {"0": "0"}, {"0": "XX"}])
def test_a_damaged_memory_sends_nothing(damaged: dict[str, Any]) -> None:
    task = new_task("Which?", ["a", "b", "c"], OPTIMISED, **DAYS)
    with pytest.raises(client.AnswerRefused, match="damaged"):
        client.report_with_memory(task, "a", StreamEntropy("none").read, damaged)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MemoisedUnary.for_epsilons(1, 1, 3),
        lambda: MemoisedUnary(first=UnaryEncoding.optimised(1, 3), second=UnaryEncoding.optimised(1, 2)),
        lambda: OPTIMISED.unchanged_ratio(-1),
    ],
)
def test_what_means_nothing_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()
