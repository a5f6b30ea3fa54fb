"""Events of a table in a database that only grows, by a key that only grows: each row once it is committed, and once.

Theory of operation. Rows are new whose keys are above a line. The line cannot simply be the greatest key that was read:
of two transactions that insert at the same time, the one with the smaller key may commit later, and its rows would be
passed over. So a look begins with the greatest key that there is, and with who could still add smaller ones
(`Growing.writers`). Mostly they end within a moment. Then another state of the table is opened, in which nothing can be
missing up to that key; it is read up to there, and the line moves there.

If one of them goes on and on, what is there is read all the same, and the line stays; what was read above it is
remembered as ranges of keys (`ReadPosition.seen`). So no writer holds up the rows of others.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, cast, final

from lapwing.catalog.model import Table
from lapwing.catalog.source_address import KEY, SourceAddress
from lapwing.errors import DataFault
from lapwing.monitors.sources import Portion
from lapwing.sources.delivery import deliver
from lapwing.sources.doors import door_of
from lapwing.sources.source import Growing, Names, Where

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.catalog.file_columns import FileColumn

MOST_ROWS: Final = 200_000
"""Rows that are read at a time."""
MOST_RANGES: Final = 1_000
"""Of keys that are remembered above the line; while there are more, rows wait for the writer that keeps it."""
PATIENCE: Final = 2.0
"""Seconds for writers to end, of whom nothing was known at the look before."""
_LEAST: Final = -(1 << 63)
_MOMENT: Final = 0.02


@final
@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Up to where a table is read: all keys up to `low`, and above it those of `seen`, ranges from first to last."""

    low: int = _LEAST
    seen: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_text(cls, text: str | None) -> Self:
        """Read what `to_text` wrote; None is the beginning."""
        if text is None:
            return cls()
        low, *seen = json.loads(text)
        return cls(low, tuple((first, last) for first, last in seen))

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps([self.low, *self.seen])

    @property
    def greatest(self) -> int:
        """The greatest key that was read."""
        return self.seen[-1][1] if self.seen else self.low

    def unread(self, column: str) -> str:
        """Return a condition on the key that is met by the rows that were not read."""
        apart = "".join(f" AND NOT ({column} BETWEEN {first} AND {last})" for first, last in self.seen)
        return f"{column} > {self.low}{apart}"

    def with_line(self, low: int) -> "ReadPosition":
        """Return the place once all keys up to one are read, and no smaller ones can come."""
        seen = tuple((max(first, low + 1), last) for first, last in self.seen if last > low)
        return ReadPosition(max(low, self.low), seen)

    def with_keys(self, keys: Sequence[int]) -> "ReadPosition":
        """Return the place once rows of these keys are read, beside which others may still come."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted([*self.seen, *((key, key) for key in keys)]):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(last, joined[-1][1])
            else:
                joined.append((first, last))
        return ReadPosition(self.low, tuple(joined))


@final
class GrowingTable:
    """A table in PostgreSQL or SQLite whose address names such a key.

    Args:
        address: With the key as its option.
        table: As the catalog describes it.
        scratch: A private folder.
    """

    pause = 10.0

    def __init__(self, address: SourceAddress, table: Table, folder: Path, scratch: Path) -> None:
        self._address, self._table, self._folder, self._scratch = address, table, folder, scratch
        self._key = address.option(KEY) or ""
        self._column = '"' + self._key.replace('"', '""') + '"'
        self._lasting: frozenset[str] = frozenset()  # writers for whom the look before waited in vain

    def portions(self, known: Mapping[str, str]) -> Iterator[Portion]:
        """Yield the rows that were not read before."""
        names = self._address.table
        called = f"table:{self._address.place}#{'.'.join(names)}"
        place = ReadPosition.from_text(known.get(called))
        greatest, settled = self._look(place)
        if greatest is None:
            return
        file, sorting = self._scratch / "events.parquet", self._scratch / "sorting"
        sorting.mkdir(mode=0o700, exist_ok=True)
        try:
            with self._opened() as state:
                while len(place.seen) < MOST_RANGES or settled:
                    up_to = f" AND {self._column} <= {greatest}" if settled else ""
                    most = MOST_ROWS if settled else MOST_RANGES
                    keys = state.keys(names, self._key, place.unread(self._column) + up_to, most)
                    if not keys:
                        break
                    chosen = f"{place.unread(self._column)} AND {self._column} <= {keys[-1]}"
                    deliver(_Portion(state, chosen), names, self._table, file, sorting)
                    place = place.with_line(keys[-1]) if settled else place.with_keys(keys)
                    yield Portion(file, called, place.to_text())
        finally:
            file.unlink(missing_ok=True)

    def _look(self, place: ReadPosition) -> tuple[int | None, bool]:
        """Return the greatest key, and whether no smaller ones can come in states that are opened from now on.

        Proof. Who could add one was writing when the greatest was seen (`Growing.writers`), and has ended: what is
        opened from now on has all that they did.
        """
        names = self._address.table
        with self._opened() as state:
            greatest = self._greatest(state)
            writers = state.writers(names)
            if place.greatest > _LEAST and greatest is not None and greatest < place.greatest:
                raise DataFault(
                    f"The greatest {self._key} of the table of events is less than before, so rows at its end were "
                    f"removed or renumbered. Restore them, or create another monitor"
                )
            until = time.monotonic() + PATIENCE
            while (left := writers & state.writers(names)) - self._lasting and time.monotonic() < until:
                time.sleep(_MOMENT)
            self._lasting = left
            return greatest, not left

    def _greatest(self, state: Growing) -> int | None:
        names = self._address.table
        types = {column.name: column.type for column in state.columns(names)}
        try:
            if types.get(self._key, "integer") != "integer":
                raise ValueError(self._key)
            mark = state.mark(names)
        except ValueError:
            raise DataFault(
                f"{self._key} of the table of events is not an integer key; name one after ?{KEY}= in its address"
            ) from None
        return None if mark is None else int(json.loads(mark)[1])

    @contextmanager
    def _opened(self) -> Iterator[Growing]:
        opened = door_of(self._address)(self._address, self._folder)
        with cast(AbstractContextManager[Growing], opened) as state:
            yield state


@final
class _Portion:
    """Some rows of a state, as if they were all of it; `deliver` leaves out what the catalog's conditions do."""

    version = None
    holds_several = True

    def __init__(self, state: Growing, where: str) -> None:
        self._state, self._where = state, where

    def columns(self, table: Names) -> "Sequence[FileColumn]":
        """Return the columns of the table."""
        return self._state.columns(table)

    def mark(self, table: Names) -> None:
        """Return nothing: the place says more."""

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> None:
        """Return nothing."""

    def rows(self, table: Names, where: Where = ()) -> None:
        """Return nothing: the rows were counted by their keys."""

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> "pa.RecordBatchReader":
        """Return the rows."""
        return self._state.selected(table, columns, self._where)
