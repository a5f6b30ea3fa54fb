"""How the numbers and keys of an answer that is not bought yet would err: what a preview shows of each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lapwing.mechanisms.additive import LARGEST
from lapwing.preview import ColumnPreview, MeasurePreview, SelectionPreview
from lapwing.query.aggregates.approximate_bounds import margin_of
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import KeyValue, MeasureValue, measures_of, values_in
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.node import Output
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.measure_names import measure_names
from lapwing.query.plan.plan import Plan
from lapwing.query.plan.search import Search
from lapwing.query.pricing.assumed_means import half_width_of_mean
from lapwing.query.pricing.quote import CONFIDENCE, NoisyMeasure, Quote
from lapwing.query.pricing.selection_mechanisms import ChoiceQuote
from lapwing.release.rare_notes import units_needed


def measure_previews(priced: Quote, names: Mapping[Measure, str]) -> tuple[MeasurePreview, ...]:
    """Describe every measure of a question."""
    return tuple(_measure(term, names[term.measure]) for term in priced.terms)


def _measure(term: NoisyMeasure, name: str) -> MeasurePreview:
    step = term.measure.step
    return MeasurePreview(
        measure=name,
        sensitivity=term.mechanism.distance(term.candidate.sensitivity) * float(step),
        reason=term.candidate.reason,
        mechanism=term.mechanism.name,
        scale=float(term.mechanism.scale * step),
        half_width=float(term.half_width(CONFIDENCE)),
    )


def column_previews(
    plan: Plan, terms: Sequence[NoisyMeasure], names: Mapping[Measure, str], assuming_count: int | None
) -> tuple[ColumnPreview, ...]:
    """Describe every column of the answer, by the noise of each number."""
    chosen = any(term.mechanism.name == LARGEST for term in terms)
    return tuple(
        ColumnPreview(
            name=output.name,
            rests_on=tuple(names[measure] for measure in measures_of(output.value)),
            half_width=_half_width(output, terms, assuming_count),
            selected=any(
                isinstance(value, KeyValue) and (chosen or value.key.private) for value in values_in(output.value)
            ),
        )
        for output in plan.outputs
    )


def selection_preview(priced: Quote) -> SelectionPreview | None:
    """Describe the choice of private keys."""
    if priced.key_selection is None:
        return None
    mechanism = priced.key_selection.mechanism
    scale, threshold = mechanism.noise or (None, None)
    fewest, most = units_needed(priced.key_selection) or (None, None)
    return SelectionPreview(
        keys=tuple(key.name for key in priced.question.private_keys),
        mechanism=mechanism.name,
        price_share=float(priced.key_selection.loss.amount / priced.loss.amount),
        delta=float(priced.key_selection.delta),
        scale=scale,
        threshold=threshold,
        fewest_units=fewest,
        most_units=most,
        keys_per_unit=mechanism.max_keys,
    )


def _half_width(output: Output, noisy: Sequence[NoisyMeasure], assuming_count: int | None) -> float | None:
    terms = {term.measure: term for term in noisy}
    match output.value:
        case MeasureValue(measure=measure):
            return float(terms[measure].half_width(CONFIDENCE))
        case KnownMean(total=total) as mean:
            return float(mean.half_width(terms[total].half_width(CONFIDENCE)))
        case Average() as average if assuming_count is not None:
            return float(half_width_of_mean(average, terms, assuming_count))
        case _:
            return None


def previews_of(priced: Quote, plan: Plan) -> tuple[MeasurePreview, ...]:
    """Describe the noise of what is asked before a question: searches, by how far the rows of a class may be off."""
    described: list[MeasurePreview] = []
    by_question = {search.question: search for search in plan.searches}
    constants = {constant.question: constant for constant in plan.constants}
    for bought in priced.searches:
        search = by_question.get(bought.question)
        if search is None:  # a constant
            described += measure_previews(bought, measure_names(constants[bought.question]))
            continue
        if bought.choosing is not None:
            described.append(_preview_of_choice(search, bought.choosing))
            continue
        (preview,) = measure_previews(bought, {search.measure: f"bounds of {search.name}"})
        margin = margin_of(bought.terms[0].mechanism, search.magnitudes)
        described.append(replace(preview, half_width=float(margin)))
    return tuple(described)


def _preview_of_choice(search: Search, choosing: ChoiceQuote) -> MeasurePreview:
    """Describe the choice of a level: how many times what a unit adds at a level the sum there may lack."""
    mechanism = choosing.mechanism
    return MeasurePreview(
        measure=f"bounds of {search.name}",
        sensitivity=1.0,
        reason=f"chooses one of {len(mechanism.sensitivities)} limits, by what each keeps and how much noise it takes",
        mechanism=mechanism.name,
        scale=float(mechanism.scale),
        half_width=float(mechanism.largest_defect(CONFIDENCE)),
    )


def at_widest(plan: Plan, priced: Quote, measures: Sequence[MeasurePreview]) -> tuple[MeasurePreview, ...]:
    """Say in the reason of each sum without bounds that it is described with the widest ones."""
    return tuple(
        replace(preview, reason=f"{preview.reason}, if the bounds found are the widest")
        if term.measure in plan.unsettled
        else preview
        for term, preview in zip(priced.terms, measures, strict=True)
    )


def unpromised(plan: Plan, columns: Sequence[ColumnPreview]) -> tuple[ColumnPreview, ...]:
    """Return the columns, without an error where the error depends on bounds that are not found yet."""
    unknown = {output.name for output in plan.outputs if plan.unsettled & set(measures_of(output.value))}
    return tuple(replace(column, half_width=None) if column.name in unknown else column for column in columns)
