"""Questions over the answers to others: what is asked in their place, and what they are answered with."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lapwing.answer import Answer
from lapwing.errors import QueryRefused
from lapwing.query.derivation.derived import Derived, values_in
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.plan import Plan
from lapwing.release.answering import answer_all, sum_of
from lapwing.release.request import Access, Request


def answer_composed(requests: Sequence[Request], access: Access) -> tuple[Answer, ...]:
    """Answer questions of which some are over the answers to others: all are charged together, or none.

    Guarantee: nothing but the questions in their place touches data; what follows is post-processing.
    Raises: as `answer_all`; QueryRefused, with all charged and kept, for a join of private keys with too many rows.
    """
    asked = [tuple(in_place_of(request)) for request in requests]
    answers = iter(answer_all([leaf for leaves in asked for leaf in leaves], access))
    return tuple(_made(request.plan, answers)[0] for request in requests)


def in_place_of(request: Request) -> Iterator[Request]:
    """Yield what is asked in the place of a question, in the order of its leaves: itself, if it touches data."""
    if request.plan.composition is None:
        yield request
        return
    for source, quote in zip(request.plan.composition.sources, request.priced.sources, strict=True):
        yield from in_place_of(replace(request, plan=source, priced=quote))


def source_columns(plan: Plan, value: Derived) -> Iterator[tuple[Plan, Derived]]:
    """Yield the columns of leaves that a value is computed from, each with its leaf."""
    if plan.composition is None:
        yield plan, value
        return
    for inner in values_in(value):
        for one in inner.values if isinstance(inner, UnionValue) else (inner,):
            if isinstance(one, SourceValue):
                yield from source_columns(plan.composition.sources[one.source], one.value)


def _made(plan: Plan, answers: Iterator[Answer]) -> tuple[Answer, list[Answer]]:
    """Return the answer to a plan, and those to its leaves."""
    if plan.composition is None:
        answer = next(answers)
        return answer, [answer]
    made = [_made(source, answers) for source in plan.composition.sources]
    leaves = [leaf for _, of_source in made for leaf in of_source]
    answer = Answer(
        plan=plan,
        mechanisms=(),
        values=(),
        keys=(),
        cost=sum_of([leaf.cost for leaf in leaves]),
        stored=all(leaf.stored for leaf in leaves),
        notes=tuple(dict.fromkeys(note for leaf in leaves for note in leaf.notes)),
        entries=sorted({entry for leaf in leaves for entry in leaf.entries}),
        sources=[source for source, _ in made],
    )
    try:
        len(answer)
    except QueryRefused as refused:  # too many rows, which nobody knew
        refused.searches_charged = True
        raise
    return answer, leaves
