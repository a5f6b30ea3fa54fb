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

Source: Erlingsson, Pihur and Korolova 2014; encoding and known answers of google/rappor, client/python and client/cpp.
"""

import hashlib
import hmac
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .refusals import AnswerRefused, TaskRefused
from .rules import UNCHANGED, Memory, MemoryRule, Parameters, Rule, either
from .words import WHOLE, Read, below, coin

MOST_BITS: Final = 256
"""A byte of the digest picks a bit."""
MOST_HASHES: Final = 16
"""A digest has so many bytes."""
MOST_COHORTS: Final = 1 << 10
"""Every report names the device's cohort, for ever: with many cohorts, few devices share one, and it is a name."""
SECRET_BITS: Final = 32
"""Of a pattern of which the permanent response may come from a secret: a byte of HMAC-SHA256 for each."""

MOST_CURVE: Final = 1 << 10
"""Reports times hashes up to which a device computes `ratio_after`; for more, `ratio_for_ever` is near."""
MOST_POWER: Final = 1 << 12
"""Bits times reports up to which a bound for changing texts is computed; a larger one would say nothing."""

_COHORT: Final = "cohort"
_KEPT: Final = "permanent"
_DAMAGED: Final = "What the device kept for this task is damaged; nothing was sent."


def bloom(text: str, cohort: int, bits: int, hashes: int) -> int:
    """Return the pattern of a text in a cohort; bit i of the integer is bit i of the pattern."""
    digest = hashlib.md5(cohort.to_bytes(4, "big") + text.encode("utf-8"), usedforsecurity=False).digest()
    pattern = 0
    for byte in digest[:hashes]:
        pattern |= 1 << byte % bits
    return pattern


def flipped(pattern: int, bits: int, threshold_flip: int, read: Read) -> int:
    """Return a permanent response: each bit of the pattern, flipped with chance threshold_flip / 2^64."""
    for bit in range(bits):
        pattern ^= coin(threshold_flip, read) << bit
    return pattern


def shown(permanent: int, bits: int, threshold_zero: int, threshold_one: int, read: Read) -> int:
    """Return an instantaneous response: a 1 with chance q for each bit that is set, with chance p for the others."""
    said = 0
    for bit in range(bits):
        said |= coin(threshold_one if permanent >> bit & 1 else threshold_zero, read) << bit
    return said


def permanent_from_secret(pattern: int, bits: int, noisy: int, secret: bytes, prefix: bytes = b"") -> int:
    """Return the permanent response that the published clients compute, with f = noisy / 128.

    Guarantee: none that holds for ever. It is as good as a random one while nobody can tell HMAC-SHA256 under this
        secret from a random function: the secret must be 32 random bytes or more, kept on the device, and `prefix` must
        be different for each question. Whoever learns the secret, at any later time, learns which bits were flipped.
    Args: bits: 32 at most. noisy: f in 128ths. prefix: of the message: nothing in client/python, and a byte 1 with the
        name of the metric in client/cpp.
    """
    message = prefix + pattern.to_bytes(4, "big")
    for bit, byte in enumerate(hmac.new(secret, message, "sha256").digest()[:bits]):
        if byte >> 1 < noisy:
            pattern = pattern & ~(1 << bit) | (byte & 1) << bit
    return pattern


def remembered(memory: Memory, pattern: int, bits: int, threshold_flip: int, read: Read) -> tuple[int, Memory]:
    """Return the permanent response of a pattern, drawn if none is kept yet, and the memory that has it."""
    known, name = memory.get(_KEPT, {}), as_digits(pattern, bits)
    if not isinstance(known, Mapping) or (_KEPT in memory and not known):
        raise AnswerRefused(_DAMAGED)
    kept = known.get(name)
    if kept is None:
        drawn = flipped(pattern, bits, threshold_flip, read)
        return drawn, {**memory, _KEPT: {**known, name: as_digits(drawn, bits)}}
    if not isinstance(kept, str) or len(kept) != len(name) or not set(kept) <= set("0123456789abcdef"):
        raise AnswerRefused(_DAMAGED)
    return int.from_bytes(bytes.fromhex(kept), "little"), memory


def report_text(
    given: Parameters, size: int, text: str, read: Read, memory: Memory, period: int
) -> tuple[list[int | str], Memory]:
    """Return the device's cohort and the bits of a report on a text, and the memory to keep."""
    cohort = memory.get(_COHORT) if memory else below(given["cohorts"], read)
    if not isinstance(cohort, int) or not 0 <= cohort < given["cohorts"] or (memory and _KEPT not in memory):
        raise AnswerRefused(_DAMAGED)  # one that has a part of its memory must not draw the other again
    pattern = bloom(text, cohort, given["bits"], given["hashes"])
    said, kept = _said(given, given["bits"], pattern, read, {**memory, _COHORT: cohort})
    return [cohort, said], kept


def report_value(
    given: Parameters, size: int, value: int, read: Read, memory: Memory, period: int
) -> tuple[str, Memory]:
    """Return the bits of a report on one of a list of values, and the memory to keep."""
    return _said(given, size, 1 << value, read, memory)


def _said(given: Parameters, bits: int, pattern: int, read: Read, memory: Memory) -> tuple[str, Memory]:
    permanent, kept = remembered(memory, pattern, bits, given["threshold_flip"], read)
    return as_digits(shown(permanent, bits, given["threshold_zero"], given["threshold_one"], read), bits), kept


def draw_once(given: Parameters, size: int, text: str, read: Read) -> list[int | str]:
    """Return a cohort drawn for this report, and a permanent response that is not kept."""
    cohort, bits = below(given["cohorts"], read), given["bits"]
    pattern = bloom(text, cohort, bits, given["hashes"])
    return [cohort, as_digits(flipped(pattern, bits, given["threshold_flip"], read), bits)]


def as_digits(said: int, bits: int) -> str:
    """Return bits as hexadecimal digits: bit i is bit i mod 8 of byte ⌊i/8⌋."""
    return said.to_bytes(-(-bits // 8), "little").hex()


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
    p, q = chances(threshold_flip, threshold_zero, threshold_one)
    return either(q * (1 - p) / (p * (1 - q))) ** hashes


def ratio_after(reports: int, hashes: int, threshold_flip: int, threshold_zero: int, threshold_one: int) -> Fraction:
    """Return e^ε of so many reports of a device that remembers and has **one text that never changes**.

    Proof. Given its permanent response, the reports of a bit are independent. That m of T say 1 has, up to a factor,
    the chance (1 − φ)q^m(1 − q)^(T−m) + φp^m(1 − p)^(T−m) if the pattern has a 1, and the same with p and q exchanged
    if it has a 0. For q > p the ratio of the two grows with m. Patterns differ in h bits of each kind at most, and the
    worst reports are all ones in those of the one and all zeros in those of the other: to the power of h
    ((1 − φ)q^T + φp^T)/((1 − φ)p^T + φq^T), times the same with 1 − p for q and 1 − q for p. For T = 1 that is `ratio`;
    for many reports it tends to `ratio_for_ever`.
    """
    flip, zero, one = (Fraction(threshold, WHOLE) for threshold in (threshold_flip, threshold_zero, threshold_one))

    def worst(likelier: Fraction, other: Fraction) -> Fraction:
        seen, unseen = likelier**reports, other**reports
        return ((1 - flip) * seen + flip * unseen) / ((1 - flip) * unseen + flip * seen)

    return either(worst(one, zero) * worst(1 - zero, 1 - one)) ** hashes


def ratio_for_ever(hashes: int, threshold_flip: int) -> Fraction:
    """Return e^ε∞ = ((1 − φ)/φ)^2h: of any number of reports of a device that has **one text that never changes**.

    Proof. All its reports are drawn from one permanent response, and that is a report with p = φ and q = 1 − φ.
    """
    return Fraction(WHOLE - threshold_flip, threshold_flip) ** (2 * hashes)


def ratio_if_changing(
    reports: int, bits: int, hashes: int, threshold_flip: int, threshold_zero: int, threshold_one: int
) -> Fraction | None:
    """Return a bound on e^ε of so many reports of a device that remembers, **whatever texts it has and when**.

    It is e^ε₁·(max(q/p, (1 − p)/(1 − q)))^(k(T − 1)); None if that is unbounded, or beyond all use. How many different
    texts there were does not bound the loss: e^(D·ε∞) for D texts is wrong, and the tests have histories that break it.
    Proof. The first report by itself is within e^ε₁. Given what was sent before, a later one is drawn from a mixture of
    permanent responses, whatever the history was. Two of these differ in k bits at most, in each of which the chances
    differ by that factor at most; and so do two mixtures.
    """
    if reports == 1:
        return ratio(hashes, threshold_flip, threshold_zero, threshold_one)
    if threshold_zero == 0 or threshold_one == WHOLE or bits * (reports - 1) > MOST_POWER:
        return None
    ones, zeros = Fraction(threshold_one, threshold_zero), Fraction(WHOLE - threshold_zero, WHOLE - threshold_one)
    again = max(either(ones), either(zeros)) ** (bits * (reports - 1))
    return ratio(hashes, threshold_flip, threshold_zero, threshold_one) * again


_FLIP: Final = {"threshold_flip": range(1, WHOLE // 2)}
"""Never 0, or a report could be impossible for one text and possible for another."""
_SHOW: Final = {"threshold_zero": range(WHOLE), "threshold_one": range(1, WHOLE + 1)}
_TEXT: Final = {
    "bits": range(2, MOST_BITS + 1), "hashes": range(1, MOST_HASHES + 1), "cohorts": range(1, MOST_COHORTS + 1),
}  # fmt: skip


def _after(given: Parameters, bits: int, hashes: int, reports: int) -> tuple[Fraction, Fraction | None]:
    thresholds = _thresholds(given)
    unchanged = (
        ratio_after(reports, hashes, *thresholds)
        if reports * hashes <= MOST_CURVE
        else ratio_for_ever(hashes, given["threshold_flip"])
    )
    return unchanged, ratio_if_changing(reports, bits, hashes, *thresholds)


def _hashes(given: Parameters) -> int:
    if 2 * given["hashes"] > given["bits"]:
        raise TaskRefused("There must be twice as many bits as hashes, or more.")
    return given["hashes"]


def _thresholds(given: Parameters) -> tuple[int, int, int]:
    return given["threshold_flip"], given["threshold_zero"], given["threshold_one"]


RAPPOR_TEXT: Final[Mapping[str, Rule[str] | MemoryRule[str]]] = {
    "rappor": MemoryRule(
        ranges=lambda size: {**_TEXT, **_FLIP, **_SHOW},
        ratio=lambda given, size: ratio(_hashes(given), *_thresholds(given)),
        more={UNCHANGED: lambda given, size: ratio_for_ever(_hashes(given), given["threshold_flip"])},
        draw=report_text,
        after=lambda given, size, reports: _after(given, given["bits"], _hashes(given), reports),
    ),
    "rappor-once": Rule(
        ranges=lambda size: {**_TEXT, **_FLIP},
        ratio=lambda given, size: ratio_for_ever(_hashes(given), given["threshold_flip"]),
        draw=draw_once,
    ),
}
"""For any text."""

RAPPOR_VALUES: Final[Mapping[str, MemoryRule[int]]] = {
    "basic-rappor": MemoryRule(
        ranges=lambda count: {**_FLIP, **_SHOW},
        ratio=lambda given, count: ratio(1, *_thresholds(given)),
        more={UNCHANGED: lambda given, count: ratio_for_ever(1, given["threshold_flip"])},
        draw=report_value,
        after=lambda given, count, reports: _after(given, count, 1, reports),
    ),
}
"""For one of a list of values; the one-time form is `unary` with thresholds 2^64 − T and T."""
