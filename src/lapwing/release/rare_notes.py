"""Notes that few questions need: limits of their own, rows without a match, rows that units share, races, private keys.

Like all notes they are functions of the plan and its price.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Final, cast

from lapwing.answer import Note
from lapwing.answer.notes import (
    CHOSEN_KEYS,
    CHOSEN_WITHOUT_NUMBERS,
    CLAMPED,
    CLOCK,
    LIMITED,
    LONG_TEXTS,
    MOST_SHOWN,
    ONE_WORKLOAD,
    PUBLIC_FLOATS,
    PUBLIC_NUMBER,
    RACE,
    RANK_ERROR,
    REFINED,
    SHARED_ROWS,
    UNLISTED_KEYS,
    UNMATCHED,
    code_of,
)
from lapwing.catalog.model import Column
from lapwing.catalog.protection import bound_of as bound_of
from lapwing.catalog.protection import noun_of, units_of
from lapwing.errors import InvalidParameter
from lapwing.mechanisms.additive import CHOICES, NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise, NoNoise, noises_of
from lapwing.mechanisms.partitions import KeySelection
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.mechanisms.thresholding import CountThresholding
from lapwing.privacy.figures import share
from lapwing.query.derivation.derive import rests_on_ends
from lapwing.query.derivation.derived import KeyValue, measures_of, parts_of
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.expressions.as_read import declared
from lapwing.query.expressions.conversion import nullable
from lapwing.query.expressions.expression import (
    ColumnReference,
    Expression,
    Literal,
    Operation,
    columns_of,
    walk,
    written_in,
)
from lapwing.query.expressions.types import BOOLEAN, Fixed
from lapwing.query.measures.measures import Count, Key, Measure, argument_of
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.traversal import conditions_of, expressions_of
from lapwing.query.pricing.one_noise import with_two_noises
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.query.pricing.selection_mechanisms import KeySelectionQuote
from lapwing.query.relations.domains import listed_by
from lapwing.query.relations.identity import origin
from lapwing.query.relations.node import Relation
from lapwing.query.relations.per_unit import FirstGroups, FirstRows
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import table_of, tables_of
from lapwing.query.relations.shared_join import SharedJoin
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.release.request import Release, Request
from lapwing.release.verdicts import TESTS

_REFINED: Final = Note(
    "an earlier result of this query was less exact. Lapwing made it more exact, and charged only the difference. Both "
    "together can cost a little more than one result, because Lapwing rounds their mean once more",
    REFINED,
)
_TOGETHER: Final = Note(
    "measured as one workload with other queries about the same rows: no number has more error than by itself, and "
    "the numbers share noise. Tables add up to each other where keys have a value for every row",
    ONE_WORKLOAD,
)


def units_needed(selecting: KeySelectionQuote) -> tuple[int, int] | None:
    """Return how many units make a key appear with 95 % probability: with one key each, and with the most.

    None if that is more than 2^31.
    """
    try:
        return selecting.mechanism.units_needed(CONFIDENCE)
    except InvalidParameter:
        return None


def notes_on_clamping(plan: Plan, columns: Sequence[Column]) -> tuple[str, ...]:
    """Say which values count as a bound: dates for all purposes, and numbers where they are summed.

    Conditions, keys and DISTINCT see a number as it was read (`query.expressions.as_read`), so a number that only they
    look at has no note. Where they see it within its bounds, `verdicts` has one.
    """
    summed = _names_summed(plan.question)
    seen = [column for column in columns if not column.numeric or summed is None or column.name in summed]
    return tuple(Note(_clamped(column), CLAMPED) for column in seen)


def _names_summed(question: Question) -> frozenset[str] | None:
    """Return the numbers that measures use within their bounds; None where subqueries and joins may do so, too."""
    summed = (argument_of(measure) for measure in question.measures if not isinstance(measure, Count))
    pending, names = [argument for argument in summed if argument is not None], set[str]()
    if question.selection.relation.sources and (pending or _computes(question.selection.relation)):
        return None
    while pending:
        node = pending.pop()
        names |= {node.name} if isinstance(node, ColumnReference) and node.cleaned is None else set()
        # A comparison is the same of both, where it looks at the bounded column (`as_read.settled`).
        pending += () if isinstance(node, Operation) and node.function in TESTS else node.children
    return frozenset(names)


def _computes(relation: Relation) -> bool:
    """Tell whether subqueries compute values, other than to compare them, or to choose rows."""
    compares = isinstance(relation, PublicJoin | SharedJoin | UnitJoin | FirstRows | FirstGroups)
    return (not compares and any(relation.computed)) or any(_computes(source.relation) for source in relation.sources)


def _clamped(column: Column) -> str:
    lower, upper = ends_of(column)
    if not column.numeric:
        return f"{column.name} before {lower} counts as {lower}, and after {upper} as {upper}"
    step = f", rounded to steps of {float(column.step or 1):g}" if column.type == "decimal" else ""
    return f"in calculations, {column.name} below {lower} counts as {lower}, and above {upper} as {upper}{step}"


def ends_of(column: Column) -> tuple[str, str]:
    """Return the bounds of a column, as people read them."""
    if not column.numeric:
        return str(column.lower).replace("+00:00", ""), str(column.upper).replace("+00:00", "")
    return f"{float(cast(Fraction, column.lower)):.12g}", f"{float(cast(Fraction, column.upper)):.12g}"


def notes_on_long_texts(plan: Plan, texts: Sequence[Column]) -> tuple[str, ...]:
    """Say which texts count as missing for their length, where a long one may matter: it equals no short one."""
    question = plan.question
    conditions = conditions_of(question)
    looked_at = [part for condition in conditions for part in _required(condition) if not _is_equality(part)]
    looked_at += [expression for expression in expressions_of(question) if expression not in conditions]
    names = frozenset[str]().union(*map(columns_of, looked_at))
    long = [f"{column.name} over {column.max_length:,} bytes" for column in texts if column.name in names]
    return (Note(f"texts of {' and of '.join(long)} count as missing", LONG_TEXTS),) if long else ()


def gaps_of(plan: Plan, key: Key, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Say what may be of a key by declaration: that it is missing, or that no group has its value."""
    named = [node for node in walk(key.expression) if isinstance(node, ColumnReference)]
    read = {(node.cleaned or node).name: node.name for node in named}
    made_of = [columns[name] for name in read if name in columns]
    never = frozenset(name for column in made_of if not column.nullable for name in (column.name, read[column.name]))
    if not made_of:
        return ()
    value, where = declared(key.expression), plan.question.where
    lists = key.values is not None and any(column.type == "string" and column.all_texts for column in made_of)
    missing = nullable(value, never) or lists
    if where is not None and is_required(key.expression, where):
        missing = False
    said = ["missing"] if missing else []
    said += ["not listed"] if missing and lists else []
    said += _beyond(key, made_of) if listed_by(plan.question.selection, key.expression) is None else []
    names = {columns[name].name if name in columns else name for name in written_in(key.expression)}
    what = " and ".join(sorted(names)) or key.name
    return (f"{what} {_listed_as_or(said)}",) if said else ()


def _listed_as_or(said: Sequence[str]) -> str:
    """Join what may be of a key: "is missing, below 0 or above 67"."""
    verb = "" if said[0] == _ANOTHER_GROUP else "is "
    return verb + " or ".join(filter(None, (", ".join(said[:-1]), said[-1])))


_ANOTHER_GROUP: Final = "gives a value that no group has"


def _beyond(key: Key, made_of: Sequence[Column]) -> list[str]:
    """Say that values beyond the bounds are in none of the groups that bounds list: keys see them as they are read."""
    if key.values is None or not any(column.numeric and column.bounded for column in made_of):
        return []
    if not any(isinstance(node, ColumnReference) and node.cleaned is not None for node in walk(key.expression)):
        return []
    if not isinstance(declared(key.expression), ColumnReference):
        passes = all(_passes_on(node) for node in walk(key.expression) if isinstance(node, Operation))
        return ["beyond the first or last group"] if passes else [] if _lists_all(key.expression) else [_ANOTHER_GROUP]
    (column,) = made_of
    lower, upper = ends_of(column)
    sides = {f"below {lower}": column.lower in key.values, f"above {upper}": column.upper in key.values}
    within = [side for side, is_listed in sides.items() if is_listed]
    return within or (list(sides) if column.step != 1 else [])  # others a condition rules out


_PASSED_ON: Final = frozenset(
    {"add", "subtract", "multiply", "negate", "exact_steps", "rescale", "to_real", "to_fixed"}
    | {f"{name}_{kind}" for name in ("floor", "round", "truncate") for kind in ("to", "real")}
)


def _lists_all(value: Expression) -> bool:
    """Tell whether all values of an expression stand in the question, whatever is read."""
    if not isinstance(value, Operation):
        return isinstance(value, Literal)
    if value.function in ("case", "coalesce"):
        chosen = value.arguments if value.function == "coalesce" else (*value.arguments[1::2], value.arguments[-1])
        return all(map(_lists_all, chosen))
    return value.type == BOOLEAN or (value.function in ("written", "from_boolean") and _lists_all(value.arguments[0]))


def _passes_on(node: Operation) -> bool:
    """Tell whether values far out have values far out."""
    return node.function in _PASSED_ON or (node.function == "divide" and isinstance(node.arguments[1], Literal))


def is_required(expression: Expression, condition: Expression) -> bool:
    """Tell whether a condition holds only for rows in which an expression is equal to a constant, or not missing."""
    return any(
        declared(expression) in map(declared, part.arguments)
        for part in _required(condition)
        if isinstance(part, Operation) and part.function in _PRESENT
    )


_PRESENT: Final = frozenset({"equal", "member", "less", "less_equal", "greater", "greater_equal"})


def _required(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Operation) and condition.function == "and":
        for part in condition.arguments:
            yield from _required(part)
    else:
        yield condition


def _is_equality(condition: Expression) -> bool:
    """Tell whether a condition compares one column with constants that it shall be equal to."""
    if not isinstance(condition, Operation) or condition.function not in ("equal", "member"):
        return False
    return sum(not isinstance(argument, Literal) for argument in condition.arguments) == 1 and any(
        isinstance(argument, ColumnReference) for argument in condition.arguments
    )


def notes_on_limits(relation: FirstGroups | FirstRows) -> tuple[str, ...]:
    """Say to how many groups and rows of a unit a question limits itself."""
    notes, limited, whose = list[str](), cast(Relation, relation), units_of(tables_of(relation))
    while isinstance(limited, FirstGroups | FirstRows):  # groups of rows, where both are limited
        what = f"{'group' if isinstance(limited, FirstGroups) else 'row'}{'' if limited.most == 1 else 's'}"
        notes.append(Note(f"this query uses at most {limited.most} {what} of {whose}", LIMITED))
        limited = limited.source.relation
    return tuple(notes)


def notes_on_joins(plan: Plan) -> tuple[str, ...]:
    """Say what joins and subqueries leave out, and what of public tables they round."""
    return (*notes_on_keys_handed_on(plan), *notes_on_public_floats(plan))


def notes_on_public_floats(plan: Plan) -> tuple[str, ...]:
    """Say which numbers of public tables are rounded where they are summed or grouped by.

    Conditions and joins see them as they are read, and have the note only where that is not total (`as_read`).
    """
    used = _columns_in_steps(plan.question)
    rounded = dict[str, None]()
    for relation in _within(plan.question.selection.relation):
        if isinstance(relation, PublicJoin):
            named = zip(relation.added, relation.other.columns, strict=False)
            compared = {name for _, right in relation.on for name in _names_of_values(right)}
            seen = {own.name for added, own in named if added.name in used} | compared
            for column in relation.other.columns:
                if column.name in seen and column.read is not None and isinstance(column.type, Fixed):
                    step = f"{float(column.type.step):.2g}"
                    rounded[f"{relation.other.table.name}.{column.name} to steps of {step}"] = None
    if not rounded:
        return ()
    text = f"in calculations and groups, Lapwing rounds {' and '.join(rounded)}, and an infinite value counts as the "
    return (Note(f"{text}largest one. Conditions and joins use the value as it is", PUBLIC_FLOATS),)


def _columns_in_steps(question: Question) -> frozenset[str]:
    """Return the columns that a question uses in steps or within bounds, if it has them as they are read, too.

    What is only counted is a value of any size, so that it is none of these.
    """
    counted = [measure for measure in question.measures if isinstance(measure, Count)]
    values = expressions_of(replace(question, measures=tuple(m for m in question.measures if m not in counted)))
    return frozenset[str]().union(*map(_names_of_values, values))


def _names_of_values(value: Expression) -> frozenset[str]:
    """Return the columns whose value matters, and not just whether there is one."""
    if isinstance(value, ColumnReference):
        return frozenset({value.name})
    if isinstance(value, Operation) and value.function == "inside":
        column = value.arguments[0]
        return frozenset({column.cleaned.name} if isinstance(column, ColumnReference) and column.cleaned else ())
    parts = () if isinstance(value, Operation) and value.function == "is_null" else value.children
    return frozenset[str]().union(*map(_names_of_values, parts))


def notes_on_keys_handed_on(plan: Plan) -> tuple[str, ...]:
    """Say which rows are in no group by keys that joins and subqueries hand on under other names."""
    relation, keys = plan.question.selection.relation, plan.question.keys
    nodes = [node for key in keys for node in walk(key.expression) if isinstance(node, ColumnReference)]
    origins = [(node.name, origin(node, relation)) for node in nodes]
    found = [(name, own.table.column(own.column)) for name, own in origins if own is not None]
    handed_on = {name: column for name, column in found if column is not None and column.name != name}
    said = list[str]()
    for key in [key for key in keys if key.other is None and columns_of(key.expression) & handed_on.keys()]:
        own = handed_on.get(key.expression.name) if isinstance(key.expression, ColumnReference) else None
        if own is None or own.values is None or key.values is None or own.type == "boolean":
            said += [f"rows whose {gap} are in no group" for gap in gaps_of(plan, key, handed_on)]
        elif not (plan.question.where and is_required(key.expression, plan.question.where)):
            shown = [*map(str, key.values[:MOST_SHOWN]), *(["…"] if len(key.values) > MOST_SHOWN else [])]
            said += [
                f"{own.name} has only the groups {', '.join(shown)}: rows with other or missing values are in none"
            ]
    return (*(Note(text, UNLISTED_KEYS) for text in dict.fromkeys(said)), *notes_on_unmatched(plan))


def notes_on_unmatched(plan: Plan) -> tuple[str, ...]:
    """Say which keys rows without a match in a LEFT JOIN lack, so that they are in no cell; elsewhere SQL has one."""
    wanted, notes = columns_of(plan.question.selection.where), list[str]()
    called = {output.value.key: output.name for output in plan.outputs if isinstance(output.value, KeyValue)}
    for relation in _within(plan.question.selection.relation):
        if isinstance(relation, PublicJoin | UnitJoin) and relation.kind == "left":
            added = {column.name for column in relation.added} - wanted
            keys = [key for key in plan.keys if nullable(key.expression) and columns_of(key.expression) & added]
            if lacking := [called.get(key, key.name) for key in keys]:
                named = f"{' and '.join(lacking)}, and are in no group: COALESCE gives them one"
                other = relation.other.table if isinstance(relation, PublicJoin) else table_of(relation.other.relation)
                text = f"rows that no row of {other.name} matches have no {named}"
                notes.append(Note(text, UNMATCHED))
    return tuple(notes)


def _within(relation: Relation) -> Iterator[Relation]:
    yield relation
    for source in relation.sources:
        yield from _within(source.relation)


def notes_on_shared(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Say how rows that several units share are truncated, at which levels, and for what part of the price."""
    people, noun = plan.question.units_of_row, noun_of(plan.question.lineage)
    notes = [
        f"a row of this join can belong to {people} people, each with their own {noun}. Lapwing limits what one {noun} "
        "adds to a group and leaves out the rest. The true number may be far larger, and the ± does not cover that"
    ]
    terms = {term.measure: term for term in priced.terms}
    for output in plan.outputs:
        levels = measures_of(output.value)
        ends = [float(m.clamp[1] * m.step) for m in levels if m.clamp is not None]
        if len(ends) == 1 and not plan.searches:  # a limit that is found has a note of its own
            notes.append(f"{output.name}: one {noun} adds at most {ends[0]:,.10g} to a group; more is left out")
        spent = sum((terms[measure].loss(priced.loss.kind).amount for measure in levels), Fraction(0))
        part = f"{share(spent / priced.loss.amount)} of the cost"
        if len(ends) > 1:
            limits = f"{len(ends)} limits from {min(ends):,.10g} to {max(ends):,.10g}"
            notes.append(f"{output.name} is a race of {limits}, for {part}")
    return tuple(Note(text, SHARED_ROWS) for text in notes)


def notes_on_races(plan: Plan) -> tuple[str, ...]:
    """Say which columns are found by a race to the top, and that they err to one side."""
    raced = [
        output.name for output in plan.outputs if set(measures_of(output.value)) & plan.price_request.weights.keys()
    ]
    noun = noun_of(plan.question.lineage)
    text = f"is at most the true value with 95 % probability: what one {noun} adds beyond a limit is left out"
    return tuple(Note(f"{name} {text}", RACE) for name in raced)


def notes_on_selection(priced: Quote) -> tuple[str, ...]:
    """Say which private keys the answer has."""
    noun, selecting = noun_of(priced.question.lineage), cast(KeySelectionQuote, priced.key_selection)
    different = "rows" if noun == "row" else f"different values of {noun}"
    units = units_needed(selecting)
    if units is None:
        text = f"groups with billions of {different} may still be missing; give a larger epsilon or delta"
        return (Note(text, CHOSEN_KEYS),)
    fewest, most = units
    many = f", or {most:,} if each of them is in {selecting.mechanism.max_keys} groups" if most > fewest else ""
    appear = (
        f"a group appears with 95 % probability if it has at least {fewest:,} {different}{many}. Smaller ones seldom do"
    )
    return (Note(appear, CHOSEN_KEYS), *_note_on_counts(selecting, different))


def as_released(notes: Sequence[str], request: Request, numbers: Release) -> tuple[str, ...]:
    """Return notes of an answer, by what it was released with."""
    plan, priced = request.plan, request.priced
    if not CHOICES & {law.name for law in numbers.mechanisms}:  # it was read off numbers
        notes = [note for note in notes if code_of(note) != CHOSEN_WITHOUT_NUMBERS]
    if not any(isinstance(law, CombinedNoise | NoNoise) for law in numbers.mechanisms):  # bought one by one
        notes = [note for note in notes if code_of(note) != PUBLIC_NUMBER]
    if plan.question.distributions:  # what was bought as trees before has no quantile that was chosen by itself
        laws = dict(zip(plan.question.measures, numbers.mechanisms, strict=True))
        ranks = iter(_on_ranks(plan, laws))
        notes = [next(ranks) if code_of(note) == RANK_ERROR else note for note in notes]
    if numbers.selection is not None:
        return _as_selected(notes, priced, numbers.selection)
    together = any(isinstance(law, ReconstructedGaussian) for law in noises_of(numbers.mechanisms))
    return (*notes, *([_TOGETHER] if together else []), *([_REFINED] if numbers.refined else []))


def _as_selected(notes: Sequence[str], priced: Quote, selection: KeySelection) -> tuple[str, ...]:
    """Return notes of an answer whose keys were selected before, perhaps otherwise than its price would buy now."""
    now, before = priced.key_selection, with_two_noises(priced)
    if now is None or before is None or before.key_selection is None or isinstance(selection, CountThresholding):
        return tuple(notes)
    first = [code_of(note) for note in notes].index(CHOSEN_KEYS)
    others = [note for note in notes if code_of(note) != CHOSEN_KEYS]
    return (*others[:first], *notes_on_selection(before), *others[first:])


def note_on_clock(moment: datetime) -> Note:
    """Say what the looks at the clock stand for."""
    shown = moment.date().isoformat() if not moment.hour else moment.isoformat(sep=" ", timespec="minutes")
    return Note(f"the query looks at the clock, which says {shown} UTC: asking again is free until it changes", CLOCK)


def _note_on_counts(selecting: KeySelectionQuote, different: str) -> tuple[str, ...]:
    """Say what intervals of a count that selects its own keys mean."""
    if selecting.counting is None:
        return ()
    shown = (
        f"the noisy count of {different} decides which groups are shown: those with a count of at least "
        f"{selecting.counting.threshold:,}. Intervals hold for the groups shown. Near the limit they reach far down"
    )
    computed = "intervals of numbers that are computed from that count do not allow for this choice"
    return (Note(shown, CHOSEN_KEYS), Note(computed, CHOSEN_KEYS))


def notes_on_choices(priced: Quote) -> tuple[str, ...]:
    """Say how sure a choice is, where no numbers are released."""
    if all(term.noisy_alternative is None for term in priced.terms):
        return ()
    from lapwing.query.pricing.choices import notes_on_choices  # loaded when it was priced

    return tuple(Note(text, CHOSEN_WITHOUT_NUMBERS) for text in notes_on_choices(priced.terms))


def notes_on_ranks(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Say how far the ranks of order statistics are off."""
    return _on_ranks(plan, {term.measure: term.mechanism for term in priced.terms})


def _on_ranks(plan: Plan, laws: Mapping[Measure, NoiseLaw]) -> tuple[str, ...]:
    found: dict[OrderStatistic, str] = {}
    for output in sorted(plan.outputs, key=lambda output: rests_on_ends(output.value)):  # a name of the number itself
        name = f"the number of which {output.name} is an interval end" if rests_on_ends(output.value) else output.name
        for part in parts_of(output.value):
            if isinstance(part, OrderStatistic):
                found.setdefault(part, name)
    return tuple(Note(f"{name}: {part.note(laws[part.distribution])}", RANK_ERROR) for part, name in found.items())
