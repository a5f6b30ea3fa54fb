"""The questions whose answers give the bounds that another question leaves open."""

from lapwing.query.aggregates.group_by import Sets
from lapwing.query.aggregates.scope import Requests
from lapwing.query.aggregates.truncation import threshold_search
from lapwing.query.aggregates.unit_totals import name_of_total, unit_total_searches
from lapwing.query.expressions.expression import require_bounded
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.plan.plan import Question, without_unread
from lapwing.query.plan.search import Search
from lapwing.query.relations.relation import FilteredRows, units_of_row


def searches_for(requests: Requests, selection: FilteredRows, sets: Sets) -> tuple[Search, ...]:
    """Return the questions that find bounds: of values over the same rows, whatever their keys, then of totals."""
    require_bounded(measure.argument for measure in requests.value_searches)
    values = [
        Search(
            question=Question(selection=without_unread(selection, (), (measure,)), keys=(), measures=(measure,)),
            magnitudes=magnitudes,
            name=name,
        )
        for measure, (magnitudes, name) in sorted(requests.value_searches.items(), key=lambda pair: str(pair[0]))
    ]
    totals = sorted(requests.total_searches, key=str)
    units = units_of_row(selection.relation)
    if units == 1:
        return (*values, *unit_total_searches(totals, selection, sets))
    return (*values, *(_threshold_search(total, selection, sets, units) for total in totals))


def _threshold_search(total: Count | Sum, selection: FilteredRows, sets: Sets, units: int) -> Search:
    """Return the question for a truncation threshold, where several units share a row."""
    (keys,) = sets
    return threshold_search(total, without_unread(selection, keys, (total,)), keys, name_of_total(total), units)
