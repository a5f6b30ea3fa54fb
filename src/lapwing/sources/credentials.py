"""Credentials of sources: in a file of the user's own, or in the environment that it names, and never in a catalog.

The file is TOML, and has a section for each address, up to its `?` or `#`; its path is in LAPWING_SOURCES, or else it
is `~/.config/lapwing/sources.toml`. A value is a text, or names a variable of the environment:

    ["grpc+tls://flight.example.org:31337"]
    username = "reader"
    password = { env = "FLIGHT_PASSWORD" }
"""

import os
import tomllib
from pathlib import Path
from stat import S_IMODE

from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault, InvalidParameter

VARIABLE = "LAPWING_SOURCES"


def credentials_of(address: SourceAddress) -> dict[str, str]:
    """Return the options that are kept for an address; none if there are none.

    Raises:
        InvalidParameter: For a file that others may read, or that cannot be understood; nothing of it is repeated.
    """
    named = os.environ.get(VARIABLE)
    file = Path(named) if named else Path.home() / ".config" / "lapwing" / "sources.toml"
    if not file.is_file():
        if named:
            raise InvalidParameter(f"{VARIABLE} names a file that is not there; write it, or unset the variable.")
        return {}
    if S_IMODE(file.stat().st_mode) & 0o077:
        raise InvalidParameter(f"The file of credentials {file.name} can be read by others; run chmod 600 on it.")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None
    section = content.get(address.place, {}) if content is not None else None
    if not isinstance(section, dict):
        raise InvalidParameter(
            f"The file of credentials {file.name} cannot be read; write it as the documentation shows."
        )
    return {key: _value(key, value) for key, value in section.items()}


def _value(key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str):
        if value["env"] not in os.environ:
            raise DataFault(f"The credentials of the source name the variable {value['env']}, which is not set")
        return os.environ[value["env"]]
    raise InvalidParameter(f'The credential {key} is neither a text nor like {{ env = "NAME" }}; mend it.')
