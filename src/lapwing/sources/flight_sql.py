"""Flight SQL: databases that speak Arrow over gRPC, by their ADBC driver; see `adbc`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import adbc_driver_flightsql

from lapwing.catalog.source_address import SourceAddress
from lapwing.sources.adbc import StatementState, connected
from lapwing.sources.credentials import credentials_of

if TYPE_CHECKING:
    from lapwing.sources.source import SourceState


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[SourceState]":
    """Open a connection to a server; over a network by TLS, with grpc+tls in the address."""
    options = {"uri": address.place, **dict(address.options), **credentials_of(address)}
    with connected(adbc_driver_flightsql._driver_path(), options) as connection:
        yield StatementState(connection)
