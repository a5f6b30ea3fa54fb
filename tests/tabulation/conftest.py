"""Sessions of this room use one database after another, as those of `tests/release` do."""

from tests.support.cli.command import folder, run, visits
from tests.support.engines.reused import reused_databases

__all__ = ["folder", "reused_databases", "run", "visits"]
