"""A task with three servers, in folders of their own."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.asked import Asked
from lapwing.secure.identity import make_identity
from lapwing.secure.organising import new_task
from lapwing.secure.task import Task
from lapwing.secure.values import Values

NAMES = ("north", "south", "west")
Begin = Callable[..., AddingServer]


def write_task(
    folder: Path,
    asked: Asked | None = None,
    ports: tuple[int, ...] = (8471, 8472, 8473),
    least: int = 3,
    *,
    checked: bool = False,
) -> tuple[Task, str]:
    """Make a folder for each server, and return a task of them with the organiser's key."""
    certificates = [
        make_identity(folder / name, name, f"127.0.0.1:{port}").read_text()
        for name, port in zip(NAMES, ports, strict=True)
    ]
    return new_task(
        question="How do you come?",
        asked=asked or Values(("walk", "bus")),
        epsilon=Fraction(1),
        delta=Fraction(0),
        least_clients=least,
        certificates=certificates,
        checked=checked,
    )


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return write_task(tmp_path)[0]


@pytest.fixture
def begin(tmp_path: Path, task: Task) -> Iterator[Begin]:
    """Begin a server of the task; all end with the test."""
    running: list[AddingServer] = []

    def beginning(name: str = "north", epsilon: int = 1, entropy: Entropy = SYSTEM) -> AddingServer:
        budget = budget_of(task.measure, Fraction(epsilon), task.delta)
        running.append(AddingServer(tmp_path / name, task, budget, entropy))
        return running[-1]

    yield beginning
    for server in running:
        server.close()
