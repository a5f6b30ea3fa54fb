"""A fixed corpus of questions that differ in structure, of those that a generator makes: what the short run asks.

Each has some part of a plan below another, or some two parts in one plan, that no question before it has; or it is
refused in another way. They are kept as texts, so that they stay the same when the generators change.

`LAPWING_WRITE_CORPUS=1 pytest tests/query -k is_in_the_corpus` chooses them anew.
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
from lapwing.query.plan import Plan
from tests.support.query.fuzzing import Case, Place

FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "query"
REFUSED: Final = 4
"""At most one in so many is refused."""


def corpus(name: str, place: Place, words: Sequence[str], drawn_from: Iterable[int]) -> list[Case]:
    """Return the questions of a corpus, chosen anew if the environment asks for it."""
    file = FIXTURES / f"corpus_{name}.jsonl"
    if os.environ.get("LAPWING_WRITE_CORPUS"):
        chosen = list(choose(place, words, drawn_from))
        lines = (json.dumps(dataclasses.asdict(case), ensure_ascii=False) + "\n" for case in chosen)
        file.write_text("".join(lines), encoding="utf-8")
    return [Case(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


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
    below = set(_below(plan, "plan"))
    question = plan.question
    whole = {inner for _, inner in _below(question.selection.relation, "relation") if "relations." in inner}
    whole |= {_name(measure) for measure in question.measures}
    whole |= {"private keys"} if question.private_keys else {"sets"} if len(question.sets) > 1 else {"keys"}
    return below | set(combinations(sorted(whole), 2))


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
