"""The audit log in words: one wording for the console and the command line. The log itself keeps its own names."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from lapwing.privacy import figures

ACTS: Final[Mapping[str, str]] = {
    "token made": "API token created",
    "login failed": "sign-in failed",
    "recovery codes made": "recovery codes created",
    "identity bound": "linked to the identity provider",
    "grant made": "access granted",
    "invite made": "invite link created",
    "invite accepted": "invite link used, password set",
    "invite withdrawn": "invite link withdrawn",
    "grant withdrawn": "access withdrawn",
    "request made": "access or larger limit requested",
    "publishing allowed": "publishing allowed",
    "publishing forbidden": "publishing turned off, pages withdrawn",
    "page published": "page published",
    "page withdrawn": "page withdrawn",
    "listed": "data set shown to people without access",
    "unlisted": "data set hidden from people without access",
    "team made": "team created",
    "team share set": "limit of a team set",
    "policy set": "policy changed",
    "data looked at": "exact figures of the data seen",
    "faults looked at": "failures reviewed",
    "closed for ever": "data set closed for good",
    "registration begun": "registration started",
    "answer shared": "result shared with the team",
    "answer shared no more": "result no longer shared",
    "question cancelled": "query cancelled",
    "catalog change begun": "saving a catalog started",
    "catalog changed": "new catalog in use",
    "closing for ever begun": "closing for good started",
    "acceptance of data begun": "check of new data started",
    "data accepted": "new data accepted",
    "refresh of data begun": "refresh of data started",
    "resume begun": "resuming queries started",
    "upload begun": "upload started",
    "stopped": "queries stopped",
    "resumed": "queries resumed",
    "role at a data set": "role on a data set changed",
    "budget raise begun": "budget raise started",
    "audit log put back": "audit log accepted after a restore",
}
"""Acts whose names in the log say less; the others read as they are."""
DETAILS: Final[Mapping[str, str]] = {
    "dataset": "data set",
    "scopes": "rights",
    "share": "limit",
    "division": "limits",
    "most_epsilon": "maximum epsilon per query",
    "least_share": "minimum per query",
    "hash": "seal",
    "number": "version",
    "kind": "for",
    "active": "account",
}
EARLIER: Final = "was_"
"""How the name of an earlier value begins: it is shown beside the value of today."""
SHARES: Final = ("share", "least_share", "daily_share")
DIVISIONS: Final[Mapping[str, str]] = {"share": "not reserved", "split": "reserved"}
KINDS: Final[Mapping[str, str]] = {"budget": "a larger limit"}
"""Kinds of requests whose names say less."""
CONSOLE: Final = "console"
"""The label of a token that a sign-in in the browser made."""


def act_in_words(line: Mapping[str, Any]) -> str:
    """Return what was done.

    >>> act_in_words({"act": "token made", "details": {"label": "console"}}), act_in_words({"act": "stopped"})
    ('signed in', 'queries stopped')
    """
    if line["act"] == "token made" and line["details"].get("label") == CONSOLE:
        return "signed in"
    return ACTS.get(line["act"], line["act"])


def details_in_words(line: Mapping[str, Any]) -> str:
    """Return what a line says more. Shares are percentages, like everywhere else.

    >>> details_in_words({"act": "token made", "details": {"label": "ci", "scopes": ["read", "ask"]}})
    'label ci, rights read and ask'
    >>> details_in_words({"act": "token made", "details": {"scopes": ["read", "ask", "audit", "admin"]}})
    'rights read, ask, audit and admin'
    >>> details_in_words({"act": "person changed", "details": {"active": False, "password": False, "team": None}})
    'account disabled'
    >>> details_in_words({"act": "grant made", "details": {"dataset": "visits", "share": "1/5"}})
    'data set visits, limit 20 %'
    >>> details_in_words({"act": "budget raised", "details": {"epsilon": "5", "delta": "0", "was_epsilon": "3"}})
    'epsilon 3 → 5, delta 0'
    >>> details_in_words({"act": "request made", "details": {"dataset": "visits", "kind": "budget", "share": "1/5"}})
    'data set visits, for a larger limit, limit 20 %'
    >>> details_in_words({"act": "catalog changed", "details": {"number": 2}})
    'version 2'
    """
    details: Mapping[str, Any] = line["details"]
    unsaid: dict[str, Any] = {"password": False}  # of every change
    if act_in_words(line) == "signed in":
        unsaid |= {"label": CONSOLE, "scopes": details.get("scopes"), "token": details.get("token")}
    unsaid |= {name: value for name, value in details.items() if name.startswith(EARLIER)}
    said = {name: value for name, value in details.items() if value not in (None, "", []) and unsaid.get(name) != value}
    return ", ".join(
        f"{DETAILS.get(name, name.replace('_', ' '))} {_changed(name, value, details.get(EARLIER + name))}"
        for name, value in said.items()
    )


def _changed(name: str, value: object, earlier: object) -> str:
    shown = _value(name, value)
    return shown if earlier in (None, value) else f"{_value(name, earlier)} → {shown}"


def _value(name: str, value: object) -> str:
    if name == "password":
        return "set"
    if name == "active":
        return "enabled" if value else "disabled"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        *others, last = map(str, value)  # an empty list is not shown
        if name == "changes":
            return "; ".join((*others, last))
        return f"{', '.join(others)} and {last}" if others else last
    if isinstance(value, dict):
        return " and ".join(f"{key} {one}" for key, one in value.items())
    if name in SHARES:
        return _percent(str(value))
    if name == "delta":
        return figures.delta(Fraction(str(value)))
    if name == "kind":
        return KINDS.get(str(value), str(value))
    return DIVISIONS.get(str(value), str(value)) if name == "division" else str(value)


def _percent(share: str) -> str:
    """Return a share with all its digits: the log hides nothing.

    >>> [_percent(share) for share in ("0.2", "1/3", "0.0001", "0.123456789")]
    ['20 %', '1/3', '0.01 %', '12.3456789 %']
    """
    percent = 100 * Fraction(share)
    shown = f"{float(percent):.12g}"
    return f"{shown} %" if Fraction(shown) == percent else share
