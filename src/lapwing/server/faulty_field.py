"""Which field of a request an error is about, so that a form shows the error there.

Texts are for people, and no code reads them. So who raises an error about one field names the field.
"""

from typing import Final, TypeVar

from lapwing.errors import LapwingError

E = TypeVar("E", bound=LapwingError)
_FIELD: Final = "field"


def at_field(field: str, error: E) -> E:
    """Return an error that names the field of the request's body that is at fault.

    >>> from lapwing.errors import InvalidParameter
    >>> field_of(at_field("days", InvalidParameter("A token lasts at least a day."))), field_of(InvalidParameter())
    ('days', None)
    """
    error.__dict__[_FIELD] = field
    return error


def field_of(error: LapwingError) -> str | None:
    """Return the field that an error names; None if it names none."""
    field: str | None = error.__dict__.get(_FIELD)
    return field
