"""The report: exit status, JSON, HTML, a signed manifest, and what changed since an earlier one."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from lapwing.audit import AuditChanges, AuditReport, Severity, Subject, pages, running
from lapwing.audit.findings import AuditFinding
from lapwing.audit.from_outside import audit_of_server
from lapwing.audit.headings import HEADINGS
from lapwing.tabulation.signing import faults_of
from tests.support.audit import codes, edit, rewrite
from tests.support.cli.command import Run, run

__all__ = ["run"]
NAMED = re.compile(r'AuditCheck\(\n +name="([^"]+)"')
BAD = AuditFinding(code="bad", severity=Severity.violated, about="entry <3>", what="It is & bad.", remedy="Look.")


@pytest.fixture
def records_only() -> Iterator[None]:
    """Leave out the tests of the path, which take seconds and have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "CHECKS", [source for source in running.CHECKS if "path" not in source.__module__])
        yield


@pytest.mark.usefixtures("records_only")
def test_the_exit_status_says_whether_something_is_violated(catalog: Path, run: Run) -> None:
    outcome = run("audit", str(catalog), "--quick")
    assert (outcome.status, "(charges): passed" in outcome.out) == (0, True)
    assert "(snapshots): not tried" in outcome.out
    edit(Subject.from_file(catalog).catalog.ledger_path, "UPDATE entries SET time = '2020' WHERE sequence = 4")
    outcome = run("audit", str(catalog), "--json", "-")
    document = json.loads(outcome.out)
    assert (outcome.status, document["violated"]) == (1, True)
    assert AuditReport.from_record(document).to_record() == document
    assert all(check["power"] for check in document["checks"])


@pytest.mark.usefixtures("records_only")
def test_reports_are_compared_over_time(catalog: Path, run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert run("audit", str(catalog), "--json", str(first)).status == 0
    subject = Subject.from_file(catalog)
    rewrite(subject, subject.entries[:6])  # with a mark that fits: nothing else sees it
    assert run("audit", str(catalog)).status == 0
    assert run("audit", str(catalog), "--json", str(second), "--against", str(first)).status == 1
    changes: Any = json.loads(second.read_text())["changes"]
    assert [finding["code"] for finding in changes["new"]] == ["ledger_behind_report"]
    assert {finding["code"] for finding in changes["unchanged"]} >= {"no_backup"}
    assert run("audit", str(catalog), "--against", str(catalog)).status == 2


@pytest.mark.usefixtures("records_only")
def test_the_files_of_a_report_are_signed(catalog: Path, run: Run, tmp_path: Path) -> None:
    key, private, public = Ed25519PrivateKey.generate(), tmp_path / "own.pem", tmp_path / "own.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    files = ("--json", str(tmp_path / "audit.json"), "--html", str(tmp_path / "audit.html"))
    assert run("audit", str(catalog), "--key", str(private)).status == 2
    assert run("audit", str(catalog), *files, "--key", str(private)).status == 0
    manifest = tmp_path / "audit.manifest.json"
    assert faults_of(manifest, public) == []
    (tmp_path / "audit.html").write_text("All is well.", encoding="utf-8")
    assert faults_of(manifest, public) != []


def test_a_page_shows_findings_power_and_changes(catalog: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "CHECKS", running.CHECKS[:1])
        report = running.audit(catalog)
    bad = replace(report, checks=(replace(report.checks[0], findings=(BAD,)),))
    page = pages.as_html(bad, AuditChanges.between(report, bad))
    assert all(html.escape(sentence) in page for sentence in report.head)
    heading = report.checks[0].heading
    assert f"{heading.title} ({report.checks[0].name}). {heading.meaning}" in page
    assert "entry &lt;3&gt;" in page
    assert "It is &amp; bad." in page
    assert "1 new findings, 0 gone, 0 unchanged" in page
    assert "<script" not in page
    assert AuditChanges.between(bad, report).gone == (BAD,)


def test_every_check_has_a_heading() -> None:
    folder = Path(running.__file__).parent
    named = {name for file in folder.glob("*.py") for name in NAMED.findall(file.read_text(encoding="utf-8"))}
    assert named == HEADINGS.keys()
    assert len({heading.title for heading in HEADINGS.values()}) == len(named)


def test_a_server_is_audited_by_what_an_auditor_sees(catalog: Path) -> None:
    entries = Subject.from_file(catalog).entries
    report = audit_of_server("visits", entries, [])
    assert not report.violated
    assert {check.name: check.tried for check in report.checks} == {
        "ledger chain": 8,
        "totals": 8,
        "stored results": 3,
        "charges": 3,
        "audit log": 0,
        "what a server does not show": 0,
    }
    edited = [*entries[:3], replace(entries[3], body=entries[3].body.replace("1", "2")), *entries[4:]]
    line = {"sequence": 1, "time": "", "actor": "a", "act": "b", "subject": "", "details": {}, "previous": "0" * 64}
    checks = audit_of_server("visits", edited, [json.dumps({**line, "hash": "0" * 64})]).checks
    assert {"entry_edited", "line_edited"} <= set(codes(checks))


@pytest.mark.long
def test_the_whole_command_passes_on_an_honest_installation(catalog: Path, run: Run) -> None:
    outcome = run("audit", str(catalog), "--quick")
    assert outcome.status == 0, outcome.out
