"""Bounds of a public number, from the least and the greatest value that the data have."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from lapwing.catalog.column import FLOAT_STEPS, Column
from lapwing.errors import CatalogError

FINEST = Fraction(1, 2**60)  # has as many decimal places as a catalog's number may have
EXACT_STEPS = 2**51  # from 0 to a float's bound, or up to twice as many: a double holds these and their halves


def completed(column: Column, least: Fraction, greatest: Fraction) -> Column:
    """Return a number of a public table with the bounds of its data, as though the curator had written them.

    They are whole steps, and no value lies outside them, so that clamping to them moves nothing but infinities. An
    integer has steps of 1. A float has a power of two, such that there are at least 2^20 steps between the bounds, or
    as many as are exact. Values that the catalog lists stay inside the bounds, and so do they inside the declared ones.

    Args: column: a numeric column. least, greatest: of its finite values; where the catalog has bounds, of the values
            after cleaning by these.

    Returns: the column with bounds, or as it is where they have more digits or more steps than a catalog can hold.
    """
    listed = [Fraction(value) for value in column.values or () if isinstance(value, int)]
    low, high = min(least, *listed, greatest), max(least, *listed, greatest)
    if column.bounded:
        return replace(column, lower=low, upper=high)
    step = column.step or (Fraction(1) if column.type == "integer" else float_step(low, high))
    try:
        return replace(column, lower=floor(low / step) * step, upper=ceil(high / step) * step, step=step)
    except CatalogError:
        return column


def float_step(low: Fraction, high: Fraction) -> Fraction:
    """Return a power of two: fine for the range, and coarse enough for the bounds to be exact in steps."""
    width, size = high - low, max(abs(low), abs(high))
    fine = _power_of_two(width / FLOAT_STEPS) if width else FINEST
    exact = _power_of_two(size / EXACT_STEPS) if size else Fraction(1)
    return max(fine, exact, FINEST)


def _power_of_two(value: Fraction) -> Fraction:
    """Return the greatest power of two that is not above a positive value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= value else power / 2
