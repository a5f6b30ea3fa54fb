"""`lapwing init`: draft a catalog from the names and types in a file, and what the curator says in public."""

import csv
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from lapwing.cli.characters import visible
from lapwing.cli.console import complain, labelled, note, rendered
from lapwing.cli.options import DEFAULT_CATALOG, NeighbouringOption, above_zero, amount, part_of_one
from lapwing.errors import CatalogError, InvalidParameter

if TYPE_CHECKING:
    from lapwing.catalog.model import Catalog

EXAMPLE: Final = """\b
Example:
  lapwing init visits.parquet --privacy-unit person_id --epsilon 3 --delta 1e-6 \\
      --max-rows 5 --bounds cost=0:5000 --bounds age=0:110 --values plan=a,b \\
      --questions 40

\b
Bounds, values and --max-rows must be public knowledge: taken from the data they
are outside the guarantee. Rows are not read."""

Content = TypeVar("Content")


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
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOWER:UPPER", help="Public bounds, for SUM and AVG. Repeat for more columns."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=A,B,…", help="Public keys, for GROUP BY. Repeat for more columns."),
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
    people: Annotated[
        int | None, typer.Option(metavar="N", help="How many units there are, if that is public: to judge delta by.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The catalog to write.")
    ] = DEFAULT_CATALOG,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a catalog that is there.")] = False,
) -> None:
    """Write a catalog for a file: names and types from the file, everything else from you.

    Reads no row of a Parquet file; a CSV file holds no types, so they are guessed from its first rows.
    """
    from lapwing.catalog.infer import draft  # here, so that `lapwing --help` loads no file reader
    from lapwing.catalog.model import ROW
    from lapwing.catalog.toml import write

    if source.is_dir():
        raise CatalogError(f"{source} is a folder; name the Parquet or CSV file in it. Nothing was written.")
    if max_rows is None and privacy_unit != ROW:
        raise InvalidParameter(
            "--max-rows is missing; say how many rows one unit may have at most, from what the table is about, like 10."
        )
    if output.exists() and not force:
        raise CatalogError(f"{output} exists already; nothing was changed. Choose another --output, or add --force.")
    drafting = partial(
        draft,
        source,
        privacy_unit=privacy_unit,
        epsilon=epsilon,
        max_rows_per_unit=max_rows,
        bounds=bounds_of(bounds),
        values=values_of(values),
        neighbouring=neighbouring.value,
        delta_keys=delta_keys or 0,
        people=people,
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


def _advised(catalog: "Catalog", questions: int, fixed: Measure | None) -> tuple[str, str]:
    """Return the measure that serves so many questions best, unless one is given, and the comparison for people."""
    from lapwing.cli import measure_advice as advice  # here: only with --questions

    advised = advice.advise(catalog, questions)
    taken = fixed.value if fixed else advised[0].kind
    verdict = advice.verdict(advised, taken, catalog.budget, given=fixed is not None)
    page = rendered(sys.stderr, *advice.as_page(catalog, questions, advised), labelled(("measure", verdict)))
    return taken, page.removesuffix("\n")


def bounds_of(texts: Sequence[str] | None) -> dict[str, tuple[str, str]]:
    """Read repeated `COLUMN=LOWER:UPPER` texts."""
    return _pairs("--bounds", texts, _bounds)


def values_of(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Read repeated `COLUMN=A,B` texts."""
    return _pairs("--values", texts, _values)


def _pairs(option: str, texts: Sequence[str] | None, read: Callable[[str, str], Content]) -> dict[str, Content]:
    """Read repeated `COLUMN=…` texts; no bound holds a `=`, so that before the last one the name of a column may."""
    pairs: dict[str, Content] = {}
    for text in texts or ():
        column, equals, rest = text.rpartition("=") if option == "--bounds" else text.partition("=")
        if not column or not equals:
            raise InvalidParameter(f"{option} {text[:80]!r} names no column; write {SHAPES[option]}.")
        if column in pairs:
            raise InvalidParameter(f"{option} is given twice for {column!r}; give it once.")
        pairs[column] = read(text, rest)
    return pairs


SHAPES: Final = {"--bounds": "COLUMN=LOWER:UPPER, like cost=0:5000", "--values": "COLUMN=A,B, like plan=a,b"}


def _bounds(text: str, rest: str) -> tuple[str, str]:
    """Split at the middle colon, so that times of day may be bounds too."""
    parts = rest.split(":")
    middle = len(parts) // 2
    if len(parts) % 2 or not parts[0] or not parts[-1]:
        raise InvalidParameter(f"--bounds {text[:80]!r} is not a pair; write {SHAPES['--bounds']}.")
    return ":".join(parts[:middle]), ":".join(parts[middle:])


def _values(text: str, rest: str) -> list[str]:
    """Split at commas; a value that holds one stands in double quotes, as in CSV."""
    try:
        rows = list(csv.reader([rest], strict=True))
    except csv.Error:
        raise InvalidParameter(
            f"--values {text[:80]!r} has a double quote without its partner; quote whole values, like 'plan=\"a,b\",c'."
        ) from None
    if len(rows) != 1 or not rows[0]:
        raise InvalidParameter(f"--values {text[:80]!r} lists nothing; write {SHAPES['--values']}.")
    return rows[0]


def _next(catalog: "Catalog", output: Path) -> str:
    """Return what to type next."""
    question = f'"SELECT COUNT(*) AS n FROM {catalog.tables[0].name}" --epsilon 0.5'
    where = "" if output == DEFAULT_CATALOG else f" --catalog {shlex.quote(os.fspath(output))}"
    return "\n".join(
        [
            "",
            "Type next:",
            f"  lapwing explain {question}{where}   # what it would cost: free",
            f"  lapwing query   {question}{where}",
            f"  lapwing budget{where}",
        ]
    )
