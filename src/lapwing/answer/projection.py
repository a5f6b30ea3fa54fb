"""The numbers nearest to released ones that can be true together: weighted least squares under linear conditions.

Theory of operation. What can be true is a closed convex cone, given by the limits of every cell, by sums of parts that
are equal to a whole or at most it, and by parts that are no larger than their whole. Released numbers have independent
noise of a public variance, one for every measure. The nearest point is the one of the least sum of squared distances,
each over its variance. No point of the cone, the true numbers included, is farther from it than from the released ones.

It is found by Dykstra's algorithm (Boyle and Dykstra 1986), which projects on one kind of condition after the other,
and each time gives back what that kind took off in the pass before. For half-spaces this is Hildreth's (1957), and what
is remembered is one multiplier a condition; for the margins of tied sets, a linear space, there is nothing to remember.
Each step works on whole arrays. Everything is deterministic. It stops when a pass moves no number by more than
`TOLERANCE` of its standard deviation, or after `MOST_PASSES`; what little is left to do is done by `rounding`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from lapwing.answer.constraints import Limit, adds_up, is_count, sign
from lapwing.answer.marginals import Floats, MarginTables
from lapwing.query.measures.measures import Measure

TOLERANCE: Final = 1e-3
MOST_PASSES: Final = 200

Tables = dict[Measure, list[Floats]]
"""The numbers of every measure: an array for each set."""
Step = Callable[[Tables], None]


def move_to_nearest(
    tables: Tables, deviations: Mapping[Measure, float], limits: Sequence[Limit], groupings: MarginTables | None
) -> None:
    """Move numbers, in place, to the nearest that can be true together."""
    places = range(len(next(iter(tables.values()))))
    steps: list[Step] = [limited(limit, place, deviations) for limit in limits for place in places]
    if groupings is not None:
        steps = [*_between_sets(tables, groupings), *steps]
    for _ in range(MOST_PASSES):
        before = {measure: [part.copy() for part in parts] for measure, parts in tables.items()}
        for step in steps:
            step(tables)
        if all(
            np.abs(part - old).max(initial=0) <= TOLERANCE * deviations[measure]
            for measure, parts in tables.items()
            for part, old in zip(parts, before[measure], strict=True)
        ):
            break


def _between_sets(tables: Tables, groupings: MarginTables) -> list[Step]:
    adding = [measure for measure in tables if adds_up(measure)]
    others = [measure for measure in tables if is_count(measure) and not adds_up(measure)]
    return [
        *(_margins(measure, groupings) for measure in adding),
        *(_beneath(measure, *pair, groupings) for measure in adding if sign(measure) for pair in groupings.beneath),
        *(_within(measure, *pair, groupings) for measure in others for pair in groupings.within),
    ]


def _margins(measure: Measure, groupings: MarginTables) -> Step:
    return lambda tables: groupings.nearest_margins(tables[measure])


def limited(limit: Limit, place: int, deviations: Mapping[Measure, float]) -> Step:
    """Return the step of one limit in all cells of a set."""
    side, factor = (-1.0, 1.0)[not limit.least], float(limit.factor)
    own = deviations[limit.measure] ** 2
    other = 0.0 if limit.whole is None else deviations[limit.whole] ** 2
    length = own + factor**2 * other
    remembered: list[Floats] = [np.zeros(1)]

    def step(tables: Tables) -> None:
        number = tables[limit.measure][place]
        whole = None if limit.whole is None else tables[limit.whole][place]
        excess = side * (number if whole is None else number - factor * whole)
        multiplier = np.maximum(0, remembered[0] + excess / length)
        moved = side * (multiplier - remembered[0])
        remembered[0] = multiplier
        number -= moved * own
        if whole is not None:
            whole += moved * factor * other

    return step


def _beneath(measure: Measure, part: int, whole: int, groupings: MarginTables) -> Step:
    """Return the step that keeps sums of parts at most what their wholes add up to."""
    common = groupings.sets[part] & groupings.sets[whole]
    axes = [tuple(sorted(groupings.sets[place] - common)) for place in (part, whole)]
    summed = [float(np.prod([groupings.sizes[axis] for axis in found])) for found in axes]
    side, remembered = sign(measure), [np.zeros(1)]

    def step(tables: Tables) -> None:
        parts, wholes = tables[measure][part], tables[measure][whole]
        excess = side * (parts.sum(axis=axes[0], keepdims=True) - wholes.sum(axis=axes[1], keepdims=True))
        multiplier = np.maximum(0, remembered[0] + excess / sum(summed))
        moved = side * (multiplier - remembered[0])
        remembered[0] = multiplier
        parts -= moved
        wholes += moved

    return step


def _within(measure: Measure, part: int, whole: int, groupings: MarginTables) -> Step:
    """Return the step that keeps every part at most its whole.

    The nearest such point has one number where parts exceed their whole, the largest mean of the whole and the largest
    parts, for it and for all parts above it.
    """
    added = groupings.sets[part] - groupings.sets[whole]
    order = sorted(range(len(groupings.sizes)), key=lambda axis: (axis in added, axis))
    given_back: list[Floats] = [np.zeros(1), np.zeros(1)]

    def step(tables: Tables) -> None:
        parts, wholes = tables[measure][part], tables[measure][whole]
        one, other = parts + given_back[0], wholes + given_back[1]
        rows = one.transpose(order).reshape(other.size, -1)
        most = other.reshape(-1).copy()
        above = np.flatnonzero(rows.max(axis=1) > most)
        falling = np.concatenate([most[above, None], -np.sort(-rows[above], axis=1)], axis=1)
        most[above] = (np.cumsum(falling, axis=1) / np.arange(1, falling.shape[1] + 1)).max(axis=1)
        wholes[...] = most.reshape(other.shape)
        parts[...] = np.minimum(one, wholes)
        given_back[:] = [one - parts, other - wholes]

    return step
