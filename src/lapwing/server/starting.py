"""The first start: the first curator, who has no default password."""

import getpass
import os
import sys
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.server.credentials import SHORTEST
from lapwing.server.people import People

NAME: Final = "LAPWING_CURATOR"
PASSWORD: Final = "LAPWING_CURATOR_PASSWORD"  # noqa: S105 - the name of a variable
USUAL: Final = "curator"


def ensure_curator(people: People) -> str | None:
    """Make the first curator, by the environment or by asking on the terminal; return the name if one was made.

    Raises: InvalidParameter if there is none and nobody to ask.
    """
    if people.has_curator():
        return None
    name, password = os.environ.get(NAME, USUAL), os.environ.get(PASSWORD)
    if password is None:
        password = _asked(name)
    people.add(name, "curator", password, by=name)
    return name


def _asked(name: str) -> str:
    if not sys.stdin.isatty():
        raise InvalidParameter(
            f"The service has no curator yet. Set {PASSWORD} (and {NAME}, for another name than {USUAL}) for the first "
            "start, or start it on a terminal, which asks for a password."
        )
    sys.stderr.write(
        f"The service has no curator yet. Choose a password for {name}, of at least {SHORTEST} characters.\n"
    )
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("The same again: "):
        raise InvalidParameter("The two passwords differ. Nothing was changed. Start again.")
    return password
