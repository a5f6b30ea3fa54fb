"""Where a catalog says that its ledger is."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from lapwing.catalog import spelling

SQLITE: Final = "sqlite:"
POSTGRES: Final = ("postgres://", "postgresql://")
REMEDY: Final = (
    'write "sqlite:" and a file, like "sqlite:visits.lapwing.db", or a PostgreSQL database and a ledger name, '
    'like "postgres://user@host/database?ledger=visits"'
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPlace:
    """Where a ledger is kept.

    Args:
        store: "sqlite" or "postgres".
        file: The ledger's file, or the name under which this host keeps its mark of one in PostgreSQL, relative to the
            catalog's folder.
        address: Of the database, for PostgreSQL's own client, without password.
        ledger: The name of the ledger in it.
    """

    store: str
    file: PurePath
    address: str = ""
    ledger: str = ""


def place_of(text: str) -> LedgerPlace:
    """Read where a ledger is.

    Raises:
        ValueError: Saying what is wrong and what to write instead; never with the address of a database, in which
            somebody may have written a password.
    """
    if text.startswith(SQLITE) and text != SQLITE:
        return LedgerPlace(store="sqlite", file=PurePath(text.removeprefix(SQLITE)))
    if text.startswith(POSTGRES):
        return _in_postgres(text)
    shown = "what is given" if "@" in text else spelling.text(text)
    raise ValueError(f"{shown} is not a ledger; {REMEDY}")


def _in_postgres(text: str) -> LedgerPlace:
    try:
        parts = urlsplit(text)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        secret = parts.password is not None
        if "@" in parts.path or (parts.port is not None and not parts.port):
            raise ValueError
    except ValueError:
        raise ValueError(f"this is not the address of a database; {REMEDY}") from None
    if secret or any("password" in name.casefold() for name, _ in options):
        raise ValueError(
            "the address holds a password, which every reader of the catalog could use. Remove it, and give it to "
            "this program's user by ~/.pgpass, a service file, or PGPASSWORD"
        )
    names = [value for name, value in options if name == "ledger"]
    if len(names) != 1 or not _is_name(names[0]):
        raise ValueError("the address needs ?ledger=NAME at its end; NAME has at most 60 letters, digits, _ and -")
    kept = [(name, value) for name, value in options if name != "ledger"]
    address = f"postgresql://{parts.netloc}{parts.path}" + (f"?{urlencode(kept, quote_via=quote)}" if kept else "")
    return LedgerPlace(store="postgres", file=PurePath(f"{names[0]}.postgres"), address=address, ledger=names[0])


def _is_name(text: str) -> bool:
    plain = text.replace("_", "").replace("-", "")
    return 0 < len(text) <= 60 and plain.isascii() and plain.isalnum()
