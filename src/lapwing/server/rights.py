"""Who may do what: roles give rights, and a token may have fewer than its owner.

The scopes of a token are rights. What a request may do is what both its owner's role and its token allow, at the time
of the request: a role that is taken away is gone from all tokens.
"""

from dataclasses import dataclass
from typing import Final, Literal, final, get_args

Role = Literal["curator", "analyst", "auditor"]
Right = Literal["read", "ask", "audit", "admin"]

ROLES: Final = get_args(Role)
RIGHTS: Final = get_args(Right)
RIGHTS_OF: Final[dict[str, frozenset[Right]]] = {
    "analyst": frozenset({"read", "ask"}),
    "auditor": frozenset({"read", "audit"}),
    "curator": frozenset({"read", "ask", "audit", "admin"}),
}
MEANINGS: Final[dict[Right, str]] = {
    "read": "see data sets, budgets, prices and one's own history and answers",
    "ask": "buy answers",
    "audit": "see everybody's history and answers, the audit log and the metrics",
    "admin": "look after people, tokens, grants, policies and data",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sends a request, and what they may do by it; `token` is the name of the token, never the token."""

    name: str
    role: Role
    rights: frozenset[Right]
    token: str

    def may(self, right: Right) -> bool:
        """Tell whether the request has a right."""
        return right in self.rights
