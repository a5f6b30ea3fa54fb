"""What a cap that was raised in the light of answers promises.

A filter guarantees its cap, if the cap is fixed before the first answer. Let it be raised later, any number of times,
when and to whatever those who raise like. Fix beforehand caps c_j = c_0·RATIO^j, j = 0, 1, …, on top of the first cap
c_0, with shares δ_0 of δ for c_0 and δ_j = δ_0/(j(j + 1)) for the others, and let c_j imply (ε_j, δ_j)-DP.

Guarantee:
    For all neighbours, with P and Q the laws of everything that is answered up to the moment T at which one stops, by
    any rule that knows the answers so far; C the cap in force then; U = ε_J for the least J with C ≤ c_J; and every
    event E, P(E) ≤ E_Q[e^U; E] + 2·δ_0. So for events in which the cap was never raised beyond c_j it is (ε_j,
    2·δ_0)-DP. In pure accounts P(E) ≤ E_Q[e^C; E], with no δ.

Proof. Answers cut off before their total would pass c_j are (ε_j, δ_j)-DP, by the account's filter: that caps were
raised on the way is one more choice that is made in the light of answers. Split E by J. The part E_j is decided by the
answers up to T; their total is at most C ≤ c_j, so by the answers cut off at c_j; hence P(E_j) ≤ e^(ε_j)·Q(E_j) + δ_j.
On E_j, U = ε_j: sum over j, as Σ_{j ≥ 1} 1/(j(j + 1)) = 1. In pure accounts the ratio of likelihoods is at most e^C on
every path. Where keys take a further Σδ_q ≤ δ_keys, condition on the draw V of `filters` first: δ_keys is added,
once. ∎

RATIO is a constant of Lapwing, so the scale of every ledger was fixed before its first answer. This is the proof of
`Odometer`, for caps instead of totals.
"""

from fractions import Fraction
from typing import Final

from lapwing.exact.floats import float_up
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss, PureDP
from lapwing.privacy.odometers import WHENEVER, Reading

RATIO: Final = Fraction(5, 4)
RAISED: Final = "no matter why the budget was raised"


def after_raises(first: Loss, cap: Loss, delta: Number) -> Reading:
    """Return the (ε, δ) of a cap that was raised, whatever it was raised for.

    Args:
        first: The cap at the start, above nothing.
        cap: The one in force, at least that.
        delta: Of the first cap.
    """
    if isinstance(cap, PureDP):
        return Reading(epsilon=cap.to_epsilon(), delta=Fraction(0), holds=RAISED)
    whole = probability(delta, "delta")
    step, top = 0, first
    while not cap <= top:
        step, top = step + 1, top.from_amount(top.amount * RATIO)
    share = whole / (step * (step + 1)) if step else whole
    return Reading(epsilon=float_up(Fraction(top.to_epsilon(delta=share))), delta=2 * whole, holds=RAISED)


def spent_after_raises(first: Loss, spent: Loss, delta: Number) -> Reading:
    """Return the (ε, δ) of a total beyond the first cap that holds whenever one stops.

    Proof: as above, with the running total in place of the cap; the caps of the `Odometer` up to the first cap have δ
    in all, and those beyond it δ once more. ∎
    """
    reading = after_raises(first, spent, delta)
    return Reading(epsilon=reading.epsilon, delta=reading.delta, holds=WHENEVER)
