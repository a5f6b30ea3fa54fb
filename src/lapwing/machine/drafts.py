"""Files that are written whole or not at all: a draft beside the place, synced, and then put there."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft_of(lines: Iterable[str], path: Path) -> Iterator[Path]:
    """Write a draft of a file beside it, for its owner alone and synced; when the block has ended it is gone.

    Who has it puts it into its place: by `os.link`, which leaves a file that is there alone, or by `os.replace`.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)  # mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        yield Path(name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
