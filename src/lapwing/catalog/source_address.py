"""Addresses of sources: tables that are not files beside the catalog, but in a database or a lake.

An address says where the table is and which one it is, and holds no secret: catalogs are public.

    postgresql://reader@db.example.org/clinic?sslmode=verify-full#public.visits
    sqlite:clinic.db#visits
    grpc+tls://flight.example.org:31337#visits
    delta:s3://bucket/visits?version=12
    iceberg:lake#clinic.visits
"""

import re
from dataclasses import dataclass
from typing import Final, final
from urllib.parse import parse_qsl, unquote, urlsplit

from lapwing.catalog import spelling

DOORS: Final = {
    "postgresql://": "postgresql",
    "postgres://": "postgresql",
    "sqlite:": "sqlite",
    "grpc://": "flight_sql",
    "grpc+tls://": "flight_sql",
    "adbc:": "adbc",
    "delta:": "delta",
    "iceberg:": "iceberg",
    "parquet:": "parquet",
}
"""How addresses begin, and which door leads there."""
KEY: Final = "append"
"""The option of an address that names a column of integers which only grow, in a table to which rows are only added."""
NAMED: Final = frozenset({"postgresql", "sqlite", "flight_sql", "adbc", "iceberg"})
"""Doors behind which there are several tables, one of which the address names."""
_STORES: Final = re.compile("(s3a?|gs|gcs|abfss?|hdfs):/", re.I)
OF_STORES: Final = (
    "files in an object store are fetched; write parquet: before their address, as parquet:s3://bucket/visits"
)
_SECRET: Final = re.compile(
    r"passw|pwd|secret|token|credential|access_key|api_?key|account_key|session_key|authorization", re.I
)
_WITHIN: Final = re.compile(r"://[^/@\s]*:[^/@\s]*@")
_NAME: Final = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAddress:
    """Where a table is that is not a file.

    Args:
        door: Which of `DOORS` leads there.
        place: The address without options and table.
        options: As they are written.
        table: The names that lead to it there, as schema and table; empty if the place is the table itself.
    """

    door: str
    place: str
    options: tuple[tuple[str, str], ...]
    table: tuple[str, ...]

    def option(self, name: str) -> str | None:
        """Return the value of an option, if it is given."""
        return dict(self.options).get(name)

    @property
    def state(self) -> tuple[object, ...]:
        """What tables have in common that can be read as one consistent state."""
        return (self.door, self.place, self.options, () if self.door in NAMED else self.table)


def is_address(source: str) -> bool:
    """Tell whether a source is an address, and not a file."""
    return source.startswith(tuple(DOORS))


def is_in_store(source: str) -> bool:
    """Tell whether a source looks like files in an object store, without the word before it that makes an address."""
    return _STORES.match(source) is not None


def read_address(text: str) -> SourceAddress:
    """Read the address of a source.

    Raises:
        ValueError: Saying what is wrong and what to write instead; never with the address itself, in which somebody may
            have written a password.
    """
    beginning = next((known for known in DOORS if text.startswith(known)), None)
    if beginning is None:
        raise ValueError(f"this is not the address of a source; one begins with {', '.join(DOORS)}")
    door = DOORS[beginning]
    rest, _, fragment = text.partition("#")
    place, _, query = rest.partition("?")
    try:
        options = tuple(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        authority = urlsplit(place)
        secret = authority.password is not None or _WITHIN.search(unquote(query)) is not None
        secret = secret or _WITHIN.search(place) is not None
    except ValueError:
        raise ValueError("this is not a valid address; docs/how-to/connect.md shows examples") from None
    if secret or any(_SECRET.search(name) for name, _ in options):
        raise ValueError(
            "the address holds a password, which every reader of the catalog could use. Remove it, and give it to "
            "this program's user. For PostgreSQL use ~/.pgpass, a service file or PGPASSWORD; for others the file "
            "that LAPWING_SOURCES names"
        )
    if door == "postgresql" and "@" in authority.path:
        raise ValueError("this cannot be read as an address; write @ in names and options as %40")
    if place == beginning and door != "postgresql":
        raise ValueError(f"the address ends with {beginning}; say where the data are")
    names = _names(unquote(fragment))
    if door in NAMED and not names:
        raise ValueError("the address names no table; write it at the end, like #visits, or give --table")
    if door not in NAMED and names:
        raise ValueError("the address names a table behind #, and is one itself; remove the part after #")
    return SourceAddress(door=door, place=place, options=options, table=names)


def renewal(source: str) -> str:
    """Return the command by which a curator takes data as they are now: of a source, they are fetched first."""
    return "`lapwing data refresh`" if is_address(source) else "`lapwing data accept`"


def with_table(source: str, table: str | None) -> str:
    """Return an address with the table that it is to name, if that is said beside it."""
    return source if table is None else f"{source.partition('#')[0]}#{table}"


def name_of(source: str) -> str:
    """Return the name of the table that an address leads to: its own, or the last one of the place."""
    address = read_address(source)
    last = address.table[-1] if address.table else address.place.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    return last.replace("/", "_").strip(".") or "data"


def _names(text: str) -> tuple[str, ...]:
    """Read names with dots between them; one in double quotes may hold dots."""
    names, at = list[str](), 0
    while at < len(text):
        match = _NAME.match(text, at)
        if match is None or (match.end() < len(text) and text[match.end()] != "."):
            raise ValueError("the name of the table cannot be read; write it like public.visits, odd names in quotes")
        names.append(match[1].replace('""', '"') if match[1] else match[2])
        at = match.end() + 1
    if text.endswith(".") or len(names) > 8 or not all(map(spelling.storable, names)):
        raise ValueError("the name of the table cannot be read; write it like public.visits")
    return tuple(names)
