"""How far answers are from what they say of the posterior: noise, seen by somebody who knows the answers only.

Let a_j be the answer to question j and q_j(Π) the mean of q_j under the posterior of the sample given the transcript
(`posterior`). The noise a_j − q_j(S) may be large for an unlikely S without a_j being far from q_j(Π): only an average
counts. Given allowances α_j that are functions of the transcript, let (x)₊ be max(x, 0) and

    E₊ = E max_j (|a_j − q_j(S)| − α_j)₊.    Then    P(|a_j − q_j(Π)| > α_j + E₊/β for some j) ≤ β.

Proof. S given Π has the posterior law; x ↦ (|a_j − x| − α_j)₊ is convex, so (|a_j − q_j(Π)| − α_j)₊ is at most the
posterior mean of (|a_j − q_j(S)| − α_j)₊ (Jensen), for each j, hence at most that of their maximum. The expectation of
the latter is E₊, and it is above E₊/β with probability β at most (Markov). ∎ E₊ is bounded by adding up over the noises
that were drawn. Of answers of several kinds, each kind may have its own part of β.

The step is that of Jung et al. 2020, Lemma 3.3, who bound the excess of an answer in [0, 1] by 1; with the law of the
noise it is far smaller.
"""

import math
from fractions import Fraction
from statistics import NormalDist

from lapwing.exact.bounds import enclose, normal_cdf_ball, normal_pdf_ball

_NORMAL = NormalDist()


def gaussian_reach_up(sigma: Fraction, answers: int, chance: Fraction) -> Fraction:
    """Return an r with |a_j − q_j(Π)| ≤ r for so many answers with noise N(0, σ²), but with the chance; rounded up.

    E(|Z| − zσ)₊ = 2σ·(φ(z) − z·Φ(−z)), so that r = σ·(z + c·(φ(z) − z·Φ(−z))) with c = 2·answers/chance, for any
    z ≥ 0; it is least for Φ(−z) = 1/c, and r = σ·c·φ(z) then.
    """
    c = 2 * answers / chance
    z = Fraction(max(0.0, -_NORMAL.inv_cdf(min(0.5, float(1 / c))))) if c > 2 else Fraction(0)
    return sigma * enclose(lambda x, w: x + w * (normal_pdf_ball(x) - x * normal_cdf_ball(-x)), z, c).upper


def discrete_laplace_reach_up(scale: Fraction, answers: int, chance: Fraction) -> Fraction:
    """Return the same for discrete Laplace noise, P(x) ∝ p^|x|, p = e^(−1/scale), rounded up.

    E(|Z| − x)₊ = Σ_(m>x) 2p^m/(1 + p) = 2p^(x+1)/(1 − p²) for a whole x ≥ 0, so r = x + answers·2p^(x+1)/((1 −
    p²)·chance).
    """
    ratio = float(answers / chance)
    x = max(0, round(float(scale) * math.log(max(1.0, ratio))))
    far = enclose(lambda s, m: 2 * (-(m + 1) / s).exp() / (-(-2 / s).expm1()), scale, Fraction(x)).upper
    return x + answers * far / chance


def geometric_reach_up(scale: Fraction, draws: int, chance: Fraction) -> Fraction:
    """Return the same for a number of draws of geometric noise ρ ≥ 0, P(ρ ≥ m) = p^m, p = e^(−1/scale), rounded up.

    E(ρ − x)₊ = Σ_(m>x) p^m = p^(x+1)/(1 − p) for a whole x, so r = x + draws·p^(x+1)/((1 − p)·chance).
    """
    ratio = float(draws / chance)
    x = max(0, round(float(scale) * math.log(max(1.0, ratio))))
    far = enclose(lambda s, m: (-(m + 1) / s).exp() / (-(-1 / s).expm1()), scale, Fraction(x)).upper
    return x + draws * far / chance
