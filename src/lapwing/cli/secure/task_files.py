"""A task's file, and the organiser's key next to it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.secure.task import Task

KEY_SUFFIX: Final = ".key"
TaskFile = Annotated[Path, typer.Argument(metavar="TASK", help="The task's file.", show_default=False)]


def task_in(file: Path) -> "Task":
    """Read a task."""
    from lapwing.secure.task import Task

    return Task.from_text(file.read_text(encoding="utf-8", errors="replace"))


def key_file(task: Path) -> Path:
    """Return where the organiser's key of a task is."""
    return task.with_suffix(KEY_SUFFIX)


def write_new(path: Path, content: str, mode: int) -> None:
    """Write a file that was not there.

    Raises:
        InvalidParameter: If it was.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InvalidParameter(
            f"The file {path} already exists, and answers to its task would not count for another one. "
            "Choose another --output."
        ) from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)
