"""What is public about the columns of an answer: functions of its question and mechanisms, not of released values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lapwing.answer.notes import (
    ENDS_OF_INTERVALS,
    FEW_ROWS_NULL,
    MEAN_OF_PUBLIC_PEOPLE,
    NO_INTERVAL,
    PUBLIC_NUMBER,
    RANK_ERROR,
    WITHIN_BOUNDS,
)
from lapwing.answer.python_values import Note
from lapwing.exact.floats import float_near
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise, NoNoise
from lapwing.mechanisms.noise_above import NoiseAboveThreshold
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.columns import NUMERIC
from lapwing.query.derivation.derive import IntervalEnd
from lapwing.query.derivation.derived import MeasureValue, measures_of, values_in
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.node import Derived, Output
from lapwing.query.derivation.noisy_trees import rank_error
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.measure_names import measure_names
from lapwing.query.plan.plan import Plan

if TYPE_CHECKING:
    from lapwing.answer.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNoise:
    """A noise that was drawn, as it is in a number that follows from several noisy ones.

    Args:
        mechanism: Its name.
        scale: The mechanism's parameter, times the weight that it has, in the number's unit.
        step: Of which the noisy number is a multiple, likewise.
    """

    mechanism: str
    scale: float
    step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureFacts:
    """The noise of one released number, in its own unit.

    Args:
        scale: The mechanism's parameter.
        half_width: Of its 95 % interval in every cell, for a distribution how far the rank of any one value may be off.
        price_share: The part of the price that it took, None where the answer does not know it (it was bought before).
        noises: Of a number that was measured together with others, the independent noises whose sum it errs by.
        rounding: How far it may be from that sum, because it is rounded.
    """

    measure: str
    mechanism: str
    scale: float
    half_width: float
    price_share: float | None
    noises: tuple[DrawnNoise, ...] = ()
    rounding: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What is public about one column.

    Args:
        measures: The released numbers it rests on, none for a key.
        half_width: Of the 95 % interval where it is the same in every cell, else None.
        price_share: Of its measures, which other columns may share.
        notes: Texts for people, each a `Note` with a code.
    """

    name: str
    measures: tuple[MeasureFacts, ...]
    half_width: float | None
    price_share: float | None
    notes: tuple[str, ...]


NO_INTERVAL_GIVEN: Final = Note("no interval can be given", NO_INTERVAL)


def facts(
    plan: Plan,
    mechanisms: Mapping[Measure, NoiseLaw],
    shares: Mapping[Measure, Fraction] | None,
    sources: "Sequence[Answer]" = (),
) -> tuple[ColumnFacts, ...]:
    """Describe every column of an answer.

    Args:
        sources: The answers that it is made of, if it is.
    """
    if plan.composition is not None:
        from lapwing.answer.composing import composed_facts  # here: few answers are made of others

        return composed_facts(plan, sources)
    names = measure_names(plan)
    of_measure = {m: _measure(names[m], m, mechanisms[m], None if shares is None else shares[m]) for m in mechanisms}
    return tuple(_column(output, mechanisms, of_measure, shares) for output in plan.outputs)


def _column(
    output: Output,
    mechanisms: Mapping[Measure, NoiseLaw],
    of_measure: Mapping[Measure, MeasureFacts],
    shares: Mapping[Measure, Fraction] | None,
) -> ColumnFacts:
    value, inside, measured = output.value, list(values_in(output.value)), measures_of(output.value)
    return ColumnFacts(
        name=output.name,
        measures=tuple([of_measure[measure] for measure in measured]),
        half_width=_same_everywhere(value, mechanisms, of_measure),
        price_share=None if shares is None else _share([shares[measure] for measure in measured]),
        notes=(*(_notes(value, inside, mechanisms) if measured else ()), *_rank_notes(inside, mechanisms)),
    )


def _same_everywhere(
    value: Derived, mechanisms: Mapping[Measure, NoiseLaw], found: Mapping[Measure, MeasureFacts]
) -> float | None:
    """Return the half-width of a column's intervals, where it is the same in every cell."""
    if not isinstance(value, MeasureValue) or isinstance(mechanisms[value.measure], NoiseAboveThreshold):
        return None
    return found[value.measure].half_width


def _measure(name: str, measure: Measure, mechanism: NoiseLaw, share: Fraction | None) -> MeasureFacts:
    if isinstance(measure, Distribution):
        noise = _noise(mechanism, measure.step, rank_error(measure, mechanism, INTERVAL_CONFIDENCE))
    else:
        noise = _noise_of_number(mechanism, measure.step)
    return replace(noise, measure=name, price_share=None if share is None else float_near(share))


@lru_cache(maxsize=1024)  # of numbers that follow from bounds and price, as `combined_noise.strays`
def _noise_of_number(mechanism: NoiseLaw, step: Fraction) -> MeasureFacts:
    return _noise(mechanism, step, mechanism.half_width(INTERVAL_CONFIDENCE))


def _noise(mechanism: NoiseLaw, step: Fraction, half_width: int) -> MeasureFacts:
    """Return the facts of a number that has no name yet, and of which no share is known."""
    return MeasureFacts(
        measure="",
        mechanism=mechanism.name,
        scale=float_near(mechanism.scale * step),
        half_width=float_near(half_width * step),
        price_share=None,
        noises=_drawn(mechanism, step) if isinstance(mechanism, CombinedNoise) else (),
        rounding=float_near(mechanism.rounding * step) if isinstance(mechanism, CombinedNoise) else 0.0,
    )


def _drawn(noise: CombinedNoise, step: Fraction) -> tuple[DrawnNoise, ...]:
    pairs = [(abs(weight) * step, law) for weight, law in zip(noise.weights, noise.laws, strict=True) if weight]
    return tuple(
        DrawnNoise(mechanism=law.name, scale=float_near(law.scale * unit), step=float_near(unit)) for unit, law in pairs
    )


def _share(shares: Sequence[Fraction]) -> float:
    return float_near(sum(shares[1:], shares[0])) if shares else 0.0


def _notes(value: Derived, inside: Sequence[Derived], mechanisms: Mapping[Measure, NoiseLaw]) -> list[Note]:
    """Say what a reader of the column should know; inside: the values that it is made of."""
    if [part for part in inside if isinstance(part, IntervalEnd)]:
        return [Note("computed from ends of 95 % intervals, so it has no interval of its own", ENDS_OF_INTERVALS)]
    notes: list[Note] = []
    if isinstance(value, MeasureValue) and isinstance(mechanisms[value.measure], NoNoise):
        return [Note("public: the number of people in the catalog", PUBLIC_NUMBER)]
    if [part for part in inside if isinstance(part, Average)]:
        notes.append(Note("NULL where the noisy count of a mean is below 1", FEW_ROWS_NULL))
    if isinstance(value, KnownMean):
        notes.append(Note(f"over the {value.people:,} in the catalog", MEAN_OF_PUBLIC_PEOPLE))
    if isinstance(value, Average | KnownMean):
        notes.append(Note("inside the bounds of its argument", WITHIN_BOUNDS))
    if value.shape in NUMERIC and not value.has_interval:
        notes.append(NO_INTERVAL_GIVEN)
    return notes


def _rank_notes(inside: Sequence[Derived], mechanisms: Mapping[Measure, NoiseLaw]) -> list[Note]:
    """Say how far ranks are off, and from how wide a step values are read."""
    ranked = [part for value in inside for part in value.parts if isinstance(part, OrderStatistic)]
    return [Note(part.note(mechanisms[part.distribution]), RANK_ERROR) for part in dict.fromkeys(ranked)]
