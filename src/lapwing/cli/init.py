"""`lapwing init`: draft a catalog from the names and types in a file, and what the curator says in public."""

import os
import shlex
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, final

import typer

from lapwing.catalog.suggestions import name_in_sql
from lapwing.cli.characters import visible
from lapwing.cli.column_options import (
    bounds_of,
    lengths_of,
    of_codebook,
    others_of,
    reading_of,
    types_line,
    types_of,
    values_of,
    where_of,
)
from lapwing.cli.console import complain, labelled, note, rendered
from lapwing.cli.options import (
    DEFAULT_CATALOG,
    NEIGHBOURING_HELP,
    Codebook,
    Missing,
    NeighbouringOption,
    Unreadable,
    above_zero,
    amount,
    grouped,
    part_of_one,
)
from lapwing.errors import CatalogError, InvalidParameter, LapwingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lapwing.catalog.codebook import Codebook as ColumnCodebook
    from lapwing.catalog.draft import Draft
    from lapwing.catalog.file_columns import FileColumn
    from lapwing.catalog.model import Catalog
    from lapwing.catalog.public import PublicTable
    from lapwing.cli.interview import InterviewAnswers

EXAMPLE: Final = """\b
Example:
  lapwing init visits.parquet --privacy-unit person_id --epsilon 3 --delta 1e-6 \\
      --max-rows 5 --bounds cost=0:5000 --bounds age=0:110 --values plan=a,b \\
      --questions 40
  lapwing init visits.csv --privacy-unit person_id --epsilon 3 --max-rows 5 \\
      --types age=integer,cost=decimal:0.01,day=date --bounds age=0:110
  lapwing init postgresql://reader@db.example.org/clinic --table public.visits \\
      --privacy-unit person_id --epsilon 3 --delta 1e-6 --max-rows 5 \\
      --where day=2024-01-01:2024-12-31

\b
Types, bounds, values and --max-rows must be public knowledge. If you take them from
the data, the guarantee does not cover that. Lapwing reads no row, except the first
rows of a CSV file or JSON lines without --types: it shows you a draft of types, and
of how dates and numbers are written."""


MISSING: Final = {
    "--privacy-unit": 'name the column that says whose row it is, or "row" if each row is protected by itself',
    "--epsilon": "give the most that all results together may reveal, like 3",
    "--max-rows": "give the most rows that one value of --privacy-unit may have, like 10",
    "--types": "give the types of the columns; if nothing else is missing, a draft of them is shown",
}
"""Of options that are needed, what to say."""


class PrivacyMeasureOption(StrEnum):
    """What a ledger adds up."""

    pure = "pure"
    gdp = "gdp"
    zcdp = "zcdp"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """Which rows of a source are the table."""

    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The table in the database at the address SOURCE.", show_default=False),
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=…",
            help="Read only rows of a source with these values (A,B,…), or from LOWER:UPPER. Public. May be repeated.",
        ),
    ] = None

    def of(self, source: str) -> Path | str:
        """Return the file or the address where the rows are.

        Raises:
            InvalidParameter: For what goes with an address alone.
        """
        from lapwing.catalog.several_files import named  # here, so that `lapwing --help` loads no file reader
        from lapwing.catalog.source_address import is_address, with_table

        if is_address(source):
            return with_table(source, self.table)
        if self.table is not None:
            raise InvalidParameter("--table goes with the address of a database; a file is one table.")
        if self.where:
            raise InvalidParameter("--where goes with the address of a source; of a file all rows are read.")
        return named(Path(source))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DraftProtectionOptions:
    """Whom the catalog protects, and what all answers may reveal."""

    privacy_unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help='The column that says whose row it is, or "row".', show_default=False),
    ] = None
    epsilon: Annotated[
        Fraction | None,
        amount(above_zero("--epsilon"), "The most that all results together may reveal.", show_default=False),
    ] = None
    delta: Annotated[
        Fraction | None,
        amount(
            part_of_one("--delta"),
            "The probability that epsilon may fail, such as 1e-6. Without it, far fewer queries fit.",
        ),
    ] = None
    max_rows: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Use at most this many rows for each value of --privacy-unit; not needed if that is row."
        ),
    ] = None
    rows_at_most: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="A public limit on the rows of the table, with room to grow.")
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """What columns hold, in public."""

    types: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=TYPE,…",
            help="Types for CSV files and JSON lines, which have none; other columns are text. May be repeated.",
        ),
    ] = None
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOWER:UPPER", help="Public bounds, for SUM and AVG. Repeat for more columns."),
    ] = None
    values: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=A,B,…", help="Public values, each a group of GROUP BY. Repeat for more columns."),
    ] = None
    max_length: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=BYTES", help="The longest text, in bytes; default 256. Repeat for more columns."),
    ] = None
    codebook: Codebook = None
    missing: Missing = None
    other: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=NAME",
            help="One more group, for all texts that are missing or not in --values. Repeat for more columns.",
        ),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How the stored values of columns are read."""

    recode: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=STORED:VALUE,…", help="The meaning of stored values. Repeat for more columns."),
    ] = None
    date_format: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="COLUMN=FORMAT",
            help="How dates are written, like day=%d.%m.%Y. Repeat for more columns.",
        ),
    ] = None
    decimal_mark: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=MARK", help="Before the decimals, like cost=, for a comma."),
    ] = None
    thousands_mark: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=MARK", help="Between the thousands, like cost=. or 'cost= '.")
    ] = None
    currency: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=SIGN", help="Before or after the numbers, like cost=€.")
    ] = None

    @property
    def written(self) -> dict[str, list[str] | None]:
        """How values are written, by option."""
        return {
            "--format": self.date_format,
            "--decimal-mark": self.decimal_mark,
            "--thousands-mark": self.thousands_mark,
            "--currency": self.currency,
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingOptions:
    """What the ledger adds up, and between which data sets."""

    measure: Annotated[
        PrivacyMeasureOption | None,
        typer.Option(help="How the costs of queries add up; default gdp, or pure without a delta.", show_default=False),
    ] = None
    questions: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="About how many queries you expect; Lapwing chooses the best measure for it."
        ),
    ] = None
    neighbouring: Annotated[NeighbouringOption, typer.Option(help=NEIGHBOURING_HELP)] = NeighbouringOption.add_remove
    delta_keys: Annotated[
        Fraction | None,
        amount(
            part_of_one("--delta-keys"),
            "The part of delta for GROUP BY without listed values, and for training (`lapwing account --reserved`).",
        ),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextFileOptions:
    """How a file of text is written."""

    delimiter: Annotated[
        str | None,
        typer.Option(metavar="CHARACTER", help="Between the fields of a CSV file; by default from its first line."),
    ] = None
    quote: Annotated[
        str | None, typer.Option(metavar="CHARACTER", help="Around fields of a CSV file that hold a delimiter.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="The encoding of a CSV file: utf-8, windows-1252, …")
    ] = None
    unreadable: Unreadable = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SurroundingsOptions:
    """What stands beside the table: how many units there are, public tables, and a cluster."""

    people: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many people (values of --privacy-unit) there are, if public; Lapwing checks delta against it.",
        ),
    ] = None
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="A public file or source, which becomes a public table to join; may be repeated.",
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER", help="Run queries where the files are, on Spark: spark://host:7077, or local[*] here."
        ),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetTextOptions:
    """Texts of the data set for people."""

    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The name of the data set for people.", show_default=False)
    ] = None
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A description of the data set for people.", show_default=False)
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOutputOptions:
    """Where the catalog is written."""

    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The catalog to write.")] = (
        DEFAULT_CATALOG
    )
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing catalog.")] = False


@grouped
def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A file of Parquet, CSV or JSON lines, a folder, a pattern in quotes, or the address of a database.",
            show_default=False,
        ),
    ],
    *,
    rows: RowOptions,
    protection: DraftProtectionOptions,
    columns: ColumnOptions,
    reading: ReadingOptions,
    accounting: AccountingOptions,
    text_file: TextFileOptions,
    surroundings: SurroundingsOptions,
    texts: DatasetTextOptions,
    output: CatalogOutputOptions,
) -> None:
    """Write a catalog for a file. Names come from the file, types from a Parquet file, and everything else from you.

    On a terminal it asks for what you did not give, and says why. A CSV file and JSON lines hold no types: Lapwing
    reads their first rows for a draft, which you judge. It reads no other row.
    """
    from lapwing.catalog.codebook import Codebook as ColumnCodebook
    from lapwing.catalog.codebook import read_codebook  # here, so that `lapwing --help` loads no file reader
    from lapwing.catalog.toml import write

    place = rows.of(source)
    if output.output.exists() and not output.force:
        raise CatalogError(
            f"{output.output} exists already; nothing was changed. Choose another --output, or add --force."
        )
    book = ColumnCodebook() if columns.codebook is None else read_codebook(columns.codebook)
    stated = _stated(protection, columns, reading, accounting, text_file, surroundings.people, book)
    stated = replace(stated, title=texts.title, description=texts.description)
    folder = output.output.absolute().parent
    offered = None if isinstance(place, Path) else _columns_at(place, folder)
    said, lacks = _completed(place, stated, offered)
    drafting = partial(
        _draft,
        place,
        said,
        book,
        offered,
        columns=columns,
        reading=reading,
        neighbouring=accounting.neighbouring.value,
        unreadable=text_file.unreadable and text_file.unreadable.value,
        folder=folder,
        public_tables=_public_tables(surroundings.public or (), folder),
        where=rows.where,
        cluster=surroundings.cluster,
    )
    again = _command(place, said, rows.where or ()) if lacks else ""
    try:
        drafted, advice = drafting(delta=said.delta or 0, measure=said.measure), ""
    except LapwingError:
        if lacks:  # so that nothing that was answered is lost
            complain(visible(f"\nWhat was answered, to mend and to run again:\n{again}\n", keep="\n"))
        raise
    if said.questions is not None:
        taken, advice = _advised(drafted.catalog, said.questions, accounting.measure)
        if taken != drafted.catalog.budget.measure:  # pure: it has no use for a delta beyond that of keys
            delta = (said.delta_keys or 0) if taken == PrivacyMeasureOption.pure else said.delta or 0
            drafted = drafting(delta=delta, measure=taken)
    write(drafted.catalog, output.output, overwrite=output.force)
    if advice:
        complain(advice)
    for line in drafted.notes:
        note("note", line)
    note("written", f"{output.output}; look it over: the promise depends on it.")
    if lacks:
        complain(visible(f"\nThe same without questions:\n{again}", keep="\n"))
    complain(visible(_next(drafted.catalog, output.output), keep="\n"))


def _stated(
    protection: DraftProtectionOptions,
    columns: ColumnOptions,
    reading: ReadingOptions,
    accounting: AccountingOptions,
    text_file: TextFileOptions,
    people: int | None,
    book: "ColumnCodebook",
) -> "InterviewAnswers":
    """Return what the options say, and a codebook."""
    from lapwing.cli.interview import InterviewAnswers  # here: see above

    types, bounds, values = of_codebook(book, columns.types, columns.bounds, columns.values)
    further = {"--missing": columns.missing, "--other": columns.other, "--recode": reading.recode}
    further |= {**reading.written, "--max-length": columns.max_length}
    return InterviewAnswers(
        missing=columns.missing,
        other=columns.other,
        further=tuple((option, text) for option, texts in further.items() for text in texts or ()),
        privacy_unit=protection.privacy_unit,
        max_rows=protection.max_rows,
        types=types,
        bounds=bounds or (),
        values=values or (),
        rows_at_most=protection.rows_at_most,
        people=people,
        epsilon=protection.epsilon,
        delta=protection.delta,
        delta_keys=accounting.delta_keys,
        measure=accounting.measure and accounting.measure.value,
        questions=accounting.questions,
        delimiter={"\\t": "\t", "tab": "\t"}.get(text_file.delimiter or "", text_file.delimiter),
        quote=text_file.quote,
        encoding=text_file.encoding,
    )


def _completed(
    place: Path | str, stated: "InterviewAnswers", offered: "Sequence[FileColumn] | None"
) -> tuple["InterviewAnswers", str | None]:
    """Return what is said of a file once what was missing is asked for, on a terminal, and its first missing option.

    Raises:
        InvalidParameter: Elsewhere, if an option is missing.
        DataFault: If the file cannot be read.
    """
    missing = _missing(place, stated)
    lacks = missing[0] if missing else None
    if lacks and sys.stdin.isatty() and sys.stderr.isatty():
        from lapwing.cli.interview import interview  # here: see above

        return interview(place, stated, offered), lacks
    if lacks == "--types":
        _refuse_without_types(Path(place), stated)
    if lacks:
        said = " ".join(f"{option} is missing: {MISSING[option]}." for option in missing)
        raise InvalidParameter(f"{said} On a terminal, `lapwing init` asks for what is missing.")
    return stated, None


def _draft(
    place: Path | str,
    said: "InterviewAnswers",
    book: "ColumnCodebook",
    offered: "Sequence[FileColumn] | None",
    *,
    columns: ColumnOptions,
    reading: ReadingOptions,
    where: "Sequence[str] | None",
    **more: Any,
) -> "Draft":
    """Draft a catalog of what is said.

    Args:
        offered: The columns of what is at an address.
        **more: What `draft` takes as it is.
    """
    from lapwing.catalog.codebook import combined  # here: see above
    from lapwing.catalog.codebook_texts import with_texts
    from lapwing.catalog.draft import draft, retyped
    from lapwing.catalog.model import ROW

    types = types_of(said.types)
    kinds = {column.name: column.type for column in retyped(offered or (), types) if column.type is not None}
    drafted = draft(
        place,
        privacy_unit=said.privacy_unit or ROW,
        epsilon=said.epsilon or 0,
        max_rows_per_unit=said.max_rows,
        rows_at_most=said.rows_at_most,
        types=types,
        bounds=bounds_of(said.bounds),
        values=values_of(said.values),
        max_length={**book.max_length, **lengths_of(columns.max_length)},
        others={**book.others, **others_of(said.other)},
        reading=combined(book.reading, reading_of(said.missing, reading.recode, _written(reading.written, said))),
        delta_keys=said.delta_keys or 0,
        people=said.people,
        text=said.text(place) if isinstance(place, Path) else None,
        offered=offered,
        where=where_of(where, kinds),
        **more,
    )
    return replace(drafted, catalog=_titled(with_texts(drafted.catalog, book.texts), said))


def _titled(catalog: "Catalog", said: "InterviewAnswers") -> "Catalog":
    """Return a catalog whose data set has the title and the description that were said."""
    from lapwing.catalog.place import within  # here: see above

    known = catalog.dictionary.dataset
    title = known.title if said.title is None else said.title
    description = known.description if said.description is None else said.description
    with within("dataset"):
        texts = replace(known, title=title, description=description)
    return replace(catalog, dictionary=replace(catalog.dictionary, dataset=texts))


def _written(stated: "Mapping[str, list[str] | None]", said: "InterviewAnswers") -> "Mapping[str, Sequence[str]]":
    """Return how values are written, by option: as the options say, and as was answered."""
    texts = {option: list(some or ()) for option, some in stated.items()}
    for option, text in said.written:
        texts[option].append(text)
    return texts


def _missing(source: Path | str, said: "InterviewAnswers") -> list[str]:
    """Return the options that are needed and were not given."""
    from lapwing.catalog.model import ROW  # here: see above
    from lapwing.catalog.source_names import holds_no_types

    rows = said.max_rows is None and said.privacy_unit != ROW
    needed = {
        "--privacy-unit": said.privacy_unit is None,
        "--epsilon": said.epsilon is None,
        "--max-rows": rows,
        "--types": isinstance(source, Path) and said.types is None and holds_no_types(source),
    }
    return [option for option, lacks in needed.items() if lacks]


def _public_tables(sources: "Sequence[str]", folder: Path) -> "list[PublicTable]":
    """Return drafts of tables that everybody knows."""
    from lapwing.catalog.public_draft import public_draft  # here: see above
    from lapwing.catalog.source_address import is_address

    return [public_draft(each, folder, _columns_at(each, folder) if is_address(each) else None) for each in sources]


def _columns_at(address: str, folder: Path) -> "Sequence[FileColumn]":
    """Return the columns of the table that an address leads to; `folder` is that of the catalog."""
    from lapwing.sources import offered_at  # here: see above

    return offered_at(address, folder)


def _command(source: Path | str, said: "InterviewAnswers", where: "Sequence[str]") -> str:
    """Return the command that would have answered all that was asked."""
    from lapwing.cli.interview import plain  # here: see above

    single = {
        "--privacy-unit": said.privacy_unit,
        "--max-rows": said.max_rows,
        "--rows-at-most": said.rows_at_most,
        "--people": said.people,
        "--epsilon": said.epsilon,
        "--delta": said.delta or None,
        "--delta-keys": said.delta_keys or None,
        "--measure": said.measure,
        "--questions": said.questions,
        "--delimiter": said.delimiter,
        "--quote": said.quote,
        "--encoding": said.encoding,
        "--title": said.title,
        "--description": said.description,
    }
    several = {"--where": where, "--types": said.types or (), "--bounds": said.bounds, "--values": said.values}
    options = [
        (option, plain(value) if isinstance(value, Fraction) else str(value))
        for option, value in single.items()
        if value is not None
    ]
    options += [(option, text) for option, texts in several.items() for text in texts]
    asked = {"--missing": said.missing or (), "--other": said.other or ()}
    options += dict.fromkeys(
        [*((o, text) for o, texts in asked.items() for text in texts), *said.further, *said.written]
    )
    lines = [f"{option} {shlex.quote(text)}" for option, text in options]
    return " \\\n      ".join([f"  lapwing init {shlex.quote(os.fspath(source))}", *lines])


def _refuse_without_types(source: Path, said: "InterviewAnswers") -> NoReturn:
    """Show a draft of types that a file does not hold, and leave it to the curator to say them: rows may not."""
    from lapwing.catalog.guessed_writing import guessed_writing  # here: see above
    from lapwing.catalog.source_names import is_json
    from lapwing.cli.interview import option_of

    guess = guessed_writing(source, said.text(source))
    ways = {name: some for name, some in guess.ways.items() if name != said.privacy_unit}  # which is read as stored
    types = {name: kind for name, kind in guess.types.items() if name in ways or name not in guess.ways}
    told = {name: kind for name, kind in types.items() if kind != "string"} or dict([*types.items()][:1])
    told = types if is_json(source) else told  # which names no other columns
    stated = {(option, text.partition("=")[0]) for option, text in said.further}
    options = [("--types", types_line(told))]
    for name, some in ways.items():
        options += [
            (option_of(key), f"{name}={text}") for key, text in some[0].entries if (option_of(key), name) not in stated
        ]
    if guess.missing and said.missing is None:
        options.append(("--missing", f"*={','.join(guess.missing)}"))
    if said.missing is None:
        options += [("--missing", f"{name}={','.join(some)}") for name, some in guess.words.items()]
    complain(f"A draft of types, guessed from the first rows of {source.name}. A single row may decide a guess: judge")
    complain("each by what the column is for, not by what it holds.")
    complain(visible(" \\\n".join(f"  {option} {shlex.quote(text)}" for option, text in options), keep="\n"))
    for name, some in ways.items():
        others = [str(way.reading.format) for way in some[1:] if way.reading.format]
        if others:
            complain(visible(f"In the first rows nothing tells {some[0].reading.format} from {others[0]}: {name}."))
    for name, odd in guess.words.items():
        complain(visible(f"Nearly all of {name} is {types[name]}, but it also has {' and '.join(odd)}."))
    raise InvalidParameter(
        f"--types is missing: only Parquet files hold types, and {source.name} is not one. Types must not come from "
        "the rows, because one person's row could change them. Nothing was written. Add --types: the draft above, if "
        f"you find it right. A column that is not named is {'left out' if is_json(source) else 'text'}."
    )


def _advised(catalog: "Catalog", questions: int, fixed: PrivacyMeasureOption | None) -> tuple[str, str]:
    """Return the measure that serves so many questions best, unless one is given, and the comparison for people."""
    from lapwing.cli import measure_advice as advice  # here: only with --questions

    advised = advice.advise(catalog, questions)
    taken = fixed.value if fixed else advised[0].kind
    verdict = advice.verdict(advised, taken, catalog.budget, given=fixed is not None)
    page = rendered(sys.stderr, *advice.as_page(catalog, questions, advised), labelled(("measure", verdict)))
    return taken, page.removesuffix("\n")


def _next(catalog: "Catalog", output: Path) -> str:
    """Return what to type next."""
    asked = f"SELECT COUNT(*) AS n FROM {name_in_sql(catalog.tables[0].name)}"
    question = f"{shlex.quote(asked) if chr(34) in asked else f'{chr(34)}{asked}{chr(34)}'} --epsilon 0.5"
    where = "" if output == DEFAULT_CATALOG else f" --catalog {shlex.quote(os.fspath(output))}"
    check = f"  lapwing data check{where}   # compares the data with the catalog: keep the output to yourself"
    return "\n".join(
        [
            "",
            "Type next:",
            *([check] if catalog.cluster is None else []),  # on a cluster nothing is looked at by anybody
            f"  lapwing explain {question}{where}   # what it would cost: free",
            f"  lapwing query   {question}{where}",
            f"  lapwing budget{where}",
        ]
    )
