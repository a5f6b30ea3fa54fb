"""Toasts: what a page says of what was just done, and a button that undoes it.

The store has a toast with the session, and no address has it. So no link can make a page claim that something was
done, or offer a button that does something else.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, final

LONGEST_NAME: Final = 60


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Toast:
    """A message about a change, for the next page.

    Args:
        at: The address of the page that shows it.
        text: One or two sentences.
        action: Where the form that undoes it is sent; empty if nothing undoes it.
        fields: Of that form.
    """

    at: str
    text: str
    action: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def stored(self) -> str:
        """The toast, written in JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, stored: str | None) -> "Toast | None":
        """Return the toast of a session, if it has one.

        >>> Toast.read(Toast(at="/console", text="Removed.").stored).text
        'Removed.'
        """
        return None if stored is None else cls(**json.loads(stored))


def named(name: str) -> str:
    """Return a name in quotation marks, shortened if it is long.

    >>> named("by plan"), named("x" * 80)[-3:]
    ('“by plan”', 'x…”')
    """
    return f"“{name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + '…'}”"
