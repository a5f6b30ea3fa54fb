"""A bound, a rule or a step that is wrong has no proof: Coq refuses the file in which it is changed."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.proofs import compiled, needs_coq, source


class Bug(NamedTuple):
    file: str
    right: str
    wrong: str


BUGS = {
    "a join with public rows makes no more of a row": Bug(
        "Relations", "rows_per_unit s * (if multiplies k then Nat.max 1 (multiplicity theirs public) else 1)",
        "rows_per_unit s",
    ),
    "a left join with no public rows leaves nobody": Bug(
        "Relations", "Nat.max 1 (multiplicity theirs public)", "multiplicity theirs public",
    ),
    "a union has the rows of its larger part": Bug(
        "Relations", "| UnionAll a b => rows_per_unit a + rows_per_unit b",
        "| UnionAll a b => Nat.max (rows_per_unit a) (rows_per_unit b)",
    ),
    "a join on the unit has as many rows as its left side": Bug(
        "Relations", "Nat.min (own * Nat.max 1 (Nat.min matches other)) both", "own",
    ),
    "a left join forgets the rows that are alone": Bug(
        "Relations", "| Left => Nat.max own (other * matched + own - 1)", "| Left => other * matched",
    ),
    "a full join has no more rows than pairs": Bug(
        "Relations", "Nat.max (own * other) (own + other)", "own * other",
    ),
    "a group for each unit and more is one row": Bug(
        "Relations", "| OneForEachGroup _ _ s => rows_per_unit s", "| OneForEachGroup _ _ s => 1",
    ),
    "a limit on groups limits rows": Bug(
        "Relations", "| FirstGroups _ _ _ s => rows_per_unit s",
        "| FirstGroups most _ _ s => Nat.min most (rows_per_unit s)",
    ),
    "a limit on rows leaves one less": Bug(
        "Relations", "| FirstRows most _ s => Nat.min most (rows_per_unit s)",
        "| FirstRows most _ s => Nat.min (most - 1) (rows_per_unit s)",
    ),
    "rows are kept of all units together": Bug(
        "Relations", "| Kept n most hash => unit_by_unit (fun u l => firstn most (sort (hash u) l)) (d n)",
        "| Kept n most hash => firstn most (d n)",
    ),
    "rows are kept by their place in the file": Bug(
        "Relations", "| FirstRows most hash s => unit_by_unit (fun u l => firstn most (sort (hash u) l)) (rows s d)",
        "| FirstRows most hash s => unit_by_unit (fun u l => firstn most l) (rows s d)",
    ),
    "a join meets rows of other units": Bug(
        "Relations", "filter on (map snd (own u t)).", "filter on (map snd t).",
    ),
    "K rows move a sum by one row's value": Bug(
        "Sensitivity", "own u t = [] -> l1 cells moved <= Z.of_nat k * m /\\",
        "own u t = [] -> l1 cells moved <= m /\\",
    ),
    "a replaced unit moves a sum no further than an added one": Bug(
        "Sensitivity", "l1 cells moved <= 2 * (Z.of_nat k * m) /\\", "l1 cells moved <= Z.of_nat k * m /\\",
    ),
    "values below zero are forgotten": Bug("Sensitivity", "Let m := Z.max (- low) high.", "Let m := high."),
    "a unit is clamped once, not in each group": Bug(
        "Sensitivity", "l1 cells moved <= groups * most /\\", "l1 cells moved <= most /\\",
    ),
    "two units differ in as many cells as one has": Bug(
        "Sensitivity", "l1 cells moved <= Z.min (2 * groups) (Z.of_nat cells) /\\",
        "l1 cells moved <= Z.min groups (Z.of_nat cells) /\\",
    ),
    "distinct values move by one": Bug(
        "Sensitivity", "own u t = [] -> l1 cells moved <= Z.of_nat k /\\", "own u t = [] -> l1 cells moved <= 1 /\\",
    ),
    "a tree has one level": Bug(
        "Sensitivity", "(moved level)) levels <= Z.of_nat (length levels) * Z.of_nat k /\\",
        "(moved level)) levels <= Z.of_nat k /\\",
    ),
    "a union of sets moves by the rows of its first side": Bug(
        "SetCounts", "raised in_either 2 (two_parts k_a k_b) = Z.of_nat k_a + Z.of_nat k_b",
        "raised in_either 2 (two_parts k_a k_b) = Z.of_nat k_a",
    ),
    "an intersection moves by the rows of its larger side": Bug(
        "SetCounts", "raised in_both 2 (two_parts k_a k_b) = Z.of_nat k_a + Z.of_nat k_b",
        "raised in_both 2 (two_parts k_a k_b) = Z.max (Z.of_nat k_a) (Z.of_nat k_b)",
    ),
    "a replaced unit moves EXCEPT by the larger of both": Bug(
        "SetCounts", "<= lowered held sides ps + raised held sides ps.",
        "<= Z.max (lowered held sides ps) (raised held sides ps).",
    ),
    "a charge fits while anything is left": Bug("Ledger", "(spent s + amount <=? budget s)", "(spent s <=? budget s)"),
    "nobody counts deltas": Bug("Ledger", "&& (delta_spent s + delta <=? delta_keys s)", "&& (0 <=? delta)"),
    "a budget may be lowered": Bug("Ledger", "(was =? b) && (b <=? now) && negb c", "(was =? b) && negb c"),
    "faults stop nothing": Bug("Ledger", "(w =? v) && negb (stopped s) && negb c", "(w =? v) && negb c"),
    "a charge is told of though its commit is in doubt": Bug(
        "Ledger", "(World (if kept : bool then d ++ l else d) n ps None r w)",
        "(World (if kept : bool then d ++ l else d) n\n"
        "  (with_process ps p (Process None (charges_after (length d) l))) None r w)",
    ),
    "a loss of power takes what somebody was told of": Bug(
        "Ledger", "(n <= m)%nat -> step (World d n ps h r w)", "step (World d n ps h r w)",
    ),
    "a charge runs twice": Bug("Ledger", "(remove Nat.eq_dec c (issued (ps p)))", "(issued (ps p))"),
    "an answer is shown whether it was recorded or not, and charged or not": Bug(
        "Ledger", "entry_at (firstn n d) c = Some e -> is_charge e = true -> In (Answer c)", "In (Answer c)",
    ),
    "a decision rests on an old state": Bug(
        "Ledger", "| Some (n, s) => fold_all s (skipn n l) end.", "| Some (n, s) => Some s end.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_the_text_that_a_bug_changes_is_there_once(bug: Bug) -> None:
    assert source(bug.file).count(bug.right) == 1
    assert bug.wrong != bug.right


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_wrong_statement_has_no_proof(bug: Bug, checked: Path) -> None:
    """The file as it is compiles, which the fixture has seen; only the change is refused, and not for its spelling."""
    made = compiled(f"{bug.file}_wrong", source(bug.file).replace(bug.right, bug.wrong), checked)
    assert made.returncode != 0
    assert "Syntax error" not in made.stderr
    assert "was not found in the current environment" not in made.stderr
