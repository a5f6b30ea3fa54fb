"""The ledger and its model in `proofs/Ledger.v` agree on random entries: which may follow, and what they add up to."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from lapwing.errors import LapwingError, LedgerFault
from lapwing.ledger.curating import opening
from lapwing.ledger.entries import Charge, Entry, subject_of
from lapwing.ledger.raising import record_of
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transitions import answering, charging, fold
from lapwing.ledger.unanswered import leaving
from lapwing.privacy.amounts import GRID, grid_up
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import PureDP
from tests.support.effort import SEED
from tests.support.ledger.ledgers import registration
from tests.support.proofs import compiled, needs_coq

pytestmark = [needs_coq, pytest.mark.long]

LEDGERS, ENTRIES = 100, 30
TIME: Final = "2026-11-01T00:00:00.000000+00:00"
BUDGET, DELTA_KEYS = Fraction(1), Fraction(1, 1000)
AMOUNTS = [Fraction(1, 10), Fraction(1, 3), Fraction(1, 7), Fraction(0), Fraction(2, 5)]
DELTAS = [Fraction(0), Fraction(0), Fraction(1, 3000), Fraction(1, 2000)]
CAUSES = {"fault": "Fault", "death": "Death", "interrupt": "Interrupt", "stop": "Stop"}

HEAD: Final = """From Coq Require Import List NArith Bool.
From Lapwing Require Import Ledger.
Import ListNotations.
Open Scope N_scope.
Inductive asked :=
  Add (e : entry) | Ask (w a d : N) (k : option nat) | Leave (ns : list nat) (why : cause) | Keep (n : nat).
Definition entry_of (s : state) (q : asked) : option entry :=
  match q with
  | Add e => Some e
  | Ask w a d k => match charging s w a d k with Appends e => Some e | _ => None end
  | Leave ns why => leaving s ns why
  | Keep n => match answering s n with Appends e => Some e | _ => None end
  end.
Fixpoint go (s : state) (l : list asked) : list N * state :=
  match l with
  | [] => ([], s)
  | q :: l => match entry_of s q with
              | None => let '(took, last) := go s l in (2 :: took, last)
              | Some e => match fold s e with
                          | Some s => let '(took, last) := go s l in (1 :: took, last)
                          | None => let '(took, last) := go s l in (0 :: took, last)
                          end
              end
  end.
Definition shown (r : list N * state) : list (list N) :=
  let '(took, s) := r in
  [took; [N.of_nat (sequence s); version s; budget s; spent s; delta_keys s; delta_spent s; faults s;
   if closed s then 1 else 0]; map (fun p => N.of_nat (fst p)) (under_way s)].
"""


def steps(amount: Fraction) -> int:
    return int(grid_up(amount) / GRID)


class Asked:
    """What is asked of a ledger, and how the model is asked the same."""

    def __init__(self, text: str, entry: Callable[[LedgerState], Entry | None]) -> None:
        self.text, self.entry = text, entry


def added(kind: str, subject: str, body: dict[str, object], text: str) -> Asked:
    """Return an entry that is written whether it may follow or not."""
    return Asked(f"Add ({text})", lambda state: state.next_entry(TIME, kind, subject, body))  # type: ignore[arg-type]


def request(chance: random.Random, state: LedgerState) -> tuple[Charge, str]:
    amount, delta = chance.choice(AMOUNTS), chance.choice(DELTAS)
    asker = chance.choice([None, 1, 2])
    version = state.version + chance.choice([0, 0, 0, 0, 0, 1])
    charge = Charge(
        key="q",
        question="q",
        loss=PureDP(amount),
        catalog_digest="c" * 64,
        principal="p",
        version=version,
        delta=delta,
        asker=None if asker is None else f"{asker:032x}",
    )
    text = f"{version} {steps(amount)} {steps(delta)} {'None' if asker is None else f'(Some {asker}%nat)'}"
    return charge, text


def listed(numbers: Sequence[int]) -> str:
    return "[" + "; ".join(f"{number}%nat" for number in numbers) + "]"


def some_charges(chance: random.Random, state: LedgerState) -> list[int]:
    there = [*state.under_way, state.sequence, 2]
    return chance.sample(there, k=min(len(there), chance.choice([1, 1, 2])))


def charged(chance: random.Random, state: LedgerState) -> Asked:
    charge, text = request(chance, state)
    if chance.random() < 0.3:  # past the decision: a ledger that is read must notice
        return added("charge", subject_of(charge.key), charge.to_record(), f"Charge {text}")

    def entry(now: LedgerState) -> Entry | None:
        outcome = charging(now, charge, TIME)
        return None if isinstance(outcome, Refused) else outcome

    return Asked(f"Ask {text}", entry)


def answered(chance: random.Random, state: LedgerState) -> Asked:
    number = some_charges(chance, state)[0] + chance.choice([0, 0, 0, 1, 2])
    return Asked(f"Keep {number}", lambda now: answering(now, number, "{}", TIME))


def left(chance: random.Random, state: LedgerState) -> Asked:
    charges, cause = some_charges(chance, state), chance.choice(["fault", "death", "interrupt", "stop"])
    if chance.random() < 0.3:
        charges = charges * chance.choice([1, 2])
        body: dict[str, object] = {"cause": cause, "also": charges[1:]}
        return added("unanswered", str(charges[0]), body, f"Unanswered {listed(charges)} {CAUSES[cause]}")
    return Asked(f"Leave {listed(charges)} {CAUSES[cause]}", lambda now: leaving(now, charges, cause, TIME))  # type: ignore[arg-type]


def accepted(chance: random.Random, state: LedgerState) -> Asked:
    version = state.version + chance.choice([1, 1, 2])
    return added("data", "", {"version": version, "digests": {"t": "a" * 64}, "principal": "p"}, f"Data {version}")


def resumed(chance: random.Random, state: LedgerState) -> Asked:
    faults = state.faults + chance.choice([0, 0, 0, 1])
    return added("resume", "", {"faults": faults, "principal": "p"}, f"Resume {faults}")


def raised(chance: random.Random, state: LedgerState) -> Asked:
    was = registration_of(state, chance.choice([Fraction(0), Fraction(0), Fraction(0), Fraction(1, 10)]))
    now = registration_of(state, chance.choice([Fraction(1, 5), Fraction(1, 3), Fraction(-1, 5)]))
    text = f"Raise {steps(was.budget.amount)} {steps(now.budget.amount)}"
    return added("raise", "", record_of(was, now, "p"), text)


def registration_of(state: LedgerState, more: Fraction) -> Registration:
    """Return the registration with another budget; only the loss decides in the model, so only it differs here."""
    epsilon = grid_up(state.registration.epsilon + more)
    return replace(state.registration, epsilon=epsilon, budget=PureDP(epsilon))


def closed(chance: random.Random, state: LedgerState) -> Asked:
    return added("close", "", {"principal": "p"}, "Close")


def restored(chance: random.Random, state: LedgerState) -> Asked:
    entries, lost = state.sequence + chance.choice([0, 0, 1]), chance.random() < 0.3
    body: dict[str, object] = {
        "entries": entries,
        "marked": None,
        "declared": "lost" if lost else "newest",
        "principal": "p",
    }
    return added("restored", "", body, f"Restored {entries} {str(lost).lower()}")


KINDS = [charged] * 12 + [answered] * 5 + [left] * 5 + [accepted] + [resumed] * 2 + [raised, closed, restored]


def grown(chance: random.Random) -> tuple[str, list[list[int]]]:
    """Return what a ledger is asked, as the model is, and what came of it."""
    first = opening(registration(PureDP(BUDGET), delta=DELTA_KEYS, delta_keys=DELTA_KEYS), TIME)
    state, asked, took = fold(None, first), list[str](), list[int]()
    for number in range(ENTRIES):
        kinds = [accepted] if number == 0 else KINDS if number > ENTRIES // 2 else KINDS[:-2]
        wanted = chance.choice(kinds)(chance, state)
        asked.append(wanted.text)
        try:
            entry = wanted.entry(state)
        except LapwingError:
            entry = None
        if entry is None:
            took.append(2)
            continue
        try:
            state = fold(state, entry)
        except LedgerFault:
            took.append(0)
        else:
            took.append(1)
    spent, registered = state.account.spent.amount, state.registration
    figures = [
        state.sequence,
        state.version,
        steps(registered.budget.amount),
        steps(spent),
        steps(registered.delta_keys),
        steps(state.delta_spent),
        state.faults,
        int(state.closed),
    ]
    text = f"go (State 1 0 {steps(BUDGET)} 0 {steps(DELTA_KEYS)} 0 0 false []) [{'; '.join(asked)}]"
    return text, [took, figures, list(state.under_way)]


def by_model(texts: Sequence[str], folder: Path, name: str, head: str = HEAD) -> list[Any]:
    """Return what the model makes of each."""
    made = compiled(name, head + "\n".join(f"Eval vm_compute in shown ({text})." for text in texts), folder)
    assert made.returncode == 0, made.stderr
    found = re.findall(r"= (\[\[.*?\]\])\s+: ", made.stdout, re.DOTALL)
    return [
        [[int(n) for n in part.split(";") if n.strip()] for part in re.findall(r"\[([^][]*)\]", one)] for one in found
    ]


def test_the_ledger_and_its_model_agree(checked: Path) -> None:
    chance = random.Random(SEED)
    texts, found = zip(*(grown(chance) for _ in range(LEDGERS)), strict=True)
    assert by_model(texts, checked, "Ledgers") == list(found)
    outcomes = [took for one in found for took in one[0]]
    assert min(outcomes.count(0), outcomes.count(2)) > LEDGERS  # entries that may not follow, and refusals
    assert outcomes.count(1) > 10 * LEDGERS
    assert any(one[1][6] >= 3 for one in found)  # faults that stop a data set


def test_a_model_that_forgets_to_round_is_found(checked: Path) -> None:
    """The planted bug: the thirds of a budget, rounded down, fit three times."""
    third = steps(Fraction(1, 3))
    asked = ["Add (Data 1)", *[f"Ask 1 {third} 0 None"] * 3]
    start = f"go (State 1 0 {steps(BUDGET)} 0 0 0 0 false [])"
    exact, careless = (
        by_model([f"{start} [{'; '.join(text)}]"], checked, "Thirds")[0][0]
        for text in (asked, [text.replace(str(third), str(third - 1)) for text in asked])
    )
    assert exact == [1, 1, 1, 2]
    assert careless == [1, 1, 1, 1]
