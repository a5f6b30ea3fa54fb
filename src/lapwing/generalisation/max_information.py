"""Max-information: by what factor seeing a transcript can raise the probability that something is wrong with a sample.

A transcript Π has β-approximate max-information k (in nats) about a sample S if for every event O

    P((S, Π) ∈ O) ≤ e^k·P((S', Π) ∈ O) + β,    S' a fresh sample of the same law, independent of Π.

So a test at level p, chosen in the light of Π, errs with probability e^k·p + β at most (Dwork et al. 2015).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import enclose
from lapwing.exact.floats import float_down, float_up
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, positive, probability, share
from lapwing.privacy.measures import PureDP


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MaxInformation:
    """β-approximate max-information of at most `nats`.

    Args:
        nats: k ≥ 0.
        failure: β, from 0 to below 1.
    """

    nats: Fraction
    failure: Fraction = Fraction(0)

    def probability(self, level: Number) -> float:
        """Return e^k·level + β, rounded up, 1 at most: how often what has this probability on fresh data happens."""
        p = share(level, "level", most=1)
        if not p:
            return float_up(self.failure)
        if self.nats > _SENSIBLE:
            return 1.0
        return float_up(min(Fraction(1), enclose(lambda k, x: k.exp() * x, self.nats, p).upper + self.failure))

    def level(self, chance: Number) -> float:
        """Return a level at which to test, so that no more than the chance remains: e^(−k)·(chance − β), rounded down.

        Raises:
            InvalidParameter: If the chance is not above β.
        """
        wanted = probability(chance, "chance")
        if wanted <= self.failure:
            raise InvalidParameter(
                f"The chance is {float(wanted):g}, and {float(self.failure):g} of it is lost beforehand; ask for more."
            )
        if self.nats > _SENSIBLE:
            return 0.0
        return float_down(enclose(lambda k, c: (-k).exp() * c, self.nats, wanted - self.failure).lower)


_SENSIBLE = 10_000
"""Nats beyond which nothing is left of any level that a float can hold."""


def max_information(loss: PureDP, people: int, failure: Number = 0) -> MaxInformation:
    """Return the max-information of an ε-DP transcript (`replace_one` neighbours) about a sample of n persons.

    Without a failure: n·ε. Two samples are n replacements apart, so p(Π|S) ≤ e^(nε)·p(Π|S'); this holds for any law of
    the sample. With a failure β, for persons drawn independently, the smaller of that and n·ε²/8 + ε·√(n·ln(1/β)/2).

    Proof of the second. Fix Π and let f(S) = ln p(Π|S), g_i = ln E[e^f | S_1 … S_i]. Let Z_i = g_i − g_(i−1). Their sum
    is ln(p(Π|S)/p(Π)). Given S_1 … S_(i−1), g_i is a function of S_i that moves by ε at most. By definition Z_i = g_i −
    ln E e^(g_i). Given Π, S has density e^(Z_1 + … + Z_n) beside its prior law. Under it E[e^((λ−1)·Z_i) | S_1 …
    S_(i−1)] is e^((λ−1)·D_λ). Here D_λ is the Rényi divergence of order λ of two laws. Their log-ratio has a range of
    ε, so D_λ is λ·ε²/8 at most (Cesar and Rogers 2021, bounded range). One after another, E e^((λ−1)·ΣZ_i) ≤
    e^((λ−1)·λ·ρ) with ρ = n·ε²/8. So P(ΣZ_i > ρ + 2√(ρ·ln(1/β))) ≤ β as for ρ-zCDP (Bun and Steinke 2016, Lemma 3.5).
    Here 2√(ρ·ln(1/β)) = ε·√(n·ln(1/β)/2). ∎ The bound of Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015
    (Theorem 20) has ε²·n/2 where this has ε²·n/8.
    """
    if not isinstance(loss, PureDP):
        raise InvalidParameter(
            f"The loss is a {type(loss).__name__}; max-information is known here for PureDP. Of others, "
            "`posterior_gap` and `expected_gap` tell more."
        )
    n = whole_number(people, "people", least=1)
    nats, beta = n * loss.epsilon, share(failure, "failure")
    if beta:
        spread = enclose(
            lambda e, m, b: m * e * e / 8 + e * (m * (1 / b).log() / 2).sqrt(), loss.epsilon, Fraction(n), beta
        ).upper
        if spread < nats:
            return MaxInformation(nats=spread, failure=beta)
    return MaxInformation(nats=nats)


def max_information_of_description(transcripts: Number, failure: Number) -> MaxInformation:
    """Return the max-information of one out of a number of transcripts: ln(transcripts/β), except with a failure of β.

    p(Π|S)/p(Π) ≤ 1/p(Π), and the transcripts with p(Π) < β/transcripts have probability β at most in all.

    Source:
        Dwork et al. 2015, Theorem 17.
    """
    many, beta = positive(transcripts, "transcripts"), probability(failure, "failure")
    if many < 1:
        raise InvalidParameter(f"transcripts is {transcripts}; there is one at least.")
    return MaxInformation(nats=enclose(lambda w, b: (w / b).log(), many, beta).upper, failure=beta)
