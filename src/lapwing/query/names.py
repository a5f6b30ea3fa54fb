"""Names of measures for people."""

from lapwing.query.derived import Average, OrderStatistic, Released
from lapwing.query.measures import Measure
from lapwing.query.plan import Plan


def measure_names(plan: Plan) -> dict[Measure, str]:
    """Name every measure: by the column that is nothing else, or as its part of a column."""
    names: dict[Measure, str] = {}
    for output in plan.outputs:
        match output.value:
            case Released(measure=measure):
                names[measure] = output.name
            case Average(total=total, count=count):
                names.setdefault(total, f"sum of {output.name}")
                names.setdefault(count, f"count of {output.name}")
            case OrderStatistic(distribution=distribution):
                names.setdefault(distribution, f"ranks of {output.name}")
    for number, measure in enumerate(plan.question.measures, start=1):
        names.setdefault(measure, f"measure {number}")
    return names
