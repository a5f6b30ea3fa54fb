"""Garbage collection in a process that answers others for long."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NEW_OBJECTS: Final = 50_000
"""Objects more than there were, at which those are looked through that are new."""


@contextmanager
def long_lived_objects_frozen() -> Iterator[None]:
    """Keep what was made so far, which lives as long as the process, out of garbage collection.

    A full collection would take a tenth of a second, and every question under way would wait for it. Later
    objects are collected less often, because a query makes thousands of objects and hardly a cycle. At the end
    everything is collected: otherwise DuckDB's binding complains on standard error, which is the log.
    """
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
