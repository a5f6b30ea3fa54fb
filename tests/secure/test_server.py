"""One server: what it takes once, what it releases once, what it charges, and what a crash leaves."""

import signal
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import BudgetExhausted, CatalogMismatch, Fault, InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.ledger.entries import Charge
from lapwing.ledger.ledger import Ledger
from lapwing.secure import adding
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.device import records_of
from lapwing.secure.field import joined
from lapwing.secure.noisy_totals import totals_of
from lapwing.secure.share_store import ShareStore
from lapwing.secure.task import Task
from lapwing.secure.wire import set_of
from tests.secure.conftest import NAMES, Begin
from tests.support.processes import ended
from tests.support.refusals import refused_as


def bodies(task: Task, answers: Sequence[str]) -> dict[str, bytes]:
    people = [records_of(task, answer) for answer in answers]
    return {name: b"".join(records[name] for records in people) for name in NAMES}


ANSWERS = ["walk"] * 700 + ["bus"] * 300


def test_totals_of_three_servers(task: Task, begin: Begin) -> None:
    sent = bodies(task, ANSWERS)
    servers = {name: begin(name) for name in NAMES}
    assert [server.take(sent[name]) for name, server in servers.items()] == [1000] * 3
    sets = {server.freeze() for server in servers.values()}
    assert len(sets) == 1
    released = [server.release(next(iter(sets))) for server in servers.values()]
    walk, bus = joined([each.cells for each in released])
    assert abs(walk - 700) < 200  # the noise has a standard deviation of 4.8; beyond 40 of them once in e^90
    assert abs(bus - 300) < 200
    for server, once in zip(servers.values(), released, strict=True):
        assert server.release(next(iter(sets))) == once == server.released()
        spent, budget = server.spent()
        assert spent == budget


def test_what_is_sent_again_counts_once(task: Task, begin: Begin) -> None:
    server, body = begin(), bodies(task, ["walk"])["north"]
    assert [server.take(body), server.take(body + body)] == [1, 0]
    assert server.progress() == (1, False)
    other = body[:16] + bodies(task, ["bus"])["north"][16:]
    with pytest.raises(InvalidParameter, match="the first one stays"):
        server.take(other + bodies(task, ["bus"])["north"])
    assert server.progress() == (1, False)


def test_retries_that_count_are_noticed(task: Task, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a store that adds what is sent again."""

    def take(self: ShareStore, records: dict[bytes, bytes]) -> int:
        with self._file.transaction() as cursor:
            for cells in records.values():
                cursor.execute("INSERT INTO part VALUES (randomblob(16), ?)", (cells,))
        return len(records)

    monkeypatch.setattr(ShareStore, "take", take)
    with pytest.raises(AssertionError):
        test_what_is_sent_again_counts_once(task, begin)


def test_nothing_is_taken_once_it_is_frozen(task: Task, begin: Begin, tmp_path: Path) -> None:
    server = begin()
    server.take(bodies(task, ANSWERS[:3])["north"])
    frozen = server.freeze()
    server.close()
    again = begin()  # a restart changes nothing
    with refused_as("task_closed"):
        again.take(bodies(task, ["walk"])["north"])
    assert again.freeze() == frozen


def test_small_sets_and_strangers_are_refused_free_of_charge(task: Task, begin: Begin) -> None:
    server = begin()
    server.take(bodies(task, ANSWERS[:5])["north"])
    clients = server.freeze()
    with refused_as("too_few_clients", saying="3"):
        server.release(clients[:32])
    with pytest.raises(InvalidParameter, match="sent nothing here"):
        server.release(set_of([b"\x00" * 16, clients[:16], clients[16:32]]))
    assert server.spent()[0].amount == 0


def test_another_set_is_another_charge(task: Task, begin: Begin) -> None:
    server = begin(epsilon=2)
    server.take(bodies(task, ANSWERS[:10])["north"])
    clients = server.freeze()
    first, second = server.release(clients), server.release(clients[:-16])
    assert server.spent()[0].amount == 2
    assert first.clients_digest != second.clients_digest
    with pytest.raises(BudgetExhausted, match="Nothing was released"):
        server.release(clients[16:])
    assert server.release(clients) == first


@pytest.mark.parametrize("at", ["noisy_total", "record_answer"])
def test_a_crash_after_the_charge_costs_nothing_more(
    task: Task, begin: Begin, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Between charge and release no release has left: the same charge pays for another draw."""

    def crash(*_: object, **__: object) -> object:
        raise MemoryError

    server = begin()
    server.take(bodies(task, ANSWERS)["north"])
    clients = server.freeze()
    with monkeypatch.context() as broken:
        broken.setattr(adding if at == "noisy_total" else Ledger, at, crash)
        with pytest.raises(MemoryError):
            server.release(clients)
    assert server.released() is None
    assert server.spent()[0].amount == 1
    server.close()
    again = begin()
    first = again.release(clients)
    assert again.spent()[0].amount == 1
    again.close()
    assert begin().release(clients) == first


KILLED = """
import os, signal, sys
from fractions import Fraction
from pathlib import Path
from lapwing.secure import adding
from lapwing.secure.task import Task
def kill(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
folder = Path(sys.argv[1])
task = Task.from_text((folder / "task.json").read_text())
server = adding.AddingServer(folder / "north", task, adding.budget_of("pure", Fraction(1), Fraction(0)))
adding.noisy_total = kill
server.release(server.freeze())
"""


def test_a_server_that_is_killed_after_the_charge_releases_for_it(task: Task, begin: Begin, tmp_path: Path) -> None:
    """In a process of its own: its name as an asker is dead then, and the ledger has not noted it yet."""
    server = begin()
    server.take(bodies(task, ANSWERS)["north"])
    server.close()
    (tmp_path / "task.json").write_text(task.to_text())
    assert ended(KILLED, str(tmp_path))[0] == -signal.SIGKILL
    again = begin()
    assert again.spent()[0].amount == 1
    first = again.release(again.freeze())
    assert again.spent()[0].amount == 1
    assert again.released() == first


def test_noise_is_in_every_release(task: Task, begin: Begin) -> None:
    server, sent = begin(epsilon=40), bodies(task, ANSWERS[:43])["north"]
    server.take(sent)
    clients = server.freeze()
    noise = set()
    for dropped in range(40):
        members = clients[: 16 * dropped] + clients[16 * (dropped + 1) :]
        exact = totals_of(server._store.parts([members[i : i + 16] for i in range(0, len(members), 16)]), 2)
        noise.add(tuple(joined([server.release(members).cells, [-cell for cell in exact]])))
    assert len(noise) > 15  # 40 draws of two numbers of scale 2
    assert all(abs(each) < 200 for pair in noise for each in pair)


def test_one_process_at_a_time_and_one_budget(task: Task, begin: Begin, tmp_path: Path) -> None:
    server = begin()
    with pytest.raises(Fault, match="Another process"):
        begin()
    server.close()
    with pytest.raises(CatalogMismatch, match="registered otherwise"):
        begin(epsilon=5)


def test_a_task_that_could_never_be_released_is_not_served(task: Task, begin: Begin, tmp_path: Path) -> None:
    server = begin()
    server.require_affordable()
    server.take(bodies(task, ANSWERS[:5])["north"])
    server.release(server.freeze())
    server.require_affordable()  # its release is there
    server.close()
    other = AddingServer(
        tmp_path / "north", replace(task, question="Another?"), budget_of("pure", Fraction(1), Fraction(0))
    )
    with pytest.raises(BudgetExhausted, match="use a new folder"):
        other.require_affordable()
    other.close()


def test_a_pure_budget_takes_no_gaussian_noise(task: Task, tmp_path: Path) -> None:
    gaussian = replace(task, delta=Fraction(1, 10**6))
    with pytest.raises(InvalidParameter, match="Gaussian"):
        AddingServer(tmp_path / "north", gaussian, budget_of("pure", Fraction(1), Fraction(0)))


def test_gaussian_noise_is_charged_as_it_promises(task: Task, tmp_path: Path) -> None:
    gaussian = replace(task, delta=Fraction(1, 10**6))
    server = AddingServer(tmp_path / "north", gaussian, budget_of("gdp", Fraction(1), Fraction(1, 10**6)), SYSTEM)
    server.take(bodies(gaussian, ANSWERS)["north"])
    server.release(server.freeze())
    spent, budget = server.spent()
    assert budget.amount * Fraction(99, 100) < spent.amount <= budget.amount
    server.close()


def test_no_part_is_in_the_ledger(task: Task, begin: Begin, tmp_path: Path) -> None:
    server, sent = begin(), bodies(task, ANSWERS[:4])["north"]
    server.take(sent)
    server.release(server.freeze())
    server.close()
    with sqlite3.connect(tmp_path / "north" / adding.LEDGER) as file:
        text = "\n".join(file.iterdump())
    file.close()
    cells = [int.from_bytes(sent[at : at + 8], "little") for at in range(16, len(sent), 32)]
    assert not [cell for cell in cells if str(cell) in text]
    assert "secure total" in text


def test_a_part_in_the_ledger_is_noticed(
    task: Task, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: what is written of a charge tells a part."""
    take, charge, seen = AddingServer.take, Charge, list[int]()

    def taken(self: AddingServer, body: bytes) -> int:
        seen.append(int.from_bytes(body[16:24], "little"))
        return take(self, body)

    def telling(*, question: str, **others: Any) -> Charge:
        return charge(question=f"{question} {seen[0]}", **others)

    monkeypatch.setattr(AddingServer, "take", taken)
    monkeypatch.setattr(adding, "Charge", telling)
    with pytest.raises(AssertionError):
        test_no_part_is_in_the_ledger(task, begin, tmp_path)
