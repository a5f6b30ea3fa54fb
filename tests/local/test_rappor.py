"""RAPPOR: the published encoding, its exact laws, and what it loses, once and over time."""

import json
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from functools import cache, partial
from itertools import product
from math import isclose, log, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.local import BasicRappor, Noise, Rappor, UnaryEncoding, client, decode, estimate, new_task
from lapwing.local.client import rappor as device
from lapwing.local.client.longitudinal import bits_again
from lapwing.local.collection import collect_for
from lapwing.local.report_formats import law_of_bits
from tests.support.effort import examples, one_in, only
from tests.support.fixed_entropy import StreamEntropy
from tests.support.local.laws import law_of

DAYS: dict[str, Any] = {"opens": date(2027, 1, 1), "closes": date(2027, 1, 31)}
HALF, WHOLE = Fraction(1, 2), client.WHOLE
PAPER = Rappor.published(HALF, HALF, Fraction(3, 4))
ANSWERS = client.Text(40)


def task_of(mechanism: Rappor) -> client.Task:
    return new_task("Which page?", ANSWERS, mechanism, **DAYS)


def rows(digits: str, bits: int) -> tuple[int, ...]:
    number = int.from_bytes(bytes.fromhex(digits), "little")
    return tuple(number >> bit & 1 for bit in range(bits))


# The published encoding


def shown(permanent: int, bits: int, zero: int, one: int, read: client.Read) -> int:
    """The instantaneous response, as an integer."""
    return int.from_bytes(bytes.fromhex(bits_again(permanent, bits, zero, one, read)), "little")


def check_pythons_known_answer() -> None:
    """client/python/rappor_test.py: cohort 0, secret "secret", "abc", masks from 0.0, 0.6, 0.0 in turn: 64493."""
    pattern = device.bloom("abc", 0, 16, 2)
    kept = device.permanent_from_secret(pattern, 16, 64, b"secret")
    assert (pattern, kept) == (8256, 57576)
    draws = [0.0, 0.6, 0.0]
    words = iter([int(draws[bit % 3] * WHOLE).to_bytes(8, "little") for bit in range(16)])
    assert shown(kept, 16, WHOLE // 2, 3 * WHOLE // 4, lambda size: next(words)) == 64493


def test_pythons_known_answer() -> None:
    check_pythons_known_answer()


@pytest.mark.parametrize(
    ("cohort", "pattern", "answer"), [(3, None, 2281639167), (4, None, 2281637247), (3, 0x123, 2784956095)]
)
def test_known_answers_of_cpp(cohort: int, pattern: int | None, answer: int) -> None:
    """client/cpp/encoder_unittest.cc: k = 32, h = 2, f = 1/4, p = 3/4, q = 1/2, the "random" bytes 0, 17, 34, ….

    Its name of the metric is read after it was freed, and holds "client-secret" by then, not "metric-name".
    """
    bits = device.bloom("foo", cohort, 32, 2) if pattern is None else pattern
    kept = device.permanent_from_secret(bits, 32, 32, b"client-secret", b"\x01client-secret")
    random = [17 * i % 256 for i in range(64)]
    chosen = [random[i + 32 * (kept >> i & 1)] for i in range(32)]
    words = iter([bytes(7) + bytes([byte]) for byte in chosen])
    assert shown(kept, 32, 3 * WHOLE // 4, WHOLE // 2, lambda size: next(words)) == answer


@pytest.mark.parametrize("wrong", ["cohort", "text", "byte"])
def test_another_encoding_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def bloom(text: str, cohort: int, bits: int, hashes: int) -> int:
        import hashlib

        data = {"cohort": f"{cohort}{text}", "text": text}.get(wrong, "\0\0\0\0" + text).encode()
        digest = hashlib.md5(data).digest()
        return sum({1 << (byte >> 4 if wrong == "byte" else byte % bits) for byte in digest[:hashes]})

    monkeypatch.setattr(device, "bloom", bloom)
    with pytest.raises(AssertionError):
        check_pythons_known_answer()


@pytest.mark.parametrize("noisy", [0, 1, 38, 64, 128])
def test_the_secret_form_is_in_steps_of_a_128th(noisy: int) -> None:
    """Of the 256 bytes, so many flip a bit, of either kind: f/2. What f = 0.3 becomes has a larger ε∞."""
    for bit in (0, 1):
        assert sum((byte >> 1 < noisy) and (byte & 1) != bit for byte in range(256)) == noisy
    stated, real = 4 * log(0.85 / 0.15), 4 * log((1 - 38 / 256) / (38 / 256))
    assert real > stated + 0.04


# Laws and losses

TINY = (
    Rappor.published(HALF, Fraction(1, 8), Fraction(3, 4), bits=4, hashes=2, cohorts=2),
    Rappor.published(Fraction(1, 3), HALF, Fraction(3, 5), bits=4, hashes=1, cohorts=2),
    Rappor.full(1, 3, bits=4, hashes=2, cohorts=1),
    Rappor.memoised(1, bits=5, hashes=1, cohorts=2),
    Rappor.once(1, bits=6, hashes=3, cohorts=2),
)


@pytest.mark.parametrize("mechanism", one_in(2, TINY), ids=repr)
def test_devices_have_exactly_the_law_of_independent_bits(mechanism: Rappor, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(mechanism)

    def told() -> tuple[int, tuple[int, ...]]:
        line, _ = client.report_with_memory(task, "körte", bytes, {})
        assert line is not None
        cohort, digits = json.loads(line)["r"]
        return cohort, rows(digits, mechanism.bits)

    law = law_of(told, monkeypatch)
    for cohort in range(mechanism.cohorts):
        pattern = device.bloom("körte", cohort, mechanism.bits, mechanism.hashes)
        for bits, chance in law_of_bits(pattern, mechanism.bits, mechanism.rates).items():
            assert law.get((cohort, bits), 0) == chance / mechanism.cohorts


def worst_between(one: dict[Any, Fraction], other: dict[Any, Fraction]) -> Fraction:
    return max(one[report] / other[report] for report in one if one[report])


def patterns(bits: int, most: int) -> list[int]:
    return [pattern for pattern in range(1, 1 << bits) if pattern.bit_count() <= most]


def check_epsilon_of_one_report(mechanism: Rappor) -> None:
    """Over every pair of patterns of one to h bits: the stated ratio is reached, by disjoint ones of h bits alone."""
    laws = {p: law_of_bits(p, mechanism.bits, mechanism.rates) for p in patterns(mechanism.bits, mechanism.hashes)}
    worst = {(a, b): worst_between(laws[a], laws[b]) for a, b in product(laws, repeat=2)}
    assert max(worst.values()) == mechanism.ratio
    full = {pair for pair, ratio in worst.items() if ratio == mechanism.ratio}
    assert full == {(a, b) for a, b in worst if not a & b and a.bit_count() == b.bit_count() == mechanism.hashes}


@pytest.mark.parametrize("mechanism", one_in(3, TINY), ids=repr)
def test_epsilon_of_one_report_is_that_of_the_worst_patterns(mechanism: Rappor) -> None:
    check_epsilon_of_one_report(mechanism)


def test_half_of_the_loss_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formula that looks at the ones alone, not at what a missing one tells."""

    def ones_only(hashes: int, *thresholds: int) -> Fraction:
        p, q = device.chances(*thresholds)
        return (q / p) ** hashes

    monkeypatch.setattr(device, "ratio", ones_only)
    with pytest.raises(AssertionError):
        check_epsilon_of_one_report(TINY[0])


def test_published_losses() -> None:
    """h = 2, f = p = ½, q = ¾: as `ComputePrivacyGuarantees` in analysis/R/decode.R has them."""
    assert PAPER.rates == (Fraction(11, 16), Fraction(9, 16))
    assert PAPER.ratio == (Fraction(11, 16) * Fraction(7, 16) / (Fraction(9, 16) * Fraction(5, 16))) ** 2
    assert round(float(PAPER.loss().epsilon), 4) == 1.0743
    assert PAPER.ratio_for_ever == 81
    assert isclose(float(PAPER.loss_for_ever().epsilon), 4 * log(3), rel_tol=1e-12)


class Device:
    """A device that keeps its memory between reports."""

    def __init__(self, task: client.Task) -> None:
        self.task, self.memory = task, client_memory()

    def tell(self, text: str) -> tuple[int, tuple[int, ...]]:
        line, self.memory = client.report_with_memory(self.task, text, bytes, self.memory)
        assert line is not None
        cohort, digits = json.loads(line)["r"]
        return cohort, rows(digits, dict(self.task.parameters)["bits"])


def client_memory() -> Any:
    return {}


def law_over_time(mechanism: Rappor, history: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> dict[Any, Fraction]:
    task = task_of(mechanism)

    def all_told() -> Any:
        remembering = Device(task)
        return tuple(remembering.tell(text) for text in history)

    return law_of(all_told, monkeypatch)


OVER_TIME = Rappor.published(HALF, Fraction(1, 8), Fraction(3, 4), bits=2, hashes=1, cohorts=1)
UNLIKE = next((a, b) for a, b in product("abcdefgh", repeat=2) if device.bloom(a, 0, 2, 1) & ~device.bloom(b, 0, 2, 1))


def check_the_memoised_curve(reports: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (law_over_time(OVER_TIME, [text] * reports, monkeypatch) for text in UNLIKE)
    assert worst_between(one, other) == OVER_TIME.ratio_after(reports)


@pytest.mark.parametrize("reports", one_in(3, [1, 2, 3]))
def test_all_reports_of_a_text_that_never_changes(reports: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_the_memoised_curve(reports, monkeypatch)


def test_a_device_that_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its permanent response is drawn again for each report, and two of them lose more than is stated."""
    drawn = device.remembered
    monkeypatch.setattr(device, "remembered", lambda memory, *rest: drawn({"cohort": 0}, *rest))
    with pytest.raises(AssertionError):
        check_the_memoised_curve(2, monkeypatch)


@pytest.mark.parametrize("mechanism", [PAPER, OVER_TIME, Rappor.full(1, 3)], ids=repr)
def test_the_curve_rises_from_one_report_to_what_is_lost_for_ever(mechanism: Rappor) -> None:
    curve = [mechanism.ratio_after(reports) for reports in (1, 2, 4, 16, 64, 512)]
    assert curve[0] == mechanism.ratio
    assert curve == sorted(set(curve))
    assert curve[-1] < mechanism.ratio_for_ever
    assert isclose(float(curve[-1]), float(mechanism.ratio_for_ever), rel_tol=1e-3)


def test_a_memoised_report_says_no_more_when_it_is_repeated() -> None:
    same = Rappor.memoised(1)
    assert {same.ratio_after(reports) for reports in (1, 2, 100)} == {same.ratio, same.ratio_for_ever} == {same.ratio}
    assert same.ratio_if_changing(2) is None


# Texts that change


def worst_of_a_bit(noise: Noise, one: Sequence[tuple[str, int]], other: Sequence[tuple[str, int]]) -> Fraction:
    """The worst ratio of a bit's reports for two histories of (text, bit of its pattern), by enumeration."""
    flip, p, q = (Fraction(threshold, WHOLE) for threshold in noise.thresholds)
    chances = ((1 - p, p), (1 - q, q))

    def chance(history: Sequence[tuple[str, int]], reports: Sequence[int]) -> Fraction:
        whole = Fraction(1)
        for text in {text for text, _ in history}:
            mine = [(bit, r) for (name, bit), r in zip(history, reports, strict=True) if name == text]
            true = mine[0][0]
            whole *= sum(
                (1 - flip if kept == true else flip) * prod(chances[kept][r] for _, r in mine) for kept in (0, 1)
            )
        return whole

    every = product((0, 1), repeat=len(one))
    return max(chance(one, reports) / chance(other, reports) for reports in every)


@cache
def worst_of_a_change(mechanism: Rappor, reports: int) -> Fraction:
    """One text in the first half and another in the second, against the first throughout; with one bit of each."""
    half = reports // 2
    bits = [(1, 0), (0, 1), *[(0, 0)] * (mechanism.bits - 2)]
    histories = [([("x", x)] * half + [("y", y)] * half, [("x", x)] * reports) for x, y in bits]
    ratios = {(x, y): worst_of_a_bit(mechanism.noise, *pair) for (x, y), pair in zip(bits, histories, strict=True)}
    return prod((ratios[bit] for bit in bits), start=Fraction(1))


def check_that_each_text_costs_no_more_than_one_for_ever(mechanism: Rappor, reports: int) -> None:
    """The published claim: D different texts cost D·ε∞. Here D = 2."""
    assert worst_of_a_change(mechanism, reports) <= mechanism.ratio_for_ever**2


CHANGING = Rappor.published(HALF, Fraction(1, 10), Fraction(9, 10), bits=16, hashes=1, cohorts=1)


@pytest.mark.long
def test_the_number_of_texts_does_not_bound_the_loss() -> None:
    """A single change, seen in 8 reports of 16 bits, loses more than twice ε∞; and it grows with every report."""
    with pytest.raises(AssertionError):
        check_that_each_text_costs_no_more_than_one_for_ever(CHANGING, 8)
    losses = [worst_of_a_change(CHANGING, reports) for reports in (2, 4, 6, 8)]
    assert losses == sorted(losses)
    assert losses[-1] > CHANGING.ratio**8


@pytest.mark.parametrize("reports", one_in(4, [2, 4, 8]))
def test_the_stated_bound_holds_for_a_change(reports: int) -> None:
    bound = CHANGING.ratio_if_changing(reports)
    assert bound is not None
    assert worst_of_a_change(CHANGING, reports) <= bound


def test_the_stated_bound_holds_for_all_short_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all pairs of histories of two texts in two reports, by the client's own law."""
    laws = {h: law_over_time(OVER_TIME, h, monkeypatch) for h in product(UNLIKE, repeat=2)}
    worst = max(worst_between(laws[a], laws[b]) for a, b in product(laws, repeat=2))
    bound = OVER_TIME.ratio_if_changing(2)
    assert bound is not None
    assert OVER_TIME.ratio_after(2) < worst <= bound


def test_without_memory_losses_add_up() -> None:
    once = Rappor.once(1)
    assert once.ratio_if_changing(5) == once.ratio**5


# Parameters


@pytest.mark.parametrize(("one", "forever"), [(Fraction(1, 10), 1), (1, 2), (2, 8)])
@pytest.mark.parametrize("hashes", [1, 2, 4])
def test_losses_are_those_asked_for_or_a_little_less(one: Any, forever: Any, hashes: int) -> None:
    full = Rappor.full(one, forever, hashes=hashes)
    for loss, asked in (
        (full.loss(), one),
        (full.loss_for_ever(), forever),
        (Rappor.once(one, hashes=hashes).loss(), one),
    ):
        assert asked * (1 - Fraction(1, 10**12)) <= loss.epsilon <= asked + Fraction(1, 10**18)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rappor.once(1, bits=3, hashes=2),
        lambda: Rappor.once(1, bits=257),
        lambda: Rappor.once(1, hashes=17),
        lambda: Rappor.once(1, cohorts=0),
        lambda: Rappor.full(2, 1),
        lambda: Rappor.full(1, 1),
        lambda: Rappor.published(HALF, HALF, HALF),
        lambda: Rappor.published(0, 0, Fraction(3, 4)),
        lambda: Rappor.published(0, HALF, 1),
        lambda: Rappor.published(1, HALF, Fraction(3, 4)),
        lambda: Rappor(bits=32, hashes=1, cohorts=1, noise=PAPER.noise, remembers=False),
        lambda: BasicRappor.memoised(1, 1),
        lambda: PAPER.ratio_after(0),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


TURNED = ((HALF, Fraction(3, 4), Fraction(1, 8)), (Fraction(1, 4), Fraction(9, 10), Fraction(1, 5)))


@pytest.mark.parametrize(("f", "p", "q"), TURNED)
def test_bits_that_are_rather_0_if_they_are_set_say_the_same_as_their_opposites(
    f: Fraction, p: Fraction, q: Fraction
) -> None:
    """RAPPOR with p > q is that with 1 − p < 1 − q and all bits turned over: in losses, laws and estimates."""
    turned, plain = (BasicRappor.published(f, *each, 3) for each in ((p, q), (1 - p, 1 - q)))
    assert turned.ratio == plain.ratio == turned.transition_matrix().worst_ratio()
    assert [turned.ratio_after(t) for t in (2, 5)] == [plain.ratio_after(t) for t in (2, 5)]
    assert turned.ratio_for_ever == plain.ratio_for_ever
    reports = turned.randomize(np.arange(3_000) % 3, StreamEntropy("turned"))
    one, other = estimate(turned, reports), estimate(plain, ~reports)
    assert one.raw == pytest.approx(other.raw)
    assert np.abs(one.raw - 1 / 3).max() < 6 * one.standard_error().max()
    for ours, theirs in zip(
        (*one.interval(), *one.interval(whom="population"), *one.forged(10)),
        (*other.interval(), *other.interval(whom="population"), *other.forged(10)),
        strict=True,
    ):
        assert ours == pytest.approx(theirs)
    likelihoods = turned.likelihoods(reports) / plain.likelihoods(~reports)
    assert likelihoods == pytest.approx(np.broadcast_to(likelihoods[:, :1], likelihoods.shape))


def test_texts_are_decoded_where_p_is_above_q() -> None:
    turned, plain = (
        Rappor.published(HALF, p, q, bits=16, hashes=2, cohorts=8)
        for p, q in ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    )
    texts = ["a", "b", "c"]
    reports = turned.randomize(texts, np.arange(30_000) % 6 // 3, StreamEntropy("texts"))
    opposite = reports.copy()
    opposite["bits"] = ~reports["bits"]
    one, other = (decode(mechanism, each, texts) for mechanism, each in ((turned, reports), (plain, opposite)))
    assert one.raw == pytest.approx(other.raw)
    assert np.array(one.interval()) == pytest.approx(np.array(other.interval()))
    assert one.misfit == pytest.approx(other.misfit)
    assert one.reach == pytest.approx(other.reach)
    assert one.raw == pytest.approx([0.5, 0.5, 0.0], abs=0.1)


def test_without_a_kept_layer_reports_lose_each_time_what_one_does() -> None:
    """f = 0: each report is fresh noise on the true bits, and T of them lose T times as much, without end."""
    fresh = BasicRappor.published(0, Fraction(1, 4), Fraction(3, 4), 3)
    assert fresh.ratio == 9 == fresh.transition_matrix().worst_ratio()
    assert [fresh.ratio_after(t) for t in (1, 2, 5)] == [9, 81, 9**5]
    with pytest.raises(InvalidParameter, match="f = 0"):
        fresh.loss_for_ever()
    reports = fresh.randomize(np.zeros(20_000, dtype=np.int64), StreamEntropy("fresh"))
    assert estimate(fresh, reports).raw == pytest.approx([1, 0, 0], abs=0.05)
    full = Rappor.published(0, Fraction(1, 4), Fraction(3, 4), bits=8, hashes=2)
    assert full.ratio == 81
    with pytest.raises(InvalidParameter, match="f = 0"):
        _ = full.ratio_for_ever


@pytest.mark.long
def test_a_device_answers_a_task_whose_p_is_above_q() -> None:
    mechanism = BasicRappor.published(HALF, Fraction(3, 4), Fraction(1, 8), 3)
    task, entropy = new_task("Which?", ["a", "b", "c"], mechanism, **DAYS), StreamEntropy("device")
    lines = [client.report_with_memory(task, "b", entropy.read, {})[0] or b"" for _ in range(2_000)]
    taken = collect_for(mechanism, task, lines)
    assert taken.rejected == ()
    assert estimate(mechanism, taken.reports).raw == pytest.approx([0, 1, 0], abs=0.3)


def test_a_task_states_both_losses() -> None:
    document = task_of(PAPER).document
    assert (document["epsilon"], document["epsilon_unchanged"]) == ("1.074285864167", "4.394449154673")
    for lie in ({"epsilon": "1"}, {"epsilon_unchanged": "1.1"}):
        with pytest.raises(client.TaskRefused, match="send nothing"):
            client.task_of({**document, **lie})
    mechanism = {**document["mechanism"], "bits": "3"}  # type: ignore[dict-item]
    with pytest.raises(client.TaskRefused, match="twice as many bits"):
        client.task_of({**document, "mechanism": mechanism})


def test_a_task_says_that_reports_name_the_cohort() -> None:
    assert task_of(PAPER).promise.endswith("; every report names the device's cohort, one of 64, always the same")
    assert "cohort" not in task_of(Rappor.once(1)).promise


def test_a_damaged_memory_sends_nothing() -> None:
    task = task_of(PAPER)
    _, kept = client.report_with_memory(task, "a", StreamEntropy("memory").read, {})
    pattern = next(iter(kept["permanent"]))  # type: ignore[call-overload]
    changes: tuple[dict[str, Any], ...] = (
        {"cohort": None}, {"cohort": 64}, {"cohort": -1}, {"cohort": "1"}, {"permanent": 5},
        {"permanent": {}}, {"permanent": {pattern: 5}}, {"permanent": {pattern: "00"}},
        {"permanent": {pattern: "zz" * 4}},
    )  # fmt: skip
    for change in changes:
        damaged = {**kept, **change}
        with pytest.raises(client.AnswerRefused, match="damaged"):
            client.report_with_memory(task, "a", StreamEntropy("memory").read, damaged)
    for lost in kept:
        rest = {name: part for name, part in kept.items() if name != lost}
        with pytest.raises(client.AnswerRefused, match="damaged"):
            client.report_with_memory(task, "a", StreamEntropy("memory").read, rest)


def test_cohorts_are_too_few_to_name_a_device() -> None:
    """Every report names the cohort, which stays the same for ever."""
    assert Rappor.once(1, cohorts=device.MOST_COHORTS).cohorts == 1024
    with pytest.raises(InvalidParameter, match="cohorts"):
        Rappor.once(1, cohorts=1025)
    document = task_of(PAPER).document
    for cohorts in ("1025", "65536"):
        with pytest.raises(client.TaskRefused, match="cohorts must be from 1 to 1024"):
            client.task_of({**document, "mechanism": {**document["mechanism"], "cohorts": cohorts}})  # type: ignore[dict-item]


def test_a_device_keeps_its_cohort_and_one_response_a_pattern() -> None:
    entropy, task, memory = StreamEntropy("kept"), task_of(Rappor.memoised(1, cohorts=64)), client_memory()
    told: dict[str, set[str]] = {}
    for text in ("a", "b", "a", "b", "a"):
        line, memory = client.report_with_memory(task, text, entropy.read, memory)
        told.setdefault(text, set()).add(json.dumps(json.loads(line or b"")["r"]))
    assert all(len(said) == 1 for said in told.values())
    assert len(memory["permanent"]) == len({device.bloom(text, memory["cohort"], 32, 1) for text in "ab"})


# Basic


BASIC = BasicRappor.published(HALF, Fraction(1, 8), Fraction(3, 4), 3)


def test_basic_devices_have_exactly_the_law_of_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    task, matrix = new_task("Which?", ["a", "b", "c"], BASIC, **DAYS), BASIC.transition_matrix()

    def told(value: str) -> tuple[int, ...]:
        line, _ = client.report_with_memory(task, value, bytes, {})
        return rows(json.loads(line or b"")["r"], 3)

    for value, row in zip("abc", matrix.rows, strict=True):
        assert law_of(partial(told, value), monkeypatch) == dict(zip(matrix.reports, row, strict=True))
    assert matrix.worst_ratio() == BASIC.ratio == BASIC.ratio_after(1)
    assert BASIC.ratio_for_ever == 9


def test_the_basic_one_time_form_is_symmetric_unary_encoding() -> None:
    once, unary = BasicRappor.memoised(1, 5), UnaryEncoding.symmetric(1, 5)
    assert (once.rates(0), once.ratio) == (unary.rates(0), unary.ratio)


# Reports and simulations


def changed(task: client.Task, said: Any) -> bytes:
    whole = {"v": 1, "task": task.id, "id": "0" * 32, "m": task.mechanism, "r": said}
    return json.dumps(whole).encode()


TASK = task_of(PAPER)
MALFORMED: tuple[tuple[Any, str], ...] = (
    (5, "a cohort and bits"), ([1], "a cohort and bits"), ([64, "0" * 8], "the cohort of r"),
    ([True, "0" * 8], "the cohort of r"), ([-1, "0" * 8], "the cohort of r"), (["1", "0" * 8], "the cohort of r"),
    ([1, "0" * 6], "8 digits"), ([1, "0" * 7 + "G"], "8 digits"), ([1, 5], "8 digits"), ([1, "0F" * 4], "8 digits"),
)  # fmt: skip


@pytest.mark.parametrize(("said", "reason"), MALFORMED)
def test_malformed_reports_are_rejected_singly(said: Any, reason: str) -> None:
    entropy = StreamEntropy("honest")
    good = [client.report_with_memory(TASK, "a", entropy.read, {})[0] or b"" for _ in range(2)]
    taken = collect_for(PAPER, TASK, [good[0], changed(TASK, said), good[1]])
    assert len(taken.reports) == 2
    assert [line.line for line in taken.rejected] == [2]
    assert reason in taken.rejected[0].reason


def test_a_report_of_all_ones_or_none_is_rejected() -> None:
    large = Rappor.once(2, bits=256)
    for digits in ("ff" * 32, "00" * 32):
        taken = collect_for(large, task_of(large), [changed(task_of(large), [0, digits])])
        assert "bits set; honest ones have" in taken.rejected[0].reason


def test_bits_beyond_the_last_are_rejected() -> None:
    odd = Rappor.once(1, bits=12, cohorts=1)
    assert "beyond" in collect_for(odd, task_of(odd), [changed(task_of(odd), [0, "0f10"])]).rejected[0].reason


SAID = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3),
)


@pytest.mark.long
@examples(10, 600)
@given(said=SAID)
def test_a_fuzzer_finds_nothing_that_fails(said: Any) -> None:
    taken = collect_for(PAPER, TASK, [changed(TASK, said)])
    assert len(taken.reports) + len(taken.rejected) == 1


@pytest.mark.parametrize(
    "mechanism", only([0], [PAPER, Rappor.once(3, bits=200, hashes=16), Rappor.once(1, bits=2)]), ids=repr
)
def test_honest_reports_are_all_taken(mechanism: Rappor) -> None:
    task, entropy = task_of(mechanism), StreamEntropy("taken")
    lines = [client.report_with_memory(task, f"t{i}", entropy.read, {})[0] or b"" for i in range(300)]
    assert collect_for(mechanism, task, lines).rejected == ()
    simulated = mechanism.randomize([f"t{i}" for i in range(50)], np.arange(3000) % 50, entropy)
    weights = mechanism.unpacked(simulated).sum(axis=1)
    assert mechanism.weights.start <= weights.min() <= weights.max() < mechanism.weights.stop


def check_the_simulation(mechanism: Rappor) -> None:
    """Each bit of each text and cohort is a coin of chance q* or p*: the sum of squared deviations is that of χ²."""
    texts, each = ["a", "bb", "ccc"], 40_000
    reports = mechanism.randomize(texts, np.repeat(np.arange(3), each), StreamEntropy("simulated"))
    bits, (present, absent) = mechanism.unpacked(reports), mechanism.rates
    scores = []
    for text, start in zip(texts, (0, each, 2 * each), strict=True):
        for cohort in range(mechanism.cohorts):
            mine = bits[start : start + each][reports["cohort"][start : start + each] == cohort]
            pattern = device.bloom(text, cohort, mechanism.bits, mechanism.hashes)
            for bit, ones in enumerate(mine.sum(axis=0, dtype=np.int64)):
                chance = float(present if pattern >> bit & 1 else absent)
                scores.append((ones - len(mine) * chance) / (len(mine) * chance * (1 - chance)) ** 0.5)
    assert abs(np.square(scores).mean() - 1) < 7 * (2 / len(scores)) ** 0.5
    assert max(map(abs, scores)) < 6.5


@pytest.mark.parametrize("hashes", [1, 4])
def test_simulated_reports_have_the_law_of_devices(hashes: int) -> None:
    check_the_simulation(Rappor.published(HALF, Fraction(1, 8), Fraction(3, 4), bits=9, hashes=hashes, cohorts=4))


def test_a_simulation_with_other_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = Rappor.once(2, bits=8, cohorts=2)
    wrong = Rappor.once(Fraction(19, 10), bits=8, cohorts=2).rates
    randomize = Rappor.randomize
    monkeypatch.setattr(
        Rappor, "randomize", lambda self, *rest: randomize(Rappor.once(Fraction(19, 10), bits=8, cohorts=2), *rest)
    )
    assert wrong != mechanism.rates
    with pytest.raises(AssertionError):
        check_the_simulation(mechanism)


# The device's ledger


def test_a_device_adds_up_by_the_curve_and_the_bound() -> None:
    asked = task_of(PAPER).asked
    assert asked.together(0) == (Fraction(1), Fraction(1))
    assert asked.together(3) == (PAPER.ratio_after(3), PAPER.ratio_if_changing(3))
    assert asked.together(10**6) == (PAPER.ratio_for_ever, None)
    once = Rappor.once(1)
    assert task_of(once).asked.together(3) == (once.ratio**3, once.ratio**3)
    basic = new_task("Which?", ["a", "b", "c"], BASIC, **DAYS).asked
    assert basic.together(2) == (BASIC.ratio_after(2), BASIC.ratio_if_changing(2))


@pytest.mark.long
def test_the_bound_looks_at_all_bits_and_not_only_those_that_texts_set() -> None:
    """With 2h bits in the place of k it is broken by a change that is seen in eight reports."""
    bound = device.ratio_if_changing(8, 2 * CHANGING.hashes, CHANGING.hashes, *CHANGING.noise.thresholds)
    assert bound is not None
    strong = Rappor.published(HALF, Fraction(1, 3), Fraction(2, 3), bits=64, hashes=1, cohorts=1)
    small = device.ratio_if_changing(8, 2, 1, *strong.noise.thresholds)
    large = strong.ratio_if_changing(8)
    assert small is not None
    assert large is not None
    assert small < worst_of_a_change(strong, 8) <= large
