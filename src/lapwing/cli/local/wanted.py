"""What `lapwing local estimate` was asked for."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import final

from lapwing.cli.console import on_terminal
from lapwing.cli.formats import Format


class Whom(StrEnum):
    """Whose shares an interval is for."""

    respondents = "respondents"
    population = "population"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of an estimate.

    Args: whom: whose shares or mean the intervals are for. together: whether all hold at once. confidence: of each, or
        of all. forged: how many forged reports to think of. form: how to write it. plot: where to, too. candidates: the
        words to look for.
    """

    whom: Whom
    together: bool
    confidence: float
    forged: int
    form: Format | None
    plot: Path | None
    candidates: list[str] | None

    @property
    def format(self) -> Format:
        """How to write it: a table on a terminal, else CSV."""
        return self.form or (Format.table if on_terminal() else Format.csv)
