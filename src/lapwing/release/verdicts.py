"""What to say of a question that will disappoint, before it is paid and beside its answer: functions of its plan alone.

A verdict says what is to be expected and what to write instead. None is a number from data.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from lapwing.answer import Note
from lapwing.answer.notes import (
    ALL_WITHIN_BOUNDS,
    EXTREMES,
    FAR_VALUES,
    MANY_CELLS,
    MATCHES_CHOSEN,
    MEAN_OF_PUBLIC_PEOPLE,
    NOISE_FOR_MANY,
    NULL_PASSED_OVER,
    OUTSIDE_BOUNDS,
    PUBLIC_NUMBER,
    ROWS_CHOSEN,
    ROWS_OF_RESULT,
    SEEN_BOUNDED,
    SEEN_IN_STEPS,
    SUMMED_IN_STEPS,
    TEXT_NOT_LISTED,
    TOO_NOISY,
    TOO_WIDE,
)
from lapwing.catalog.protection import noun_of, units_of
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue
from lapwing.query.derivation.derived import MeasureValue, measures_of, parts_of
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.window_values import over_in
from lapwing.query.expressions.as_read import reads_public
from lapwing.query.expressions.conversion import coarser_step, nullable
from lapwing.query.expressions.expression import (
    ColumnReference,
    Expression,
    Literal,
    Operation,
    columns_of,
    walk,
    written_in,
)
from lapwing.query.expressions.types import Fixed, Real, Type
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.plan.plan import Plan
from lapwing.query.plan.traversal import conditions_of, expressions_of
from lapwing.query.pricing.quote import Quote
from lapwing.query.relations.relation import ProtectedRows

if TYPE_CHECKING:
    from lapwing.query.pricing.measured_vectors import MeasuredVector

WIDE: Final = 1_000_000
"""Between implied bounds: values that a formula can have in theory, and hardly anybody's row has."""
MANY: Final = 5_000
"""Cells of an answer."""
MANY_ROWS: Final = 50
"""Rows of a unit, for all of which there is noise."""
TESTS: Final = frozenset({"equal", "member", "not_equal", "less", "less_equal", "greater", "greater_equal"})
"""Comparisons, by their names in plans."""
OPPOSITE: Final = {
    "not_equal": "equal",
    "less": "greater_equal",
    "greater_equal": "less",
    "greater": "less_equal",
    "less_equal": "greater",
}
"""Comparisons, each with the one that holds where it does not."""
CHOSEN: Final = frozenset({"case", "greatest", "least"})
"""Functions by which a question keeps its values within bounds of its own."""
_OF_ALL_ROWS: Final = frozenset({"rows", "values", "distinct", "average", "quantile", "least"})
"""Functions over a result that rows of zeros change."""


def verdicts(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Return the verdicts on a question at its price."""
    return (
        *_on_null(plan),
        *_on_conditions(plan),
        *_on_reading(plan),
        *_on_steps(plan),
        *unusable(plan),
        *_on_noise(plan, priced),
        *_on_listed_values(plan, priced),
        *_on_people(plan, priced),
        *_on_rows(plan),
        *_on_chosen_rows(plan),
        *_on_matches(plan),
        *_on_outermost(plan),
        *_on_cells(plan),
    )


def _on_null(plan: Plan) -> tuple[str, ...]:
    """Speak of LEAST and GREATEST of what may be NULL: they pass over it, so that such rows count as the constant."""
    question = plan.question
    if not any(_passes_over(node) for expression in expressions_of(question) for node in walk(expression)):
        return ()
    declared = {column.name for table in question.tables for column in table.columns if column.nullable}
    excluded = {text for condition in conditions_of(question) for text in _looked_at(condition)}
    names = set[str]()
    for expression in expressions_of(question):
        looked_at = excluded | {text for node in walk(expression) for text in _conditions_of_case(node)}
        for node in walk(expression):
            if isinstance(node, Operation) and _passes_over(node) and not nullable(node):
                passed = [a for a in node.arguments if nullable(a) and columns_of(a) and columns_of(a) <= declared]
                names |= {name for a in passed if not _is_there(a, looked_at) for name in written_in(a)}
    if not names:
        return ()
    text = (
        f"LEAST and GREATEST pass over NULL: a row without {' and '.join(sorted(names))} counts as the other argument. "
        "To leave such rows out, write CASE WHEN x IS NOT NULL THEN LEAST(x, 100) END, or "
        "AVG(x, contribution_bounds_per_row => (0, 100))"
    )
    return (Note(text, NULL_PASSED_OVER),)


def _passes_over(node: Expression) -> bool:
    return isinstance(node, Operation) and node.function in ("least", "greatest")


def _is_there(argument: Expression, looked_at: set[str]) -> bool:
    """Tell whether conditions look at a value, or at all columns that it is made of."""
    columns = {str(node) for node in walk(argument) if isinstance(node, ColumnReference)}
    return str(argument) in looked_at or columns <= looked_at


def _conditions_of_case(node: Expression) -> set[str]:
    """Return the texts of what the conditions of a CASE look at."""
    if not isinstance(node, Operation) or node.function != "case":
        return set()
    return {text for condition in node.arguments[:-1:2] for text in _looked_at(condition)}


def _looked_at(condition: Expression) -> set[str]:
    """Return the texts of what a condition looks at, but for what passes over NULL in it."""
    texts, pending = set[str](), [condition]
    while pending:
        node = pending.pop()
        texts.add(str(node))
        passes_over = isinstance(node, Operation) and node.function in ("least", "greatest", "coalesce", "or")
        pending += () if passes_over else node.children
    return texts


def _on_conditions(plan: Plan) -> tuple[str, ...]:
    """Speak of conditions that hold for nobody within the bounds, or for everybody, and of texts that nobody listed."""
    notes = dict[str, None]()
    pending = [(condition, True) for condition in conditions_of(plan.question)]
    while pending:
        node, asked = pending.pop(0)
        if not isinstance(node, Operation):
            continue
        denied = node.function == "not"
        if node.function in TESTS:
            found = _of_bounds(node, asked)
            names = " and ".join(sorted(written_in(node)))
            if found is not None:
                notes[found] = None
            elif names and _names_unlisted(node):
                notes[Note(f"{names} is compared with a text that is not among its listed values", TEXT_NOT_LISTED)] = (
                    None
                )
        pending += [(part, asked is not denied) for part in node.arguments]
    return tuple(notes)


def _of_bounds(node: Operation, asked: bool) -> Note | None:
    """Return what the bounds of what is compared say of a comparison: that it never holds, or always."""
    ends = [_ends(argument) for argument in node.arguments] if columns_of(node) else []
    never, always = _is_ruled_out(node.function, ends), _is_ruled_out(OPPOSITE.get(node.function), ends)
    if not never and not always:
        return None
    names = " and ".join(sorted(written_in(node)))
    if never is asked:
        if not _reads(node):
            return Note(
                f"a condition on {names} holds for no row: all values are within the bounds of the catalog",
                OUTSIDE_BOUNDS,
            )
        text = f"a condition on {names} holds for no value within the bounds of the catalog: it leaves only others"
        return Note(text, OUTSIDE_BOUNDS)
    if not _reads(node):
        return Note(f"a condition on {names} holds for every row that has a value", ALL_WITHIN_BOUNDS)
    text = f"a condition on {names} holds for every value within the bounds of the catalog: it leaves out others only"
    return Note(text, ALL_WITHIN_BOUNDS)


def _reads(node: Expression) -> bool:
    return any(isinstance(part, ColumnReference) and part.cleaned is not None for part in walk(node))


def _on_reading(plan: Plan) -> tuple[str, ...]:
    """Speak of what conditions, groups and DISTINCT see of bounded numbers, if that is not what was read."""
    question = plan.question
    keys, every = {key.expression for key in question.keys}, expressions_of(question)
    notes = []
    in_steps = {
        _name(column)
        for expression in every
        for node in walk(expression)
        if isinstance(node, Operation) and node.function == "to_fixed"
        for column in walk(node)
        if _is_read(column) and isinstance(column, ColumnReference) and column.decimal
    }
    if in_steps:
        text = f"what conditions and groups compute of {' and '.join(sorted(in_steps))} is of whole steps"
        notes.append(Note(text, SEEN_IN_STEPS))
    bounded = {name for expression in every for name in _bounded_in(expression, expression in keys)}
    if bounded:
        text = (
            f"WHERE, GROUP BY and DISTINCT use {' and '.join(sorted(bounded))} within bounds here: a value outside "
            "counts as the nearest bound, and values are rounded to steps"
        )
        notes.append(Note(text, SEEN_BOUNDED))
    for read, free in sorted({pair for expression in every for pair in _beside_unbounded(expression)}):
        text = f"{read} is compared with {free}, which has no bounds: a value of {read} far beyond its own counts as"
        notes.append(Note(f"{text} 2⁵⁶, or 2¹⁵⁰ if it is a float or a decimal", FAR_VALUES))
    return tuple(notes)


def _on_steps(plan: Plan) -> tuple[str, ...]:
    """Speak of numbers with so many steps between their bounds that they are summed in coarser ones."""
    notes = dict[str, None]()
    for measure in plan.question.measures:
        step = coarser_step(measure.argument) if isinstance(measure, Sum) else None
        if step is not None and isinstance(measure, Sum):
            names = " and ".join(sorted(written_in(measure.argument))) or "a value"
            notes[f"{names} is summed in steps of {float(step):,.10g}, because its bounds are so far apart"] = None
    return tuple(Note(text, SUMMED_IN_STEPS) for text in notes)


def _is_read(node: Expression) -> bool:
    return isinstance(node, ColumnReference) and node.cleaned is not None


def _name(node: Expression) -> str:
    if not isinstance(node, ColumnReference):
        return ""
    return node.written or (node.cleaned or node).name


def _bounded_in(expression: Expression, asked: bool) -> Iterator[str]:
    """Yield the columns that a comparison, or a key, sees within their bounds though they were read otherwise."""
    pending = [(expression, asked)]
    while pending:
        node, within = pending.pop()
        if within and isinstance(node, ColumnReference) and node.read is not None and not reads_public(node.read):
            yield _name(node)
        looks = within or (isinstance(node, Operation) and node.function in (*TESTS, "between", "distinct"))
        pending += [(part, looks) for part in node.children]


def _beside_unbounded(expression: Expression) -> Iterator[tuple[str, str]]:
    """Yield the bounded numbers, as read, that are compared with numbers without bounds, and these.

    What was read stays within far bounds of its own (`READ_INTEGER`, `READ_REAL`), and the other one does not.
    """
    for node in walk(expression):
        if isinstance(node, Operation) and node.function in (*TESTS, "between", "distinct"):
            parts = list(walk(node))
            free = [part for part in parts if isinstance(part, ColumnReference) and _has_no_bounds(part.type)]
            yield from {(_name(one), _name(other)) for one in parts if _is_read(one) for other in free}


def _has_no_bounds(kind: Type) -> bool:
    return isinstance(kind, Fixed | Real) and (kind.low is None or kind.high is None)


def _is_ruled_out(function: str | None, ends: Sequence[tuple[Fraction, Fraction] | None]) -> bool:
    """Tell whether the ends of what is compared rule a comparison out; not if there is none."""
    if function is None or not ends or (left := ends[0]) is None:
        return False
    for right in ends[1:]:
        if right is None:
            return False
        below, above = left[1] < right[0], right[1] < left[0]
        match function:
            case "less" if not above and left[0] != right[1]:
                return False
            case "less_equal" if not above:
                return False
            case "greater" if not below and left[1] != right[0]:
                return False
            case "greater_equal" if not below:
                return False
            case "equal" | "member" if not (above or below):
                return False
            case "not_equal":
                return False
    return True


def _ends(argument: Expression) -> tuple[Fraction, Fraction] | None:
    column = argument.cleaned if isinstance(argument, ColumnReference) and not argument.public else None
    kind = argument.type if column is None else column.type
    low, high = kind.interval() if isinstance(kind, Fixed | Real) else (kind.low, kind.high)
    return None if low is None or high is None else (Fraction(low), Fraction(high))


def _names_unlisted(node: Operation) -> bool:
    column, *others = sorted(node.arguments, key=lambda argument: not isinstance(argument, ColumnReference))
    if node.function not in ("equal", "member") or not isinstance(column, ColumnReference) or not column.listed:
        return False
    return any(isinstance(o, Literal) and isinstance(o.value, str) and o.value not in column.listed for o in others)


def unusable(plan: Plan) -> tuple[str, ...]:
    """Return why sums of formulas of columns without bounds, such as the days between two dates, are of no use."""
    if plan.searches:  # which find bounds first
        return ()
    bounded = frozenset(column.name for table in plan.question.tables for column in table.columns if column.bounded)
    notes = []
    for output in plan.outputs:
        for measure in measures_of(output.value):
            if isinstance(measure, Sum) and measure.clamp is None and _is_unbounded(measure.argument, bounded):
                low, high = measure.row_range
                if (high - low) * measure.step >= WIDE:
                    ends = [f"{float(end):,.10g}" for end in _ends_of(measure)]
                    notes.append(
                        f"{output.name} would have noise for values from {' to '.join(ends)}, too noisy to use, "
                        "because the catalog has no bounds for its columns"
                    )
    return tuple(Note(text, TOO_WIDE) for text in dict.fromkeys(notes))


def _on_people(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Speak of numbers that follow from a number of people that is not looked up in the data."""
    known = [(output.name, output.value.people) for output in plan.outputs if isinstance(output.value, KnownMean)]
    means = (
        Note(
            f"{name} is over the {people:,} people that the catalog says there are; if that is wrong, so is the mean",
            MEAN_OF_PUBLIC_PEOPLE,
        )
        for name, people in known
    )
    return (*means, *(_on_public_numbers(plan, priced.vector) if priced.vector is not None else ()))


def _on_public_numbers(plan: Plan, vector: "MeasuredVector") -> tuple[str, ...]:
    if not any(vector.constants):
        return ()
    by_people = {m for m, constant in zip(vector.before.question.measures, vector.constants, strict=True) if constant}
    names = [output.name for output in plan.outputs if by_people.intersection(measures_of(output.value))]
    if not names:
        return ()
    said = f"computed with the {plan.question.table.people:,} people that the catalog says there are"
    return (Note(f"{said}: {', '.join(names)}. If that is wrong, so are these", PUBLIC_NUMBER),)


def _on_noise(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Speak of noise that is more than the rows there may be could ever say."""
    relation, table = plan.question.selection.relation, plan.question.table
    if table.rows_at_most is None or not isinstance(relation, ProtectedRows):
        return ()
    widths = {term.measure: term.half_width(INTERVAL_CONFIDENCE) for term in priced.terms}
    notes = []
    for output in plan.outputs:
        match output.value:
            case MeasureValue(measure=Sum() as measure):
                width, most = widths[measure], table.rows_at_most * max(map(abs, _ends_of(measure)))
                what = f"what all {table.rows_at_most:,} rows that there may be could add up to"
            case MeasureValue(measure=Count() | CountUnits() as measure):
                width, most = widths[measure], Fraction(table.rows_at_most)
                what = f"the {table.rows_at_most:,} rows that there may be"
            case Average(total=measure):
                low, high = (Fraction(end or 0) for end in measure.type.interval())
                width, most = widths[measure] / table.rows_at_most, high - low
                what = f"the bounds {float(low):,.10g} to {float(high):,.10g} are apart, however many rows there are"
            case _:
                continue
        if width >= most:
            notes.append(
                f"too noisy to use: ± of {output.name} is more than {what}. Ask with a larger epsilon, or for fewer "
                f"rows of {units_of(plan.question.lineage)}, as by max_rows_contributed"
            )
    return tuple(Note(text, TOO_NOISY) for text in notes)


def _on_listed_values(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Speak of noise that is more than the number of values that the catalog lists for a column."""
    notes = []
    for output in plan.outputs:
        measure = output.value.measure if isinstance(output.value, MeasureValue) else None
        argument = measure.argument if isinstance(measure, CountDistinct) else None
        listed = argument.listed if isinstance(argument, ColumnReference) else ()
        widths = [term.half_width(INTERVAL_CONFIDENCE) for term in priced.terms if listed and term.measure == measure]
        if argument and listed and max(widths) >= len(listed):
            what = f"the {len(listed):,} values of {_name(argument)} that the catalog lists"
            notes.append(f"too noisy to use: ± of {output.name} is more than {what}. Ask with a larger epsilon")
    return tuple(Note(text, TOO_NOISY) for text in notes)


def _ends_of(measure: Sum) -> tuple[Fraction, Fraction]:
    """Return between what the value of one row is."""
    low, high = ((end + measure.origin) * measure.step for end in measure.row_range)
    return low, high


def _is_unbounded(argument: Expression, bounded: frozenset[str]) -> bool:
    """Tell whether a formula rests on a column without bounds, and does not keep its values within some of its own."""
    chosen = isinstance(argument, Operation) and argument.function in CHOSEN
    return not isinstance(argument, ColumnReference) and not chosen and not columns_of(argument) <= bounded


def _on_rows(plan: Plan) -> tuple[str, ...]:
    """Speak of noise for many rows of one unit, which is as much smaller as the rows are fewer (`stability`)."""
    question = plan.question
    rows = question.selection.rows_per_unit if question.units_of_row == 1 else 0
    if rows < MANY_ROWS or not any(isinstance(m, Count | Sum) and m.clamp is None for m in question.measures):
        return ()
    fewer, noun = rows // 10, noun_of(question.lineage)
    text = (
        f"the noise is for {rows:,} rows of one {noun}, each at its bound. If so many are rare, SELECT WITH "
        f"DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {fewer}) … makes it a tenth and leaves out further "
        f"rows; or say the most that one {noun} adds to a group: SUM(x, contribution_bounds_per_group => (0, 40))"
    )
    return (Note(text, NOISE_FOR_MANY),)


def _on_chosen_rows(plan: Plan) -> tuple[str, ...]:
    """Speak of the winner's curse: among noisy numbers the greatest are rather too great."""
    if plan.limit is None or not any(parts_of(term.value) for term in plan.order):
        return ()
    if not any(parts_of(output.value) for output in plan.outputs):
        return ()
    text = (
        "LIMIT chose the rows by noisy numbers. Numbers that are chosen so tend to be too extreme, and their intervals "
        "hold less often than they say"
    )
    return (Note(text, ROWS_CHOSEN),)


def _on_matches(plan: Plan) -> tuple[str, ...]:
    """Speak of rows that are chosen because some unit is there: noise is as large as what is compared with."""
    match plan.having:
        case FunctionValue(function="<" | ">=", arguments=(MeasureValue(measure=CountUnits()), ConstantValue(value=1))):
            text = (
                "noise decides which rows have a match: of the rows without one, up to half count as matched. GROUP BY "
                "and HAVING COUNT(DISTINCT …) >= 10 leave out more of them"
            )
            return (Note(text, MATCHES_CHOSEN),)
    return ()


def _on_outermost(plan: Plan) -> tuple[str, ...]:
    """Speak of what several noisy numbers together say less of than it seems."""
    windows = [window for output in plan.outputs for window in over_in(output.value)]
    notes = []
    if any(w.function in ("least", "greatest") and w.argument and measures_of(w.argument) for w in windows):
        text = "the greatest of noisy numbers tends to be too great, and the least too small"
        notes.append(Note(text, EXTREMES))
    return (*notes, *notes_on_rows(plan, (plan,)))


def notes_on_rows(plan: Plan, asked: Iterable[Plan]) -> tuple[str, ...]:
    """Say that functions over a result take all its rows, if some may be of keys that nobody has.

    Args:
        asked: The plans that its rows are made of.
    """
    windows = [window for output in plan.outputs for window in over_in(output.value)]
    listed = any(one.question.keys and not one.question.private_keys for one in asked)
    if not listed or not any(window.function in _OF_ALL_ROWS for window in windows):
        return ()
    text = "COUNT, AVG, MIN and quantiles over a result also take in its rows for groups that nobody belongs to"
    return (Note(text, ROWS_OF_RESULT),)


def _on_cells(plan: Plan) -> tuple[str, ...]:
    cells = plan.question.cells
    if cells is None or cells < MANY:
        return ()
    text = (
        f"the result has {cells:,} groups, and each has its own noise. Groups with few people show little but noise: "
        "filter the keys, or group by something coarser"
    )
    return (Note(text, MANY_CELLS),)
