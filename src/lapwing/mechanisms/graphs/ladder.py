"""Release a count near its true value, with as much noise as the graph at hand needs: the ladder.

Theory of operation. A count f of a graph (its triangles, say) may move far between neighbours in the worst graph, and
little in most. A ladder says how far, graph by graph: whole numbers I_0(g), I_1(g), … with
  (1) |f(g) − f(g')| ≤ I_0(g) for all neighbours g' of g, and
  (2) I_t(g) ≤ I_{t+1}(g') for all neighbours g, g' and all t.
The rung of a number x is r_g(x) = the least t with |x − f(g)| ≤ I_0(g) + … + I_{t−1}(g); only f(g) itself has rung 0.

Claim: |r_g(x) − r_g'(x)| ≤ 1 between neighbours. Proof. Let t = r_g(x). Then |x − f(g')| ≤ |x − f(g)| + |f(g) − f(g')|
≤ Σ_{s<t} I_s(g) + I_0(g') ≤ Σ_{s<t} I_{s+1}(g') + I_0(g') = Σ_{s<t+1} I_s(g'), by (2) and by (1) for g'. So r_g'(x) ≤
t + 1; and the other way round. ∎ So −min(r, T) is a score of sensitivity 1 on all integers of a public interval, and
the exponential mechanism chooses among them (`interval_exponential`), exactly. If a neighbour is two changes away, as
where an edge is replaced by another, the score moves by 2.

Ladders here, for one edge that is added or removed. Of a graph, a is the most neighbours that two nodes have in common
and b the largest degree.
  triangles          I_t = a + t. An edge closes as many triangles as its ends have neighbours in common, whether it is
                     there or not: (1). One edge more or less changes the neighbours that two nodes have in common by at
                     most 1 (it joins one of the two to the one other end): a ≤ a' + 1, which is (2).
  stars of k leaves  I_t = 2·C(b + t, k − 1). An edge between nodes of degrees x and y, itself left out, is in
                     C(x, k−1) + C(y, k−1) stars, and x, y ≤ b: (1). b ≤ b' + 1, hence (2).

Source:
    Zhang, Cormode, Procopiuc, Srivastava and Xiao 2015 (Private release of graph statistics using ladder functions),
    with ladders that need no number of nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb
from typing import ClassVar, Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.interval_exponential import IntervalExponential
from lapwing.mechanisms.parameters import scale_of_noise, whole_number
from lapwing.mechanisms.scores import bounded_range_loss, range_within
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss

_BITS: Final = 192
_FAR: Final = 1 << _BITS
"""Numbers between 0 and this are chosen from: 2³¹ nodes have fewer triangles, and fewer stars of `MOST_LEAVES`."""
MOST_LEAVES: Final = 5
_MISSED: Final = 40
"""All numbers beyond the last rung together are chosen with a probability of at most 2 to minus this."""
_LONGEST: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Choose a whole number x with probability proportional to e^(−min(rung(x), rungs)/scale).

    Guarantee:
        Bounded range 2·changes/scale, hence PureDP(2·changes/scale), if a neighbour is so many changes away, each of
        which the ladder that `release` is given stands: the argument is at the top of this file.

    Args:
        scale: From 2⁻³⁰ to 2⁸⁰.
        changes: 1, or 2 where one thing is replaced by another.
    """

    name: ClassVar[str] = "ladder"
    scale: Fraction
    changes: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        whole_number(self.changes, "changes", least=1)
        if self.rungs > _LONGEST:
            raise InvalidParameter(
                f"A ladder of {self.rungs:,} rungs is needed for so little loss; give a larger epsilon."
            )

    @classmethod
    def for_loss(cls, loss: Loss, changes: int = 1) -> Self:
        """Return the least noise that keeps a loss."""
        return cls(scale=2 * changes / range_within(loss), changes=changes)

    @property
    def rungs(self) -> int:
        """T, beyond which all numbers are alike: a public fact, by which 2¹⁹²·e^(−T/scale) ≤ 2⁻⁴⁰."""
        logarithm = enclose_tightly(lambda x: x.log(), Fraction(2)).upper
        return ceil(self.scale * (_BITS + _MISSED) * logarithm)

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure."""
        return bounded_range_loss(kind, 2 * self.changes / self.scale)

    def record(self) -> list[str | int]:
        """Return the parameters as stored answers keep them."""
        return [str(self.scale), self.changes]

    def release(self, value: int, steps: Callable[[int], int], entropy: Entropy = SYSTEM) -> int:
        """Return the chosen number.

        Args:
            value: The exact count, private.
            steps: I_t of the graph, as a function of t: private too.
        """
        law = IntervalExponential(scale=self.scale, lower=0, upper=_FAR)
        return law.release(*self.pieces(value, steps), entropy)

    def pieces(self, value: int, steps: Callable[[int], int]) -> tuple[list[int], list[int]]:
        """Return where the scores change among 0 … 2¹⁹², and the score from there on: private."""
        reach, below, above = 0, list[int](), list[int]()
        for rung in range(self.rungs):
            if rung:
                reach += steps(rung - 1)
            # Numbers within `reach` of the value have this rung or a lower one.
            below.append(max(0, value - reach))
            above.append(min(_FAR, value + reach + 1))
        scores = [-rung for rung in (*range(self.rungs, -1, -1), *range(1, self.rungs + 1))]
        return [0, *reversed(below), *above], scores

    def half_width(self, steps: Callable[[int], int], confidence: Number) -> int:
        """Return an h such that the choice is within h of the value with this confidence, for one ladder.

        Numbers of rung r and more have together at most the weight that their widths give them; those of rung 0 have
        1. So it is for a ladder that is known: of a graph's own, it is as private as the graph.
        """
        tail = 1 - probability(confidence, "confidence")
        weights = [1.0, *(2 * steps(rung) * _decay(rung + 1, self.scale) for rung in range(self.rungs))]
        total, left, reach = sum(weights), sum(weights) - 1.0, 0
        for rung in range(self.rungs):
            if left <= tail * total:
                break
            reach += steps(rung)
            left -= weights[rung + 1]
        return reach


def _decay(rung: int, scale: Fraction) -> float:
    return float(enclose_tightly(lambda x: (-x).exp(), Fraction(rung) / scale).upper)


def triangle_steps(common: int) -> Callable[[int], int]:
    """Return the ladder of triangles, by the most neighbours that two nodes have in common."""
    return lambda rung: common + rung


def star_steps(largest_degree: int, leaves: int) -> Callable[[int], int]:
    """Return the ladder of stars, by the largest degree."""
    return lambda rung: 2 * comb(largest_degree + rung, leaves - 1)
