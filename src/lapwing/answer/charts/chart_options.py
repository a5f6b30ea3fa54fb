"""The choices of a chart: its type, axes, order, scale, reference line and title."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Final, final
from urllib.parse import urlencode

from lapwing.errors import InvalidParameter
from lapwing.privacy.decimal_comma import with_point
from lapwing.privacy.figures import plain

KINDS: Final = ("auto", "bars", "points", "lines", "table")
ORDERS: Final = ("released", "label", "largest", "smallest")
LONGEST_TITLE, LONGEST_NAME, LONGEST_NUMBER, LONGEST_LINE_TITLE = 120, 1000, 40, 40
UNSHOWN: Final = ("Cc", "Cs", "Cn", "Co", "Zl", "Zp")
"""Categories of characters that no picture can have, or that break its lines."""
TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of what follows them."""
NAMES: Final = ("column", "kind", "x", "colour", "title", "arrange", "log", "line", "line_title", "x_title", "y_title")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartOptions:
    """The choices of a chart, each of which follows from the result unless it is stated.

    Args:
        column: The noisy numbers.
        kind: One of `KINDS`.
        x: The key along the axis.
        colour: The key that colours tell apart.
        title: Empty: the name of the column.
        arrange: The order of bars and points, one of `ORDERS`. Lines follow their axis.
        log: Whether the axis of the numbers is logarithmic.
        line: A number at which there is a reference line.
        line_title: The name of the reference line, in a few words.
        x_title: Of the axis of the keys. Empty: their titles in the catalog, or their names.
        y_title: Of the axis of the numbers, or of the other key of a heat map. Empty: its name and unit.

    Raises:
        InvalidParameter: If a value is not allowed.
    """

    column: str | None = None
    kind: str = "auto"
    x: str | None = None
    colour: str | None = None
    title: str = ""
    arrange: str = "released"
    log: bool = False
    line: float | None = None
    line_title: str = ""
    x_title: str = ""
    y_title: str = ""

    def __post_init__(self) -> None:
        for name, value, allowed in (("type", self.kind, KINDS), ("order", self.arrange, ORDERS)):
            if value not in allowed:
                raise InvalidParameter(f"The {name} of a chart is one of {', '.join(allowed)}.")
        for text, longest in (
            *((title, LONGEST_TITLE) for title in self._titles),
            (self.line_title, LONGEST_LINE_TITLE),
            *((name, LONGEST_NAME) for name in (self.column, self.x, self.colour) if name is not None),
        ):
            if len(text) > longest:
                raise InvalidParameter(f"This text of a chart has {len(text):,} characters; at most {longest} fit.")
        if any(unicodedata.category(sign) in UNSHOWN or sign in TURNING for sign in "".join(self._titles)):
            raise InvalidParameter("Each title of a chart is one line of text, without control characters.")
        if self.x is not None and self.x == self.colour:
            raise InvalidParameter("A chart has different columns as x and as colour.")
        if self.line is not None and not isfinite(self.line):
            raise InvalidParameter("A reference line is at a finite number.")
        if self.line is not None and self.log and self.line <= 0:
            raise InvalidParameter("A log scale has only numbers above 0; move the reference line, or turn it off.")

    @classmethod
    def from_texts(cls, fields: Mapping[str, object]) -> "ChartOptions":
        """Read the fields of an address, a form or a tile; an empty field is one that is not stated.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        texts = {name: "" if fields.get(name) is None else str(fields[name]) for name in NAMES}
        return cls(
            column=texts["column"] or None,
            kind=texts["kind"] or "auto",
            x=texts["x"] or None,
            colour=texts["colour"] or None,
            title=texts["title"].strip(),
            arrange=texts["arrange"] or "released",
            log=texts["log"] in ("1", "True"),
            line=_number(texts["line"].strip()) if texts["line"].strip() else None,
            line_title=texts["line_title"].strip(),
            x_title=texts["x_title"].strip(),
            y_title=texts["y_title"].strip(),
        )

    @property
    def _titles(self) -> tuple[str, str, str, str]:
        return self.title, self.x_title, self.y_title, self.line_title

    @property
    def texts(self) -> Mapping[str, str]:
        """The stated fields, for an address or a form.

        >>> dict(ChartOptions(kind="bars", log=True, line=0.5).texts)
        {'kind': 'bars', 'log': '1', 'line': '0.5'}
        """
        fields = {
            "column": self.column,
            "kind": None if self.kind == "auto" else self.kind,
            "x": self.x,
            "colour": self.colour,
            "title": self.title or None,
            "arrange": None if self.arrange == "released" else self.arrange,
            "log": "1" if self.log else None,
            "line": None if self.line is None else f"{self.line:.15g}",
            "line_title": self.line_title or None,
            "x_title": self.x_title or None,
            "y_title": self.y_title or None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def link(self) -> str:
        """The query of an address with these choices."""
        return urlencode({"chart" if name == "column" else name: text for name, text in self.texts.items()})

    def check_keys(self, keys: Mapping[str, object] | tuple[str, ...]) -> None:
        """Refuse axes that are no key of a result.

        Raises:
            InvalidParameter: If there is no such key.
        """
        for name in (self.x, self.colour):
            if name is not None and name not in keys:
                raise InvalidParameter(f"The result has no key {name!r:.80}; its keys: {', '.join(keys) or 'none'}.")


def read_choices(choices: Sequence[str]) -> ChartOptions:
    """Read choices as commands take them, each a name of `NAMES` and a value.

    Raises:
        InvalidParameter: If one is not understood, stated twice or not allowed.

    >>> read_choices(["arrange=largest", "title=a=b"]).texts
    {'title': 'a=b', 'arrange': 'largest'}
    """
    fields: dict[str, str] = {}
    for choice in choices:
        name, stated, value = choice.partition("=")
        if not stated or name not in NAMES or name in fields:
            raise InvalidParameter(
                f"The choice {choice!r:.80} of a chart is not understood. Give each once, as NAME=VALUE. The names: "
                f"{', '.join(NAMES)}."
            )
        fields[name] = value
    if fields.get("log", "1") not in ("0", "1"):
        raise InvalidParameter("The scale of a chart is log=1, or log=0 for a linear one.")
    return ChartOptions.from_texts(fields)


def in_order(arrange: str, numbers: Sequence[float | None], keys: Sequence[Sequence[Any]]) -> Sequence[int]:
    """Return the places of numbers in the order of `ChartOptions.arrange`.

    Args:
        keys: Of each number, as people read them.

    >>> in_order("largest", [1, 3, None], [["b"], ["a"], [10]]), in_order("label", [1, 3, 2], [["b"], ["a"], [None]])
    ([1, 0, 2], [1, 0, 2])
    """
    places = range(len(numbers))
    if arrange == "released":
        return places
    if arrange == "label":
        return sorted(places, key=lambda place: [_sortable(key) for key in keys[place]])
    return sorted(places, key=lambda place: numbers[place] or 0, reverse=arrange == "largest")


def axes_of(keys: Sequence[str], options: ChartOptions) -> Sequence[str]:
    """Return the keys as a chart has them: the axis, the colour, and those that are joined to the axis.

    Raises:
        InvalidParameter: If the options name a key that is not there.
    """
    options.check_keys(tuple(keys))
    first = options.x or next((key for key in keys if key != options.colour), None)
    return list(dict.fromkeys(key for key in (first, options.colour, *keys) if key is not None))


def places_of(
    rows: Sequence[Mapping[str, Any]], name: str, keys: Sequence[str], options: ChartOptions
) -> Sequence[int]:
    """Return the places of rows in the order that the options want for a column of numbers."""
    numbers = [None if row[name] is None else float(row[name]) for row in rows]
    return in_order(options.arrange, numbers, [[row[key] for key in keys] for row in rows])


def _sortable(value: Any) -> tuple[bool, float, str]:
    number = float(value) if isinstance(value, int | float | Decimal) else None
    return value is None, number or 0.0, "" if number is not None else plain(value)


def _number(text: str) -> float:
    try:
        return float(with_point(text)) if len(text) <= LONGEST_NUMBER else float("nan")
    except ValueError:
        raise InvalidParameter("A reference line is at a number, such as 100.") from None
