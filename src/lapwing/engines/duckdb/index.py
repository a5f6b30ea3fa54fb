"""A table's kept rows, stored beside its data: cleaned and bounded once, for all questions to come.

Theory of operation. An index is a DuckDB file of two tables: the rows of `kept`, and the identity of what they are the
rows of. The identity is a hash of everything that `kept` is a function of: the bytes of the data, the text of the SQL
that cleans and bounds them (which the catalog's declarations determine), both of a linked table's parents too, and the
build of the engine that ran it, whose hash function and arithmetic may change. It also says which keys were found to be
unique before the index was written: who finds it need not look again. So an index is either exactly the relation that a
question would compute (`stored_rows` says why), or it has another identity and is not used. DuckDB checks every
block that it reads against a checksum: what is damaged raises, and the question runs without an index.

Whose file it is counts too. It is used only if it is a regular file of the user who asks or of the owner of the data,
which nobody else can write, and has no log beside it. It is written in a private folder, readable by its owner alone
before the first row is in it, and takes its name in one step when it is complete and on the disk. So readers see a
whole index or none, builders may race, and a killed one leaves a folder that the next removes. Those who read an index
when it is replaced or dropped notice at their next question.

A column of texts that may become private keys is stored as numbers of its words, of which there is a list (an ENUM of
DuckDB), if they are few: then nobody needs to compare ten million texts to count who holds which. Reading it gives the
texts again, or, where a question only passes a column on, its values by number, with the list. The list is of all words
in the file, in their own order. So it holds what no kept row has too: it is private data, like the rows.

A bounded number is stored as it is read, and within its bounds too. To clamp it for each question would take longest
where NULLs and values out of bounds are mixed, which nobody may learn from a clock.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from stat import S_ISREG
from threading import Lock
from typing import Final, final
from urllib.parse import quote
from uuid import uuid4

import duckdb

from lapwing.catalog.model import Table
from lapwing.catalog.patterns import folder_of, is_pattern
from lapwing.engines.duckdb.cleaned import WHOLE, Location, clean
from lapwing.engines.duckdb.database import Database, QueryRunner
from lapwing.engines.duckdb.literals import identifier, text
from lapwing.engines.duckdb.stamps import Stamp
from lapwing.engines.duckdb.stored_rows import kept_rows
from lapwing.machine import progress, scratch

FORMAT: Final = 5
SUFFIX: Final = ".lapwing.index"
BUILD_PREFIX: Final = ".lapwing-index-"
ROWS: Final = "kept"
LONGEST_NAME: Final = 150
MOST_WORDS: Final = 1 << 20
MOST_LETTERS: Final = 1 << 25
"""Bytes of all words of a column: the list of them is held in memory by whoever reads the index."""


def path_of(source: Path, table: Table) -> Path:
    """Return where the index of a table is: beside its data, under the table's name."""
    name = quote(table.name, safe=" ")
    if len(name) > LONGEST_NAME or name.startswith("."):
        name = hashlib.sha256(table.name.encode()).hexdigest()
    return folder_of(source) / f"{name}{SUFFIX}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredient:
    """A table whose data kept rows are a function of.

    Args:
        source: As a path-independent relation, so that data and index may move together.
        digest: Of the data.
    """

    table: Table
    source: Location
    digest: str


def identity_of(lineage: Sequence[Ingredient], keys: Sequence[Sequence[str]]) -> str:
    """Return the identity of the kept rows of a table.

    Args:
        lineage: The table, its parent, and so on.
        keys: Columns that were found to be unique among its rows.
    """
    meaning = lineage[0].table.digest
    origins = [[origin.digest, kept_rows(origin.table, origin.source, True, WHOLE)] for origin in lineage]
    facts = [FORMAT, _engine(), meaning, origins, sorted(map(sorted, keys))]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@cache
def _engine() -> tuple[str, ...]:
    with duckdb.connect() as connection:
        ((version, build),) = connection.execute("SELECT library_version, source_id FROM pragma_version()").fetchall()
    return (str(version), str(build), platform.machine())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedRows:
    """Where rows are stored, and which columns as numbers of words."""

    rows: str
    by_words: frozenset[str]

    def relation(self, passed_on: Collection[str] = ()) -> str:
        """Return the relation to select from.

        Args:
            passed_on: Columns whose values are not looked at before they come out: they may stay as they are stored.
        """
        names = [identifier(name) for name in sorted(self.by_words.difference(passed_on))]
        texts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
        return f"(SELECT * REPLACE ({texts}) FROM {self.rows})" if texts else self.rows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRows:
    """What is to be written into an index: queries for its rows, and for the words of some columns."""

    parts: Callable[[Mapping[str, str]], Sequence[str]]
    words: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenIndex:
    """An index as it was found: where its rows are to be selected from, or None if it is not to be used."""

    stamp: Stamp
    identity: str
    alias: str
    stored: IndexedRows | None


@final
class Indexes:
    """The indexes that one database has open. Thread-safe."""

    def __init__(self) -> None:
        self._building = f"{BUILD_PREFIX}{uuid4().hex}"
        self._aliases = count()
        self._held: dict[Path, _OpenIndex] = {}
        self._lock = Lock()

    def folders(self, sources: Sequence[Path]) -> list[str]:
        """Return the folders in which indexes will be built, which the database must be allowed."""
        return sorted({f"{folder_of(source) / self._building}/" for source in sources})

    def find(self, database: Database, path: Path, identity: str, source: Path) -> IndexedRows | None:
        """Return where the rows of this identity are stored, or None if there is no index to be trusted."""
        with self._lock:
            stamp, held = _stamp(path, source), self._held.get(path)
            if held is not None and held.stamp == stamp and held.identity == identity:
                return held.stored
            if held is not None:
                self._let_go(database, held)
                del self._held[path]
            if stamp is None:
                return None
            alias = f"index_{next(self._aliases)}"
            stored = _attached(database, path, alias, identity)
            stored = stored if _stamp(path, source) == stamp else None
            held = _OpenIndex(stamp=stamp, identity=identity, alias=alias, stored=stored)
            if stored is None:
                self._let_go(database, held)
            self._held[path] = held
            return stored

    def is_sound(self, database: Database, path: Path, stored: IndexedRows) -> bool:
        """Tell whether an index that was found can be read to its end; if not, it is not found again."""
        try:
            database.query(f"SELECT bit_xor(hash({ROWS})) FROM {stored.relation()} AS {ROWS}")
        except duckdb.Error:
            self.doubt(path)
            return False
        return True

    def doubt(self, path: Path) -> None:
        """Do not use the index at a path again until it changes."""
        with self._lock:
            held = self._held.get(path)
            if held is not None:
                self._held[path] = replace(held, stored=None)

    def build(self, database: Database, path: Path, identity: str, rows: IndexRows, still: Callable[[], bool]) -> bool:
        """Write an index; return whether it was written.

        Args:
            still: Whether the data are still those of the identity.

        Raises:
            OSError: If it cannot be written; nothing is left behind then.
            duckdb.Error: Likewise.
        """
        scratch.clear_stale(path.parent, BUILD_PREFIX)
        folder = scratch.fresh_at(path.parent / self._building)
        try:
            draft = folder.path / "index"
            _write(database, draft, identity, rows, f"draft_{next(self._aliases)}")
            if not still():
                return False
            _publish(draft, path)
        finally:
            folder.remove()
        return True

    def _let_go(self, database: Database, held: _OpenIndex) -> None:
        with suppress(duckdb.Error):
            database.query(f"DETACH DATABASE IF EXISTS {held.alias}")


def drop(path: Path) -> bool:
    """Remove an index, and what builders that were killed have left; return whether there was one."""
    scratch.clear_stale(path.parent, BUILD_PREFIX)
    existed = path.is_symlink() or path.exists()
    path.unlink(missing_ok=True)
    return existed


def words(table: Table, source: Location) -> dict[str, str]:
    """Return queries for the values of the columns that may be private keys and hold texts, by the column's name."""
    texts = [column for column in table.columns if column.type == "string" and column.values is None]
    return {
        column.name: f"SELECT {clean(column, source.types[column.name])} AS word FROM {source.relation}"
        for column in texts
    }


# ---- writing ---------------------------------------------------------------------------------------------------------


def _write(database: Database, draft: Path, identity: str, rows: IndexRows, alias: str) -> None:
    attach, detach = f"ATTACH {text(str(draft))} AS {alias}", f"DETACH DATABASE IF EXISTS {alias}"
    with database.session() as query:
        try:
            query(attach)
            query(detach)  # an empty database is a file now
            draft.chmod(0o600)
            query(attach)
            parts = rows.parts(_types(query, alias, rows.words))
            for index, part in enumerate(parts):
                into = f"INSERT INTO {alias}.{ROWS}" if index else f"CREATE TABLE {alias}.{ROWS} AS"
                with progress.step(index, len(parts)):
                    query(f"{into} {part}")
            query(f"CREATE TABLE {alias}.identity AS SELECT {text(identity)} AS identity")
        finally:
            query(detach)


def _types(query: QueryRunner, alias: str, words: Mapping[str, str]) -> dict[str, str]:
    """Make a type of the words of each column that has few, and return the types by the names of the columns."""
    types = {}
    for number, (name, listed) in enumerate(words.items()):
        ((about,),) = query(f"SELECT approx_count_distinct(word) FROM ({listed})")
        if not 0 < about <= 2 * MOST_WORDS:  # only about so many: they are counted below
            continue
        query(f"CREATE TEMP TABLE words AS SELECT DISTINCT word FROM ({listed}) WHERE word IS NOT NULL")
        try:
            ((count, letters),) = query("SELECT COUNT(*), SUM(strlen(word)) FROM temp.words")
            if count <= MOST_WORDS and letters <= MOST_LETTERS:
                types[name] = f"{alias}.words_{number}"
                query(f"CREATE TYPE {types[name]} AS ENUM (SELECT word FROM temp.words ORDER BY word)")
        finally:
            query("DROP TABLE temp.words")
    return types


def _publish(draft: Path, path: Path) -> None:
    """Give a finished file its name, once it is on the disk."""
    if draft.with_name(f"{draft.name}.wal").exists():
        raise OSError(f"{draft.name} is not complete")
    with _opened(draft) as file:
        os.fsync(file)
    draft.replace(path)
    with _opened(path.parent) as folder:
        os.fsync(folder)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# ---- trusting --------------------------------------------------------------------------------------------------------


def _stamp(path: Path, source: Path) -> Stamp | None:
    """Return the stamp of an index that nobody but its owner can have written, or None."""
    try:
        status, owner = path.lstat(), (folder_of(source) if is_pattern(source) else source).stat().st_uid
    except OSError:
        return None
    private = S_ISREG(status.st_mode) and not status.st_mode & 0o077 and status.st_uid in {os.geteuid(), owner}
    if not private or os.path.lexists(f"{path}.wal"):
        return None
    return Stamp.of({path: status})


def _attached(database: Database, path: Path, alias: str, wanted: str) -> IndexedRows | None:
    """Attach an index for reading and return where its rows are, if it states the identity that is wanted."""
    rows = f"{alias}.{ROWS}"
    try:
        database.query(f"ATTACH {text(str(path))} AS {alias} (READ_ONLY)")
        ((identity,),) = database.query(f"SELECT identity FROM {alias}.identity")
        columns = database.query(f"DESCRIBE {rows}") if identity == wanted else None
    except (duckdb.Error, ValueError):
        return None
    if columns is None:
        return None
    by_words = frozenset(str(name) for name, kind, *_ in columns if str(kind).startswith("ENUM"))
    return IndexedRows(rows=rows, by_words=by_words)
