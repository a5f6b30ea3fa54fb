"""Leave out what an answer does not read of its sources; those that differ in measures alone are one question."""

from collections.abc import Sequence
from dataclasses import replace

from lapwing.query.bind.layers import may_leave_out, shown
from lapwing.query.derivation.derived import measures_of, values_in
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan, Question, without_unread

Read = dict[Question, set[Measure]]


def without_unread_measures(plan: Plan) -> Plan:
    """Return a plan over the answers to questions with the measures alone that it shows or chooses by.

    A common table expression that is named twice is asked once, for all that is read of it in either place.
    """
    read: Read = {}
    _note(plan, shown(plan), read)
    together: Read = {}
    for question, measures in read.items():
        together.setdefault(_without_measures(question), set()).update(measures)
    return _with(plan, together)


def _without_measures(question: Question) -> Question:
    return replace(question, measures=())


def _note(plan: Plan, values: Sequence[Derived], read: Read) -> None:
    """Note the measures that values of a plan rest on, by their question."""
    if plan.composition is None:
        kept = plan.question.measures
        if may_leave_out(plan):
            kept = tuple(measure for value in values for measure in measures_of(value)) or kept
        read.setdefault(plan.question, set()).update(kept)
        return
    joins = plan.composition.joins or ()
    pairs = [value for join in joins for pair in join.pairs for value in pair]
    conditions = [join.condition for join in joins if join.condition is not None]
    of_source: dict[int, list[Derived]] = {}
    for inner in (inner for value in (*values, *pairs, *conditions) for inner in values_in(value)):
        for one in inner.values if isinstance(inner, UnionValue) else (inner,):
            if isinstance(one, SourceValue):
                of_source.setdefault(one.source, []).append(one.value)
    for place, source in enumerate(plan.composition.sources):
        _note(source, [*shown(replace(source, outputs=())), *of_source.get(place, [])], read)


def _with(plan: Plan, read: Read) -> Plan:
    if plan.composition is not None:
        sources = tuple(_with(source, read) for source in plan.composition.sources)
        return replace(plan, composition=replace(plan.composition, sources=sources))
    if not may_leave_out(plan):
        return plan
    measures = tuple(sorted(read[_without_measures(plan.question)], key=str))
    outputs = tuple(output for output in plan.outputs if set(measures_of(output.value)) <= set(measures))
    question = replace(plan.question, measures=measures)
    selection = without_unread(question.selection, question.keys, measures)
    return replace(plan, question=replace(question, selection=selection), outputs=outputs)
