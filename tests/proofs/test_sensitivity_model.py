"""The numbers that the planner states as sensitivities are the ones that `proofs/Sensitivity.v` proves.

For each measure, with random bounds, the planner's numbers are written into a statement of their own, which Coq has to
derive from the theorem. A number that is smaller by one has no derivation.
"""

import random
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.normal_forms import FALSE
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.measures.set_counts import CountOfSets, Sides, subsets
from lapwing.query.sensitivity.stability import sensitivity_bounds
from tests.support.effort import SEED
from tests.support.proofs import compiled, needs_coq

pytestmark = [needs_coq, pytest.mark.long]

CASES, SETS = 12, 200
AFTER: Final = "t'"
X: Final = ColumnReference(name="x", type=Fixed(step=Fraction(1), low=0, high=1))

HEAD: Final = """From Coq Require Import List ZArith Lia Permutation Bool NArith.
From Lapwing Require Import Tables Relations Sensitivity SetCounts.
Import ListNotations.
Open Scope Z_scope.
Ltac derived H := let X := fresh in let Y := fresh in
  pose proof H as (X & Y); split; [eapply Z.le_trans; [exact X|lia]|eapply Z.le_trans; [exact Y|lia]].
Ltac reached cell cells t u N :=
  pose proof (reached_by_rows cell cells t u); pose proof (reached_by_cells cell cells t u);
  destruct N as (_ & ? & ?); lia.
"""


class Case:
    """What is measured of how many rows of a unit, and what the planner says that one unit moves it."""

    def __init__(self, measure: Measure, rows: int, cells: int, groups: int | None, neighbouring: str) -> None:
        self.measure, self.rows, self.cells, self.groups = measure, rows, cells, groups
        self.replaced = neighbouring == "replace_one"
        self.bounds = sensitivity_bounds(
            measure, rows_per_unit=rows, cells=cells, neighbouring=neighbouring, groups=groups
        )
        self.reached = min(rows, cells, *([] if groups is None else [groups]))

    def goals(self, less: int = 0) -> Iterator[str]:
        """Yield a statement for each of the planner's numbers, with its derivation, all made less by a number."""
        for place, bound in enumerate(self.bounds):
            l1, squared = int(bound.sensitivity.l1) - less, int(bound.sensitivity.l2_squared) - less
            clamped = place == 0 and getattr(self.measure, "clamp", None) is not None
            if clamped or isinstance(self.measure, CountUnits):
                yield self._by_units(l1, squared, clamped=clamped)
            elif isinstance(self.measure, CountDistinct):
                shown = "value : values -> values", "True", "distinct_counts value cell @"
                yield self._of_rows(*shown, l1, squared, "distinct", "value cell")
            else:
                low, high = self.measure.row_range  # type: ignore[union-attr]
                shown = "value : values -> Z", f"(forall v, ({low}) <= value v <= {high})", "sums cell value @"
                yield self._of_rows(*shown, l1, squared, "rows", f"cell value ({low}) {high} V ltac:(lia)")

    @property
    def _in_one_cell(self) -> bool:
        return self.replaced and self.cells == 1

    def _of_rows(self, value: str, given: str, vector: str, l1: int, squared: int, theorem: str, facts: str) -> str:
        if self._in_one_cell:
            derived = f"{theorem}_replaced_in_one_cell {facts} {self.rows} u t t' N"
            return self._in_a_cell(value, given, vector, l1, derived)
        name = f"{theorem}_{'replaced' if self.replaced else 'added'}"
        return self._goal(value, given, vector, l1, squared, f"{name} {facts} {self.cells} {self.rows} u t t' N")

    def _by_units(self, l1: int, squared: int, *, clamped: bool) -> str:
        limits = [f"reached cell {self.cells} {side} u <= {self.groups}" for side in ("t", "t'")]
        given = "True" if self.groups is None else f"({limits[0]} /\\ {limits[1]})"
        reach = "".join(
            f"assert (R{place} : reached cell {self.cells} {side} u <= {self.reached}) "
            f"by (reached cell {self.cells}%nat {side} u N). "
            for place, side in enumerate(("t", "t'"))
        )
        value, end = "value : values -> Z", f"cell {self.cells} {self.rows} {self.reached} u t t' N"
        if not clamped and self.replaced:
            return self._goal(
                value, given, "unit_counts cell @", l1, squared, f"unit_counts_replaced {end} R0 R1", reach
            )
        low, high = getattr(self.measure, "clamp", None) or (1, 1)
        own = f"(fun l => clamp ({low}) ({high}) (sums (fun _ => Some 0%nat) value l 0))" if clamped else "(fun _ => 1)"
        vector = f"clamped_sums ({low}) ({high}) value cell @" if clamped else "unit_counts cell @"
        bag = "ltac:(intros; simpl; try (f_equal; apply sums_permutation); auto)"
        facts = f"{own} ({low}) ({high}) {bag} ltac:(intros; unfold clamp; lia)"
        if self._in_one_cell:
            derived = f"units_replaced_in_one_cell {facts} cell {self.rows} u t t' N"
            return self._in_a_cell(value, given, vector, l1, derived)
        theorem = f"units_replaced {facts} {end} R0 R1" if self.replaced else f"units_added {facts} {end} R1"
        return self._goal(value, given, vector, l1, squared, theorem, reach)

    def _stated(self, value: str, given: str) -> str:
        return f"Goal forall ({value}) (cell : cell_function) u t t', {given} -> apart u {self.rows} t t' -> "

    def _goal(self, value: str, given: str, vector: str, l1: int, squared: int, theorem: str, before: str = "") -> str:
        moved = f"(fun c => {vector.replace('@', AFTER)} c - {vector.replace('@', 't')} c)"
        absent, name = ("", "") if self.replaced else ("own u t = [] -> ", " E")
        return (
            f"{self._stated(value, given)}{absent}"
            f"l1 {self.cells} {moved} <= {l1} /\\ l2_squared {self.cells} {moved} <= {squared}.\n"
            f"Proof. intros value cell u t t' V N{name}. {before}derived ({theorem}{name}). Qed."
        )

    def _in_a_cell(self, value: str, given: str, vector: str, l1: int, theorem: str) -> str:
        """Of one cell both norms are its absolute value, or the square of that."""
        moved = f"({vector.replace('@', AFTER)} c - {vector.replace('@', 't')} c)"
        return (
            f"{self._stated(value, given)}forall c, Z.abs {moved} <= {l1}.\n"
            f"Proof. intros value cell u t t' V N c. eapply Z.le_trans; [exact ({theorem} c)|lia]. Qed."
        )


def measures(chance: random.Random) -> list[Measure]:
    low, high = sorted((chance.randint(-9, 9), chance.randint(-9, 9)))
    ends = sorted((chance.randint(-6, 6), chance.randint(-6, 6)))
    clamp = (ends[0], ends[1])
    column = ColumnReference(name="x", type=Fixed(step=Fraction(1), low=low, high=high))
    around = Sum(argument=column, origin=(low + high) // 2)
    return [
        Count(), CountUnits(), CountDistinct(argument=X), Sum(argument=column), around,
        Count(clamp=clamp), Sum(argument=column, clamp=clamp),
    ]  # fmt: skip


def drawn() -> list[Case]:
    chance, found = random.Random(SEED), list[Case]()
    for _ in range(CASES):
        for measure, neighbouring in product(measures(chance), ["add_remove", "replace_one"]):
            rows, cells = chance.randint(1, 9), chance.choice([1, 1, 2, 3, 20])
            found.append(Case(measure, rows, cells, chance.choice([None, 1, 2, 5]), neighbouring))
    return found


def test_coq_derives_every_number_of_the_planner(checked: Path) -> None:
    goals = [goal for case in drawn() for goal in case.goals()]
    assert len(goals) > 2 * 7 * CASES
    made = compiled("Numbers", HEAD + "\n".join(goals), checked)
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cells", [1, 3])
def test_a_number_that_is_smaller_by_one_has_no_derivation(cells: int, neighbouring: str, checked: Path) -> None:
    """The planted bug."""
    for place, measure in enumerate(measures(random.Random(8))):
        case = Case(measure, 4, cells, None, neighbouring)
        for number, (exact, less) in enumerate(zip(case.goals(), case.goals(less=1), strict=True)):
            name = f"Less_{neighbouring}_{cells}_{place}_{number}"
            assert compiled(name, HEAD + exact, checked).returncode == 0, exact
            made = compiled(name, HEAD + less, checked)
            assert made.returncode != 0, less
            assert "witness" in made.stderr, made.stderr


def sides_of(sets: Sequence[Sides]) -> str:
    return "[" + "; ".join(str(sum(1 << side for side in one)) for one in sets) + "]%N"


def test_counts_over_sets_move_by_the_same_ends(checked: Path) -> None:
    chance, asked, found = random.Random(SEED), list[str](), list[tuple[int, int]]()
    for _ in range(SETS):
        number = chance.randint(1, 3)
        everywhere = frozenset(range(number))
        kinds = [one for one in subsets(everywhere) if one]
        held = chance.sample(kinds, k=chance.randint(1, len(kinds)))
        possible = frozenset(side for side in everywhere if chance.random() < 0.7)
        measure = CountOfSets(value=X, sides=(FALSE,) * number, held=frozenset(held))
        found.append(measure.ends(possible))
        of = f"(moves (fun m => existsb (N.eqb m) {sides_of(held)}) {number} {sides_of(list(subsets(possible)))})"
        asked.append(f"Eval vm_compute in (least {of}, greatest {of}).")
    made = compiled("Ends", HEAD + "\n".join(asked), checked)
    assert made.returncode == 0, made.stderr
    ends = [(int(low), int(high)) for low, high in re.findall(r"= \((-?\d+), (-?\d+)\)", made.stdout)]
    assert ends == found
    assert len(set(found)) >= 3
