"""What holds however questions were chosen, because little was told: a count of all that could have been told.

If all that an analyst has seen of a sample is one of W transcripts, the next question is one of W that are fixed in
advance (the analyst's own coins are fixed first), each of which errs by more than h with probability 2·e^(−2nh²) at
most. So the one that is asked errs by more with probability 2W·e^(−2nh²) at most. No privacy is needed, and none given.

Source:
    Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015 (Generalization in adaptive data analysis and holdout reuse),
    section 4; for answers that mostly were expected, Rogers, Roth, Smith, Srebro, Thakkar and Woodworth 2020.
"""

from fractions import Fraction

from lapwing.exact.bounds import enclose
from lapwing.exact.floats import float_down, float_up
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, non_negative, positive, probability


def description_half_width(people: int, bits: Number, chance: Number) -> float:
    """Return an h that a question's sample mean is within of the population's, but with the chance; rounded up.

    √((bits·ln 2 + ln(2/chance))/(2n)), for values in [0, 1].

    Args:
        people: n ≥ 1.
        bits: Told of the sample before the question was chosen, ≥ 0.
        chance: Above 0 and below 1.
    """
    n = Fraction(whole_number(people, "people", least=1))
    told, beta = non_negative(bits, "bits"), probability(chance, "chance")
    width = enclose(lambda m, b, c: ((b * b.const_log2() + (2 / c).log()) / (2 * m)).sqrt(), n, told, beta)
    return float_up(width.upper)


def description_bits(people: int, half_width: Number, chance: Number) -> float:
    """Return how many bits of a sample you may release before a question may err by more; rounded down, at least 0.

    The inverse of `description_half_width`, (2n·h² − ln(2/chance))/ln 2: a rule for when to stop. If no more was
    released, another question of the plain sample is within h of the population, except with the chance. An answer that
    was rounded to a grid counts log₂ of its points, and a yes or no counts one bit.

    Args:
        people: n ≥ 1.
        half_width: h > 0.
        chance: Above 0 and below 1.
    """
    n = Fraction(whole_number(people, "people", least=1))
    h, beta = positive(half_width, "half_width"), probability(chance, "chance")
    left = enclose(lambda m, w, c: (2 * m * w * w - (2 / c).log()) / m.const_log2(), n, h, beta)
    return max(0.0, float_down(left.lower))
