"""What the operator says of an identity provider, in a TOML file: where it is, and which roles its groups have."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final, get_args
from urllib.parse import urlsplit

from lapwing.documents.people_document import Role
from lapwing.errors import InvalidParameter
from lapwing.machine.one_address import is_this_machine

ROLES: Final[tuple[Role, ...]] = ("curator", "auditor", "analyst")
"""The first of these that a group of somebody has is theirs."""
KEYS: Final = frozenset(
    {
        "issuer", "client_id", "client_secret_file", "label", "scopes", "name_claim", "groups_claim", "link_existing",
        "roles",
    }
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIdSettings:
    """An identity provider, and what is made of what it says.

    Args:
        issuer: Its address, under which `/.well-known/openid-configuration` lies.
        client_secret: None for a client without one.
        label: What the sign-in calls it.
        scopes: Beside `openid`.
        name_claim: Which of its claims is a person's name here.
        groups_claim: Which lists their groups.
        roles: Group → role.
        link_existing: Whether a name that somebody has here already is taken for theirs.
    """

    issuer: str
    client_id: str
    client_secret: str | None
    label: str
    scopes: tuple[str, ...]
    name_claim: str
    groups_claim: str
    roles: Mapping[str, Role]
    link_existing: bool = False

    def __repr__(self) -> str:
        """Return all but the secret."""
        return f"OpenIdSettings(issuer={self.issuer!r}, client_id={self.client_id!r})"

    def role_of(self, groups: frozenset[str]) -> Role | None:
        """Return the role of who is in these groups, None if no group has one."""
        given = {self.roles[group] for group in groups if group in self.roles}
        return next((role for role in ROLES if role in given), None)


def read_settings(file: Path) -> OpenIdSettings:
    """Read the file of an identity provider.

    Raises:
        InvalidParameter: With the file and what is wrong in it.
    """
    try:
        facts = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InvalidParameter(f"{file.name} cannot be read: {(error.strerror or '').lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"{file.name} is not TOML: {error}.") from None
    unknown = sorted(set(facts) - KEYS)
    if unknown:
        raise InvalidParameter(f"{file.name}: {unknown[0]} is not known; known are {', '.join(sorted(KEYS))}.")
    texts = {name: _text(file, facts, name) for name in ("issuer", "client_id")}
    require_encrypted(texts["issuer"])
    roles = facts.get("roles")
    if not isinstance(roles, dict) or not roles or not set(roles.values()) <= set(get_args(Role)):
        raise InvalidParameter(f'{file.name}: roles must give each group a role, like staff = "analyst".')
    scopes = facts.get("scopes", ["profile"])
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise InvalidParameter(f"{file.name}: scopes must be a list of texts.")
    link = facts.get("link_existing", False)
    if not isinstance(link, bool):
        raise InvalidParameter(f"{file.name}: link_existing must be true or false.")
    return OpenIdSettings(
        **texts,
        client_secret=_secret(file, facts),
        label=_text(file, facts, "label", urlsplit(texts["issuer"]).hostname or ""),
        scopes=("openid", *(scope for scope in scopes if scope != "openid")),
        name_claim=_text(file, facts, "name_claim", "preferred_username"),
        groups_claim=_text(file, facts, "groups_claim", "groups"),
        roles=roles,
        link_existing=link,
    )


def require_encrypted(address: str) -> None:
    """Refuse an address that is not asked over TLS, unless it is on this machine.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or not is_this_machine(parts.hostname or ""):
        raise InvalidParameter(f"The identity provider is asked at {address[:200]!r}, which must begin with https://.")


def _text(file: Path, facts: Mapping[str, Any], name: str, usual: str | None = None) -> str:
    value = facts.get(name, usual)
    if not isinstance(value, str) or not value:
        raise InvalidParameter(f"{file.name}: {name} must be a text.")
    return value


def _secret(file: Path, facts: Mapping[str, Any]) -> str | None:
    """Return the secret of the client, which is in a file of its own that only its owner may read."""
    if "client_secret_file" not in facts:
        return None
    path = file.parent / _text(file, facts, "client_secret_file")
    try:
        if path.stat().st_mode & 0o077:
            raise InvalidParameter(
                f"Other users can read {path.name}, which has the client's secret. Run `chmod 600` on it."
            )
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{file.name}: client_secret_file cannot be read.") from None
