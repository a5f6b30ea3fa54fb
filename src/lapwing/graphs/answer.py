"""What a question about a graph is answered with, and what it would be: values for people and programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

import numpy as np

from lapwing.answer.column_facts import ColumnFacts, MeasureFacts
from lapwing.answer.frames import pandas_frame, polars_frame
from lapwing.answer.notes import GRAPH_BOUND_BOUGHT, ONE_SIDED
from lapwing.answer.presentation import EndArray, caption, html_table
from lapwing.answer.python_values import Cell, Note
from lapwing.answer.text_table import text_table
from lapwing.errors import InvalidParameter
from lapwing.graphs.asking import GraphOutcome
from lapwing.graphs.recipe import Shown
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.approximate import ApproximateLoss, approximate
from lapwing.privacy.figures import delta
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.plots import Plot

USUAL_CONFIDENCE: Final = Fraction(95, 100)
_WITH_DELTA: Final = {"pure": "approx", "gdp": "approx_gdp"}


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GraphAnswer:
    """A noisy statistic of a graph. It reads as an `Answer` does.

    Args:
        question: As the history has it.
        protects: The privacy unit that is hidden, in words.
        outcome: The released numbers.
    """

    question: str
    protects: str
    outcome: GraphOutcome

    @property
    def cost(self) -> Loss:
        """The charge for it this time: nothing if it was bought before."""
        return self.outcome.cost

    @property
    def stored(self) -> bool:
        """Whether it was bought before."""
        return self.outcome.stored

    @property
    def level(self) -> int | None:
        """The level at which what each node adds was limited; None where nothing was."""
        return self.outcome.level

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._shown(USUAL_CONFIDENCE).columns

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to read next to the numbers."""
        return self._shown(USUAL_CONFIDENCE).notes + self._bought()

    def _bought(self) -> tuple[str, ...]:
        """Say which bounds were bought, and with which delta."""
        priced = self.outcome.priced
        pairs = zip(priced.numbers(self.level), self.outcome.released, strict=True) if priced.delta else ()
        return tuple(
            Note(
                f"{one.number.name}: one edge moves them by at most {found.base:,}, a bound that was paid for with "
                f"δ = {delta(one.delta)}",
                GRAPH_BOUND_BOUGHT,
            )
            for one, found in pairs
            if one.delta
        )

    @property
    def one_sided(self) -> Mapping[str, str]:
        """The columns that are a "lower bound" or an "upper bound", but for the noise: no interval covers what was cut.

        With a node hidden what each node adds is limited at `level`, and how much that leaves out is as private as the
        graph.
        """
        return self._shown(USUAL_CONFIDENCE).one_sided

    def rows(self) -> list[dict[str, Cell]]:
        """Return the rows as dicts."""
        return [dict(row) for row in self._shown(USUAL_CONFIDENCE).rows]

    def __len__(self) -> int:
        return len(self.rows())

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter(self.rows())

    def __getitem__(self, place: int) -> dict[str, Cell]:
        return self.rows()[place]

    def interval(
        self, confidence: Number = USUAL_CONFIDENCE, *, of: str = "data"
    ) -> dict[str, tuple[EndArray, EndArray]]:
        """Return for each noisy column the lower and the upper ends of its intervals, each at this confidence.

        An interval is around the statistic as it was released: of a graph cut at `level`, if there is one.
        """
        if of != "data":
            raise InvalidParameter("A graph is not a sample of people, so there are intervals only for the data.")
        return ends_of(self._shown(probability(confidence, "confidence")))

    def to_arrow(self, confidence: Number | None = None) -> "pa.Table":
        """Return an Arrow table; with a confidence, also `<column>_low` and `<column>_high`."""
        import pyarrow as pa

        ends, rows = {} if confidence is None else self.interval(confidence), self.rows()
        columns: dict[str, object] = {}
        for name in self.columns:
            columns[name] = [row[name] for row in rows]
            if name in ends:
                columns |= {f"{name}_low": ends[name][0], f"{name}_high": ends[name][1]}
        return pa.table(columns)

    def to_pandas(self, confidence: Number | None = None) -> Any:
        """Return a pandas DataFrame of `to_arrow`, if pandas is installed."""
        return pandas_frame(self.to_arrow(confidence))

    def to_polars(self, confidence: Number | None = None) -> Any:
        """Return a polars DataFrame of `to_arrow`, if polars is installed."""
        return polars_frame(self.to_arrow(confidence))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the answer to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def entries(self) -> tuple[int, ...]:
        """The entries of the ledger that paid for it, where these are known: they are not."""
        return ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns without noise."""
        shown = self._shown(USUAL_CONFIDENCE)
        return tuple(name for name in shown.columns if name not in shown.ends)

    @property
    def types(self) -> dict[str, str]:
        """The type of each column: integer, real or text."""
        rows = self.rows()
        return {name: _type_of([row[name] for row in rows]) for name in self.columns}

    def consistent(self) -> NoReturn:
        """Refuse: answers about graphs are already consistent where they can be, for example histograms.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        raise InvalidParameter("The numbers of a graph are already as consistent as they can be.")

    def describe(self) -> tuple[ColumnFacts, ...]:
        """Return what is public about each column: its noise, and the half-width of its 95 % interval."""
        numbers = [number for number in self.outcome.priced.numbers(self.level) if number.mechanism is not None]
        measures = tuple(
            MeasureFacts(
                measure=number.number.name,
                mechanism=number.mechanism.name,
                scale=float(number.mechanism.scale),
                half_width=float(released.half_width(USUAL_CONFIDENCE)),
                price_share=None,
            )
            for number, released in zip(numbers, self.outcome.released, strict=False)
            if number.mechanism is not None
        )
        keys, one_sided = self.keys, self.one_sided
        return tuple(
            ColumnFacts(
                name=name,
                measures=() if name in keys else measures,
                half_width=measures[0].half_width if name not in keys and len(measures) == 1 else None,
                price_share=None,
                notes=(Note(one_sided[name], ONE_SIDED),) if name in one_sided else (),
            )
            for name in self.columns
        )

    def plot(self, column: str | None = None, *, confidence: Number = USUAL_CONFIDENCE) -> "Plot":
        """Return a bar chart with intervals of one noisy column: the first, unless named.

        Raises:
            InvalidParameter: If there is no such noisy column.
        """
        from lapwing.answer.chart import bars  # here: few answers are drawn

        heads, ends = self._heads(), self.interval(confidence)
        return bars(
            [{heads.get(name, name): value for name, value in row.items()} for row in self.rows()],
            {heads[name]: value for name, value in ends.items()},
            keys=self.keys,
            column=None if column is None else heads.get(column, column),
            confidence=confidence,
            facts=[replace(fact, name=heads.get(fact.name, fact.name)) for fact in self.describe()],
        )

    def _repr_html_(self) -> str:
        heads, ends = self._heads(), self.interval()
        return html_table(
            tuple(heads.values()),
            [{heads.get(name, name): value for name, value in row.items()} for row in self.rows()],
            {heads[name]: value for name, value in ends.items()},
            caption=caption(self),
        )

    def _heads(self) -> dict[str, str]:
        """Return what stands over each column: its name, and whether it is a bound."""
        one_sided = self.one_sided
        return {name: f"{name} ({one_sided[name]})" if name in one_sided else name for name in self.columns}

    def _shown(self, confidence: Fraction) -> Shown:
        outcome = self.outcome
        return outcome.priced.recipe.show(outcome.released, outcome.level, confidence)

    def __str__(self) -> str:
        heads = self._heads()
        rows = [{heads.get(name, name): value for name, value in row.items()} for row in self.rows()]
        ends = {heads[name]: value for name, value in self.interval().items()}
        caption = f"{self.question}; protects {self.protects}"
        return text_table(tuple(heads.values()), rows, ends, caption=caption)

    def __repr__(self) -> str:
        return str(self)


def _type_of(values: Sequence[Cell]) -> str:
    if all(isinstance(value, str) for value in values):
        return "text"
    return "integer" if all(isinstance(value, int) for value in values) else "real"


def ends_of(shown: Shown) -> dict[str, tuple[EndArray, EndArray]]:
    """Return the ends of the intervals of each noisy column, as arrays."""
    return {
        name: (np.array([low for low, _ in ends]), np.array([high for _, high in ends]))
        for name, ends in shown.ends.items()
    }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPreview:
    """The promise of one number of a statistic at a level: mechanism, sensitivity, scale, and half-width at 95 %.

    `half_width` is None of a ladder, and of a bound that is bought: their noise follows the graph.
    """

    name: str
    mechanism: str
    sensitivity: int
    scale: float
    half_width: int | None
    because: str
    level: int | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPreview:
    """The cost and the promise of a statistic; Lapwing read no row for it.

    Args:
        loss: The price in the ledger's measure.
        beside: The charge to another budget, by its name.
        fits: How many such questions the budget still holds.
        numbers: The released numbers, at the lowest and the highest level.
        delta: The part of the budget's `delta_keys` that it uses.
    """

    question: str
    protects: str
    loss: Loss
    beside: Mapping[str, Loss]
    fits: int
    numbers: tuple[NumberPreview, ...]
    notes: tuple[str, ...]
    delta: Fraction = Fraction(0)

    def for_group(self, size: int) -> Loss | ApproximateLoss:
        """Return the loss of the question for this many edges, or nodes, together; with its δ, if it takes one."""
        if not self.delta:
            return self.loss.for_group(size)
        return approximate(self.loss, self.delta, _WITH_DELTA[self.loss.kind]).for_group(size)

    @property
    def _price(self) -> str:
        return f"{self.loss}, delta {delta(self.delta)}" if self.delta else str(self.loss)

    def __str__(self) -> str:
        lines = [
            self.question,
            f"protects  {self.protects}",
            f"cost      {self._price}; the budget pays for {self.fits:,} like it",
        ]
        lines += [f"beside    {loss} of {name}" for name, loss in self.beside.items()]
        for number in self.numbers:
            at = "" if number.level is None else f" at level {number.level:,}"
            half = "as wide as the graph needs" if number.half_width is None else f"±{number.half_width:,} at 95 %"
            lines.append(
                f"number    {number.name}{at}: {number.mechanism}, scale {number.scale:,.4g}, {half} ({number.because})"
            )
        return "\n".join([*lines, *(f"note      {note}." for note in self.notes)])
