"""The two fields of Prio3: numbers modulo a prime p, with roots of unity of every order that is a power of two.

Theory of operation. Elements are integers from 0 to p − 1, in lists. A polynomial has a degree below n, a power of
two. Its values at the n-th roots of unity 1, w, w², … represent it. So shares of polynomials add up value by value.

Arithmetic on integers of Python does not take constant time.

Source:
    draft-irtf-cfrg-vdaf-20, sections 6.1 and 6.1.4 (encoding, parameters). The functions have the formulas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, final

from lapwing.errors import InvalidParameter


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrimeField:
    """The integers modulo a prime.

    Args:
        modulus: The prime p.
        size: Bytes of an encoded element, little endian.
        generator: Of the roots of unity whose order divides 2^`levels`.
        levels: The largest power of two that divides p − 1.
    """

    modulus: int
    size: int
    generator: int
    levels: int

    def encode(self, elements: Sequence[int]) -> bytes:
        """Return elements as bytes."""
        return b"".join(element.to_bytes(self.size, "little") for element in elements)

    def decode(self, data: bytes) -> list[int]:
        """Return the elements in bytes.

        Raises:
            InvalidParameter: If they are not whole elements, each below the modulus.
        """
        elements = [int.from_bytes(data[at : at + self.size], "little") for at in range(0, len(data), self.size)]
        if len(data) % self.size or any(element >= self.modulus for element in elements):
            raise InvalidParameter(
                f"The bytes are not whole numbers of {self.size} bytes each, below the modulus of the field."
            )
        return elements

    def inverse(self, element: int) -> int:
        """Return 1/x."""
        return pow(element, -1, self.modulus)

    def sum(self, *vectors: Sequence[int]) -> list[int]:
        """Return vectors added up, element by element; they have one length."""
        return [sum(each) % self.modulus for each in zip(*vectors, strict=True)]

    def difference(self, left: Sequence[int], right: Sequence[int]) -> list[int]:
        """Return left − right, element by element."""
        return [(a - b) % self.modulus for a, b in zip(left, right, strict=True)]

    def product(self, left: Sequence[int], right: Sequence[int]) -> int:
        """Return Σ left[i]·right[i]."""
        return sum(a * b for a, b in zip(left, right, strict=True)) % self.modulus


FIELD64: Final = PrimeField(
    modulus=2**32 * 4294967295 + 1,
    size=8,
    generator=pow(7, 4294967295, 2**32 * 4294967295 + 1),
    levels=32,
)
FIELD128: Final = PrimeField(
    modulus=2**66 * 4611686018427387897 + 1,
    size=16,
    generator=pow(7, 4611686018427387897, 2**66 * 4611686018427387897 + 1),
    levels=66,
)


@lru_cache(maxsize=64)
def roots(field: PrimeField, order: int) -> tuple[int, ...]:
    """Return the powers 1, w, …, w^(n−1) of the principal n-th root of unity; n is a power of two."""
    w = pow(field.generator, (1 << field.levels) // order, field.modulus)
    return tuple(accumulate(range(order - 1), lambda power, _: power * w % field.modulus, initial=1))


def doubled(field: PrimeField, values: Sequence[int]) -> list[int]:
    """Return the values at the 2n-th roots of unity of the polynomial of degree below n with these at the n-th."""
    n, p = len(values), field.modulus
    scale = field.inverse(n)
    # Values at conjugate roots give n times the coefficients: Σ_i w^(−ij)·w^(ik) is n for j = k, and otherwise 0.
    ahead = _values_at_roots(field, values)
    coefficients = [scale * each % p for each in (ahead[0], *reversed(ahead[1:]))]
    between = _values_at_roots(
        field, [c * root % p for c, root in zip(coefficients, roots(field, 2 * n), strict=False)]
    )
    return [value for pair in zip(values, between, strict=True) for value in pair]


def _values_at_roots(field: PrimeField, coefficients: Sequence[int]) -> list[int]:
    """Return the values at the n-th roots of unity, by halves: f(x) = even(x²) + x·odd(x²) (Cooley and Tukey 1965)."""
    n, p = len(coefficients), field.modulus
    if n == 1:
        return list(coefficients)
    even, odd = (_values_at_roots(field, coefficients[start::2]) for start in (0, 1))
    turned = [root * each % p for root, each in zip(roots(field, n), odd, strict=False)]
    return [(a + b) % p for a, b in zip(even, turned, strict=True)] + [
        (a - b) % p for a, b in zip(even, turned, strict=True)
    ]


def weights_at(field: PrimeField, order: int, point: int) -> list[int]:
    """Return the weights with which values at the n-th roots of unity add up to the value at any point.

    Lagrange's polynomials are ℓ_i(t) = Π_(j≠i) (t − wʲ) / Π_(j≠i) (wⁱ − wʲ). The denominator is n·w^(−i), the
    derivative of xⁿ − 1 at wⁱ. The numerator is the product of the factors before i and of those after i.
    """
    nodes, p = roots(field, order), field.modulus
    scale = field.inverse(order)
    away = [point - node for node in nodes]
    before = list(accumulate(away[:-1], lambda a, b: a * b % p, initial=scale))
    after = list(accumulate(reversed(away[1:]), lambda a, b: a * b % p, initial=1))[::-1]
    return [node * a % p * b % p for node, a, b in zip(nodes, before, after, strict=True)]


def completed(field: PrimeField, values: Sequence[int]) -> list[int]:
    """Return all n values at the roots, of which all but the last are given, of a polynomial of degree below n − 1.

    Its coefficient of xⁿ⁻¹ is Σ_i v_i·w^(−i(n−1))/n = Σ_i v_i·w^i/n, which is 0. So the last value is
    −Σ_(i<n−1) v_i·w^(i+1), as 1/w^(n−1) = w.
    """
    nodes = roots(field, len(values) + 1)
    return [*values, -field.product(values, nodes[1:]) % field.modulus]
