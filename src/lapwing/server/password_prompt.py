"""Ask for a new password on the terminal: hidden, twice, and until it is one that may be chosen."""

import getpass
import sys

from lapwing.errors import InvalidParameter
from lapwing.server.passwords import SHORTEST, require_good


def new_password(name: str, beginning: str = "") -> str:
    """Return a new password for somebody of this name.

    Args:
        beginning: What is said before.
    """
    sys.stderr.write(f"{beginning}Choose a password for {name}, of at least {SHORTEST} characters.\n")
    while True:
        password = hidden("Password: ")
        refused = _refusal(password, name)
        if refused is None and password == hidden("The same again: "):
            return password
        sys.stderr.write(
            f"{refused or 'The two passwords differ.'}\nNothing was changed. Once more, or Ctrl-C to end.\n"
        )


def hidden(prompt: str) -> str:
    """Ask for a password that is not shown.

    Raises:
        InvalidParameter: If the terminal ends instead (Ctrl-D).
    """
    try:
        return getpass.getpass(prompt)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise
    except EOFError:
        sys.stderr.write("\n")
        raise InvalidParameter("No password was given. Nothing was changed.") from None


def _refusal(password: str, name: str) -> str | None:
    """Say what is wrong with a password, None if nothing is."""
    try:
        require_good(password, name)
    except InvalidParameter as refused:
        return str(refused)
    return None
