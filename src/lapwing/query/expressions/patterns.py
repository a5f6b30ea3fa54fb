"""Regular expressions that every engine understands and runs in linear time, checked without running any.

What is let through is a part of RE2's syntax (and of Perl's) that all engines read alike: characters, `.`, `^`, `$`,
classes, groups, alternatives, `* + ?` and counted repetitions, lazy or not. What an engine might refuse, or expand into
a large automaton, is refused here before anything is paid.
"""

from dataclasses import dataclass

from lapwing.errors import QueryRefused

LONGEST = 200
LARGEST = 1000  # what a pattern may grow to when its repetitions are written out
MOST_REPEATED = 100
DEEPEST = 10
SPECIAL = set("\\.^$|?*+()[]{}")
ESCAPED = SPECIAL | set("-/'\",:;!@#%&=<>~`_ ")
CLASSES = set("dDwWsS")
EDGES = set("b")  # not \B: engines differ on whether it matches the empty text
CONTROL = set("ntr")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A checked pattern: how many groups it has."""

    groups: int


def check(text: str) -> Pattern:
    """Return what is known of a pattern.

    Raises: QueryRefused with the place in the pattern, if it is not in the common syntax or is too large.
    """
    if len(text) > LONGEST:
        raise QueryRefused("A pattern is too long", remedy=f"Use at most {LONGEST} characters.")
    reader = _Reader(text)
    size = reader.alternatives(0)
    if reader.at < len(text):
        raise reader.refusal()
    if size > LARGEST:
        raise QueryRefused("A pattern repeats too much", remedy="Use * or +, or smaller counts.")
    return Pattern(groups=reader.groups)


class _Reader:
    """A recursive descent over the text; every method returns the size of what it read."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.groups = text, 0, 0

    def refusal(self) -> QueryRefused:
        near = self.text[self.at : self.at + 10]
        return QueryRefused(
            f"The pattern is not understood at '{near}', character {self.at + 1}",
            remedy="Use . * + ? {2,3} [a-z] (a|b) ^ $ \\d \\w \\s \\b, and \\ before a character that is meant itself.",
        )

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def take(self) -> str:
        if self.at >= len(self.text):
            raise self.refusal()
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self, depth: int) -> int:
        if depth > DEEPEST:
            raise QueryRefused("A pattern is nested too deep", remedy=f"Use at most {DEEPEST} groups in each other.")
        size = self.sequence(depth)
        while self.peek() == "|":
            self.at += 1
            size += 1 + self.sequence(depth)
        return size

    def sequence(self, depth: int) -> int:
        size = 0
        while self.peek() and self.peek() not in "|)":
            atom, repeatable = self.atom(depth)
            times = self.repetition()
            if times != 1 and not repeatable:
                self.at -= 1
                raise self.refusal()
            size += max(1, atom) * times
        return size

    def atom(self, depth: int) -> tuple[int, bool]:
        character = self.peek()
        if character == "(":
            return self.group(depth), True
        if character == "[":
            return self.character_class(), True
        if character == "\\":
            self.at += 1
            escaped = self.peek()
            if not escaped or escaped not in ESCAPED | CLASSES | EDGES | CONTROL:
                self.at -= 1
                raise self.refusal()
            self.at += 1
            return 1, escaped not in EDGES
        if character in "^$":
            self.at += 1
            return 1, False
        if character in SPECIAL - {"."}:
            raise self.refusal()
        self.at += 1
        return 1, True

    def group(self, depth: int) -> int:
        self.at += 1
        if self.peek(2) == "?:":
            self.at += 2
        elif self.peek() == "?":
            raise self.refusal()
        else:
            self.groups += 1
        size = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise self.refusal()
        self.at += 1
        return size

    def repetition(self) -> int:
        """Read * + ? or {least,most}, lazy or not; return how often the part is written out."""
        character = self.peek()
        if character == "{":
            times = self.counted()
        elif character and character in "*+?":
            self.at += 1
            times = 2
        else:
            return 1
        if self.peek() == "?":
            self.at += 1
        return max(times, 2)

    def counted(self) -> int:
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
        return most + open_ended

    def whole(self) -> int:
        digits = ""
        while self.peek() and self.peek() in "0123456789":
            digits += self.take()
        if not 1 <= len(digits) <= 3:
            raise self.refusal()
        return int(digits)

    def character_class(self) -> int:
        self.at += 1
        if self.peek() == "^":
            self.at += 1
        items = 0
        while self.peek() != "]":
            first = self.class_character()
            items += 1
            if self.peek() == "-":
                self.at += 1
                last = self.class_character()
                if first is None or last is None or first > last:
                    raise self.refusal()
        if not items:
            raise self.refusal()
        self.at += 1
        return items

    def class_character(self) -> str | None:
        """Read one member of a class: a character, or None for what is itself a class."""
        character = self.take()
        if character == "\\":
            escaped = self.take()
            if escaped in CLASSES:
                return None
            if escaped in CONTROL:
                return {"n": "\n", "t": "\t", "r": "\r"}[escaped]
            if escaped in ESCAPED:
                return escaped
        elif character not in "[]-^&|~":
            return character
        self.at -= 1
        raise self.refusal()
