"""The templates of the pages, and how they write figures and texts of other people.

Every value is escaped. What others wrote, such as names of columns, labels and values, may be long, or written from
right to left: templates show it by `clip`, inside of `<bdi>`, so that it changes nothing around it.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import quote

from lapwing import __version__
from lapwing.answer.charts.wrapping import unbroken
from lapwing.documents.roles import DATASET_ROLES, RIGHTS, ROLES
from lapwing.documents.templates import new_environment
from lapwing.errors import AllowanceExhausted, BudgetExhausted, charge_in_words
from lapwing.privacy import figures, guesses
from lapwing.privacy.figures import NOTHING
from lapwing.server.console.catalog_words import place_in_words
from lapwing.server.console.listed import listed
from lapwing.server.console.query_texts import query_texts

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"
TOO_EXPENSIVE: Final = (BudgetExhausted.code, AllowanceExhausted.code)
"""Codes of refusals that a lower cost would avoid."""
DECIMAL: Final = re.compile(r"(?=.{1,24}$)[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
"""A decimal with no more digits than `Decimal` keeps."""

CAUSES: Final[Mapping[str | None, str]] = {
    "fault": "The database or Lapwing failed while it ran the query.",
    "death": "The process that ran the query ended.",
    "interrupt": "Somebody cancelled the query, or the connection was lost.",
    "stop": "The data set was stopped while the query ran.",
    None: "The query may still be running.",
}
"""Why a charge has no result, by the cause in the ledger; None while nothing says so."""


@final
class Templates:
    """All templates of the console."""

    def __init__(self) -> None:
        self._environment = new_environment(FOLDER)
        self._environment.filters.update(
            query_texts=query_texts,
            place_in_words=place_in_words,
            charge_in_words=charge_in_words,
            epsilon=epsilon,
            delta=delta,
            stated_delta=stated_delta,
            stated_epsilon=stated_epsilon,
            margin=margin,
            size=size,
            percent=percent,
            typed_share=typed_share,
            amount=amount,
            rest=rest,
            segment=segment,
            moment=moment,
            ratio=ratio,
            listed=listed,
            type_words=type_words,
            groups=groups,
            such_queries=figures.such_queries,
            one_in=one_in,
            why_failed=CAUSES.__getitem__,
            guess=guesses.in_words,
            guessed=guesses.guessed,
        )
        self._environment.globals.update(static=self.static, version=__version__, nothing=NOTHING)
        self._environment.globals.update(TOO_EXPENSIVE=TOO_EXPENSIVE, ROLES=ROLES, RIGHTS=RIGHTS)
        self._environment.globals.update(DATASET_ROLES=DATASET_ROLES)

    def render(self, template: str, /, **facts: Any) -> str:
        """Return the text of a template."""
        return self._environment.get_template(template).render(facts)

    def static(self, name: str) -> str:
        """Return the address of a file, which is another one when the file is."""
        return f"/console/static/{name}?v={self.digests[name]}"

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """The names of all files that browsers may fetch, with what tells their versions apart."""
        return {file.name: sha256(file.read_bytes()).hexdigest()[:16] for file in sorted(STATIC.iterdir())}


@cache
def all_templates() -> Templates:
    """Return the templates, which each process reads once: none holds anything of a service."""
    return Templates()


def epsilon(value: float | str | None) -> str:
    """Return an ε, which the API has as a number or as a text, or a dash.

    >>> epsilon(0.5), epsilon("1/3"), epsilon(None)
    ('0.5', '0.334', '–')
    """
    if value is None or not math.isfinite(ratio(str(value))):
        return NOTHING if value is None else "∞"
    return figures.epsilon(value if isinstance(value, float) else _exact(value))


def delta(value: float | str | None) -> str:
    """Return a δ, or a dash.

    >>> delta(1e-06), delta("0.0000004"), delta(None)
    ('1e-6', '4e-7', '–')
    """
    return NOTHING if value is None else figures.delta(_exact(value))


def one_in(value: float | str | None) -> str:
    """Return a δ in words, in brackets; empty for what is not small, or no number.

    >>> one_in(1e-06), one_in("0.0000004"), one_in(None), one_in("0"), one_in("much")
    (' (1 in a million)', ' (1 in 2.5 million)', '', '', '')
    """
    said = figures.one_in(_exact(value)) if value is not None and _is_number(value) else ""
    return f" ({said})" if said else ""


def stated_epsilon(stated: float | str) -> str:
    """Return an ε that a request states, as everywhere; any other text as it is.

    >>> stated_epsilon("1.23456"), stated_epsilon(0.5), stated_epsilon("much")
    ('1.24', '0.5', 'much')
    """
    return figures.epsilon(_exact(stated)) if _is_number(stated) else str(stated)


def stated_delta(stated: float | str) -> str:
    """Return a δ that a request states, as everywhere; any other text as it is.

    >>> stated_delta("0.00001"), stated_delta(2.5e-08), stated_delta("0.001"), stated_delta("much")
    ('1e-5', '2.5e-8', '0.001', 'much')
    """
    return figures.delta(_exact(stated)) if _is_number(stated) else str(stated)


def _is_number(stated: float | str) -> bool:
    return DECIMAL.fullmatch(str(stated)) is not None


def margin(value: float | str | None) -> str:
    """Return an error with its ±, or a dash.

    >>> margin(35.0), margin(0.27311), margin("Infinity")
    ('±35', '±0.28', '±∞')
    """
    return NOTHING if value is None else figures.margin(float(value))


def size(value: float | str | None) -> str:
    """Return a factor, or seconds, or a dash.

    >>> size(20.0855), size(1200)
    ('20.1', '1,200')
    """
    return NOTHING if value is None else figures.size(float(value))


def percent(share: float | None) -> str:
    r"""Return a share as a percentage, or a dash.

    >>> percent(0.25), percent(0.00001), percent(None)
    ('25\xa0%', '< 0.01\xa0%', '–')
    """
    return NOTHING if share is None else unbroken(figures.share(float(share)))


def _exact(value: float | str) -> Fraction:
    return Fraction(str(value))


def amount(record: Mapping[str, str] | None) -> str:
    """Return a loss in the ledger's own unit.

    >>> amount({"measure": "gdp", "amount": "0.25"})
    'μ² 0.25'
    """
    if record is None:
        return NOTHING
    return figures.amount(record["measure"], Fraction(record["amount"]))


def rest(value: Mapping[str, str] | Fraction | str) -> str:
    """Return what is left of a budget, rounded down: a loss in the ledger's own unit, or a δ.

    >>> rest({"measure": "gdp", "amount": "0.12349"}), rest("0.0000012349")
    ('μ² 0.1234', '1.2349e-6')
    """
    if isinstance(value, Mapping):
        return figures.amount(value["measure"], Fraction(value["amount"]), down=True)
    return figures.delta(Fraction(value), down=True)


def ratio(text: str) -> float:
    """Return a number that may be written with a slash.

    >>> ratio("1/4"), ratio("0.2")
    (0.25, 0.2)
    """
    return float(Fraction(text)) if "/" in text else float(text)


def typed_share(text: str | None) -> str:
    """Return a share as a field shows it and takes it: in percent where that is exact.

    >>> typed_share("0.0001"), typed_share("1/20"), typed_share("1/3"), typed_share(None)
    ('0.01 %', '5 %', '1/3', '')
    """
    if text is None:
        return ""
    percent = 100 * Fraction(text)
    shown = f"{float(percent):.12g}"
    return f"{shown} %" if "e" not in shown and Fraction(shown) == percent else text


def type_words(kind: str) -> str:
    """Return the type of a column as people read it.

    >>> type_words("decimal:0.1"), type_words("integer")
    ('decimal in steps of 0.1', 'integer')
    """
    return kind.replace(":", " in steps of ", 1)


def segment(text: str) -> str:
    """Return a text as a part of an address."""
    return quote(text, safe="")


def groups(text: str) -> str:
    """Return a text in groups of four, as people type it.

    >>> groups("GEZDGNBVGY")
    'GEZD GNBV GY'
    """
    return " ".join(text[place : place + 4] for place in range(0, len(text), 4))


def moment(text: str) -> str:
    """Return a time in UTC as people read it.

    >>> moment("2026-11-26T14:25:15+00:00")
    '2026-11-26 14:25'
    """
    return text[:16].replace("T", " ")
