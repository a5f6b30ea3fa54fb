"""The rows of an answer that is made of others: which rows of each source every one is made of.

It is computed from what the sources show, so that it is post-processing of released numbers and keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from lapwing.answer.column_facts import NO_INTERVAL_GIVEN, ColumnFacts, facts
from lapwing.answer.interval_ends import margins_of
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.derivation.columns import NUMERIC, Column, IndexArray, Labels, Truths, Value, mask_of, of_labels
from lapwing.query.derivation.derived import NoisyCells, measures_of, values_in
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE
from lapwing.query.derivation.node import Derived, Output
from lapwing.query.derivation.source_values import SourceCells, SourceValue, UnionValue
from lapwing.query.measures.measures import Key, Measure
from lapwing.query.plan.composition import MOST_ROWS, Composition, SourceJoin
from lapwing.query.plan.plan import Plan

if TYPE_CHECKING:
    from lapwing.answer.answer import Answer

_NONE: Final = np.zeros(0, dtype=np.int64)


def composed_rows(composition: Composition, answers: "Sequence[Answer]") -> NoisyCells:
    """Return the rows that a composition makes of its sources' answers, in the order of the first, then the second.

    Raises:
        QueryRefused: If there are too many, which is known beforehand only where all keys are public.
    """
    if composition.public:
        return _public(composition.public)
    if composition.joins is None:
        return _below_each_other(answers)
    rows = _cells(answers[:1], [np.arange(len(answers[0]))])
    for join, answer in zip(composition.joins, answers[1:], strict=True):
        rows = _joined(rows, answer, join)
    return rows


def _public(columns: Sequence[Key]) -> NoisyCells:
    return NoisyCells(
        size=len(columns[0].domain),
        measures={},
        keys={str(column): of_labels(column.domain) for column in columns},
        margins=lambda value: margins_of(value, {}, INTERVAL_CONFIDENCE),
    )


def _cells(answers: "Sequence[Answer]", places: Sequence[IndexArray]) -> NoisyCells:
    return _of_sources([_source(answer, at) for answer, at in zip(answers, places, strict=True)])


def _source(answer: "Answer", places: IndexArray) -> SourceCells:
    def margins(value: Derived, confidence: Fraction) -> Mapping[Measure, Fraction]:
        return margins_of(value, answer.mechanisms, confidence)

    return SourceCells(rows=answer._rows, places=places, margins=margins)


def _of_sources(sources: Sequence[SourceCells]) -> NoisyCells:
    return NoisyCells(
        size=len(sources[0].places),
        measures={},
        keys={},
        margins=lambda value: margins_of(value, {}, INTERVAL_CONFIDENCE),
        sources=tuple(sources),
    )


def _below_each_other(answers: "Sequence[Answer]") -> NoisyCells:
    sizes = [len(answer) for answer in answers]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = []
    for start, size in zip(starts, sizes, strict=False):
        own = np.full(int(starts[-1]), -1, dtype=np.int64)
        own[start : start + size] = np.arange(size)
        places.append(own)
    return _cells(answers, places)


def _joined(rows: NoisyCells, answer: "Answer", join: SourceJoin) -> NoisyCells:
    """Join a source to the rows so far: pairs in the order of the rows, unmatched rows of the source after them."""
    right_size = len(answer)
    left, right = _equal_pairs(rows, answer, join)
    pairs = _beside(rows, answer, left, right)
    if join.condition is not None:
        condition = pairs.column(join.condition)
        holds = condition.holds if isinstance(condition, Truths) else np.zeros(pairs.size, dtype=np.bool_)
        left, right = left[holds], right[holds]
    alone_left = _missing_from(left, rows.size) if join.kind in ("left", "full") else _NONE
    alone_right = _missing_from(right, right_size) if join.kind in ("right", "full") else _NONE
    left = np.concatenate([left, alone_left])
    right = np.concatenate([right, np.full(len(alone_left), -1, dtype=np.int64)])
    order = np.argsort(left, kind="stable")
    left = np.concatenate([left[order], np.full(len(alone_right), -1, dtype=np.int64)])
    return _beside(rows, answer, left, np.concatenate([right[order], alone_right]))


def _beside(rows: NoisyCells, answer: "Answer", left: IndexArray, right: IndexArray) -> NoisyCells:
    """Return rows, none where `left` is −1, each beside one of a source."""
    before = []
    for source in rows.sources:
        places = source.places[np.maximum(left, 0)] if rows.size else np.full(len(left), -1, dtype=np.int64)
        before.append(SourceCells(rows=source.rows, margins=source.margins, places=np.where(left < 0, -1, places)))
    return _of_sources([*before, _source(answer, right)])


def _missing_from(places: IndexArray, size: int) -> IndexArray:
    there = np.zeros(size, dtype=np.bool_)
    there[places] = True
    return np.flatnonzero(~there)


def _equal_pairs(rows: NoisyCells, answer: "Answer", join: SourceJoin) -> tuple[IndexArray, IndexArray]:
    """Return the pairs of a row and a row of the source of which everything is equal that must be."""
    size = len(answer)
    left, right = np.zeros(rows.size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for before, value in join.pairs:
        found = _codes(rows.column(before), answer._rows.column(value.value))
        codes = [np.broadcast_to(one, length) for one, length in zip(found, (rows.size, size), strict=True)]
        both = np.concatenate([np.stack([left, codes[0]]), np.stack([right, codes[1]])], axis=1)
        together: IndexArray = np.unique(both, axis=1, return_inverse=True)[1].reshape(-1)
        left, right = together[: rows.size], together[rows.size :]
        left, right = np.where(codes[0] < 0, -1, left), np.where(codes[1] < 0, -2, right)  # NULL is equal to nothing
    order = np.argsort(right, kind="stable")
    starts = np.searchsorted(right[order], left, side="left")
    counts = np.searchsorted(right[order], left, side="right") - starts
    total = int(counts.sum())
    if total > MOST_ROWS:
        reason = f"The join of these answers has {total:,} pairs of rows, and at most {MOST_ROWS:,} are made"
        raise QueryRefused(
            reason,
            cause=RefusalCause.RESULT_TOO_LARGE,
            remedy="You have bought these results, so each is free when you query it separately.",
        )
    firsts = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return np.repeat(np.arange(rows.size), counts), order[np.arange(total) + firsts]


def _codes(left: Column, right: Column) -> tuple[IndexArray, IndexArray]:
    """Return small integers, equal where values are; −1 for NULL."""
    codes: dict[Value, int] = {}
    found = []
    for column in (left, right):
        if isinstance(column, Labels):
            own = [codes.setdefault(_comparable(label), len(codes)) for label in column.labels]
            found.append(np.array([*own, -1], dtype=np.int64)[column.places])
            continue
        values = [-1 if value is None else codes.setdefault(value, len(codes)) for value in column.values()]
        found.append(np.where(mask_of(column.null), -1, np.array(values, dtype=np.int64)))
    return found[0], found[1]


def _comparable(value: Value) -> Value:
    """Return a date as the moment at which it begins: as such it is equal to a timestamp."""
    return datetime.combine(value, time()) if type(value) is date else value


# ---- what is public about their columns ------------------------------------------------------------------------------


def composed_facts(plan: Plan, answers: "Sequence[Answer]") -> tuple[ColumnFacts, ...]:
    """Describe every column of an answer that is made of others, by the columns that it is computed from."""
    return tuple(_facts(output, answers) for output in plan.outputs)


def _facts(output: Output, answers: "Sequence[Answer]") -> ColumnFacts:
    found = []
    for inner in values_in(output.value):
        for value in inner.values if isinstance(inner, UnionValue) else (inner,):
            if isinstance(value, SourceValue):
                found.append(_of_source(Output(name=output.name, value=value.value), answers[value.source]))
    noisy, widths = bool(measures_of(output.value)), [of_source.half_width for of_source in found]
    alone = isinstance(output.value, SourceValue | UnionValue)
    notes = [note for of_source in found for note in of_source.notes] if alone else []
    if noisy and output.value.shape in NUMERIC and not output.value.has_interval:
        notes.append(NO_INTERVAL_GIVEN)
    return ColumnFacts(
        name=output.name,
        measures=tuple(dict.fromkeys(measure for of_source in found for measure in of_source.measures)),
        half_width=max((width or 0.0 for width in widths), default=None) if alone and None not in widths else None,
        price_share=None,
        notes=tuple(dict.fromkeys(notes)),
    )


def _of_source(output: Output, answer: "Answer") -> ColumnFacts:
    output = next((own for own in answer.plan.outputs if own.value == output.value), output)  # so that it has its name
    if answer.plan.composition is not None:
        return _facts(output, answer.sources)
    (described,) = facts(replace(answer.plan, outputs=(output,)), answer.mechanisms, None)
    return described
