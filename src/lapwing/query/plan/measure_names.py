"""Names of measures for people."""

from lapwing.catalog.protection import noun_of, units_of
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import MeasureValue, measures_of
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.expressions.expression import Expression, Literal, Operation, written_in
from lapwing.query.measures.measures import Measure, argument_of
from lapwing.query.plan.plan import Plan


def measure_names(plan: Plan) -> dict[Measure, str]:
    """Name every measure: by the column that is nothing else, as its part of a column, or by what it is of."""
    names: dict[Measure, str] = {}
    for output in plan.outputs:
        match output.value:
            case MeasureValue(measure=measure):
                names[measure] = output.name
            case Average(total=total, count=count):
                names.setdefault(total, f"sum of {output.name}")
                names.setdefault(count, f"count of {output.name}")
            case KnownMean(total=total):
                names.setdefault(total, f"sum of {output.name}")
            case OrderStatistic(distribution=distribution):
                names.setdefault(distribution, f"ranks of {output.name}")
    shown = [measure for output in plan.outputs for measure in measures_of(output.value)]
    noun, whose = noun_of(plan.question.lineage), units_of(plan.question.lineage)
    for measure in (*shown, *plan.question.measures):  # those that only sort or filter come last
        if measure not in names:
            names[measure] = _free(_described(measure, noun, whose), set(names.values()))
    return names


def _described(measure: Measure, noun: str, whose: str) -> str:
    """Say what is counted or summed, by the columns of the value, or by whom the tables protect if it has none."""
    argument = argument_of(measure)
    value = None if argument is None else _value(argument)
    columns = noun if argument is None else " and ".join(sorted(written_in(value)))
    name = measure.label(columns, _factors(value))
    if measure.clamp is None:
        return name
    low, high = (float(end * measure.step) for end in measure.clamp)
    return f"{name}, {low:,.10g} to {high:,.10g} for {whose}"


def _value(argument: Expression) -> Expression:
    """Return what is left of an argument without its conditions and roundings."""
    match argument:
        case Operation(function="round_to" | "to_fixed" | "rescale", arguments=(inner, *_)):
            return _value(inner)
        case Operation(function="case", arguments=(_, Literal(value=None), inner)):
            return _value(inner)
        case Operation(function="case", arguments=(_, inner, Literal(value=None))):
            return _value(inner)
    return argument


def _factors(value: Expression | None) -> str:
    """Tell sums of squares and of products from others."""
    if not isinstance(value, Operation) or value.function != "multiply":
        return ""
    return "squares of " if value.arguments[0] == value.arguments[1] else "products of "


def _free(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name} ({number})", number + 1
    return candidate
