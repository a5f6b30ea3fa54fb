"""The `lapwing` command: a thin shell around the public library.

Standard output carries results only; prices, notes and errors go to standard error; the exit status says whose turn it
is (`lapwing.errors`). `lapwing --help` must be quick, so a command's module is imported when it is called
(`cli.commands`); and what only some of its calls need, through the lazy names of `lapwing` or inside a function.
"""

from lapwing.installation import require_own_package

require_own_package()  # before anything below it needs what `lapwing/__init__.py` defines

from lapwing.cli.commands import main, run  # noqa: E402

__all__ = ["main", "run"]
