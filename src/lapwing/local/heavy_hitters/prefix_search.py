"""The search for unknown words in reports of prefixes, and estimates for the words that it finds."""

import codecs
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate
from lapwing.local.frequencies.randomizer import Reports
from lapwing.local.frequencies.variance import Alike
from lapwing.local.heavy_hitters.prefix_extending import PrefixExtending
from lapwing.local.shuffling.binomial import Binomial
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability

MOST_TRIED: Final = 1 << 20
"""Prefixes of one length."""
KEPT: Final = 64

Possible = Callable[[bytes, bool], bool]
"""Whether a word may begin with some bytes, or be them if they are all; with zeros behind."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWords:
    """Words that more respondents have than noise explains.

    Args:
        words: Those with most support first.
        estimate: Of their shares, from other reports than those that found them, unless there were none; None if there
            are no words.
        checked: Whether there were. Without, the shares belong to the words that looked largest, and so are too large
            on average; intervals then miss more often than they say.
        tried: How many whole words were looked at.
    """

    words: tuple[str, ...]
    estimate: FrequencyEstimate | None
    checked: bool
    tried: int


def find_words(
    mechanism: PrefixExtending, reports: Reports, *, keep: int = KEPT, confidence: Number = 0.95
) -> FoundWords:
    """Return the words that reports of prefixes show.

    A whole word is found if its support exceeds the support of all words tried that nobody has, with this confidence
    together. Rare words are not found, and neither is a word whose prefix was not among the `keep` best of its length.

    Raises:
        InvalidParameter: For reports of another mechanism, or if a group has none.
    """
    checked = mechanism.checked(reports)
    best, supports, tried = search(mechanism, checked, keep, is_text)
    sizes = mechanism.sizes
    last = len(sizes) - 1 - mechanism.checking
    finding = _of_groups(checked, range(last, last + 1))
    least = _noise_ends(mechanism.pair.q, len(finding), tried, confidence)
    chosen = [word for word, support in zip(best, supports, strict=True) if support >= least]
    words = tuple(word.rstrip(b"\0").decode("utf-8") for word in chosen)
    telling = _of_groups(checked, range(last + 1, len(sizes))) if mechanism.checking else finding
    estimate = FrequencyEstimate(
        values=words,
        mechanism=Alike(len(words), mechanism.pair),
        reports=len(telling),
        supports=mechanism.supports(telling, chosen),
    )
    return FoundWords(words=words, estimate=estimate if words else None, checked=mechanism.checking > 0, tried=tried)


def search(
    mechanism: PrefixExtending, reports: NDArray[np.int64], keep: int, possible: Possible
) -> tuple[list[bytes], NDArray[np.int64], int]:
    """Return the whole words with most support in the group that finds them, their supports, and how many were tried.

    Args:
        reports: Checked.
        keep: How many prefixes of each length are extended.
        possible: Leaves out what nobody has.
    """
    whole_number(keep, "keep", least=1, most=MOST_TRIED)
    sizes = mechanism.sizes[: len(mechanism.sizes) - mechanism.checking]
    kept, tried, supports, before = [0], [b""], np.zeros(1, dtype=np.int64), 0
    for group, bits in enumerate(sizes):
        if len(kept) << (bits - before) > MOST_TRIED:
            raise InvalidParameter(
                f"More than {MOST_TRIED:,} prefixes would be tried; keep fewer, or shorten the steps."
            )
        longer = [number << (bits - before) | more for number in kept for more in range(1 << (bits - before))]
        written = [_written(number, bits) for number in longer]
        may_be = [i for i, data in enumerate(written) if possible(data[: bits // 8], group == len(sizes) - 1)]
        longer, tried = [longer[i] for i in may_be], [written[i] for i in may_be]
        supports = mechanism.supports(_of_groups(reports, range(group, group + 1)), tried)
        order = np.argsort(-supports, kind="stable")[:keep]
        kept, before = [longer[i] for i in order], bits
    return [tried[i] for i in order], supports[order], len(tried)


def is_text(data: bytes, whole: bool) -> bool:
    """Tell whether a text in UTF-8 and form NFC, padded with zeros, may begin with some bytes, or be them all."""
    text = data.rstrip(b"\0")
    if b"\0" in text or (data and not text):
        return False
    try:
        said = codecs.getincrementaldecoder("utf-8")().decode(text, final=whole or len(text) < len(data))
    except UnicodeDecodeError:
        return False
    return not whole or unicodedata.is_normalized("NFC", said)


def _written(number: int, bits: int) -> bytes:
    """Return the bits of a number as `prefix` returns them."""
    return (number << -bits % 8).to_bytes(-(-bits // 8), "big")


def _of_groups(reports: NDArray[np.int64], groups: range) -> NDArray[np.int64]:
    """Return the reports of some groups.

    Raises:
        InvalidParameter: If there are none.
    """
    chosen = reports[np.isin(reports[:, 0], groups)]
    if not len(chosen):
        raise InvalidParameter("A group has no reports; ask more respondents, or take fewer groups.")
    return chosen


def _noise_ends(q: Fraction, reports: int, tried: int, confidence: Number) -> int:
    """Return a number of supports that none of the words tried that nobody has reaches, with this confidence.

    Whoever has another word supports one with probability q. So its supports have a binomial law, whatever was tried
    before: earlier lengths were seen by other respondents.
    """
    law, allowed = Binomial.of(reports, q), (1 - float(probability(confidence, "confidence"))) / tried
    reaching = law.above + np.cumsum(law.mass[::-1])[::-1]  # falls
    return law.first + int(np.count_nonzero(reaching > allowed))
