"""What an engine can run, as a value: a question that needs more is refused when it is bound, and costs nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, get_args

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.expression import Expression, Operation, walk
from lapwing.query.measures.measures import Measure, argument_of
from lapwing.query.plan.plan import Question
from lapwing.query.relations.node import Relation
from lapwing.query.relations.relation import FilteredRows

MEASURES: Final[Mapping[type[Measure], str]] = MappingProxyType({kind: kind.construct for kind in get_args(Measure)})
PRIVATE_KEYS: Final = "private keys"
CLAMPS: Final = "clamps of what a unit adds"
GROUPING_SETS: Final = "grouping sets"
FEWEST_UNITS: Final = "least sizes of groups"
CHOOSING: Final = "choices of a measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A construct that an engine does not have.

    Args:
        construct: What plans call it: a function of an expression; one of `MEASURES`, or of the constants beside them;
            the `construct` of a relation, or one of the things that it `uses`, as "window functions: lag".
        name: What an analyst calls it.
        remedy: What to write instead, as a sentence.
        curator_remedy: The remedy of the curator: `QueryRefused.curator_remedy`.
    """

    construct: str
    name: str
    remedy: str = ""
    curator_remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can run: everything but what is missing.

    Args:
        lacks: Says what else of a question the engine does not have, where that is not said by one construct alone. It
            is asked only of engines that miss something.
    """

    engine: str
    missing: tuple[Missing, ...] = ()
    lacks: Callable[[Question], Missing | None] | None = None

    def require(self, question: Question) -> None:
        """Refuse a question that has a construct which the engine does not have.

        Raises:
            QueryRefused: Which names engine, construct and remedy.
        """
        missing = {one.construct: one for one in self.missing}
        for construct in _constructs(question) if missing else ():
            if construct in missing:
                raise self._refusal(missing[construct])
        lacking = None if self.lacks is None else self.lacks(question)
        if lacking is not None:
            raise self._refusal(lacking)

    def _refusal(self, one: Missing) -> QueryRefused:
        return QueryRefused(
            f"{self.engine} does not have {one.name}",
            cause=RefusalCause.NOT_SUPPORTED_BY_ENGINE,
            remedy=one.remedy,
            curator_remedy=one.curator_remedy,
        )


EVERYTHING: Final = Capabilities(engine="Every engine")
"""For plans that no engine will run: they may need anything."""


def _constructs(question: Question) -> Iterator[str]:
    """Yield what a question is made of, each as often as it is there."""
    for measure in question.measures:
        yield measure.construct
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
    for relation in relations_of(question.selection):
        yield relation.construct
        yield from (f"{relation.construct}: {used}" for used in relation.uses)
    for expression in expressions_of(question):
        yield from (node.function for node in walk(expression) if isinstance(node, Operation))


def relations_of(selection: FilteredRows) -> Iterator[Relation]:
    """Yield all relations that a selection is made from, each as often as it is there."""
    yield selection.relation
    for source in selection.relation.sources:
        yield from relations_of(source)


def expressions_of(question: Question) -> Iterator[Expression]:
    """Yield all expressions that a question computes, as whole ones."""
    outer = (*map(argument_of, question.measures), *(key.expression for key in question.keys))
    yield from (expression for expression in (*outer, *_conditions(question.selection)) if expression is not None)
    for relation in relations_of(question.selection):
        for values in relation.computed:
            yield from values


def _conditions(selection: FilteredRows) -> Iterator[Expression | None]:
    yield selection.where
    if selection.relation.public is not None:
        yield selection.relation.public.where
    for source in selection.relation.sources:
        yield from _conditions(source)
