"""Where a command writes a task: to a file that is not there yet, or to standard output."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import lapwing as lw
from lapwing.cli.console import note, print_text
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.local.client import Task

Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a task that is there.")]


def write_task(task: "Task", output: Path | None, *, force: bool) -> None:
    """Write a task, and say what it promises.

    A task that has been handed out is never overwritten by accident: reports of the old one would count no more.

    Raises: InvalidParameter if there is such a file, unless forced.
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
