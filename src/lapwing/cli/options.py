"""Options that several commands share, how their texts are read, and the session that they mean.

Numbers are read exactly, never through a float: `--epsilon 0.1` is one tenth, and so is `--epsilon 0,1`. A text that is
no such number is a usage error, so that nothing is opened, asked or charged for it.
"""

import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, final

import typer

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import exact
from lapwing.privacy.decimal_comma import with_point

if TYPE_CHECKING:
    from lapwing.client import RemoteSession
    from lapwing.session import Session

Result = TypeVar("Result")
MOST_TEXT: Final = 200
LEAST: Final = Fraction(1, 10**12)
"""Confidences nearer to 0 or 1 than this mean nothing to anybody."""
FRACTION: Final = "a decimal or a fraction, like 0.95, 1e-6 or 1/3"


def number(text: str) -> Fraction | None:
    """Read a finite decimal, or a fraction of two, exactly; None for any other text.

    Raises:
        InvalidParameter: For a comma that may be a decimal one or divide thousands.

    >>> number("0.1"), number("0,1"), number("1e-6"), number("1/3"), number("nan")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 1000000), Fraction(1, 3), None)
    """
    top, slash, bottom = with_point(text[:MOST_TEXT]).partition("/")
    try:
        return exact(Decimal(top), "") / exact(Decimal(bottom if slash else "1"), "")
    except (InvalidOperation, InvalidParameter, ZeroDivisionError):
        return None


def reader(
    option: str, kind: str, allowed: Callable[[Fraction], bool], *, percent: bool = False
) -> Callable[[str], Fraction]:
    """Return a reader of an option's text that refuses what is not allowed, saying what is.

    Args:
        percent: Whether to take `20%` for one fifth.
    """

    def read(text: str) -> Fraction:
        value = _part(text) if percent and text.rstrip().endswith("%") else number(text)
        if value is None and (beyond := _beyond(text)):
            raise InvalidParameter(f"{option} is {text[:60]!r}, which is {beyond}; it must be {kind}, like 0.5.")
        if value is None or not allowed(value):
            raise InvalidParameter(f"{option} is {text[:60]!r}; it must be {kind}, written as {FRACTION}.")
        return value

    return read


def _part(percentage: str) -> Fraction | None:
    hundredths = number(percentage.rstrip().removesuffix("%"))
    return None if hundredths is None else hundredths / 100


def _beyond(text: str) -> str:
    """Say why a decimal that is a finite number was not read; nothing for any other text."""
    try:
        decimal = Decimal(text[:MOST_TEXT])
    except InvalidOperation:
        return ""
    if not decimal.is_finite():
        return ""
    return "too large, beyond 1e100" if decimal.adjusted() >= 100 else "written with too many digits"


def above_zero(option: str) -> Callable[[str], Fraction]:
    """Return a reader of finite numbers above 0."""
    return reader(option, "a finite number above 0", lambda value: value > 0)


def part_of_one(option: str) -> Callable[[str], Fraction]:
    """Return a reader of numbers from 0 to below 1."""
    return reader(option, "from 0 to below 1", lambda value: 0 <= value < 1, percent=True)


def between(option: str) -> Callable[[str], Fraction]:
    """Return a reader of numbers strictly between 0 and 1."""
    return reader(option, "above 0 and below 1", lambda value: LEAST <= value <= 1 - LEAST, percent=True)


def quantity(option: str, least: str, most: int | None = None) -> Callable[[str], float]:
    """Return a reader of a number of days, seconds or requests, from a least to a most one."""
    kind = f"from {least} to {most}" if most is not None else f"{least} or more"
    read = reader(option, kind, lambda value: Fraction(least) <= value and (most is None or value <= most))
    return lambda text: float(read(str(text)))  # a default comes here as the number that it is


def whole(option: str, least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers of some size or more."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= least):
            raise InvalidParameter(f"{option} is {text[:60]!r}; it must be a whole number from {least} up.")
        return int(text)

    return read


def amount(read: Callable[[str], Fraction], about: str, *names: str, **more: Any) -> Any:
    """Return the option of an exact number, by its reader and its help; `more` is what else typer takes."""
    return typer.Option(*names, parser=read, metavar="NUMBER", help=about, **more)


def examples(*lines: str) -> str:
    """Return the end of a command's help; typer folds no line after a backspace."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])


def grouped(command: Callable[..., Result]) -> Callable[..., Result]:
    """Let a command take its options in groups: dataclasses whose fields are annotated as options are.

    Typer reads one flat list of parameters: each group stands in it as its fields, in the place of the group.
    """
    own = signature(command, eval_str=True)
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in own.parameters.values()
        if is_dataclass(parameter.annotation)
    }
    flat: list[Parameter] = []
    for parameter in own.parameters.values():
        flat += (
            _fields_of(parameter.annotation)
            if parameter.name in groups
            else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
        )

    @wraps(command)
    def gathering(**given: Any) -> Result:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **made)

    # What Typer reads.
    gathering.__signature__ = own.replace(parameters=flat)  # type: ignore[attr-defined]
    gathering.__annotations__ = {one.name: one.annotation for one in flat}
    return gathering


def _fields_of(group: Any) -> list[Parameter]:
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=field.type,
        )
        for field in fields(group)
    ]


class TableFormat(StrEnum):
    """How rows are written."""

    table = "table"
    csv = "csv"
    json = "json"


class ReportFormatName(StrEnum):
    """How a report is written."""

    table = "table"
    json = "json"


class NeighbouringOption(StrEnum):
    """When two data sets differ by one privacy unit."""

    add_remove = "add_remove"
    replace_one = "replace_one"


NEIGHBOURING_HELP: Final = (
    "The promise compares two versions of the data: with and without one person (add_remove), or with other rows "
    "for one person (replace_one). Keep the default unless the number of people is public."
)


class UnreadableOption(StrEnum):
    """What a value counts as that is not of its declared type."""

    null = "null"


Unreadable = Annotated[
    UnreadableOption | None,
    typer.Option(
        "--unreadable",
        help='Accept values that are not of their type, except in columns with unreadable = "refuse": they count as '
        "NULL, and fractions of integers are rounded.",
        show_default=False,
    ),
]

Codebook = Annotated[
    Path | None,
    typer.Option(
        "--codebook",
        metavar="FILE",
        help="A codebook in CSV, JSON or TOML: types, bounds, values, missing values. Other options override it.",
        show_default=False,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="COLUMN=A,B,…",
        help="Stored values that mean missing, like age=-99,NA, or '*=NA' for every column. May be repeated.",
        show_default=False,
    ),
]

CatalogFile = Annotated[
    Path,
    typer.Option(
        "--catalog", envvar="LAPWING_CATALOG", metavar="FILE", help="The catalog, as `lapwing init` writes it."
    ),
]
DEFAULT_CATALOG: Final = Path("lapwing.toml")

Epsilon = Annotated[
    Fraction | None,
    amount(
        above_zero("--epsilon"),
        "The cost of the query in epsilon (ε), such as 0.5 or 0,5. A lower cost gives more noise.",
    ),
]
Error = Annotated[
    Fraction | None,
    amount(
        above_zero("--error"),
        "Instead of a cost: the ± (half-width of the 95 % interval) that every COUNT and SUM may have.",
    ),
]
AssumingCount = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Assumed rows per group for AVG: predicts its error, and the cost of --error.",
    ),
]
Delta = Annotated[
    Fraction | None,
    amount(
        between("--delta"),
        "For GROUP BY on values that the catalog does not list: the δ for finding the groups, such as 1e-7.",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--value",
        metavar="VALUE",
        help="A value for each ? of the query in order, or name=VALUE for each $name; may be repeated.",
        show_default=False,
    ),
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PricingOptions:
    """What a question may cost, and what stands for its parameters."""

    epsilon: Epsilon = None
    error: Error = None
    delta: Delta = None
    values: Values = None
    assuming_count: AssumingCount = None


Label = Annotated[
    str | None,
    typer.Option("--label", metavar="TEXT", help="A name for the query in the history.", show_default=False),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also show costs as the ledger adds them up: in ε, μ² or ρ.")
]
ReportFormat = Annotated[ReportFormatName, typer.Option("--format", help="How to write it.")]
AS_USUAL: Final = typer.Option("--format", help="Default: a table on a terminal, CSV in a pipe.", show_default=False)
UsualFormat = Annotated[TableFormat | None, AS_USUAL]


# ---- The session that a command asks: on a catalog, or on a server's data set ----

TOKEN: Final = "LAPWING_TOKEN"  # noqa: S105 - the name of a variable

Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="LAPWING_SERVER",
        metavar="URL",
        help=f"Use a server instead; set its token in {TOKEN}.",
        show_default=False,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="With --server: the data set.", show_default=False),
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """Where a command asks: a catalog, or a data set of a server."""

    catalog: CatalogFile = DEFAULT_CATALOG
    server: Server = None
    dataset: Dataset = None


def open_session(catalog: Path, server: str | None, dataset: str | None) -> "Session | RemoteSession":
    """Open a session on a catalog, or on a data set of a server."""
    if server is None:
        if dataset is not None:
            raise InvalidParameter("--dataset goes with --server; a catalog has one data set.")
        return lw.connect(catalog)
    return lw.connect(server, token=token_for_server(), dataset=dataset)


def token_for_server() -> str:
    """Return the token by which a server knows who asks.

    Raises:
        InvalidParameter: If there is none.
    """
    token = os.environ.get(TOKEN)
    if not token:
        raise InvalidParameter(
            f"A server needs a token in the environment variable {TOKEN}. Get one with your password by `export "
            f"{TOKEN}=$(lapwing login NAME)`, or ask the curator."
        )
    return token


def name_of(session: "Session | RemoteSession") -> str:
    """Return the name of the data set."""
    return session.catalog.name if isinstance(session, lw.Session) else session.dataset


def neighbouring_of(session: "Session | RemoteSession") -> str:
    """Return the relation that the budget is for."""
    if isinstance(session, lw.Session):
        return session.catalog.budget.neighbouring
    return str(session.schema["budget"]["neighbouring"])
