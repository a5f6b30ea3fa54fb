"""The command line, run in this process."""

from tests.support.cli.command import folder, run, visits
from tests.support.engines.reused import reused_databases

__all__ = ["folder", "reused_databases", "run", "visits"]
