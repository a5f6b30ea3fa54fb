"""A noisy table, with everything that follows from it for free.

An answer is post-processing of released integers: reading it in any way costs nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from lapwing.answer.column_facts import ColumnFacts, facts
from lapwing.answer.frames import pandas_frame, polars_frame
from lapwing.answer.interval_ends import intervals_of, margins_of
from lapwing.answer.presentation import EndArray, caption, cost_in_words, html_table
from lapwing.answer.python_values import Cell, cells
from lapwing.answer.truncated_times import rows_to_read
from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray, integer_array
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.columns import Column, IndexArray, Labels, Truths, Value, mask_of, of_labels
from lapwing.query.derivation.comparing import sortable
from lapwing.query.derivation.derived import NoisyCells, values_in
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE
from lapwing.query.derivation.node import Derived, OutputOrder
from lapwing.query.derivation.noisy_trees import ranks_of
from lapwing.query.derivation.window_values import WindowValue, with_over
from lapwing.query.measures.measures import Key, Measure
from lapwing.query.plan.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answer.consistent import ConsistentAnswer
    from lapwing.answer.key_texts import KeyDictionary
    from lapwing.plots.specifications import Plot

CONFIDENCE: Final = 0.95


@final
class Answer:
    """A noisy table.

    Args:
        plan: what was asked.
        mechanisms: of each measure of the plan's question, in order.
        values: the released integers, one array or sequence a measure, one entry (of a vector: one row) a cell.
        keys: one sequence for each key of the plan's question, one entry a cell (`release.cells`).
        cost: what this asking was charged; zero if the answer was bought before.
        notes: public facts that a reader should know (clamping, bounds on rows).
        shares: the part of the price that each measure took, in order; None where that is not known.
        entries: of the ledger that paid for it, by number, those that found its bounds after its own.
        sources: the answers that it is made of, if its plan is a composition.
        delta: of the budget, at which its cost is read as an epsilon; None to show the cost as the ledger has it.
        dictionary: texts of the catalog for charts, if it has any.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        mechanisms: Sequence[NoiseLaw],
        values: Sequence[Sequence[int] | IntArray],
        keys: Sequence[Sequence[Value]],
        cost: Loss,
        stored: bool = False,
        notes: Sequence[str] = (),
        shares: Sequence[Fraction] | None = None,
        entries: Sequence[int] = (),
        sources: "Sequence[Answer]" = (),
        delta: Fraction | None = None,
        dictionary: "KeyDictionary | None" = None,
    ) -> None:
        question = plan.question
        self.plan = plan
        self.entries = tuple(entries)
        self.mechanisms: Mapping[Measure, NoiseLaw] = dict(zip(question.measures, mechanisms, strict=True))
        self.cost, self.stored, self.delta, self.dictionary = cost, stored, delta, dictionary
        self.notes = tuple(notes)
        self.sources = tuple(sources)
        self._shares = None if shares is None else dict(zip(question.measures, shares, strict=True))
        self._numbers = {m: integer_array(v) for m, v in zip(question.measures, values, strict=True)}
        self._keys = keys
        size = len(keys[0]) if keys else 1
        if any(len(numbers) != size for numbers in self._numbers.values()):
            raise InvalidParameter(f"An answer of {size} cells needs as many released numbers of each measure.")
        self._last_intervals: tuple[Fraction, dict[str, tuple[EndArray, EndArray]]] | None = None

    # Everything below follows from the released integers alone, and is computed when it is first read.

    @cached_property
    def _released(self) -> NoisyCells:
        """Every cell."""
        if self.plan.composition is not None:
            from lapwing.answer.composing import composed_rows  # here: few answers are made of others

            return composed_rows(self.plan.composition, self.sources)
        question = self.plan.question
        columns = tuple(map(of_labels, self._keys))
        return NoisyCells(
            size=columns[0].size if columns else 1,
            measures={measure: self._numbers[measure] for measure in question.numbers},
            ranks={m: ranks_of(m, self.mechanisms[m], self._numbers[m]) for m in question.distributions},
            keys={str(key): labels for key, labels in zip(question.keys, columns, strict=True)},
            margins=lambda value: margins_of(value, self.mechanisms, INTERVAL_CONFIDENCE),
        )

    @cached_property
    def _places_kept(self) -> IndexArray:
        """The cells that HAVING keeps, in the order of the keys."""
        return _where(self.plan.having, _in_order_of_keys(self.plan, self._released), self._released)

    @cached_property
    def _kept(self) -> NoisyCells:
        """These cells, with the window functions over them."""
        return self._with_windows(self._released.taken(self._places_kept))

    def _with_windows(self, cells: NoisyCells) -> NoisyCells:
        """Return cells with the window functions over them, if there are any."""
        inside = (inner for value in self._values for inner in values_in(value))
        windows = dict.fromkeys(inner for inner in inside if isinstance(inner, WindowValue))
        return with_over(cells, windows) if windows else cells

    @cached_property
    def _places_shown(self) -> IndexArray:
        """Which of these cells are shown, in order."""
        return _as_shown(self.plan, self._kept)

    @cached_property
    def _rows(self) -> NoisyCells:
        """The cells that are shown."""
        return self._kept.taken(self._places_shown)

    @property
    def _values(self) -> list[Derived]:
        """What is computed of each cell: the columns, and what QUALIFY and ORDER BY look at."""
        plan = self.plan
        conditions = [] if plan.qualify is None else [plan.qualify]
        return [*(output.value for output in plan.outputs), *conditions, *(term.value for term in plan.order)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(output.name for output in self.plan.outputs)

    @property
    def types(self) -> dict[str, str]:
        """The type of each column: integer, decimal, real, text, boolean, date, timestamp or null."""
        return {output.name: output.value.shape for output in self.plan.outputs}

    def __len__(self) -> int:
        return self._rows.size

    def __repr__(self) -> str:
        return f"<Answer: {len(self)} rows of {', '.join(self.columns)}; {cost_in_words(self, self.delta)}>"

    def __str__(self) -> str:
        from lapwing.answer.text_table import text_table

        return text_table(self.columns, rows_to_read(self), self.interval(), caption=caption(self, delta=self.delta))

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter(self.rows())

    def __getitem__(self, place: int) -> dict[str, Cell]:
        return self.rows()[place]

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts: COUNT as int, SUM as int or Decimal, AVG and quotients as float, NULL as None.

        Dates and timestamps are `datetime` objects. A number beyond 10^308 is a float, infinite beyond all floats.
        """
        names = self.columns
        values = [cells(self._columns[output.name], output.value.shape) for output in self.plan.outputs]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    @cached_property
    def _columns(self) -> Mapping[str, Column]:
        return {output.name: self._rows.column(output.value) for output in self.plan.outputs}

    def interval(
        self, confidence: Number = CONFIDENCE, *, of: str = "data", sampling: int | str | None = None
    ) -> dict[str, tuple[EndArray, EndArray]]:
        """Return, for each noisy column of numbers, dates or timestamps, the ends in every row; NaN where none follows.

        For a COUNT or SUM, the interval covers the bounded query's true value with at least this probability. The
        probability is over the noise, by the exact distribution of the noise. Means, shares and weighted sums take the
        errors of their numbers together. In other arithmetic each takes an equal part of the error probability, and
        intervals are wider than they need be. The interval does not cover what bounding removed. Ends are doubles, of
        whole numbers int64; of dates datetime64 in days, of timestamps in microseconds (or NaT). Columns of ends have
        none.

        Args:
            confidence: Between 0 and 1, of each cell by itself, before HAVING and LIMIT chose cells.
            of: Data, or population, to cover the draw of the people too (`answer.population`).
            sampling: How many, or "poisson".
        """
        level = probability(confidence, "confidence")
        if of != "data" or sampling is not None:
            from lapwing.answer.population import population_intervals  # here: few answers are read so

            return population_intervals(self.plan, self._rows, self.mechanisms, level, of, sampling)
        if self._last_intervals is None or self._last_intervals[0] != level:
            self._last_intervals = level, intervals_of(self.plan.outputs, self._rows, self.mechanisms, level)
        return {name: (low.copy(), high.copy()) for name, (low, high) in self._last_intervals[1].items()}

    def to_arrow(self, confidence: Number | None = None) -> "pa.Table":
        """Return a PyArrow table; with a confidence, also `<column>_low` and `<column>_high`."""
        from lapwing.answer.arrow import arrow_table  # here: Arrow takes longer to load than most questions to answer

        intervals = self.interval(confidence) if confidence is not None else {}
        return arrow_table(self.plan.outputs, self._columns, intervals)

    def to_pandas(self, confidence: Number | None = None) -> Any:
        """Return a pandas DataFrame of `to_arrow`, if pandas is installed; with a confidence, like 0.95, the ± too."""
        return pandas_frame(self.to_arrow(confidence))

    def to_polars(self, confidence: Number | None = None) -> Any:
        """Return a polars DataFrame of `to_arrow`, if polars is installed; with a confidence, like 0.95, the ± too."""
        return polars_frame(self.to_arrow(confidence))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the answer to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def consistent(self) -> "ConsistentAnswer":
        """Return the same rows with numbers that can be true together, beside this answer, which stays as it is.

        Counts are not negative, parts are not larger than their whole, sums are inside count times bounds, and totals
        agree with their parts. Means and all other columns are computed anew. Adjusted numbers are biased: add up raw
        ones. The intervals are still the intervals of the raw answer. HAVING and LIMIT chose the rows and their order
        by the raw numbers, and this does not change.
        """
        from lapwing.answer.consistent import ConsistentAnswer, adjusted_numbers  # here: few answers are made so

        numbers = adjusted_numbers(self.plan.question, self._released.measures, self.mechanisms)
        return ConsistentAnswer.of(self, *numbers)

    def describe(self) -> tuple[ColumnFacts, ...]:
        """Return what is public about each column: its noise, the half-width of its 95 % interval, its price."""
        return facts(self.plan, self.mechanisms, self._shares, self.sources)

    def plot(self, column: str | None = None, *, confidence: Number = CONFIDENCE) -> "Plot":
        """Return a bar chart with intervals of one noisy column of numbers: the first, unless named.

        Raises:
            InvalidParameter: If there is no such noisy column.
        """
        from lapwing.answer.chart import bars_of  # here: few answers are drawn

        return bars_of(self, column, confidence)

    def _repr_html_(self) -> str:
        return html_table(self.columns, rows_to_read(self), self.interval(), caption=caption(self, delta=self.delta))


# ---- the cells, and which of them are shown in what order ------------------------------------------------------------


def _where(condition: Derived | None, places: IndexArray, cells: NoisyCells) -> IndexArray:
    """Return those of some cells in which a condition holds; all of them without one."""
    truths = None if condition is None else cells.column(condition)
    return places[truths.holds[places]] if isinstance(truths, Truths) else places


def _as_shown(plan: Plan, cells: NoisyCells) -> IndexArray:
    """Return which of the cells that HAVING keeps are shown, in order: after QUALIFY, sorted, from OFFSET to LIMIT."""
    places = _where(plan.qualify, np.arange(cells.size), cells)
    for term in reversed(plan.order):
        places = _sorted(places, term, cells)
    end = None if plan.limit is None else plan.offset + plan.limit
    return places[plan.offset : end]


def _in_order_of_keys(plan: Plan, cells: NoisyCells) -> IndexArray:
    """Return all cells, the first key of GROUP BY turning slowest: each key's values in the order of its domain."""
    ranks = [_ranks(key, cells.keys[str(key)]) for key in plan.keys]
    if not ranks:
        return np.arange(cells.size)
    return np.lexsort(ranks[::-1])  # stable; the last key given is the first to sort by


def _ranks(key: Key, labels: Labels) -> IndexArray:
    """Rank labels by the key's domain, and those outside it (of released keys) after them, by value; NULL is last."""
    if tuple(labels.labels) == key.domain and not (labels.places < 0).any():
        return labels.places
    rank = {label: i for i, label in enumerate(key.domain)}
    new: set[Any] = {label for label in labels.labels if label is not None and label not in rank}
    others = sorted(new)  # all of one type
    rank |= {label: len(rank) + i for i, label in enumerate(others)}
    ranks = [len(rank) if label is None else rank[label] for label in labels.labels]
    null = rank.get(None, len(rank))
    return np.array([*ranks, null], dtype=np.int64)[labels.places]


def _sorted(places: IndexArray, term: OutputOrder, cells: NoisyCells) -> IndexArray:
    """Sort cells by one term, keeping the order of ties, NULLs to one end."""
    values = cells.column(term.value)
    null = np.broadcast_to(mask_of(values.null), cells.size)[places]
    nulls, others = places[null], places[~null]
    keys = sortable(values)[others]
    others = others[np.argsort(-keys if term.descending else keys, kind="stable")]
    return np.concatenate([nulls, others] if term.nulls_first else [others, nulls])
