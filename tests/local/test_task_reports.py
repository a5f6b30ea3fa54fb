"""Simulated reports to every kind of task have the law of those that devices send."""

from typing import Any

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.local import client, collect_for, mechanism_of, simulate_reports
from tests.local.test_client import tasks_of_vectors
from tests.support.effort import only
from tests.support.fixed_entropy import StreamEntropy

TASKS = {**tasks_of_vectors()}
OVER_TIME = ("memoised", "memoised-unary", "tree")
DEVICES, SIMULATED = 1500, 12_000


def answers_to(task: client.Task, people: int, *, other: bool = False) -> list[Any]:
    """Return answers of two kinds, three of four the first; or the other way round."""
    often, rarely = (1, 0) if other else (0, 1)

    def one(asked: client.Asked, which: int) -> str:
        if isinstance(asked.answers, client.Values):
            return asked.answers.texts[which]
        if isinstance(asked.answers, client.Number):
            return str((asked.answers.lower, asked.answers.upper)[which])
        return ("soup", "rice")[which][: asked.answers.most_bytes]

    def whole(which: int) -> Any:
        if isinstance(task.asked, client.Attributes):
            return {question: one(each, which) for question, each in task.asked.each}
        if task.mechanism == "tree":
            half = (1 << dict(task.parameters)["levels"]) // 2
            return [one(task.asked, 0)] * half + [one(task.asked, which)] * half
        return [one(task.asked, which)] * 2 if task.mechanism in OVER_TIME else one(task.asked, which)

    return [whole(rarely if i % 4 == 0 else often) for i in range(people)]


def of_devices(task: client.Task, answers: list[Any], label: str) -> Any:
    """Return what devices report, gathered."""
    read, lines = StreamEntropy(label).read, []
    for answer in answers:
        memory: client.Memory = {}
        for period, each in enumerate(answer if task.mechanism in OVER_TIME else [answer], 1):
            line, memory = client.report_with_memory(task, each, read, memory, period)
            lines += [line] if line is not None else []
    return collect_for(mechanism_of(task.asked), task, lines).reports


def bits(reports: Any) -> list[np.ndarray[Any, Any]]:
    """Return how often each bit of a report's bytes is 1, for each part of it."""
    parts = reports if isinstance(reports, tuple) else (reports,)
    raw = [np.ascontiguousarray(part).view(np.uint8).reshape(len(part), -1) for part in parts]
    return [np.unpackbits(part, axis=1).mean(axis=0) for part in raw if len(part)]


def check_alike(one: Any, other: Any) -> None:
    for shares, others in zip(bits(one), bits(other), strict=True):
        spread = np.sqrt(np.maximum(others * (1 - others), 1e-9) / (DEVICES / 2))
        assert (np.abs(shares - others) < 4.5 * spread).all()


@pytest.mark.parametrize("name", only([0], TASKS))
def test_simulated_reports_are_those_of_devices(name: str) -> None:
    task = client.task_of(TASKS[name])
    devices = of_devices(task, answers_to(task, DEVICES), name)
    simulated = simulate_reports(task, answers_to(task, SIMULATED), StreamEntropy(f"{name} simulated"))
    one, other = (reports if isinstance(reports, tuple) else (reports,) for reports in (devices, simulated))
    assert [(part.dtype, part.shape[1:]) for part in one] == [(part.dtype, part.shape[1:]) for part in other]
    check_alike(devices, simulated)


@pytest.mark.parametrize("name", only([1], ["binary", "k-ary", "unary", "hybrid", "one-attribute", "all-attributes"]))
def test_other_answers_are_caught(name: str) -> None:
    task = client.task_of(TASKS[name])
    devices = of_devices(task, answers_to(task, DEVICES), name)
    with pytest.raises(AssertionError):
        check_alike(devices, simulate_reports(task, answers_to(task, SIMULATED, other=True), StreamEntropy(name)))


@pytest.mark.parametrize("name", TASKS)
def test_nobody_reports_nothing_and_wrong_answers_are_refused(name: str) -> None:
    task = client.task_of(TASKS[name])
    none = simulate_reports(task, [])
    assert all(len(part) == 0 for part in (none if isinstance(none, tuple) else (none,)))
    wrongs: list[Any] = [[""], [None], [5.5j], ["x" * 2000]]
    if task.mechanism in OVER_TIME:
        first = task.values[0]
        wrongs += [[[first], [first, first]], [[""]], first]
    for wrong in wrongs:
        with pytest.raises((InvalidParameter, TypeError)):
            simulate_reports(task, wrong)
