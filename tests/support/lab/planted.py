"""Planted bugs that several experiments must notice."""

from fractions import Fraction

from lapwing.lab.course import noise_of
from lapwing.mechanisms import DiscreteLaplace
from lapwing.session import Session


def a_tenth_too_small(session: Session, question: str, epsilon: Fraction) -> DiscreteLaplace:
    """Return the noise of the engine's answer, with a scale that is a tenth too small."""
    return DiscreteLaplace(scale=noise_of(session, question, epsilon).scale * 9 / 10)
