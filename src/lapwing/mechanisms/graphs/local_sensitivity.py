"""Release a count near its true value, with noise for a bound on its local sensitivity that is bought first.

Theory of operation. One edge may move a count f of a graph far in the worst graph, and little in most. For neighbours
g and g' write m for |f(g) − f(g')|, and let b be a number of each graph with m ≤ b(g) and m ≤ b(g') for all neighbours,
which moves by at most s between them. A part of the price releases

    U = b + X + t, not below 1 and not above the cap, with noise X for the sensitivity s,

and the rest f + Z, with noise Z for the sensitivity U. The margin t is the least with P(X < −t) ≤ δ'. The cap is a
public figure that no m exceeds.

Guarantee:
    Both together lose the sum ℓ of the two losses, but for δ: (ε, δ)-DP with δ = δ' in a pure ledger, and (μ, δ) in the
    sense of `privacy.approximate` in a gdp ledger, with δ = δ'/(2Φ(−μ/2)). Proof. Take two neighbours, with their m. U
    < m only if X < −t, as the cap is not below m: on either of the two with probability δ' at most. Call that event B;
    it is an event of U. Let a second pair of laws have the same U, and noise for the larger of U and m in the place of
    Z: that is a pair of the loss ℓ, as each of its two steps is a pair of its own loss, whatever U is. Outside of B
    both pairs are the same. So for every event S, with P and Q the laws of the two neighbours in any order, and P̃ and
    Q̃ those of the second pair,

    P(S) ≤ P(B) + P̃(S∖B) ≤ δ' + P̃(S∖B),   where Q̃(S∖B) = Q(S∖B) ≤ Q(S).                                    (1)

Pure: P̃(S∖B) ≤ e^ε·Q̃(S∖B), hence P(S) ≤ δ' + e^ε·Q(S). ∎
Gaussian: let G be the trade-off function of μ, which is convex, falls and is its own inverse. By (1) the trade-off
function T of P and Q, in either order, has T(α) ≥ G(α) − δ'. To be shown is T ≥ F with F(α) = (1 − δ)·G(α/(1 − δ)),
which is what (μ, δ) means (`privacy.approximate`). Put β = α/(1 − δ) and a = Φ(−μ/2), where G(a) = a and G'(a) = −1.
A convex function is above its tangents: G(α) ≥ G(β) + |G'(β)|·(β − α) = G(β) + |G'(β)|·δβ, so that
G(α) − F(α) ≥ δ·(G(β) + β·|G'(β)|). The last bracket is where the tangent at β meets the axis, which falls as β grows;
for β ≤ a it is 2a at least. So T ≥ F for α ≤ (1 − δ)·a =: x, by δ' = 2aδ. F is its own inverse, too, and F(x) = x. For
α > x let y = F(α), which is below x. If T(α) were some z < y, the function T* of the other order had T*(z) ≤ α; but
T*(z) ≥ G(z) − δ' > G(y) − δ' ≥ F(y) = α. ∎

In a zcdp ledger no such bound is proven here, and it is refused.

Local sensitivities here, for one edge between u and v that is there or not; or two, where one is replaced by another.
  triangles  b = the most neighbours that two nodes have in common, s = 1. The edge is in as many triangles as u and v
             have neighbours in common, whether it is there or not: m ≤ b(g), b(g'). One edge more adds 0 or 1 to b: the
             neighbours that two nodes have in common grow by one at most.
  wedges     b = the sum of the two largest degrees, s = 2. The edge is in x + y wedges, where u has x other edges and v
             has y; x + y ≤ b of the graph without it, which is not above that with it. One edge more adds 0 to 2 to b.
  replaced   Let h be the graph without either edge. One makes c more of it, the other c', so that m = |c − c'| ≤
             max(c, c') ≤ b(h), which is at most b(g) and b(g'). And b(g), b(g') lie from b(h) to b(h) + s. So nothing
             doubles.

Source:
    Karwa, Raskhodnikova, Smith and Yaroslavtsev 2011 (Private analysis of graph structure), who bound local
    sensitivities so for (ε, δ); the proof for μ is worked out here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import single
from lapwing.exact.bounds import enclose_tightly, normal_cdf_ball
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.additive import Mechanism
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss, PureDP, ZeroConcentratedDP

BOUND_SHARE: Final = Fraction(3, 10)
"""The part of the price that the bound takes."""
LARGEST_DELTA: Final = Fraction(1, 100)

Narrowest = Callable[[Loss, Sensitivity], Mechanism]
"""Chooses noise for a loss and a sensitivity, by public figures."""


def tail_of(loss: Loss, delta: Fraction) -> Fraction:
    """Return the δ' with which a bound may be too low, so that a loss holds but for δ.

    Raises:
        InvalidParameter: In a zcdp ledger, for which nothing is proven.
    """
    if isinstance(loss, ZeroConcentratedDP):
        raise InvalidParameter("Bounds on local sensitivities are bought in pure and gdp ledgers; leave delta out.")
    if isinstance(loss, PureDP):
        return delta
    least = enclose_tightly(lambda squared: normal_cdf_ball(-squared.sqrt() / 2), loss.amount).lower
    return 2 * least * delta


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLocalSensitivity:
    """Noise for a count whose local sensitivity is bounded by what a part of the price buys.

    Guarantee:
        `loss`, but for `delta`, for counts and bounds as the top of this file has them.

    Args:
        first: The noise of the bound.
        margin: t.
        second: The loss of the count.
        cap: From 1.
        delta: Of both together.
    """

    name: ClassVar[str] = "noisy local sensitivity"
    first: Mechanism
    moved: Sensitivity
    margin: int
    second: Loss
    cap: int
    delta: Fraction
    narrowest: Narrowest

    @classmethod
    def for_loss(cls, loss: Loss, delta: Number, moved: int, cap: int, narrowest: Narrowest) -> Self:
        """Return what spends a loss and a δ.

        Args:
            moved: s.
            cap: What no edge exceeds, in public.

        Raises:
            InvalidParameter: In a zcdp ledger, for a δ that is not above 0 and at most 0.01, or noise out of range.
        """
        share = probability(delta, "delta")
        if share > LARGEST_DELTA:
            raise InvalidParameter(f"delta is {delta}; a bound is bought with at most {float(LARGEST_DELTA):g}.")
        sensitivity, part = Sensitivity.from_l1(moved), loss.from_amount(loss.amount * BOUND_SHARE)
        first = narrowest(part, sensitivity)
        made = cls(
            first=first,
            moved=sensitivity,
            # Both noises are symmetric: beyond −t is half of what is beyond ±t.
            margin=first.half_width(1 - 2 * tail_of(loss, share)),
            second=loss.from_amount(loss.amount - part.amount),
            cap=max(1, cap),
            delta=share,
            narrowest=narrowest,
        )
        made.noise(made.cap)  # whatever bound is bought, its noise is in range: known before anything is paid
        return made

    @property
    def scale(self) -> Fraction:
        """The scale of the noise of a count that an edge moves by one: for each step of the bound."""
        return self.noise(1).scale

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure, which holds but for `delta`."""
        return self.first.loss(self.moved, kind) + self.second.to_kind(kind)

    def release(self, value: int, bound: int, entropy: Entropy = SYSTEM) -> tuple[int, int]:
        """Return the bound that was bought, and the noisy count.

        Args:
            value: f and b, private.
            bound: f and b, private.
        """
        noisy = _noisy(self.first, bound, entropy) + self.margin
        bought = max(1, min(self.cap, noisy))
        return bought, _noisy(self.noise(bought), value, entropy)

    def noise(self, bought: int) -> Mechanism:
        """Return the noise of the count, by the bound that was bought: a public figure then."""
        return _noise(self.narrowest, self.second, bought)


@lru_cache(maxsize=256)
def _noise(narrowest: Narrowest, loss: Loss, bought: int) -> Mechanism:
    return narrowest(loss, Sensitivity.from_l1(bought))


def _noisy(noise: Mechanism, number: int, entropy: Entropy) -> int:
    return int(noise.release(single(number, wide=False), entropy)[0])
