"""`lapwing local over-time`: a task that the same respondents answer again and again."""

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.cli.local import task_options as options
from lapwing.cli.options import above_zero, amount
from lapwing.errors import InvalidParameter
from lapwing.local.client.longitudinal import MOST_CHANGES, MOST_DAYS, MOST_LEVELS

if TYPE_CHECKING:
    from lapwing.local import Mechanism

EXAMPLE: Final = """\b
Examples:
  lapwing local over-time --question "Your first browser?" --value Lynx --value Netscape
    --epsilon 0.5 --forever 2 --opens 2027-01-01 --closes 2027-12-31 --output task.toml
  lapwing local over-time --question "At home this week?" --value no --value yes
    --epsilon 1 --changes 3 --days 7 --opens 2027-01-04 --closes 2027-12-31"""

MOST_PERIODS: Final = 1 << MOST_LEVELS
UNCHANGING: Final = "one answer of one person, which never changes"
ALL: Final = "all answers of one person"


def over_time(
    question: options.Question,
    value: Annotated[
        list[str], typer.Option(metavar="TEXT", help="A possible answer; repeat for each.", show_default=False)
    ],
    opens: options.Opens,
    closes: options.Closes,
    epsilon: Annotated[
        Fraction,
        amount(
            above_zero("--epsilon"),
            "The privacy loss of one report (with --forever), or of all reports together (with --changes).",
            show_default=False,
        ),
    ],
    forever: Annotated[
        Fraction | None,
        amount(
            above_zero("--forever"),
            "For an answer that never changes: the privacy loss of all reports together.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT",
            help="For no or yes: how many changes of the answer count. A first yes is a change.",
            show_default=False,
        ),
    ] = None,
    days: Annotated[int, typer.Option(metavar="DAYS", help="With --changes: the days of a period.")] = 1,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="The unit that noise hides, such as all answers of one person.", show_default=False
        ),
    ] = None,
    retention_days: options.Retention = 30,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Write a task that the same respondents answer again and again, with --device.

    Give --forever for an answer that never changes, or --changes for a yes or no that changes a few times; of two
    values, the first is no. A tree has as many periods as its days need, up to the next power of two.
    """
    if (forever is None) == (changes is None):
        raise InvalidParameter("Give --forever for an answer that never changes, or --changes for one that does.")
    options.check_values("--value", value)
    if forever:
        options.check_unused({"--days": days != 1}, "with --forever")
    mechanism = _kept(epsilon, forever, value) if forever else _tree(epsilon, changes or 0, days, opens, closes)
    task = lw.local.new_task(
        question,
        value,
        mechanism,
        opens=opens,
        closes=closes,
        unit=unit or (UNCHANGING if forever else ALL),
        retention_days=retention_days,
    )
    options.write_task(task, output, force=force)


def _kept(epsilon: Fraction, forever: Fraction, values: Sequence[str]) -> "Mechanism":
    """Return the more accurate of both: a value, or a bit for each value."""
    options.check_less("--epsilon", epsilon, "--forever", forever)
    from lapwing.local.frequencies.variance import mean_variance  # here, so that `lapwing --help` loads no engine

    kary = lw.local.Memoised.for_epsilons(epsilon, forever, len(values))
    unary = lw.local.MemoisedUnary.for_epsilons(epsilon, forever, len(values))
    return unary if mean_variance(unary) < mean_variance(kary) else kary


def _tree(epsilon: Fraction, changes: int, days: int, opens: date, closes: date) -> "Mechanism":
    """Return the tree with a period for every day that the task is open.

    Raises:
        InvalidParameter: If these are more than a tree can have, or for a number out of its range.
    """
    options.check_whole("--days", days, 1, MOST_DAYS)
    options.check_whole("--changes", changes, 1, MOST_CHANGES)
    open_days = (closes - opens).days + 1
    needed = max(2, -(-open_days // days))
    if needed > MOST_PERIODS:
        least = -(-open_days // MOST_PERIODS)
        enough = f"--days {least} or more" if least <= MOST_DAYS else "an earlier --closes"
        raise InvalidParameter(
            f"--days is {days}, which makes {needed:,} periods from --opens to --closes; at most {MOST_PERIODS:,} "
            f"are allowed: give {enough}."
        )
    return lw.local.DyadicTree.for_epsilon(epsilon, 1 << (needed - 1).bit_length(), changes, days=days)
