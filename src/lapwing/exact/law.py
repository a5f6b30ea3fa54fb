"""What a table needs to know of a law on the integers: brackets on its distribution function, at any precision."""

from typing import NamedTuple, Protocol

from lapwing.exact.bounds import Bracket
from lapwing.exact.uniform import LazyUniform


class Boundaries(NamedTuple):
    """Brackets on 2^64 · F(first), 2^64 · F(first + 1), and so on without a gap."""

    first: int
    brackets: list[Bracket]


class Law(Protocol):
    """A probability law on the integers, with distribution function F(k) = P(X ≤ k)."""

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Return integers lower ≤ 2^bits · F(outcome) ≤ upper, both within 0 … 2^bits.

        upper − lower stays bounded as `bits` grows, so more bits always tell more.
        """
        ...

    def boundaries(self) -> Boundaries:
        """Return brackets for all outcomes but a tail of probability about 2^−64 on either side."""
        ...


def within(bracket: Bracket, bits: int) -> Bracket:
    """Use that a probability lies between 0 and 1."""
    return Bracket(max(bracket.lower, 0), min(bracket.upper, 1 << bits))


def complement(bracket: Bracket, bits: int) -> Bracket:
    """Return the bracket of 1 − p from the bracket of p."""
    return Bracket((1 << bits) - bracket.upper, (1 << bits) - bracket.lower)


def quantile(law: Law, uniform: LazyUniform) -> int:
    """Return the outcome F⁻¹(U) = min {k : U < F(k)}, exactly, for every U but a set of probability 0.

    Two outcomes around the answer are found by doubling, then halved apart. Each step asks whether U < F(k), and the
    question is answered with certainty (`_below`), so the search cannot go wrong and no tail is cut off: its length
    is the logarithm of the answer.
    """
    step = 1
    while _below(uniform, law, -step):
        step *= 2
    under = -step
    step = 1
    while not _below(uniform, law, step):
        step *= 2
    over = step
    while over - under > 1:
        middle = (under + over) // 2
        if _below(uniform, law, middle):
            over = middle
        else:
            under = middle
    return over


def _below(uniform: LazyUniform, law: Law, outcome: int) -> bool:
    """Decide whether U < F(outcome)."""
    return uniform.below(lambda bits: law.cumulative(outcome, bits))
