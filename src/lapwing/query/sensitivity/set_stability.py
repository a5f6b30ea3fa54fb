"""How far one privacy unit can move a count over UNION, INTERSECT and EXCEPT across units.

How far a unit moves it. Take the rows of a unit one after the other to the rows of all others. A row of a value v in
sides J makes the set m of v to m ∪ J and leaves every other value as it is: the number moves by
[m ∪ J held] − [m held], which lies in [a, b] ⊆ [−1, 1], the ends over all m and all J that such a row can have. So a
unit whose rows are k₁ at most with the ends a₁ and b₁, and k₂ with a₂ and b₂, and so on, moves the number by no less
than −d = Σ kᵢ·aᵢ and no more than u = Σ kᵢ·bᵢ: adding or removing it, by max(d, u) in size; replacing it by another, by
a number in [−d, u] less another, by d + u. Sides A and B of k_A and k_B rows a unit that no row shares:
    A ∩ B, A ∪ B    d = 0, u = k_A + k_B: so far under both relations. A unit whose values in A are all in B of others,
                    and its values in B in A of others, moves A ∩ B as far.
    A ∖ B           rows of A raise it and rows of B lower it, u = k_A and d = k_B: max(k_A, k_B) under add_remove,
                    k_A + k_B under replace_one. A value of its own in A raises it, one of B that others have in A
                    lowers it, which attains both.
If both show the same of one table's rows, of which a unit has k, a row may be in both, but has one value: k for A ∩ B
and A ∪ B; for A ∖ B k under add_remove and 2k under replace_one. ∎
"""

from lapwing.catalog.protection import noun_of
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.normal_forms import FALSE
from lapwing.query.measures.set_counts import CountOfSets
from lapwing.query.relations.relation import FilteredRows, tables_of
from lapwing.query.relations.set_operations import Union


def moved(measure: CountOfSets, selection: FilteredRows) -> tuple[int, int]:
    """Return by how much at most the rows of a unit lower a number, and raise it: d and u above."""
    everywhere, relation = frozenset(range(len(measure.sides))), selection.relation
    if not isinstance(relation, Union):
        low, high = measure.ends(everywhere)
        return -low * selection.rows_per_unit, high * selection.rows_per_unit
    lowered = raised = 0
    for place, part in enumerate(relation.parts):
        low, high = measure.ends(frozenset(i for i in everywhere if not _is_never(measure.sides[i], relation, place)))
        lowered -= low * part.source.rows_per_unit
        raised += high * part.source.rows_per_unit
    return lowered, raised


def _is_never(side: Expression, union: Union, place: int) -> bool:
    """Tell whether no row of a part of a union is in a side, which is a column that is FALSE there."""
    made = union.definitions(side) if isinstance(side, ColumnReference) else ()
    return bool(made) and made[place].value == FALSE


def of_sets(measure: CountOfSets, selection: FilteredRows, *, replace_one: bool) -> tuple[int, str]:
    """Return how far one unit moves the one cell of a count, and why."""
    lowered, raised = moved(measure, selection)
    most = lowered + raised if replace_one else max(lowered, raised)
    noun = noun_of(tables_of(selection.relation))
    what = f"the rows of one {noun} bring at most {raised} values in, and keep at most {lowered} out"
    return most, f"{what}, one {noun} for another" if replace_one else what
