"""Columns of a table as numbers from −1 to 1, or 0 and 1: by the catalog, or by figures that were released before.

Theory of operation. What a row becomes depends on that row and on public figures alone, so that it changes nothing of
how far one unit reaches. The bounds of a number are those of the catalog, or those that a `StandardScaler` released;
never anything that is looked up in the rows. A row with NULL in a column that is used does not exist for the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.catalog.model import Catalog, Column, Table
from lapwing.catalog.spelling import text as spelled
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler

Floats = NDArray[np.float64]
Category = str | int | bool
MOST_CATEGORIES: Final = 1_000


class _Frame(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


Data = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]] | _Frame
"""Public rows: a list of dicts, or anything that has its columns by name (a dict of lists, a data frame, Arrow)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One number that a model sees of a row.

    A number x of a column is (x − centre)/spread, where x is kept between centre − spread and centre + spread; of a
    column of categories it is 1 in the rows that have the category, else 0.

    Args:
        column: Its name in the catalog.
        step: Of its values, if they are numbers.
    """

    column: str
    category: Category | None = None
    centre: Fraction = Fraction(0)
    spread: Fraction = Fraction(1)
    step: Fraction = Fraction(1)
    lower: Fraction = Fraction(0)
    upper: Fraction = Fraction(1)

    @property
    def name(self) -> str:
        """What the model calls it: the column's name, with the category if it is one."""
        return self.column if self.category is None else f"{self.column}={_shown(self.category)}"

    @property
    def sql(self) -> str:
        """An expression over a row, in units of the data from the centre, bounded by `spread`; or 1 and 0."""
        name = quoted(self.column)
        if self.category is not None:
            return f"CASE WHEN {is_category(self.column, self.category)} THEN 1 ELSE 0 END"
        low, high = self.centre - self.spread, self.centre + self.spread
        kept = name
        if low > self.lower:
            kept = f"GREATEST({kept}, {decimal(low)})"
        if high < self.upper:
            kept = f"LEAST({kept}, {decimal(high)})"
        return kept if self.centre == 0 else f"({kept} - {decimal(self.centre)})"

    def of(self, values: Sequence[Any]) -> Floats:
        """Return what the model sees of public values.

        Raises:
            InvalidParameter: For NULL, or what is no number.
        """
        if self.category is not None:
            return np.array([float(value == self.category) for value in values], dtype=np.float64)
        try:
            numbers = np.array([float(value) for value in values], dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter(
                f"Column {spelled(self.column)} has a value that is not a number; leave such rows out."
            ) from None
        if np.isnan(numbers).any():
            raise InvalidParameter(f"Column {spelled(self.column)} holds NaN; leave such rows out.")
        scaled = (numbers - float(self.centre)) / float(self.spread)
        return cast(Floats, np.clip(scaled, -1.0, 1.0))


def features_of(
    table: Table,
    names: Sequence[str],
    *,
    scaler: "StandardScaler | None" = None,
    categories: Sequence[str] = (),
    all_categories: bool = False,
) -> tuple[Feature, ...]:
    """Return what a model sees of columns: numbers with bounds as one feature each, others as one for each category.

    The first category has none, unless the column has `other`: rows of it are where all other features are 0.

    Args:
        names: Of columns.
        scaler: By whose figures numbers are centred and scaled, instead of the catalog's bounds.
        categories: Which numbers with `values` are categories too.
        all_categories: Whether the first value has a feature too.

    Raises:
        InvalidParameter: For a column that the catalog does not have, or neither bounds nor lists values of.
    """
    if isinstance(names, str) or not names or len(set(names)) != len(names):
        raise InvalidParameter(
            f"The features are {names!r:.80}; give a list of columns, each once. Nothing was charged."
        )
    if set(categories) - set(names):
        raise InvalidParameter(f"{sorted(set(categories) - set(names))} are not features. Nothing was charged.")
    found: list[Feature] = []
    for name in names:
        column = column_of(table, name)
        if column.numeric and column.bounded and name not in categories:
            found.append(number_of(column, scaler))
        else:
            values = values_of(column)
            # Without `other` the first value is where all others are 0; with it, that is what is none of the values.
            first = 0 if all_categories or column.other is not None else 1
            found += [Feature(column=name, category=value) for value in values[first:]]
    return tuple(found)


def column_of(table: Table, name: str) -> Column:
    """Return a column by name.

    Raises:
        InvalidParameter: If the catalog has none of that name.
    """
    column = table.column(name) if isinstance(name, str) else None
    if column is None:
        there = ", ".join(column.name for column in table.columns)
        raise InvalidParameter(f"{name!r:.60} is not a column of {table.name}, which has {there}. Nothing was charged.")
    return column


def number_of(column: Column, scaler: "StandardScaler | None" = None) -> Feature:
    """Return a bounded column of numbers, between its bounds or around what a scaler released."""
    if not (column.numeric and column.bounded) or column.step is None:
        raise InvalidParameter(
            f"Column {spelled(column.name)} has no bounds. Ask the curator to declare them in the catalog. Nothing was "
            f"charged."
        )
    lower, upper = column.low * column.step, column.high * column.step
    if lower == upper:
        raise InvalidParameter(f"Column {spelled(column.name)} has only one value; leave it out. Nothing was charged.")
    steps = column.steps // 2
    centre = lower + steps * column.step  # a value that the column can have, so that differences are whole steps
    spread = max(upper - centre, centre - lower)
    if scaler is not None:
        centre, spread = scaler.window(column, centre, spread)
    return Feature(column=column.name, centre=centre, spread=spread, step=column.step, lower=lower, upper=upper)


def values_of(column: Column) -> tuple[Category, ...]:
    """Return the public values of a column of categories, without `other`, which none of them is."""
    values = tuple(value for value in column.values or () if isinstance(value, str | int))
    if len(values) < (1 if column.other else 2) or len(values) > MOST_CATEGORIES:
        raise InvalidParameter(
            f"Column {spelled(column.name)} has neither bounds nor two to {MOST_CATEGORIES:,} listed values in the "
            "catalog. Ask the curator to declare bounds or values. Nothing was charged."
        )
    return values


def table_of(catalog: Catalog, name: str) -> Table:
    """Return a protected table by name.

    Raises:
        InvalidParameter: If there is none.
    """
    for table in catalog.tables:
        if table.name == name:
            return table
    there = ", ".join(table.name for table in catalog.tables)
    raise InvalidParameter(
        f"{name!r:.60} is not a protected table; the protected tables are {there}. Nothing was charged."
    )


def matrix_of(features: Sequence[Feature], data: Data) -> Floats:
    """Return public rows as a model sees them, a row each.

    Raises:
        InvalidParameter: If a column is missing, or holds what is no value of it.
    """
    columns = {feature.column: column_in(data, feature.column) for feature in features}
    return np.column_stack([feature.of(columns[feature.column]) for feature in features])


def column_in(data: Data, name: str) -> list[Any]:
    """Return a column of public rows as a list.

    Raises:
        InvalidParameter: If it is not there.
    """
    try:
        found = [row[name] for row in data] if isinstance(data, list | tuple) else data[name]  # type: ignore[call-overload]
    except (KeyError, TypeError, IndexError):
        raise InvalidParameter(f"The rows have no column {spelled(name)}.") from None
    return list(found.to_pylist() if hasattr(found, "to_pylist") else found)


# ---- SQL -------------------------------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """Quote a name."""
    return '"' + name.replace('"', '""') + '"'


def decimal(value: Fraction) -> str:
    """Write a number; all that are written are steps of a column, hence finite decimals, or were made so.

    Raises:
        InvalidParameter: For one that has no end.
    """
    for places in range(61):
        if (value * 10**places).denominator == 1:
            digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
            shown = f"{digits[:-places]}.{digits[-places:]}" if places else digits
            return f"(-{shown})" if value < 0 else shown
    raise InvalidParameter(
        f"{value} is not a finite decimal. Ask the curator to give the column a step that is one. Nothing was charged."
    )


def is_category(column: str, category: Category) -> str:
    """Return the condition that a column has a value."""
    if isinstance(category, bool):
        return quoted(column) if category else f"NOT {quoted(column)}"
    return f"{quoted(column)} = {constant(category)}"


def constant(value: Category) -> str:
    """Write a listed value."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def complete_rows(columns: Sequence[str], where: str | None) -> str:
    """Return a WHERE clause that keeps the rows which have a value in every column."""
    conditions = [f"{quoted(name)} IS NOT NULL" for name in dict.fromkeys(columns)]
    return f"WHERE {' AND '.join([*conditions, *([] if where is None else [f'({where})'])])}"


def _shown(category: Category) -> str:
    return ("true" if category else "false") if isinstance(category, bool) else str(category)
