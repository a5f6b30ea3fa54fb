"""How much a regular expression makes an engine do for each character, found by building its automaton.

RE2, and what is made like it, searches with an automaton that it builds while it searches: a character takes some
nanoseconds where its state is known. Where a pattern has too many states they are thrown away and built anew, and in
the end all alternatives are followed one by one: a hundred times slower, or ten thousand times for a large pattern.
A pattern is public. So its states are counted here, by the same construction: a state is the list of the places in the
pattern that are alive, the preferred first; where one of them is the end, those after it are dropped.

What is found is a number for a cost model (`query.work`), not a promise: an engine may build its automata differently.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final, Literal

from lapwing.query.expressions.patterns import Alternatives, Characters, Edge, Pattern, Range, Repetition, Tree, check
from lapwing.query.expressions.patterns import Sequence as InOrder

MOST_STATES: Final = 1_000
"""An engine keeps so many states, of whatever pattern, for as long as it searches."""
MOST_STEPS: Final = 60_000
"""Steps of the construction, some tens of nanoseconds each; the states have no more places in them all together."""
END: Final = -1
Use = Literal["occurs", "fully", "first", "all"]
"""What is asked of a text: whether the pattern occurs, whether it is all of it, the first match, or every match."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """What a pattern's automaton is like.

    Args:
        size: Places in the pattern.
        states: None if they are too many.
        places: In all states together, as many at most as it takes to build them.
        overrun: How many characters a search may read beyond the match that it finds, None without end.
        longest: The most characters of a match, None without end.
        steps: Of the construction.
    """

    size: int
    states: int | None
    places: int
    overrun: int | None
    longest: int | None
    steps: int


class _TooLarge(Exception):
    """The automaton is larger than an engine keeps."""


@lru_cache(maxsize=1024)
def automaton_of(text: str, flags: str, use: Use) -> Automaton:
    """Return what the automaton of a pattern is like that was checked before."""
    pattern = check(text)
    machine, longest = _Machine(pattern, any_case="i" in flags), _longest(pattern.tree)
    try:
        forwards = machine.states(use, backwards=False)
        backwards = machine.states("fully", backwards=True) if use in ("first", "all") else _States({}, {})
    except _TooLarge:
        return Automaton(size=machine.size, states=None, places=0, overrun=None, longest=longest, steps=machine.steps)
    states, places = len(forwards.next) + len(backwards.next), sum(map(len, chain(forwards.next, backwards.next)))
    return Automaton(
        size=machine.size,
        states=states,
        places=places,
        overrun=forwards.overrun(),
        longest=longest,
        steps=machine.steps,
    )


State = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _States:
    """The states of an automaton, each with those that follow it, and whether the end is among their places."""

    next: dict[State, list[State]]
    ends: dict[State, bool]

    def overrun(self) -> int | None:
        """Return the most characters that are read after a match and are no part of it or of a longer one."""
        longest: dict[State, int] = {}
        under_way: set[State] = set()
        for start in (after for state, ends in self.ends.items() if ends for after in self.next[state]):
            pending = [start]
            while pending:
                state = pending[-1]
                if state in longest or not state or self.ends[state]:
                    longest.setdefault(state, 0)
                    under_way.discard(pending.pop())
                    continue
                under_way.add(state)
                below = [after for after in self.next[state] if after and not self.ends[after]]
                if any(after in under_way for after in below):
                    return None
                unknown = [after for after in below if after not in longest]
                if not unknown:
                    longest[state] = 1 + max((longest[after] for after in below), default=0)
                pending += unknown[:1]
        return 1 + max(longest.values(), default=0)


class _Machine:
    """A program for a pattern: places that read a character of a class, and branches, the preferred first."""

    def __init__(self, pattern: Pattern, *, any_case: bool) -> None:
        self.tree, self.any_case = pattern.tree, any_case
        self.reads: list[tuple[Range, ...] | None] = []
        self.after: list[tuple[int, ...]] = []
        self.steps = 0
        self.size = _size(pattern.tree)

    def states(self, use: Use, *, backwards: bool) -> _States:
        """Build all states."""
        self.reads, self.after, self.closures = [], [], dict[int, State]()
        start = self._program(self.tree, END, backwards)
        ordered = use != "fully"
        if ordered and not _begins(self.tree):  # it may begin anywhere, and rather here than further on
            anywhere = self._place(((0, 0x10FFFF),))
            first = self._branch(start, anywhere)
            self.after[anywhere] = (first,)
            start = first
        letters = self._letters()
        begin = self._state([start], ordered)
        found, ends, pending = dict[State, list[State]](), dict[State, bool](), [begin]
        while pending:
            state = pending.pop()
            if state in found:
                continue
            ends[state] = END in state
            found[state] = []
            if use == "occurs" and ends[state]:  # that is all that is asked
                continue
            if len(found) > MOST_STATES:
                raise _TooLarge
            for letter in letters:
                after = self._state([self.after[place][0] for place in state if place in letter], ordered)
                if after:
                    found[state].append(after)
                    pending.append(after)
        return _States(found, ends)

    def _state(self, places: Iterable[int], ordered: bool) -> State:
        alive: dict[int, None] = {}
        for place in places:
            closure = self._closure(place)
            self._work(len(closure))
            alive |= dict.fromkeys(closure)
            if ordered and END in alive:  # what comes after the end is not preferred to it
                break
        return tuple(alive) if ordered else tuple(sorted(alive))

    def _closure(self, start: int) -> State:
        """Return the places that are reached without reading, the preferred first; nothing after the end."""
        if start not in self.closures:
            alive, seen, pending = list[int](), set[int](), [start]
            while pending:
                place = pending.pop()
                if place in seen:
                    continue
                seen.add(place)
                self._work(1)
                if place == END or self.reads[place] is not None:
                    alive.append(place)
                else:
                    pending += reversed(self.after[place])
            self.closures[start] = tuple(alive)
        return self.closures[start]

    def _letters(self) -> list[frozenset[int]]:
        """Return the places that read a character, for each kind of character that they tell apart."""
        reading = {place: ranges for place, ranges in enumerate(self.reads) if ranges is not None}
        classes = set(reading.values())
        edges = sorted({edge for ranges in classes for low, high in ranges for edge in (low, high + 1)})
        kinds = {frozenset(ranges for ranges in classes if _has(ranges, edge)) for edge in edges}
        self._work(len(edges) * len(classes) + len(kinds) * len(reading))
        return [frozenset(place for place, ranges in reading.items() if ranges in kind) for kind in kinds if kind]

    # ---- the program -------------------------------------------------------------------------------------------------

    def _place(self, ranges: tuple[Range, ...] | None, *after: int) -> int:
        self._work(1)
        self.reads.append(ranges)
        self.after.append(after)
        return len(self.reads) - 1

    def _branch(self, *after: int) -> int:
        return self._place(None, *after)

    def _program(self, tree: Tree, then: int, backwards: bool) -> int:
        """Write the program that reads what a tree describes and goes on; return where it begins."""
        match tree:
            case Characters(ranges):
                return self._place(_any_case(ranges) if self.any_case else ranges, then)
            case Edge():  # it may hold anywhere: that makes more states, not fewer
                return then
            case InOrder(parts):
                for part in parts if backwards else reversed(parts):
                    then = self._program(part, then, backwards)
                return then
            case Alternatives(parts):
                return self._branch(*(self._program(part, then, backwards) for part in parts))
            case Repetition(part, least, most, lazy):
                at = then
                if most is None:
                    at = self._branch()
                    again = self._program(part, at, backwards)
                    self.after[at] = (then, again) if lazy else (again, then)
                else:
                    for _ in range(most - least):
                        once = self._program(part, at, backwards)
                        at = self._branch(then, once) if lazy else self._branch(once, then)
                for _ in range(least):
                    at = self._program(part, at, backwards)
                return at

    def _work(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise _TooLarge


def _size(tree: Tree) -> int:
    match tree:
        case Repetition(part, least, most, _):
            return _size(part) * max(1, least if most is None else most)
        case InOrder(parts) | Alternatives(parts):
            return sum(map(_size, parts))
    return 1


def _longest(tree: Tree) -> int | None:
    """Return the most characters of a match, None without end."""
    match tree:
        case Characters():
            return 1
        case Repetition(part, _, most, _):
            once = _longest(part)
            return 0 if once == 0 else None if once is None or most is None else once * most
        case InOrder(parts) | Alternatives(parts):
            lengths = [_longest(part) for part in parts]
            known = [length for length in lengths if length is not None]
            both = sum(known) if isinstance(tree, InOrder) else max(known, default=0)
            return both if len(known) == len(lengths) else None
    return 0


def _begins(tree: Tree) -> bool:
    """Tell whether a match begins where the text does."""
    match tree:
        case Edge(sign):
            return sign == "^"
        case InOrder(parts):
            return bool(parts) and _begins(parts[0])
        case Alternatives(parts):
            return all(map(_begins, parts))
        case Repetition(part, least, _, _):
            return least > 0 and _begins(part)
    return False


def _has(ranges: Sequence[Range], number: int) -> bool:
    return any(low <= number <= high for low, high in ranges)


def _any_case(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return a class with the other case of its ASCII letters, and of single characters."""
    further = list(ranges)
    for low, high in ranges:
        for first, last, shift in ((65, 90, 32), (97, 122, -32)):
            if max(low, first) <= min(high, last):
                further.append((max(low, first) + shift, min(high, last) + shift))
        if low == high:
            further += [(ord(c), ord(c)) for c in (chr(low).upper(), chr(low).lower()) if len(c) == 1]
    return tuple(sorted(set(further)))
