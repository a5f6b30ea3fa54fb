"""Reports from files: one a line, plain or compressed, or as a collector released them; `-` is standard input.

Or from a database into which a collector released them.
"""

import gzip
import hashlib
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import lapwing as lw
from lapwing.catalog.ledger import POSTGRES
from lapwing.cli.console import complain
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.local import Collected
    from lapwing.local.client import Task

MOST_LINE: Final = 1 << 22
"""A longer line is no report of any task; it is read, and rejected, in parts, so that it does not fill the memory."""
SHOWN_REASONS: Final = 5


def collected_from(task: "Task", paths: Sequence[str]) -> "Collected[Any]":
    """Read reports from files, and say which lines were rejected; a report that is in two of them counts once.

    Raises:
        InvalidParameter: If a compressed or a released file is damaged, or of another task.
    """
    starts: list[tuple[int, str]] = []

    def lines() -> Iterator[bytes]:
        number = 0
        for path in paths:
            starts.append((number, path))
            for line in _lines(path, task):
                number += 1
                yield line

    found = lw.local.collect_for(lw.local.mechanism_of(task.asked), task, lines())
    for rejected in found.rejected[:SHOWN_REASONS]:
        before, path = next((start, path) for start, path in reversed(starts) if start < rejected.line)
        where = f"{path}: " if len(paths) > 1 else ""
        complain(f"{where}line {rejected.line - before} rejected: {rejected.reason}")
    if len(found.rejected) > SHOWN_REASONS:
        complain(f"and {len(found.rejected) - SHOWN_REASONS:,} more lines rejected")
    if len(paths) == 1:
        return found
    # Of several files, each line's number is that in its own file.
    own = [
        replace(one, line=one.line - next(start for start, _ in reversed(starts) if start < one.line))
        for one in found.rejected
    ]
    return replace(found, rejected=tuple(own))


def _lines(place: str, task: "Task") -> Iterator[bytes]:
    if place.startswith(POSTGRES):
        yield from _from_database(place, task)
        return
    path = Path(place)
    if path.suffix == ".parquet":
        yield from _released(path, task)
        return
    with ExitStack() as stack:
        file: IO[bytes]
        if str(path) == "-":
            file = sys.stdin.buffer
        elif path.suffix == ".gz":
            file = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(path)))
        else:
            file = stack.enter_context(path.open("rb"))
        try:
            yield from iter(lambda: file.readline(MOST_LINE), b"")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise InvalidParameter(f"{path} is not a whole gzip file; decompress it, or fetch it again.") from None


def _released(path: Path, task: "Task") -> Iterator[bytes]:
    """Yield the reports of a file that a collector released, as lines.

    They have no identities any more. Each gets one that follows from the file's content and its place, so that a file
    that is given twice counts once.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = path.read_bytes()
        table = pq.read_table(pa.BufferReader(data))
        said, facts = table["r"].to_pylist(), table.schema.metadata or {}
    except (pa.ArrowException, KeyError):
        raise InvalidParameter(f"{path} is no file that a collector released.") from None
    if facts.get(b"task") != task.digest.encode():
        raise InvalidParameter(f"{path} has reports of another task.")
    content = hashlib.sha256(data).digest()
    for place, one in enumerate(said):
        yield _line(task, content, place, one)


def _from_database(address: str, task: "Task") -> Iterator[bytes]:
    """Yield the reports that a collector released into a database, as lines."""
    try:
        from lapwing.collector.postgres_inbox import released_rows
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"PostgreSQL needs {missing.name}, which is not installed. Run `pip install 'lapwing-dp[postgres]'`."
        ) from None
    content = hashlib.sha256(address.encode()).digest()
    for place, (_, one) in enumerate(released_rows(address, task.digest)):
        yield _line(task, content, place, one)


def _line(task: "Task", content: bytes, place: int, said: str) -> bytes:
    identity = hashlib.sha256(content + place.to_bytes(8, "big")).hexdigest()[:32]
    return f'{{"v":1,"task":"{task.id}","id":"{identity}","m":{json.dumps(task.mechanism)},"r":{said}}}'.encode()
