"""Monitors as a catalog describes them: what is to be asked again and again, before anybody makes it and pays for it.

Only the forms of the settings are looked at here. What they mean is for `lapwing.monitors`, when the monitor is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

from lapwing.catalog import spelling
from lapwing.catalog.section import TomlSection

_TEXTS: Final = {
    "time": "at",
    "every": "15 minutes",
    "for": "1 day",
    "starting": "2026-03-02",
    "over": "6 hours",
    "within": "1 hour",
    "lateness": "2 minutes",
    "late": "next",
    "from": "service",
    "people": "people.toml",
}
_INTEGERS: Final = {"most": 8, "per_tick": 1, "repeat": 30}
_FLAGS: Final = ("doubling", "lifetime", "present")
Setting = str | int | bool | Fraction


@final
@dataclass(frozen=True, slots=True)
class MonitorSection:
    """The settings of one monitor, by the names that they have in the file."""

    name: str
    settings: tuple[tuple[str, Setting], ...]

    @classmethod
    def of(cls, name: str, section: TomlSection) -> Self:
        """Read a section.

        Raises:
            CatalogError: Starting with `monitors.<name>.<key>`.
        """
        section.allow("question", "epsilon", *_TEXTS, *_INTEGERS, *_FLAGS)
        settings: dict[str, Setting] = {
            "question": section.text("question", example="SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell"),
            "epsilon": section.number("epsilon", example="1.0"),
            "time": section.text("time", example="at"),
        }
        settings |= {key: section.text(key, example=like) for key, like in _TEXTS.items() if section.has(key)}
        settings |= {key: section.integer(key, example=like) for key, like in _INTEGERS.items() if section.has(key)}
        settings |= {key: section.boolean(key, False) for key in _FLAGS if section.has(key)}
        return cls(name, tuple(settings.items()))

    def lines(self) -> list[str]:
        """Return it as lines of a file."""
        settings = [f"{key} = {_spelled(value)}" for key, value in self.settings]
        return ["", f"[monitors.{spelling.key(self.name)}]", *settings]

    @property
    def options(self) -> Mapping[str, Setting]:
        """The settings as `create_monitor` calls them."""
        return {{"for": "horizon", "from": "source"}.get(key, key): value for key, value in self.settings}


def _spelled(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else spelling.value(value)
