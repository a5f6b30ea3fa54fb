"""Numbers, tasks and what travels: exact bytes that later versions must read, and what is refused."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import InvalidParameter
from lapwing.secure.device import records_of
from lapwing.secure.estimates import estimates, half_width, standard_deviation
from lapwing.secure.field import MODULUS, joined, split, uniform
from lapwing.secure.numbers import Number, number_between
from lapwing.secure.organising import Totals, close_key
from lapwing.secure.servers import Server
from lapwing.secure.task import Task
from lapwing.secure.values import Values
from lapwing.secure.wire import ServerRelease, cells_of, clients_in, records_in, set_digest, set_of
from tests.secure.conftest import write_task
from tests.secure.test_views import Recorded

FIXTURES = Path(__file__).parents[1] / "fixtures" / "secure"
VECTORS = json.loads((FIXTURES / "vectors.json").read_text())


@pytest.fixture
def recorded() -> Task:
    """A task that was written when the format was fixed."""
    return Task.from_text((FIXTURES / "task.json").read_text(encoding="utf-8"))


def test_the_recorded_task(recorded: Task) -> None:
    assert recorded.to_text() == (FIXTURES / "task.json").read_text(encoding="utf-8")
    assert recorded.digest == VECTORS["task"]


def test_the_recorded_bytes(recorded: Task) -> None:
    coins = Recorded(bytes.fromhex(VECTORS["randomness"]))
    records = records_of(recorded, VECTORS["answer"], coins)
    assert {name: record.hex() for name, record in records.items()} == VECTORS["records"]
    assert not coins.data
    clients = set_of(bytes.fromhex(client) for client in VECTORS["clients"])
    assert set_digest(recorded.digest, clients) == VECTORS["set"]
    release = ServerRelease.from_text(VECTORS["release"], task=recorded.digest, width=3)
    assert release.to_text() == VECTORS["release"]
    assert close_key(VECTORS["key"], "north") == VECTORS["close_key"]


def test_words_beyond_the_modulus_are_dropped() -> None:
    largest, beyond = (MODULUS - 1).to_bytes(8, "little"), MODULUS.to_bytes(8, "little")
    assert uniform(2, Recorded(beyond + largest + b"\xff" * 7 + b"\x3f" + bytes(8))) == [MODULUS - 1, 0]


@pytest.mark.parametrize("values", [[0], [1, 0, 0], [1 << 56], [-3]])
def test_parts_add_up(values: list[int]) -> None:
    assert joined(split(values, 3)) == values


def test_one_server_alone_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="would see every value"):
        split([1], 1)


@pytest.mark.parametrize(
    ("answer", "cells"), [("-1", 0), ("0", 0), ("0.5", 1), ("0.49", 0), ("1.5", 2), ("7", 2), ("1/2", 1)]
)
def test_a_number_is_clamped_and_rounded(answer: str, cells: int) -> None:
    assert Number(Fraction(0), Fraction(2), 2).encode(answer) == (cells,)


@pytest.mark.parametrize("answer", ["", "x", "nan", "inf", "1e3", "--1", "0x1"])
def test_what_is_no_number_is_refused_and_not_repeated(answer: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        number_between("-2:2", 4).encode(answer)
    assert not answer or answer not in str(refused.value).replace("example", "")


def test_a_wrong_answer_is_not_repeated() -> None:
    with pytest.raises(InvalidParameter, match="must be one of") as refused:
        Values(("a", "b")).encode("my secret")
    assert "my secret" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"noise": {"mechanism": "discrete Laplace", "scale": "1"}},  # half of what the promise takes
        {"epsilon": "2"},
        {"delta": "0.00001"},
        {"extra": 1},
        {"format": "lapwing secure task 2"},
        {"least_clients": 0},
        {"least_clients": True},
        {"values": ["walk", "walk"]},
        {"values": ["walk", "bus", "bike"], "number": {"lower": "0", "upper": "1", "steps": 1}},
        {"servers": []},
    ],
)
def test_a_task_that_lies_is_refused(recorded: Task, change: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Task.from_text(json.dumps({**recorded.document, **change}))


def test_keys_that_stand_twice_are_refused(recorded: Task) -> None:
    text = recorded.to_text().replace('"epsilon": "1",', '"epsilon": "9", "epsilon": "1",')
    with pytest.raises(InvalidParameter):
        Task.from_text(text)


def test_servers_that_are_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="same address"):
        write_task(tmp_path, ports=(1, 2, 1))


@pytest.mark.parametrize("name", ["North", "", "a b", "x/../y"])
def test_names_of_servers(name: str) -> None:
    with pytest.raises(InvalidParameter, match="not a valid server name"):
        Server(name=name, address="a:1", certificate="BEGIN CERTIFICATE", close_key="0" * 64)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(31),
        bytes(16) + MODULUS.to_bytes(8, "little") + bytes(8),
        bytes(32) + bytes(16) + (1).to_bytes(8, "little") + bytes(8),
    ],
)
def test_bodies_that_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidParameter):
        records_in(body, 16, lambda part: all(cell < MODULUS for cell in cells_of(part)))


def test_sets_are_ascending() -> None:
    first, second = bytes(16), bytes(15) + b"\x01"
    assert clients_in(first + second) == [first, second]
    for wrong in (second + first, first + first, first + b"\x00"):
        with pytest.raises(InvalidParameter):
            clients_in(wrong)


@pytest.mark.parametrize(("servers", "scale"), [(1, 1), (3, 1), (3, 2), (5, 7)])
@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_half_widths_are_the_smallest(servers: int, scale: int, delta: Fraction, tmp_path: Path) -> None:
    """Against the law of the sum, by repeated sums in rational arithmetic of the mechanism's certified coverage."""
    from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian

    noise = RoundedGaussian(sigma=Fraction(scale)) if delta else DiscreteLaplace(scale=Fraction(scale))
    h = half_width(noise, servers, Fraction(95, 100))
    inside = [float(noise.coverage(k).lower) for k in range(60 * scale)]
    law = {0: inside[0]} | {k: (inside[k] - inside[k - 1]) / 2 for k in range(1, len(inside))}
    law |= {-k: chance for k, chance in law.items()}
    total = {0: 1.0}
    for _ in range(servers):
        together: dict[int, float] = {}
        for at, chance in total.items():
            for k, more in law.items():
                if chance * more > 1e-14:
                    together[at + k] = together.get(at + k, 0.0) + chance * more
        total = together
    covered = [sum(chance for at, chance in total.items() if abs(at) <= width) for width in (h - 1, h)]
    assert covered[0] < 0.95 + 1e-6
    assert covered[1] >= 0.95 - 1e-6


def test_what_a_count_errs_by_is_as_the_comparison_says(tmp_path: Path) -> None:
    """One yes or no at epsilon 1: 2.35 with the noise of three servers, √3 times that of one."""
    task, _ = write_task(tmp_path, number_between("0:1", 1))
    assert standard_deviation(task) == pytest.approx(2.35, abs=0.005)
    assert task.noise.standard_deviation == pytest.approx(1.36, abs=0.005)


def test_a_sum_and_a_mean(tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, number_between("-10:10", 20))
    found = estimates(Totals(task=task, clients=100, clients_digest="", cells=(1100,)))
    assert [(each.label, each.value) for each in found] == [("sum", Fraction(100)), ("mean", Fraction(1))]
    assert all(each.low < each.value < each.high for each in found)
