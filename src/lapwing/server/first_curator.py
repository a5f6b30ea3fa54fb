"""The first start: the first curator, who has no default password."""

import os
import sys
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.server.password_prompt import new_password
from lapwing.server.people import People, checked

NAME: Final = "LAPWING_CURATOR"
PASSWORD: Final = "LAPWING_CURATOR_PASSWORD"  # noqa: S105 - the name of a variable
USUAL: Final = "curator"


def ensure_curator(people: People) -> str | None:
    """Make the first curator, by the environment or by asking on the terminal; return the name if one was made.

    Raises:
        InvalidParameter: If there is none and nobody to ask.
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
    people.add(name, "curator", new_password(name, "The service has no curator yet. "), by=name)
    return name
