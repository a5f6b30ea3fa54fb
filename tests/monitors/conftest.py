"""The command line, run in this process."""

from tests.support.cli.command import folder, run, visits

__all__ = ["folder", "run", "visits"]
