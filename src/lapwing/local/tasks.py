"""Tasks: made by who asks, checked by the client's own rules, and turned back into a mechanism."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Final

from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.local import client
from lapwing.local.binary import BinaryResponse
from lapwing.local.hashing import LocalHashing
from lapwing.local.kary import KaryResponse
from lapwing.local.randomizer import Randomizer
from lapwing.local.subset import SubsetSelection
from lapwing.local.unary import UnaryEncoding

_MAKERS: Final[Mapping[str, Callable[..., Randomizer]]] = {
    BinaryResponse.name: lambda categories, **given: BinaryResponse(**given),
    KaryResponse.name: KaryResponse,
    SubsetSelection.name: SubsetSelection,
    UnaryEncoding.name: UnaryEncoding,
    LocalHashing.name: LocalHashing,
}


def new_task(
    question: str,
    values: Sequence[str],
    mechanism: Randomizer,
    *,
    opens: date,
    closes: date,
    unit: str = "one answer of one person",
    retention_days: int = 30,
) -> client.Task:
    """Return a task that states the mechanism's thresholds and ε.

    Raises: InvalidParameter if it cannot be meant.
    """
    if len(values) != mechanism.categories:
        raise InvalidParameter(f"There are {len(values)} values for a mechanism of {mechanism.categories}.")
    try:
        return client.Task(
            question=question,
            values=tuple(values),
            mechanism=mechanism.name,
            parameters=tuple(mechanism.parameters.items()),
            epsilon=client.epsilon_up(mechanism.ratio),
            unit=unit,
            opens=opens,
            closes=closes,
            retention_days=retention_days,
        )
    except client.TaskRefused as refused:
        raise InvalidParameter(str(refused)) from None


def read_task(text: str) -> client.Task:
    """Read a task, in TOML or JSON, as a respondent's device does.

    Raises: QueryRefused if it is none, or lies.
    """
    try:
        return client.read_task(text)
    except client.TaskRefused as refused:
        raise QueryRefused(str(refused).rstrip("."), remedy="No report was made.") from None


def randomizer_of(task: client.Task) -> Randomizer:
    """Return the mechanism of a task.

    Raises: InvalidParameter if its reports would say nothing: a client sends them, but no estimate follows.
    """
    return _MAKERS[task.mechanism](categories=len(task.values), **dict(task.parameters))


def to_toml(task: client.Task) -> str:
    """Return a task as a TOML file, which `client.read_task` reads."""
    document = task.document
    mechanism = document.pop("mechanism")
    plain = {"epsilon", "opens", "closes"}
    lines = [f"{key} = {value if key in plain else _value(value)}" for key, value in document.items()]
    table = mechanism.items() if isinstance(mechanism, dict) else ()
    return "\n".join([*lines, "", "[mechanism]", *(f"{key} = {_value(value)}" for key, value in table), ""])


def _value(value: object) -> str:
    """Return a text, a whole number or a list of texts: all are written in TOML as in JSON."""
    return json.dumps(value, ensure_ascii=False)
