"""Fully linear proofs: a client proves that its measurement is valid to servers that each hold a share of it.

Theory of operation. The prover makes one polynomial for each input of the gadget. Its values at roots of unity are a
random seed, and then this input in each call. The gadget of these polynomials is one polynomial of degree 2(n − 1). The
proof has its values. A server evaluates everything linearly on its shares: the outputs of the circuit, and all
polynomials at a random point t. The shares add up to the verifier. It must show that the outputs are 0. The gadget of
the inputs at t must be the value of the gadget's polynomial at t.

Guarantee:
    Completeness: a valid measurement passes, unless t is an n-th root of unity. Such a t is refused for every
    measurement.

    Zero knowledge: one can draw the verifier of a valid measurement without the measurement. Its first number is 0. The
    inputs at t are uniform and independent: each has a uniform seed of its own, with the weight ℓ₀(t) ≠ 0. The last
    number is the gadget of these inputs.

    Soundness: an invalid measurement passes with at most the probability of `soundness_error`, with any proof.

Source:
    draft-irtf-cfrg-vdaf-20, section 7.3; Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai 2019, theorem 4.3.
"""

from collections.abc import Sequence
from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3.circuits import Circuit
from lapwing.secure.prio3.fields import completed, doubled, weights_at


def wire_length(circuit: Circuit) -> int:
    """Return n: the least power of two with room for the seed and all calls."""
    return 1 << circuit.calls.bit_length()


def proof_length(circuit: Circuit) -> int:
    """Return how many elements a proof has: the seeds, and values of a polynomial of degree 2(n − 1)."""
    return circuit.arity + 2 * wire_length(circuit) - 1


def query_length(circuit: Circuit) -> int:
    """Return how many random elements a query takes: t, and a weight for each output if there are several."""
    return 1 + (circuit.outputs if circuit.outputs > 1 else 0)


def verifier_length(circuit: Circuit) -> int:
    """Return how many elements a verifier has: the outputs as one, the inputs at t, and the gadget at t."""
    return circuit.arity + 2


def soundness_error(circuit: Circuit) -> Fraction:
    """Return a bound on the chance that one invalid measurement passes, over randomness that its client cannot choose.

    First, let the proof's polynomial differ from the gadget of the inputs' polynomials. The difference has a degree of
    at most 2(n − 1), so at most 2(n − 1) values of t pass. Second, let it not differ. Then the circuit has these
    outputs. With joint randomness, at most `chunk` values of one random element make them all 0 (`circuits`). Without
    it, no value does. Third, let one output not be 0. Its sum with the others, with random weights, is 0 with
    probability 1/p.

    With joint randomness, a client can try in advance, because the randomness is a hash of its shares. After q hashes
    it passes with about q times this probability (Davis, Patton, Rosulek and Schoppmann 2023, theorem 1).
    """
    chunk = circuit.arity // 2 if circuit.joint else 0
    return Fraction(2 * (wire_length(circuit) - 1) + chunk + int(circuit.outputs > 1), circuit.field.modulus)


def prove(circuit: Circuit, vector: Sequence[int], seeds: Sequence[int], joint: Sequence[int]) -> list[int]:
    """Return the proof for an encoded measurement.

    Args:
        seeds: One uniform element for each input of the gadget.
        joint: The joint randomness.
    """
    wires = [doubled(circuit.field, wire) for wire in _wires(circuit, circuit.inputs(vector, joint, 1), seeds)]
    values = [circuit.gadget(inputs) for inputs in zip(*wires, strict=True)]
    return [*seeds, *values[:-1]]


def query(
    circuit: Circuit,
    vector: Sequence[int],
    proof: Sequence[int],
    randomness: Sequence[int],
    joint: Sequence[int],
    servers: int,
) -> list[int]:
    """Return a share of the verifier, from shares of an encoded measurement and its proof.

    Raises:
        InvalidParameter: If t is an n-th root of unity, where the verifier could tell something.
    """
    field, n = circuit.field, wire_length(circuit)
    *weights, t = randomness
    if pow(t, n, field.modulus) == 1:
        raise InvalidParameter("The random point of the query is a root of unity; the report is rejected.")
    gadget = completed(field, proof[circuit.arity :])
    checks = circuit.checks(vector, gadget[2 : 2 * circuit.calls + 1 : 2], servers)
    check = field.product(weights, checks) if weights else checks[0]
    at_t = weights_at(field, n, t)
    wires = _wires(circuit, circuit.inputs(vector, joint, servers), proof[: circuit.arity])
    inputs = (field.product(wire, at_t) for wire in wires)
    return [check, *inputs, field.product(gadget, weights_at(field, 2 * n, t))]


def decide(circuit: Circuit, verifier: Sequence[int]) -> bool:
    """Return whether the measurement is valid, from the sum of all shares of the verifier."""
    check, *inputs, value = verifier
    return check == 0 and circuit.gadget(inputs) == value


def _wires(circuit: Circuit, calls: Sequence[Sequence[int]], seeds: Sequence[int]) -> list[list[int]]:
    """Return the values of each input's polynomial at the n-th roots of unity: its seed, its calls, and zeros."""
    rest = [0] * (wire_length(circuit) - 1 - circuit.calls)
    return [[seed, *inputs, *rest] for seed, inputs in zip(seeds, zip(*calls, strict=True), strict=True)]
