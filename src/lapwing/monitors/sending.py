"""Events that are sent to a monitor: each once, by the pair of its unit and its name.

The pair, and not the name alone: else whoever guesses the name of another person's event could keep it from counting.
An answer says the same of an event that is new and of one that came before, so that nobody learns of others' events.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.catalog.model import Table
from lapwing.errors import InvalidParameter
from lapwing.monitors.store import MonitorStore

ID: Final = "id"
MOST_EVENTS: Final = 10_000
LONGEST: Final = 256


@final
@dataclass(frozen=True, slots=True)
class SentEvents:
    """How many events are kept, be they new or not."""

    events: int


def send(events: Sequence[dict[str, Any]], table: Table, store: MonitorStore) -> SentEvents:
    """Put events by, durably, once this returns."""
    if len(events) > MOST_EVENTS:
        raise InvalidParameter(f"{len(events):,} events are sent at once; send {MOST_EVENTS:,} at most.")
    read = [_read(event, place, table) for place, event in enumerate(events, 1)]
    with store.transaction():
        store.add_to_inbox([event for unit, name, event in read if store.add_sent(unit, name)])
    return SentEvents(len(read))


def _read(event: object, place: int, table: Table) -> tuple[str, str, str]:
    if not isinstance(event, dict):
        raise InvalidParameter(f"Event {place} is not a JSON object.")
    name, unit = event.get(ID), "" if table.unit_is_row else event.get(table.unit_column)
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST:
        raise InvalidParameter(f"Event {place} needs an {ID!r}, a text of 1 to {LONGEST} characters.")
    if isinstance(unit, bool) or not isinstance(unit, str | int) or len(str(unit)) > LONGEST:
        raise InvalidParameter(f"Event {place} needs {table.unit_column!r}, a text or an integer: whose event it is.")
    declared = {column.name for column in table.columns} | ({table.privacy_unit} if not table.unit_is_row else set())
    kept = {key: value for key, value in event.items() if key in declared}
    if any(isinstance(value, dict | list) for value in kept.values()):
        raise InvalidParameter(f"Event {place} has a list or an object in a column; columns hold single values.")
    return str(unit), name, json.dumps(kept)
