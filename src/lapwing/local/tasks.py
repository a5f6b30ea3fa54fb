"""Tasks: made by who asks, checked by the client's own rules, and turned back into a mechanism."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Final

from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.local import client
from lapwing.local.attributes import OneAttribute
from lapwing.local.lists.binary import BinaryResponse
from lapwing.local.lists.hashing import LocalHashing
from lapwing.local.lists.kary import KaryResponse
from lapwing.local.lists.randomizer import Randomizer
from lapwing.local.lists.subset import SubsetSelection
from lapwing.local.lists.unary import UnaryEncoding
from lapwing.local.mechanism import Mechanism
from lapwing.local.numbers.duchi import DuchiMean
from lapwing.local.numbers.hybrid import HybridMean
from lapwing.local.numbers.means import MeanRandomizer
from lapwing.local.numbers.piecewise import PiecewiseMean
from lapwing.local.over_time.memoised import Memoised
from lapwing.local.over_time.memoised_unary import MemoisedUnary
from lapwing.local.over_time.tree import DyadicTree
from lapwing.local.rappor.basic import BasicRappor
from lapwing.local.rappor.full import Rappor
from lapwing.local.words.hadamard import HadamardSketch
from lapwing.local.words.prefixes import PrefixExtending
from lapwing.local.words.sketch import CountMeanSketch

_RANDOMIZERS: Final[Mapping[str, Callable[..., Randomizer]]] = {
    BinaryResponse.name: lambda categories, **given: BinaryResponse(**given),
    KaryResponse.name: KaryResponse,
    SubsetSelection.name: SubsetSelection,
    UnaryEncoding.name: UnaryEncoding,
    LocalHashing.name: LocalHashing,
    Memoised.name: Memoised.from_thresholds,
    MemoisedUnary.name: MemoisedUnary.from_thresholds,
    BasicRappor.name: BasicRappor.from_thresholds,
}
"""Of shares of a list of values: made from the number of values and the parameters."""
_OTHERS: Final[Mapping[str, Callable[[client.Asked], Mechanism]]] = {
    CountMeanSketch.name: lambda asked: CountMeanSketch(**dict(asked.parameters)),
    HadamardSketch.name: lambda asked: HadamardSketch(**dict(asked.parameters)),
    PrefixExtending.name: lambda asked: PrefixExtending(most_bytes=asked.answers.size, **dict(asked.parameters)),
    "rappor": lambda asked: Rappor.from_parameters(dict(asked.parameters)),
    "rappor-once": lambda asked: Rappor.from_parameters(dict(asked.parameters)),
    DyadicTree.name: lambda asked: DyadicTree(**dict(asked.parameters)),
}
"""Of anything else: made from what is asked."""
_MEANS: Final[Mapping[str, Callable[..., MeanRandomizer]]] = {
    DuchiMean.name: DuchiMean,
    PiecewiseMean.name: PiecewiseMean,
    HybridMean.name: HybridMean.from_parameters,
}
"""Of the mean of a number: made from the grid and the parameters."""


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

    Args: answers: a list of values, or `client.Number`, or `client.Text`.
    Raises: InvalidParameter if it cannot be meant.
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
) -> client.Task:
    """Return a task of several questions, of which each report tells one, with all of ε.

    Args: attributes: for each its question, a list of values or `client.Number`, and the mechanism.
    Raises: InvalidParameter if it cannot be meant.
    """
    with _refusals():
        asked = client.Attributes(tuple((name, _asked(answers, given)) for name, answers, given in attributes))
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
    """Read a task, in TOML or JSON, as a respondent's device does.

    Raises: QueryRefused if it is none, or lies.
    """
    try:
        return client.read_task(text)
    except client.TaskRefused as refused:
        raise QueryRefused(str(refused).rstrip("."), remedy="No report was made.") from None


def mechanism_of(asked: client.Asked | client.Attributes) -> Mechanism:
    """Return the mechanism of what is asked, of whatever kind.

    Raises: InvalidParameter if its reports would say nothing: a client sends them, but no estimate follows.
    """
    if isinstance(asked, client.Attributes):
        questions, each = zip(*asked.each, strict=True)
        return OneAttribute(questions=questions, each=tuple(mechanism_of(one) for one in each))
    if asked.mechanism in _RANDOMIZERS:
        return _RANDOMIZERS[asked.mechanism](categories=asked.answers.size, **dict(asked.parameters))
    if asked.mechanism in _MEANS:
        return mean_randomizer_of(asked)
    return _OTHERS[asked.mechanism](asked)


def randomizer_of(task: client.Task | client.Asked) -> Randomizer:
    """Return the mechanism of a task that asks for one of a list of values, by which shares are estimated.

    Raises: InvalidParameter for another task, or if reports would say nothing.
    """
    asked = task.asked if isinstance(task, client.Task) else task
    if not isinstance(asked, client.Asked) or asked.mechanism not in _RANDOMIZERS:
        raise InvalidParameter(f"The mechanism {asked.mechanism} is not for the shares of a list of values.")
    return _RANDOMIZERS[asked.mechanism](categories=asked.answers.size, **dict(asked.parameters))


def mean_randomizer_of(task: client.Task | client.Asked) -> MeanRandomizer:
    """Return the mechanism of a task that asks for a number, by which the mean is estimated.

    Raises: InvalidParameter for another task, or if reports would say nothing.
    """
    asked = task.asked if isinstance(task, client.Task) else task
    if not (isinstance(asked, client.Asked) and isinstance(asked.answers, client.Number)):
        raise InvalidParameter(f"The mechanism {asked.mechanism} is not for the mean of a number.")
    return _MEANS[asked.mechanism](number=asked.answers, **dict(asked.parameters))


def record_mechanism_of(task: client.Task) -> OneAttribute:
    """Return the mechanism of a task that asks for several attributes.

    Raises: InvalidParameter for another task, or if reports would say nothing.
    """
    made = mechanism_of(task.asked)
    if not isinstance(made, OneAttribute):
        raise InvalidParameter(f"The mechanism {task.mechanism} is not for several attributes.")
    return made


def to_toml(task: client.Task) -> str:
    """Return a task as a TOML file, which `client.read_task` reads."""
    document = task.document
    tables = {key: document.pop(key) for key in (*_TABLES, "attributes", "mechanism") if key in document}
    plain = {"opens", "closes", *(name for name, _ in task.epsilons)}
    lines = [f"{key} = {value if key in plain else _value(value)}" for key, value in document.items()]
    for key, table in tables.items():
        for each in table if isinstance(table, list) else [table]:
            lines += ["", f"[[{key}]]" if isinstance(table, list) else f"[{key}]", *_lines(each)]
    return "\n".join([*lines, ""])


_TABLES: Final = ("number", "text")


def _lines(table: object) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()] if isinstance(table, dict) else []


def _value(value: object) -> str:
    """Return a text, a whole number, a list of texts or a table in TOML; all but tables are as in JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(each)}' for key, each in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)
