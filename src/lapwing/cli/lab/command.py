"""`lapwing lab`: run an experiment, list them, or make a page of all to hand out."""

from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.chart_files import require_pictures
from lapwing.cli.characters import to_json
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import Fitted, new_table, note, on_terminal, print_text, show, text
from lapwing.cli.lab.pages import as_csv, as_document, as_page, as_tables
from lapwing.cli.options import TableFormat, above_zero, amount
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.lab import Finding

EXAMPLE: Final = """\b
Examples:
  lapwing lab
  lapwing lab coin --epsilon 1
  lapwing lab averaging --against naive --plot averaging.html
  lapwing lab all --short --html out/"""
ALL: Final = "all"
SURPRISED: Final = 1


class Against(StrEnum):
    """What an attack is tried on."""

    naive = "naive"
    lapwing = "lapwing"
    both = "both"


def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="EXPERIMENT", help="Which; `all` for all of them. Without one they are listed."),
    ] = None,
    epsilon: Annotated[
        Fraction | None, amount(above_zero("--epsilon"), "In the place of the experiment's own.")
    ] = None,
    against: Annotated[Against, typer.Option(help="What an attack is tried on.")] = Against.both,
    short: Annotated[bool, typer.Option("--short", help="Fewer repeats: quicker, and less sure.")] = False,
    form: Annotated[
        TableFormat | None, typer.Option("--format", help="Tables on a terminal, CSV in a pipe.", show_default=False)
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a page with tables and charts, to hand out.")
    ] = None,
    students: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the course's data set: .parquet or .csv.")
    ] = None,
) -> int | None:
    """Try out what differential privacy promises, and what attacks can do: predicted beside observed."""
    if students is not None:
        _write_students(students)
    if name is None:
        if plot is not None or html is not None:
            raise InvalidParameter("--plot and --html are for experiments: name one, or all.")
        if students is None:
            _list()
        return None
    require_chart(plot)
    if html is not None:
        require_pictures("A page with charts")
    if plot is not None and name == ALL:
        raise InvalidParameter("--plot is for one experiment; of all, --html FOLDER makes a page with every chart.")
    names = list(lw.lab.experiments()) if name == ALL else [name]
    shown = form or (TableFormat.table if on_terminal() else TableFormat.csv)
    findings: dict[str, Finding] = {}
    for each in names:
        findings[each] = lw.lab.run(each, epsilon=epsilon, against=against.value, short=short)
        if shown is TableFormat.table:
            show(text(f"{each}: {lw.lab.experiments()[each].title}", "bold"), *as_tables(findings[each]))
    if shown is TableFormat.csv:
        print_text(as_csv(findings))
    if shown is TableFormat.json:
        print_text(to_json([as_document(each, finding) for each, finding in findings.items()]))
    for each, finding in findings.items():
        for check in finding.checks:
            if not check.holds:
                note("surprise", f"{each}: {check.what} is {check.observed:.6g}; predicted was {check.predicted:.6g}")
    if plot is not None:
        write_chart(findings[name].plot, plot)
    if html is not None:
        html.mkdir(parents=True, exist_ok=True)
        (html / "index.html").write_text(as_page(findings), encoding="utf-8")
        note("written", str(html / "index.html"))
    return None if all(finding.holds for finding in findings.values()) else SURPRISED


def _list() -> None:
    table = new_table("experiment", "what it asks", "")
    for name, experiment in lw.lab.experiments().items():
        table.add_row(text(name), text(experiment.title), text("an attack" if experiment.attack else ""))
    show(Fitted(table))
    note("next", "lapwing lab EXPERIMENT, or lapwing lab all")


def _write_students(file: Path) -> None:
    import pyarrow.csv  # here, so that `lapwing --help` stays quick
    import pyarrow.parquet

    writers = {".parquet": pyarrow.parquet.write_table, ".csv": pyarrow.csv.write_csv}
    if file.suffix.lower() not in writers:
        raise InvalidParameter(f"--students is {file.name!r:.60}; its name must end in .parquet or .csv.")
    writers[file.suffix.lower()](lw.lab.students(), file)
    note("written", str(file))
