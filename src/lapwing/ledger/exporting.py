"""A ledger as a file of lines: one entry a line, as JSON, complete, so that anybody can walk the chain without it.

A line has the seven fields of an entry; the body is the sealed text, unchanged. Nothing is left out, and nothing added:
`read` followed by `reading.verified` checks all that can be checked of the ledger itself. A copy cannot show that it is
the newest: any first part of a chain is a chain. For that, compare the last hash with one from elsewhere (the mark, the
page of the guarantee, a later copy).
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from itertools import zip_longest
from pathlib import Path
from typing import Final

from lapwing.errors import InvalidParameter, LedgerFault
from lapwing.ledger import reading
from lapwing.ledger.entries import Entry
from lapwing.ledger.state import LedgerState
from lapwing.machine.drafts import draft_of, sync_folder

FIELDS: Final = tuple(field.name for field in fields(Entry))


def lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield an entry a line."""
    for entry in entries:
        yield json.dumps(asdict(entry), ensure_ascii=True) + "\n"


def read(text: Iterable[str]) -> Iterator[Entry]:
    """Yield the entries of lines.

    Raises:
        LedgerFault: With its number, for a line that is no entry.
    """
    for number, line in enumerate(text, 1):
        yield _entry(line, number)


def _entry(line: str, number: int) -> Entry:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise _no_entry(number) from None
    if not isinstance(record, dict) or record.keys() != set(FIELDS) or type(record["sequence"]) is not int:
        raise _no_entry(number)
    if not all(isinstance(record[name], str) for name in FIELDS if name != "sequence"):
        raise _no_entry(number)
    return Entry(**record)


def _no_entry(number: int) -> LedgerFault:
    return LedgerFault(
        f"Line {number} is not an entry of a ledger: the file was damaged, edited or cut off. Take another copy."
    )


def entries_of(path: Path) -> Iterator[Entry]:
    """Yield the entries of a file.

    Raises:
        LedgerFault: If the ledger cannot be trusted or written.
    """
    try:
        with path.open(encoding="utf-8") as file:
            yield from read(file)
    except UnicodeDecodeError:
        raise LedgerFault(
            f"{path.name} is not an export of a ledger, because it is not UTF-8 text. Take another copy."
        ) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise LedgerFault(f"{path.name} cannot be read ({reason}). Give the path of an export.") from None


def verified(path: Path) -> LedgerState:
    """Return what the entries of a file add up to, after checking each of them and their chain.

    Raises:
        LedgerFault: Naming the first line or entry that cannot be what Lapwing wrote.
    """
    state = reading.verified(entries_of(path))
    if state is None:
        raise LedgerFault(f"{path.name} has no entry of a ledger. Take another copy.")
    return state


def write(entries: Iterable[Entry], path: Path, *, newer: bool = False) -> LedgerState:
    """Write entries to a file that only its owner can read, whole or not at all, and return their sums.

    Args:
        newer: Whether the file may be an older copy of the same ledger, which is replaced.

    Raises:
        InvalidParameter: If the file is there and is no such copy.
        LedgerFault: If what was written is no chain.
    """
    if path.exists() and not newer:
        raise _taken(path)
    with draft_of(lines(entries), path) as draft:
        state = verified(draft)  # what is on the disk, not what was meant to be
        if path.exists():
            require_older(path, draft)
            os.replace(draft, path)
        else:
            try:
                os.link(draft, path)
            except FileExistsError:
                raise _taken(path) from None
        sync_folder(path.absolute().parent)
    return state


def _taken(path: Path) -> InvalidParameter:
    return InvalidParameter(f"{path.name} exists already; choose another name. Nothing was written.")


def require_older(path: Path, newer: Path) -> None:
    """Refuse to replace a file by one that does not begin with all that it holds.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    with path.open("rb") as old, newer.open("rb") as new:
        for was, now in zip_longest(old, new):
            if was is None:
                return
            if was != now:
                raise InvalidParameter(
                    f"{path.name} is not an older copy of this ledger, or has more than it; choose another name. "
                    "Nothing was written."
                )
