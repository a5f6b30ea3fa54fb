"""How far one privacy unit can move a measure: sensitivities, each with its proof.

Setting. A measure is of the rows of a relation, of which each unit has at most `rows_per_unit`, made from that unit's
own rows and public data alone (`relations`). So the relation is the disjoint union of one small table per unit, and a
measure, a vector over cells, is a sum over units: f(D) = Σ_u f(D_u), but for distinct values, of which below. Adding or
removing a unit changes f by f(D_u); replacing one changes it by f(D_u) − f(D_u').

Write K for `rows_per_unit`, C for the number of cells, G for the most cells that a unit's rows fall into (K or C, if
that is less, or what the question limits it to), and let one row add a value in [a, b], a ≤ 0 ≤ b, to one cell (a
count: [0, 1]; a sum: the bounds of its argument around its origin, widened to contain 0, which a row adds when it is
filtered out or NULL). Put m = max(−a, b). If the question clamps what a unit adds to a cell, all rows together, to
[l, h], put m' = max(−l, h, 0). Where l ≤ 0 ≤ h clamping moves no value further from 0 and no two values further apart,
so that what holds by rows holds too.

add_remove
  rows    ‖f(D_u)‖₁ ≤ K·m and ‖f(D_u)‖₂ ≤ K·m, with equality when all K rows fall into one cell.
  units   a unit adds 0 or 1 to a cell and meets at most G cells: ‖·‖₁ ≤ G, ‖·‖₂² ≤ G.
  clamped a unit adds at most m' in size to each of at most G cells: ‖·‖₁ ≤ G·m', ‖·‖₂² ≤ G·m'².
replace_one, for x = f(D_u), y = f(D_u')
  rows    x and y are sums of K points of the hull H of 0 and all a·e_c, b·e_c (e_c is 1 in cell c), so x − y lies in
          K·(H − H). A norm is convex: it is largest at corners, K·(s − t) for corners s, t of H. In one cell that is
          K·(b − a); in two cells it is (K·m, K·m) at most. Hence ‖x − y‖₁ ≤ 2K·m and ‖x − y‖₂² ≤ K²·max((b − a)², 2m²),
          and both are K·(b − a) and its square where there is one cell only.
  units   x, y ∈ {0, 1}^C differ in at most min(2G, C) cells, by 1 each.
  clamped x and y have at most G cells that are not 0. Where both have the cell it moves by at most w = max(h, 0) −
          min(l, 0), where one has it by at most m'; w ≤ 2m'. With s cells shared: ‖·‖₁ ≤ s·w + 2(G − s)·m' ≤ 2G·m' and
          ‖·‖₂² ≤ s·w² + 2(G − s)·m'² ≤ G·max(w², 2m'²). With one cell: w and w².

Distinct values are not a sum over units: a value counts once, whoever has it. Yet a unit with r_c rows in cell c adds
and removes at most r_c distinct values there, Σ r_c ≤ K: adding or removing it moves cell c by at most r_c, replacing
it, by at most max(r_c, r_c'), no further than numbers of rows move, and where all its values are its own, as far. So
the bounds for rows with [a, b] = [0, 1] hold; and for their sum those for rows with [a, b], x and y being the sums of
the values that come and go, of K points of H each at most. `set_stability` has those of INTERSECT and EXCEPT.

Distributions. One row is counted in one node of every level of a tree, of one cell's tree: in L nodes if there are L
levels. f(D_u) restricted to a level is a vector of counts ≥ 0 that add up to the number of rows of u with a key and a
value, at most K. So its L1 norm is at most K a level, and its L2 norm is at most its L1 norm:
add_remove   ‖f(D_u)‖₁ ≤ K·L, ‖f(D_u)‖₂² ≤ K²·L, with equality when all rows fall into one leaf.
replace_one  a level's x and y have ‖x − y‖₁ ≤ ‖x‖₁ + ‖y‖₁ ≤ 2K and, as no entry is negative, ‖x − y‖₂² =
             ‖x‖₂² + ‖y‖₂² − 2x·y ≤ 2K²: in all 2K·L and 2K²·L, with equality when all rows of either are in a leaf of
             their own, far enough apart to share no node. With one leaf and one cell |x − y| ≤ K.
A limit on groups changes nothing: K rows may all fall into one cell.

Rows that several units share (`relation`) are no sum over units. They are measured with a clamp to [0, τ] that means a
packing program, cell by cell: removed, added or replaced, a unit moves each of C cells by at most d = τ + slack(τ)
(`mechanisms.packing`; a cell's rows are those of a filter, so that each cell has such a program).
add_remove, replace_one   ‖·‖₁ ≤ C·d and ‖·‖₂² ≤ C·d². Nothing else is measured of them.

Every bound is an integer of steps and is attained by some pair of neighbours. A measure may have several valid bounds,
and the planner takes the one that promises less error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.mechanisms import Sensitivity
from lapwing.mechanisms.packing import slack
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Measure, NumberMeasure, Sum
from lapwing.query.measures.set_counts import CountOfSets
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import of_several_units


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityBound:
    """A valid sensitivity of a measure, and why it is valid."""

    sensitivity: Sensitivity
    reason: str


def sensitivity_bounds(
    measure: Measure, *, rows_per_unit: int, cells: int, neighbouring: str, groups: int | None = None
) -> tuple[SensitivityBound, ...]:
    """Return valid sensitivities of a measure, from public facts only.

    Args:
        groups: The most cells of a unit, where the question limits it.
    """
    replace_one = neighbouring == "replace_one"
    reached = min(rows_per_unit, cells, *([] if groups is None else [groups]))
    if isinstance(measure, CountUnits):
        return _units(reached, cells, replace_one)
    if isinstance(measure, Distribution):
        return (_tree(measure, rows_per_unit, cells, replace_one),)
    by_rows = _rows(measure, rows_per_unit, cells, replace_one)
    if measure.clamp is not None:
        clamped = _clamped(measure.clamp, measure.step, reached, cells, replace_one)
        # What holds by rows holds here if 0 is in the clamp, which then moves nothing further from 0 or further apart.
        return (clamped, by_rows) if measure.clamp[0] <= 0 <= measure.clamp[1] else (clamped,)
    return (by_rows,)


def _rows(measure: NumberMeasure, rows_per_unit: int, cells: int, replace_one: bool) -> SensitivityBound:
    low, high = measure.row_range
    most, width = rows_per_unit * max(-low, high), rows_per_unit * (high - low)
    what = rows_at_most(rows_per_unit)
    if not replace_one:
        return _candidate(most, most**2, what)
    if cells == 1:
        return _candidate(width, width**2, f"{what}, one for another in one group")
    return _candidate(2 * most, max(width**2, 2 * most**2), f"{what}, one for another")


def _tree(measure: Distribution, rows_per_unit: int, cells: int, replace_one: bool) -> SensitivityBound:
    levels = len(measure.sizes)
    what = f"{rows_at_most(rows_per_unit)}, each in {levels} {'level' if levels == 1 else 'levels'} of a tree of counts"
    apart = replace_one and (cells > 1 or measure.sizes[-1] > 1)
    most = levels * rows_per_unit
    reason = f"{what}, one for another" if replace_one else what
    return _candidate(2 * most if apart else most, (2 if apart else 1) * most * rows_per_unit, reason)


def rows_at_most(rows_per_unit: int) -> str:
    """Say how many rows each unit has."""
    return "one row each" if rows_per_unit == 1 else f"at most {rows_per_unit} rows each"


def _clamped(clamp: tuple[int, int], step: Fraction, groups: int, cells: int, replace_one: bool) -> SensitivityBound:
    low, high = min(clamp[0], 0), max(clamp[1], 0)
    most, width = max(-low, high), high - low
    where = "the one group" if groups == 1 else f"each of at most {groups} groups"
    what = f"each adds at most {float(most * step):,.10g} to {where}"
    if not replace_one:
        return _candidate(groups * most, groups * most**2, what)
    if cells == 1:
        return _candidate(width, width**2, f"{what}, one for another in one group")
    return _candidate(2 * groups * most, groups * max(width**2, 2 * most**2), f"{what}, one for another")


def _units(groups: int, cells: int, replace_one: bool) -> tuple[SensitivityBound, ...]:
    if not replace_one:
        where = "1 group" if groups == 1 else f"each of at most {groups} groups"
        return (_candidate(groups, groups, f"each counts once in {where}"),)
    moved = min(2 * groups, cells)
    return (_candidate(moved, moved, f"two of them differ in at most {moved} groups"),)


def _candidate(l1: int, l2_squared: int, reason: str) -> SensitivityBound:
    # A measure that nobody can move (all bounds zero) still gets noise, as if of sensitivity 1: it costs nothing to
    # promise more than is needed, and a mechanism without noise could never state a loss.
    return SensitivityBound(sensitivity=Sensitivity(l1=max(l1, 1), l2_squared=max(l2_squared, 1)), reason=reason)


def of_question(question: Question, neighbouring: str) -> tuple[tuple[SensitivityBound, ...], ...]:
    """Return the candidates of every measure of a question, in order."""
    parts = [[_of_part(part, measure, neighbouring) for part in question.parts] for measure in question.measures]
    return tuple(tuple(map(_together, zip(*found, strict=True))) for found in parts)


def _of_part(question: Question, measure: Measure, neighbouring: str) -> tuple[SensitivityBound, ...]:
    if question.units_of_row > 1:
        return (_packed(question, measure),)
    if isinstance(measure, CountOfSets) and question.cells == 1:
        from lapwing.query.sensitivity.set_stability import of_sets  # here: few questions need it

        most, reason = of_sets(measure, question.selection, replace_one=neighbouring == "replace_one")
        return (_candidate(most, most**2, reason),)
    return sensitivity_bounds(
        measure,
        rows_per_unit=question.selection.rows_per_unit,
        # Of private keys nobody knows how many there are: more than two units can meet.
        cells=question.cells or 2 * question.selection.rows_per_unit + 1,
        neighbouring=neighbouring,
        groups=question.groups_per_unit,
    )


def _packed(question: Question, measure: Measure) -> SensitivityBound:
    if question.cells is None or not isinstance(measure, Count | Sum) or measure.clamp is None:
        raise of_several_units()
    level, shared = measure.clamp[1], question.units_of_row
    moved, cells = level + slack(level, shared), question.cells
    where = "" if cells == 1 else f" to each of {cells} cells"
    reason = (
        f"each row belongs to {shared} people, of whom each adds at most {float(level * measure.step):,.10g}{where}"
    )
    return _candidate(cells * moved, cells * moved**2, reason)


def _together(sets: Sequence[SensitivityBound]) -> SensitivityBound:
    """Return the bound of the cells of several grouping sets, one vector after the other: so the norms add up."""
    if len(sets) == 1:
        return sets[0]
    l1 = sum(int(candidate.sensitivity.l1) for candidate in sets)
    l2_squared = sum(int(candidate.sensitivity.l2_squared) for candidate in sets)
    return _candidate(l1, l2_squared, f"{sets[0].reason}, in each of {len(sets)} grouping sets")
