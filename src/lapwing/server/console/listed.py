"""Lists of values, written in fields of forms."""

from collections.abc import Iterable


def listed(values: Iterable[str]) -> str:
    """Write values as a list with commas, in quotes where one has a comma or a quote.

    >>> listed(["-99", "k, A"])
    '-99, "k, A"'
    """
    quoted = (f'"{value.replace(chr(34), 2 * chr(34))}"' if set(value) & set(',"') else value for value in values)
    return ", ".join(quoted)
