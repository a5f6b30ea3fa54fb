"""The free answers that people were given lately: the same question again is given the same one, of the same id.

What is remembered is the answer as it was kept, by person, data set and request. It is found only for an answer that
rests on the same entries of the ledger and the same catalog, so that it says the same; and whether there is such an
answer is asked of the ledger each time. So this saves writing an answer down once more, and nothing else.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.answer import Answer
from lapwing.catalog.model import Catalog
from lapwing.server.answers import Kept

MOST: Final = 1024
LARGEST: Final = 1 << 16
"""Bytes of an answer that is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    entries: tuple[int, ...]
    catalog: Catalog
    kept: Kept


@final
class Lately:
    """Kept answers that were free, the latest of them, in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Given] = OrderedDict()

    def find(
        self, person: str, dataset: str, request: Mapping[str, Any], answer: Answer, catalog: Catalog
    ) -> Kept | None:
        """Return the kept answer that says what this one says, if it was given to this person lately."""
        name = _name(person, dataset, request)
        with self._lock:
            given = self._known.get(name)
            if given is None or given.entries != answer.entries or given.catalog is not catalog:
                return None
            self._known.move_to_end(name)
            return given.kept

    def note(self, answer: Answer, catalog: Catalog, kept: Kept) -> None:
        """Remember a free answer as it was kept."""
        if not answer.stored or not answer.entries or len(kept.arrow) > LARGEST:
            return
        given = _Given(entries=answer.entries, catalog=catalog, kept=kept)
        with self._lock:
            self._known[_name(kept.person, kept.dataset, kept.request)] = given
            while len(self._known) > MOST:
                self._known.popitem(last=False)


def _name(person: str, dataset: str, request: Mapping[str, Any]) -> str:
    return json.dumps([person, dataset, request], sort_keys=True)
