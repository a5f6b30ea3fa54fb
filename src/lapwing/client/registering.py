"""A data set that a curator registers at a server: a catalog is sent, the data lie there already."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path

from lapwing.client.connection import Connection
from lapwing.client.sending import typed
from lapwing.client.session import RemoteSession
from lapwing.errors import InvalidParameter


def register(
    address: str, catalog: Path | str | Mapping[str, object], *, token: str, folder: str | None = None
) -> RemoteSession:
    """Register a data set whose files lie in a folder of a server, and return a session on it. The curator's act.

    It is sent once: if the connection breaks on the way, look whether it is there before you send it again.

    Args: catalog: the path of a TOML file, its text, or the same as a mapping; folder: of the server, from which the
        paths in it start; needed if the server was started with several.
    Raises: InvalidParameter, CatalogError, CatalogMismatch, NotAuthorised, ServiceFault; nothing is registered then.
    """
    connection = Connection(address, token)
    registered = connection.post("/v1/datasets", {"catalog": _sent(catalog), "folder": folder})
    return RemoteSession(connection, registered["name"])


def _sent(catalog: Path | str | Mapping[str, object]) -> object:
    """Return a catalog as a request has it."""
    match catalog:
        case Path():
            return _text_of(catalog)
        case str():
            return catalog
        case Mapping():
            return _valued(catalog)
    raise InvalidParameter("The catalog is a pathlib.Path of a TOML file, its text, or a mapping.")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"The catalog {path.name} cannot be read as UTF-8 text; give another path.") from None


def _valued(value: object) -> object:
    """Return a value of a catalog with its type, where JSON has none for it."""
    match value:
        case Mapping():
            return {str(name): _valued(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_valued(inner) for inner in value]
        case date() | Decimal():
            return typed(value)
        case None | bool() | int() | float() | str():
            return value
    raise InvalidParameter(f"A catalog holds no {type(value).__name__}; give what TOML has, or a Decimal.")
