"""The third stage: what a SELECT is (parse → normalise → classify → bind). What is done with it follows from that."""

from enum import Enum
from typing import Final

from sqlglot import exp

from lapwing.query.classify.asked_constants import has_constants
from lapwing.query.classify.inner_select import inside
from lapwing.query.classify.kinds import Kinds, RelationKind, stands_in_from
from lapwing.query.classify.released_joins import released_joins
from lapwing.query.classify.scalar_subqueries import around_answer, scalars_in
from lapwing.query.from_clause.common_tables import queries_inside
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.scope import Scope

_SETS: Final = (exp.GroupingSets, exp.Rollup, exp.Cube)


class SelectKind(Enum):
    """What a SELECT is over, and so how it is bound."""

    OVER_ROWS = "rows"
    """Of one unit each or of several; about units, where a SELECT inside has one row of each."""
    OVER_RESULT = "the answer to one question"
    OVER_RESULTS = "the answers to several questions, or public rows beside one"
    SETS_OF_RESULTS = "answers, in grouping sets"
    BESIDE_AGGREGATES = "rows, and numbers that are asked for beside its aggregates"
    OVER_PUBLIC_ROWS = "only public rows or constants, or such with numbers that are asked for beside them"
    WITH_CONSTANTS = "rows or an answer, by numbers or lists that are asked for first"


def kind_of(select: exp.Select, kinds: Kinds, within: Scope) -> SelectKind:
    """Return what a SELECT is."""
    queries = queries_inside(select)
    in_from = kinds.in_from(select)
    public = {RelationKind.PUBLIC, RelationKind.CONSTANTS}.issuperset(in_from) and (
        bool(in_from) or _is_of_nothing(select)
    )
    if public and _has_sets(select):
        return SelectKind.SETS_OF_RESULTS
    if not queries:
        return SelectKind.OVER_PUBLIC_ROWS if public else SelectKind.OVER_ROWS
    if RelationKind.RELEASED in in_from:
        if RelationKind.PROTECTED not in in_from:
            return _over_answers(select, kinds, within)
        return SelectKind.WITH_CONSTANTS if released_joins(select, kinds, within) else SelectKind.OVER_ROWS
    if all(map(stands_in_from, queries)):
        return SelectKind.OVER_PUBLIC_ROWS if public else SelectKind.OVER_ROWS
    if around_answer(select, within.nowhere) is not None:
        return SelectKind.BESIDE_AGGREGATES
    if public:
        return SelectKind.OVER_PUBLIC_ROWS
    return SelectKind.WITH_CONSTANTS if has_constants(select, kinds) else SelectKind.OVER_ROWS


def _over_answers(select: exp.Select, kinds: Kinds, within: Scope) -> SelectKind:
    if _has_sets(select):
        return SelectKind.SETS_OF_RESULTS
    inner = inside(select, within.nowhere)
    if inner is None or any(scalars_in(select)):
        return SelectKind.OVER_RESULTS
    if is_aggregated(inner.select):
        return SelectKind.WITH_CONSTANTS if has_constants(select, kinds) else SelectKind.OVER_RESULT
    below = kind_of(inner.select, kinds, within)
    return below if below is SelectKind.OVER_RESULT and not inner.beyond else SelectKind.OVER_RESULTS


def _is_of_nothing(select: exp.Select) -> bool:
    """Tell whether a SELECT without FROM names nothing but constants: it has one row, as `SELECT 1` does."""
    names = any(node is not select for node in select.find_all(exp.Column, exp.Star, exp.Query))
    return bool(select.expressions) and select.args.get("from_") is None and not is_aggregated(select) and not names


def _has_sets(select: exp.Select) -> bool:
    group = select.args.get("group")
    return group is not None and any(isinstance(node, _SETS) for node in group.expressions)
