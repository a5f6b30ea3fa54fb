"""A fixed corpus of questions that differ in structure, of those that a generator makes.

Each has some part of a plan below another, or some two parts in one plan, that no question before it has; or it is
refused in another way. The short run asks so many that every part is below every other that it is below in any of them,
and those that are refused; the long run asks the rest, in which parts meet. They are kept as texts, so that they stay
the same when the generators change.

`LAPWING_WRITE_CORPUS=1 pytest tests/query -m long -k is_in_the_corpus` chooses them anew.
"""

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from lapwing.errors import QueryRefused
from lapwing.query.expressions.expression import Operation
from lapwing.query.plan.plan import Plan
from tests.support.query.fuzzing import Case, Place

FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "query"
REFUSED: Final = 4
"""At most one in so many is refused."""


def corpus(name: str, place: Place, words: Sequence[str], drawn_from: Iterable[int]) -> list[Case]:
    """Return the questions of a corpus that the short run asks, chosen anew if the environment asks for it."""
    if os.environ.get("LAPWING_WRITE_CORPUS"):
        chosen = list(choose(place, words, drawn_from))
        short = few(chosen, place, words)
        _write(name, (case for case in chosen if case in short))
        _write(f"{name}_more", (case for case in chosen if case not in short))
    return kept(name)


def kept(name: str) -> list[Case]:
    """Return the questions in the file of this name; those of the long run alone are in the one with `_more`."""
    return [Case(**json.loads(line)) for line in _file(name).read_text(encoding="utf-8").splitlines()]


def _file(name: str) -> Path:
    return FIXTURES / f"corpus_{name}.jsonl"


def _write(name: str, cases: Iterable[Case]) -> None:
    lines = (json.dumps(dataclasses.asdict(case), ensure_ascii=False) + "\n" for case in cases)
    _file(name).write_text("".join(lines), encoding="utf-8")


def few(cases: Sequence[Case], place: Place, words: Sequence[str]) -> list[Case]:
    """Return those that are refused, and of the others as few as have all words and parts, each time the richest."""
    chosen, having = [], []
    for case in cases:
        try:
            plan = case.bound(place)
        except QueryRefused:
            chosen.append(case)
        else:
            having.append((case, parts(plan) | {word for word in words if word in case.text}))
    missing = {part for _, those in having for part in those}
    while missing:
        case, richest = max(having, key=lambda pair: len(pair[1] & missing))
        missing -= richest
        chosen.append(case)
    return chosen


def choose(place: Place, words: Sequence[str], seeds: Iterable[int]) -> Iterator[Case]:
    """Choose, of random questions, those that have something which none before had."""
    seen: set[Any] = set()
    answered = refused = 0
    for seed in seeds:
        case = Case.of(seed, place)
        try:
            plan = case.bound(place)
        except QueryRefused as refusal:
            kind = re.sub(r"'[^']*'|\"[^\"]*\"|[\w.]*\d[\w.]*|\b[a-z]\w*\(", "", refusal.reason)[:40]
            if kind not in seen and REFUSED * refused < answered:
                seen.add(kind)
                refused += 1
                yield case
            continue
        new = structure(plan) | {word for word in words if word in case.text}
        if not new <= seen:
            seen |= new
            answered += 1
            yield case


def structure(plan: Plan) -> set[Any]:
    """Return which part of a plan is below which, and which of its relations, keys and measures meet."""
    whole = {inner for _, inner in _below(plan.question.selection.relation, "relation") if "relations." in inner}
    whole |= {_name(measure) for measure in plan.question.measures} | {_kind_of_keys(plan)}
    return set(_below(plan, "plan")) | set(combinations(sorted(whole), 2))


def parts(plan: Plan) -> set[Any]:
    """Return which part of a plan is below which, its kind of keys, and how many units have part in a row."""
    return {*_below(plan, "plan"), _kind_of_keys(plan), plan.question.units_of_row}


def _kind_of_keys(plan: Plan) -> str:
    if plan.question.private_keys:
        return "private keys"
    return "sets" if len(plan.question.sets) > 1 else "keys"


def _name(node: object) -> str:
    return f"{type(node).__module__}.{type(node).__name__}"


def _below(node: object, above: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        node = tuple(node.items())
    if isinstance(node, tuple | list | frozenset):
        for item in node:
            yield from _below(item, above)
    elif dataclasses.is_dataclass(node) and ".catalog." not in _name(node):
        yield above, _name(node)
        if isinstance(node, Operation):
            yield "a function", node.function
        for field in dataclasses.fields(node):
            yield from _below(getattr(node, field.name), _name(node))
