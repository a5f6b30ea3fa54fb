"""The subject of an audit: a catalog, and the stored entries of its ledger. And the time that an audit may take."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, final

from lapwing.audit.databases import opened_to_read
from lapwing.audit.findings import AuditFinding, Severity
from lapwing.catalog import toml
from lapwing.catalog.ledger import place_of
from lapwing.catalog.model import Catalog
from lapwing.errors import LedgerFault
from lapwing.ledger.entries import Entry
from lapwing.ledger.opening import PATIENCE, client_of

_ENTRIES = "SELECT sequence, time, kind, subject, body, previous, hash FROM entries ORDER BY sequence"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEffort:
    """The time that an audit may take.

    Args:
        quick: Whether to leave out checks that take minutes. The whole takes a minute at most.
        minutes: For the tests that can go on for any time; None for their default.
    """

    quick: bool = False
    minutes: float | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The installation that is audited.

    Args:
        catalog: The present content of its file.
        entries: The stored entries of the ledger, in order. Nothing of them is checked yet. There are none if no ledger
            is there yet, or if nobody can read it.
        unreadable: The finding that nobody can read the ledger.
        graphs: The graphs that have a ledger of their own, by name.
    """

    catalog: Catalog
    entries: tuple[Entry, ...] = field(default=(), repr=False)
    unreadable: tuple[AuditFinding, ...] = ()
    graphs: tuple[tuple[str, "Subject"], ...] = field(default=(), repr=False)

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the catalog, and the ledger's entries; no row of its tables.

        Raises:
            CatalogError: If the catalog cannot be read.
        """
        catalog = toml.load(path)
        owners = [graph for graph in catalog.graphs if graph.ledger is not None]
        graphs = tuple((graph.name, cls.of_catalog(catalog.of_graph(graph))) for graph in owners)
        return replace(cls.of_catalog(catalog), graphs=graphs)

    @classmethod
    def of_catalog(cls, catalog: Catalog) -> Self:
        """Read the entries of a catalog's ledger."""
        try:
            return cls(catalog=catalog, entries=tuple(_stored_entries(catalog)))
        except (LedgerFault, OSError, sqlite3.Error) as error:
            return cls(catalog=catalog, unreadable=(_unreadable(catalog, error),))

    @property
    def newest(self) -> tuple[int, str]:
        """The number of entries, and the seal of the newest; "" if there is none."""
        return len(self.entries), self.entries[-1].hash if self.entries else ""

    @property
    def questions(self) -> tuple[tuple[str, Any], ...]:
        """The texts of the queries that were charged, with their parameters; each once, the newest last."""
        typed: dict[str, tuple[str, Any]] = {}
        for record in bodies(self.entries, "charge"):
            wording = record.get("wording")
            if isinstance(wording, dict) and isinstance(wording.get("text"), str) and not wording.get("first"):
                text, parameters = wording["text"], wording.get("parameters", [])
                typed[repr((text, parameters))] = text, parameters
        return tuple(typed.values())


def bodies(entries: Iterable[Entry], kind: str) -> Iterator[dict[str, Any]]:
    """Yield the bodies of the entries of a kind that are JSON objects."""
    for entry in entries:
        if entry.kind == kind and (record := body_of(entry)) is not None:
            yield record


def body_of(entry: Entry) -> dict[str, Any] | None:
    """Return the body of an entry, None if it is no JSON object."""
    try:
        record = json.loads(entry.body)
    except (ValueError, RecursionError, TypeError):
        return None
    return record if isinstance(record, dict) else None


def _stored_entries(catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries of the store. Nothing is checked: that is the task of the audit."""
    place = place_of(catalog.ledger)
    if place.store == "postgres":
        with client_of(place.ledger):
            from lapwing.ledger.postgres.reader import PostgresReader  # an optional extra
        reader = PostgresReader(place.address, place.ledger, PATIENCE)
        try:
            with reader.log() as log:
                yield from log.entries(since=1)
        finally:
            reader.close()
        return
    if not catalog.ledger_path.exists():
        return
    with opened_to_read(catalog.ledger_path) as connection:
        for sequence, time, kind, subject, body, previous, digest in connection.execute(_ENTRIES):
            yield Entry(
                sequence=sequence, time=time, kind=kind, subject=subject, body=body, previous=previous, hash=digest
            )


def _unreadable(catalog: Catalog, error: Exception) -> AuditFinding:
    return AuditFinding(
        code="ledger_unreadable",
        severity=Severity.violated,
        about=f"ledger {catalog.ledger_path.name}",
        what=f"The ledger cannot be read: {error}",
        remedy="Repair the access, or restore the newest copy with `lapwing ledger restore`.",
    )
