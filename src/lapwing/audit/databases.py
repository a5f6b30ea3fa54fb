"""Opening a SQLite file to look at it, so that no file appears beside it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def opened_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database read-only.

    A reader of a write-ahead log makes files beside it, which belong to the reader. Then a service of another user can
    no longer open the ledger. So without such a log, the file is opened as one that nobody changes.

    Raises:
        sqlite3.Error: If it cannot be read.
    """
    address, log = path.resolve(), path.with_name(f"{path.name}-wal")
    try:
        under_way = log.stat().st_size > 0
    except OSError:
        under_way = False
    how = "mode=ro" if under_way else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{address.as_uri()}?{how}", uri=True)) as connection:
        yield connection
