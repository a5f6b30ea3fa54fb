"""What is wrong with a ledger's chain is found without the code that writes it."""

from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.audit import AuditEffort, Subject, chain, kept_totals
from lapwing.ledger import kept_state
from lapwing.ledger.reading import verified
from tests.support.audit import codes, edit


def found(catalog: Path) -> list[str]:
    return codes(chain.checks(Subject.from_file(catalog), AuditEffort()))


def test_an_honest_ledger_passes(catalog: Path) -> None:
    (check,) = chain.checks(subject := Subject.from_file(catalog), AuditEffort())
    assert check.findings == ()
    assert check.tried == len(subject.entries) == 8
    assert len(subject.questions) == 3


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE entries SET time = '2020' WHERE sequence = 4", "entry_edited"),
        ("UPDATE entries SET body = replace(body, 'visits', 'Visits') WHERE sequence = 1", "entry_edited"),
        ("DELETE FROM entries WHERE sequence = 3", "entry_missing"),
        ("DELETE FROM entries WHERE sequence = 8", "ledger_behind_mark"),
    ],
)
def test_a_fault_is_found(catalog: Path, statement: str, expected: str) -> None:
    edit(Subject.from_file(catalog).catalog.ledger_path, statement)
    assert expected in found(catalog)


def test_a_ledger_that_is_no_database(catalog: Path) -> None:
    Subject.from_file(catalog).catalog.ledger_path.write_bytes(b"no database")
    assert found(catalog) == ["ledger_unreadable"]


@pytest.mark.parametrize(("content", "expected"), [(None, "mark_missing"), (b"lapwing", "mark_damaged")])
def test_a_mark_that_is_no_mark(catalog: Path, content: bytes | None, expected: str) -> None:
    mark = chain.mark_path(Subject.from_file(catalog).catalog.ledger_path)
    if content is None:
        mark.unlink()
    else:
        mark.write_bytes(content)
    assert found(catalog) == [expected]


def test_kept_totals_that_hide_spending_are_found(catalog: Path) -> None:
    subject = Subject.from_file(catalog)
    ledger, state = subject.catalog.ledger_path, verified(subject.entries)
    assert state is not None
    kept_state.keep(ledger, state)
    assert codes(kept_totals.checks(subject, AuditEffort())) == []
    kept_state.keep(ledger, replace(state, account=replace(state.account, spent=state.account.spent.nothing())))
    assert codes(kept_totals.checks(subject, AuditEffort())) == ["kept_totals_differ"]
    assert found(catalog) == []  # no entry was touched
