"""Bugs that systems which join protected tables could have: each a name of a module, and what to put in its place."""

from dataclasses import replace
from typing import Any, Final

from lapwing.engines import truncated_rows as engine_shared
from lapwing.engines.duckdb import bounded_values, clamped_sums, cleaned, linked_rows, literals
from lapwing.engines.duckdb import relations as render_relations
from lapwing.engines.duckdb.literals import identifier
from lapwing.mechanisms.packing import SharedRows
from lapwing.query.from_clause import unit_joins
from lapwing.query.relations import identity
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.query.sensitivity import stability

numbered, truncated_at, packed = engine_shared._numbered, SharedRows.value, stability._packed
meeting = render_relations._meeting
linked, joined_by_unit, at_most_one = linked_rows.linked, render_relations._joined_by_unit, identity.at_most_one


def of_the_wrong_side(table: Any, link: Any, *given: Any) -> str:
    """Take the parent's key for the unit."""
    unit = literals.unit_name(link.parent)
    key = identifier(link.on[0][1])
    return linked(table, link, *given).replace(f"theirs.{unit} AS", f"theirs.{key} AS", 1)


def with_orphans(*given: Any, **further: Any) -> str:
    return linked(*given, **further).replace(" JOIN ", " LEFT JOIN ")


def with_anyone(*kinds: str) -> Any:
    def joined(node: Any, unit: str) -> str:
        text = joined_by_unit(node, unit)
        if node.kind not in kinds:
            return text
        return text.replace(f"ON ours.{unit} IS NOT DISTINCT FROM theirs.", "ON 0 < theirs.")

    return joined


def more_rows(node: UnitJoin) -> int:
    return max(node.source.rows_per_unit, node.other.rows_per_unit)


def believed(selection: Any, values: Any, catalog: Any) -> bool:
    """Take rows of a LEFT JOIN that match nothing for rows that the other side tells apart."""
    relation = selection.relation
    if isinstance(relation, UnitJoin) and relation.kind == "left" and relation.matched <= 1:
        there = dict(zip(relation.added, relation.shown, strict=True))
        if believed(relation.other, frozenset(there[value] for value in values if value in there), catalog):
            return True
    return at_most_one(selection, values, catalog)


BUGS: Final[dict[str, tuple[Any, str, Any]]] = {
    "rows of the wrong unit": (cleaned, "linked", of_the_wrong_side),
    "orphans that are kept": (cleaned, "linked", with_orphans),
    "joins with other units": (render_relations, "_joined_by_unit", with_anyone("inner", "left")),
    "semi-joins with other units": (render_relations, "_joined_by_unit", with_anyone("semi", "anti")),
    "a fan-out that is not bounded": (UnitJoin, "rows_within", lambda join, _: more_rows(join)),
    "keys believed to be unique": (unit_joins, "at_most_one", lambda *_: True),
    "rows that match nothing told apart": (unit_joins, "at_most_one", believed),
    "numbers that are not clamped": (
        bounded_values,
        "clean_fixed",
        lambda name, *_: f"TRY_CAST({name} * 100 AS BIGINT)",
    ),
    "units' sums that are not clamped": (clamped_sums, "clamp", lambda value, *_: value),
}


# ---- where different units meet --------------------------------------------------------------------------------------


def one_unit_of_several(place: int) -> Any:
    """Let one unit of a row bound it, and the others come and go."""

    def units(*given: Any) -> Any:
        found, count = numbered(*given)
        return [found[place]] * len(found), count

    return units


def of_one_group(question: Any, measure: Any) -> Any:
    """Take the groups of a question for disjoint units."""
    only = question.keys[:0]
    return packed(replace(question, keys=only), measure)


def kept_without_a_partner(node: Any) -> str:
    return meeting(node).replace(" AS ours JOIN ", " AS ours LEFT JOIN ", 1)


MEETING: Final[dict[str, tuple[Any, str, Any]]] = {
    "orphans that are kept": (cleaned, "linked", with_orphans),
    "rows without a partner that are kept": (render_relations, "_meeting", kept_without_a_partner),
    "a level that is one too high": (SharedRows, "value", lambda rows, level: truncated_at(rows, level + 1)),
    "sums that are not truncated": (SharedRows, "value", lambda rows, _: int(rows.weights.sum())),
    "units of the right side that are lost": (engine_shared, "_numbered", one_unit_of_several(0)),
    "units of the left side that are lost": (engine_shared, "_numbered", one_unit_of_several(-1)),
    "groups that are not added up": (stability, "_packed", of_one_group),
}
