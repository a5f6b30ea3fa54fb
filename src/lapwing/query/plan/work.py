"""How much one unit can make an engine do: a cost model, from a plan and the catalog alone.

Whoever waits for an answer learns how long it took. If one unit could multiply that time, its presence could be read
off the clock, at no price. So for people whose clock is not trusted the work that a unit can cause is bounded: it is at
most `MULTIPLE` times that of reading the rows which the unit has in the tables of the question.

The work is a number of nominal nanoseconds, from public facts: the rows that a unit can have in every node of the plan
(`rows_per_unit`), the lengths of texts (`max_length`), what each function, join, sort and window costs (measured by
`benchmarks/work.py`, which also tries to beat the model), and how often the engine runs it all. It is a model and no
proof: engines reorder and cache, machines differ. What stands behind it is a deadline, not this number.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, log2, prod
from typing import Final, cast

from lapwing.catalog.table import Column
from lapwing.query.expressions.automata import Use, automaton_of
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation, columns_of, walk
from lapwing.query.expressions.strings import length_of
from lapwing.query.expressions.types import TEXT
from lapwing.query.expressions.weight import COPIES
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.distinct_sums import SumDistinct
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Key, Measure, Sum, argument_of
from lapwing.query.measures.set_counts import CountOfSets
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.traversal import expressions_of
from lapwing.query.relations.node import Relation
from lapwing.query.relations.per_unit import FirstGroups, FirstRows, PerUnit, UnitAggregate
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from lapwing.query.relations.set_operations import DistinctRows, Union
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.query.relations.windowed import Window, Windowed

MULTIPLE: Final = 256
"""A unit may cost so many times what reading its own rows costs, for people whose clock is not trusted."""
ALWAYS: Final = 1e6
"""Or a millisecond, where that is more: what a unit with one row costs is lost in what any question costs."""
READING: Final = 400
"""Nominal nanoseconds that it takes to read, clean and bound a row."""


MOST_STEPS_IN_ALL: Final = 600_000
"""Of building the automata of all patterns of a question: some tenths of a second."""
DEAREST: Final = 1e15
"""What a question costs whose patterns take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Nominal nanoseconds: the most that one unit can cost, and what reading its own rows costs."""

    most: float
    reading: float

    @property
    def ratio(self) -> float:
        """How many times as much as reading its rows a unit can cost."""
        return self.most / self.reading

    @property
    def excessive(self) -> bool:
        """Whether that is more than people may ask for whose clock is not trusted."""
        return self.most > max(ALWAYS, MULTIPLE * self.reading)


def work_of(plan: Plan) -> Work:
    """Return the work of a plan: of its question, and of those that are asked before it."""
    before = (*(search.question for search in plan.searches), *(constant.question for constant in plan.constants))
    parts = [work(question) for question in (plan.question, *before)]
    return Work(most=sum(part.most for part in parts), reading=parts[0].reading)


def work(question: Question) -> Work:
    """Return how much one unit can make an engine do for a question whose rows belong to one unit each."""
    reading = READING * sum(table.max_rows_per_unit for table in question.tables)
    return Work(most=_Estimate(question).total(), reading=reading)


# ---- functions over one row ------------------------------------------------------------------------------------------
# Nanoseconds of a call, given the bytes of each of its arguments and of its value.

Bytes = list[float]
Cost = Callable[[Operation, Bytes], float]


def _flat(nanoseconds: float, a_byte: float = 0.0) -> Cost:
    """Return a cost for every call, and one for every byte of its texts."""
    return lambda _node, sizes: nanoseconds + a_byte * sum(sizes[:-1])


def _written(nanoseconds: float, a_byte: float) -> Cost:
    """Return a cost for every call, and one for every byte of texts that it reads or writes."""
    return lambda _node, sizes: nanoseconds + a_byte * sum(sizes)


def _sought(_node: Operation, sizes: Bytes) -> float:
    text, part = sizes[0], sizes[1]
    return 40 + text * (20 + part / 8)


def _like(node: Operation, sizes: Bytes) -> float:
    """Where a part between two % has _, it is compared at every place of the text."""
    parts = str(cast(Literal, node.arguments[1]).value).split("%")
    longest = max((len(part) for part in parts if "_" in part), default=0)
    folded = 16 if node.function == "like_any_case" else 0
    return 40 + sizes[0] * (8 + folded + 2 * longest)


BRANCHED: Final = 30
"""An OR, or the NOT of several, where half of the rows meet a condition at random: a processor guesses half wrongly."""
KNOWN_STATE: Final = 12
BUILT_PLACE: Final = 60
BY_PLACE: Final = 125
CAPTURED: Final = 60
A_MATCH: Final = 400


def _searched(node: Operation, sizes: Bytes) -> float:
    """Count what a regular expression costs at every byte of a text."""
    flags, use = _pattern_of(node)
    found = automaton_of(str(cast(Literal, node.arguments[1]).value), flags, use)
    text = sizes[0] + 1
    if found.states is None:
        return text * (BY_PLACE * (found.size + 1)) * (text if use == "all" else 2 if use == "first" else 1)
    passes = 1 if use in ("occurs", "fully") else 2
    total = 200 + text * KNOWN_STATE * passes
    if use == "all":
        beyond = text if found.overrun is None else min(text, found.overrun)
        total += text * (A_MATCH + KNOWN_STATE * beyond)
    if node.function == "extracted" and cast(Literal, node.arguments[2]).value:
        match = text if found.longest is None else min(text, 4 * found.longest)
        total += match * CAPTURED * (found.size + 1)
    return total


def _pattern_of(node: Operation) -> tuple[str, Use]:
    flags = str(cast(Literal, node.arguments[-1]).value)
    match node.function:
        case "matches":
            return flags, "occurs"
        case "fully_matches":
            return flags, "fully"
        case "substituted" if "g" in flags:
            return flags, "all"
    return flags, "first"


def _compared(_node: Operation, sizes: Bytes) -> float:
    """Count little for numbers, dates and truths, which are compared a vector at a time, and every byte of texts."""
    texts = sum(sizes[:-1])
    return 25 + 0.5 * texts if texts else 1.0 + 0.5 * len(sizes)


def _matched(_node: Operation, sizes: Bytes) -> float:
    """Count the bytes of the shorter of two texts: no comparison reads on where that one has ended."""
    shorter = min(sizes[0], sizes[1])
    return 25 + shorter if shorter else _compared(_node, sizes)


def _branched(node: Operation, _sizes: Bytes) -> float:
    """Count what it takes to send rows one way or the other; NOT of a single condition is that condition turned."""
    inner = node.arguments[0]
    turned = node.function == "not" and not (isinstance(inner, Operation) and inner.function in ("and", "or", "not"))
    return 1 if turned else BRANCHED * max(1, len(node.arguments) - 1)


def _member(_node: Operation, sizes: Bytes) -> float:
    """Count a hash of the value, which is looked up among the constants of a longer list, and the bytes compared."""
    return 60 + sizes[0] + 0.5 * max(sizes[1:-1])


SPLIT: Final = 4
"""DuckDB turns IN into comparisons joined by OR up to this number of constants."""


def _evaluations(node: Operation) -> tuple[int, ...]:
    """Return how often each argument is computed for a row, at most; a planner's copies (`COPIES`) can be more.

    Measured in DuckDB with REVERSE of long texts, in WHERE, OR, CASE, FILTER and keys: IN with up to four constants
    computes its first argument once for each where it stands below an OR, and a longer list once. BETWEEN computes it
    once for each bound.
    """
    if node.function == "member":
        constants = len(node.arguments) - 1
        return (constants if constants <= SPLIT else 1,)
    return (2,) if node.function == "between" else COPIES.get(node.function, ())


_CONDITIONS = ("and", "is_null")
_CHEAP = (
    "rescale", "to_real", "to_fixed", "add", "subtract", "multiply", "divide", "negate", "absolute", "round_to",
    "floor_to", "from_boolean", "not_negative", "above_zero", "not_zero", "steps_of",
    "sign", "day_number", "microsecond_number", "to_date", "to_timestamp", "shift_days", "add_days",
    "add_microseconds", "square_root", "inside", "exact_steps", "floor_real", "round_real", "truncate_real",
)  # fmt: skip
_MATCHING = (
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "distinct", "starts_with", "ends_with",
)  # fmt: skip
_COMPARING = ("least", "greatest", "between", "coalesce", "case", "null_if")
_CALENDAR = (
    "part", "truncate", "bucket", "last_day", "difference", "add_months", "month_name", "day_name", "in_calendar",
)  # fmt: skip
_ELEMENTARY = (
    "logarithm", "logarithm_2", "logarithm_10", "exponential", "power", "sine", "cosine", "arc_tangent", "magnitude",
    "remainder", "quotient", "truncate_to",
)  # fmt: skip

COSTS: Final[Mapping[str, Cost]] = {
    **dict.fromkeys(_CHEAP, _flat(25)),
    **dict.fromkeys(_CONDITIONS, _flat(1)),
    **dict.fromkeys(("or", "not"), _branched),
    **dict.fromkeys(_MATCHING, _matched),
    **dict.fromkeys(_COMPARING, _compared),
    "member": _member,
    **dict.fromkeys(_CALENDAR, _flat(80)),
    **dict.fromkeys(_ELEMENTARY, _flat(100)),
    "make_date": _flat(500),
    "formatted": _flat(200, 20),
    "written": _flat(200),
    "try_number": _flat(120, 4),
    "try_integer": _flat(120, 4),
    "try_date": _flat(300, 4),
    "try_timestamp": _flat(500, 4),
    "upper": _flat(50, 16),
    "lower": _flat(50, 16),
    "reverse": _flat(50, 28),
    "trim": _flat(50, 16),
    "substring": _flat(50, 2),
    "left": _flat(50, 2),
    "right": _flat(50, 4),
    "pad_left": _written(50, 16),
    "pad_right": _written(50, 16),
    "replace": _written(50, 25),
    "split_part": _written(50, 25),
    "concat": _written(50, 1),
    "concat_strict": _written(50, 1),
    "concat_ws": _written(50, 1),
    "length": _flat(25, 1),
    "contains": _sought,
    "position": _sought,
    "like": _like,
    "like_any_case": _like,
    "matches": _searched,
    "fully_matches": _searched,
    "extracted": _searched,
    "json_field": _flat(600, 30),
    "json_value": _flat(1200, 60),
    "substituted": _searched,
}
"""What every function of `library` costs, by the name that plans give it."""

COLUMN: Final = 3
"""What becomes a column is printed so often, as it is kept inside its bounds, and a CASE shares nothing."""
PRINTED: Final = 2
"""A key, or what is measured, is printed so often: in a condition, and where it is used."""

# ---- nodes -----------------------------------------------------------------------------------------------------------

SCANNED: Final = 4
HASHED: Final = 200
SORTED: Final = 60
SORTED_TEXT: Final = 1.6
"""So many times what hashing a text costs, it costs to sort by it."""
PAIRED: Final = 80
COMPARED: Final = 4
"""A row with a public one, where no equality finds these."""
WINDOWED: Final = 2000
CARRIED: Final = 12
CARRIED_NUMBER: Final = 1
WITH_NULLS: Final = 12
"""A column that may have NULLs takes more to be read, most where half of the values are NULL at random."""
HELD_BYTE: Final = 2.0
"""What each byte of a text takes that goes with a row through a join, which may hold it, or write it out."""
READ_TEXT: Final = 26
READ_BYTE: Final = 0.4
"""What a text takes to be read that is like no other, and each byte that it may have."""
GROUPED: Final = 60
FEW_GROUPS: Final = 4096
"""So many groups at most stay in the caches of a processor: a row finds its own for `GROUPED` and not for `HASHED`."""
LOOKED_THROUGH: Final = 256
"""Up to so many values of a key are looked through one by one; more are hashed once."""
INLINE: Final = 12
"""Texts of so many bytes at most are compared at once."""
A_TEXT_BYTE: Final = 1.0
HELD: Final = 1200

AGGREGATES: Final[Mapping[str, float]] = {
    "count": 20, "count_distinct": 800, "sum": 40, "average": 80, "least": 40, "greatest": 40, "all": 20, "any": 20,
}  # fmt: skip
"""What an aggregate over the rows of a unit costs a row."""
WINDOWS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"), 60),
    **dict.fromkeys(("lag", "lead", "first_value", "last_value", "nth_value"), 150),
    "count": 150, "count_distinct": 1500, "sum": 200, "average": 400, "least": 200, "greatest": 200, "all": 200,
    "any": 200,
}  # fmt: skip
"""What a window function costs a row, beside the sort; with a frame of its own, times the logarithm of its rows."""
MEASURES: Final[Mapping[type[Measure], float]] = {
    Count: 2, CountUnits: 400, CountDistinct: 500, CountOfSets: 7500, Sum: 15, SumDistinct: 500,
    Distribution: 300,
}  # fmt: skip
"""What a measure costs a row, beside its argument; of sets, with the most terms."""


def _lengths(question: Question) -> Iterator[int]:
    """Yield the most bytes of the texts in columns that a question reads, or may read of public tables.

    Where ties are broken by whole rows, all columns are read.
    """
    pending, columns, whole = [question.selection], list[Column](), False
    while pending:
        relation = pending.pop().relation
        pending += relation.sources
        whole |= relation.reads_whole_rows
        columns += () if relation.public is None else relation.public.table.columns
    read = question.columns
    columns += (c for table in question.tables for c in table.columns if whole or (table.name, c.name) in read)
    yield from (column.max_length for column in columns if column.max_length is not None)


def _patterns(expressions: Iterable[Expression]) -> Iterator[tuple[str, str, Use]]:
    """Yield the regular expressions in expressions, with their flags and what is asked of them."""
    for node in (node for expression in expressions for node in walk(expression)):
        if isinstance(node, Operation) and COSTS[node.function] is _searched:
            yield (str(cast(Literal, node.arguments[1]).value), *_pattern_of(node))


class _Estimate:
    """The work of one question; what several relations share is counted where it is computed."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.longest = float(max(_lengths(question), default=1))
        self.expressions = expressions_of(question)
        self._read = frozenset[str]().union(*map(columns_of, self.expressions))
        self._sizes: dict[int, float] = {}

    def total(self) -> float:
        question = self.question
        if self._too_many_patterns():
            return DEAREST
        numbers, total = question.numbers, 0.0
        if numbers:
            total += sum(self._asked(part, numbers) for part in question.parts)
        for distribution in question.distributions:
            total += sum(self._asked(part, (distribution,)) for part in question.parts)
        if question.private_keys:
            rows = question.selection.rows_per_unit
            total += self._selected(question.selection) + self._keys(question.keys, rows)
            total += rows * (HELD + self._texts(key.expression for key in question.private_keys))
        return total

    def _too_many_patterns(self) -> bool:
        """Tell whether the automata of all patterns take too long to build; none is built after that is known."""
        steps = 0
        for pattern in dict.fromkeys(_patterns(self.expressions)):
            steps += automaton_of(*pattern).steps
            if steps > MOST_STEPS_IN_ALL:
                return True
        return False

    def _asked(self, question: Question, measures: Iterable[Measure]) -> float:
        """Return the work of one query: rows, keys and measures."""
        rows = question.selection.rows_per_unit
        total = self._selected(question.selection) + self._keys(question.keys, rows)
        for measure in measures:
            argument = argument_of(measure)
            cost = MEASURES[type(measure)]
            if argument is not None:
                total += PRINTED * self._computed(argument, rows)
                cost += self._texts([argument]) if isinstance(measure, CountDistinct) else 0
                cost += self._texts(x for _, x in measure.terms) if isinstance(measure, CountOfSets) else 0
            if measure.clamp is not None:
                cost += HASHED
            total += rows * cost
        return total

    def _keys(self, keys: Iterable[Key], rows: int) -> float:
        """Return the work of finding a row's group.

        Rows that have none of a key's public values are left out before, so that there are as many groups at most as
        the values make, and no text that is hashed is longer than the longest of them.
        """
        keys, total = list(keys), 0.0
        few = prod(len(key.values) + 1 if key.values else inf for key in keys) <= FEW_GROUPS
        for key in keys:
            total += PRINTED * self._computed(key.expression, rows)
            total += rows * ((GROUPED if few else HASHED) + self._listed(key))
        return total

    def _listed(self, key: Key) -> float:
        """Return the work of looking for a value among those of a key, and of hashing its text."""
        if not key.values:
            return self._texts([key.expression])
        longest = max(len(str(value).encode()) for value in key.values) if key.expression.type == TEXT else 0
        each = 1.5 if longest <= INLINE else 3 + longest / 25
        return max(longest, len((key.other or "").encode())) * A_TEXT_BYTE + each * min(LOOKED_THROUGH, len(key.values))

    def _selected(self, selection: FilteredRows) -> float:
        """Return the work of the rows of a selection: the condition is asked of all rows of the relation."""
        relation = selection.relation
        total = sum(map(self._selected, relation.sources)) + self._made(relation)
        if selection.where is not None:
            total += self._computed(selection.where, relation.rows_per_unit)
        return total

    def _made(self, relation: Relation) -> float:
        """Return the work of a node itself."""
        rows = [source.rows_per_unit for source in relation.sources]
        if isinstance(relation, UnitJoin):
            return self._joined(relation)
        computed = zip(relation.computed, rows, strict=True)
        total = COLUMN * sum(self._computed(value, count) for values, count in computed for value in values)
        match relation:
            case ProtectedRows():
                return relation.rows_per_unit * (SCANNED + self._read_of(relation))
            case PublicJoin():
                pairs = relation.rows_per_unit
                keys = self._texts(left for left, _ in relation.on)
                total += rows[0] * (2 * HASHED + 2 * keys + COMPARED * relation.compared)
                # Sides of comparisons are computed once a row; any other condition is asked of all public rows.
                asked = max(pairs, rows[0] * relation.compared) if relation.kind == "left" else pairs
                total += 0.0 if relation.condition is None else self._computed(relation.condition, asked)
                return total + pairs * (PAIRED + keys + CARRIED * self._width(relation))
            case Union():
                return total + sum(rows) * CARRIED * self._width(relation)
            case DistinctRows():
                return total + rows[0] * (2 * HASHED + 2 * self._texts(relation.expressions))
            case PerUnit():
                aggregates = sum(map(self._aggregate, relation.aggregates))
                return total + rows[0] * (2 * HASHED + 2 * self._texts(relation.groups) + aggregates)
            case FirstRows():
                return total + self._sorted(rows[0], relation.columns)
            case FirstGroups():
                return total + self._sorted(rows[0], [key.expression for key in relation.keys])
            case Windowed():
                positions = sum(window.positional for window in relation.windows) > 1
                total += self._sorted(rows[0], relation.source.relation.columns) if positions else 0
                return total + sum(self._window(window, relation, rows[0]) for window in relation.windows)
        raise TypeError(f"no work is known of {type(relation).__name__}")

    def _joined(self, join: UnitJoin) -> float:
        """Return the work of a join: both sides, and the pairs that its equalities make, before its condition."""
        own, other = join.source.rows_per_unit, join.other.rows_per_unit
        total = COLUMN * sum(self._computed(left, own) + self._computed(right, other) for left, right in join.on)
        total += COLUMN * sum(self._computed(value, other) for value in join.shown)
        keys = self._texts(side for pair in join.on for side in pair)
        pairs = min(own * max(1, join.matches), other * max(1, join.matched))
        total += own * self._held(join.source.relation) + other * self._held(join.other.relation)
        total += (own + other) * (3 * HASHED + 2 * keys) + pairs * (PAIRED + keys + CARRIED * self._width(join))
        return total + (0.0 if join.condition is None else self._computed(join.condition, pairs))

    def _width(self, relation: Relation) -> int:
        """Return how many columns of a relation anything reads: engines carry no others."""
        return sum(column.name in self._read for column in relation.columns)

    def _held(self, relation: Relation) -> float:
        """Return what the texts of a row cost that a join holds until the other side is there."""
        texts = sum(column.type == TEXT and column.name in self._read for column in relation.columns)
        return HELD_BYTE * self.longest * texts

    def _read_of(self, rows: ProtectedRows) -> float:
        """Return what reading the columns of a row costs that anything asks for."""
        read = [column for column in rows.columns if column.name in self._read]
        a_text = READ_TEXT + READ_BYTE * self.longest
        sure = {column.name for column in rows.table.columns if not column.nullable}
        numbers = (
            CARRIED_NUMBER + (0 if column.name in sure else WITH_NULLS) for column in read if column.type != TEXT
        )
        return sum(numbers) + a_text * sum(column.type == TEXT for column in read)

    def _aggregate(self, aggregate: UnitAggregate) -> float:
        text = [] if aggregate.argument is None else [aggregate.argument]
        times = 3 if aggregate.function == "count_distinct" else 1  # those of each group are held apart
        return AGGREGATES[aggregate.function] + times * self._texts(text)

    def _window(self, window: Window, relation: Windowed, rows: int) -> float:
        """Return the work of a window: a sort, and its function over the rows of a frame."""
        ordered: list[Expression] = [*window.partition, *(term.value for term in window.order)]
        if window.positional:
            ordered += relation.source.relation.columns
        cost = WINDOWS[window.function] + self._texts(window.arguments)
        if window.frame is not None or window.order:
            cost *= 1 + log2(max(1, rows))
        return self._sorted(rows, ordered) + rows * (WINDOWED + cost)

    def _sorted(self, rows: int, by: Iterable[Expression]) -> float:
        ordered = list(by)
        texts = SORTED_TEXT * self._texts(ordered)
        return rows * (HASHED + (SORTED + texts) * log2(rows + 1) + CARRIED * len(ordered))

    # ---- expressions -------------------------------------------------------------------------------------------------

    def _texts(self, expressions: Iterable[Expression]) -> float:
        """Return what hashing or comparing the texts among expressions costs a row."""
        return A_TEXT_BYTE * sum(self._bytes(value) for value in expressions if value.type == TEXT)

    def _computed(self, expression: Expression, rows: int) -> float:
        """Return the work of an expression over so many rows, and of what the engine builds for it once."""
        return rows * self._cost(expression, {}) + self._built(expression, rows)

    def _cost(self, node: Expression, known: dict[int, float]) -> float:
        """Return the cost of an expression for one row, with what is computed several times counted as often."""
        if not isinstance(node, Operation):
            return 0.25
        if id(node) not in known:
            copies = _evaluations(node)
            sizes = [self._bytes(argument) for argument in node.arguments]
            own = COSTS[node.function](node, [*sizes, self._bytes(node)])
            known[id(node)] = own + sum(
                (copies[i] if i < len(copies) else 1) * self._cost(argument, known)
                for i, argument in enumerate(node.arguments)
            )
        return known[id(node)]

    def _built(self, expression: Expression, rows: int) -> float:
        """Return what building automata costs: each state once, when a text first leads to it."""
        total = 0.0
        for node in walk(expression):
            if isinstance(node, Operation) and COSTS[node.function] is _searched:
                found = automaton_of(str(cast(Literal, node.arguments[1]).value), *_pattern_of(node))
                if found.states:
                    reached = min(1.0, rows * self._bytes(node.arguments[0]) / found.states)
                    total += BUILT_PLACE * found.places * reached
        return total

    def _bytes(self, node: Expression) -> float:
        """Return the most bytes of a text; 0 of anything else."""
        if node.type != TEXT:
            return 0.0
        if isinstance(node, Literal):
            return float(len(str(node.value).encode()))
        if isinstance(node, ColumnReference):
            return self.longest
        if id(node) not in self._sizes:  # the question holds the node, so that no other takes its place
            self._sizes[id(node)] = self._bytes_of(node)
        return self._sizes[id(node)]

    def _bytes_of(self, node: Operation) -> float:
        length = length_of(node)
        plain = all(str(part.value).isascii() for part in walk(node) if isinstance(part, Literal))
        columns = any(isinstance(part, ColumnReference) and part.type == TEXT for part in walk(node))
        return length.constant * (1 if plain else 4) + max(length.factor, int(columns)) * self.longest
