"""Laws of key selection, written down from the formulas: who holds what is a mapping from units to sets of keys."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from mpmath import mp, mpf

from lapwing.mechanisms import Contributions
from tests.support.privacy.oracle import normal, real

Holdings = Mapping[str, str]
"""Every unit's keys, each a letter."""


def contributions(holdings: Holdings) -> Contributions:
    pairs = [(unit, key) for unit, keys in holdings.items() for key in keys]
    return Contributions.of([unit for unit, _ in pairs], [key for _, key in pairs])


def independently(chances: Mapping[str, mpf]) -> dict[tuple[str, ...], mpf]:
    """The law of the released keys, in order, if each is released by itself."""
    law: dict[tuple[str, ...], mpf] = {(): mpf(1)}
    for key in sorted(chances):
        law = {
            released: p
            for before, q in law.items()
            for released, p in ((before, q * (1 - chances[key])), ((*before, key), q * chances[key]))
            if p > 0
        }
    return law


def geometric_law(holdings: Holdings, epsilon: Fraction, delta: Fraction) -> dict[tuple[str, ...], mpf]:
    """Each key by the recurrence of its chance, from 0 on."""
    e, d = mp.exp(real(epsilon)), real(delta)
    chances = {}
    for key, count in Counter("".join(holdings.values())).items():
        chance = mpf(0)
        for _ in range(count):
            chance = min(e * chance + d, 1 - (1 - chance - d) / e, mpf(1))
        chances[key] = chance
    return independently(chances)


def least_threshold(novel: Iterable[int], sigma: mpf, delta: mpf, start: int = 0) -> int:
    """The first threshold that t keys of weight novel[t − 1] all stay below with probability 1 − δ."""
    found, weights = start, list(novel)
    while any(normal((found - w - mpf(1) / 2) / sigma) ** t < 1 - delta for t, w in enumerate(weights, 1)):
        found += 1
    return found


def weighted_law(
    holdings: Holdings, sigma: Fraction, delta: Fraction, max_keys: int, bits: int
) -> dict[tuple[str, ...], mpf]:
    """Each key by the normal law, for units with no more than `max_keys` keys."""
    spread = real(sigma) * 2**bits

    def weight(t: int) -> int:
        return int(mp.floor(2**bits / mp.sqrt(t)))

    least = least_threshold(map(weight, range(1, max_keys + 1)), spread, real(delta))
    sums: Counter[str] = Counter()
    for keys in holdings.values():
        sums.update(dict.fromkeys(keys, weight(len(keys))))
    return independently({key: normal((w - least + mpf(1) / 2) / spread) for key, w in sums.items()})


def two_rounds_law(
    holdings: Holdings, sigma: Fraction, delta: Fraction, first_share: Fraction, caution: int
) -> dict[tuple[str, ...], mpf]:
    """Each key by itself, where every unit has one key and no key two units: it weighs 2^40 steps in both rounds.

    σ is so small that the threshold is just above that; noise is wider by 2^−23 of itself.
    """
    whole = 1 << 40
    wide = real(sigma) * whole * (1 + mpf(2) ** -23)
    first, last = wide / mp.sqrt(real(first_share)), wide / mp.sqrt(real(1 - first_share))
    sure = least_threshold([whole], first, real(first_share * delta), whole - 9)
    enough = least_threshold([whole], last, real((1 - first_share) * delta), whole - 9)
    hopeful = min(sure, enough - int(mp.ceil(caution * first)))

    def reaching(least: int, spread: mpf) -> mpf:
        return normal((whole - least + mpf(1) / 2) / spread)

    one = reaching(sure, first) + (reaching(hopeful, first) - reaching(sure, first)) * reaching(enough, last)
    assert all(len(keys) == 1 for keys in holdings.values())
    return independently(dict.fromkeys(holdings.values(), one))
