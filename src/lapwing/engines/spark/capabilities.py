"""What Spark may answer: what its SQL is proven for. A question that needs more is refused when it is bound.

The same question can be asked of a snapshot of the same files, which DuckDB answers.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, cast

from lapwing.engines.spark.literals import is_narrow
from lapwing.engines.spark.printers import _PARTS, COUNTED, PRINTERS, TRUNCATED, constant_at, word
from lapwing.engines.spark.time_texts import is_short
from lapwing.engines.spark.unit_values import FUNCTIONS
from lapwing.engines.spark.windows import ANSWERED
from lapwing.query.expressions.expression import Expression, Operation, walk
from lapwing.query.expressions.magnitudes import magnitudes_in
from lapwing.query.expressions.types import Fixed, Plain, describe
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Sum
from lapwing.query.plan.capabilities import CHOOSING, Capabilities, Missing, expressions_of, relations_of
from lapwing.query.plan.plan import Question
from lapwing.query.relations.per_unit import FirstGroups, FirstRows, PerUnit
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from lapwing.query.relations.set_operations import DistinctRows, Union
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.query.relations.windowed import Windowed

ON_A_SNAPSHOT: Final = "open a copy of the files with the engine duckdb and the same ledger"
"""The remedy of the curator for a question that Spark does not answer."""
MOST_CELLS: Final = 4_000_000
"""The most rows that may come back from the cluster; a service's memory holds them."""
_NARROW_ALONE: Final = frozenset({"round_to", "floor_to", "truncate_to", "remainder", "quotient", "sign"})
_RELATIONS: Final = (
    *(ProtectedRows, PerUnit, FirstRows, FirstGroups, PublicJoin, UnitJoin, DistinctRows, Union, Windowed),
)


def _missing(construct: str, name: str) -> Missing:
    return Missing(
        construct=construct, name=f"{name}, because there is no proof for it there", curator_remedy=ON_A_SNAPSHOT
    )


def lacks(question: Question) -> Missing | None:
    """Return what of a question Spark does not have, None if it has all."""
    return next(_lacking(question), None)


def _lacking(question: Question) -> Iterator[Missing]:
    for relation in relations_of(question.selection):
        if not isinstance(relation, _RELATIONS):
            yield _missing(relation.construct, relation.construct)
        if isinstance(relation, UnitJoin) and relation.kind == "mark":
            yield _missing(relation.construct, "IN and EXISTS beside other conditions")
        if isinstance(relation, PerUnit):
            yield from (
                _missing(used, f"{used} per unit")
                for used in relation.uses
                if used not in {"sum", "average", *FUNCTIONS}
            )
        if isinstance(relation, Windowed):
            yield from (
                _missing(used, f"{used.replace('_', ' ')} as a window function")
                for used in (one.function for one in relation.windows)
                if used not in ANSWERED
            )
    for measure in question.measures:
        if isinstance(measure, Sum) and measure.averaged:
            yield _missing("clamped means", "sums of clamped means")
        if isinstance(measure, Distribution) and not _is_narrow(measure.argument):
            yield _missing("wide integers", "quantiles of numbers beyond 62 bits")
    joins = [node for node in relations_of(question.selection) if isinstance(node, PublicJoin)]
    theirs = [right for node in joins for _, right in node.on]
    for expression in (*expressions_of(question), *theirs):
        for node in walk(expression):
            if isinstance(node, Operation):
                yield from _of_operation(node)
    most = _most_cells(question) if question.private_keys else 0
    if most is None or most > MOST_CELLS:
        yield Missing(
            construct="private keys",
            name=f"groups of which more than {MOST_CELLS:,} could come back",
            curator_remedy=f"declare the most rows of the table, or the values of the keys, or {ON_A_SNAPSHOT}",
        )


def _of_operation(node: Operation) -> Iterator[Missing]:
    name = node.function.replace("_", " ")
    if node.function not in PRINTERS:
        yield _missing(node.function, name)
    elif node.function in _NARROW_ALONE and not all(map(_is_narrow, (node, node.arguments[0]))):
        yield _missing(node.function, f"{name} of numbers beyond 62 bits")
    elif node.function == "magnitude" and not _has_ladders(node):
        yield _missing(node.function, "AUTO of numbers beyond 62 bits")
    elif node.function == "to_fixed" and not _is_narrow(node):
        yield _missing(node.function, f"{name} of numbers beyond 62 bits")
    elif node.function == "part" and word(node) not in _PARTS:
        yield _missing(node.function, f"EXTRACT({word(node)})")
    elif node.function == "truncate" and word(node) not in TRUNCATED:
        yield _missing(node.function, f"DATE_TRUNC('{word(node)}')")
    elif node.function == "difference" and word(node) not in COUNTED:
        yield _missing(node.function, f"DATE_DIFF('{word(node)}')")
    elif node.function == "substring" and constant_at(node, 1) < 1:
        yield _missing(node.function, "SUBSTRING from the end")
    elif node.function == "formatted" or _is_timestamp_as_text(node):
        if not is_short(node.arguments[0]):
            yield _missing(node.function, "texts of times computed in many steps")
    elif node.function == "like_any_case" and len(node.arguments) > 2 and word(node, 2).isalpha():
        yield _missing(node.function, "ILIKE with a letter as ESCAPE")


def _is_timestamp_as_text(node: Operation) -> bool:
    return node.function == "written" and describe(node.arguments[0].type) == "timestamp"


def _is_narrow(node: Expression) -> bool:
    kind = node.type
    if not isinstance(kind, Fixed):
        return True
    return kind.low is not None and kind.high is not None and is_narrow(kind.low, kind.high)


def _has_ladders(node: Operation) -> bool:
    """Tell whether ladders end within 62 bits of steps; or, of doubles, where one by their units is a double."""
    magnitudes, kind = magnitudes_in(node), node.arguments[0].type
    ladders = [ladder for ladder in (magnitudes.below, magnitudes.above) if ladder.last]
    if isinstance(kind, Fixed):
        return all(ladder.last / kind.step <= 2**62 for ladder in ladders)
    return all(ladder.unit >= Fraction(2) ** -900 for ladder in ladders)


def _most_cells(question: Question) -> int | None:
    """Return the most rows that could come back of a question with private keys, by public facts; None if unknown.

    A row comes back for every value of the keys and number of values that a unit may hold, and of a distribution for
    every value and leaf. None of them comes back without a row that has it.
    """
    rows = _most_rows(question.selection)
    values = Fraction(1)
    for key in question.keys:
        kind = key.expression.type
        if key.values is not None:
            values *= len(key.domain)
        elif isinstance(kind, Fixed) and kind.low is not None and kind.high is not None:
            values *= kind.high - kind.low + 1
        elif isinstance(kind, Plain) and kind.name == "boolean":
            values *= 2
        elif isinstance(kind, Plain) and kind.name == "date" and kind.low is not None and kind.high is not None:
            values *= kind.high - kind.low + 1
        else:
            return rows
    cells = int(values) * max(question.keys_per_unit, *(measure.sizes[-1] for measure in question.distributions), 1)
    return cells if rows is None else min(rows, cells)


def _most_rows(selection: FilteredRows) -> int | None:
    """Return the most rows that a selection has, by what catalogs say of tables; None if they do not say it."""
    relation = selection.relation
    if isinstance(relation, ProtectedRows):
        return relation.table.rows_at_most
    most = [_most_rows(source) for source in relation.sources]
    if isinstance(relation, Union):
        return None if None in most else sum(cast("list[int]", most))
    if most[0] is None or relation.uses[:1] not in (("inner",), ("left",)):
        return most[0]
    if isinstance(relation, UnitJoin):
        return most[0] * max(1, relation.matches)
    return most[0] * max(1, relation.multiplicity) if isinstance(relation, PublicJoin) else most[0]


CAPABILITIES: Final = Capabilities(
    engine="Spark",
    missing=(Missing(construct=CHOOSING, name="choices of a measure", curator_remedy=ON_A_SNAPSHOT),),
    lacks=lacks,
)
