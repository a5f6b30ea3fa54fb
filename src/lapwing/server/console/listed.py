"""Lists of values, written in fields of forms."""

import csv
from collections.abc import Iterable


def listed(values: Iterable[str]) -> str:
    """Write values as a list with commas, in quotes where one has a comma or a quote.

    >>> listed(["-99", "k, A"])
    '-99, "k, A"'
    """
    quoted = (f'"{value.replace(chr(34), 2 * chr(34))}"' if set(value) & set(',"') else value for value in values)
    return ", ".join(quoted)


def read_list(text: str) -> list[str]:
    """Return the values of a list with commas, in quotes where one holds a comma.

    >>> read_list('a, b,"c, d"')
    ['a', 'b', 'c, d']
    """
    return [value.strip() for value in next(csv.reader([" ".join(text.splitlines())], skipinitialspace=True))]
