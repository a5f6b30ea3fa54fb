"""Reasons that people write for others to read: for access, for a decision, for a stop."""

import unicodedata
from typing import Annotated, Final

from pydantic import Field

from lapwing.catalog.spelling import is_seen
from lapwing.errors import InvalidParameter
from lapwing.server.bodies import Text
from lapwing.server.faulty_field import at_field

LONGEST_REASON: Final = 500
"""Characters."""
_VISIBLE: Final = "\n\u200c\u200d"
"""Characters of a reason that are not printable: line ends, and the joiners that some scripts and emoji need."""
Reason = Annotated[Text, Field(min_length=1, max_length=2 * LONGEST_REASON)]


def checked_text(text: str, field: str) -> str:
    r"""Return a reason without blanks at its ends.

    Raises:
        InvalidParameter: If it is empty, too long, or has characters that nobody sees.

    >>> checked_text(" for the report\r\non wards ", "reason")
    'for the report\non wards'
    """
    text = text.replace("\r\n", "\n").strip()
    if not 0 < len(text) <= LONGEST_REASON:
        raise at_field(field, InvalidParameter(f"A reason has from 1 to {LONGEST_REASON} characters."))
    hidden = [one for one in text if not (is_seen(one) or one in _VISIBLE)]
    if hidden:
        name = unicodedata.name(hidden[0], f"U+{ord(hidden[0]):04X}")
        raise at_field(field, InvalidParameter(f"The reason has a character that nobody sees ({name}). Remove it."))
    return text
