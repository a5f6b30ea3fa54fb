"""How easy English sentences are to read, by Flesch's formula.

Reading ease is 206.835 − 1.015 · words − 84.6 · syllables / words, of one sentence. Plain English has about 60, a paper
30. Syllables are the parts at which Pyphen would hyphenate a word. Its rules come with it, so nothing is downloaded. It
finds too few ("idea" has one): figures are too high, and compare only with each other.

Source: Flesch 1948, A new readability yardstick.
"""

import math
import re
from collections.abc import Callable, Iterable
from functools import cache
from statistics import median
from typing import Final

WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@cache
def _places() -> Callable[[str], list[int]]:
    try:
        from pyphen import Pyphen
    except ModuleNotFoundError:
        raise SystemExit(
            "The package pyphen is missing. Run `make check-quick`, which installs what the lock has."
        ) from None
    places: Callable[[str], list[int]] = Pyphen(lang="en_US").positions
    return places


@cache
def syllables(word: str) -> int:
    """Return how many parts a word has where it may be hyphenated."""
    return 1 + len(_places()(word))


def reading_ease(sentence: str) -> float | None:
    """Return the reading ease of a sentence; None for one without words."""
    words = WORD.findall(sentence.lower())
    if not words:
        return None
    return 206.835 - 1.015 * len(words) - 84.6 * sum(map(syllables, words)) / len(words)


def median_ease(sentences: Iterable[str]) -> int:
    """Return the median of the reading ease of sentences, in whole points, rounded down."""
    return math.floor(median(ease for each in sentences if (ease := reading_ease(each)) is not None))
