"""A file of data instead of a catalog: protected at the first question, and opened by its own name from then on."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

import lapwing as lw
from lapwing.catalog.several_files import named
from lapwing.catalog.source_names import DATA, catalog_beside, ending, holds_no_types, is_json, is_text
from lapwing.catalog.text_files import like_values
from lapwing.cli import options
from lapwing.cli.column_options import bounds_of, missing_of, types_line, types_of
from lapwing.cli.column_options import values_of as keys_of
from lapwing.cli.console import note
from lapwing.cli.figures import delta as delta_text
from lapwing.cli.figures import epsilon as epsilon_text
from lapwing.cli.question import pointing_at, text_of, values_of
from lapwing.errors import BudgetExhausted, InvalidParameter

if TYPE_CHECKING:
    from lapwing.catalog.model import Catalog
    from lapwing.client import RemoteSession
    from lapwing.query.text.parameters import Parameters
    from lapwing.session import Session

USUAL_BUDGET: Final = Fraction(3)
"""The epsilon that all answers together may reveal, where nothing else is said: the odds that a person is in the data
change by a factor of twenty at most."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBudget:
    """What all answers from a file together may reveal."""

    epsilon: Fraction
    delta: Fraction


def budget_of(text: str) -> StatedBudget:
    """Read `EPSILON` or `EPSILON,DELTA`."""
    epsilon, comma, delta = text.partition(",")
    return StatedBudget(
        epsilon=options.above_zero("--budget")(epsilon.strip()),
        delta=options.part_of_one("The delta of --budget")(delta.strip()) if comma else Fraction(0),
    )


Asked = Annotated[
    list[str],
    typer.Argument(
        metavar="[DATA] SQL",
        help="One SELECT, or - to read it from standard input; before it a data file, instead of a catalog.",
        show_default=False,
    ),
]
PrivacyUnit = Annotated[
    str | None,
    typer.Option(
        "--privacy-unit",
        metavar="COLUMN",
        help='With DATA: the column that says whose row it is, or "row" if each row is a person.',
        show_default=False,
    ),
]
BudgetOption = Annotated[
    StatedBudget | None,
    typer.Option(
        "--budget",
        metavar="EPSILON[,DELTA]",
        parser=budget_of,
        help="With DATA: the budget of all results together, as ε[,δ]; default 3.",
        show_default=False,
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option(
        "--max-rows", metavar="K", help="With DATA: use at most this many rows for each value of --privacy-unit."
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--types", metavar="COLUMN=TYPE,…", help="With DATA: types of a CSV file or of JSON lines."),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option("--bounds", metavar="COLUMN=LOWER:UPPER", help="With DATA: public bounds, for SUM and AVG."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--values", metavar="COLUMN=A,B,…", help="With DATA: public values, each a group of GROUP BY."),
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileProtectionOptions:
    """What a command was told of a file of data; all of it must be public knowledge."""

    privacy_unit: PrivacyUnit = None
    budget: BudgetOption = None
    max_rows: MaxRows = None
    types: Types = None
    bounds: Bounds = None
    keys: Keys = None
    codebook: options.Codebook = None
    missing: options.Missing = None

    @property
    def said(self) -> tuple[str, ...]:
        """The options that were given."""
        options = {
            "--privacy-unit": self.privacy_unit,
            "--budget": self.budget,
            "--max-rows": self.max_rows,
            "--types": self.types,
            "--bounds": self.bounds,
            "--values": self.keys,
            "--codebook": self.codebook,
            "--missing": self.missing,
        }
        return tuple(name for name, value in options.items() if value is not None)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PricedText:
    """What is to be asked of a file, and at what price."""

    text: str
    parameters: "Parameters" = ()
    epsilon: Fraction | None = None
    error: Fraction | None = None
    delta: Fraction | None = None
    assuming_count: int | None = None

    @property
    def price(self) -> dict[str, Any]:
        """What `sql` and `explain` of a session take beside text and parameters."""
        return {
            "epsilon": self.epsilon,
            "error": self.error,
            "delta": self.delta,
            "assuming_count": self.assuming_count,
        }


def question_of(sql: str, pricing: options.PricingOptions) -> PricedText:
    """Return what is to be asked, whose text may stand on standard input.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    return PricedText(
        text=text_of(sql),
        parameters=values_of(pricing.values or []),
        epsilon=pricing.epsilon,
        error=pricing.error,
        delta=pricing.delta,
        assuming_count=pricing.assuming_count,
    )


def split_asked(texts: Sequence[str]) -> tuple[Path | None, str]:
    """Return the file of data, if one is named, and the question."""
    match texts:
        case [sql] if not ending(Path(sql)):
            return None, sql
        case [data, sql] if _is_data(Path(data)):
            return Path(data), sql
        case [data]:
            raise InvalidParameter(f"There is no query of {data[:80]}. Write the query after it, in double quotes.")
        case [data, sql] if Path(data).suffix and " " not in data:
            raise InvalidParameter(
                f"{data[:80]} is no data file that Lapwing can read. The name must end in {', '.join(DATA[:3])}, "
                f"{DATA[7]} or one of these with .gz or .zst."
            )
    raise InvalidParameter("The query must be one text. Put it in double quotes, after a data file if there is one.")


def _is_data(path: Path) -> bool:
    return bool(ending(path)) or path.is_dir()


def open_asked(
    data: Path | None,
    protection: FileProtectionOptions,
    place: options.TargetOptions,
    question: PricedText | None = None,
) -> "Session | RemoteSession":
    """Open a session on a file of data, or else on a catalog or a server.

    Args:
        data: A file of data, or another catalog.
        question: What is to be asked of it: if it is refused, a file that is not protected yet stays as it is, without
            a catalog and a ledger.
    """
    if protection.said and (data is None or not _is_data(data)):
        raise InvalidParameter(
            f"{protection.said[0]} needs a data file, like visits.csv; a catalog already has this setting."
        )
    if data is None or not _is_data(data):
        return options.open_session(data or place.catalog, place.server, place.dataset)
    if place.server is not None:
        raise InvalidParameter("--server asks a server, which has its data: leave out the file.")
    return _protected(data, protection, question)


def _protected(data: Path, protection: FileProtectionOptions, question: PricedText | None) -> "Session":
    # Here, so that a question to a server loads none of it.
    from lapwing.catalog.codebook import Codebook, read_codebook
    from lapwing.catalog.draft import draft
    from lapwing.catalog.file_columns import found_text
    from lapwing.catalog.toml import load

    beside = catalog_beside(named(data))
    before = load(beside) if beside.exists() else None
    if before is not None and not protection.said:
        return lw.connect(beside)
    unit = protection.privacy_unit or (before.tables[0].privacy_unit if before is not None else None)
    if unit is None:
        raise InvalidParameter(
            f"{data} is not protected yet. Give --privacy-unit: the column that says whose row it is, or row if "
            "each row is protected by itself. Give --max-rows: the most rows that one value of it may have. For "
            "example: --privacy-unit person_id --max-rows 5."
        )
    if before is None and protection.max_rows is None and unit != "row":
        raise InvalidParameter(
            "--max-rows is missing; say how many rows one value of --privacy-unit may have at most, from what the "
            "table is about, like 10."
        )
    budget = protection.budget or _budget(before)
    rows = protection.max_rows or (before.tables[0].max_rows_per_unit if before is not None else None)
    types = None if protection.types is None else types_of(protection.types)
    if before is None and types is None and protection.codebook is None and holds_no_types(named(data)):
        types = _judged_types(named(data))
    bounds = None if protection.bounds is None else bounds_of(protection.bounds)
    values = None if protection.keys is None else keys_of(protection.keys)
    missing = None if protection.missing is None else missing_of(protection.missing)
    if before is None and question is not None:
        book = Codebook() if protection.codebook is None else read_codebook(protection.codebook)
        with pointing_at(question.text):
            _require_answered(
                question,
                draft(
                    named(data),
                    privacy_unit=unit,
                    epsilon=budget.epsilon,
                    delta=budget.delta,
                    max_rows_per_unit=rows,
                    types={**book.types, **(types or {})},
                    bounds={**book.bounds, **(bounds or {})},
                    values={**book.values, **(values or {})},
                    others=book.others,
                    text=found_text(named(data)),
                ).catalog,
            )
    session = lw.protect(
        data,
        privacy_unit=unit,
        epsilon=budget.epsilon,
        delta=budget.delta,
        max_rows_per_unit=rows,
        types=types,
        bounds=bounds,
        domains=values,
        missing=missing,
        codebook=protection.codebook,
    )
    if before is None:
        whole = f"epsilon {epsilon_text(budget.epsilon)}" + (
            f", delta {delta_text(budget.delta)}" if budget.delta else ""
        )
        note("written", f"{beside}: the budget of all results together is {whole} (--budget changes it)")
        if odd := like_values([column.name for column in session.catalog.tables[0].columns]) if is_text(data) else "":
            note(
                "note",
                f"The first line has {odd}, like a row. A CSV file begins with the names of its columns, which are "
                f"public. If the line is a row, put a line of names before it, and remove {beside}.",
            )
        if is_text(data) and not types and protection.codebook is None:
            note("note", "A CSV file has no types, so every column is text; set types with --types age=integer.")
    return session


def _judged_types(data: Path) -> dict[str, str] | None:
    """Return types that a curator took on a terminal, from a draft; elsewhere show the draft, and return none."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        from lapwing.cli.interview import InterviewAnswers, ask_types  # here: few commands ask

        return types_of(ask_types(data, InterviewAnswers()).types)
    from lapwing.catalog.file_columns import found_text  # here, as above
    from lapwing.catalog.guessed_writing import guessed_writing

    guess = guessed_writing(data, found_text(data))
    special = {*guess.ways, *guess.words}
    guessed = {name: kind for name, kind in guess.types.items() if kind != "string" and name not in special}
    if guessed and not is_json(data):
        line = f"--types {shlex.quote(types_line(guessed))}"
        note("note", f"Guessed from the first rows, where a single row may decide, and not used: {line}")
    if special:
        described = f"`lapwing init {shlex.quote(str(data))}` describes them"
        names = ", ".join(name for name in guess.types if name in special)
        note("note", f"Dates or numbers are written in a way of their own in {names}: {described}.")
    return None


def _require_answered(question: PricedText, catalog: "Catalog") -> None:
    """Refuse a question that the session would refuse, by the catalog that the file would have; no row is read.

    Raises:
        QueryRefused: As it does.
        InvalidParameter: As it does.
        BudgetExhausted: As it does.
    """
    from lapwing.privacy.filters import Account, fits  # here, as above
    from lapwing.query.bind.bind import bind
    from lapwing.query.pricing.calibrate import calibrate

    plan = bind(question.text, catalog, parameters=question.parameters)
    priced = calibrate(
        plan,
        catalog.budget,
        epsilon=question.epsilon,
        error=question.error,
        delta=question.delta,
        assuming_count=question.assuming_count if question.error is not None else None,
    )
    if not fits(Account.opened(catalog.budget.loss), priced.together):
        raise BudgetExhausted(
            "The query costs more than the whole budget of the file. Nothing was written. Request less, or set a "
            "larger --budget."
        )


def _budget(before: "Catalog | None") -> StatedBudget:
    """Return the budget of a file that is protected already, or the usual one."""
    if before is None:
        return StatedBudget(epsilon=USUAL_BUDGET, delta=Fraction(0))
    return StatedBudget(epsilon=before.budget.epsilon, delta=before.budget.delta)
