"""The options of `lapwing local estimate`, and what all its documents begin with."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import lapwing as lw
from lapwing.cli.answer_formats import Format
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.local import Collected, DrawCheck


class Whom(StrEnum):
    """Whose shares an interval is for."""

    respondents = "respondents"
    population = "population"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """The options of an estimate.

    Args:
        chosen_whom: Whose shares or mean the intervals shall be for; None for whom they usually are.
        together: Whether all hold at once.
        confidence: Of each, or of all.
        forged: How many forged reports to think of.
        format: How to write it.
        plot: A file for a chart.
        candidates: The words to look for.
    """

    chosen_whom: Whom | None
    together: bool
    confidence: float
    forged: int
    format: Format
    plot: Path | None
    candidates: list[str] | None

    @property
    def whom(self) -> Whom:
        """Whose shares or mean the intervals are for, where there is a choice."""
        return self.chosen_whom or Whom.respondents

    @property
    def held(self) -> str:
        """How sure the intervals are, in words."""
        return f"each interval holds with {100 * self.confidence:g} %{', all at once' if self.together else ''}"

    def refuse(self, kind: str, *ignored: str) -> None:
        """Refuse options that an estimate of a kind of task would ignore.

        Args:
            *ignored: Of "--whom respondents", "--together" and "--candidates".

        Raises:
            InvalidParameter: With the first that was given.
        """
        present = {
            "--whom respondents": self.chosen_whom is Whom.respondents,
            "--together": self.together,
            "--candidates": self.candidates is not None,
        }
        for option in ignored:
            if present[option]:
                raise InvalidParameter(f"{option} means nothing for {kind}: {REASONS[option]}.")

    def document(self, collected: "Collected[Any]", whom: Whom) -> dict[str, object]:
        """Return how every document of an estimate begins: of which task, for whom, how sure, and of what reports."""
        return {
            "task": collected.task.document,
            "whom": whom.value,
            "confidence": self.confidence,
            "together": self.together,
            "reports": reports_in(collected),
            "rejected": [{"line": line.line, "reason": line.reason} for line in collected.rejected],
            "draws": [asdict(check) for check in draw_checks(collected)],
        }


REASONS: Final = {
    "--whom respondents": "its intervals are for the population that the respondents are a random sample of; leave it "
    "out, or say --whom population",
    "--together": "there is one interval; leave it out",
    "--candidates": "the task says what may be answered; leave it out",
}


def reports_in(collected: "Collected[Any]") -> int:
    """Return how many reports were taken. Of several questions they are a tuple, with a part for each.

    A report is in one part, or in all.
    """
    parts = collected.reports if isinstance(collected.reports, tuple) else (collected.reports,)
    return len(parts[0]) if collected.task.mechanism == "all-attributes" else sum(map(len, parts))


def draw_checks(collected: "Collected[Any]") -> "list[DrawCheck]":
    """Return whether what the devices drew in public looks drawn."""
    return lw.local.check_draws(collected.mechanism.public_draws(collected.reports))
