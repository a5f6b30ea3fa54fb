"""Tasks: made by whoever asks, checked by the client's own rules, and written as TOML."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any, Final

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.local import client
from lapwing.local.mechanism import Mechanism
from lapwing.local.registry import mechanism_of


def new_task(
    question: str,
    answers: Sequence[str] | client.Answers,
    mechanism: Mechanism,
    *,
    opens: date,
    closes: date,
    unit: str = "one answer of one person",
    retention_days: int = 30,
) -> client.Task:
    """Return a task that states the mechanism's integers and every ε that applies.

    Args:
        answers: A list of values, or `client.Number`, or `client.Text`.

    Raises:
        InvalidParameter: If a device would refuse it.
    """
    with _refusals():
        asked = _asked(answers, mechanism)
        return _stating(question, asked, unit, opens, closes, retention_days)


def new_record_task(
    question: str,
    attributes: Sequence[tuple[str, Sequence[str] | client.Answers, Mechanism]],
    *,
    opens: date,
    closes: date,
    unit: str = "all answers of one person",
    retention_days: int = 30,
    joint: bool = False,
) -> client.Task:
    """Return a task of several questions, of which each report tells one, with all of ε.

    Args:
        attributes: For each its question, a list of values or `client.Number`, and the mechanism.
        joint: Each report tells all of them, for tables of two questions (`estimate_joint`); the ε of the mechanisms
            add up.

    Raises:
        InvalidParameter: If a device would refuse it.
    """
    with _refusals():
        kind = client.ALL_ATTRIBUTES if joint else client.ONE_ATTRIBUTE
        asked = client.Attributes(tuple((name, _asked(answers, each)) for name, answers, each in attributes), kind)
        return _stating(question, asked, unit, opens, closes, retention_days)


def _stating(
    question: str, asked: client.Asked | client.Attributes, unit: str, opens: date, closes: date, retention_days: int
) -> client.Task:
    """Return a task that states every ε that applies."""
    return client.Task(
        question=question,
        asked=asked,
        epsilons=client.true_epsilons(asked),
        unit=unit,
        opens=opens,
        closes=closes,
        retention_days=retention_days,
    )


def _asked(answers: Sequence[str] | client.Answers, mechanism: Mechanism) -> client.Asked:
    held = answers if isinstance(answers, client.Answers) else client.Values(tuple(answers))
    asked = client.Asked(held, mechanism.name, tuple(mechanism.parameters.items()))
    if mechanism_of(asked) != mechanism:
        raise InvalidParameter(f"The mechanism {mechanism.name} was made for other {held.kind}.")
    return asked


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise what the client refuses as InvalidParameter."""
    try:
        yield
    except client.TaskRefused as refused:
        raise InvalidParameter(str(refused)) from None


def read_task(text: str) -> client.Task:
    """Read a task, in TOML or JSON, with the checks of a respondent's device.

    Raises:
        QueryRefused: If it is not a task, or states another ε than it has.
    """
    try:
        return client.read_task(text)
    except client.TaskRefused as refused:
        raise QueryRefused(
            str(refused).rstrip("."), cause=RefusalCause.INVALID_TASK, remedy="No report was made."
        ) from None


def to_toml(task: client.Task) -> str:
    """Return a task as a TOML file, which `client.read_task` reads."""
    document = task.document
    tables: dict[str, Any] = {
        key: document.pop(key) for key in (*_TABLES, "attributes", "mechanism") if key in document
    }
    plain = {"opens", "closes", *(name for name, _ in task.epsilons)}
    lines = [f"{key} = {value if key in plain else _value(value)}" for key, value in document.items()]
    for key, table in tables.items():
        for each in table if isinstance(table, list) else [table]:
            lines += ["", f"[[{key}]]" if isinstance(table, list) else f"[{key}]"]
            lines += [f"{name} = {_value(value)}" for name, value in each.items()]
    return "\n".join([*lines, ""])


_TABLES: Final = ("number", "text")


def _value(value: object) -> str:
    """Return a text, a whole number, a list of texts or a table in TOML; all but tables are as in JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(each)}' for key, each in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)
