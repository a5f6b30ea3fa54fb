"""`lapwing audit`: check an installation, its catalog and its records."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from lapwing.cli import options
from lapwing.cli.characters import to_json
from lapwing.cli.console import labelled, note, print_text, show, text
from lapwing.cli.service.places import opened_people
from lapwing.errors import InvalidParameter, NotAuthorised

if TYPE_CHECKING:
    from lapwing.audit import AuditChanges, AuditCheck, AuditFinding, AuditReport
    from lapwing.tabulation.signing import SigningKey

EXAMPLE: Final = options.examples(
    "lapwing audit visits.toml --quick", "lapwing audit visits.toml --minutes 30 --json audit.json"
)
VIOLATED: Final = 1
"""The exit status if something that Lapwing promises does not hold."""
OUTCOMES: Final = {"violated": "bold red", "passed": "green", "not tried": "dim"}
STYLES: Final = {"violated": "bold red", "warning": "yellow", "remark": "dim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReportOptions:
    """Where a report is written, and what it is compared with."""

    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - prints it.")
    ] = None
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page that prints on A4.")
    ] = None
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="An Ed25519 private key in PEM: signs a manifest of the files."),
    ] = None
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="An earlier report in JSON: list new, gone and old findings."),
    ] = None


@options.grouped
def command(
    report: AuditReportOptions,
    catalog: Annotated[
        Path, typer.Argument(metavar="CATALOG", help="The catalog of the data set.")
    ] = options.DEFAULT_CATALOG,
    quick: Annotated[bool, typer.Option("--quick", help="Take at most a minute, as for every night.")] = False,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="N", help="How long to test the noise.", min=0.0)
    ] = None,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Check an installation: its catalog, its queries and its records. Free; reads no row of the protected data.

    The exit status is 1 if something that Lapwing promises does not hold, and 0 otherwise. With --server, Lapwing
    checks what an auditor sees: the ledger and the audit log.
    """
    from lapwing.audit import AuditChanges, AuditReport, audit  # here, so that `lapwing --help` loads no engine

    earlier, key = None if report.against is None else AuditReport.from_file(report.against), _key(report)
    if server is None:
        found = audit(catalog, quick=quick, minutes=minutes, earlier=earlier)
    else:
        found = _of_server(server, dataset)
    changes = None if earlier is None else AuditChanges.between(earlier, found)
    if str(report.json_file) == "-":
        print_text(_document(found, changes))
    else:
        _show(found, changes)
    _write(found, changes, report, key)
    if found.violated:
        raise typer.Exit(VIOLATED)


def _of_server(server: str, dataset: str | None) -> "AuditReport":
    from lapwing.audit.from_outside import audit_of_server

    with options.open_session(options.DEFAULT_CATALOG, server, dataset) as session:
        entries, name = tuple(session.ledger_entries()), options.name_of(session)
    with opened_people(None, options.DEFAULT_CATALOG, server) as administration:
        try:
            lines = administration.audit_lines()
        except NotAuthorised:
            lines = None
    return audit_of_server(name, entries, lines)


def _document(report: "AuditReport", changes: "AuditChanges | None") -> str:
    more = {} if changes is None else {"changes": changes.to_record()}
    return to_json({**report.to_record(), **more})


def _key(report: AuditReportOptions) -> "SigningKey | None":
    """Read the key before the audit, so that a mistake costs no time."""
    if report.key is None:
        return None
    if report.html_file is None and str(report.json_file) in ("-", "None"):
        raise InvalidParameter("--key signs files; give --json FILE or --html FILE, too.")
    from lapwing.tabulation.signing import SigningKey

    return SigningKey.from_file(report.key)


def _write(
    found: "AuditReport", changes: "AuditChanges | None", report: AuditReportOptions, key: "SigningKey | None"
) -> None:
    """Write the files that were asked for, and sign them."""
    from lapwing.audit import pages, writing

    files = []
    if report.json_file is not None and str(report.json_file) != "-":
        writing.write(_document(found, changes), report.json_file)
        files.append(report.json_file)
    if report.html_file is not None:
        writing.write(pages.as_html(found, changes), report.html_file)
        files.append(report.html_file)
    if key is not None:
        files.append(writing.write_manifest(found, files, key))
    for file in files:
        note("written", str(file))


def _show(report: "AuditReport", changes: "AuditChanges | None") -> None:
    show(*map(text, report.head))
    for check in report.checks:
        show(Text(), *_check(check))
    if changes is not None:
        new, gone = len(changes.new), len(changes.gone)
        show(
            Text(), text(f"Since {changes.earlier}: {new:,} new, {gone:,} gone, {len(changes.unchanged):,} unchanged.")
        )
        for how, listed in (("new", changes.new), ("gone", changes.gone)):
            show(*(text(f"  {how}  {one.severity}  {one.about}: {one.what}") for one in listed))
    counts = {severity: sum(one.severity == severity for one in report.findings) for severity in STYLES}
    said = f"{counts['violated']:,} violated, {counts['warning']:,} warnings, {counts['remark']:,} remarks."
    show(Text(), text(said))


def _check(check: "AuditCheck") -> list[RenderableType]:
    heading = check.heading
    facts = [("tried", f"{check.tried:,} {check.what_was_tried}"), ("finds", check.power)]
    facts += [("not tried", check.not_tried)] if check.not_tried else []
    name = f" ({check.name})" if heading.meaning else ""
    head = Text.assemble((heading.title, "bold"), f"{name}: ", (check.outcome, OUTCOMES[check.outcome]))
    meaning = [text(heading.meaning)] if heading.meaning else []
    return [head, *meaning, labelled(*facts), *map(_finding, check.findings)]


def _finding(finding: "AuditFinding") -> Text:
    return Text.assemble(
        ("  " + finding.severity.value, STYLES[finding.severity.value]),
        "  ",
        text(f"{finding.about}: {finding.what} {finding.remedy}"),
    )
