"""`lapwing secure init`, `close`, `next` and `result`: what the organiser runs, and whoever reads."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from lapwing.cli.console import note
from lapwing.cli.options import ReportFormatName, above_zero, amount, grouped, part_of_one
from lapwing.cli.secure.days import closed_days, show_days
from lapwing.cli.secure.init_options import SecureAnswerOptions, SecureDaysOptions, days_of, question_of
from lapwing.cli.secure.noise_texts import noise_of
from lapwing.cli.secure.task_files import TaskFile, key_file, task_in, write_new
from lapwing.cli.secure.totals_view import CONFIDENCE, Level, show_totals
from lapwing.errors import InvalidParameter
from lapwing.privacy.amount_texts import short


@grouped
def init(
    question: Annotated[str, typer.Option(metavar="TEXT", help="The question for people.", show_default=False)],
    epsilon: Annotated[
        Fraction, amount(above_zero("--epsilon"), "The privacy loss of one answer.", show_default=False)
    ],
    server: Annotated[
        list[Path], typer.Option(metavar="FILE", help="A server's certificate; repeat.", show_default=False)
    ],
    *,
    answers: SecureAnswerOptions,
    days: SecureDaysOptions,
    delta: Annotated[
        Fraction | None,
        amount(part_of_one("--delta"), "Above 0: Gaussian noise in place of Laplace noise.", show_default=False),
    ] = None,
    least_clients: Annotated[int, typer.Option(metavar="COUNT", help="Release nothing with fewer clients.")] = 100,
    checked: Annotated[
        bool,
        typer.Option(
            "--checked", help="Drop invalid answers; two of three servers together could then see all answers."
        ),
    ] = False,
    joint: Annotated[
        bool, typer.Option("--joint", help="One noise for all three servers; two of them together know it.")
    ] = False,
    grid: Annotated[
        bool, typer.Option("--grid", help="With --checked: up to 1,048,576 values, sent as a row and a column.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The task's file.")] = Path(
        "task.json"
    ),
) -> None:
    """Write a task for everybody, and next to it the organiser's key, which closes the task.

    A sum of 0 and 1, such as a count of those who say yes, is --number 0:1 --steps 1, with half the noise of --value.
    """
    from lapwing.secure.organising import new_task
    from lapwing.secure.task import MOST_DELTA

    task, key = new_task(
        question=question,
        asked=question_of(answers),
        epsilon=epsilon,
        delta=delta or Fraction(0),
        least_clients=least_clients,
        checked=checked,
        joint=joint,
        grid=grid,
        repeats=days_of(days),
        certificates=[file.read_text(encoding="ascii", errors="replace") for file in server],
    )
    write_new(output, task.to_text(), 0o644)
    write_new(key_file(output), key + "\n", 0o600)
    note("written", f"give {output} to everybody; {key_file(output)} is only for you")
    note("promise", task.promise)
    note("noise", noise_of(task))
    if task.delta > MOST_DELTA:
        note("delta", f"above {short(MOST_DELTA)}: clients refuse the task unless they say that they accept this delta")


def close(
    file: TaskFile,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The organiser's key; default: next to the task.", show_default=False),
    ] = None,
    confidence: Level = None,
    form: Annotated[ReportFormatName, typer.Option("--format", help="How to write it.")] = ReportFormatName.table,
) -> None:
    """Close a task: the servers take no more answers, agree on the clients that all of them have, and release totals.

    If a server does not answer, the command names it; close again when it is back. What was released stays as it was.
    Of a task that repeats, it closes the days that are over.
    """
    from lapwing.secure import organising

    task, held = task_in(file), (key or key_file(file)).read_text(encoding="ascii", errors="replace").strip()
    if task.repeats:
        show_days(closed_days(task, held), None, confidence or CONFIDENCE, form)
        return
    show_totals(organising.close(task, held), confidence or CONFIDENCE, form)


def next_level(
    file: TaskFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The new task's file.")],
    epsilon: Annotated[
        Fraction | None,
        amount(above_zero("--epsilon"), "Of the new level; default: of the last one.", show_default=False),
    ] = None,
    least: Annotated[int, typer.Option(metavar="COUNT", help="Follow prefixes with at least this noisy count.")] = 0,
) -> None:
    """Read what all servers released of a level of words, and write the task for more letters of the frequent ones.

    Clients answer each level, and each costs its own epsilon.
    """
    from lapwing.secure import heavy_hitters, organising

    task, key = heavy_hitters.next_task(organising.totals(task_in(file)), epsilon=epsilon, least=least)
    write_new(output, task.to_text(), 0o644)
    write_new(key_file(output), key + "\n", 0o600)
    note("written", f"give {output} to everybody; {key_file(output)} is only for you")
    note("promise", f"{task.promise}, beside what the levels before have cost")
    note("noise", noise_of(task))


def result(
    file: TaskFile,
    window: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS", help="Of a task that repeats: totals of this number of last days.", show_default=False
        ),
    ] = None,
    confidence: Level = None,
    form: Annotated[ReportFormatName, typer.Option("--format", help="How to write it.")] = ReportFormatName.table,
) -> None:
    """Get what all servers released, and add it up. Anybody can do this, and nothing is charged."""
    from lapwing.secure import organising, repeating_organiser

    task = task_in(file)
    if task.repeats:
        show_days(repeating_organiser.released_days(task), window, confidence or CONFIDENCE, form)
        return
    if window is not None:
        raise InvalidParameter("--window is of a task that repeats; leave it out.")
    show_totals(organising.totals(task), confidence or CONFIDENCE, form)
