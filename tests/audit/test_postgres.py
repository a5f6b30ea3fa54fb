"""A ledger in PostgreSQL is audited as a file is: honest entries pass, and what somebody edited there is found."""

import re
from pathlib import Path

import psycopg
import pytest

import lapwing as lw
from lapwing.audit import AuditEffort, Subject, chain, charges, kept_totals, totals
from lapwing.audit.files import ledger_checks
from tests.audit.conftest import QUERIES
from tests.support.audit import codes

CHECKS = (chain.checks, totals.checks, kept_totals.checks, charges.checks, ledger_checks)


@pytest.fixture
def in_postgres(catalog: Path, postgres: str) -> Path:
    """A catalog whose ledger is in PostgreSQL, with three queries."""
    text, place = catalog.read_text(encoding="utf-8"), f"{postgres}&ledger=visits"
    catalog.write_text(re.sub(r'ledger = ".*"', f'ledger = "{place}"', text), encoding="utf-8")
    with lw.connect(catalog) as session:
        for query in QUERIES:
            session.sql(query, epsilon=0.1)
    return catalog


def found(catalog: Path) -> list[str]:
    subject = Subject.from_file(catalog)
    return codes(check for checks in CHECKS for check in checks(subject, AuditEffort()))


def test_an_honest_ledger_passes(in_postgres: Path) -> None:
    subject = Subject.from_file(in_postgres)
    assert len(subject.entries) == 8
    assert len(subject.questions) == 3
    assert found(in_postgres) == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE lapwing.entries SET time = '2020' WHERE sequence = 4", "entry_edited"),
        ("UPDATE lapwing.entries SET body = replace(body, 'visits', 'Visits') WHERE sequence = 1", "entry_edited"),
        ("DELETE FROM lapwing.entries WHERE sequence = 3", "entry_missing"),
        ("DELETE FROM lapwing.entries WHERE sequence = 8", "ledger_behind_mark"),
    ],
)
def test_what_somebody_edited_is_found(in_postgres: Path, postgres: str, statement: str, expected: str) -> None:
    with psycopg.connect(postgres) as connection:
        assert connection.execute(statement.encode()).rowcount == 1
    assert expected in found(in_postgres)


def test_a_database_that_does_not_answer_is_a_finding(in_postgres: Path) -> None:
    text = in_postgres.read_text(encoding="utf-8")
    in_postgres.write_text(
        text.replace("ledger=visits", "connect_timeout=1&ledger=visits").replace("host=", "host=/nowhere")
    )
    assert Subject.from_file(in_postgres).unreadable
    assert "ledger_unreadable" in found(in_postgres)
