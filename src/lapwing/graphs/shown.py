"""From released numbers to rows with intervals: one number, or two and their quotient."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from lapwing.answer.notes import GRAPH_LIMITED, GRAPH_PROMISE
from lapwing.answer.python_values import Cell, Note
from lapwing.catalog.graph import Graph
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.graphs.recipe import LOWER_BOUND, Ends, ReleasedNumber, Show, Shown


def about(value: float, h: float, low: float = -np.inf, high: float = np.inf) -> Ends:
    """Return the ends of an interval around a value, inside what is possible."""
    return max(value - h, low), min(value + h, high)


def one_number(name: str) -> Show:
    """Show one number as it was released."""

    def show(released: Sequence[ReleasedNumber], level: int | None, confidence: Fraction) -> Shown:
        value = int(released[0].values[0])
        h = released[0].half_width(confidence)
        return Shown(
            columns=(name,),
            rows=({name: value},),
            ends={name: (about(value, h),)},
            notes=cut_note(level, name),
            one_sided=below(level, name),
        )

    return show


def cut_note(level: int | None, what: str) -> tuple[str, ...]:
    """Say that what each node adds is limited, if it is."""
    if level is None:
        return ()
    text = (
        f"{LOWER_BOUND}: Lapwing limits what each node adds to {level:,}. The ± is around {what} with "
        "this limit, and covers nothing that the limit leaves out"
    )
    return (Note(text, GRAPH_LIMITED),)


def promise_notes(graph: Graph) -> tuple[str, ...]:
    """Say what the promise of a graph does not cover."""
    return tuple(Note(text, GRAPH_PROMISE) for text in graph.notes)


def below(level: int | None, *columns: str) -> dict[str, str]:
    """Mark columns of what is limited at a level as lower bounds."""
    return {} if level is None else dict.fromkeys(columns, LOWER_BOUND)


def ratio(
    name: str, top: Callable[[Ends, Ends], Ends], value: Callable[[float, float], float | None], *parts: str
) -> Show:
    """Show two numbers and a quotient of them, whose interval holds if both of theirs do."""

    def show(released: Sequence[ReleasedNumber], level: int | None, confidence: Fraction) -> Shown:
        apart = 1 - (1 - confidence) / 2
        numbers = [int(part.values[i]) for part in released for i in range(len(part.values))]
        laws = [part for part in released for _ in part.values]
        one, other = (about(n, law.half_width(apart)) for n, law in zip(numbers, laws, strict=True))
        ends = {
            part: (about(n, law.half_width(confidence)),) for part, n, law in zip(parts, numbers, laws, strict=True)
        }
        row: dict[str, Cell] = {name: value(*numbers), **dict(zip(parts, numbers, strict=True))}
        return Shown(
            columns=(name, *parts),
            rows=(row,),
            ends={name: (top(one, other),), **ends},
            notes=cut_note(level, "counts"),
            one_sided=below(level, *(part for part in parts if part != "nodes")),
        )

    return show


def quotient(one: Ends, other: Ends, factor: float) -> Ends:
    """Return the ends of factor·x/y inside [0, 1], for x and y inside their ends, both ≥ 0."""
    low = factor * max(one[0], 0) / other[1] if other[1] > 0 else 0.0
    high = factor * max(one[1], 0) / other[0] if other[0] > 0 else 1.0
    return min(low, 1.0), min(high, 1.0)


def share_of(factor: float) -> Callable[[float, float], float | None]:
    """Return the function that makes a share of two noisy numbers."""
    return lambda one, other: None if other < 1 else min(max(factor * one / other, 0.0), 1.0)


def multiplied(show: Show, times: Fraction, name: str | None, notes: tuple[str, ...]) -> Show:
    """Show the first noisy column multiplied, under another name; an exact multiple of integers is one."""

    def value(number: Cell) -> Cell:
        if not isinstance(number, int | float):
            return number
        exact = Fraction(number) * times
        return int(exact) if isinstance(number, int) and times.denominator == 1 else float(exact)

    def shown(released: Sequence[ReleasedNumber], level: int | None, confidence: Fraction) -> Shown:
        found = show(released, level, confidence)
        old = next(iter(found.ends), found.columns[-1])  # of a choice, what is chosen
        new = name or old
        if new in set(found.columns) - {old}:
            raise QueryRefused(
                f"Two columns are called {new:.60}", cause=RefusalCause.DUPLICATE_NAME, remedy="Choose another name."
            )
        factor, renamed = float(times), {old: new}
        return Shown(
            columns=tuple(renamed.get(column, column) for column in found.columns),
            rows=tuple(
                {renamed.get(column, column): value(cell) if column == old else cell for column, cell in row.items()}
                for row in found.rows
            ),
            ends={
                renamed.get(column, column): tuple((low * factor, high * factor) for low, high in ends)
                if column == old
                else ends
                for column, ends in found.ends.items()
            },
            notes=(*found.notes, *notes),
            one_sided={renamed.get(column, column): bound for column, bound in found.one_sided.items()},
        )

    return shown
