"""RAPPOR: a text as the bits of a Bloom filter, made noisy once for ever, and once more for each report.

Theory of operation. A device belongs to one of a few cohorts for ever, by a fair draw. In cohort c a text sets the bits
d_1 mod k … d_h mod k, d being the bytes of MD5(c in four bytes || text in UTF-8): one to h bits of k, its *pattern*.
The *permanent* response flips each bit of the pattern with chance φ = f/2. A report shows each bit of that as a 1 with
chance q if it is set, and p if not. So a report says 1 with chance q* = (1 − φ)q + φp where the pattern has a 1, and
with p* = (1 − φ)p + φq where it has none, independently for each bit.

A device draws the permanent response of a pattern once, from true randomness, and keeps it with its cohort. It must be
kept before the report is sent: one that is drawn again tells more than `ratio_after` says. The published clients keep
nothing, and compute it from a secret: `permanent_from_secret`. *Basic* RAPPOR has a bit for each value of a list, and
no cohorts; *one-time* RAPPOR reports a permanent response as it is, and keeps nothing.

Source:
    Erlingsson, Pihur and Korolova 2014; encoding and known answers of google/rappor, client/python and client/cpp.
"""

import hashlib
import hmac
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .frequencies import as_digits
from .longitudinal import Chances, bits_again, changing_bits_ratio, kept_bits, unchanged_bits_ratio
from .rules import UNCHANGED, WHOLE, AnswerRefused, Memory, MemoryRule, Parameters, Read, Rule, TaskRefused, below, coin

MOST_BITS: Final = 256
"""A byte of the digest picks a bit."""
MOST_HASHES: Final = 16
"""A digest has so many bytes."""
MOST_COHORTS: Final = 1 << 10
"""Every report names the device's cohort, for ever: with many cohorts, few devices share one, and it is a name."""

MOST_CURVE: Final = 1 << 10
"""Reports times hashes up to which a device computes `ratio_after`; for more, `ratio_for_ever` is near."""
MOST_POWER: Final = 1 << 12
"""Bits times reports up to which a bound for changing texts is computed; a larger one would say nothing."""

_COHORT: Final = "cohort"
_KEPT: Final = "permanent"
_DAMAGED: Final = "The device's data for this task are damaged; nothing was sent."


def bloom(text: str, cohort: int, bits: int, hashes: int) -> int:
    """Return the pattern of a text in a cohort; bit i of the integer is bit i of the pattern."""
    digest = hashlib.md5(cohort.to_bytes(4, "big") + text.encode("utf-8"), usedforsecurity=False).digest()
    pattern = 0
    for byte in digest[:hashes]:
        pattern |= 1 << byte % bits
    return pattern


def permanent_response(pattern: int, bits: int, threshold_flip: int, read: Read) -> int:
    """Return a permanent response: each bit of the pattern, flipped with chance threshold_flip / 2^64."""
    for bit in range(bits):
        pattern ^= coin(threshold_flip, read) << bit
    return pattern


def permanent_from_secret(pattern: int, bits: int, noisy: int, secret: bytes, prefix: bytes = b"") -> int:
    """Return the permanent response that the published clients compute, with f = noisy / 128.

    Guarantee:
        None that holds for ever. It is as good as a random one while nobody can tell HMAC-SHA256 under this secret from
        a random function: the secret must be 32 random bytes or more, kept on the device, and `prefix` must be
        different for each question. Whoever learns the secret, at any later time, learns which bits were flipped.

    Args:
        bits: 32 at most.
        noisy: f in 128ths.
        prefix: Of the message: nothing in client/python, and a byte 1 with the name of the metric in client/cpp.
    """
    message = prefix + pattern.to_bytes(4, "big")
    for bit, byte in enumerate(hmac.new(secret, message, "sha256").digest()[:bits]):
        if byte >> 1 < noisy:
            pattern = pattern & ~(1 << bit) | (byte & 1) << bit
    return pattern


def remembered(memory: Memory, pattern: int, bits: int, threshold_flip: int, read: Read) -> tuple[int, Memory]:
    """Return the permanent response of a pattern, drawn if none is kept yet, and the memory that has it."""
    responses, name = memory.get(_KEPT, {}), as_digits(pattern, bits)
    if not isinstance(responses, Mapping) or (_KEPT in memory and not responses):
        raise AnswerRefused(_DAMAGED)
    if responses.get(name) is None:
        drawn = permanent_response(pattern, bits, threshold_flip, read)
        return drawn, {**memory, _KEPT: {**responses, name: as_digits(drawn, bits)}}
    return kept_bits(responses[name], bits, _DAMAGED), memory


def report_text(
    parameters: Parameters, size: int, text: str, read: Read, memory: Memory, period: int
) -> tuple[list[int | str], Memory]:
    """Return the device's cohort and the bits of a report on a text, and the memory to keep."""
    cohort = memory.get(_COHORT) if memory else below(parameters["cohorts"], read)
    if not isinstance(cohort, int) or not 0 <= cohort < parameters["cohorts"] or (memory and _KEPT not in memory):
        raise AnswerRefused(_DAMAGED)  # one that has a part of its memory must not draw the other again
    pattern = bloom(text, cohort, parameters["bits"], parameters["hashes"])
    said, kept = _report(parameters, parameters["bits"], pattern, read, {**memory, _COHORT: cohort})
    return [cohort, said], kept


def report_value(
    parameters: Parameters, size: int, value: int, read: Read, memory: Memory, period: int
) -> tuple[str, Memory]:
    """Return the bits of a report on one of a list of values, and the memory to keep."""
    return _report(parameters, size, 1 << value, read, memory)


def _report(parameters: Parameters, bits: int, pattern: int, read: Read, memory: Memory) -> tuple[str, Memory]:
    flip, zero, one = _thresholds(parameters)
    permanent, kept = remembered(memory, pattern, bits, flip, read)
    return bits_again(permanent, bits, zero, one, read), kept


def draw_once(parameters: Parameters, size: int, text: str, read: Read) -> list[int | str]:
    """Return a cohort drawn for this report, and a permanent response that is not kept."""
    cohort, bits = below(parameters["cohorts"], read), parameters["bits"]
    pattern = bloom(text, cohort, bits, parameters["hashes"])
    return [cohort, as_digits(permanent_response(pattern, bits, parameters["threshold_flip"], read), bits)]


def chances(threshold_flip: int, threshold_zero: int, threshold_one: int) -> tuple[Fraction, Fraction]:
    """Return p* and q*: how often a report shows a 1 where the pattern has a 0, and where it has a 1."""
    kept = WHOLE - threshold_flip
    return (
        Fraction(kept * threshold_zero + threshold_flip * threshold_one, WHOLE**2),
        Fraction(kept * threshold_one + threshold_flip * threshold_zero, WHOLE**2),
    )


def ratio(hashes: int, threshold_flip: int, threshold_zero: int, threshold_one: int) -> Fraction:
    """Return e^ε₁ = (q*(1 − p*)/(p*(1 − q*)))^h: of one report, if another text were the true one.

    Proof. Bits are independent, and only those in which the patterns A and B differ count. A bit of A alone multiplies
    P(r | A)/P(r | B) by q*/p* if r has a 1 there, else by (1 − q*)/(1 − p*); a bit of B alone by p*/q*, or by
    (1 − p*)/(1 − q*). For q* > p*, r is worst with a 1 in each of the a bits of A alone and a 0 in each of the b bits
    of B alone: (q*/p*)^a·((1 − p*)/(1 − q*))^b. Both factors are 1 or more, and a ≤ |A| ≤ h, b ≤ |B| ≤ h, also where
    hashes of a text meet and it sets fewer bits. If k ≥ 2h there are disjoint patterns of h bits, 2h bits differ, and
    it is attained. For q* < p* all factors are turned over. The cohort is drawn without looking at the text.
    """
    return ratio_after(1, hashes, threshold_flip, threshold_zero, threshold_one)


def ratio_after(reports: int, hashes: int, threshold_flip: int, threshold_zero: int, threshold_one: int) -> Fraction:
    """Return e^ε of so many reports of a device that remembers and has **one text that never changes**.

    Proof. The permanent response keeps a bit that the text sets with chance 1 − φ, and sets another with chance φ.
    `unchanged_bits_ratio` has the worst reports for one bit of each kind. As for one report, patterns differ in h bits
    of each kind at most, so it is that to the power of h:
    ((1 − φ)q^T + φp^T)/((1 − φ)p^T + φq^T), times the same with 1 − p for q and 1 − q for p. For many reports it tends
    to `ratio_for_ever`.
    """
    return unchanged_bits_ratio(*_layers(threshold_flip, threshold_zero, threshold_one), reports) ** hashes


def ratio_for_ever(hashes: int, threshold_flip: int) -> Fraction:
    """Return e^ε∞ = ((1 − φ)/φ)^2h: of any number of reports of a device that has **one text that never changes**.

    Proof. All its reports are drawn from one permanent response, and that is a report with p = φ and q = 1 − φ.
    """
    return Fraction(WHOLE - threshold_flip, threshold_flip) ** (2 * hashes)


def ratio_if_changing(
    reports: int, bits: int, hashes: int, threshold_flip: int, threshold_zero: int, threshold_one: int
) -> Fraction | None:
    """Return a bound on e^ε of so many reports of a device that remembers, **whatever texts it has and when**.

    It is e^ε₁·(max(q/p, (1 − p)/(1 − q)))^(k(T − 1)), as `changing_bits_ratio` shows; None if that is unbounded, or
    beyond all use. How many different texts there were does not bound the loss: e^(D·ε∞) for D texts is wrong, and the
    tests have histories that break it.
    """
    layers = _layers(threshold_flip, threshold_zero, threshold_one)
    return changing_bits_ratio(*layers, bits, reports, pairs=hashes, most=MOST_POWER)


def _layers(threshold_flip: int, threshold_zero: int, threshold_one: int) -> tuple[Chances, Chances]:
    """Return 1 − φ and φ, and q and p."""
    flip, zero, one = (Fraction(threshold, WHOLE) for threshold in (threshold_flip, threshold_zero, threshold_one))
    return (1 - flip, flip), (one, zero)


_FLIP: Final = {"threshold_flip": range(1, WHOLE // 2)}
"""Never 0, or a report could be impossible for one text and possible for another."""
_SHOW: Final = {"threshold_zero": range(WHOLE), "threshold_one": range(1, WHOLE + 1)}
_TEXT: Final = {
    "bits": range(2, MOST_BITS + 1), "hashes": range(1, MOST_HASHES + 1), "cohorts": range(1, MOST_COHORTS + 1),
}  # fmt: skip


def _after(parameters: Parameters, bits: int, hashes: int, reports: int) -> tuple[Fraction, Fraction | None]:
    thresholds = _thresholds(parameters)
    unchanged = (
        ratio_after(reports, hashes, *thresholds)
        if reports * hashes <= MOST_CURVE
        else ratio_for_ever(hashes, parameters["threshold_flip"])
    )
    return unchanged, ratio_if_changing(reports, bits, hashes, *thresholds)


def _hashes(parameters: Parameters) -> int:
    if 2 * parameters["hashes"] > parameters["bits"]:
        raise TaskRefused("There must be twice as many bits as hashes, or more.")
    return parameters["hashes"]


def _thresholds(parameters: Parameters) -> tuple[int, int, int]:
    return parameters["threshold_flip"], parameters["threshold_zero"], parameters["threshold_one"]


RAPPOR_TEXT: Final[Mapping[str, Rule[str] | MemoryRule[str]]] = {
    "rappor": MemoryRule(
        ranges=lambda size: {**_TEXT, **_FLIP, **_SHOW},
        ratio=lambda parameters, size: ratio(_hashes(parameters), *_thresholds(parameters)),
        more={UNCHANGED: lambda parameters, size: ratio_for_ever(_hashes(parameters), parameters["threshold_flip"])},
        draw=report_text,
        after=lambda parameters, size, reports: _after(parameters, parameters["bits"], _hashes(parameters), reports),
    ),
    "rappor-once": Rule(
        ranges=lambda size: {**_TEXT, **_FLIP},
        ratio=lambda parameters, size: ratio_for_ever(_hashes(parameters), parameters["threshold_flip"]),
        draw=draw_once,
    ),
}
"""For any text."""

RAPPOR_VALUES: Final[Mapping[str, MemoryRule[int]]] = {
    "basic-rappor": MemoryRule(
        ranges=lambda count: {**_FLIP, **_SHOW},
        ratio=lambda parameters, count: ratio(1, *_thresholds(parameters)),
        more={UNCHANGED: lambda parameters, count: ratio_for_ever(1, parameters["threshold_flip"])},
        draw=report_value,
        after=lambda parameters, count, reports: _after(parameters, count, 1, reports),
    ),
}
"""For one of a list of values; the one-time form is `unary` with thresholds 2^64 − T and T."""
