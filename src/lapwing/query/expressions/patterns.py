"""Regular expressions that every engine understands and runs in linear time, checked without running any.

What is let through is a part of RE2's syntax (and of Perl's) that all engines read alike: characters, `.`, `^`, `$`,
classes, groups, alternatives, `* + ?` and counted repetitions, lazy or not. What an engine might refuse, or expand into
a large automaton, is refused here before anything is paid.
"""

from dataclasses import dataclass
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause

LONGEST = 200
LARGEST = 1000  # what a pattern may grow to when its repetitions are written out
MOST_REPEATED = 100
DEEPEST = 10
SPECIAL = set("\\.^$|?*+()[]{}")
ESCAPED = SPECIAL | set("-/'\",:;!@#%&=<>~`_ ")
CLASSES = set("dDwWsS")
EDGES = set("b")  # not \B: engines differ on whether it matches the empty text
CONTROL = set("ntr")


Range = tuple[int, int]
"""Characters from one to another, both included, by their numbers."""
LAST: Final = 0x10FFFF
_DIGITS: Final[tuple[Range, ...]] = ((48, 57),)
_WORDS: Final[tuple[Range, ...]] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACES: Final[tuple[Range, ...]] = ((9, 10), (12, 13), (32, 32))


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of several: in order, without overlaps."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters: `^`, `$` or `b`."""

    sign: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: "tuple[Tree, ...]"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of several, the first that leads to a match."""

    parts: "tuple[Tree, ...]"


@dataclass(frozen=True, slots=True)
class Repetition:
    """A part several times, as often as can be, or as rarely if it is lazy; `most` None for without end."""

    part: "Tree"
    least: int
    most: int | None
    lazy: bool


Tree = Characters | Edge | Sequence | Alternatives | Repetition


_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r"}
_NAMED: Final = {"d": _DIGITS, "w": _WORDS, "s": _SPACES}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A checked pattern: how many groups it has, and what it is made of."""

    groups: int
    tree: Tree


def characters(ranges: list[Range], *, negated: bool = False) -> Characters:
    """Return a class of characters, or of all others."""
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    if not negated:
        return Characters(tuple(joined))
    edges = [-1, *(end for low, high in joined for end in (low, high)), LAST + 1]
    outside = [(before + 1, after - 1) for before, after in zip(edges[::2], edges[1::2], strict=True)]
    return Characters(tuple((low, high) for low, high in outside if low <= high))


def check(text: str) -> Pattern:
    """Return what is known of a pattern.

    Raises:
        QueryRefused: With the place in the pattern, if it is not in the common syntax or is too large.
    """
    if len(text) > LONGEST:
        raise QueryRefused(
            "A pattern is too long", cause=RefusalCause.PATTERN_TOO_LARGE, remedy=f"Use at most {LONGEST} characters."
        )
    reader = _PatternParser(text)
    size, tree = reader.alternatives(0)
    if reader.at < len(text):
        raise reader.refusal()
    if size > LARGEST:
        raise QueryRefused(
            "A pattern repeats too much", cause=RefusalCause.PATTERN_TOO_LARGE, remedy="Use * or +, or smaller counts."
        )
    return Pattern(groups=reader.groups, tree=tree)


def _itself(character: str) -> Characters:
    return Characters(((ord(character), ord(character)),))


def _escaped(character: str) -> Characters:
    """Return what a character stands for after a backslash."""
    if character in CLASSES:
        return characters(list(_NAMED[character.lower()]), negated=character.isupper())
    return _itself(_CONTROLS.get(character, character))


class _PatternParser:
    """A recursive descent over the text; every method returns what it read, with its size."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.groups = text, 0, 0

    def refusal(self) -> QueryRefused:
        near = self.text[self.at : self.at + 10]
        return QueryRefused(
            f"The pattern is not understood at '{near}', character {self.at + 1}",
            cause=RefusalCause.INVALID_PATTERN,
            remedy="Use . * + ? {2,3} [a-z] (a|b) ^ $ \\d \\w \\s \\b, and \\ before a character that is meant itself.",
        )

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def take(self) -> str:
        if self.at >= len(self.text):
            raise self.refusal()
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self, depth: int) -> tuple[int, Tree]:
        if depth > DEEPEST:
            raise QueryRefused(
                "A pattern is nested too deep",
                cause=RefusalCause.PATTERN_TOO_LARGE,
                remedy=f"Use at most {DEEPEST} groups in each other.",
            )
        size, tree = self.sequence(depth)
        parts = [tree]
        while self.peek() == "|":
            self.at += 1
            further, tree = self.sequence(depth)
            size += 1 + further
            parts.append(tree)
        return size, parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def sequence(self, depth: int) -> tuple[int, Tree]:
        size, parts = 0, list[Tree]()
        while self.peek() and self.peek() not in "|)":
            atom, tree, repeatable = self.atom(depth)
            times, repeated = self.repetition(tree)
            if times != 1 and not repeatable:
                self.at -= 1
                raise self.refusal()
            size += max(1, atom) * times
            parts.append(repeated)
        return size, Sequence(tuple(parts))

    def atom(self, depth: int) -> tuple[int, Tree, bool]:
        character = self.peek()
        if character == "(":
            return *self.group(depth), True
        if character == "[":
            return *self.character_class(), True
        if character == "\\":
            self.at += 1
            escaped = self.peek()
            if not escaped or escaped not in ESCAPED | CLASSES | EDGES | CONTROL:
                self.at -= 1
                raise self.refusal()
            self.at += 1
            return 1, Edge(escaped) if escaped in EDGES else _escaped(escaped), escaped not in EDGES
        if character in "^$":
            self.at += 1
            return 1, Edge(character), False
        if character in SPECIAL - {"."}:
            raise self.refusal()
        self.at += 1
        return 1, characters([], negated=True) if character == "." else _itself(character), True

    def group(self, depth: int) -> tuple[int, Tree]:
        self.at += 1
        if self.peek(2) == "?:":
            self.at += 2
        elif self.peek() == "?":
            raise self.refusal()
        else:
            self.groups += 1
        size, tree = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise self.refusal()
        self.at += 1
        return size, tree

    def repetition(self, tree: Tree) -> tuple[int, Tree]:
        """Read * + ? or {least,most}, lazy or not; return how often the part is written out, and what becomes of it."""
        character = self.peek()
        most: int | None
        if character == "{":
            times, least, most = self.counted()
        elif character and character in "*+?":
            self.at += 1
            times, least, most = 2, int(character == "+"), 1 if character == "?" else None
        else:
            return 1, tree
        lazy = self.peek() == "?"
        self.at += lazy
        return max(times, 2), Repetition(tree, least, most, lazy)

    def counted(self) -> tuple[int, int, int | None]:
        start = self.at
        self.at += 1
        least = self.whole()
        most, open_ended = least, False
        if self.peek() == ",":
            self.at += 1
            open_ended = self.peek() == "}"
            most = least if open_ended else self.whole()
        if self.peek() != "}" or not least <= most <= MOST_REPEATED:
            self.at = start
            raise self.refusal()
        self.at += 1
        return most + open_ended, least, None if open_ended else most

    def whole(self) -> int:
        digits = ""
        while self.peek() and self.peek() in "0123456789":
            digits += self.take()
        if not 1 <= len(digits) <= 3:
            raise self.refusal()
        return int(digits)

    def character_class(self) -> tuple[int, Tree]:
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        items, ranges = 0, list[Range]()
        while self.peek() != "]":
            first, members = self.class_character()
            items += 1
            if self.peek() == "-":
                self.at += 1
                last, _ = self.class_character()
                if first is None or last is None or first > last:
                    raise self.refusal()
                members = ((ord(first), ord(last)),)
            ranges += members
        if not items:
            raise self.refusal()
        self.at += 1
        return items, characters(ranges, negated=negated)

    def class_character(self) -> tuple[str | None, tuple[Range, ...]]:
        """Read one member of a class: a character, or None for what is itself a class, and what it stands for."""
        character = self.take()
        if character == "\\":
            escaped = self.take()
            if escaped in CLASSES | CONTROL | ESCAPED:
                return None if escaped in CLASSES else _CONTROLS.get(escaped, escaped), _escaped(escaped).ranges
        elif character not in "[]-^&|~":
            return character, _itself(character).ranges
        self.at -= 1
        raise self.refusal()
