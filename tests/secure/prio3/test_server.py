"""Servers of a Prio3 task: each report once, each release charged once, and the noise of one server suffices."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from secrets import token_bytes

import numpy as np
import pytest

from lapwing.errors import BudgetExhausted, Fault, InvalidParameter, QueryRefused
from lapwing.secure.adding import budget_of
from lapwing.secure.prio3.circuits import CountCircuit, HistogramCircuit, SumCircuit, SumVecCircuit
from lapwing.secure.prio3.server import Prio3Server, noisy_share
from lapwing.secure.prio3.task import Prio3Task

KEY = bytes(range(32))
TASK = Prio3Task(
    question="Which?", circuit=HistogramCircuit(3, 2), epsilon=Fraction(1), delta=Fraction(0), least_reports=2
)
BUDGET = budget_of(TASK.measure, TASK.epsilon, TASK.delta)
Open = Callable[..., Prio3Server]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    servers: list[Prio3Server] = []

    def opening(place: int, task: Prio3Task = TASK, key: bytes = KEY) -> Prio3Server:
        folder = tmp_path / str(place)
        folder.mkdir(exist_ok=True)
        servers.append(Prio3Server(folder, task, place, key, BUDGET))
        return servers[-1]

    yield opening
    for server in servers:
        server.close()


def send(servers: list[Prio3Server], measurement: int) -> bytes:
    """Take one report through the whole protocol, and return its nonce."""
    prio3, nonce = servers[0].task.prio3, token_bytes(16)
    report = prio3.shard(measurement, nonce, token_bytes(prio3.randomness_bytes))
    begun = [
        server.begin_verifying(nonce, report.public_share, share)
        for server, share in zip(servers, report.input_shares, strict=True)
    ]
    message = prio3.verifier_message([share for _, share in begun])
    for server, (kept, _) in zip(servers, begun, strict=True):
        assert server.accept(nonce, kept, message) == 1
        assert server.accept(nonce, kept, message) == 0
    return nonce


def test_from_reports_to_totals(opened: Open) -> None:
    servers = [opened(0), opened(1)]
    nonces = [send(servers, bucket) for bucket in (0, 2, 2, 1, 2)]
    (reports,) = {server.freeze() for server in servers}
    assert reports == b"".join(sorted(nonces))
    shares = [server.release(reports) for server in servers]
    assert [server.release(reports) for server in servers] == shares  # free
    for total, truth in zip(TASK.totals(shares), (1, 1, 3), strict=True):
        assert abs(total - truth) < 200  # noise of scale 2 is beyond 100 of them with a probability below e^-90
    other = b"".join(sorted(nonces)[1:])
    with pytest.raises(BudgetExhausted):
        servers[0].release(other)
    with pytest.raises(QueryRefused):
        servers[0].release(nonces[0])
    with pytest.raises(InvalidParameter):
        servers[0].release(bytes(16) + reports)


def test_a_nonce_is_verified_with_one_report(opened: Open) -> None:
    server, prio3, nonce = opened(1), TASK.prio3, token_bytes(16)
    report, other = (prio3.shard(1, nonce, token_bytes(prio3.randomness_bytes)) for _ in range(2))
    once = server.begin_verifying(nonce, report.public_share, report.input_shares[1])
    assert server.begin_verifying(nonce, report.public_share, report.input_shares[1]) == once
    for public, share in ((other.public_share, report.input_shares[1]), (report.public_share, other.input_shares[1])):
        with pytest.raises(InvalidParameter):
            server.begin_verifying(nonce, public, share)
    server.close()
    assert opened(1).begin_verifying(nonce, report.public_share, report.input_shares[1]) == once
    with pytest.raises(Fault):
        opened(1)


def test_the_key_of_a_task_cannot_change(opened: Open) -> None:
    opened(0).close()
    with pytest.raises(Fault):
        opened(0, key=bytes(32))


def test_the_digest_of_a_task_stays() -> None:
    """It is in every share, so clients of an earlier version must have the same."""
    assert TASK.digest == "9e4c2c5fb4f4a48a51aa58388822b962b107863ffe4bfbe4fc1e0ea3c8c27bd3"


def test_a_report_of_another_task_fails() -> None:
    """A task with less noise has other shares, so a client's report for one is none for the other."""
    other = Prio3Task(
        question="Which?", circuit=HistogramCircuit(3, 2), epsilon=Fraction(2), delta=Fraction(0), least_reports=2
    )
    nonce, key = token_bytes(16), bytes(32)
    report = TASK.prio3.shard(1, nonce, token_bytes(TASK.prio3.randomness_bytes))
    begun = [
        other.prio3.begin_verifying(key, place, nonce, report.public_share, share)
        for place, share in enumerate(report.input_shares)
    ]
    with pytest.raises(InvalidParameter):
        other.prio3.verifier_message([share for _, share in begun])


WIDE = Prio3Task(
    question="?", circuit=HistogramCircuit(4000, 64), epsilon=Fraction(1), delta=Fraction(0), least_reports=2
)


def spread(by_leader: bool, by_helper: bool) -> list[float]:
    """Return the variance of each server's noise, over 4,000 cells with known shares."""
    field, nothing = WIDE.circuit.field, bytes(16 * 4000)
    shares = [noisy_share(nothing, WIDE) if noisy else nothing for noisy in (by_leader, by_helper)]
    return [float(np.var(WIDE.totals([share, field.encode([0] * 4000)]))) for share in shares]


@pytest.mark.parametrize("planted", [False, True], ids=["shipped", "planted"])
def test_each_server_adds_all_of_the_noise(planted: bool) -> None:
    """The law's variance is 2a/(1 − a)², a = e^(−1/2), for one server; the planted bug: only the leader adds noise."""
    a = np.exp(-0.5)
    law = 2 * a / (1 - a) ** 2
    enough = [abs(each / law - 1) < 0.25 for each in spread(True, not planted)]  # beyond 7 standard deviations
    assert enough == [True, not planted]


def test_sensitivities() -> None:
    """By trying all pairs of measurements."""
    for circuit, measurements in (
        (CountCircuit(), range(2)),
        (SumCircuit(5), range(6)),
        (HistogramCircuit(3, 2), range(3)),
        (SumVecCircuit(2, 2, 2), [[i, j] for i in range(3) for j in range(3)]),
    ):
        added = [circuit.truncate(circuit.encode(each)) for each in measurements]
        pairs = [(np.array(one) - np.array(two)) for one in added for two in added]
        assert max(int(np.abs(pair).sum()) for pair in pairs) == circuit.sensitivity.l1
        assert max(int((pair**2).sum()) for pair in pairs) == circuit.sensitivity.l2_squared
        assert max(int(np.max(each)) for each in added) == circuit.largest


@pytest.mark.parametrize("part", [Fraction(1), Fraction(9, 10), Fraction(1, 2)], ids=["shipped", ".9", "one cell"])
def test_noise_for_less_than_a_measurement_moves_is_noticed(part: Fraction) -> None:
    """By trying all pairs; the planted bugs: nine tenths of the scale, and noise as if one of two cells moved."""
    added = [np.array(TASK.circuit.truncate(TASK.circuit.encode(bucket))) for bucket in range(3)]
    moved = max(int(np.abs(one - other).sum()) for one in added for other in added)
    assert (moved / (TASK.noise.scale * part) <= TASK.epsilon) is (part == 1)


def test_tasks_are_bounded() -> None:
    for changed in (
        {"least_reports": 0},
        {"delta": Fraction(1), "least_reports": 2},
        {"circuit": SumCircuit(1 << 55)},
    ):
        given = {"question": "?", "circuit": CountCircuit(), "epsilon": Fraction(1), "delta": Fraction(0)}
        with pytest.raises(InvalidParameter):
            Prio3Task(**{"least_reports": 2, **given, **changed})  # type: ignore[arg-type]
