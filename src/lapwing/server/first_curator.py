"""The first start: the first curator, who has no default password."""

import getpass
import os
import sys
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.server.credentials import SHORTEST
from lapwing.server.passwords import require_good
from lapwing.server.people import People, checked

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
    if password is not None:
        people.add(name, "curator", password, by=name)
        return name
    checked(name, "The name of a person")  # before anybody is asked, as no password mends it
    if not sys.stdin.isatty():
        raise InvalidParameter(
            f"The service has no curator yet. Set {PASSWORD} (and {NAME}, for another name than {USUAL}) for the first "
            "start, or start it on a terminal, which asks for a password."
        )
    sys.stderr.write(
        f"The service has no curator yet. Choose a password for {name}, of at least {SHORTEST} characters.\n"
    )
    while not _is_made(people, name):
        sys.stderr.write("Nothing was changed. Once more, or Ctrl-C to end.\n")
    return name


def _is_made(people: People, name: str) -> bool:
    """Ask for a password, and make the curator; say what is wrong with the password, if anything is."""
    password = getpass.getpass("Password: ")
    try:
        require_good(password, name)
    except InvalidParameter as refused:
        sys.stderr.write(f"{refused}\n")
        return False
    if password != getpass.getpass("The same again: "):
        sys.stderr.write("The two passwords differ.\n")
        return False
    people.add(name, "curator", password, by=name)
    return True
