"""Where the true values of an answer are: the ends of an interval in every row, of every noisy column.

An interval follows from the noise's law alone, so it may be asked for at any confidence, at no price.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from lapwing.answer.joint_margins import joint_margins
from lapwing.answer.joint_numbers import joint_numbers
from lapwing.answer.presentation import EndArray, ends_shown
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.noise_above import NoiseAboveThreshold
from lapwing.query.derivation.columns import NUMERIC, TEMPORAL
from lapwing.query.derivation.derive import FunctionValue, rests_on_ends
from lapwing.query.derivation.derived import MeasureValue, NoisyCells, measures_of, parts_of
from lapwing.query.derivation.node import Derived, Output
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.measures.measures import Measure


def intervals_of(
    outputs: Sequence[Output], rows: NoisyCells, mechanisms: Mapping[Measure, NoiseLaw], confidence: Fraction
) -> dict[str, tuple[EndArray, EndArray]]:
    """Return the ends of the intervals of every noisy column, by its name."""
    return {output.name: _ends(output, rows, mechanisms, confidence) for output in outputs if _is_noisy(output)}


def _ends(
    output: Output, rows: NoisyCells, mechanisms: Mapping[Measure, NoiseLaw], confidence: Fraction
) -> tuple[EndArray, EndArray]:
    value = output.value
    law = mechanisms[value.measure] if isinstance(value, MeasureValue) else None
    if isinstance(value, MeasureValue) and isinstance(law, NoiseAboveThreshold):  # given that it is shown
        least, most = law.ends(rows.measures[value.measure], confidence)
        return ends_shown(least.astype(np.float64), value.shape), ends_shown(most.astype(np.float64), value.shape)
    interval = value.interval(rows, margins_of(value, mechanisms, confidence))
    unknown = np.full(rows.size, np.nan)
    low, high = (unknown, unknown) if interval is None else (end.floats(rows.size) for end in interval)
    return ends_shown(low, value.shape), ends_shown(high, value.shape)


def margins_of(
    value: Derived, mechanisms: Mapping[Measure, NoiseLaw], confidence: Fraction
) -> Mapping[Measure, Fraction]:
    """Return margins within which all that a value rests on is at once with this confidence."""
    joint = joint_margins(value, mechanisms, confidence)
    if joint is None and isinstance(value, FunctionValue):
        joint = joint_numbers(value, mechanisms, confidence)
    if joint is not None:
        return joint
    parts = parts_of(value)  # else each has a part of the chance: a union bound
    chance = (1 - confidence) / max(1, len(parts))  # a key rests on nothing
    margins: dict[Measure, Fraction] = {}
    for part in parts:
        if isinstance(part, OrderStatistic):
            margins[part.distribution] = chance
        elif part not in mechanisms:  # a column of another answer, which has its own (`source_values`)
            margins[part] = chance
        else:
            margins[part] = mechanisms[part].half_width(1 - chance) * part.step
    return margins


def _is_noisy(output: Output) -> bool:
    """Tell whether a column is a noisy number, or a time that stands for one, which hides a true one."""
    value = output.value
    return value.shape in (*NUMERIC, *TEMPORAL) and bool(measures_of(value)) and not rests_on_ends(value)
