"""Numbers as bits with public weights, and the check that bits are 0 or 1, many at a time."""

from collections.abc import Sequence
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3.fields import PrimeField

MOST_ELEMENTS: Final = 1 << 20
"""Of an encoded measurement."""
Measurement = int | Sequence[int]


def range_checked(
    field: PrimeField, vector: Sequence[int], joint: Sequence[int], chunk: int, servers: int
) -> list[list[int]]:
    """Return for each chunk the pairs (r^j·b, b − 1), j from 1: their products add up to Σ r^j·b·(b − 1).

    The last chunk is filled up with zeros.
    """
    p, one = field.modulus, field.inverse(servers)
    filled = [*vector, *[0] * (-len(vector) % chunk)]
    calls = []
    for r, at in zip(joint, range(0, len(filled), chunk), strict=True):
        power, inputs = r, list[int]()
        for element in filled[at : at + chunk]:
            inputs += (power * element % p, (element - one) % p)
            power = power * r % p
        calls.append(inputs)
    return calls


def summed_products(field: PrimeField, inputs: Sequence[int]) -> int:
    """Return Σ inputs[2i]·inputs[2i + 1]."""
    return field.product(inputs[::2], inputs[1::2])


def weights_up_to(most: int) -> list[int]:
    """Return powers of two, and a rest so that all of them add up to `most`."""
    powers = [1 << place for place in range(most.bit_length() - 1)]
    return [*powers, most - sum(powers)]


def bits_of(number: int, most: int) -> list[int]:
    """Return which weights add up to a number: the last one if the powers of two do not reach it."""
    *powers, rest = weights_up_to(most)
    last = int(number > sum(powers))
    remaining = number - last * rest
    return [*(remaining >> place & 1 for place in range(len(powers))), last]


def within(measurement: Measurement, most: int) -> int:
    """Return a measurement that is a whole number from 0 to `most`; refuse all others."""
    if isinstance(measurement, bool) or not isinstance(measurement, int) or not 0 <= measurement <= most:
        raise InvalidParameter(f"A measurement must be a whole number from 0 to {most}. Nothing was sent.")
    return measurement


def require_most(most: int, field: PrimeField) -> None:
    """Refuse a largest measurement for which the field has no room."""
    if not 1 <= most < field.modulus:
        raise InvalidParameter("The largest measurement must be at least 1, and below the modulus of the field.")


def require_length(elements: int, chunk: int) -> None:
    """Refuse lengths without a meaning."""
    if not 1 <= elements <= MOST_ELEMENTS or not 1 <= chunk <= elements:
        raise InvalidParameter(
            f"A measurement has 1 to {MOST_ELEMENTS:,} elements, and a chunk has one to all of them."
        )
