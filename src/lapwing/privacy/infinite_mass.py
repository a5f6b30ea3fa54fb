"""The mass at +∞ of a composition: the chance that some use gives away all."""

from fractions import Fraction
from typing import NamedTuple

from lapwing.exact.bounds import Enclosure, enclose, enclose_tightly
from lapwing.privacy.loss_laws import Laws, LossLaw


class Lost(NamedTuple):
    """What bounds the mass at +∞ of a composition; taking laws is additive.

    The mass is that of all outcomes, less that of the finite ones: T·(1 − Π(1 − I/t)^count) for laws of total mass t,
    of which I is at +∞, and T = Π t^count. The t are 1, or differ from 1 by less than 2⁻⁹⁰ from directed rounding:
    upwards above, where I/t ≤ I, and downwards below, where I/t ≥ I.

    Args:
        kept: Bounds on the sum of count·log(1 − I), None if some bound on an I is 1.
        uses: The sum of all counts.
    """

    kept: Enclosure | None
    uses: int

    def and_of(self, upper: Laws, lower: Laws) -> "Lost":
        """Return what bounds the mass with more laws, given from above and from below."""
        total, uses = self.kept, self.uses + sum(count for _, count in upper)
        for above, below in zip(upper, lower, strict=True):
            if total is None or max(above[0].infinite, below[0].infinite) >= 1:
                return Lost(None, uses)
            if above[0].infinite or below[0].infinite:
                total = Enclosure(total.lower + _log_kept(*above).lower, total.upper + _log_kept(*below).upper)
        return Lost(total, uses)

    def infinite(self) -> Enclosure:
        """Return bounds on the mass at +∞."""
        if self.kept is None:
            return Enclosure(Fraction(0), Fraction(1))
        if self.kept.lower == 0:
            return Enclosure(Fraction(0), Fraction(0))
        drift = self.uses * Fraction(1, 1 << 89)
        least = enclose(lambda x: -x.expm1(), self.kept.upper, bits=160).lower * max(Fraction(0), 1 - drift)
        most = enclose(lambda x: -x.expm1(), self.kept.lower, bits=160).upper * (1 + 2 * drift)
        return Enclosure(max(Fraction(0), least), min(Fraction(1), most))


NOTHING_LOST = Lost(Enclosure(Fraction(0), Fraction(0)), 0)


def _log_kept(law: LossLaw, count: int) -> Enclosure:
    """Bound count·log(1 − I)."""
    return enclose_tightly(lambda i, n: n * (-i).log1p(), law.infinite, Fraction(count), bits=160)
