"""Texts in `lapwing local`: tasks that ask for any text, and the shares of candidates or of words that are found."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

import lapwing as lw
from lapwing.cli.console import note
from lapwing.cli.local.ranges import check_whole
from lapwing.errors import InvalidParameter
from lapwing.local.client import MOST_BYTES

if TYPE_CHECKING:
    from lapwing.local import Collected, CountMeanSketch, FrequencyEstimate, HadamardSketch, Mechanism, PrefixExtending
    from lapwing.local.client import Text

MOST_CANDIDATES: Final = 1 << 24
"""Bytes of a file of candidates."""

Candidates = list[str] | None


def _sketched(
    collected: "Collected[CountMeanSketch | HadamardSketch]", candidates: Candidates, confidence: float
) -> "FrequencyEstimate":
    if candidates is None:
        raise InvalidParameter("A sketch names no words by itself; give a file of them: --candidates words.txt.")
    return lw.local.estimate_sketch(collected.mechanism, collected.reports, candidates)


def _found(
    collected: "Collected[PrefixExtending]", candidates: Candidates, confidence: float
) -> "FrequencyEstimate | None":
    if candidates is not None:
        raise InvalidParameter("Reports of prefixes need no candidates: leave out --candidates.")
    found = lw.local.find_words(collected.mechanism, collected.reports, confidence=confidence)
    note("found", f"{len(found.words):,} words of {found.tried:,} tried; rarer ones look like noise.")
    whose = "other respondents than found the words" if found.checked else "those who found the words, so too large"
    note("shares", f"among {whose}.")
    return found.estimate


ESTIMATES: Final[Mapping[str, Callable[..., "FrequencyEstimate | None"]]] = {
    "sketch": _sketched,
    "hadamard": _sketched,
    "prefixes": _found,
}
"""How reports of each mechanism for texts are read, given candidates and a confidence."""

MAKERS: Final[Mapping[str, Callable[[Fraction, int], "Mechanism"]]] = {
    "sketch": lambda epsilon, size: lw.local.CountMeanSketch.for_epsilon(epsilon),
    "hadamard": lambda epsilon, size: lw.local.HadamardSketch.for_epsilon(epsilon),
    "prefixes": lambda epsilon, size: lw.local.PrefixExtending.for_epsilon(epsilon, size),
}
"""The mechanisms for texts, at an ε and for so many bytes."""


def text_of(size: int) -> "Text":
    """Return any text of so many bytes, as what may be answered.

    Raises: InvalidParameter for too few or too many.
    """
    check_whole("--text", size, 1, MOST_BYTES)
    return lw.local.client.Text(size)


def mechanism_for(name: str, epsilon: Fraction, size: int) -> "Mechanism":
    """Return a mechanism for texts; the best is the one that finds words.

    Raises: InvalidParameter if it is for something else.
    """
    wanted = "prefixes" if name == "best" else name
    if wanted not in MAKERS:
        raise InvalidParameter(f"The mechanism {name} is not for texts; take one of {', '.join(MAKERS)}.")
    return MAKERS[wanted](epsilon, size)


def candidates_of(file: Path | None) -> Candidates:
    """Read words, one a line; empty lines are passed over.

    Raises: InvalidParameter if the file is too long, or not in UTF-8.
    """
    if file is None:
        return None
    with file.open("rb") as opened:
        data = opened.read(MOST_CANDIDATES + 1)
    if len(data) > MOST_CANDIDATES:
        raise InvalidParameter(f"The candidates have more than {MOST_CANDIDATES:,} bytes; list fewer.")
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise InvalidParameter("The candidates are not a text in UTF-8, one word a line.") from None
    return [word for word in (line.rstrip("\r") for line in lines) if word]
