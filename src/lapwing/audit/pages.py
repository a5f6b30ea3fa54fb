"""The report of an audit as one page of HTML, which prints on A4.

It has the style of the guarantee's page and of a release's method report: no script, and nothing from elsewhere.
"""

from collections.abc import Iterable, Iterator

from lapwing.audit.comparison import AuditChanges
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.report import AuditReport
from lapwing.guarantee.page import PageSection
from lapwing.guarantee.rendering import html_section, standing_alone

CLASSES = {
    Severity.violated: "Something that Lapwing promises does not hold",
    Severity.warning: "The promise holds, and may be worth less than people think",
    Severity.remark: "Good to know",
}


def as_html(report: AuditReport, changes: AuditChanges | None = None) -> str:
    """Return the page of a report.

    Args:
        changes: Since an earlier report.
    """
    sections = [_summary(report), *_findings(report), *_changes(changes), _power(report), _left_out(report)]
    line = f"Audit of {report.time} with Lapwing {report.version}."
    return standing_alone(f"Audit of {report.dataset}", line, "".join(map(html_section, sections)), "en")


def _summary(report: AuditReport) -> PageSection:
    violated = report.count(Severity.violated)
    outcome = "Nothing is violated." if not violated else f"{violated:,} violated: this installation needs work now."
    scope = "This was a quick audit, which leaves out longer tests." if report.quick else "This was a full audit."
    rows = (
        ("Finding", "Meaning", "Number"),
        *((severity.value, meaning, f"{report.count(severity):,}") for severity, meaning in CLASSES.items()),
    )
    paragraphs = (*report.head, outcome, scope, "The audit charged nothing, and read no row of the protected tables.")
    return PageSection(title="Summary", paragraphs=paragraphs, table=rows)


def _findings(report: AuditReport) -> Iterator[PageSection]:
    for severity in Severity:
        listed = [finding for finding in report.findings if finding.severity is severity]
        if listed:
            yield PageSection(title=f"Findings: {severity.value}", table=_table(listed))


def _table(findings: Iterable[AuditFinding]) -> tuple[tuple[str, ...], ...]:
    rows = ((finding.about, finding.what, finding.remedy, finding.code) for finding in findings)
    return (("About", "Finding", "What to do", "Code"), *rows)


def _changes(changes: AuditChanges | None) -> Iterator[PageSection]:
    if changes is None:
        return
    listed = [("new", one) for one in changes.new] + [("gone", one) for one in changes.gone]
    rows = ((how, one.severity.value, one.about, one.what) for how, one in listed)
    head = ("Change", "Finding", "About", "Text")
    words = (
        f"Compared with the audit of {changes.earlier}: {len(changes.new):,} new findings, {len(changes.gone):,} gone, "
    )
    words += f"{len(changes.unchanged):,} unchanged."
    yield PageSection(title="Changes", paragraphs=(words,), table=(head, *rows) if listed else ())


def _power(report: AuditReport) -> PageSection:
    rows = ((_titled(check), check.outcome, _tried(check), check.power) for check in report.checks)
    head = ("Check", "Result", "What was tried", "The smallest violation that would have been found")
    return PageSection(title="Checks", table=(head, *rows))


def _titled(check: AuditCheck) -> str:
    heading = check.heading
    return f"{heading.title} ({check.name}). {heading.meaning}" if heading.meaning else check.name


def _tried(check: AuditCheck) -> str:
    return f"{check.tried:,} {check.what_was_tried}"


def _left_out(report: AuditReport) -> PageSection:
    rows = tuple((check.heading.title, check.not_tried) for check in report.checks if check.not_tried)
    return PageSection(title="Left out", table=(("Check", "Not tried"), *rows) if rows else ())
