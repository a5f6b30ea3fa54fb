"""Whether a δ is too large to protect anybody, by public facts alone.

With probability δ anything may happen. Publishing the row of one person in n, drawn at random, is (0, 1/n)-DP: with
δ ≥ 1/n the promise does not exclude it. With δ ≥ 1/100 each person is given away whole with a chance of one percent,
however many there are. Sources: Dwork and Roth 2014, section 2.3; the count of people is the catalog's `people`, a
public constant, never the data's.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Final, final

from lapwing.catalog import spelling
from lapwing.languages import Figure, Phrase, say

ABOVE_ONE_IN_PEOPLE: Final = "delta_above_one_in_people"
"""δ is at least one in the number of people."""
ABOVE_ONE_PERCENT: Final = "delta_above_one_percent"
"""δ is at least one in a hundred."""
ONE_PERCENT: Final = Fraction(1, 100)


@final
class DeltaWarning(str):
    """A warning about δ: a sentence for people, with a code for programs."""

    code: str
    sentence: Phrase

    def __new__(cls, sentence: Phrase, code: str) -> "DeltaWarning":
        """Return a warning."""
        warning = super().__new__(cls, sentence)
        warning.code, warning.sentence = code, sentence
        return warning


def delta_warnings(delta: Fraction, people: Iterable[int | None]) -> tuple[DeltaWarning, ...]:
    """Return what makes a δ too large: one warning, or none.

    Args:
        people: How many people each table is about, as far as that is public: of n of them 1/n is the limit.
    """
    most = max((count for count in people if count is not None), default=None)
    shown = Figure(spelling.number(delta))
    if most is not None and delta >= Fraction(1, most):
        count = Figure(most)
        if delta == Fraction(1, most):
            sentence = say(
                "δ = {delta} is one in {people} people, which would allow giving away one person's rows whole; "
                "choose a smaller one.",
                delta=shown,
                people=count,
            )
        else:
            sentence = say(
                "δ = {delta} is above one in {people} people, which would allow giving away one person's rows "
                "whole; choose a smaller one.",
                delta=shown,
                people=count,
            )
        return (DeltaWarning(sentence, ABOVE_ONE_IN_PEOPLE),)
    if delta >= ONE_PERCENT:
        sentence = say(
            "δ = {delta} is large, which would allow giving away each person's rows with a chance of 1 % or more; "
            "choose one far below one in the number of people.",
            delta=shown,
        )
        return (DeltaWarning(sentence, ABOVE_ONE_PERCENT),)
    return ()
