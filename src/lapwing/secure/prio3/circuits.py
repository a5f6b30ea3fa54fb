"""The measurements of Prio3: how each is encoded as a vector, and the circuit that is 0 only for valid vectors.

Theory of operation. Each circuit here calls one gadget of degree 2, several times. The inputs of the calls are affine
in the measurement. The outputs are affine in the measurement and in the values of the gadget. So servers that hold
shares of the measurement have shares of all inputs. With shares of the gadget's values (`proofs`) they have shares of
the outputs. Each of m servers adds 1/m of every constant.

A class has the identifier of Prio3 with it (`algorithm`). `arity` is the number of inputs of a call, and `calls` the
number of calls. `joint` is the number of random elements that the circuit takes. `outputs` numbers must be 0.

SumVec and Histogram add up the range checks of all elements. Each call weighs its checks with powers of one random
element. Let an element be neither 0 nor 1. Then the sum of its call is a polynomial in the random element, of degree
`chunk`, that is not 0. So at most `chunk` random elements hide it.

Source:
    draft-irtf-cfrg-vdaf-20, section 7.4; Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai 2019, theorem 5.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.secure.one_cell import LARGEST_OF_ONE, ONE_CELL, one_cell
from lapwing.secure.prio3.fields import FIELD64, FIELD128, PrimeField
from lapwing.secure.prio3.range_checks import (
    Measurement,
    bits_of,
    range_checked,
    require_length,
    require_most,
    summed_products,
    weights_up_to,
    within,
)


@final
@dataclass(frozen=True, slots=True)
class CountCircuit:
    """0 or 1: x·x − x must be 0."""

    algorithm: ClassVar[int] = 1
    field: ClassVar[PrimeField] = FIELD64
    arity: ClassVar[int] = 2
    calls: ClassVar[int] = 1
    joint: ClassVar[int] = 0
    outputs: ClassVar[int] = 1
    measurement_length: ClassVar[int] = 1
    output_length: ClassVar[int] = 1

    @property
    def largest(self) -> int:
        """The most that one measurement adds to a total."""
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        """Another measurement moves the count by 1 at most."""
        return Sensitivity.from_l1(1)

    def encode(self, measurement: Measurement) -> list[int]:
        """Return the one element."""
        return [within(measurement, 1)]

    def inputs(self, vector: Sequence[int], joint: Sequence[int], servers: int) -> list[list[int]]:
        """Return the element twice."""
        return [[vector[0], vector[0]]]

    def gadget(self, inputs: Sequence[int]) -> int:
        """Return the product."""
        return inputs[0] * inputs[1] % self.field.modulus

    def checks(self, vector: Sequence[int], values: Sequence[int], servers: int) -> list[int]:
        """Return x·x − x."""
        return self.field.difference(values, vector)

    def truncate(self, vector: Sequence[int]) -> list[int]:
        """Return the element."""
        return list(vector)


@final
@dataclass(frozen=True, slots=True)
class SumCircuit:
    """A whole number from 0 to `most`, as bits with public weights: b·b − b must be 0 of each."""

    algorithm: ClassVar[int] = 2
    field: ClassVar[PrimeField] = FIELD64
    arity: ClassVar[int] = 1
    joint: ClassVar[int] = 0
    output_length: ClassVar[int] = 1
    most: int

    def __post_init__(self) -> None:
        require_most(self.most, self.field)

    @property
    def calls(self) -> int:
        """One for each bit."""
        return self.most.bit_length()

    @property
    def outputs(self) -> int:
        """One for each bit."""
        return self.calls

    @property
    def measurement_length(self) -> int:
        """One for each bit."""
        return self.calls

    @property
    def largest(self) -> int:
        """The most that one measurement adds to a total."""
        return self.most

    @property
    def sensitivity(self) -> Sensitivity:
        """Another measurement moves the sum by the largest one at most."""
        return Sensitivity.from_l1(self.most)

    def encode(self, measurement: Measurement) -> list[int]:
        """Return the bits."""
        return bits_of(within(measurement, self.most), self.most)

    def inputs(self, vector: Sequence[int], joint: Sequence[int], servers: int) -> list[list[int]]:
        """Return each bit by itself."""
        return [[bit] for bit in vector]

    def gadget(self, inputs: Sequence[int]) -> int:
        """Return x·x − x."""
        return inputs[0] * (inputs[0] - 1) % self.field.modulus

    def checks(self, vector: Sequence[int], values: Sequence[int], servers: int) -> list[int]:
        """Return what each call gave."""
        return list(values)

    def truncate(self, vector: Sequence[int]) -> list[int]:
        """Return the number that the bits have."""
        return [self.field.product(vector, weights_up_to(self.most))]


@final
@dataclass(frozen=True, slots=True)
class SumVecCircuit:
    """A vector of `length` whole numbers from 0 to `most`, each as bits with public weights.

    Args:
        length: Of the vector.
        most: The largest value of an element.
        chunk: How many elements of the encoding one call of the gadget checks: near the root of their number.
    """

    algorithm: ClassVar[int] = 3
    field: ClassVar[PrimeField] = FIELD128
    outputs: ClassVar[int] = 1
    length: int
    most: int
    chunk: int

    def __post_init__(self) -> None:
        require_most(self.most, self.field)
        require_length(self.length * self.most.bit_length(), self.chunk)

    @property
    def arity(self) -> int:
        """Two for each element of a chunk."""
        return 2 * self.chunk

    @property
    def calls(self) -> int:
        """One for each chunk."""
        return -(-self.measurement_length // self.chunk)

    @property
    def joint(self) -> int:
        """One for each chunk."""
        return self.calls

    @property
    def measurement_length(self) -> int:
        """The bits of all elements."""
        return self.length * self.most.bit_length()

    @property
    def output_length(self) -> int:
        """The length of the vector."""
        return self.length

    @property
    def largest(self) -> int:
        """The most that one measurement adds to a total."""
        return self.most

    @property
    def sensitivity(self) -> Sensitivity:
        """Another measurement moves each sum by the largest element at most."""
        return Sensitivity.from_linf(self.most, entries=self.length)

    def encode(self, measurement: Measurement) -> list[int]:
        """Return the bits of all elements, one after the other."""
        if isinstance(measurement, int) or len(measurement) != self.length:
            raise InvalidParameter(f"The measurement must be a vector of {self.length} whole numbers.")
        return [bit for each in measurement for bit in bits_of(within(each, self.most), self.most)]

    def inputs(self, vector: Sequence[int], joint: Sequence[int], servers: int) -> list[list[int]]:
        """Return the pairs of `range_checked` for all bits."""
        return range_checked(self.field, vector, joint, self.chunk, servers)

    def gadget(self, inputs: Sequence[int]) -> int:
        """Return the sum of products of pairs."""
        return summed_products(self.field, inputs)

    def checks(self, vector: Sequence[int], values: Sequence[int], servers: int) -> list[int]:
        """Return the sum of what all calls gave."""
        return [sum(values) % self.field.modulus]

    def truncate(self, vector: Sequence[int]) -> list[int]:
        """Return the numbers that the bits have."""
        weights = weights_up_to(self.most)
        size = len(weights)
        return [self.field.product(vector[at : at + size], weights) for at in range(0, len(vector), size)]


@final
@dataclass(frozen=True, slots=True)
class HistogramCircuit:
    """One of `length` buckets: elements that are 0 or 1 and add up to 1.

    Args:
        length: Of the histogram.
        chunk: As of SumVec.
    """

    algorithm: ClassVar[int] = 4
    field: ClassVar[PrimeField] = FIELD128
    outputs: ClassVar[int] = 2
    length: int
    chunk: int

    def __post_init__(self) -> None:
        require_length(self.length, self.chunk)

    @property
    def arity(self) -> int:
        """Two for each element of a chunk."""
        return 2 * self.chunk

    @property
    def calls(self) -> int:
        """One for each chunk."""
        return -(-self.length // self.chunk)

    @property
    def joint(self) -> int:
        """One for each chunk."""
        return self.calls

    @property
    def measurement_length(self) -> int:
        """One for each bucket."""
        return self.length

    @property
    def output_length(self) -> int:
        """One for each bucket."""
        return self.length

    @property
    def largest(self) -> int:
        """The most that one measurement adds to a total."""
        return LARGEST_OF_ONE

    @property
    def sensitivity(self) -> Sensitivity:
        """Another measurement empties one bucket by 1, and fills another by 1."""
        return ONE_CELL

    def encode(self, measurement: Measurement) -> list[int]:
        """Return 1 for the bucket and 0 for all others."""
        return list(one_cell(within(measurement, self.length - 1), self.length))

    def inputs(self, vector: Sequence[int], joint: Sequence[int], servers: int) -> list[list[int]]:
        """Return the pairs of `range_checked` for all buckets."""
        return range_checked(self.field, vector, joint, self.chunk, servers)

    def gadget(self, inputs: Sequence[int]) -> int:
        """Return the sum of products of pairs."""
        return summed_products(self.field, inputs)

    def checks(self, vector: Sequence[int], values: Sequence[int], servers: int) -> list[int]:
        """Return the sum of what all calls gave, and what the buckets add up to beyond 1."""
        p = self.field.modulus
        return [sum(values) % p, (sum(vector) - self.field.inverse(servers)) % p]

    def truncate(self, vector: Sequence[int]) -> list[int]:
        """Return the buckets."""
        return list(vector)


Circuit = CountCircuit | SumCircuit | SumVecCircuit | HistogramCircuit
