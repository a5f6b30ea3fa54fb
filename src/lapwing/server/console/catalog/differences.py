"""What is otherwise in one text than in another, line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, final

AROUND: Final = 2
"""Lines that are shown around each difference."""
MOST_LINES: Final = 400
LONGEST: Final = 20_000
"""Lines of a text that are compared: what is longer is told as wholly another."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceLine:
    """A line of either text.

    Args:
        number: In the text that it is of; None for lines that are left out.
    """

    kind: Literal["same", "removed", "added", "gap"]
    number: int | None
    text: str


def differences(before: str, after: str) -> list[DifferenceLine]:
    r"""Return the lines that one text has and the other has not, with some around them; the first so many.

    >>> [(line.kind, line.number, line.text) for line in differences("a\nb", "a\nc")]
    [('same', 1, 'a'), ('removed', 2, 'b'), ('added', 2, 'c')]
    >>> differences("a", "a")
    []
    """
    if before == after:
        return []
    lines: list[DifferenceLine] = []
    for line in _lines(before.split("\n"), after.split("\n")):
        lines.append(line)
        if len(lines) == MOST_LINES:
            return [*lines, DifferenceLine(kind="gap", number=None, text="more lines differ")]
    return lines


def _lines(old: list[str], new: list[str]) -> Iterator[DifferenceLine]:
    if max(len(old), len(new)) > LONGEST:
        yield DifferenceLine(
            kind="gap", number=None, text=f"{len(old):,} lines before, {len(new):,} after: too many to compare"
        )
        return
    end = 0
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(AROUND):
        if group[0][1] > end:
            yield DifferenceLine(kind="gap", number=None, text="…")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (DifferenceLine(kind="same", number=n + 1, text=old[n]) for n in range(old_from, old_to))
                continue
            yield from (DifferenceLine(kind="removed", number=n + 1, text=old[n]) for n in range(old_from, old_to))
            yield from (DifferenceLine(kind="added", number=n + 1, text=new[n]) for n in range(new_from, new_to))
        end = group[-1][2]
