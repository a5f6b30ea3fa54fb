"""A section of a TOML document, which knows where it stands: it reads keys by type and refuses unknown ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse, within
from lapwing.catalog.suggestions import closest


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TomlSection:
    """The content of one section and the dotted path that leads to it ("" for the document)."""

    path: str
    content: Mapping[str, object]

    def place(self, key: str) -> str:
        """Return the dotted path of a key."""
        return f"{self.path}.{spelling.key(key)}" if self.path else spelling.key(key)

    def allow(self, *keys: str) -> None:
        """Refuse all keys but these, each by name."""
        unknown = [key for key in self.content if key not in keys]
        if unknown:
            named = ", ".join(_suggest(key, keys) for key in unknown)
            refuse(self.path or "top level", f"unknown {named}; allowed: {', '.join(keys)}")

    def section(self, key: str) -> "TomlSection":
        """Return the section under a key; an absent one is empty."""
        content = self.content.get(key, {})
        if not isinstance(content, dict):
            refuse(self.place(key), f"{_shown(content)}; write a section like [{self.place(key)}]")
        return TomlSection(path=self.place(key), content=content)

    def has(self, key: str) -> bool:
        """Tell whether a key is present."""
        return key in self.content

    def text(self, key: str, default: str | None = None, *, example: str) -> str:
        """Return a string, or the default where one is given."""
        content = self._take(key, default, example=f'{key} = "{example}"')
        if not isinstance(content, str):
            refuse(self.place(key), f'{_shown(content)}; write a string, for example {key} = "{example}"')
        return content

    def integer(self, key: str, default: int | None = None, *, example: int) -> int:
        """Return an integer, or the default where one is given."""
        content = self._take(key, default, example=f"{key} = {example}")
        if not isinstance(content, int) or isinstance(content, bool):
            refuse(self.place(key), f"{_shown(content)}; write an integer, for example {key} = {example}")
        return content

    def boolean(self, key: str, default: bool) -> bool:
        """Return true or false, or the default."""
        content = self.content.get(key, default)
        if not isinstance(content, bool):
            refuse(self.place(key), f"{_shown(content)}; write true or false")
        return content

    def number(self, key: str, default: Fraction | None = None, *, example: str) -> Fraction:
        """Return an exact number, or the default where one is given."""
        content = self._take(key, default, example=f"{key} = {example}")
        if isinstance(content, Fraction):
            return content
        if not isinstance(content, int | Decimal) or isinstance(content, bool):
            refuse(self.place(key), f"{_shown(content)}; write a number, for example {key} = {example}")
        with within(f"{self.place(key)}: "):
            return spelling.exact(content)

    def bound(self, key: str) -> Fraction | date:
        """Return a number, a date, or a time as UTC; a time without an offset is in UTC already."""
        content = self.content.get(key)
        if isinstance(content, datetime):
            with within(f"{self.place(key)}: "):
                return spelling.in_utc(content)
        if isinstance(content, date):
            return content
        if isinstance(content, str):
            refuse(self.place(key), f"{_shown(content)}; write a number or a date, without quotes")
        return self.number(key, example="0")

    def items(self, key: str) -> tuple[object, ...]:
        """Return a list as it stands."""
        content = self.content.get(key)
        if not isinstance(content, list):
            refuse(self.place(key), f'{_shown(content)}; write a list, for example {key} = ["a", "b"]')
        return tuple(content)

    def _take(self, key: str, default: object, *, example: str) -> object:
        if key in self.content:
            return self.content[key]
        if default is None:
            refuse(self.place(key), f"missing; add for example {example}")
        return default


def _suggest(key: str, allowed: tuple[str, ...]) -> str:
    close = closest(key, allowed)
    return spelling.text(key) + (f" (did you mean {close[0]}?)" if close else "")


def _shown(content: object) -> str:
    kind = spelling.kind(content)
    return f"is {kind}" if isinstance(content, dict | list) else f"{spelling.value(content)} is {kind}"
