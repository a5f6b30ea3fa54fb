"""The types of parameters that neither the client nor a cast declares: a parameter has the type of a column beside it.

PostgreSQL infers them. Drivers such as pg8000 and ODBC rely on that, and send a number as a text without a type.
"""

from collections.abc import Iterable, Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lapwing.server.pgwire import values
from lapwing.server.pgwire.catalog_facts import type_of
from lapwing.server.pgwire.catalog_limits import NotAnswered, require_flat
from lapwing.tables.tables import ColumnDescription


def column_types(columns: Iterable[ColumnDescription]) -> dict[str, int]:
    """Return the types of columns by name, where all columns of a name have the same."""
    types: dict[str, set[int]] = {}
    for column in columns:
        types.setdefault(column.name.lower(), set()).add(type_of(column))
    return {name: next(iter(known)) for name, known in types.items() if len(known) == 1}


def inferred(text: str, types: Sequence[int], columns: Mapping[str, int]) -> tuple[int, ...]:
    """Return the types of the parameters of a query.

    Args:
        types: Those that are declared; 0 for none.
        columns: The types of the columns that a query may name.
    """
    found = list(types)
    try:
        require_flat(sqlglot.tokenize(text, read="postgres"))
        tree = sqlglot.parse_one(text, read="postgres")
    except (SqlglotError, RecursionError, NotAnswered):
        return as_texts(types)
    for parameter in tree.find_all(exp.Parameter):
        number = int(parameter.name[:6]) if parameter.name.isdecimal() else 0
        if 0 < number <= len(found) and not found[number - 1]:
            found[number - 1] = _beside(parameter, columns)
    return as_texts(found)


def as_texts(types: Sequence[int]) -> tuple[int, ...]:
    """Return types in which a parameter without one is a text."""
    return tuple(type_ or values.TEXT_TYPE for type_ in types)


def _beside(parameter: exp.Parameter, columns: Mapping[str, int]) -> int:
    """Return the type of what a parameter is compared or computed with; 0 if it is not known."""
    outer = parameter.parent
    while isinstance(outer, exp.Paren | exp.Neg):
        outer = outer.parent
    if isinstance(outer, exp.Limit | exp.Offset):
        return values.INT8
    if not isinstance(outer, exp.Binary | exp.Between | exp.In):
        return 0
    beside = {
        columns.get(expression.name.lower(), 0)
        for expression in outer.iter_expressions()
        if isinstance(expression, exp.Column)
    }
    return beside.pop() if len(beside) == 1 else 0
