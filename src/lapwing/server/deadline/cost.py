"""What a question may cost, from plan and catalog alone, and the time after which its answer leaves."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Final, final

from lapwing.catalog.model import Catalog, Table
from lapwing.engines import open_engine
from lapwing.errors import CatalogError, QueryRefused, RefusalCause
from lapwing.query.expressions.expression import walk
from lapwing.query.plan.composition import MOST_ROWS, plans_asked
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.traversal import expressions_of
from lapwing.query.plan.work import work
from lapwing.server.deadline.plain import steps

LEAST: Final = 0.25
"""Seconds of the shortest deadline; each further class has twice as many."""
ROOM: Final = 4
"""A deadline has at least so many times the seconds that its question may take."""
LONGEST: Final = 3_600.0
STEPS: Final = 4
"""Published figures are powers of the root of two of this degree."""
A_RELATION: Final = 20
A_MEASURE: Final = 25
"""So many parts of an expression take as long to bind, print and plan as a relation, or a window; and as a measure."""
USUAL_ROWS: Final = 1_000_000
"""Rows that a table has at most whose catalog does not say it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What a processor takes, measured on made-up rows (`deadline.speed`), in seconds.

    Args:
        question: Whatever each question takes, with all that belongs to it, for which no figure follows.
        nanosecond: A nominal one of `query.work`.
        row: To read and bound a row of a file that has no index.
        number: Each number of an answer, from noise to document.
        part: Each part of a plan (`parts`), to bind, print and plan it.
        plan: To plan a question without any of these parts, where its plan is not handed over.
        compared: Each step of a plain question over a row (`deadline.plain`); 0 if that is not known, and the model's.
        known: See `compared`.
        null: See `compared`.
        branched: See `compared`.
        summed: See `compared`.
        count_filtered: See `compared`.
        sum_filtered: See `compared`.
    """

    question: float
    nanosecond: float
    row: float
    number: float
    part: float = 0.0
    plan: float = 0.0
    compared: float = 0.0
    known: float = 0.0
    null: float = 0.0
    branched: float = 0.0
    summed: float = 0.0
    count_filtered: float = 0.0
    sum_filtered: float = 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a question may take at most, by public facts.

    Args:
        seconds: Of a processor.
        steps: How many releases follow each other, two if bounds are to be found first.
        doublings: How often all of it is doubled, as answers were late (`admission.doublings`).
    """

    seconds: float
    steps: int
    doublings: int = 0

    @property
    def deadline(self) -> float:
        """Seconds from the admission until the answer leaves: a quarter of a second, or doubled as often as it takes.

        >>> [Cost(seconds=seconds, steps=1).deadline for seconds in (0.001, 0.0625, 0.07, 1)]
        [0.25, 0.25, 0.5, 4.0]
        """
        return LEAST * 2.0 ** (self.doublings + ceil(log2(max(self.steps, self.seconds * ROOM / LEAST))))

    @property
    def reserved(self) -> float:
        """Seconds for which the engine is reserved: between two steps nobody else has it."""
        return self.seconds * 2**self.doublings if self.steps == 1 else self.deadline * 3 / 4


def on_grid(figure: float) -> float:
    """Return the least power of 2^(1/4) that is not below a figure: what is measured is published so.

    >>> on_grid(0.9), on_grid(0.0)
    (1.0, 0.0)
    """
    return 2.0 ** (ceil(STEPS * log2(figure)) / STEPS) if figure else 0.0


def cost_of(
    plans: Sequence[Plan], speed: Speed, *, indexed: bool, share: int = 1, rehearsed: float = 0.0, handed: bool = False
) -> Cost:
    """Return what questions at one price may take, whatever the data are.

    Each unit can take what `query.work` says of one that has all the rows it may have. What a unit takes grows faster
    than its rows, so that as many rows of smaller units take less.

    Args:
        indexed: Whether the tables have indexes.
        share: How many question processes share a processor.
        rehearsed: Seconds that the engine takes by a rehearsal (`deadline.rehearsal`), which raises what the model
            says.
        handed: Whether plans are handed over to where questions are asked (`deadline.handed_plan`).

    Raises:
        QueryRefused: If the deadline would be later than `LONGEST`.
    """
    leaves = [leaf for plan in plans for leaf in plans_asked(plan)]
    questions = [
        question for plan in leaves for question in (*(search.question for search in plan.searches), plan.question)
    ]
    seconds = (
        (speed.question + (0.0 if handed else speed.plan)) * len(questions)
        + speed.part * sum(map(parts, questions))
        + max(sum(over_rows(question, speed, indexed=indexed) for question in questions), on_grid(rehearsed))
        + (0.0 if indexed else speed.row * sum(map(rows, questions)))
        + speed.number * (sum(map(numbers, questions)) + sum(map(composed_numbers, plans)))
    )
    cost = Cost(seconds=seconds * share, steps=2 if any(plan.searches or plan.constants for plan in leaves) else 1)
    if cost.deadline > LONGEST:
        raise QueryRefused(
            f"This may take {seconds:,.0f} seconds, if the tables have rows_at_most rows. "
            f"Lapwing would send its result after {cost.deadline:,.0f} seconds, and the limit is {LONGEST:,.0f} for "
            f"people whom the curator does not trust with time",
            cause=RefusalCause.TAKES_TOO_LONG,
            remedy="Request less at a time.",
            curator_remedy="give you a grant that trusts you with time",
        )
    return cost


def rows(question: Question) -> int:
    """Return how many rows the tables of a question have at most."""
    return sum(map(most_rows, question.tables))


def most_rows(table: Table) -> int:
    """Return how many rows a table has at most: what the catalog says, or the usual."""
    return USUAL_ROWS if table.rows_at_most is None else table.rows_at_most


def require_counted(catalog: Catalog) -> None:
    """Refuse data of which no deadline is known, as the catalog does not say that there may be so many rows.

    Raises:
        CatalogError: If the catalog says what cannot be meant. it tells about the data, and is for the operator and the
            curator.
    """
    unsaid = [table for table in catalog.tables if table.rows_at_most is None]
    if not unsaid:
        return
    engine, public = open_engine(catalog)
    try:
        large = [table for table in unsaid if engine.rows(table) > USUAL_ROWS]
    finally:
        engine.close()
        public.close()
    for table in large:
        raise CatalogError(
            f"{catalog.name}: tables.{table.name}.rows_at_most: missing, and the data have more than {USUAL_ROWS:,} "
            "rows, the limit without it. The service sets the times of results by this number: write a public figure "
            "with room to grow"
        )


def over_rows(question: Question, speed: Speed, *, indexed: bool) -> float:
    """Return the seconds of a question over as many rows as there may be: by the steps of a plain one, or the model."""
    taken = steps(question) if indexed and speed.compared else None
    if taken is None:
        return speed.nanosecond * nanoseconds(question)
    return rows(question) * sum(times * float(getattr(speed, name)) for name, times in taken.items())


def nanoseconds(question: Question) -> float:
    """Return the nominal nanoseconds of a question over as many rows as there may be, once they are read."""
    each = sum(table.max_rows_per_unit for table in question.tables)
    return rows(question) * work(question).most / each


def parts(question: Question) -> int:
    """Return how many parts a question has beyond a count of a table's rows: its expressions, relations and measures.

    Each grouping set, each distribution and the holders of private keys are asked for with all of them.
    """
    own = A_MEASURE * len(question.measures) + sum(1 for one in expressions_of(question) for _ in walk(one))
    relations, pending = 0, [question.selection.relation]
    while pending:
        relation = pending.pop()
        pending += (source.relation for source in relation.sources)
        relations += 1 + len(getattr(relation, "windows", ()))
    times = len(question.parts) * (bool(question.numbers) + len(question.distributions)) + bool(question.private_keys)
    return max(0, times * (own + A_RELATION * relations) - A_MEASURE - A_RELATION)


def numbers(question: Question) -> int:
    """Return how many numbers get noise: of private keys, as many cells as there may be rows."""
    cells = rows(question) if question.cells is None else question.cells
    return cells * (len(question.numbers) + sum(sum(measure.sizes) for measure in question.distributions))


def composed_numbers(plan: Plan) -> int:
    """Return how many numbers are in the rows of an answer that is made of others, and of those."""
    if plan.composition is None:
        return 0
    most = plan.composition.most_rows
    columns = len(plan.outputs) + sum(len(source.outputs) for source in plan.composition.sources)
    return (MOST_ROWS if most is None else most) * columns + sum(map(composed_numbers, plan.composition.sources))
