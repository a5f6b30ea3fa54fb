"""Public keys of which not every combination of values can have rows, and the cells that are left."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from math import prod
from typing import Self

from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.measures import Key

Row = tuple[Constant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedKeys:
    """Keys, and the combinations of their values that can have rows, in the order of the keys' domains.

    Args:
        place: Of the grouping set for which that holds.
        digest: Of the combinations, which it stands for where two are compared.
    """

    keys: tuple[Key, ...]
    rows: tuple[Row, ...] = field(compare=False, repr=False)
    digest: str
    place: int = 0

    @classmethod
    def of(cls, keys: tuple[Key, ...], rows: Sequence[Row], place: int) -> Self:
        """Return combinations in order."""
        ranks = [{value: place for place, value in enumerate(key.domain)} for key in keys]
        ordered = sorted(rows, key=lambda row: [rank[value] for rank, value in zip(ranks, row, strict=True)])
        written = json.dumps([[str(key) for key in keys], *([str(value) for value in row] for row in ordered)])
        return cls(keys=keys, rows=tuple(ordered), digest=sha256(written.encode()).hexdigest(), place=place)


def number_of_cells(sets: Sequence[Sequence[Key]], combined: Sequence[CombinedKeys]) -> int:
    """Return how many cells the public keys of grouping sets have; private ones count as one."""
    spans = (_dimensions(keys, combined, place) for place, keys in enumerate(sets))
    return sum(prod(len(rows) for _, rows in span) for span in spans)


def most_cells_alike(named: Collection[Key], sets: Sequence[Sequence[Key]], combined: Sequence[CombinedKeys]) -> int:
    """Return how many cells of grouping sets have the same values of some keys, at most; private ones count as one."""
    return sum(
        prod(_most_alike(keys, rows, named) for keys, rows in _dimensions(shown, combined, place))
        for place, shown in enumerate(sets)
    )


def _most_alike(keys: Sequence[Key], rows: Sequence[Row], named: Collection[Key]) -> int:
    places = [place for place, key in enumerate(keys) if key in named]
    if not places or len(places) == len(keys):
        return 1 if places else len(rows)
    return max(Counter(tuple(row[place] for place in places) for row in rows).values(), default=0)


def cells_over(keys: Sequence[Key], sets: Sequence[Sequence[Key]], combined: Sequence[CombinedKeys]) -> Iterator[Row]:
    """Yield the cells of the public keys of each set, as values of all `keys`: NULL of those that it does not have."""
    for place, shown in enumerate(sets):
        yield from _cells(keys, _dimensions(shown, combined, place))


def _cells(keys: Sequence[Key], dimensions: Sequence[tuple[tuple[Key, ...], tuple[Row, ...]]]) -> Iterator[Row]:
    places = {key: place for place, key in enumerate(key for named, _ in dimensions for key in named)}
    taken = [places.get(key) for key in keys]
    for parts in product(*(rows for _, rows in dimensions)):
        flat = [value for part in parts for value in part]
        yield tuple(None if place is None else flat[place] for place in taken)


def _dimensions(
    keys: Sequence[Key], combined: Sequence[CombinedKeys], place: int
) -> list[tuple[tuple[Key, ...], tuple[Row, ...]]]:
    """Return the keys of a set that go together, with what they can be together, and every other key by itself."""
    together = [(each.keys, each.rows) for each in combined if each.place == place]
    taken = {key for named, _ in together for key in named}
    alone = [key for key in keys if not key.private and key not in taken]
    return [*together, *(((key,), tuple((value,) for value in key.domain)) for key in alone)]
