"""Whole numbers as sums of powers of two and a rest, so that servers can check that each bit is 0 or 1."""

from collections.abc import Sequence


def weights_up_to(most: int) -> tuple[int, ...]:
    """Return powers of two and a rest, of which every whole number up to `most` is a sum, and nothing above it is."""
    powers = [1 << place for place in range((most + 1).bit_length() - 1)]
    rest = most - sum(powers)
    return (*powers, rest) if rest else tuple(powers)


def bits_of(steps: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Return which of the weights add up to a number: the largest first, whenever the others cannot do without it."""
    chosen = [0] * len(weights)
    for place in sorted(range(len(weights)), key=lambda place: weights[place], reverse=True):
        if weights[place] <= steps:
            chosen[place], steps = 1, steps - weights[place]
    return tuple(chosen)
