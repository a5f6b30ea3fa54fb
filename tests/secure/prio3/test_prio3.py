"""Prio3 around its vectors: what is refused, what messages two servers exchange, and twins with a planted bug."""

from collections.abc import Sequence
from fractions import Fraction
from secrets import token_bytes

import pytest

from lapwing.errors import InvalidParameter
from lapwing.secure.prio3 import proofs
from lapwing.secure.prio3.circuits import (
    Circuit,
    CountCircuit,
    HistogramCircuit,
    SumCircuit,
    SumVecCircuit,
)
from lapwing.secure.prio3.fields import FIELD64, FIELD128, PrimeField, completed, doubled, roots, weights_at
from lapwing.secure.prio3.ping_pong import helper_finishes, leader_begins, leader_finishes
from lapwing.secure.prio3.prio3 import NONCE_BYTES, Prio3
from lapwing.secure.prio3.range_checks import Measurement
from lapwing.secure.prio3.xof import SEED_BYTES, Xof

CASES: list[tuple[Circuit, list[Measurement], list[int]]] = [
    (CountCircuit(), [1, 0, 1], [2]),
    (SumCircuit(1), [1, 0, 1], [2]),
    (SumCircuit(100), [100, 0, 63, 64, 37], [264]),
    (SumVecCircuit(3, 5, 2), [[0, 5, 3], [1, 2, 4], [5, 5, 5]], [6, 12, 12]),
    (SumVecCircuit(1, 1, 1), [[1], [0]], [1]),
    (HistogramCircuit(1, 1), [0, 0], [2]),
    (HistogramCircuit(11, 3), [10, 0, 5, 10], [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2]),
]


def verified(prio3: Prio3, measurement: Measurement) -> list[tuple[int, ...]]:
    """Return every server's share of what is added up, by the whole protocol."""
    key, nonce = token_bytes(SEED_BYTES), token_bytes(NONCE_BYTES)
    report = prio3.shard(measurement, nonce, token_bytes(prio3.randomness_bytes))
    begun = [
        prio3.begin_verifying(key, place, nonce, report.public_share, share)
        for place, share in enumerate(report.input_shares)
    ]
    message = prio3.verifier_message([share for _, share in begun])
    return [prio3.verified(kept, message) for kept, _ in begun]


@pytest.mark.parametrize("servers", [2, 3])
@pytest.mark.parametrize(("circuit", "measurements", "totals"), CASES, ids=str)
def test_totals(circuit: Circuit, measurements: Sequence[Measurement], totals: list[int], servers: int) -> None:
    prio3 = Prio3(circuit=circuit, context=b"tests", servers=servers)
    by_client = [verified(prio3, measurement) for measurement in measurements]
    assert prio3.unshard([prio3.total(each) for each in zip(*by_client, strict=True)]) == totals


@pytest.mark.parametrize(
    ("circuit", "measurement"),
    [
        (CountCircuit(), 2),
        (CountCircuit(), -1),
        (CountCircuit(), True),
        (CountCircuit(), [1]),
        (SumCircuit(100), 101),
        (SumVecCircuit(3, 5, 2), [0, 6, 1]),
        (SumVecCircuit(3, 5, 2), [0, 1]),
        (HistogramCircuit(11, 3), 11),
    ],
    ids=str,
)
def test_no_measurement_outside_is_sent(circuit: Circuit, measurement: Measurement) -> None:
    prio3 = Prio3(circuit=circuit, context=b"tests")
    with pytest.raises(InvalidParameter):
        prio3.shard(measurement, bytes(NONCE_BYTES), bytes(prio3.randomness_bytes))


LIES: list[tuple[Circuit, list[int]]] = [
    (CountCircuit(), [2]),
    (SumCircuit(5), [0, 1, FIELD64.modulus - 1]),
    (SumVecCircuit(2, 3, 2), [0, 1, 2, 0]),
    (HistogramCircuit(4, 2), [1, 1, 0, 0]),
    (HistogramCircuit(4, 2), [0, 0, 0, 0]),
    (HistogramCircuit(4, 2), [FIELD128.modulus - 1, 2, 0, 0]),
]


def accepted(circuit: Circuit, vector: list[int], decide: bool = True) -> bool:
    """Return whether an encoded measurement passes with the proof of one that does what the protocol says."""
    field, stream = circuit.field, Xof(token_bytes(32), b"", b"")
    seeds, joint = stream.vector(field, circuit.arity), stream.vector(field, circuit.joint)
    proof = proofs.prove(circuit, vector, seeds, joint)
    randomness = stream.vector(field, proofs.query_length(circuit))
    check, *verifier = proofs.query(circuit, vector, proof, randomness, joint, 1)
    return proofs.decide(circuit, [check if decide else 0, *verifier])


@pytest.mark.parametrize(("circuit", "vector"), LIES, ids=str)
@pytest.mark.parametrize("decide", [True, False], ids=["shipped", "planted"])
def test_invalid_measurements_are_rejected(circuit: Circuit, vector: list[int], decide: bool) -> None:
    """The planted bug: nobody looks whether the outputs of the circuit are 0."""
    assert accepted(circuit, vector, decide) is not decide


def test_the_gadget_is_tested() -> None:
    """A liar writes 0 = C(x) into the proof; the polynomial is then not that of the inputs, at all t but a few."""
    circuit, field = CountCircuit(), FIELD64
    proof = proofs.prove(circuit, [5], [7, 9], [])
    lie = [*proof[:2], proof[2], 0, 5]  # the last value is that at the call, which should be 25
    assert proof[4] == 25
    check, *inputs, value = proofs.query(circuit, [5], lie, [12345], [], 1)
    assert check == 0
    assert circuit.gadget(inputs) != value
    points = range(2, 1000)
    passing = [t for t in points if proofs.decide(circuit, proofs.query(circuit, [5], lie, [t], [], 1))]
    assert len(passing) <= proofs.soundness_error(circuit) * field.modulus


@pytest.mark.parametrize("drawn", [True, False], ids=["shipped", "planted"])
def test_a_verifier_tells_nothing_of_a_valid_measurement(drawn: bool) -> None:
    """Seeds of 1 and moved seeds of 0 have one verifier, so uniform seeds hide which it is; planted: fixed seeds."""
    field, point, seeds = FIELD64, 12345, [7, 9]
    first, second = weights_at(field, 2, point)
    shift = second * pow(first, -1, field.modulus)
    moved = [(seed + shift) % field.modulus for seed in seeds] if drawn else seeds

    def verifier(value: int, seeds: list[int]) -> list[int]:
        return proofs.query(CountCircuit(), [value], proofs.prove(CountCircuit(), [value], seeds, []), [point], [], 1)

    assert (verifier(1, seeds) == verifier(0, moved)) is drawn


@pytest.mark.parametrize("drawn", [True, False], ids=["shipped", "planted"])
def test_randomness_that_is_used_twice_is_noticed(drawn: bool) -> None:
    """The planted bug: two reports with the same randomness, so the leader's shares differ by the measurements."""
    circuit = HistogramCircuit(4, 2)
    prio3, field, nonce = Prio3(circuit=circuit, context=b"tests"), circuit.field, bytes(NONCE_BYTES)
    once = token_bytes(prio3.randomness_bytes)
    reports = [prio3.shard(value, nonce, token_bytes(len(once)) if drawn else once) for value in (1, 2)]
    one, other = (field.decode(report.input_shares[0][: 4 * field.size]) for report in reports)
    told = field.difference(one, other) == field.difference(circuit.encode(1), circuit.encode(2))
    assert told is not drawn
    assert (reports[0].input_shares[1] == reports[1].input_shares[1]) is not drawn


@pytest.mark.parametrize("circuit", [case[0] for case in CASES], ids=str)
def test_soundness_is_small(circuit: Circuit) -> None:
    most = Fraction(1, 2**60 if circuit.field is FIELD64 else 2**120)
    assert 0 < proofs.soundness_error(circuit) < most


@pytest.mark.parametrize("field", [FIELD64, FIELD128], ids=["64", "128"])
def test_polynomials(field: PrimeField) -> None:
    """By Horner's rule, at points that are roots and that are none."""
    p, coefficients = field.modulus, [3, 1, 4, 1]

    def at(x: int) -> int:
        value = 0
        for each in reversed(coefficients):
            value = (value * x + each) % p
        return value

    values = [at(root) for root in roots(field, 4)]
    assert doubled(field, values) == [at(root) for root in roots(field, 8)]
    for point in (0, 1, 12345, roots(field, 4)[3], roots(field, 8)[1]):
        assert field.product(values, weights_at(field, 4, point)) == at(point)
    assert completed(field, doubled(field, values)[:-1]) == doubled(field, values)
    assert pow(field.generator, 1 << field.levels - 1, p) == p - 1
    with pytest.raises(InvalidParameter):
        field.decode(p.to_bytes(field.size, "little"))
    with pytest.raises(InvalidParameter):
        field.decode(bytes(field.size + 1))


def test_ping_pong() -> None:
    prio3, key, nonce = (
        Prio3(circuit=HistogramCircuit(4, 2), context=b"tests"),
        token_bytes(32),
        token_bytes(NONCE_BYTES),
    )
    report = prio3.shard(2, nonce, token_bytes(prio3.randomness_bytes))
    sent = [(key, nonce, report.public_share, share) for share in report.input_shares]
    kept, first = leader_begins(prio3, *sent[0])
    helper, second = helper_finishes(prio3, *sent[1], first)
    assert (first[0], second[:5]) == (0, b"\x02\x00\x00\x00\x20")
    assert prio3.unshard([leader_finishes(prio3, kept, second), helper]) == [0, 0, 1, 0]
    changed = first[:-1] + bytes([first[-1] ^ 1])
    for wrong in (b"", first[:4], first[:-1], first + b"\x00", b"\x01" + first[1:], second, changed):
        with pytest.raises(InvalidParameter):
            helper_finishes(prio3, *sent[1], wrong)
    for wrong in (b"", second[:-1], b"\x00" + second[1:], second[:-1] + bytes([second[-1] ^ 1])):
        with pytest.raises(InvalidParameter):
            leader_finishes(prio3, kept, wrong)


def test_what_is_malformed_is_rejected() -> None:
    prio3 = Prio3(circuit=HistogramCircuit(4, 2), context=b"tests")
    key, nonce = token_bytes(32), token_bytes(NONCE_BYTES)
    report = prio3.shard(2, nonce, token_bytes(prio3.randomness_bytes))
    leader, helper = report.input_shares
    for place, share in ((0, leader[:-1]), (0, helper), (1, leader), (1, b""), (0, b"\xff" * len(leader)), (2, helper)):
        with pytest.raises(InvalidParameter):
            prio3.begin_verifying(key, place, nonce, report.public_share, share)
    for public in (b"", report.public_share[:-1]):
        with pytest.raises(InvalidParameter):
            prio3.begin_verifying(key, 1, nonce, public, helper)
    shares = [prio3.begin_verifying(key, i, nonce, report.public_share, report.input_shares[i])[1] for i in (0, 1)]
    for wrong in (shares[:1], [*shares, shares[0]], [shares[0], shares[1][:-1]]):
        with pytest.raises(InvalidParameter):
            prio3.verifier_message(wrong)
    for bad in (
        lambda: Prio3(circuit=CountCircuit(), context=b"", servers=1),
        lambda: SumCircuit(0),
        lambda: HistogramCircuit(3, 4),
    ):
        with pytest.raises(InvalidParameter):
            bad()


def test_shares_and_what_is_kept_are_not_shown() -> None:
    prio3 = Prio3(circuit=CountCircuit(), context=b"tests")
    report = prio3.shard(1, bytes(16), bytes(prio3.randomness_bytes))
    assert "input_shares" not in repr(report)
    kept, _ = prio3.begin_verifying(bytes(32), 0, bytes(16), b"", report.input_shares[0])
    assert repr(kept) == "Verification()"
