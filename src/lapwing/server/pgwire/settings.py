"""The settings of one connection: what `SET` and the start of a connection may change, and to what."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, final

from lapwing import __version__, errors
from lapwing.privacy.amounts import read as read_amount
from lapwing.privacy.decimal_comma import with_point
from lapwing.server.pgwire.refusals import BOTH_HINT, PRICE_HINT, StatementRefused

VERSION: Final = "18.0"
"""The version of PostgreSQL whose protocol and types are spoken."""
VERSION_TEXT: Final = f"PostgreSQL {VERSION} (Lapwing {__version__})"
MOST_SETTING: Final = 1_000
REPORTED: Final = {
    "server_version": VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "application_name": "",
}
"""Settings that the server sends when a client connects."""
OTHERS: Final = {
    "search_path": '"$user", public',
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "max_identifier_length": "63",
    "lc_collate": "C",
    "server_version_num": "180000",
    "statement_timeout": "0",
    "client_min_messages": "notice",
}
PRICES: Final = ("epsilon", "error", "delta", "confidence", "assuming_count")
SWITCHES: Final = {"lapwing.intervals": "off", "lapwing.explain": "off"}
OWN: Final = {f"lapwing.{name}": "" for name in (*PRICES, "label")} | SWITCHES
FIXED: Final = frozenset(
    {"server_version", "server_encoding", "integer_datetimes", "standard_conforming_strings", "is_superuser"}
    | {"server_version_num", "max_identifier_length", "lc_collate", "in_hot_standby"}
)
"""Settings that nobody can change."""
ONLY: Final[Mapping[str, frozenset[str]]] = {
    "client_encoding": frozenset({"UTF8", "UTF-8", "UNICODE", "SQL_ASCII"}),
    "timezone": frozenset({"UTC", "GMT", "ETC/UTC", "Z", "DEFAULT", "LOCAL"}),
}
"""Settings that can only be set to what holds anyway."""
_OPTION: Final = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.]*)=((?:\\.|[^\s\\])*)")
_SCIENTIFIC: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,50})?[eE][+-]?[0-9]{1,2}", re.ASCII)
"""A number such as 1e-9, as people write delta."""
INITIAL: Final = {**REPORTED, **OTHERS, **OWN}


@final
class ConnectionSettings:
    """The settings of a connection.

    Args:
        say: Tells the client what a setting is that it wants to know of.
    """

    def __init__(self, say: Callable[[str, str], None]) -> None:
        self._values, self._say = dict(INITIAL), say

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def all(self) -> Mapping[str, str]:
        """Return all settings."""
        return self._values

    def is_on(self, name: str) -> bool:
        """Tell whether a switch of Lapwing is on."""
        return self._values[f"lapwing.{name}"] == "on"

    @property
    def has_price(self) -> bool:
        """Whether queries have a price."""
        return bool(self._values["lapwing.epsilon"] or self._values["lapwing.error"])

    @property
    def price_hint(self) -> str:
        """Return what to do if queries have no price, or two; an empty text if they have one."""
        epsilon, error = bool(self._values["lapwing.epsilon"]), bool(self._values["lapwing.error"])
        return "" if epsilon != error else BOTH_HINT if epsilon else PRICE_HINT

    def prices(self) -> dict[str, str | int]:
        """Return what queries may cost, for the body of a query."""
        given = {name: self._values[f"lapwing.{name}"] for name in PRICES}
        prices: dict[str, str | int] = {name: value for name, value in given.items() if value}
        if "assuming_count" in prices:
            prices["assuming_count"] = int(prices["assuming_count"])
        return prices

    def get(self, words: Sequence[str]) -> tuple[str, str]:
        """Return the name and the value of a setting.

        Raises:
            StatementRefused: If there is none.
        """
        name = name_of(words)
        if name not in self._values:
            raise StatementRefused("42704", f"There is no setting {name[:64]!r}.")
        return name, self._values[name]

    def set(self, words: Sequence[str]) -> None:
        """Carry out a SET, whose words come without it.

        Raises:
            StatementRefused: If it is none, or not allowed.
        """
        rest = list(words)
        if rest and rest[0] in ("SESSION", "LOCAL"):
            rest.pop(0)
        if rest[:2] == ["TIME", "ZONE"]:
            rest[:2] = ["TIMEZONE", "TO"]
        if rest[:1] == ["NAMES"]:
            rest[:1] = ["CLIENT_ENCODING", "TO"]
        place = next((place for place, word in enumerate(rest) if word in ("=", "TO")), 0)
        if not 0 < place < len(rest) - 1:
            raise StatementRefused("42601", "Write SET name = value.")
        self.put(name_of(rest[:place]), _value(rest[place + 1 :]))

    def reset(self, words: Sequence[str]) -> None:
        """Give a setting the value that it had.

        Raises:
            StatementRefused: If there is none.
        """
        name = name_of(words)
        self.put(name, INITIAL.get(name, ""))

    def reset_all(self) -> None:
        """Give all settings the values that they had."""
        for name, value in INITIAL.items():
            if self._values[name] != value:
                self.put(name, value)

    def put(self, name: str, value: str) -> None:
        """Change a setting.

        Raises:
            StatementRefused: If it is not one, or not a value of it.
        """
        if name.lower() in ONLY and value.upper().strip("'") not in ONLY[name.lower()]:
            raise StatementRefused("22023", f"{name} can be {', '.join(sorted(ONLY[name.lower()]))} only.")
        if name in FIXED and value != self._values[name]:
            raise StatementRefused("55P02", f"{name} cannot be changed.")
        if name.startswith("lapwing."):
            value = _own_value(name, value)
        elif name not in self._values and len(self._values) >= 2 * len(INITIAL):
            raise StatementRefused("54000", "Too many settings.")
        if len(name) > MOST_SETTING or len(value) > MOST_SETTING:
            raise StatementRefused("22023", f"A setting has at most {MOST_SETTING:,} characters.")
        if name.lower() in ONLY:
            return
        self._values[name] = value
        if name in REPORTED:
            self._say(name, value)


def _own_value(name: str, value: str) -> str:
    if name not in OWN:
        known = ", ".join(OWN)
        raise StatementRefused("42704", f"There is no setting {name[:64]!r}. There are {known}.")
    short = name.removeprefix("lapwing.")
    if value.lower() in ("", "default"):
        return OWN[name]
    if name in SWITCHES:
        if value.lower() not in ("on", "off", "true", "false", "1", "0"):
            raise StatementRefused("22023", f"{name} is on or off.")
        return "on" if value.lower() in ("on", "true", "1") else "off"
    if short in PRICES:
        value = f"{Decimal(value):f}" if _SCIENTIFIC.fullmatch(value) else value
        try:
            value = with_point(value.replace(", ", ","))  # a list of two numbers is one with a decimal comma
            amount = read_amount(value[:200], short)
        except (errors.LapwingError, ArithmeticError, ValueError):
            raise StatementRefused("22023", f"{name} is a number, such as 0.1, '0,1' or 1/3.") from None
        if short == "assuming_count" and amount.denominator != 1:
            raise StatementRefused("22023", f"{name} is a whole number of rows.")
        if short == "assuming_count":
            return str(amount.numerator)
    return value


def name_of(words: Sequence[str]) -> str:
    """Return the name of a setting in the spelling of `INITIAL`."""
    if tuple(words) == ("TRANSACTION", "ISOLATION", "LEVEL"):
        return "transaction_isolation"
    if tuple(words) == ("TIME", "ZONE"):
        return "TimeZone"
    name = "".join(words).lower()
    return next((known for known in REPORTED if known.lower() == name), name)


def _value(words: Sequence[str]) -> str:
    """Return the value of a SET as text: of a list, with commas."""
    return "".join(words).replace(",", ", ") if "," in words else "".join(words)


def options_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in the `options` of a connection: `-c name=value`."""
    for match in _OPTION.finditer(text):
        yield name_of([match[1]]), re.sub(r"\\(.)", r"\1", match[2])


def spelt(name: str) -> str:
    """Return the name that `INITIAL` has for a setting of the start of a connection."""
    return next((known for known in INITIAL if known.lower() == name.lower()), name.lower())
