"""Keys of which each is finer than the one before: region, district, municipality; or year, month, day.

A row that has a value of a finer key has the one value of each coarser key that contains it. So a table by a coarser
key is a margin of the table by a finer one. `NestedAttribute` writes such keys as digits. The first digit is the value
of the coarsest key. The next digit is the place of the finer value among those inside it, and so on. A table by a key
is then a table by the first digits, and `residual_marginals` measures it as any other margin. A value that contains
fewer others than its neighbours leaves cells without rows, which cost only time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Self, final

from lapwing.query.expressions.expression import Constant, Expression
from lapwing.query.measures.measures import Key

Digits = tuple[tuple[int, ...], ...]
"""The digits of the values of a key: one sequence for each digit, with the digit of each value."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NestedKeys:
    """Expressions over a row from the coarsest to the finest.

    The maker proves two facts. A row with a value of one expression has a value of each other one. The finer value
    determines the coarser one by `parents`.

    Args:
        levels: The expressions.
        parents: For each level but the first: the value of the level before, by the value.
    """

    levels: tuple[Expression, ...]
    parents: tuple[Mapping[Constant, Constant], ...]

    def has(self, key: Key) -> bool:
        """Tell whether a key is one of these, with public values."""
        return key.expression in self.levels and key.values is not None and key.other is None

    def above(self, coarser: Key, finer: Key) -> tuple[int, ...] | None:
        """Return where among the values of a coarser key each value of a finer one lies; None if one lies nowhere."""
        first, last = self.levels.index(coarser.expression), self.levels.index(finer.expression)
        places = {value: place for place, value in enumerate(coarser.domain)}
        found = []
        for value in finer.domain:
            for level in range(last, first, -1):
                value = self.parents[level - 1].get(value)
            if value not in places:
                return None
            found.append(places[value])
        return tuple(found)

    def is_above(self, coarser: Key, finer: Key) -> bool:
        """Tell whether one of these keys is a higher level than another one."""
        return self.levels.index(coarser.expression) < self.levels.index(finer.expression)

    def in_order(self, keys: Iterable[Key]) -> list[Key]:
        """Return the nested ones among some keys, from the coarsest to the finest."""
        mine = sorted((key for key in keys if self.has(key)), key=lambda key: self.levels.index(key.expression))
        pairs = pairwise(mine)
        each_once = len({key.expression for key in mine}) == len(mine)
        return mine if each_once and all(self.above(*pair) is not None for pair in pairs) else []


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NestedAttribute:
    """A fact about rows, of which tables have one key each, or none.

    Args:
        levels: The keys, from the coarsest to the finest.
        digits: Of the values of each key.
        sizes: How many values each digit has.
        parents: For each key but the first: the place of the value of the key before, by the place of the value.
        is_open: Whether rows may lack a value: then the last value of the first digit is for them.
    """

    levels: tuple[Key, ...]
    digits: tuple[Digits, ...]
    sizes: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    is_open: bool

    @classmethod
    def of(cls, levels: Sequence[Key], nested: NestedKeys | None, is_open: bool) -> Self:
        """Return the attribute of one key, or of several that are nested."""
        finer, coarsest = levels[1:], len(levels[0].domain)
        digits: list[Digits] = [(tuple(range(coarsest)),)]
        parents = []
        sizes = [coarsest + is_open]
        for before, key in zip(levels, finer, strict=False):
            above = (nested.above(before, key) if nested is not None else None) or ()
            ranks, seen = [], [0] * len(before.domain)
            for parent in above:
                ranks.append(seen[parent])
                seen[parent] += 1
            digits.append((*(tuple(digit[parent] for parent in above) for digit in digits[-1]), tuple(ranks)))
            sizes.append(max(seen))
            parents.append(above)
        return cls(
            levels=tuple(levels), digits=tuple(digits), sizes=tuple(sizes), parents=tuple(parents), is_open=is_open
        )

    def above(self, key: Key) -> tuple[int, ...]:
        """Return the place of the value of a key in which each value of the finest key lies."""
        places = tuple(range(len(self.levels[-1].domain)))
        for level in range(len(self.levels) - 1, self.levels.index(key), -1):
            places = tuple(self.parents[level - 1][place] for place in places)
        return places

    @property
    def is_even(self) -> bool:
        """Whether each value has as many finer ones as its neighbours, without the place for rows that have none."""
        return (self.sizes[0] - self.is_open) * prod(self.sizes[1:]) == len(self.levels[-1].domain)


def attributes_of(
    questions: Sequence[Sequence[Key]], nestings: Sequence[NestedKeys], is_exhaustive: Callable[[Key], bool]
) -> Iterator[NestedAttribute]:
    """Yield the attributes that the keys of some questions make, in the order of the keys.

    Rows may lack a value of an attribute if some question has none of its keys. Rows that lack a key of every question
    are in no table.

    Args:
        questions: The keys of each. Nested keys of one question stay attributes of their own.
        is_exhaustive: Tells whether every row has a value of a key.
    """
    every = list(dict.fromkeys(key for keys in questions for key in keys))
    left = list(every)
    for key in every:
        if key not in left:
            continue
        for nested in nestings:
            levels = nested.in_order(left)
            if key in levels and all(len(set(levels).intersection(keys)) < 2 for keys in questions):
                break
        else:
            nested, levels = None, [key]
        left = [one for one in left if one not in levels]
        is_open = not all(set(levels).intersection(keys) for keys in questions) and not all(map(is_exhaustive, levels))
        yield NestedAttribute.of(levels, nested, is_open)
