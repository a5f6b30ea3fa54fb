"""`lapwing audit`: check an installation, its catalog and its records."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from lapwing.cli import options
from lapwing.cli.characters import to_json
from lapwing.cli.console import labelled, note, print_text, show, text
from lapwing.machine.drafts import draft_of

if TYPE_CHECKING:
    from lapwing.audit import AuditCheck, AuditFinding, AuditReport

EXAMPLE: Final = options.examples(
    "lapwing audit visits.toml --quick", "lapwing audit visits.toml --minutes 30 --json audit.json"
)
VIOLATED: Final = 1
"""The exit status if something that Lapwing promises does not hold."""
STYLES: Final = {"violated": "bold red", "warning": "yellow", "remark": "dim"}


def command(
    catalog: Annotated[
        Path, typer.Argument(metavar="CATALOG", help="The catalog of the data set.")
    ] = options.DEFAULT_CATALOG,
    quick: Annotated[bool, typer.Option("--quick", help="Take at most a minute, as for every night.")] = False,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="N", help="How long to test the noise.", min=0.0)
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - prints it.")
    ] = None,
) -> None:
    """Check an installation: its catalog, its queries and its records. Free; reads no row of the protected data.

    The exit status is 1 if something that Lapwing promises does not hold, and 0 otherwise.
    """
    from lapwing.audit import audit  # here, so that `lapwing --help` loads no engine

    report = audit(catalog, quick=quick, minutes=minutes)
    document = to_json(report.to_record())
    if json_file is not None and str(json_file) == "-":
        print_text(document)
    else:
        _show(report)
    if json_file is not None and str(json_file) != "-":
        _write(json_file, document)
    if report.violated:
        raise typer.Exit(VIOLATED)


def _write(file: Path, content: str) -> None:
    """Write a file whole, for its owner alone."""
    with draft_of([content], file) as draft:
        os.replace(draft, file)
    note("written", str(file))


def _show(report: "AuditReport") -> None:
    for check in report.checks:
        show(Text(), *_check(check))
    counts = {severity: sum(one.severity == severity for one in report.findings) for severity in STYLES}
    show(
        Text(), text(f"{counts['violated']:,} violated, {counts['warning']:,} warnings, {counts['remark']:,} remarks.")
    )


def _check(check: "AuditCheck") -> list[RenderableType]:
    state = "violated" if check.violated else "passed"
    facts = [("tried", f"{check.tried:,} {check.what_was_tried}"), ("finds", check.power)]
    facts += [("not tried", check.not_tried)] if check.not_tried else []
    head = Text.assemble((check.name, "bold"), ": ", (state, STYLES["violated"] if check.violated else "green"))
    return [head, labelled(*facts), *map(_finding, check.findings)]


def _finding(finding: "AuditFinding") -> Text:
    return Text.assemble(
        ("  " + finding.severity.value, STYLES[finding.severity.value]),
        "  ",
        text(f"{finding.about}: {finding.what} {finding.remedy}"),
    )
