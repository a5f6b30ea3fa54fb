"""Options of `lapwing secure init` for answers and days, and the question that they mean."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from lapwing.cli.local.task_options import lines_of
from lapwing.cli.options import above_zero, amount
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.secure.asked import Asked
    from lapwing.secure.repetition import TaskDays

_ALPHABET: Final = "_abcdefghijklmnopqrstuvwxyz"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecureAnswerOptions:
    """What clients answer: one of some values, a number, or several."""

    value: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A possible answer; repeat for each.", show_default=False)
    ] = None
    values: Annotated[
        Path | None,
        typer.Option("--values", metavar="FILE", help="Instead: possible answers, one a line.", show_default=False),
    ] = None
    letters: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="Instead: a word of at most this many letters.", show_default=False),
    ] = None
    alphabet: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="A mark for the end, then all letters; default _a…z.", show_default=False),
    ] = None
    number: Annotated[
        str | None, typer.Option(metavar="LOWER:UPPER", help="Instead: a number, for its sum.", show_default=False)
    ] = None
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Instead: the name of one of several numbers, for their sums; repeat.",
            show_default=False,
        ),
    ] = None
    upper: Annotated[
        Fraction | None, amount(above_zero("--upper"), "Each --part is from 0 to this.", show_default=False)
    ] = None
    l1: Annotated[
        Fraction | None,
        amount(above_zero("--l1"), "The most that the parts of a client may add up to.", show_default=False),
    ] = None
    l2: Annotated[
        Fraction | None,
        amount(above_zero("--l2"), "Instead: the most for the root of the sum of their squares.", show_default=False),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="The steps of the grid of numbers; default 1,000.", show_default=False),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecureDaysOptions:
    """The days of a task that is asked every day."""

    days: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", help="Ask every day, for this number of days, with one budget.", show_default=False
        ),
    ] = None
    most_days: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", help="On how many of them a client answers at most; default: all.", show_default=False
        ),
    ] = None
    first: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="The first day, by UTC; default: today.", show_default=False),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            help="The least noise for totals of this number of days; default: all days so far.",
            show_default=False,
        ),
    ] = None


def question_of(answers: SecureAnswerOptions) -> "Asked":
    """Return the question that the options of `init` mean, or refuse those that do not belong together."""
    from lapwing.secure.heavy_hitters import first_level
    from lapwing.secure.numbers import number_between
    from lapwing.secure.values import Values
    from lapwing.secure.vectors import vector_within

    values, number, parts, steps = answers.value or [], answers.number, answers.part or [], answers.steps
    if answers.values is not None:
        if values:
            raise InvalidParameter("Give --value for each answer, or --values with a file, and not both.")
        values = lines_of(answers.values, "--values")
    upper, l1, l2 = answers.upper, answers.l1, answers.l2
    if answers.alphabet is not None and answers.letters is None:
        raise InvalidParameter("--alphabet is of words: give --letters, too.")
    if [bool(values), answers.letters is not None, number is not None, bool(parts)].count(True) != 1:
        raise InvalidParameter(
            "Give --value for each answer, --values with a file of them, --letters for words, --number with its "
            "bounds, like 0:120, or several --part."
        )
    if (values or answers.letters is not None) and steps is not None:
        raise InvalidParameter("--steps is of the grid of numbers; leave it out.")
    whole = upper is not None and (l1 is None) != (l2 is None)
    if whole != bool(parts) or (not parts and (upper, l1, l2) != (None, None, None)):
        raise InvalidParameter(
            "Several --part need --upper, and either --l1 or --l2. These options are only for --part."
        )
    if values:
        return Values(tuple(values))
    if answers.letters is not None:
        return first_level(answers.alphabet or _ALPHABET, answers.letters)
    grid = 1000 if steps is None else steps
    if number is not None:
        return number_between(number, grid)
    bound = l2 if l1 is None else l1
    return vector_within(parts, upper or Fraction(0), grid, "l2" if l1 is None else "l1", bound or Fraction(0))


def days_of(options: SecureDaysOptions) -> "TaskDays | None":
    """Return the days that the options of `init` mean, or refuse those that need --days."""
    from datetime import UTC, date, datetime

    from lapwing.secure.repetition import TaskDays

    if options.days is None:
        if (options.most_days, options.first, options.window) != (None, None, None):
            raise InvalidParameter("--most-days, --first and --window are for a task that repeats: give --days.")
        return None
    try:
        first = datetime.now(UTC).date() if options.first is None else date.fromisoformat(options.first)
    except ValueError:
        raise InvalidParameter("--first must be a date such as 2026-01-31.") from None
    most = options.days if options.most_days is None else options.most_days
    return TaskDays(first=first, days=options.days, most_days=most, window=options.window)
