"""Hockey-stick curves of compositions by routes of their own: integer convolution, closed forms, nested quadrature."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, reduce

from mpmath import mp, mpf

from tests.support.privacy.oracle import normal, real

BITS = 400
Lattice = dict[int, int]
"""Atoms at integer multiples of a step, with masses in units of 2⁻⁴⁰⁰, rounded down."""


def fixed(mass: mpf) -> int:
    with mp.workprec(BITS + 64):
        return int(mp.floor(mass * mpf(2) ** BITS))


def convolve(first: Lattice, second: Lattice) -> Lattice:
    """Multiply the generating polynomials as two integers (Kronecker substitution), exactly, then drop to 400 bits."""
    slot = (2 * BITS + 40) // 8

    def packed(law: Lattice) -> tuple[int, int]:
        low, high = min(law), max(law)
        digits = b"".join(law.get(at, 0).to_bytes(slot, "little") for at in range(low, high + 1))
        return low, int.from_bytes(digits, "little")

    (a, x), (b, y) = packed(first), packed(second)
    product = x * y
    digits = product.to_bytes((product.bit_length() // 8 // slot + 1) * slot, "little")
    masses = [int.from_bytes(digits[i : i + slot], "little") >> BITS for i in range(0, len(digits), slot)]
    return {a + b + i: mass for i, mass in enumerate(masses) if mass}


def composed(laws: Sequence[tuple[Lattice, int]]) -> Lattice:
    powers = []
    for law, count in laws:
        result, square = {0: 1 << BITS}, law
        while count:
            if count & 1:
                result = convolve(result, square)
            count >>= 1
            if count:
                square = convolve(square, square)
        powers.append(result)
    return reduce(convolve, powers)


def lattice_delta(law: Lattice, step: Fraction, epsilon: Fraction) -> mpf:
    """Σ max(0, 1 − e^(ε−l))·mass; masses were rounded down, by less than 10⁻¹⁰⁰ in all."""
    with mp.workdps(120):
        terms = (
            (1 - mp.exp(real(epsilon) - at * real(step))) * mass for at, mass in law.items() if at * step > epsilon
        )
        return mp.fsum(terms) / mpf(2) ** BITS


def response(steps: int, step: Fraction, choices: int = 2) -> Lattice:
    with mp.workprec(BITS + 64):
        e = mp.exp(real(steps * step))
        law = {steps: fixed(e / (e + choices - 1)), -steps: fixed(1 / (e + choices - 1))}
        if choices > 2:
            law[0] = fixed((choices - 2) / (e + choices - 1))
    return law


@cache
def discrete_laplace(step: Fraction, sensitivity: int) -> Lattice:
    """The loss of discrete Laplace noise of scale 1/step, from its probabilities one by one."""
    law: Lattice = {}
    with mp.workprec(BITS + 64):
        r = mp.exp(-real(step))
        reach = int(mp.ceil((BITS + 10) * mp.log(2) / real(step)))
        for x in range(-reach, reach + 1):
            loss = abs(x - sensitivity) - abs(x)
            law[loss] = law.get(loss, 0) + fixed((1 - r) / (1 + r) * r ** abs(x))
    return law


def laplace_delta(epsilon: mpf, loss: mpf) -> mpf:
    """1 − e^((ε−ε₀)/2) between ±ε₀ (Balle, Barthe and Gaboardi 2018, Theorem 3), 1 − e^ε below."""
    if epsilon >= loss:
        return mpf(0)
    return 1 - mp.exp((epsilon - loss) / 2) if epsilon >= -loss else 1 - mp.exp(epsilon)


def laplaces_delta(epsilon: mpf, losses: Sequence[mpf]) -> mpf:
    """The curve of several Laplace mechanisms: that of all but the first at ε − l, over the first one's loss l."""
    first, *rest = losses
    if not rest:
        return laplace_delta(epsilon, first)
    kinks = sorted({-first, first, *(k for k in (epsilon - s for s in signed_sums(rest)) if -first < k < first)})
    middle = mp.quad(lambda at: mp.exp((at - first) / 2) / 4 * laplaces_delta(epsilon - at, rest), kinks)
    ends = laplaces_delta(epsilon - first, rest) + mp.exp(-first) * laplaces_delta(epsilon + first, rest)
    return ends / 2 + middle


def signed_sums(losses: Sequence[mpf]) -> list[mpf]:
    return reduce(lambda sums, loss: [s + sign * loss for s in sums for sign in (1, -1)], losses, [mpf(0)])


def subsampled_gaussian_deltas(mu: mpf, rate: mpf, epsilon: mpf) -> tuple[mpf, mpf]:
    """The curves at ε ≥ 0 of remove and add, from where the likelihood ratio crosses e^ε and e^(−ε)."""

    def mixed(x: mpf) -> mpf:
        return (1 - rate) * normal(x) + rate * normal(x - mu)

    def crossing(ratio: mpf) -> mpf:
        return (mp.log((ratio - 1 + rate) / rate) + mu**2 / 2) / mu

    remove_at = crossing(mp.exp(epsilon))
    above = (1 - rate) * normal(-remove_at) + rate * normal(mu - remove_at)
    remove = above - mp.exp(epsilon) * normal(-remove_at)
    if mp.exp(-epsilon) <= 1 - rate:
        return remove, mpf(0)
    add_at = crossing(mp.exp(-epsilon))
    return remove, normal(add_at) - mp.exp(epsilon) * mixed(add_at)


def two_outcomes_delta(p: mpf, q: mpf, count: int, epsilon: mpf) -> mpf:
    """The curve of `count` coins, P(heads) = p and Q(heads) = q, by the number of heads."""
    return mp.fsum(
        mp.binomial(count, heads)
        * max(mpf(0), p**heads * (1 - p) ** (count - heads) - mp.exp(epsilon) * q**heads * (1 - q) ** (count - heads))
        for heads in range(count + 1)
    )


def kov_delta(epsilon: Fraction, delta: Fraction, count: int, at: Fraction) -> mpf:
    """1 − (1−δ)^k·(1 − δ') with δ' of k-fold randomized response (Kairouz, Oh and Viswanath 2015, Theorem 3.3)."""
    law = composed([(response(1, epsilon), count)])
    return 1 - (1 - real(delta)) ** count * (1 - lattice_delta(law, epsilon, at))
