"""What a question says about its own privacy: how much of a unit may count, and the price.

`max_rows_contributed` and `max_groups_contributed` bound the rows or groups of each unit, after WHERE.
`contribution_bounds_per_row` clamps each value before it is aggregated; `contribution_bounds_per_group` clamps what all
rows of a unit together add to a group. All are public facts of the question, from which sensitivities follow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import arithmetic, conversion, logic
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.rows import RowScope
from lapwing.query.measures.measures import Count, Key, Measure, Sum
from lapwing.query.relations.per_unit import FirstGroups, FirstRows
from lapwing.query.relations.relation import FilteredRows, table_of
from lapwing.query.text.privacy_options import NamedArguments, PrivacyOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonShare:
    """An epsilon that an aggregate may take, and among how many measures it is divided evenly."""

    epsilon: Fraction
    among: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRequest:
    """What a question says about its own price: None where it leaves that to the caller.

    Args:
        shares: What each measure may take, where its aggregate says so.
        selection: The same of the choice of private keys.
        weights: The part of the rest that a measure gets, where that is not 1.
        numbers: Whether noise is added to numbers even where a choice would err less (`query.choices`), as several
            plans read them.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    shares: Mapping[Measure, EpsilonShare] = field(default_factory=dict)
    selection: Fraction | None = None
    weights: Mapping[Measure, Fraction] = field(default_factory=dict)
    numbers: bool = False


def with_limits(selection: FilteredRows, keys: Sequence[Key], options: PrivacyOptions) -> FilteredRows:
    """Return a selection of which each unit has as much as a question's options allow.

    Of a unit's rows the limit is kept first, and of what is left the one of its groups: each keeps rows by the unit's
    own (`relations.per_unit`), so that both do.
    """
    most_rows, most_groups = options.max_rows_contributed, options.max_groups_contributed
    if most_rows is not None and most_rows < selection.rows_per_unit:
        _require_marked(selection, options, "max_rows_contributed")
        selection = FilteredRows(relation=FirstRows(source=selection, most=most_rows))
    if most_groups is not None and most_groups < selection.rows_per_unit and keys:
        _require_marked(selection, options, "max_groups_contributed")
        selection = FilteredRows(relation=FirstGroups(source=selection, keys=tuple(keys), most=most_groups))
    return selection


def _require_marked(selection: FilteredRows, options: PrivacyOptions, name: str) -> None:
    if table_of(selection.relation).unit_is_row:
        reason = "Each row is protected by itself, and Lapwing cannot tell which rows of a join or union come from one"
        raise _refused(options, name, RefusalCause.INAPPLICABLE_OPTION, reason, "Leave it out, or join and unite less.")


def check_options(options: PrivacyOptions, keys: Sequence[Key], rows: RowScope) -> None:
    """Refuse options that do not fit the question."""
    column = options.privacy_unit_column
    if column is not None:
        table, name = column[:-1], exp.to_identifier(column[-1].text, quoted=column[-1].quoted)
        named = exp.Column(this=name, table=exp.to_identifier(table[0].text, quoted=table[0].quoted) if table else None)
        if not rows.is_unit(named):
            reason = f"'{column[-1].text}' is not the privacy unit"
            remedy = (
                f"It is {rows.unit}; leave the option out."
                if rows.unit
                else "Each row is protected by itself, or a subquery hides the column; leave the option out."
            )
            raise _refused(options, "privacy_unit_column", RefusalCause.INVALID_OPTION, reason, remedy)
    private = [key for key in keys if key.private]
    if options.group_selection_strategy == "PUBLIC_GROUPS" and private:
        names = ", ".join(key.name for key in private)
        raise _refused(
            options,
            "group_selection_strategy",
            RefusalCause.VALUES_NOT_PUBLIC,
            f"The values of {names} are not public",
            "Join a public table that has them.",
            "declare the values in the catalog, if they are public",
        )
    if options.min_privacy_units_per_group is not None and not private:
        raise _refused(
            options,
            "min_privacy_units_per_group",
            RefusalCause.INAPPLICABLE_OPTION,
            "A result with public keys shows every group, of any size",
            f"Use HAVING {f'COUNT(DISTINCT {rows.unit})' if rows.unit else 'COUNT(*)'} >= 10 on the released count.",
        )
    if options.group_selection_epsilon is not None and not private:
        raise _refused(
            options,
            "group_selection_epsilon",
            RefusalCause.INAPPLICABLE_OPTION,
            "The query has no private keys to choose",
            "Leave it out.",
        )


def per_row(argument: Expression, named: NamedArguments | None) -> Expression:
    """Return a value clamped to what an aggregate says of its rows; NULL stays NULL."""
    if named is None or named.contribution_bounds_per_row is None:
        return argument
    if isinstance(named.contribution_bounds_per_row, str):
        raise QueryRefused(
            "This aggregate needs numbers for its contribution bounds",
            cause=RefusalCause.INVALID_BOUNDS,
            remedy="Write (0, 100).",
        )
    return kept_inside(argument, named.contribution_bounds_per_row)


def kept_inside(argument: Expression, bounds: tuple[Fraction, Fraction]) -> Expression:
    """Return a value clamped to bounds; NULL stays NULL."""
    low, high = map(conversion.number, bounds)
    inside = arithmetic.smallest(arithmetic.largest(argument, low), high)
    if not conversion.nullable(argument):
        return inside
    return logic.case([logic.is_null(argument)], [logic.NULL_LITERAL], inside)


def per_group(measure: Count | Sum, named: NamedArguments | None) -> Count | Sum:
    """Return a measure that clamps what a unit adds to a group to what an aggregate says."""
    if named is None or named.contribution_bounds_per_group is None:
        return measure
    if isinstance(named.contribution_bounds_per_group, str):
        raise QueryRefused(
            "This aggregate needs numbers for its contribution bounds",
            cause=RefusalCause.INVALID_BOUNDS,
            remedy="Write (0, 100).",
        )
    low, high = (end / measure.step for end in named.contribution_bounds_per_group)
    clamp = (ceil(low), floor(high))
    if clamp[0] > clamp[1]:
        raise QueryRefused(
            "No value lies between the contribution bounds", cause=RefusalCause.INVALID_BOUNDS, remedy="Widen them."
        )
    return replace(measure, clamp=clamp)


def require_units(selection: FilteredRows) -> None:
    """Refuse to bound what a unit adds in all where rows are units: what a join makes of one bears no mark of it."""
    if table_of(selection.relation).unit_is_row:
        raise QueryRefused(
            "Each row is protected by itself, and adds one value to one group",
            cause=RefusalCause.INAPPLICABLE_OPTION,
            remedy="Write contribution_bounds_per_row.",
        )


def _refused(
    options: PrivacyOptions, name: str, cause: RefusalCause, reason: str, remedy: str, curator_remedy: str = ""
) -> QueryRefused:
    position = options.positions.get(name)
    return QueryRefused(reason, cause=cause, remedy=remedy, curator_remedy=curator_remedy, position=position)
