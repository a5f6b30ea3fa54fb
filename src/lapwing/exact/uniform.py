"""A uniform real number of which only the bits that matter are ever drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.exact.bounds import Bracket
from lapwing.exact.entropy import Entropy, read_exactly

_REVEAL_BYTES = 8


@final
@dataclass(slots=True, kw_only=True)
class LazyUniform:
    """A number U, uniform on [0, 1), known to lie in [prefix, prefix + 1) / 2^bits.

    The bits behind the prefix are independent fair coins that nobody has looked at: whatever was decided from the
    prefix alone, `reveal` continues the same number. This is the one mutable object among the samplers, and it never
    leaves the call that made it.
    """

    prefix: int
    bits: int
    entropy: Entropy

    def reveal(self) -> None:
        """Draw the next 64 bits of the same number."""
        more = int.from_bytes(read_exactly(self.entropy, _REVEAL_BYTES), "little")
        self.prefix = self.prefix << 8 * _REVEAL_BYTES | more
        self.bits += 8 * _REVEAL_BYTES

    def below(self, bracket: Callable[[int], Bracket]) -> bool:
        """Decide whether U < p, where bracket(bits) encloses 2^bits · p, revealing bits of U until it is certain.

        U lies in [prefix, prefix + 1) / 2^bits, so U < p if prefix + 1 is at most the lower end, and U ≥ p if prefix
        is at least the upper end. Nothing else ends the search; with brackets whose width stays bounded as the bits
        grow, it ends for every U but p itself.
        """
        while True:
            lower, upper = bracket(self.bits)
            if self.prefix + 1 <= lower:
                return True
            if self.prefix >= upper:
                return False
            self.reveal()

    def quantile(self, cumulative: Callable[[int, int], Bracket]) -> int:
        """Return the outcome F⁻¹(U) = min {k : U < F(k)}, exactly, where cumulative(k, bits) encloses 2^bits · F(k).

        Two outcomes around the answer are found by doubling, then halved apart. Each step asks whether U < F(k), and
        the question is answered with certainty (`below`), so the search cannot go wrong and no tail is cut off: its
        length is the logarithm of the answer.
        """

        def below(outcome: int) -> bool:
            return self.below(lambda bits: cumulative(outcome, bits))

        step = 1
        while below(-step):
            step *= 2
        under = -step
        step = 1
        while not below(step):
            step *= 2
        over = step
        while over - under > 1:
            middle = (under + over) // 2
            under, over = (under, middle) if below(middle) else (middle, over)
        return over

    @property
    def lower(self) -> Fraction:
        """The least value that the number can still have."""
        return Fraction(self.prefix, 1 << self.bits)

    @property
    def upper(self) -> Fraction:
        """A value that the number stays below."""
        return Fraction(self.prefix + 1, 1 << self.bits)
