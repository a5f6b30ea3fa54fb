"""Who is asking: a name for one open ledger of one process, by which others can tell whether it still lives.

A process's number would not do: it is used again, and means nothing in another container. So a name is 128 random bits,
and what it holds while it lives is the store's (`Presence` in `ledger.store`).

An asker is *present*, or *dead*, or *missing*: out of reach, where that need not be its death. A file's lock never goes
missing; a connection to a server does. While askers are missing, each counts like the fault that it may turn out to be
when it is decided whether a charge may still be made, so that no charge follows faults that are merely not counted yet
(`ledger.faults`).
"""

import re
from typing import Final, Literal

from lapwing.exact.entropy import SystemEntropy, read_exactly

Fate = Literal["present", "missing", "dead"]
NAME: Final = re.compile(r"[0-9a-f]{32}")


def new_name() -> str:
    """Return a name that nobody had before."""
    return read_exactly(SystemEntropy(), 16).hex()
