"""Where events come from: a folder that grows, a table in a database that grows, or what was sent to a service.

A source hands over files that were not read before, with the place up to which it is read then. Who reads them writes
the place in the same transaction as the events: so each event is read once, whatever dies when.

What is read is all that there is at the time. So of one person's events, what arrives for which tick does not depend on
other people's.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol, final

from lapwing.catalog.model import Table
from lapwing.catalog.patterns import files_of
from lapwing.catalog.source_address import KEY, is_address, read_address
from lapwing.errors import DataFault, InvalidParameter
from lapwing.monitors.store import MonitorStore

INBOX: Final = "service"
GROWING: Final = ("postgresql", "sqlite")
"""Doors of databases whose tables can be read as they grow."""
_SOURCES: Final = (
    "Write 'postgresql://READER@HOST/DATABASE?append=KEY#SCHEMA.TABLE', 'sqlite:FILE?append=KEY#TABLE', or 'service' "
    "for events that are sent. For files, leave the source out; the monitor then reads the files of the catalog's "
    "table."
)


class Portion(NamedTuple):
    """A file with events, and what is to be written once they are kept."""

    file: Path
    name: str
    place: str


class Source(Protocol):
    """Events that were not read yet."""

    @property
    def pause(self) -> float:
        """Seconds between two looks, beside those at every tick that is due."""
        ...

    def portions(self, known: Mapping[str, str]) -> Iterator[Portion]:
        """Yield files that were not read, in order; the one before is kept when the next is asked for.

        Args:
            known: Places by name, as they were yielded before.

        Raises:
            DataFault: If the source is gone, or not what it was.
        """
        ...


@final
class Folder:
    """Files that a pattern names: each is read once, when it is first seen, and must be complete then.

    So they are written elsewhere, or under a name that begins with `.` or `_`, and moved. One that has changed since it
    was read is a fault: nobody could say which of its events are new.
    """

    pause = 0.0

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
                    f"The file {file.name} of events changed after it was read. Restore the file, and put new events "
                    f"into a new file"
                )


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except FileNotFoundError:
        return "gone"
    return f"{status.st_size} {status.st_mtime_ns}"


@final
class EventInbox:
    """Events that were sent to the monitor itself (`Monitor.send`)."""

    pause = 0.0

    def __init__(self, store: MonitorStore, scratch: Path) -> None:
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


def require_source(text: str | None, table: Table) -> None:
    """Refuse what names no source of events.

    Args:
        text: As it was given, None for that of the table.

    Raises:
        InvalidParameter: If a value is not allowed. An address in which somebody wrote a password is not repeated.
    """
    source = text or table.source
    if source == INBOX and table.where:
        raise InvalidParameter(
            f"Table {table.name} has conditions on the rows of its source, and sent events are not checked against "
            f"them. Read the events from the source."
        )
    if source == INBOX or (text is None and not is_address(source)):
        return
    if not is_address(source):
        raise InvalidParameter(f"The given source is not a source of events. {_SOURCES}")
    try:
        address = read_address(source)
    except ValueError as error:
        raise InvalidParameter(f"The source of events cannot be used: {error}.") from None
    if address.door not in GROWING or address.option(KEY) is None:
        raise InvalidParameter(
            f"A monitor reads tables that only grow, in PostgreSQL or SQLite, by a key that only grows. {_SOURCES}"
        )


def open_source(text: str | None, table: Table, folder: Path, store: MonitorStore, scratch: Path) -> Source:
    """Return the source of a monitor's events.

    Args:
        text: As it was given, None for that of the table.
        folder: That paths start from.
    """
    source = text or table.source
    if source == INBOX:
        return EventInbox(store, scratch)
    if is_address(source):
        from lapwing.monitors.table_source import GrowingTable  # here: few monitors watch databases

        return GrowingTable(read_address(source), table, folder, scratch)
    return Folder((folder / source).absolute())
