"""The servers of a task: their names, addresses, certificates and keys."""

import re
from dataclasses import dataclass
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.secure.documents import text_of

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.-]{1,253}:[0-9]{1,5}")
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{64}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of the servers: its name, where it is, its certificate (PEM), and the digest of the key that may close."""

    name: str
    address: str
    certificate: str
    close_key: str

    def __post_init__(self) -> None:
        require_name(self.name)
        require_address(self.address)
        if not _HEXADECIMAL.fullmatch(self.close_key) or "BEGIN CERTIFICATE" not in self.certificate:
            raise InvalidParameter(f"The server {self.name} has no certificate, or no digest of a key, in the task.")

    @property
    def host(self) -> str:
        """The host of its address."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port of its address."""
        return int(self.address.rpartition(":")[2])


def require_name(name: str) -> None:
    """Refuse what is no name of a server."""
    if not _NAME.fullmatch(name):
        raise InvalidParameter(f"{name[:60]!r} is not a valid server name; use lower-case letters, digits and hyphens.")


def require_address(address: str) -> None:
    """Refuse what is no address of a server."""
    if not _ADDRESS.fullmatch(address) or not 1 <= int(address.rpartition(":")[2]) <= 65535:
        raise InvalidParameter(f"{address[:60]!r} is not an address; write HOST:PORT, like sums.example.org:8471.")


def server_of(document: object) -> Server:
    """Return what a document says of a server."""
    if not isinstance(document, dict):
        raise TypeError
    return Server(**{name: text_of(document[name]) for name in ("name", "address", "certificate", "close_key")})
