"""How a shell asks and shows: what its commands set, and what they show when nothing follows them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from lapwing.cli import asking, figures
from lapwing.cli.answer_formats import Format
from lapwing.cli.console import WIDTH
from lapwing.privacy.figures import level

NO_COST: Final = "Set a cost with `.epsilon 0.1`"
MODES: Final = (Format.table, Format.csv, Format.json, Format.markdown)


@final
@dataclass(slots=True, kw_only=True)
class ShellSettings:
    """How the next questions are asked and shown: a price or a wanted error, and no more than one of them."""

    epsilon: Fraction | None = None
    error: Fraction | None = None
    delta: Fraction | None = None
    label: str | None = None
    explains: bool = False
    verbose: bool = False
    timed: bool = False
    labels: bool = False
    mode: Format = Format.table
    confidence: Fraction = asking.USUAL_CONFIDENCE

    @property
    def price(self) -> str:
        """The cost of each query, in words."""
        if self.error is not None:
            price = f"The cost follows from the error: ±{figures.size(float(self.error))}"
        else:
            price = NO_COST if self.epsilon is None else f"Each query costs epsilon {figures.epsilon(self.epsilon)}"
        return f"{price}. Lapwing only explains queries" if self.explains else price


def _switch(on: bool) -> str:
    return "on" if on else "off"


SHOWN: Final[Mapping[str, Callable[[ShellSettings], str]]] = {
    ".epsilon": lambda settings: f"{settings.price}.",
    ".error": lambda settings: f"{settings.price}.",
    ".delta": lambda settings: "off" if settings.delta is None else figures.delta(settings.delta),
    ".confidence": lambda settings: level(settings.confidence),
    ".label": lambda settings: settings.label or "off",
    ".explain": lambda settings: _switch(settings.explains),
    ".verbose": lambda settings: _switch(settings.verbose),
    ".labels": lambda settings: _switch(settings.labels),
    ".timer": lambda settings: _switch(settings.timed),
    ".mode": lambda settings: settings.mode.value,
    ".width": lambda _: "auto" if (width := WIDTH.get()) is None else str(width),
}
"""The present setting, by the command that changes it."""
