"""Whole numbers and lists as options of a command: what is out of range is refused by the option's name."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.local.client import MOST_VALUES


def check_whole(option: str, value: int, least: int, most: int | None = None) -> None:
    """Refuse a whole number out of its range.

    Raises: InvalidParameter, with the option and the range.
    """
    if value < least or (most is not None and value > most):
        allowed = f"from {least:,} to {most:,}" if most is not None else f"{least:,} or more"
        raise InvalidParameter(f"{option} is {value:,}; it must be {allowed}.")


def check_values(option: str, values: Sequence[str]) -> None:
    """Refuse a list of one value, of too many, or with two the same.

    Raises: InvalidParameter, with the option and what is allowed.
    """
    if not 2 <= len(values) <= MOST_VALUES or len(set(values)) < len(values):
        said = "one value" if len(values) == 1 else f"{len(values):,} values, {len(set(values)):,} of them different"
        raise InvalidParameter(f"{option} gives {said}; give 2 to {MOST_VALUES:,}, no two the same.")


def check_unused(given: Mapping[str, bool], where: str) -> None:
    """Refuse options that would be ignored.

    Args: given: whether each was given, or is not what it is by default. where: where they mean nothing.
    Raises: InvalidParameter, with the first.
    """
    for option, present in given.items():
        if present:
            raise InvalidParameter(f"{option} means nothing {where}; leave it out.")


def check_less(option: str, value: Fraction, other: str, limit: Fraction) -> None:
    """Refuse a loss of one report that is not below that of all.

    Raises: InvalidParameter, with both options.
    """
    if value >= limit:
        raise InvalidParameter(
            f"{option} is {in_decimals(value)} and {other} is {in_decimals(limit)}; one report must lose less than all."
        )


def in_decimals(amount: Fraction | Decimal) -> str:
    """Return an amount as people write it, not as a fraction."""
    return f"{float(amount):g}"
