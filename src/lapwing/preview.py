"""What a question would cost and how good its answer would be, from public facts alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.catalog.model import Column, Table
from lapwing.errors import InvalidParameter
from lapwing.mechanisms import DiscreteLaplace, TruncatedGeometric, WeightedGaussian
from lapwing.privacy.measures import Loss
from lapwing.query.calibrate import CONFIDENCE, Priced, Selecting, Term
from lapwing.query.derivation.derive import bracket
from lapwing.query.derivation.derived import Average, OrderStatistic, Output, Released, keys_of, measures_of, parts_of
from lapwing.query.derivation.ranks import rank_note
from lapwing.query.measures import Count, Measure, Sum
from lapwing.query.plan import Plan
from lapwing.query.relations.relation import FirstGroups, FirstRows


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePreview:
    """One noisy number of the answer.

    `sensitivity` is the most that one privacy unit can move it (over all cells, in the norm of the mechanism), `scale`
    the mechanism's parameter and `half_width` the half-width of its 95 % interval, all in the measure's own unit.
    """

    measure: str
    sensitivity: float
    reason: str
    mechanism: str
    scale: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPreview:
    """How the private keys of an answer are chosen.

    Args: keys: whose values are chosen; price_share: what the choice takes of the price; delta: of the delta for keys.
        scale: the mechanism's noise, in weights of which those of one unit have length 1, None where it flips coins;
        threshold: the weight that a key needs with its noise, in the same unit, None likewise.
        fewest_units: how many units, each with no other key, make a key appear with 95 % probability, and most_units,
        how many if each holds `keys_per_unit` keys, the most there can be; None beyond billions.
    """

    keys: tuple[str, ...]
    mechanism: str
    price_share: float
    delta: float
    scale: float | None
    threshold: float | None
    fewest_units: int | None
    most_units: int | None
    keys_per_unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPreview:
    """One column of the answer; `half_width` is None where the error is not a public fact.

    For an AVG, `half_width` is given only with `assuming_count`: then the true mean is within it, whatever it is.
    `selected` tells that it shows values of private keys: each value is exact, but which are shown is noisy.
    """

    name: str
    rests_on: tuple[str, ...]
    half_width: float | None
    selected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPreview:
    """A part of the data that a question is charged to: what it has spent, and what is left for it."""

    part: str
    spent: Loss
    remaining: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The price and the promised error of a question.

    Args:
        cost: what asking now would be charged: zero if the answer is already bought.
        price: the loss of the question's mechanisms; epsilon: the (epsilon, delta) reading of that price alone.
        share_of_remaining: price over what is left for who asks (above 1: refused); remaining, fits: what is left of
            the budget, and of the share that a service gives its caller, and how many questions of this price it holds.
        refusal: what asking now would be refused with; None if it would not be.
        cells: the number of cells in the answer, None if its keys are private; unit, bound: whom it protects, and
            what is kept of each.
        delta: what the selection of private keys takes of the delta kept for keys; selection: how they are chosen,
            None if all keys are public.
        sharpens: whether the price is only what a stored, less accurate answer lacks.
        parts: of data in parts, those that the question reads and is charged to; None if it is charged to all. What is
            left, and its share, are those of these parts.
    """

    cost: Loss
    price: Loss
    epsilon: float
    share_of_remaining: float
    remaining: Loss
    fits: int
    cells: int | None
    unit: str
    bound: str
    measures: tuple[MeasurePreview, ...]
    columns: tuple[ColumnPreview, ...]
    notes: tuple[str, ...]
    delta: Fraction = Fraction(0)
    sharpens: bool = False
    assuming_count: int | None = None
    parts: tuple[PartPreview, ...] | None = None
    selection: SelectionPreview | None = None
    refusal: str | None = None

    @property
    def stored(self) -> bool:
        """Whether the answer was bought before, so that asking again is free."""
        return self.cost.amount == 0


def measure_previews(priced: Priced, names: Mapping[Measure, str]) -> tuple[MeasurePreview, ...]:
    """Describe every measure of a question."""
    return tuple(_measure(term, names[term.measure]) for term in priced.terms)


def _measure(term: Term, name: str) -> MeasurePreview:
    laplace = isinstance(term.mechanism, DiscreteLaplace)
    sensitivity = term.candidate.sensitivity
    norm = float(sensitivity.l1) if laplace else float(sensitivity.l2_squared) ** 0.5
    scale = term.mechanism.scale if isinstance(term.mechanism, DiscreteLaplace) else term.mechanism.sigma
    step = term.measure.step
    return MeasurePreview(
        measure=name,
        sensitivity=norm * float(step),
        reason=term.candidate.reason,
        mechanism=term.mechanism.name,
        scale=float(scale * step),
        half_width=float(term.half_width(CONFIDENCE)),
    )


def column_previews(
    plan: Plan, priced: Priced, names: Mapping[Measure, str], assuming_count: int | None
) -> tuple[ColumnPreview, ...]:
    """Describe every column of the answer."""
    return tuple(
        ColumnPreview(
            name=output.name,
            rests_on=tuple(names[measure] for measure in measures_of(output.value)),
            half_width=_half_width(output, priced, assuming_count),
            selected=any(key.private for key in keys_of(output.value)),
        )
        for output in plan.outputs
    )


def selection_preview(priced: Priced) -> SelectionPreview | None:
    """Describe the choice of private keys."""
    if priced.selecting is None:
        return None
    mechanism = priced.selecting.mechanism
    weighted = mechanism if isinstance(mechanism, WeightedGaussian) else None
    units = _units_needed(priced.selecting)
    return SelectionPreview(
        keys=tuple(key.name for key in priced.question.private_keys),
        mechanism=mechanism.name,
        price_share=float(priced.selecting.loss.amount / priced.loss.amount),
        delta=float(priced.selecting.delta),
        scale=None if weighted is None else float(weighted.sigma),
        threshold=None if weighted is None else weighted.threshold / 2**weighted.fraction_bits,
        fewest_units=None if units is None else units[0],
        most_units=None if units is None else units[1],
        keys_per_unit=mechanism.max_keys,
    )


def _units_needed(selecting: Selecting) -> tuple[int, int] | None:
    """Return how many units make a key appear with 95 % probability: with one key each, and with the most."""
    mechanism = selecting.mechanism
    try:
        if isinstance(mechanism, TruncatedGeometric):
            count = mechanism.count_for(CONFIDENCE)
            return count, count
        fewest, most = (mechanism.count_for(CONFIDENCE, keys_per_unit=keys) for keys in (1, mechanism.max_keys))
    except InvalidParameter:  # more than 2^31
        return None
    return fewest, most


def _half_width(output: Output, priced: Priced, assuming_count: int | None) -> float | None:
    terms = {term.measure: term for term in priced.terms}
    match output.value:
        case Released(measure=measure):
            return float(terms[measure].half_width(CONFIDENCE))
        case Average() as average if assuming_count is not None:
            return _average_half_width(average, terms, assuming_count)
        case _:
            return None


def _average_half_width(average: Average, terms: Mapping[Measure, Term], count: int) -> float:
    """Return the largest distance between a mean and the ends of its interval, over all means inside the bounds.

    With n rows of mean m around the origin, the released sum lies within a of nm and the released count within b of
    n. The quotient's distance from m is convex in m, so that it is largest at a bound.
    """
    level = 1 - (1 - CONFIDENCE) / 2
    parts: tuple[Measure, ...] = (average.total, average.count)
    margins = {part: terms[part].half_width(level) for part in parts}
    low, high = average.total.type.interval()
    if low is None or high is None:
        raise ValueError("a sum's argument is bounded")
    origin = average.total.origin * average.total.step
    worst = Fraction(0)
    for mean in (low, high):
        centre: dict[Measure, Fraction] = {average.total: (mean - origin) * count, average.count: Fraction(count)}
        for total in (-margins[average.total], margins[average.total]):
            shifted = {**centre, average.total: centre[average.total] + total}
            ends = bracket(average, shifted, {**margins, average.total: Fraction(0)}, {})
            if ends is not None:
                worst = max(worst, *(abs(Fraction(end) - mean) for end in ends))
    return float(worst)


def units_of(tables: Sequence[Table]) -> str:
    """Say whom a question about tables protects: of each kind of units one after the other."""
    kinds = {table.units: table.root for table in tables}
    named = ("each row" if root.unit_is_row else f"each {root.privacy_unit}" for root in kinds.values())
    return " and ".join(dict.fromkeys(named))


def bound_of(tables: Sequence[Table]) -> str:
    """Say what is kept of one privacy unit in tables: those of a kind of units together, parents first."""
    kinds = dict.fromkeys(table.units for table in tables)
    return "; ".join(_bound_of([table for table in tables if table.units == kind], len(kinds)) for kind in kinds)


def _bound_of(tables: Sequence[Table], kinds: int) -> str:
    first, *others = tables
    if first.unit_is_row:
        return "each row is protected by itself"
    rows = first.max_rows_per_unit
    said = f"at most {rows} {'row' if rows == 1 else 'rows'} of each {first.root.privacy_unit}"
    if not others:
        return said if kinds == 1 else f"{said} in {first.name}"
    return f"{said} in {first.name}, {', '.join(f'{table.max_rows_per_unit} in {table.name}' for table in others)}"


def notes_of(plan: Plan, priced: Priced) -> tuple[str, ...]:
    """Say what a reader of the answer should know: public facts, and the biases that intervals do not cover."""
    return (
        *_clamping(plan),
        *_bounding(plan),
        *_shared(plan, priced),
        *_races(plan),
        *_selection(priced),
        *_ranks(plan, priced),
    )


def _clamping(plan: Plan) -> tuple[str, ...]:
    """Say which columns are clamped by design."""
    read = plan.question.columns
    tables = plan.question.tables
    clamped = [c for table in tables for c in table.columns if (table.name, c.name) in read and c.numeric and c.bounded]
    return tuple(f"{column.name} is {_range(column)}; values outside count as the nearest bound" for column in clamped)


def _bounding(plan: Plan) -> tuple[str, ...]:
    """Say what is left out of each unit."""
    notes = []
    if not plan.question.table.unit_is_row:
        notes.append(f"{bound_of(plan.question.lineage)} count; further rows do not exist for any question")
    match plan.question.selection.relation:
        case FirstGroups(most=most):
            notes.append(f"at most {most} groups of each unit count, as this question limits it")
        case FirstRows(most=most):
            notes.append(f"at most {most} rows of each unit count, as this question limits it")
    return tuple(notes)


def _shared(plan: Plan, priced: Priced) -> tuple[str, ...]:
    """Say how rows that several units share are truncated, at which levels, and for what part of the price."""
    units = plan.question.units_of_row
    if units == 1:
        return ()
    notes = [f"{units} units share a row; what each adds is limited by a linear program, which leaves out little"]
    terms = {term.measure: term for term in priced.terms}
    for output in plan.outputs:
        levels = measures_of(output.value)
        ends = [float(m.clamp[1] * m.step) for m in levels if isinstance(m, Count | Sum) and m.clamp is not None]
        spent = sum((terms[measure].loss(priced.loss.kind).amount for measure in levels), Fraction(0))
        share = f"{float(100 * spent / priced.loss.amount):.3g} % of the price"
        if len(ends) > 1:
            limits = f"{len(ends)} limits from {min(ends):,.10g} to {max(ends):,.10g}"
            notes.append(f"{output.name} is a race of {limits}, for {share}")
    return tuple(notes)


def _races(plan: Plan) -> tuple[str, ...]:
    """Say which columns are found by a race to the top, and that they err to one side."""
    raced = [output.name for output in plan.outputs if set(measures_of(output.value)) & plan.asked.weights.keys()]
    return tuple(
        f"{name} is at most the true value with 95 % probability: what a unit may add is found" for name in raced
    )


def _selection(priced: Priced) -> tuple[str, ...]:
    """Say which private keys the answer has."""
    if priced.selecting is None:
        return ()
    units = _units_needed(priced.selecting)
    if units is None:
        return ("keys that billions of units hold may still be missing; give a larger epsilon or delta",)
    fewest, most = units
    many = f", and by {most:,} if each holds {priced.selecting.mechanism.max_keys} keys" if most > fewest else ""
    return (f"keys held by at least {fewest:,} units appear with 95 % probability{many}; rarer ones seldom",)


def _ranks(plan: Plan, priced: Priced) -> tuple[str, ...]:
    """Say how far the ranks of order statistics are off."""
    terms = {term.measure: term for term in priced.terms}
    found = {part: output.name for output in plan.outputs for part in parts_of(output.value)}
    ranked = [(part, name) for part, name in found.items() if isinstance(part, OrderStatistic)]
    return tuple(f"{name}: {rank_note(part, terms[part.distribution].mechanism)}" for part, name in ranked)


def _range(column: Column) -> str:
    step = f" in steps of {float(column.step):g}" if column.step is not None and column.step != 1 else ""
    return f"between {float(column.low * (column.step or 1)):g} and {float(column.high * (column.step or 1)):g}{step}"
