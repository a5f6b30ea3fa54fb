"""The page of what is proven shows the statements that Coq accepts, and which functions somebody compared with them."""

import re

import pytest
from machine_checked import PAGE, digest, function, statement, with_statements

from tests.proofs.test_planted_bugs import BUGS
from tests.support.proofs import ORDER, source

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_shows_what_is_in_the_files() -> None:
    assert with_statements(TEXT) == TEXT, "python scripts/machine_checked.py --write"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<= 2 * (Z.of_nat k * m) /\\", "<= Z.of_nat k * m /\\"),
        (digest(function("query/relations/set_operations.py", "DistinctRows.rows_within")), digest("return 1")),
    ],
)
def test_a_statement_and_a_function_that_differ_are_noticed(old: str, new: str) -> None:
    """The planted bug."""
    assert TEXT.count(old) == 1
    assert with_statements(TEXT.replace(old, new)) == TEXT


def test_every_theorem_is_on_the_page() -> None:
    """Lemmas are steps; what is claimed is a theorem."""
    theorems = [(file, name) for file in ORDER for name in re.findall(r"^ *Theorem (\w+)", source(file), re.MULTILINE)]
    assert len(theorems) > 30
    assert [f"{file}.{name}" for file, name in theorems if statement(source(file), name) not in TEXT] == []


def test_a_statement_ends_where_its_proof_begins() -> None:
    text = "Definition one := 1. (* first *)\nLemma l : forall n,\n  n = n.\nProof. auto. Qed.\n"
    assert statement(text, "one") == "Definition one := 1."
    assert statement(text, "l") == "Lemma l : forall n,\n  n = n."
    with pytest.raises(LookupError):
        statement(text, "other")
    with pytest.raises(LookupError):
        function("ledger/transitions.py", "nobody")


def test_the_page_counts_the_bugs_that_are_planted() -> None:
    assert f"It plants {len(BUGS)} bugs" in TEXT
