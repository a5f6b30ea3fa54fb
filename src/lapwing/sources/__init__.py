"""Sources: tables in databases and lakes. What they deliver becomes a snapshot, and then a file like any other."""

from lapwing.sources.fetching import fetch, fetch_if_never, offered_at
from lapwing.sources.snapshots import Fetched, SourceSnapshot, SourceSnapshots, tables_of
from lapwing.sources.source import Door, SourceState

__all__ = [
    "Door",
    "Fetched",
    "SourceSnapshot",
    "SourceSnapshots",
    "SourceState",
    "fetch",
    "fetch_if_never",
    "offered_at",
    "tables_of",
]
