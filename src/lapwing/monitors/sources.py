"""Where events come from: a folder that grows, a table in SQLite that grows, or what was sent to a service.

A source hands over files that were not read before, with the place up to which it is read then. Who reads them writes
the place in the same transaction as the events: so each event is read once, whatever dies when.

What is read is all that there is at the time. So of one person's events, what arrives for which tick does not depend on
other people's.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol, final

from lapwing.catalog.patterns import files_of
from lapwing.errors import DataFault, InvalidParameter
from lapwing.monitors.store import Store

INBOX: Final = "service"
_ROWS: Final = 200_000
"""Of a table that are read at a time."""


class Portion(NamedTuple):
    """A file with events, and what is to be written once they are kept."""

    file: Path
    name: str
    place: str


class Source(Protocol):
    """Events that were not read yet."""

    def portions(self, known: Mapping[str, str]) -> Iterator[Portion]:
        """Yield files that were not read, in order; the one before is kept when the next is asked for.

        Args: known: places by name, as they were yielded before.
        Raises: DataFault if the source is gone, or not what it was.
        """
        ...


@final
class Folder:
    """Files that a pattern names: each is read once, when it is first seen, and must be complete then.

    So they are written elsewhere, or under a name that begins with `.` or `_`, and moved. One that has changed since it
    was read is a fault: nobody could say which of its events are new.
    """

    def __init__(self, pattern: Path) -> None:
        self._pattern = pattern

    def portions(self, known: Mapping[str, str]) -> Iterator[Portion]:
        """Yield the files that were not there before."""
        folder = next(above for above in self._pattern.parents if not set("*?") & set(str(above)))
        if not folder.is_dir():
            raise DataFault(f"The folder {folder.name} of events is gone; ticks wait for it")
        for file in files_of(self._pattern):
            name, place = f"file:{file}", _stamp(file)
            if name not in known:
                yield Portion(file, name, place)
                if _stamp(file) != place:
                    raise DataFault(f"The file {file.name} of events changed while it was read. Move files there whole")
            elif known[name] != place:
                raise DataFault(
                    f"The file {file.name} of events changed after it was read. Put it back as it was, and new events "
                    "into a new file"
                )


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except FileNotFoundError:
        return "gone"
    return f"{status.st_size} {status.st_mtime_ns}"


@final
class SqliteTable:
    """A table that only grows, by an integer key that only grows: rows after the greatest key that was read are new.

    SQLite's writers follow each other, so that no row appears with a lower key than one that is there; and keys of
    INTEGER PRIMARY KEY AUTOINCREMENT are not used again.
    """

    def __init__(self, file: Path, table: str, key: str, scratch: Path) -> None:
        self._file, self._table, self._key, self._scratch = file, table, key, scratch

    def portions(self, known: Mapping[str, str]) -> Iterator[Portion]:
        """Yield new rows as JSON lines."""
        name = f"table:{self._file.name}:{self._table}"
        after = int(known.get(name, "-9223372036854775808"))
        written = self._scratch / "events.jsonl"
        table, key = (f'"{part.replace(chr(34), chr(34) * 2)}"' for part in (self._table, self._key))
        if not self._file.is_file():
            raise DataFault(f"The database {self._file.name} of events is gone; ticks wait for it")
        try:
            with closing(
                sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
            ) as database:
                while True:
                    cursor = database.execute(
                        f"SELECT * FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_ROWS}", (after,)
                    )
                    names = [column[0] for column in cursor.description]
                    place = next((i for i, n in enumerate(names) if n.casefold() == self._key.casefold()), None)
                    rows = cursor.fetchall()
                    if not rows:
                        return
                    if place is None or not isinstance(rows[-1][place], int):
                        raise DataFault(f"The key {self._key} of {self._table} is no integer")
                    after = rows[-1][place]
                    with open(written, "w", encoding="utf-8") as file:
                        file.writelines(f"{_line(names, row)}\n" for row in rows)
                    yield Portion(written, name, str(after))
        except sqlite3.Error as error:
            raise DataFault(f"The table {self._table} of events cannot be read ({error}); ticks wait for it") from None
        finally:
            written.unlink(missing_ok=True)


def _line(names: list[str], row: tuple[object, ...]) -> str:
    return json.dumps({name: _plain(value) for name, value in zip(names, row, strict=True) if value is not None})


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.isoformat() if isinstance(value, date | datetime) else value


@final
class Inbox:
    """Events that were sent to the monitor itself (`Monitor.send`)."""

    def __init__(self, store: Store, scratch: Path) -> None:
        self._store, self._scratch = store, scratch

    def portions(self, known: Mapping[str, str]) -> Iterator[Portion]:
        """Yield what was sent and is not read, as JSON lines."""
        events = self._store.inbox()
        if not events:
            return
        written = self._scratch / "sent.jsonl"
        try:
            with open(written, "w", encoding="utf-8") as file:
                file.writelines(f"{event}\n" for _, event in events)
            yield Portion(written, INBOX, str(events[-1][0]))
        finally:
            written.unlink(missing_ok=True)


def require_source(text: str) -> None:
    """Refuse what names no source of events."""
    if text != INBOX and _sqlite(text) is None:
        raise InvalidParameter(
            f"{text!r:.80} is no source of events; write 'sqlite:FILE?table=TABLE&key=COLUMN', or '{INBOX}' for events "
            "that are sent. For files, leave it out: they are those of the catalog's table."
        )


def open_source(text: str | None, source: Path, folder: Path, store: Store, scratch: Path) -> Source:
    """Return the source of a monitor's events.

    Args: text: as it was given, None for the catalog's files; source: those; folder: that other paths start from.
    """
    if text is None:
        return Folder(source)
    if text == INBOX:
        return Inbox(store, scratch)
    parts = _sqlite(text)
    if parts is None:
        raise InvalidParameter(f"{text!r:.80} is no source of events.")
    return SqliteTable(folder / parts[0], parts[1], parts[2], scratch)


def _sqlite(text: str) -> tuple[str, str, str] | None:
    from urllib.parse import parse_qs, urlsplit

    address = urlsplit(text)
    if address.scheme != "sqlite" or not address.path or address.netloc:
        return None
    options = parse_qs(address.query)
    if set(options) != {"table", "key"} or any(len(values) != 1 for values in options.values()):
        return None
    return address.path, options["table"][0], options["key"][0]
