"""How far one privacy unit can move a measure: sensitivities, each with its proof.

Setting. The rows of a table are cleaned row by row, and of each unit at most `rows_per_unit` are kept by a rule that
looks at that unit's own rows only (`render`). So the kept table is the disjoint union of one small table per unit, and
a measure, a vector over cells, is a sum over units: f(D) = Σ_u f(D_u). Adding or removing a unit changes f by f(D_u);
replacing one changes it by f(D_u) − f(D_u').

Write K for the rows a unit keeps, C for the number of cells, and let one row add a value in [a, b], a ≤ 0 ≤ b, to one
cell (a count: [0, 1]; a sum: the bounds of its argument around its origin, widened to contain 0, which a row adds when
it is filtered out or NULL). Put m = max(−a, b).

add_remove
  rows    ‖f(D_u)‖₁ ≤ K·m and ‖f(D_u)‖₂ ≤ K·m, with equality when all K rows fall into one cell.
  units   a unit adds 0 or 1 to a cell and meets at most G = min(K, C) cells: ‖·‖₁ ≤ G, ‖·‖₂² ≤ G.
replace_one, for x = f(D_u), y = f(D_u')
  rows    x and y are sums of K points of the hull H of 0 and all a·e_c, b·e_c (e_c is 1 in cell c), so x − y lies in
          K·(H − H). A norm is convex: it is largest at corners, K·(s − t) for corners s, t of H. In one cell that is
          K·(b − a); in two cells it is (K·m, K·m) at most. Hence ‖x − y‖₁ ≤ 2K·m and ‖x − y‖₂² ≤ K²·max((b − a)², 2m²),
          and both are K·(b − a) and its square where there is one cell only.
  units   x, y ∈ {0, 1}^C differ in at most min(2G, C) cells, by 1 each.

Every bound is an integer of steps and is attained by some pair of neighbours. A measure may have several valid bounds,
and the planner takes the one that promises less error.
"""

from dataclasses import dataclass

from lapwing.mechanisms import Sensitivity
from lapwing.query.measures import Count, CountUnits, Measure
from lapwing.query.plan import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A valid sensitivity of a measure, and why it is valid."""

    sensitivity: Sensitivity
    reason: str


def candidates(measure: Measure, *, rows_per_unit: int, cells: int, neighbouring: str) -> tuple[Candidate, ...]:
    """Return valid sensitivities of a measure, from public facts only."""
    replace_one = neighbouring == "replace_one"
    if isinstance(measure, CountUnits):
        return _units(min(rows_per_unit, cells), cells, replace_one)
    low, high = row_range(measure)
    most, width = rows_per_unit * max(-low, high), rows_per_unit * (high - low)
    what = "one row a unit" if rows_per_unit == 1 else f"at most {rows_per_unit} rows a unit"
    if not replace_one:
        return (_candidate(most, most**2, what),)
    if cells == 1:
        return (_candidate(width, width**2, f"{what}, one unit for another in one cell"),)
    return (_candidate(2 * most, max(width**2, 2 * most**2), f"{what}, one unit for another"),)


def _units(groups: int, cells: int, replace_one: bool) -> tuple[Candidate, ...]:
    if not replace_one:
        return (_candidate(groups, groups, f"a unit counts once in each of at most {groups} cells"),)
    moved = min(2 * groups, cells)
    return (_candidate(moved, moved, f"two units differ in at most {moved} cells"),)


def row_range(measure: Measure) -> tuple[int, int]:
    """Return the least and the greatest integer that one row can add to a cell; 0 is always between them."""
    if isinstance(measure, Count | CountUnits):
        return (0, 1)
    if measure.type.low is None or measure.type.high is None:
        raise ValueError("a sum is taken over bounded values")
    return (min(0, measure.type.low - measure.origin), max(0, measure.type.high - measure.origin))


def _candidate(l1: int, l2_squared: int, reason: str) -> Candidate:
    # A measure that nobody can move (all bounds zero) still gets noise, as if of sensitivity 1: it costs nothing to
    # promise more than is needed, and a mechanism without noise could never state a loss.
    return Candidate(sensitivity=Sensitivity(l1=max(l1, 1), l2_squared=max(l2_squared, 1)), reason=reason)


def of_question(question: Question, neighbouring: str) -> tuple[tuple[Candidate, ...], ...]:
    """Return the candidates of every measure of a question, in order."""
    return tuple(
        candidates(
            measure,
            rows_per_unit=question.table.max_rows_per_unit,
            cells=question.cells,
            neighbouring=neighbouring,
        )
        for measure in question.measures
    )
