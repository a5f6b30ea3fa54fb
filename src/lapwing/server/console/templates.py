"""The templates of the pages, and how they write figures and texts of other people.

Every value is escaped. What others wrote, such as names of columns, labels and values, may be long, or written from
right to left: templates show it by `clip`, inside of `<bdi>`, so that it changes nothing around it.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lapwing import __version__
from lapwing.errors import charge_in_words
from lapwing.figures import NOTHING
from lapwing.privacy.amount_texts import computed, short

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"
LONGEST: Final = 160
MEASURES: Final[Mapping[str, str]] = {"gdp": "μ²", "zcdp": "ρ", "pure": "ε"}
"""What prices add up in, by the measure of the ledger."""


@final
class Templates:
    """All templates of the console."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            charge_in_words=charge_in_words,
            clip=clip,
            figure=figure,
            percent=percent,
            amount=amount,
            rest=rest,
            segment=segment,
            moment=moment,
            ratio=ratio,
            groups=groups,
        )
        self._environment.globals.update(static=self.static, version=__version__, nothing=NOTHING)

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


def clip(value: object, longest: int = LONGEST) -> str:
    """Return a text, shortened if it is long.

    >>> clip("visits"), clip("x" * 500, 3)
    ('visits', 'xxx… (500 characters)')
    """
    text = NOTHING if value is None else str(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def figure(value: float | str | None) -> str:
    """Return a loss, a chance or an error of four digits at most, rounded up, or a dash.

    >>> figure(1234567.0), figure(0.5), figure("0.000001"), figure("0.9999999"), figure(0.12341), figure(None)
    ('1,234,567', '0.5', '1e-06', '0.9999999', '0.1235', '–')
    """
    if value is None:
        return NOTHING
    try:
        number = computed(value, 4 if abs(value) < 999 else 15) if isinstance(value, float) else Fraction(value)
    except (ValueError, OverflowError):  # without an end
        return str(value)
    return f"{math.ceil(number):,}" if abs(number) > 999 else short(number)


def percent(share: float | None) -> str:
    """Return a share as a percentage; one that is not nothing never looks like nothing.

    >>> percent(0.25), percent(0.00001), percent(0)
    ('25 %', '< 0.1 %', '0 %')
    """
    if share is None:
        return NOTHING
    part = 100 * float(share)
    if 0 < part < 0.1:
        return "< 0.1 %"
    return f"{part:.1f}".removesuffix(".0") + " %"


def amount(record: Mapping[str, str] | None) -> str:
    """Return a loss in the ledger's own unit.

    >>> amount({"measure": "gdp", "amount": "0.25"})
    'μ² 0.25'
    """
    if record is None:
        return NOTHING
    return f"{MEASURES.get(record['measure'], record['measure'])} {short(Fraction(record['amount']))}"


def rest(value: Mapping[str, str] | Fraction | str) -> str:
    """Return what is left of a budget, rounded down: a loss in the ledger's own unit, or a δ.

    >>> rest({"measure": "gdp", "amount": "0.12349"}), rest("0.0000012349")
    ('μ² 0.1234', '1.234e-06')
    """
    if isinstance(value, Mapping):
        return f"{MEASURES.get(value['measure'], value['measure'])} {short(Fraction(value['amount']), down=True)}"
    return short(Fraction(value), down=True)


def ratio(text: str) -> float:
    """Return a share, which may be written as a fraction, as a number.

    >>> ratio("1/4"), ratio("0.2")
    (0.25, 0.2)
    """
    return float(Fraction(text))


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
