"""Views that no new query reads: each is dropped when the last query that may read it has ended.

Theory of operation. Until a view is dropped it takes the driver's memory: its plan, its list of files, and a copy of
all settings. Executors keep its rows. A service runs for months and the data change every hour, so that views of older
versions would fill any driver. A query that began before may still name such a view. So each query has a number, each
view the number at which it was retired, and a view is dropped when no older query runs.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import final


@final
class RetiredViews:
    """Views to be dropped. Thread-safe.

    Args:
        forget: drops a view; what it raises is ignored, because the session of the view may be lost.
    """

    def __init__(self, forget: Callable[[str], None]) -> None:
        self._forget = forget
        self._numbers = count()
        self._reading: set[int] = set()
        self._views: list[tuple[int, str]] = []
        self._lock = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep all views that are retired from now on until the end."""
        with self._lock:
            number = next(self._numbers)
            self._reading.add(number)
        try:
            yield
        finally:
            with self._lock:
                self._reading.remove(number)
            self._drop()

    def add(self, views: Iterable[str]) -> None:
        """Retire views."""
        with self._lock:
            self._views += [(next(self._numbers), view) for view in views]
        self._drop()

    def clear(self) -> None:
        """Drop no view of before: all were lost with their session."""
        with self._lock:
            self._views.clear()

    def _drop(self) -> None:
        with self._lock:
            oldest = min(self._reading, default=next(self._numbers))
            dropped = [view for since, view in self._views if since < oldest]
            self._views = [(since, view) for since, view in self._views if since >= oldest]
        for view in dropped:
            with suppress(Exception):
                self._forget(view)
