"""What an engine can run, as a value: a question that needs more is refused when it is bound, and costs nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, get_args

from lapwing.errors import QueryRefused
from lapwing.query.expressions.expression import Expression, Operation, walk
from lapwing.query.measures import Measure, argument_of
from lapwing.query.plan import Question
from lapwing.query.relations.relation import Selection

MEASURES: Final[Mapping[type[Measure], str]] = MappingProxyType({kind: kind.construct for kind in get_args(Measure)})
PRIVATE_KEYS: Final = "private keys"
CLAMPS: Final = "clamps of what a unit adds"
GROUPING_SETS: Final = "grouping sets"
FEWEST_UNITS: Final = "least sizes of groups"
CHOOSING: Final = "choices of a measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A construct that an engine does not have.

    Args: construct: what plans call it: a function of an expression; one of `MEASURES`, or of the constants beside
            them; the `construct` of a relation, or one of the things that it `uses`, as "window functions: lag".
        name: what an analyst calls it.
        remedy: what to write instead, as a sentence.
    """

    construct: str
    name: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can run: everything but what is missing."""

    engine: str
    missing: tuple[Missing, ...] = ()

    def require(self, question: Question) -> None:
        """Refuse a question that has a construct which the engine does not have.

        Raises: QueryRefused, which names engine, construct and remedy.
        """
        missing = {one.construct: one for one in self.missing}
        for construct in _constructs(question) if missing else ():
            if construct in missing:
                one = missing[construct]
                raise QueryRefused(f"{self.engine} does not have {one.name}", remedy=one.remedy)


EVERYTHING: Final = Capabilities(engine="Every engine")
"""For plans that no engine will run: they may need anything."""


def _constructs(question: Question) -> Iterator[str]:
    """Yield what a question is made of, each as often as it is there."""
    for measure in question.measures:
        yield measure.construct
        yield from _functions(argument_of(measure))
        if measure.clamp is not None:
            yield CLAMPS
    if question.private_keys:
        yield PRIVATE_KEYS
    if question.fewest_units > 1:
        yield FEWEST_UNITS
    if question.sets:
        yield GROUPING_SETS
    if question.choosing:
        yield CHOOSING
    for key in question.keys:
        yield from _functions(key.expression)
    yield from _of_selection(question.selection)


def _of_selection(selection: Selection) -> Iterator[str]:
    relation = selection.relation
    yield relation.construct
    yield from (f"{relation.construct}: {used}" for used in relation.uses)
    yield from _functions(selection.where)
    for values in relation.computed:
        for value in values:
            yield from _functions(value)
    if relation.public is not None:
        yield from _functions(relation.public.where)
    for source in relation.sources:
        yield from _of_selection(source)


def _functions(expression: Expression | None) -> Iterator[str]:
    return (node.function for node in walk(expression) if isinstance(node, Operation))
