"""`lapwing lab`: run an experiment, list them, or make a page of all to hand out."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

import lapwing as lw
from lapwing.cli.characters import to_json
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import Fitted, new_table, note, on_terminal, print_text, show, text
from lapwing.cli.lab.pages import as_csv, as_derivation, as_document, as_page, as_tables
from lapwing.cli.options import TableFormat, above_zero, amount, between, grouped
from lapwing.errors import InvalidParameter
from lapwing.plots.files import require_pictures

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lapwing.lab import Finding

EXAMPLE: Final = """\b
Examples:
  lapwing lab
  lapwing lab coin --epsilon 1
  lapwing lab coin --epsilon 0.1,0.5,1,2 --plot coins.html
  lapwing lab selection --d 100 --repetitions 2000
  lapwing lab posterior --explain
  lapwing lab averaging --against naive --plot averaging.html
  lapwing lab all --short --html out/"""
ALL: Final = "all"
SURPRISED: Final = 1


class Against(StrEnum):
    """What an attack is tried on."""

    naive = "naive"
    lapwing = "lapwing"
    both = "both"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOptions:
    """What an experiment takes in the place of its own values."""

    n: Annotated[int | None, typer.Option("--n", help="The number of people.")] = None
    k: Annotated[int | None, typer.Option("--k", help="The number of answers, queries, or members of a group.")] = None
    d: Annotated[int | None, typer.Option("--d", help="The number of dimensions: columns or candidates.")] = None
    delta: Annotated[Fraction | None, amount(between("--delta"), "δ, where one is needed.")] = None
    repetitions: Annotated[
        int | None, typer.Option("--repetitions", help="The number of repeats. Lapwing takes no seed.")
    ] = None
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Your own students: .parquet or .csv.")
    ] = None

    def given(self) -> dict[str, Any]:
        """Return those that are given, by the names of `lab.run`.

        Raises:
            InvalidParameter: For a file that cannot be read.
        """
        numbers = {"n": self.n, "k": self.k, "d": self.d, "delta": self.delta, "repetitions": self.repetitions}
        data = {} if self.data is None else {"data": _read_students(self.data)}
        return {name: value for name, value in numbers.items() if value is not None} | data


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabOutputOptions:
    """What is written, and where."""

    form: Annotated[
        TableFormat | None, typer.Option("--format", help="Tables on a terminal, CSV in a pipe.", show_default=False)
    ] = None
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None
    html: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a page with tables and charts, to hand out.")
    ] = None
    students: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the course's data set: .parquet or .csv.")
    ] = None

    def require_possible(self, name: str) -> None:
        """Refuse what cannot be written, before anything runs.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        require_chart(self.plot)
        if self.html is not None:
            require_pictures("A page with charts")
        if self.plot is not None and name == ALL:
            raise InvalidParameter("--plot is for one experiment; of all, --html FOLDER makes a page with every chart.")


@grouped
def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="EXPERIMENT", help="The experiment, or `all`. Without one, the command lists them."),
    ] = None,
    *,
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER,...", help="Instead of the experiment's own; several give one table and one chart."
        ),
    ] = None,
    settings: ExperimentOptions,
    against: Annotated[Against, typer.Option(help="The target of an attack.")] = Against.both,
    explain: Annotated[bool, typer.Option("--explain", help="Show the source of the predictions.")] = False,
    short: Annotated[bool, typer.Option("--short", help="Run fewer repeats, which is quicker and less exact.")] = False,
    output: LabOutputOptions,
) -> int | None:
    """Try out what differential privacy promises and what attacks can do: predictions next to observations."""
    if output.students is not None:
        _write_students(output.students)
    epsilons, given = _epsilons(epsilon), settings.given()
    if name is None:
        if output.plot is not None or output.html is not None or explain or given or epsilon:
            raise InvalidParameter("An option is for experiments: name one, or all.")
        if output.students is None:
            _list()
        return None
    names = list(lw.lab.experiments()) if name == ALL else [name]
    if explain:
        show(*(part for each in names for part in as_derivation(each)))
        return None
    output.require_possible(name)
    shown = output.form or (TableFormat.table if on_terminal() else TableFormat.csv)
    findings: dict[str, Finding] = {}
    for place, each in enumerate(names, start=1):
        if len(names) > 1 and shown is not TableFormat.table:
            note("running", f"{each}, {place} of {len(names)}")
        taken = given if name != ALL else {key: given[key] for key in given if key in lw.lab.experiments()[each].takes}
        findings[each] = _found(each, epsilons, against=against.value, short=short, **taken)
        if shown is TableFormat.table:
            show(text(f"{each}: {lw.lab.experiments()[each].title}", "bold"), *as_tables(findings[each]))
        if shown is TableFormat.csv:  # as soon as it is there: all experiments take a minute
            print_text(as_csv({each: findings[each]}, head=place == 1))
    if shown is TableFormat.json:
        print_text(to_json([as_document(each, finding) for each, finding in findings.items()]))
    _note_surprises(findings)
    if output.plot is not None:
        write_chart(findings[name].plot, output.plot)
    if output.html is not None:
        output.html.mkdir(parents=True, exist_ok=True)
        (output.html / "index.html").write_text(as_page(findings), encoding="utf-8")
        note("written", str(output.html / "index.html"))
    return None if all(finding.holds for finding in findings.values()) else SURPRISED


def _note_surprises(findings: "Mapping[str, Finding]") -> None:
    for each, finding in findings.items():
        for check in finding.checks:
            if not check.holds:
                note("surprise", f"{each}: {check.what} is {check.observed:.6g}; predicted was {check.predicted:.6g}")


def _epsilons(said: str | None) -> list[Fraction]:
    """Read one ε, or several with commas between them, or none."""
    return [above_zero("--epsilon")(part.strip()) for part in said.split(",")] if said is not None else []


def _found(name: str, epsilons: list[Fraction], **settings: Any) -> "Finding":
    """Run an experiment at its own ε, at one, or at several."""
    if len(epsilons) > 1:
        return lw.lab.sweep(name, epsilons, **settings)
    return lw.lab.run(name, epsilon=epsilons[0] if epsilons else None, **settings)


def _list() -> None:
    table = new_table("experiment", "what it asks", "", "takes")
    for name, experiment in lw.lab.experiments().items():
        takes = " ".join(f"--{parameter}" for parameter in experiment.takes)
        table.add_row(*map(text, (name, experiment.title, "an attack" if experiment.attack else "", takes)))
    show(Fitted(table))
    note("next", "lapwing lab EXPERIMENT, or lapwing lab all; each takes --epsilon")


def _read_students(file: Path) -> "pa.Table":
    """Read a table like that of the students."""
    import pyarrow.csv
    import pyarrow.parquet

    readers = {".parquet": pyarrow.parquet.read_table, ".csv": pyarrow.csv.read_csv}
    if file.suffix.lower() not in readers:
        raise InvalidParameter(f"--data is {file.name!r:.60}; its name must end in .parquet or .csv.")
    try:
        return readers[file.suffix.lower()](file)
    except FileNotFoundError:
        raise InvalidParameter(f"--data: there is no file {str(file)!r:.100}.") from None
    except pyarrow.ArrowInvalid:
        raise InvalidParameter(f"--data: {file.name!r:.60} is not a table of {file.suffix}.") from None


def _write_students(file: Path) -> None:
    import pyarrow.csv  # here, so that `lapwing --help` stays quick
    import pyarrow.parquet

    writers = {".parquet": pyarrow.parquet.write_table, ".csv": pyarrow.csv.write_csv}
    if file.suffix.lower() not in writers:
        raise InvalidParameter(f"--students is {file.name!r:.60}; its name must end in .parquet or .csv.")
    writers[file.suffix.lower()](lw.lab.students(), file)
    note("written", str(file))
