"""What was typed for a question, kept with its charge for people to read. It decides nothing.

A charge also has the canonical plan, which says what was computed, and which names the question for the ledger.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, final

from lapwing.errors import InvalidParameter

LONGEST_LABEL: Final = 200
"""Characters."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A question in the words of who asked it.

    Args:
        text: In SQL.
        parameters: Beside it, in order or by name; what JSON has no form for is a text.
        label: What the asker calls the question, or wants it for.
        first: Whether the charge is for limits or constants that the question needs before it can be asked.
    """

    text: str
    parameters: tuple[object, ...] | Mapping[str, object] = ()
    label: str | None = None
    first: bool = False

    def __str__(self) -> str:
        given = self.parameters
        named = given.items() if isinstance(given, Mapping) else enumerate(given, 1)
        mark = "$" if isinstance(given, Mapping) else "?"
        values = ", ".join(f"{mark}{key} = {value!r}" for key, value in named)
        label = "" if self.label is None else f"{self.label}: "
        return f"{label}{' '.join(self.text.split())}" + (f" with {values}" if values else "")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read the record of a charge (`release.stored.wording_of`)."""
        given = record.get("parameters", ())
        parameters = given if isinstance(given, Mapping) else tuple(given)
        return cls(
            text=record["text"], parameters=parameters, label=record.get("label"), first=bool(record.get("first"))
        )


def require_label(label: str) -> None:
    """Refuse a label that no line of a history can show."""
    if not isinstance(label, str) or not 1 <= len(label) <= LONGEST_LABEL or not label.isprintable():
        shown = repr(label)[:60]
        raise InvalidParameter(
            f"The label {shown} is not allowed; write one line of 1 to {LONGEST_LABEL} printable characters. "
            "Nothing was charged."
        )
