"""How far one privacy unit can move the scores by which cells are compared: for mechanisms that choose among cells.

Setting and bounds are those of `stability`. The score of a cell is a measure there, an integer; let d_c be by how much
it moves between neighbours. A mechanism that depends on differences of scores only needs the most that such a
difference moves, r ≥ |d_i − d_j| for any two cells.

one cell   The rows of cell c are those of a filter, so its score is the measure of a question with that one cell: |d_c|
           is at most what `stability` states in L1 for one cell, b. So r = 2b holds.
one sign   Under add_remove d = ±f(D_u), and where all that a unit may add to a cell is ≥ 0, or all is ≤ 0, the scores
           that move do so in one direction: r = b. What a unit adds is a sum of rows' numbers, each in [a, b'] with a ≤
           0 ≤ b', or that sum kept between the ends of a clamp: it is ≥ 0 if a = 0 or the clamp's lower end is ≥ 0.
           Distinct values: a further unit adds values and removes none. Under replace_one one part of a unit's rows
           leaves and another comes, and there is no such direction.
all cells  |d_i − d_j| ≤ |d_i| + |d_j| ≤ ‖d‖₁ for i ≠ j: what `stability` states in L1 for all cells holds too.

The least of them is taken. Scores that are multiplied by −1, to find the smallest, move as far.
"""

from dataclasses import dataclass

from lapwing.catalog.protection import noun_of
from lapwing.query.measures.measures import NumberMeasure
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity.stability import of_question, sensitivity_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBound:
    """The most that the difference of two cells' scores moves between neighbours, in steps, and why."""

    range: int
    reason: str


def score_bound(question: Question, measure: NumberMeasure, neighbouring: str) -> ScoreBound:
    """Return the bound for the only measure of a question whose cells are those of one grouping of public keys."""
    alone = sensitivity_bounds(
        measure,
        rows_per_unit=question.selection.rows_per_unit,
        cells=1,
        neighbouring=neighbouring,
        groups=question.groups_per_unit,
    )
    most = min(int(bound.sensitivity.l1) for bound in alone)
    reason = (
        f"one {noun_of(question.lineage)} moves the number of a group by at most {float(most * measure.step):,.10g}"
    )
    if neighbouring == "add_remove" and direction(measure):
        compared = ScoreBound(range=most, reason=f"{reason}, all in one direction")
    else:
        compared = ScoreBound(range=2 * most, reason=f"{reason}, in two directions")
    (every,) = of_question(question, neighbouring)
    together = min(every, key=lambda bound: bound.sensitivity.l1)
    if int(together.sensitivity.l1) < compared.range:
        return ScoreBound(range=int(together.sensitivity.l1), reason=together.reason)
    return compared


def direction(measure: NumberMeasure) -> int:
    """Return 1 if nothing that a unit adds to a cell is negative, −1 if nothing is positive, 0 if both may be."""
    ends = [measure.row_range] if measure.clamp is None else [measure.clamp]
    if measure.clamp is not None and measure.clamp[0] <= 0 <= measure.clamp[1]:
        ends.append(measure.row_range)  # a clamp around 0 changes no sign
    return next((1 if low >= 0 else -1 for low, high in ends if low >= 0 or high <= 0), 0)
