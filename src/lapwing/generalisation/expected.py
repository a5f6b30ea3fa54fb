"""How much a question that was chosen by looking at the sample overfits it, on average."""

from fractions import Fraction

from lapwing.exact.bounds import enclose
from lapwing.exact.floats import float_up
from lapwing.generalisation.posterior import posterior_gap_up
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, exact, non_negative
from lapwing.privacy.measures import ZeroConcentratedDP
from lapwing.privacy.profile import Profiled


def expected_gap(loss: Profiled) -> float:
    """Return a bound on |E[q(S) − q(P)]| for the question q in [0, 1] that a private mechanism chooses; rounded up.

    It is the smaller of

    - t + (1 − t)·δ(ε) with t = tanh(ε/4), at the best ε. E q(S) = E q(Π), because S given Π has the posterior
      distribution; `posterior` has the proof. For pure ε this is tanh(ε/4), and for small μ about 0.318·μ.
    - for ρ-zCDP, √(ρ/2). Here q(Π) − q(P) is a mean over the persons of differences of size at most TV_i. Pinsker's
      inequality has E TV_i ≤ √(I(S_i; Π)/2). Divergence is convex, so I(S_i; Π) ≤ ρ, the Rényi divergence of order 1 of
      two neighbours (Bun and Steinke 2016).

    Args:
        loss: Of all that was released of the sample up to the choice, for `replace_one` neighbours.
    """
    gap = posterior_gap_up(loss, Fraction(1))
    if isinstance(loss, ZeroConcentratedDP):
        gap = min(gap, enclose(lambda rho: (rho / 2).sqrt(), loss.rho).upper)
    return float_up(gap)


def expected_gap_of_information(people: int, nats: Number) -> float:
    """Return √(I/(2n)), a bound on |E[q(S) − q(P)]| if q shares I nats of information with the sample; rounded up.

    A sample mean of n values in [0, 1] is sub-Gaussian with variance proxy 1/(4n); √(2·I/(4n)).

    Args:
        people: n ≥ 1.
        nats: The mutual information of the sample and all that q depends on, ≥ 0.

    Source:
        Russo and Zou 2016; Xu and Raginsky 2017, Theorem 1.
    """
    n = Fraction(whole_number(people, "people", least=1))
    amount = non_negative(nats, "nats")
    return float_up(min(Fraction(1), enclose(lambda i, m: (i / (2 * m)).sqrt(), amount, n).upper))


def expected_gap_of_description(people: int, bits: Number) -> float:
    """Return √(bits·ln 2/(2n)): the same for a question that is one of 2^bits, because no more can be shared than that.

    Args:
        people: n ≥ 1.
        bits: All bits of the sample that were released before the choice, ≥ 0.
    """
    n = Fraction(whole_number(people, "people", least=1))
    amount = exact(non_negative(bits, "bits"), "bits")
    return float_up(min(Fraction(1), enclose(lambda b, m: (b * b.const_log2() / (2 * m)).sqrt(), amount, n).upper))
