"""A task that repeats: one charge for all days, noise that is drawn once, and devices that count their days."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from lapwing.errors import BudgetExhausted, Fault, InvalidParameter, QueryRefused
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.continual.tree import SubtractiveTree
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.device import read_device, records_of
from lapwing.secure.numbers import number_between
from lapwing.secure.organising import add_up
from lapwing.secure.repeating_device import acknowledged_day, answer_today, answered_days, waiting_days
from lapwing.secure.repeating_organiser import Days
from lapwing.secure.repeating_server import HorizonNoise, RepeatingServer
from lapwing.secure.repetition import TaskDays
from lapwing.secure.task import Task
from lapwing.secure.wire import set_of
from tests.secure.conftest import NAMES, write_task
from tests.support.fixed_entropy import StreamEntropy
from tests.support.refusals import refused_as

FIRST = date(2026, 3, 1)
REPEATS = TaskDays(first=FIRST, days=30, most_days=2)
TREE = REPEATS.tree
NOTHING = np.zeros(2, dtype=np.int64)
Serve = Callable[..., RepeatingServer]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return replace(write_task(tmp_path)[0], repeats=REPEATS)


@pytest.fixture
def serve(tmp_path: Path, task: Task) -> Iterator[Serve]:
    """Begin a server; all end with the test."""
    running: list[RepeatingServer] = []

    def beginning(name: str = "north", entropy: Entropy = SYSTEM) -> RepeatingServer:
        budget = budget_of(task.measure, Fraction(1), Fraction(0))
        running.append(RepeatingServer(tmp_path / name, task, budget, entropy))
        return running[-1]

    yield beginning
    for server in running:
        server.close()


def sent(task: Task, day: int, answers: Sequence[str]) -> tuple[dict[str, bytes], bytes]:
    """The bodies of people of a day for each server, and their set."""
    people = [records_of(task.on(day), answer) for answer in answers]
    return {name: b"".join(each[name] for each in people) for name in NAMES}, set_of(p["north"][:16] for p in people)


def day_of(server: RepeatingServer, task: Task, day: int, answers: Sequence[str]) -> tuple[int, ...]:
    """Answer a day at one server, and release it; return its cells."""
    bodies, clients = sent(task, day, answers)
    server.take(day, bodies["north"])
    server.freeze(day)
    return server.release(day, clients).cells


# The law.


def walks(tree: SubtractiveTree) -> list[dict[tuple[int, int], int]]:
    """The nodes, by level and place, that lead from 0 to each tick, and their signs: written anew, from the digits."""
    found = []
    for tick in range(1, tree.ticks + 1):
        nodes: dict[tuple[int, int], int] = {}
        digits, rest = [], tick
        for _ in range(tree.levels - 1):
            digit = (rest + tree.branches // 2) % tree.branches - tree.branches // 2
            digits.append(digit)
            rest = (rest - digit) // tree.branches
        digits.append(rest)
        at = 0
        for level in reversed(range(tree.levels)):
            size, digit = tree.branches**level, digits[level]
            for step in range(abs(digit)):
                place = at // size + step if digit > 0 else at // size - step - 1
                nodes[level, place] = 1 if digit > 0 else -1
            at += digit * size
        assert at == tick
        found.append(nodes)
    return found


def loss_of(task: Task, most_days: int) -> Fraction:
    """The most that all releases of one server lose, over all pairs of histories on so many days, from the tree alone.

    The running totals are Ax + Bz, and A = BC with the counts C of the nodes. So two streams are told apart by
    ‖C(x − x′)‖₁/scale at most.
    """
    tree, worst = TREE, 0
    for days in combinations(range(0, tree.ticks, 3), most_days):
        for signs in product((1, -1), repeat=most_days):  # of one cell; the other has the opposite
            nodes: dict[tuple[int, int], int] = {}
            for day, sign in zip(days, signs, strict=True):
                for level in range(tree.levels):
                    node = level, day // tree.branches**level
                    nodes[node] = nodes.get(node, 0) + sign
            worst = max(worst, 2 * sum(map(abs, nodes.values())))
    return Fraction(worst) / task.noise.scale


def test_the_horizon_loses_epsilon_and_no_more(task: Task) -> None:
    """Planted bugs: noise that is a tenth too small, and a person who is counted on one day more than the task says."""
    assert TREE.levels > 1
    assert loss_of(task, 2) == task.epsilon == 1
    smaller = replace(task, epsilon=task.epsilon / Fraction(9, 10))
    assert loss_of(smaller, 2) > 1
    assert loss_of(task, 3) > 1


def test_days_add_up_to_the_walks_of_the_tree(task: Task) -> None:
    """B of what is released is that of the proof: a known draw of each node gives the sums of its walks."""
    mechanism, runs = REPEATS.mechanism(task.epsilon, task.asked.sensitivity), 2000
    variance, entropy = np.zeros(TREE.ticks), StreamEntropy("walks")
    for _ in range(runs // 100):
        noise, cells = HorizonNoise(mechanism, 100, b""), np.zeros(100, dtype=np.int64)
        steps = [noise.release(cells, entropy).astype(float) for _ in range(TREE.ticks)]
        variance += (np.cumsum(steps, axis=0) ** 2).sum(axis=1)
    one = float(task.noise.standard_deviation) ** 2
    lengths = np.array([len(nodes) for nodes in walks(TREE)])
    assert np.abs(variance / runs / one / lengths - 1).max() < 0.25  # a kurtosis of 6 at most: five deviations


def test_noise_is_taken_up_where_it_stopped(task: Task) -> None:
    mechanism = REPEATS.mechanism(task.epsilon, task.asked.sensitivity)
    whole, entropy = HorizonNoise(mechanism, 2, b""), StreamEntropy("stops")
    expected = [whole.release(NOTHING, entropy).tolist() for _ in range(30)]
    found, kept, entropy = [], b"", StreamEntropy("stops")
    for _ in range(30):
        noise = HorizonNoise(mechanism, 2, kept)
        found.append(noise.release(NOTHING, entropy).tolist())
        kept = noise.to_bytes()
    assert found == expected


# A server.


def test_totals_of_days_and_windows(task: Task, serve: Serve) -> None:
    servers = {name: serve(name) for name in NAMES}
    totals = []
    for day in range(1, 10):
        bodies, clients = sent(task, day, ["walk"] * (10 * day) + ["bus"] * 5)
        for name, server in servers.items():
            server.take(day, bodies[name])
            assert server.freeze(day) == clients
        totals.append(add_up(task.on(day), [server.release(day, clients) for server in servers.values()]))
    days = Days(task=task, totals=tuple(totals))
    walk, bus = days.estimates(9, None, Fraction(999_999, 10**6))
    assert walk.low <= 450 <= walk.high
    assert bus.low <= 45 <= bus.high
    recent, _ = days.estimates(9, 3, Fraction(999_999, 10**6))
    assert recent.low <= 240 <= recent.high
    assert days.over(9, 3).clients == 240 + 15
    assert days.standard_deviation(9) == pytest.approx((3 * len(walks(TREE)[8])) ** 0.5 * task.noise.standard_deviation)


def test_the_horizon_is_charged_once(task: Task, serve: Serve) -> None:
    server = serve()
    server.require_affordable()
    before, budget = server.spent()
    day_of(server, task, 1, ["walk"] * 5)
    once, _ = server.spent()
    assert once == budget != before
    for day in range(2, 6):
        day_of(server, task, day, ["bus"] * 4)
    assert server.spent() == (budget, budget)


def test_a_budget_that_is_too_small_releases_nothing(task: Task, tmp_path: Path) -> None:
    budget = budget_of(task.measure, Fraction(1, 2), Fraction(0))
    server = RepeatingServer(tmp_path / "north", task, budget)
    with pytest.raises(BudgetExhausted):
        server.require_affordable()
    with pytest.raises(Fault):  # another server in the same folder
        RepeatingServer(tmp_path / "north", task, budget)
    server.freeze(1)
    with pytest.raises(BudgetExhausted):
        server.release(1, b"")
    assert server.released(1) is None
    server.close()


def test_a_day_is_released_once_and_in_order(task: Task, serve: Serve) -> None:
    server = serve()
    bodies, clients = sent(task, 1, ["walk"] * 5)
    server.take(1, bodies["north"])
    server.freeze(1)
    with pytest.raises(InvalidParameter):
        server.release(2, b"")
    first = server.release(1, clients)
    assert server.release(1, clients) == first == server.released(1)
    with refused_as("task_closed"):
        server.release(1, clients[: 4 * 16])
    with refused_as("task_closed"):
        server.take(1, bodies["north"])
    assert server.freeze(1) == clients
    assert server.progress(1) == (5, True)


def test_too_few_clients_are_none(task: Task, serve: Serve) -> None:
    server = serve()
    bodies, clients = sent(task, 1, ["walk"] * 2)
    server.take(1, bodies["north"])
    server.freeze(1)
    with refused_as("too_few_clients"):
        server.release(1, clients)
    assert server.release(1, b"").clients == 0
    with refused_as("task_closed"):
        server.take(1, bodies["north"])


class Named:
    """Entropy whose first bytes are of another source: they name the file of days."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy, self._named = entropy, False

    def read(self, size: int) -> bytes:
        if self._named:
            return self._entropy.read(size)
        self._named = True
        return b"i" * size


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_server_that_is_restarted_draws_no_node_again(
    task: Task, serve: Serve, tmp_path: Path, *, forgetful: bool
) -> None:
    """With the same draws, one that is restarted each day releases what one that never is does.

    The planted bug: a server that begins the tree anew.
    """
    whole = HorizonNoise(REPEATS.mechanism(Fraction(1), task.asked.sensitivity), 2, b"")
    entropy = StreamEntropy("restarted")
    expected = [whole.release(NOTHING, entropy).tolist() for _ in range(9)]
    found, entropy, modulus = [], StreamEntropy("restarted"), (1 << 61) - 1
    for day in range(1, 10):
        server = serve("north", Named(entropy))
        server.freeze(day)
        once = server.release(day, b"")
        server.close()
        again = serve("north", Named(entropy))
        assert again.release(day, b"") == once == again.released(day)
        again.close()
        found.append([cell - modulus if cell > modulus // 2 else cell for cell in once.cells])
        if forgetful:
            with closing(sqlite3.connect(next((tmp_path / "north").glob("horizon-*.db")))) as file, file:
                file.execute("UPDATE horizon SET noise = x''")
    assert (found == expected) != forgetful


def test_an_older_copy_of_the_days_is_noticed(task: Task, serve: Serve, tmp_path: Path) -> None:
    server = serve()
    day_of(server, task, 1, ["walk"] * 5)
    server.close()
    path = next((tmp_path / "north").glob("horizon-*.db"))
    copy = path.read_bytes()
    server = serve()
    day_of(server, task, 2, ["walk"] * 5)
    day_of(server, task, 3, ["walk"] * 5)
    server.close()
    newest = path.read_bytes()
    path.write_bytes(copy)
    with pytest.raises(Fault):
        serve()
    path.write_bytes(newest)
    serve().close()
    path.unlink()
    with pytest.raises(Fault):
        serve()
    path.with_suffix(".mark").unlink()
    path.unlink()
    with pytest.raises(Fault):  # the ledger has the charge of the file that is gone
        serve()


def test_parts_of_a_released_day_are_deleted(task: Task, serve: Serve, tmp_path: Path) -> None:
    server = serve()
    bodies, _ = sent(task, 2, ["bus"])
    server.take(2, bodies["north"])
    day_of(server, task, 1, ["walk"] * 5)
    left = [path.name for path in (tmp_path / "north").glob("parts-*.db")]
    assert left == [f"parts-{task.on(2).digest[:16]}.db"]


@pytest.mark.long
def test_a_quarter_is_charged_once_and_its_weeks_are_right(tmp_path: Path) -> None:
    """91 days of three servers: crashes grow from 20 to 110 a day, and every total of seven days has its interval."""
    made, _ = write_task(tmp_path, number_between("0:1", 1))
    quarter = replace(made, repeats=TaskDays(first=FIRST, days=91, most_days=13, window=7), epsilon=Fraction(2))
    budget = budget_of(quarter.measure, Fraction(2), Fraction(0))
    servers = {name: RepeatingServer(tmp_path / name, quarter, budget) for name in NAMES}
    totals, crashes = [], [20 + day for day in range(91)]
    try:
        for day, count in enumerate(crashes, 1):
            bodies, clients = sent(quarter, day, ["1"] * count + ["0"] * 5)
            for name, server in servers.items():
                server.take(day, bodies[name])
            assert {server.freeze(day) for server in servers.values()} == {clients}
            totals.append(add_up(quarter.on(day), [server.release(day, clients) for server in servers.values()]))
        assert [server.spent()[0].amount for server in servers.values()] == [2] * 3
    finally:
        for server in servers.values():
            server.close()
    found, sure = Days(task=quarter, totals=tuple(totals)), Fraction(999_999, 10**6)
    for day in range(1, 92):
        for window in (7, None):
            whole = found.estimates(day, window, sure)[0]
            assert whole.low <= sum(crashes[max(0, day - (window or day)) : day]) <= whole.high


# A device.


def test_a_device_answers_once_a_day_and_on_so_many_days(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "device.json"
    with refused_as("report_refused"):
        answer_today(path, task, "walk", today=FIRST - timedelta(days=1))
    with refused_as("report_refused"):
        answer_today(path, task, "walk", today=FIRST + timedelta(days=30))
    assert set(answer_today(path, task, "walk", today=FIRST)) == set(NAMES)
    with refused_as("already_reported"):
        answer_today(path, task, "bus", today=FIRST)
    answer_today(path, task, "bus", today=FIRST + timedelta(days=4))
    with refused_as("already_reported"):
        answer_today(path, task, "bus", today=FIRST + timedelta(days=5))
    assert answered_days(path, task) == [1, 5]
    document = json.loads(path.read_text())
    assert task.digest in json.dumps(document)
    acknowledged_day(path, task, 1, "north")
    assert {day: set(waiting) for day, waiting in waiting_days(path, task).items()} == {
        1: {"south", "west"},
        5: set(NAMES),
    }


@pytest.mark.parametrize("stored", [True, False], ids=["shipped", "planted"])
def test_days_that_a_device_forgets_are_noticed(stored: bool, task: Task, tmp_path: Path) -> None:
    """The planted bug: the file is gone after each answer, so the device answers on more days than were paid for."""
    path, answers = tmp_path / "device.json", 0
    for day in range(3):
        with suppress(QueryRefused):
            answer_today(path, task, "walk", today=FIRST + timedelta(days=day))
            answers += 1
        if not stored:
            path.unlink()
    assert (loss_of(task, answers) <= task.epsilon) is stored


def test_a_device_pays_for_the_horizon_once(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "device.json"
    answer_today(path, task, "walk", today=FIRST, limit=Fraction(1))
    answer_today(path, task, "walk", today=FIRST + timedelta(days=1))
    device = read_device(path)
    assert device.epsilon == Fraction(1)
    assert list(device.sent) == [task.digest]
    with refused_as("report_refused"):
        answer_today(path, replace(task, question="Another?"), "walk", today=FIRST)


# The task.


def test_a_task_is_read_as_it_was_written(task: Task) -> None:
    assert Task.from_text(task.to_text()) == task
    assert Task.from_text(task.on(3).to_text()) == task.on(3)
    assert len({task.on(day).digest for day in (None, *range(1, 31))}) == 31
    document = task.document
    for wrong in ({"first": "2026-03-01"}, {**REPEATS.document, "days": "9"}, {**REPEATS.document, "more": 1}):
        with pytest.raises(InvalidParameter):
            Task.from_text(json.dumps({**document, "repeats": wrong}))
    with pytest.raises(InvalidParameter):  # fewer days of a client, with the same noise
        Task.from_text(json.dumps({**document, "repeats": {**REPEATS.document, "most_days": 3}}))


def test_what_does_not_go_with_days_is_refused(task: Task, tmp_path: Path) -> None:
    for more in ({"checked": True}, {"joint": True}, {"delta": Fraction(1, 10**9)}):
        with pytest.raises(InvalidParameter):
            replace(task, **more)
    with pytest.raises(InvalidParameter):
        AddingServer(tmp_path / "north", task, budget_of(task.measure, Fraction(1), Fraction(0)))
    with pytest.raises(InvalidParameter):
        RepeatingServer(tmp_path / "north", task.on(1), budget_of(task.measure, Fraction(1), Fraction(0)))
