"""The command line run in this process, in a folder with a small protected data set."""

from tests.support.cli.command import folder, run, visits

__all__ = ["folder", "run", "visits"]
