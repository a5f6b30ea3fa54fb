"""Options that the commands of `lapwing local` share, what refuses them by their name, and how a task is written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

import lapwing as lw
from lapwing.cli.console import note, print_text
from lapwing.cli.options import above_zero, amount
from lapwing.errors import InvalidParameter
from lapwing.local.client import MOST_VALUES
from lapwing.privacy.figures import real

if TYPE_CHECKING:
    from lapwing.local.client import Task


def day(option: str) -> Callable[[str], date]:
    """Return what reads an option's day."""

    def read(text: str) -> date:
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise InvalidParameter(f"{option} is {text[:60]!r}; it must be a day, such as 2027-01-31.") from None

    return read


MOST_LISTED: Final = 1 << 24
"""Bytes of a file of values or candidates."""
Question = Annotated[str, typer.Option(metavar="TEXT", help="The question for people.", show_default=False)]
Opens = Annotated[date, typer.Option(parser=day("--opens"), metavar="DAY", help="The first day.")]
Closes = Annotated[date, typer.Option(parser=day("--closes"), metavar="DAY", help="The last day.")]
Epsilon = Annotated[Fraction, amount(above_zero("--epsilon"), "The privacy loss of one report.")]
Retention = Annotated[int, typer.Option(metavar="DAYS", help="How many days to store reports.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the task to a file.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a task that is there.")]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFileOptions:
    """How long reports are kept, and where a task is written."""

    retention_days: Retention = 30
    output: Output = None
    force: Force = False


def write_task(task: "Task", output: Path | None, *, force: bool) -> None:
    """Write a task, and say what it promises.

    A task that has been handed out is never overwritten by accident: reports of the old one would count no more.

    Raises:
        InvalidParameter: If there is such a file, unless forced.
    """
    written = lw.local.to_toml(task)
    if output is None:
        print_text(written)
    else:
        try:
            with output.open("w" if force else "x", encoding="utf-8") as opened:
                opened.write(written)
        except FileExistsError:
            raise InvalidParameter(
                f"{output} exists already; nothing was changed. Choose another --output, or add --force; reports on "
                "the old task do not count for a new one."
            ) from None
        note("written", str(output))
    note("promise", task.promise)


def check_whole(option: str, value: int, least: int, most: int | None = None) -> None:
    """Refuse a whole number out of its range.

    Raises:
        InvalidParameter: With the option and the range.
    """
    if value < least or (most is not None and value > most):
        allowed = f"from {least:,} to {most:,}" if most is not None else f"{least:,} or more"
        raise InvalidParameter(f"{option} is {value:,}; it must be {allowed}.")


def check_values(option: str, values: Sequence[str]) -> None:
    """Refuse a list of one value, of too many, or with two the same.

    Raises:
        InvalidParameter: With the option and what is allowed.
    """
    if not 2 <= len(values) <= MOST_VALUES or len(set(values)) < len(values):
        said = "one value" if len(values) == 1 else f"{len(values):,} values, {len(set(values)):,} of them different"
        raise InvalidParameter(f"{option} gives {said}; give 2 to {MOST_VALUES:,}, no two the same.")


def lines_of(file: Path, option: str) -> list[str]:
    """Read texts, one a line; empty lines are passed over.

    Raises:
        InvalidParameter: With the option, if the file is too long, or not in UTF-8.
    """
    with file.open("rb") as opened:
        data = opened.read(MOST_LISTED + 1)
    if len(data) > MOST_LISTED:
        raise InvalidParameter(f"The file of {option} has more than {MOST_LISTED:,} bytes; list fewer.")
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InvalidParameter(f"The file of {option} is not a text in UTF-8, one value a line.") from None
    return [word for word in (line.rstrip("\r") for line in lines) if word]


def check_unused(options: Mapping[str, bool], where: str) -> None:
    """Refuse options that would be ignored.

    Args:
        options: Whether each was given, or is not what it is by default.
        where: Where they mean nothing.

    Raises:
        InvalidParameter: With the first.
    """
    for option, present in options.items():
        if present:
            raise InvalidParameter(f"{option} means nothing {where}; leave it out.")


def check_less(option: str, value: Fraction, other: str, limit: Fraction) -> None:
    """Refuse a loss of one report that is not below that of all.

    Raises:
        InvalidParameter: With both options.
    """
    if value >= limit:
        raise InvalidParameter(
            f"{option} is {in_decimals(value)} and {other} is {in_decimals(limit)}; one report must lose less than all."
        )


def in_decimals(amount: Fraction | Decimal) -> str:
    """Return an amount as people write it, not as a fraction."""
    return real(float(amount))
