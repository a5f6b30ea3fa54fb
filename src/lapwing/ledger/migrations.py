"""The schema of a store, which grows by numbered files of SQL.

Each step is applied once, together with its number, in one transaction: a crash leaves the schema of one number or of
the next. A step that was published is never changed, as ledgers that were made by it must still be known by it.
"""

from importlib.resources import files
from typing import Final, Literal

Store = Literal["sqlite", "postgres"]
Step = tuple[str, ...]
"""The statements of one file, in order."""

_END: Final = ";\n"


def steps_of(store: Store) -> tuple[Step, ...]:
    """Return the steps of a store's schema; the first makes schema 1."""
    folder = files("lapwing.ledger") / "schema" / store
    found = sorted((file.name, file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(tuple(statement for statement in text.split(_END) if statement) for _, text in found)
