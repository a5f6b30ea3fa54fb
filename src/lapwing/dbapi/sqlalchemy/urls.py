"""Addresses of SQLAlchemy: which data set `lapwing://…` names, and what its queries may cost.

`lapwing:///folder` is a folder or a catalog of this machine, `lapwing:////folder` one by its whole path, and `lapwing://`
is the `lapwing.toml` of the current folder. `lapwing://:TOKEN@dp.example.org/dataset` is a data set of a service.
"""

import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from lapwing.dbapi import CATALOG

TOKEN: Final = "LAPWING_TOKEN"  # noqa: S105 - the name of a variable of the environment
_TRUTHS: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def _truth(text: str) -> bool:
    return _TRUTHS[text.lower()]


OPTIONS: Final[Mapping[str, Callable[[str], object]]] = {
    **dict.fromkeys(("epsilon", "error", "delta", "confidence"), Fraction),
    "label": str,
    "assuming_count": int,
    "intervals": _truth,
}
"""Options in an address, each with what reads it."""


def connect_arguments(url: URL) -> tuple[str, dict[str, object]]:
    """Return the target and the options of `lapwing.dbapi.connect`; a wrong option is an ArgumentError."""
    texts = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    tls = _read("tls", texts.pop("tls", "on"), _truth)
    options = {name: _read(name, text, OPTIONS.get(name)) for name, text in texts.items()}
    if not url.host:
        return url.database or CATALOG, options
    port = "" if url.port is None else f":{url.port}"
    token = None if url.password is None else str(url.password)
    options["token"] = os.environ.get(TOKEN) if token is None else token
    if url.database:
        options["dataset"] = url.database
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{'https' if tls else 'http'}://{host}{port}", options


def _read(name: str, text: str, reader: Callable[[str], object] | None) -> object:
    if reader is None:
        raise ArgumentError(f"There is no option {name!r:.60}. There are {', '.join(OPTIONS)} and tls.")
    try:
        return reader(text)
    except (ValueError, KeyError, ArithmeticError):
        raise ArgumentError(f"{name} is {text!r:.60}, which cannot be read.") from None
