"""The `lapwing` command: a thin shell around the public library.

Standard output carries results only; prices, notes and errors go to standard error; the exit status says whose turn it
is (`lapwing.errors`). `lapwing --help` must be quick, so the modules that load an engine are imported by the
command that needs them: through the lazy names of `lapwing` itself, or inside the command's function.
"""

from lapwing.cli.app import main

__all__ = ["main"]
