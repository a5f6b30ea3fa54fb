"""Coq accepts every proof, and no proof rests on something that is only claimed."""

import re
from pathlib import Path

import pytest

from tests.support.proofs import ORDER, PROOFS, compiled, needs_coq, run, source, stated

# What takes a claim for granted, in any of Coq's ways to write it.
_CLAIMED = re.compile(
    r"\b(?:Admitted|admit|give_up|Axioms?|Conjectures?|Parameters?|Unset\s+Guard|bypass_check|Declare\s+Module)\b"
)
_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)


def claimed(text: str) -> list[str]:
    """Return what a text takes for granted."""
    return _CLAIMED.findall(_COMMENT.sub("", text))


def test_every_file_is_in_the_order_of_compilation() -> None:
    assert sorted(ORDER) == sorted(path.stem for path in PROOFS.glob("*.v"))


@pytest.mark.parametrize("name", ORDER)
def test_nothing_is_only_claimed(name: str) -> None:
    assert claimed(source(name)) == []
    assert len(stated(source(name))) > 5


@pytest.mark.parametrize("claim", ["Admitted.", "Axiom a : False.", "Parameter p : 0 = 1.", "Proof. admit. Defined."])
def test_a_claim_is_noticed(claim: str) -> None:
    """The planted bug."""
    assert claimed(f"Lemma l : True.\n{claim}") != []


@needs_coq
@pytest.mark.long
def test_every_theorem_is_proven_from_nothing(checked: Path) -> None:
    """`Print Assumptions` walks through all that a theorem rests on."""
    names = [f"{file}.{name}" for file in ORDER for name in stated(source(file))]
    asked = "\n".join(f"Print Assumptions {name}." for name in names)
    made = compiled("Assumptions", f"From Lapwing Require {' '.join(ORDER)}.\n{asked}\n", checked)
    assert made.returncode == 0, made.stderr
    assert made.stdout.split("\n")[:-1] == ["Closed under the global context"] * len(names)


@needs_coq
@pytest.mark.long
def test_an_axiom_is_named(checked: Path) -> None:
    """The planted bug: a theorem that rests on a claim."""
    text = "Axiom free : 1 = 2.\nTheorem bought : 2 = 1.\nProof. symmetry. apply free. Qed.\n"
    text += "Print Assumptions bought.\n"
    made = compiled("Claimed", text, checked)
    assert made.returncode == 0
    assert "Closed" not in made.stdout
    assert "free : 1 = 2" in made.stdout


@needs_coq
@pytest.mark.long
def test_the_checker_accepts_what_was_compiled(checked: Path) -> None:
    """`coqchk` is a program of its own, with a small kernel, that reads the compiled files and trusts no tactic."""
    made = run("coqchk", checked, "-silent", "-o", *(f"Lapwing.{name}" for name in ORDER))
    assert made.returncode == 0, made.stderr
    assert "* Axioms: <none>" in made.stdout + made.stderr
