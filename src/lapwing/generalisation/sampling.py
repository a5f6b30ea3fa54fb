"""How far the mean of a sample is from the population's, for a question that was fixed beforehand."""

from fractions import Fraction

from lapwing.exact.bounds import enclose
from lapwing.exact.floats import float_up
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability


def hoeffding_half_width(people: int, chance: Number) -> float:
    """Return an h with P(|sample mean − population mean| > h) ≤ chance, for values in [0, 1]; rounded up.

    √(ln(2/chance)/(2n)), for any distribution of the values.

    Args:
        people: n ≥ 1.
        chance: Above 0 and below 1.

    Source:
        Hoeffding 1963, Theorem 2.
    """
    whole_number(people, "people", least=1)
    return float_up(deviation_up(Fraction(people), 2 / probability(chance, "chance")))


def deviation_up(people: Fraction, ways_over_chance: Fraction) -> Fraction:
    """Return √(ln(ways/chance)/(2n)), rounded up: what none of so many sides is beyond, but with the chance.

    The logarithm is of a rational that may be far beyond all floats.
    """
    return enclose(lambda n, w: (w.log() / (2 * n)).sqrt(), people, ways_over_chance).upper
