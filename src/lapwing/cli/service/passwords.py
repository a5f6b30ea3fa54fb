"""Passwords come from the terminal, hidden; else from the environment, or a line of standard input; never from options.

Options stand in the history of the shell, and everybody on a machine may read those of a process.
"""

import os
import sys
from typing import Final

from lapwing.errors import InvalidParameter

PASSWORD: Final = "LAPWING_PASSWORD"  # noqa: S105 - the name of a variable
NEW_PASSWORD: Final = "LAPWING_NEW_PASSWORD"  # noqa: S105 - the name of a variable
CODE: Final = "LAPWING_CODE"
SOURCES: Final = f"""\b
Passwords are asked for on a terminal. Elsewhere they come from the
environment ({PASSWORD}, a new one {NEW_PASSWORD}),
or are read as lines of standard input. So is the code of an
authenticator app, where a second factor is on ({CODE})."""


def current(of: str) -> str:
    """Return a password that there is."""
    known = _given(PASSWORD)
    if known is not None:
        return known
    from lapwing.server.password_prompt import hidden  # here, so that `lapwing --help` loads no engine

    return hidden(f"Password of {of}: ")


def code(of: str) -> str:
    """Return a code of somebody's authenticator app, or a recovery code."""
    known = os.environ.get(CODE)
    if known is None and not sys.stdin.isatty():
        known = sys.stdin.readline().strip()
    if known is not None:
        if not known:
            raise InvalidParameter(
                f"{of} has a second factor, and no code was given. Run this on a terminal, which asks for it, set "
                f"{CODE}, or send it as a second line of standard input."
            )
        return known
    from lapwing.server.password_prompt import hidden  # here, as above

    return hidden(f"Code of {of}'s authenticator app, or a recovery code: ")


def new(of: str) -> str:
    """Return a new password; on a terminal it is asked for twice, and until it is one that may be chosen."""
    known = _given(NEW_PASSWORD)
    if known is not None:
        return known
    from lapwing.server.password_prompt import new_password  # here, as above; it takes no extra

    return new_password(of)


def _given(variable: str) -> str | None:
    """Return a password from the environment or a pipe; None on a terminal, which is to be asked.

    Raises:
        InvalidParameter: If there is none.
    """
    known = os.environ.get(variable)
    if known is not None or sys.stdin.isatty():
        return known
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidParameter(
            f"No password was given. Run this on a terminal, which asks for it, set {variable}, or send it as a "
            "line of standard input."
        )
    return line
