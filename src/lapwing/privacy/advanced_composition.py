"""Many (ε, δ) losses in one account: optimal advanced composition, as a filter under full adaptivity.

Whitehouse, Ramdas, Rogers and Wu (2023) let an analyst ask (εᵢ, δᵢ)-DP questions, each chosen in the light of all
answers, for as long as

    √(2·ln(1/δ')·Σεᵢ²) + ½·Σεᵢ² ≤ ε and Σδᵢ ≤ δ'',

and prove the whole (ε, δ' + δ'')-DP. That is the account of measure approx_zcdp, of which Σ½εᵢ² and Σδᵢ are spent:
an (εᵢ, δᵢ)-DP question has ρᵢ ≤ ½εᵢ² but for δᵢ, and ρ-zCDP is (ρ + √(4ρ·ln(1/δ')), δ')-DP.

Both steps have tighter forms. `advanced_loss` charges ρᵢ = εᵢ·tanh(εᵢ/2) ≤ ½εᵢ², and `advanced_budget` has the ρ that
the conversion of Canonne, Kamath and Steinke accepts, with the whole at δ'' + (1 − δ'')·δ'. So an account of these
grants every charge that the inequality grants, and more, for the same promise. `advanced_rho_down` has the
inequality's own cap.

Why approx_zcdp has a filter: fix an order α. Given the past, and that an answer is not of the second kind, the moment
E_Q[(P/Q)^α] of an answer is at most e^(α(α−1)ρᵢ). Multiplied from the last answer to the first, the moments stay below
e^(α(α−1)·ρ_B) because Σρᵢ ≤ ρ_B on every path (Whitehouse et al. 2023; Feldman and Zrnic 2021).
"""

from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.privacy.amounts import Number, exact, grid_down, probability, share
from lapwing.privacy.concentrated_profile import zcdp_rho_down
from lapwing.privacy.measures import ApproxDP, ApproximateZeroConcentratedDP, PureDP
from lapwing.privacy.pure_concentrated import zcdp_from_pure_up


def advanced_budget(epsilon: Number, delta: Number, failures: Number = 0) -> ApproximateZeroConcentratedDP:
    """Return the budget of an account whose whole is (epsilon, delta)-DP, and that holds losses by `advanced_loss`.

    Args:
        epsilon: Above 0.
        delta: Of the whole, above 0 and below 1.
        failures: The part of it that is reserved for the δᵢ of the losses, from 0 to below delta.

    Raises:
        InvalidParameter: For numbers outside.
    """
    whole, kept = probability(delta, "delta"), share(failures, "failures")
    if kept >= whole:
        raise InvalidParameter(f"failures is {failures}; it must be below delta, of which it is a part.")
    return ApproximateZeroConcentratedDP(zcdp_rho_down(_positive(epsilon), (whole - kept) / (1 - kept)), kept)


def advanced_loss(loss: PureDP | ApproxDP) -> ApproximateZeroConcentratedDP:
    """Return what is charged for an (ε, δ) loss: ρ = ε·tanh(ε/2), rounded up, and δ.

    Source:
        Steinke 2024 for ρ (see `conversions`); Kairouz, Oh and Viswanath 2015 for what happens but for δ.
    """
    delta = loss.delta if isinstance(loss, ApproxDP) else Fraction(0)
    return ApproximateZeroConcentratedDP(zcdp_from_pure_up(loss.epsilon), delta)


def advanced_rho_down(epsilon: Number, delta: Number) -> Fraction:
    """Return the largest ρ = ½·Σεᵢ² on GRID with √(4ρ·ln(1/δ')) + ρ ≤ ε: (√(ln(1/δ') + ε) − √ln(1/δ'))².

    Source:
        Whitehouse, Ramdas, Rogers and Wu 2023 (Fully-Adaptive Composition in Differential Privacy), on filters.
    """

    def cap(e: Ball, d: Ball) -> Ball:
        return (e / ((e - d.log()).sqrt() + (-d.log()).sqrt())) ** 2

    return grid_down(enclose_tightly(cap, _positive(epsilon), probability(delta, "delta"), bits=160).lower)


def _positive(epsilon: Number) -> Fraction:
    number = exact(epsilon, "epsilon")
    if number <= 0:
        raise InvalidParameter(f"epsilon is {epsilon}; it must be above 0.")
    return number
