"""One noise of three servers: its exact law, what one server sees of it, and what a missing or hostile one changes."""

import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Final

import mpmath
import pytest

from lapwing import secure
from lapwing.errors import BudgetExhausted, InvalidParameter, LapwingError, ServiceFault
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.secure import noise_rounds
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.field import MODULUS
from lapwing.secure.joint_noise import CELL_DELTA, DIGITS, Digits, Shared, digits_for, joint_noise
from lapwing.secure.key_stream import KeyStream
from lapwing.secure.noise_rounds import message_sizes
from lapwing.secure.organising import new_task
from lapwing.secure.pair_keys import pair_keys_of
from lapwing.secure.share_store import ShareStore
from lapwing.secure.task import Task, joint_delta
from lapwing.secure.values import Values
from lapwing.secure.wire import set_digest
from tests.secure.conftest import NAMES, write_task
from tests.secure.test_road import free_ports, serving
from tests.secure.test_server import ANSWERS, bodies
from tests.secure.test_views import FIELD, Law, Recorded
from tests.support.effort import one_in, only

SCALES: Final = [Fraction(1, 50), Fraction(1), Fraction(7, 3), Fraction(2000), Fraction(1 << 50)]


def drawn(
    digits: Digits, cells: int, streams: Sequence[Callable[[], Shared]], modulus: int = MODULUS
) -> tuple[list[list[int]], list[list[bytes]]]:
    """Let three servers draw; return the parts of each, and the messages that each got.

    Args: streams: stream i gives what the servers i − 1 and i share, anew for each of them.
    """
    servers = [
        joint_noise(digits, cells, place, streams[place](), streams[(place + 1) % 3](), modulus) for place in range(3)
    ]
    parts: list[list[int]] = [[]] * 3
    got: list[list[bytes]] = [[] for _ in servers]
    sent = [next(server) for server in servers]
    while sent:
        said = []
        for place, server in enumerate(servers):
            got[place].append(sent[(place + 1) % 3])
            try:
                said.append(server.send(got[place][-1]))
            except StopIteration as ended:
                parts[place] = ended.value
        sent = said
    assert all([len(message) for message in each] == digits.message_bytes(cells) for each in got)
    return parts, got


def noise(digits: Digits, cells: int, name: str) -> list[int]:
    """Return noise that is drawn under keys made of a name."""
    keys = [sha256(f"{name} {place}".encode()).digest() for place in range(3)]
    parts, _ = drawn(digits, cells, [lambda key=key: KeyStream(key) for key in keys])  # type: ignore[misc]
    return secure.joined(parts)


# The law.


@pytest.mark.parametrize("bits", [2, 4])
def test_a_digit_is_one_for_as_many_words_as_its_threshold_says(bits: int) -> None:
    """All words, in a cell each, against all thresholds, a digit each; components drawn in two ways."""
    words = range(1 << bits)
    digits = Digits(tuple(words), tuple(1 << each for each in words), bits)
    lanes = len(words) ** 2
    wanted = [sum((word >> bit & 1) << (len(words) * cell + each) for cell, word in enumerate(words) for each in words)
              for bit in range(bits)]  # fmt: skip
    size = (lanes + 7) // 8
    for seed in ("one", "other"):
        two = [KeyStream(sha256(f"{seed} {place}".encode()).digest()).read(1 << 14) for place in range(2)]
        third = b"".join(
            (
                word
                ^ int.from_bytes(two[0][bit * size : (bit + 1) * size], "little")
                ^ int.from_bytes(two[1][bit * size : (bit + 1) * size], "little")
            ).to_bytes(size, "little")
            for bit, word in enumerate(wanted)
        )
        data = [two[0], two[1], third + KeyStream(bytes(32)).read(1 << 14)]
        parts, _ = drawn(digits, len(words), [lambda each=each: Recorded(each) for each in data])  # type: ignore[misc]
        assert secure.joined(parts) == [sum(1 << c for c in words if word < c) for word in words]


def spoilt(digits: Digits, scale: Fraction, bits: int) -> mpmath.mpf:
    """Return the probability with which some digit is another one than an exact one, at most.

    The largest τ such that the law of each digit is 1 − τ times the exact one and τ times some other.
    """
    total = mpmath.mpf(0)
    for threshold, weight in zip(digits.thresholds, digits.weights, strict=True):
        exact = 1 / (1 + mpmath.exp(abs(weight) * mpmath.mpf(scale.denominator) / scale.numerator))
        chance = mpmath.mpf(threshold) / (1 << bits)
        total += max(0, 1 - chance / exact, 1 - (1 - chance) / (1 - exact))
    return total


@pytest.mark.parametrize("scale", only([0], SCALES))
def test_rounding_costs_what_is_said(scale: Fraction) -> None:
    digits = digits_for(scale)
    with mpmath.workdps(2000 if scale < 1 else 200):  # e^(−2^60·50) is met, and must not be 0
        beyond = mpmath.exp(-mpmath.mpf(MODULUS) * scale.denominator / scale.numerator)
        assert 0 < spoilt(digits, scale, 64) + 2 * beyond < mpmath.mpf(CELL_DELTA.numerator) / CELL_DELTA.denominator
    assert len(digits.weights) == 2 * DIGITS
    assert (1 << DIGITS) - 1 == MODULUS


def test_thresholds_that_are_rounded_down_are_noticed() -> None:
    """The planted bug: a digit that can never be 1 has nothing of the law of one that can."""
    digits = digits_for(Fraction(1))
    down = replace(digits, thresholds=tuple(threshold - 1 for threshold in digits.thresholds))
    assert spoilt(down, Fraction(1), 64) >= 1


def law_of(digits: Digits, modulus: int) -> list[Fraction]:
    """Return the law of the sum of digits, modulo a small number, exactly."""
    law = {0: Fraction(1)}
    for threshold, weight in zip(digits.thresholds, digits.weights, strict=True):
        chance = Fraction(threshold, 1 << digits.bits)
        after: dict[int, Fraction] = defaultdict(Fraction)
        for value, weighs in law.items():
            after[(value + weight) % modulus] += weighs * chance
            after[value] += weighs * (1 - chance)
        law = dict(after)
    return [law.get(value, Fraction(0)) for value in range(modulus)]


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_the_law_is_that_of_laplace_noise_but_for_delta(scale: Fraction) -> None:
    """Enumerated modulo 7 and 31: at no number less than 1 − δ of discrete Laplace noise, modulo the same."""
    for count, bits in ((3, 16), (5, 32)):
        modulus, digits = (1 << count) - 1, digits_for(scale, count, bits)
        law = law_of(digits, modulus)
        with mpmath.workdps(60):
            delta = spoilt(digits, scale, bits) + 2 * mpmath.exp(-modulus / mpmath.mpf(float(scale)))
            exact = wrapped(scale, modulus)
            assert all(_real(mine) >= (1 - delta) * theirs for mine, theirs in zip(law, exact, strict=True))
            assert sum(law) == 1


def test_noise_with_an_end_is_noticed() -> None:
    """The planted bug: with a digit fewer, far numbers have less than their law."""
    digits, cut = digits_for(Fraction(1), 3, 16), digits_for(Fraction(1), 2, 16)
    with mpmath.workdps(60):
        delta = spoilt(digits, Fraction(1), 16) + 2 * mpmath.exp(-7)
        law = law_of(cut, 7)
        assert any(
            _real(mine) < (1 - delta) * theirs for mine, theirs in zip(law, wrapped(Fraction(1), 7), strict=True)
        )


def wrapped(scale: Fraction, modulus: int) -> list[mpmath.mpf]:
    q = mpmath.exp(-1 / _real(scale))
    top = (1 - q) / (1 + q)
    return [
        top * (q**value + q ** (modulus - value) if value else 1 + q**modulus) / (1 - q**modulus)
        for value in range(modulus)
    ]


def _real(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def test_wrapped_laplace_noise_adds_up_to_one() -> None:
    with mpmath.workdps(60):
        assert abs(sum(wrapped(Fraction(3, 2), 31)) - 1) < mpmath.mpf(10) ** -50


@pytest.mark.parametrize("cells", [200, pytest.param(20_000, marks=pytest.mark.long)])
def test_the_noise_is_as_large_as_one_servers(cells: int) -> None:
    """Var x² = 5σ⁴ + σ²; its mean must be within six standard deviations, and with 20,000 draws 0.9·scale is not."""
    variance = DiscreteLaplace(scale=Fraction(2)).standard_deviation ** 2
    found = sum(each**2 for each in noise(digits_for(Fraction(2)), cells, "as large")) / cells
    spread = 6 * ((5 * variance**2 + variance) / cells) ** 0.5
    assert abs(found - variance) < spread
    if cells > 1000:
        less = sum(each**2 for each in noise(digits_for(Fraction(9, 5)), cells, "smaller")) / cells
        assert abs(less - variance) > spread


def test_the_recorded_draw() -> None:
    """Servers of several versions must draw the same noise, or their parts do not add up."""
    digits = digits_for(Fraction(3, 2))
    keys = [bytes([place + 1]) * 32 for place in range(3)]
    parts, got = drawn(digits, 3, [lambda key=key: KeyStream(key) for key in keys])  # type: ignore[misc]
    said = b"".join(message for each in got for message in each)
    assert (secure.joined(parts), sha256(said).hexdigest()[:16]) == ([0, 2, -1], "60861a67015d422d")


# What one server sees.

ONE_DIGIT: Final = Digits((1,), (1,), 2)
CHANCE: Final = {0: Fraction(3, 4), 1: Fraction(1, 4)}
STREAM: Final = {"word": (0, 1), "products": (2, 3), "parts": (4,)}
"""Where a stream of two bits, two hidden products and a part modulo 5 has what."""


def view(corrupt: int, own: Sequence[bytes], secret: int, *, without: str = "") -> Law:
    """Return the law of what a server sees: its messages, and what the other two publish of a total.

    Args: own: what it shares with the server before it, and with the one after; secret: the total; without: what the
        other two do not draw, but take to be 0: a planted bug.
    """
    law: dict[object, Fraction] = defaultdict(Fraction)
    first, second = (corrupt + 1) % 3, (corrupt + 2) % 3
    sizes = [2, 2, 2, 2, FIELD, FIELD]  # the last one is the mask of what is published
    fixed = (*STREAM.get(without, ()), *((5,) if without == "masks" else ()))
    ranges = [range(1 if place in fixed else size) for place, size in enumerate(sizes)]
    chance = Fraction(1)
    for each in ranges:
        chance /= len(each)
    for *coins, mask in product(*ranges):
        streams: list[bytes] = [b""] * 3
        streams[corrupt], streams[first], streams[second] = own[0], own[1], bytes(coins)
        parts, got = drawn(ONE_DIGIT, 1, [lambda each=each: Recorded(each) for each in streams], FIELD)  # type: ignore[misc]
        published = (parts[first][0] + mask) % FIELD, (parts[second][0] + secret - mask) % FIELD
        law[tuple(got[corrupt]), published] += chance
    return law


def simulated(corrupt: int, own: Sequence[bytes], secret: int) -> Law:
    """Return the law of a view that is drawn from one noisy total alone."""
    law: dict[object, Fraction] = defaultdict(Fraction)
    hidden = range(FIELD) if corrupt == 2 else range(1)
    for one, two, part, mask in product(range(2), range(2), hidden, range(FIELD)):
        messages = (bytes([one, two]), part.to_bytes(8, "little"))
        server = joint_noise(ONE_DIGIT, 1, corrupt, Recorded(own[0]), Recorded(own[1]), FIELD)
        next(server)
        server.send(messages[0])
        try:
            server.send(messages[1])
        except StopIteration as ended:
            (known,) = ended.value
        for drawn_digit, weight in CHANCE.items():
            noisy = (secret + drawn_digit - known - mask) % FIELD
            law[messages, (mask, noisy)] += weight / (4 * len(hidden) * FIELD)
    return law


OWN: Final = [
    (bytes([0, 1, 1, 0, 3]), bytes([1, 1, 0, 0, 2])),
    (bytes([1, 0, 0, 1, 4]), bytes([0, 0, 1, 1, 0])),
    (bytes(5), bytes(5)),
]


@pytest.mark.parametrize("corrupt", only([1], [0, 1, 2]))
def test_one_server_sees_what_is_drawn_from_a_noisy_total(corrupt: int) -> None:
    for own in OWN:
        for secret in (0, 3):
            assert view(corrupt, own, secret) == simulated(corrupt, own, secret)


@pytest.mark.parametrize(
    ("corrupt", "without"),
    [*product(range(3), ("word", "products")), (2, "parts"), (1, "masks")],
)
def test_what_is_not_drawn_is_noticed(corrupt: int, without: str) -> None:
    """The planted bugs: noise that a server can work out, and messages and releases that are not hidden."""
    assert any(view(corrupt, own, 3, without=without) != simulated(corrupt, own, 3) for own in OWN)


# Servers.


@pytest.fixture
def made(tmp_path: Path) -> tuple[Task, str]:
    first, _ = write_task(tmp_path, ports=free_ports())
    return new_task(
        question=first.question, asked=first.asked, epsilon=Fraction(1), delta=Fraction(0), least_clients=3,
        certificates=[server.certificate for server in first.servers], joint=True,
    )  # fmt: skip


@pytest.fixture
def task(made: tuple[Task, str]) -> Task:
    return made[0]


@pytest.fixture
def servers(tmp_path: Path, task: Task) -> Iterator[dict[str, AddingServer]]:
    budget = budget_of("pure", task.epsilon, task.delta)
    each = {name: AddingServer(tmp_path / name, task, budget) for name in NAMES}
    sent = bodies(task, ANSWERS[:50])
    for name, server in each.items():
        server.take(sent[name])
    yield each
    for server in each.values():
        server.close()


def messages_of(task: Task, servers: Mapping[str, AddingServer], clients: bytes) -> dict[str, bytes]:
    """Return what each server gets while the noise of a set is drawn."""
    digest, got = bytes.fromhex(set_digest(task.digest, clients)), dict.fromkeys(NAMES, b"")
    for _ in message_sizes(task):
        sent = {name: server.noise(digest + got[name]) for name, server in servers.items()}
        got = {name: held + sent[NAMES[(place + 1) % 3]] for place, (name, held) in enumerate(got.items())}
    return got


def test_totals_have_one_noise_and_are_released_once(task: Task, servers: dict[str, AddingServer]) -> None:
    (clients,) = {server.freeze() for server in servers.values()}
    got = messages_of(task, servers, clients)
    released = {name: server.release(got[name] + clients) for name, server in servers.items()}
    again = messages_of(task, servers, clients)
    assert again != got  # sealed anew, and
    assert {name: server.release(again[name] + clients) for name, server in servers.items()} == released
    walk, bus = secure.joined([each.cells for each in released.values()])
    assert abs(walk - 50) < 100
    assert abs(bus) < 100
    for server in servers.values():
        spent, budget = server.spent()
        assert spent == budget
        assert server._ledger.seen().delta_remaining == 0
    assert secure.standard_deviation(task) == task.noise.standard_deviation
    assert Task.from_text(task.to_text()) == task


@pytest.mark.parametrize("planted", one_in(2, [False, True]), ids=["shipped", "planted"])
def test_a_total_is_exact_but_for_noise_of_its_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """Of 300 values: counts, plus what the servers' keys draw at scale 2/ε. The planted bug: nine tenths of it."""
    if planted:
        monkeypatch.setattr(noise_rounds, "digits_for", lambda scale: digits_for(scale * Fraction(9, 10)))
    first, _ = write_task(tmp_path, Values(tuple(map(str, range(300)))), least=2)
    task = replace(first, joint=True, delta=joint_delta(first.asked))
    budget = budget_of("pure", task.epsilon, task.delta)
    with ExitStack() as stack:
        servers = {name: AddingServer(tmp_path / name, task, budget) for name in NAMES}
        for server in servers.values():
            stack.callback(server.close)
        for name, body in bodies(task, ["7", "7", "9"]).items():
            servers[name].take(body)
        (clients,) = {server.freeze() for server in servers.values()}
        got = messages_of(task, servers, clients)
        released = [server.release(got[name] + clients).cells for name, server in servers.items()]
    label = b"lapwing secure noise 1\n" + bytes.fromhex(set_digest(task.digest, clients))
    keys = [pair_keys_of(tmp_path / name, task) for name in NAMES]
    streams = [lambda place=place: keys[place].stream((place - 1) % 3, label) for place in range(3)]
    parts, _ = drawn(digits_for(Fraction(2)), 300, streams)
    expected = [each + {7: 2, 9: 1}.get(value, 0) for value, each in enumerate(secure.joined(parts))]
    assert (secure.joined(released) == expected) is not planted


def test_a_server_that_forgot_its_release_gives_the_same(
    tmp_path: Path, task: Task, servers: dict[str, AddingServer]
) -> None:
    """Put back from a copy, a server would draw other noise of its own; of the joint one there is only one."""
    (clients,) = {server.freeze() for server in servers.values()}
    got = messages_of(task, servers, clients)
    first = servers["north"].release(got["north"] + clients)
    servers["north"].close()
    shutil.copytree(tmp_path / "north", tmp_path / "copy", ignore=shutil.ignore_patterns("sums.*", "*.lock"))
    copy = AddingServer(tmp_path / "copy", task, budget_of("pure", task.epsilon, task.delta))
    try:
        assert copy.release(got["north"] + clients) == first
    finally:
        copy.close()


def test_messages_of_others_are_refused_free_of_charge(task: Task, servers: dict[str, AddingServer]) -> None:
    (clients,) = {server.freeze() for server in servers.values()}
    got = messages_of(task, servers, clients)
    north, digest = servers["north"], bytes.fromhex(set_digest(task.digest, clients))
    fewer = clients[16:]
    first, second, *_ = sizes = message_sizes(task)
    hostile = [
        b"",
        got["north"][: -sizes[-1]],
        got["south"],
        got["north"][: -sizes[-1]] + bytes(sizes[-1]),
        got["north"][:first] + got["north"][:second] + got["north"][first + second :],
        messages_of(task, servers, fewer)["north"],
    ]
    for messages in hostile:
        with pytest.raises(LapwingError):
            north.release(messages + clients)
    with pytest.raises(InvalidParameter, match="not from the other server"):
        north.release(got["north"] + fewer)  # the organiser draws the noise of one set for another
    for body in (b"", digest[:-1], digest + b"x", digest + bytes(first), digest + got["north"]):
        with pytest.raises(InvalidParameter):
            north.noise(body)
    assert north.spent()[0].amount == 0
    assert north.release(got["north"] + clients).clients == 50


def said_otherwise(tmp_path: Path, task: Task, digest: bytes, sealed: bytes) -> bytes:
    """Return what south says to north in the first round, with a bit turned: south has the key to seal it."""
    label = noise_rounds._NOISE + digest + bytes([0])
    message = pair_keys_of(tmp_path / "north", task).opened(1, label, sealed)
    return pair_keys_of(tmp_path / "south", task).seal(0, label, bytes([message[0] ^ 1]) + message[1:])


def test_a_server_is_held_to_what_it_said_first(
    tmp_path: Path, task: Task, servers: dict[str, AddingServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the one that it said it to was killed meanwhile; the same thing, sealed anew, is taken again."""
    (clients,) = {server.freeze() for server in servers.values()}
    digest = bytes.fromhex(set_digest(task.digest, clients))
    first, again = (servers["south"].noise(digest) for _ in range(2))
    assert first != again
    for sealed in (first, again):
        servers["north"].noise(digest + sealed)
    other = said_otherwise(tmp_path, task, digest, first)
    servers["north"].close()
    servers["north"] = AddingServer(tmp_path / "north", task, budget_of("pure", task.epsilon, task.delta))
    with pytest.raises(InvalidParameter, match="a different message in this round before"):
        servers["north"].noise(digest + other)
    servers["north"].noise(digest + first)
    monkeypatch.setattr(ShareStore, "hold_to", lambda *_: None)  # the planted bug
    servers["north"].noise(digest + other)


def test_a_server_that_might_say_two_things_would_learn_what_it_must_not_know() -> None:
    """South turns what it said: what it is sent two rounds later turns where a component is 1 that it lacks."""

    def sent_to_south(unknown: bytes, turned: int) -> bytes:
        digits = digits_for(Fraction(1))
        # Stream 0 is between the two others; each server reads its own copies.
        shared = [[KeyStream(key) for key in (unknown, b"1" * 32, b"2" * 32)] for _ in range(2)]
        servers = [joint_noise(digits, 1, place, shared[0][place], shared[1][(place + 1) % 3]) for place in range(3)]
        said = [next(server) for server in servers]
        said[1] = bytes(each ^ turned for each in said[1])
        for _ in range(2):
            said = [server.send(said[(place + 1) % 3]) for place, server in enumerate(servers)]
        return said[2]

    unknown = [bytes([number]) * 32 for number in range(8)]
    differences = {
        bytes(a ^ b for a, b in zip(sent_to_south(each, 0), sent_to_south(each, 255), strict=True)) for each in unknown
    }
    assert len(differences) > 1


def test_a_ledger_without_delta_takes_no_joint_noise(tmp_path: Path, task: Task) -> None:
    other = replace(task, question="Another?")
    for folder, measure, delta in (("north", "pure", Fraction(0)), ("south", "gdp", Fraction(1, 10**6))):
        server = AddingServer(tmp_path / folder, task, budget_of(measure, Fraction(9), delta))
        with pytest.raises(BudgetExhausted, match=r"takes a delta of 2.8e-17"):
            server.require_affordable()
        server.close()
    west = AddingServer(tmp_path / "west", task, budget_of("pure", Fraction(2), task.delta))
    west.require_affordable()
    west.take(bodies(task, ANSWERS[:3])["west"])
    clients = west.freeze()
    west._ledger.record_answer(west._charge(set_digest(task.digest, clients), 3), "released")
    west.close()
    second = AddingServer(tmp_path / "west", other, budget_of("pure", Fraction(2), task.delta))
    with pytest.raises(BudgetExhausted, match="larger --delta"):
        second.require_affordable()
    second.close()


def test_a_task_states_the_delta_of_its_joint_noise(task: Task) -> None:
    assert task.delta == joint_delta(task.asked) == 2 * CELL_DELTA
    assert "unless two of" in task.promise
    for delta in (Fraction(0), Fraction(1, 10**6), task.delta / 2):
        with pytest.raises(InvalidParameter, match="leave it out"):
            replace(task, delta=delta)
    with pytest.raises(InvalidParameter, match="joint noise takes three servers"):
        replace(task, servers=task.servers[:2])


def test_a_missing_or_slow_server_is_named_and_nothing_is_released_twice(
    tmp_path: Path, made: tuple[Task, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task, key = made
    monkeypatch.setattr("tests.secure.test_road.budget_of", lambda *_: budget_of("pure", task.epsilon, task.delta))
    taken, asked, goes_on = AddingServer.noise, [], threading.Event()

    def hangs(self: AddingServer, body: bytes) -> bytes:
        asked.append(body)
        if len(asked) == 8:  # south, in the third round
            assert goes_on.wait(60)
        return taken(self, body)

    with ExitStack() as stack:
        each = {name: ExitStack() for name in NAMES}
        running = {name: each[name].enter_context(serving(tmp_path, task, name)) for name in NAMES}
        for one in each.values():
            stack.push(one)
        secure.send_all(task, ANSWERS[:20])
        with monkeypatch.context() as slow:
            slow.setattr(AddingServer, "noise", hangs)
            with pytest.raises(ServiceFault, match=r"south at 127.* does not answer in time"):
                secure.close(task, key, seconds=3)
            goes_on.set()
        each["west"].close()
        with pytest.raises(ServiceFault, match="west at 127"):
            secure.close(task, key)
        assert [server.spent()[0].amount for name, server in running.items() if name != "west"] == [0, 0]
        running["west"] = each["west"].enter_context(serving(tmp_path, task, "west"))
        released = AddingServer.release
        with monkeypatch.context() as crashing:

            def crashes(self: AddingServer, body: bytes) -> object:
                found = released(self, body)
                if self is running["south"]:  # after the charge, before anything has left
                    raise MemoryError
                return found

            crashing.setattr(AddingServer, "release", crashes)
            with pytest.raises(LapwingError):
                secure.close(task, key)
        north = running["north"].released()
        found = secure.close(task, key)
        assert secure.close(task, key) == found == secure.totals(task)
        assert running["north"].released() == north
        assert [server.spent()[0].amount for server in running.values()] == [1, 1, 1]
