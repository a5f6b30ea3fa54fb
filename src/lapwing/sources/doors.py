"""Which door leads to a source: each is a file of this room, loaded with its client when it is first used."""

from importlib import import_module
from typing import Final, cast

from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.source import Door

_EXTRAS: Final = {
    "postgresql": "postgres",
    "sqlite": "adbc",
    "flight_sql": "adbc",
    "adbc": "adbc",
    "delta": "lake",
    "iceberg": "lake",
}
"""The extra that brings a door's client; a door that is not here needs none."""


def door_of(address: SourceAddress) -> Door:
    """Return the door that leads to an address.

    Raises:
        DataFault: If its client is not installed.
    """
    try:
        module = import_module(f"lapwing.sources.{address.door}")
    except ImportError as error:
        if address.door not in _EXTRAS:
            raise
        raise DataFault(
            f"The client of {address.door.replace('_', ' ')} sources is not installed ({error.name}): "
            f"`pip install 'lapwing-dp[{_EXTRAS[address.door]}]'`"
        ) from None
    return cast(Door, module.state)
