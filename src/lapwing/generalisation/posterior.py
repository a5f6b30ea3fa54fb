"""How far from the population a private transcript lets one believe the sample to be.

The theorem. Let S be n independent draws from a population, Π all that an analyst sees, and let Π be (ε, δ)-DP in S
for `replace_one` neighbours. Given Π, the sample has a posterior law; call q(Π) the mean of a question q over a sample
from that law, and q(P) its mean in the population. Let q be chosen by Π in any way, values in [0, 1]. Then for η above
t = tanh(ε/4)

    P(|q(Π) − q(P)| > η for some q) ≤ (1 − t)·δ/(η − t),        E sup_q |q(Π) − q(P)| ≤ t + (1 − t)·δ.

Where a whole curve δ(ε) is known, as for Gaussian noise, the best ε is taken.

Proof. Let P_x be the law of Π given that person i is x, the others drawn as they are, P̄ the mixture of all P_x by the
population's law, and g(x) the density of P_x beside P̄ at a fixed transcript, so that E g(x) = 1 over the population.
Given the transcript person i has density g beside the population, hence the mean of q under the posterior of person i
differs from q(P) by E q(x)(g(x) − 1), of size at most TV = E (g(x) − 1)₊, whatever q. Now

    TV ≤ t + (1 − t)·H,    H = E (g(x) − e^ε·g(x'))₊ over independent x, x' of the population.        (*)

Replacing g by its mean where g ≥ 1 and its mean where g < 1 leaves TV as it is, and does not raise H (Jensen, since
(a − e^ε·b)₊ is convex in (a, b)). So g may be taken to have two values, b·r with probability u and b with 1 − u, where
b = 1/(1 + u(r − 1)), r ≥ 1. Then TV = u(1 − u)(r − 1)·b and H = u(1 − u)(r − e^ε)₊·b.
- r ≤ e^ε: TV is largest for u = 1/(1 + √r), where it is (√r − 1)/(√r + 1) = tanh(ln(r)/4) ≤ t.
- r ≥ e^ε: TV − (1 − t)·H = u(1 − u)·((r − 1) − (1 − t)(r − e^ε))/(1 − u + u·r) is a quotient of linear functions of r,
  so monotone, and at most the larger of its values at e^ε, which is ≤ t by the first case, and at ∞, (1 − u)·t ≤ t.

Let B be the event that |q(Π) − q(P)| > η. As q(Π) is the mean over i, η·P(B) < E[1_B·(mean over i of TV_i)]
≤ t·P(B) + (1 − t)·(mean over i of E[H_i]), and E[H_i] ≤ δ as it is the mean, over pairs x, x', of
∫(dP_x − e^ε·dP_x')₊, which is at most δ for neighbours, and for mixtures of neighbours by convexity. ∎

The form of the argument is that of Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi and Shenfeld 2020 (arXiv 1909.03577),
whose bound has e^ε − 1 where this one has tanh(ε/4), about a quarter of it, and twice the δ. With one person and two
possible values, randomized response attains tanh(ε/4).
"""

import math
from collections.abc import Callable
from fractions import Fraction

from lapwing.exact.bounds import enclose
from lapwing.exact.floats import float_up
from lapwing.privacy.amounts import Number, share
from lapwing.privacy.measures import ApproxDP, PureDP
from lapwing.privacy.profile import Profiled

_LEAST, _MOST = 1e-9, 24.0
"""Values of ε that are tried: beyond, tanh(ε/4) is 0 or 1 to five places."""
_COARSE = 48
_FINE = 40
_GOLDEN = (math.sqrt(5) - 1) / 2


def posterior_gap(loss: Profiled, chance: Number) -> float:
    """Return an η with P(|q(Π) − q(P)| > η for some question q) ≤ chance; rounded up, and 1 if nothing is promised.

    Args:
        loss: of all that was released of the sample, for `replace_one` neighbours.
        chance: above 0 and at most 1; with 1, η is a bound on the expectation of sup |q(Π) − q(P)|.

    Source:
        The theorem of this module, for the ε at which it promises most.
    """
    return float_up(posterior_gap_up(loss, share(chance, "chance", most=1)))


def posterior_gap_up(loss: Profiled, chance: Fraction) -> Fraction:
    """Return the least η = t + (1 − t)·δ(ε)/chance of the ε that are tried, t = tanh(ε/4), rounded up."""
    if not chance:
        return Fraction(1)

    def tried(epsilon: float) -> float:
        t: float = math.tanh(epsilon / 4)
        return t + (1 - t) * loss.to_delta(epsilon=epsilon) / float(chance)

    candidates = [0.0, _least(tried)]
    if isinstance(loss, PureDP | ApproxDP):
        candidates.append(float_up(loss.epsilon))  # from where on δ falls no further
    return min(Fraction(1), *(gap_at_up(loss, Fraction(epsilon), chance) for epsilon in candidates))


def gap_at_up(loss: Profiled, epsilon: Fraction, chance: Fraction) -> Fraction:
    """Return t + (1 − t)·δ(ε)/chance at one ε, rounded up: t rises and (1 − t)·x + t rises in both."""
    t = enclose(lambda e: (e / 4).tanh(), epsilon).upper
    return min(Fraction(1), t + (1 - t) * Fraction(loss.to_delta(epsilon=epsilon)) / chance)


def _least(function: Callable[[float], float]) -> float:
    """Return about where a function of ε is least: on a grid, and then between the neighbours of its best point."""
    ratio: float = (_MOST / _LEAST) ** (1 / _COARSE)
    best = min(range(_COARSE + 1), key=lambda i: function(_LEAST * ratio**i))
    low, high = _LEAST * ratio ** (best - 1), _LEAST * ratio ** (best + 1)
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(_FINE):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = function(b)
    return (low + high) / 2
