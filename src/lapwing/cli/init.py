"""`lapwing init`: draft a catalog from the names and types in a file, and what the curator says in public."""

import os
import shlex
import sys
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from lapwing.cli.characters import visible
from lapwing.cli.column_options import bounds_of, lengths_of, types_line, types_of, values_of
from lapwing.cli.console import complain, labelled, note, rendered
from lapwing.cli.options import DEFAULT_CATALOG, NeighbouringOption, Unreadable, above_zero, amount, part_of_one
from lapwing.errors import CatalogError, InvalidParameter

if TYPE_CHECKING:
    from lapwing.catalog.model import Catalog

EXAMPLE: Final = """\b
Example:
  lapwing init visits.parquet --privacy-unit person_id --epsilon 3 --delta 1e-6 \\
      --max-rows 5 --bounds cost=0:5000 --bounds age=0:110 --values plan=a,b \\
      --questions 40
  lapwing init visits.csv --privacy-unit person_id --epsilon 3 --max-rows 5 \\
      --types age=integer,cost=decimal:0.01,day=date --bounds age=0:110

\b
Types, bounds, values and --max-rows must be public knowledge: taken from the data
they are outside the guarantee. Rows are not read; for a CSV file without --types,
which is refused, the first rows are, to show you a draft of them."""


class Measure(StrEnum):
    """What a ledger adds up."""

    pure = "pure"
    gdp = "gdp"
    zcdp = "zcdp"


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="A Parquet or CSV file; the table is named after it.", show_default=False
        ),
    ],
    privacy_unit: Annotated[
        str, typer.Option(metavar="COLUMN", help='The column that says whose row it is, or "row".', show_default=False)
    ],
    epsilon: Annotated[
        Fraction, amount(above_zero("--epsilon"), "The most that all answers together may reveal.", show_default=False)
    ],
    delta: Annotated[
        Fraction | None, amount(part_of_one("--delta"), "What epsilon may miss; without it, the budget is pure.")
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Rows of a unit beyond it do not exist for any question; needed unless the unit is a row."
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=TYPE,…",
            help="Types of a CSV file, which holds none; columns not named are text. May be repeated.",
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOWER:UPPER", help="Public bounds, for SUM and AVG. Repeat for more columns."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=A,B,…", help="Public keys, for GROUP BY. Repeat for more columns."),
    ] = None,
    max_length: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=BYTES", help="How long texts may be, 256 unless given. Repeat for more columns."),
    ] = None,
    measure: Annotated[
        Measure | None,
        typer.Option(help="What the ledger adds up: gdp unless given, pure without a delta.", show_default=False),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="How many questions are planned: compares the measures, and takes the best."
        ),
    ] = None,
    neighbouring: Annotated[
        NeighbouringOption, typer.Option(help="Hide whether a unit is present, or which unit it is.")
    ] = NeighbouringOption.add_remove,
    delta_keys: Annotated[
        Fraction | None, amount(part_of_one("--delta-keys"), "The part of delta for private group keys.")
    ] = None,
    unreadable: Unreadable = None,
    people: Annotated[
        int | None, typer.Option(metavar="N", help="How many units there are, if that is public: to judge delta by.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The catalog to write.")
    ] = DEFAULT_CATALOG,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a catalog that is there.")] = False,
) -> None:
    """Write a catalog for a file: names from the file, and types from a Parquet file; everything else from you.

    Reads no row. A CSV file holds no types: without --types it is refused, and a draft of them is shown.
    """
    from lapwing.catalog.draft import draft  # here, so that `lapwing --help` loads no file reader
    from lapwing.catalog.model import ROW
    from lapwing.catalog.text_files import is_text
    from lapwing.catalog.toml import write

    if source.is_dir():
        raise CatalogError(f"{source} is a folder; name the Parquet or CSV file in it. Nothing was written.")
    if max_rows is None and privacy_unit != ROW:
        raise InvalidParameter(
            "--max-rows is missing; say how many rows one unit may have at most, from what the table is about, like 10."
        )
    if output.exists() and not force:
        raise CatalogError(f"{output} exists already; nothing was changed. Choose another --output, or add --force.")
    if types is None and is_text(source):
        _refuse_without_types(source)
    drafting = partial(
        draft,
        source,
        privacy_unit=privacy_unit,
        epsilon=epsilon,
        max_rows_per_unit=max_rows,
        types=types_of(types),
        bounds=bounds_of(bounds),
        values=values_of(values),
        max_length=lengths_of(max_length),
        neighbouring=neighbouring.value,
        delta_keys=delta_keys or 0,
        people=people,
        unreadable=unreadable and unreadable.value,
        folder=output.absolute().parent,
    )
    drafted, advice = drafting(delta=delta or 0, measure=measure and measure.value), ""
    if questions is not None:
        taken, advice = _advised(drafted.catalog, questions, measure)
        if taken != drafted.catalog.budget.measure:  # pure: it has no use for a delta beyond that of keys
            drafted = drafting(delta=(delta_keys or 0) if taken == Measure.pure else delta or 0, measure=taken)
    write(drafted.catalog, output, overwrite=force)
    if advice:
        complain(advice)
    for line in drafted.notes:
        note("note", line)
    note("written", f"{output}; look it over, it is the guarantee's fine print.")
    complain(visible(_next(drafted.catalog, output), keep="\n"))


def _refuse_without_types(source: Path) -> NoReturn:
    """Show a draft of the types of a CSV file, and leave it to the curator to say them: rows may not decide them."""
    from lapwing.catalog.file_columns import guessed_types  # here: see above

    guessed = guessed_types(source)
    told = {name: kind for name, kind in guessed.items() if kind != "string"} or dict(list(guessed.items())[:1])
    complain(f"A draft of types, guessed from the first rows of {source.name}. One row may have decided it: judge")
    complain("each by what the column is for, not by what it holds.")
    complain(f"  --types {visible(shlex.quote(types_line(told)))}")
    raise InvalidParameter(
        f"--types is missing: {source.name} holds no types, as no CSV file does, and its rows must not decide them. "
        "Nothing was written. Say them, as in the draft above or otherwise; a column that is not named is text."
    )


def _advised(catalog: "Catalog", questions: int, fixed: Measure | None) -> tuple[str, str]:
    """Return the measure that serves so many questions best, unless one is given, and the comparison for people."""
    from lapwing.cli import measure_advice as advice  # here: only with --questions

    advised = advice.advise(catalog, questions)
    taken = fixed.value if fixed else advised[0].kind
    verdict = advice.verdict(advised, taken, catalog.budget, given=fixed is not None)
    page = rendered(sys.stderr, *advice.as_page(catalog, questions, advised), labelled(("measure", verdict)))
    return taken, page.removesuffix("\n")


def _next(catalog: "Catalog", output: Path) -> str:
    """Return what to type next."""
    question = f'"SELECT COUNT(*) AS n FROM {catalog.tables[0].name}" --epsilon 0.5'
    where = "" if output == DEFAULT_CATALOG else f" --catalog {shlex.quote(os.fspath(output))}"
    return "\n".join(
        [
            "",
            "Type next:",
            f"  lapwing data check{where}   # whether the data are what it says: for your eyes alone",
            f"  lapwing explain {question}{where}   # what it would cost: free",
            f"  lapwing query   {question}{where}",
            f"  lapwing budget{where}",
        ]
    )
