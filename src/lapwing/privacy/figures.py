"""Figures as people read them, in the terminal, in Python, in notebooks and in the browser: each kind by one function.

A number has few digits and its thousands are separated. An error, or a loss, is never made to look smaller than it is,
and what is left of a budget never larger. Files for programs have all digits instead.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, Final

from lapwing.privacy.amount_texts import computed, short

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cell = bool | int | float | Decimal | str | date | datetime | None
"""A value of an answer, as Python has it."""
NOTHING: Final = "–"
LONGEST_TEXT: Final = 160
FREE: Final = "free: it was bought before"
"""It does not name the buyer: this may be somebody else than the reader."""
NOTHING_PROTECTED: Final = "free: nothing in it comes from protected rows"
AMOUNTS: Final = {"pure": "ε", "gdp": "μ²", "zcdp": "ρ"}
"""The sign of the amount that adds up in each kind of ledger."""
_EXACT_DIGITS, _DIGITS = 12, 6
_FAR: Final = 10.0**15


def plain(value: Cell) -> str:
    """Return a value that carries no noise."""
    match value:
        case None:
            return NOTHING
        case bool():
            return str(value).lower()
        case float():
            return real(value)
        case Decimal():
            return f"{value:f}"
        case date():
            return value.isoformat()
        case _:
            return str(value)


def real(value: float) -> str:
    """Return a real number without noise: as it is if that takes twelve digits at most, else to six digits.

    Its whole part is never cut, and no exponent stands where the number can be read without one.

    >>> real(1234567.5), real(0.1 + 0.2), real(1 / 3), real(34.123456789012345), real(-0.0), real(1e-9)
    ('1234567.5', '0.3', '0.333333', '34.1235', '0', '1e-9')
    """
    if not math.isfinite(value):
        return NOTHING if math.isnan(value) else "∞" if value > 0 else "-∞"
    text = f"{value:.{_EXACT_DIGITS}g}"
    if float(text) != value:
        whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
        text = f"{value:.{max(_DIGITS, min(whole, _EXACT_DIGITS))}g}"
    if value == 0 or 1e-6 <= abs(value) < _FAR:
        digits = f"{Decimal(text):f}"
        return "0" if value == 0 else digits.rstrip("0").rstrip(".") if "." in digits else digits
    return significant(float(text), _EXACT_DIGITS)


def significant(value: float, digits: int) -> str:
    """Return a real number to a number of digits, with an exponent where one is shorter.

    >>> significant(1e-06, 4), significant(8.3333e-05, 4), significant(0.25, 4), significant(float("inf"), 4)
    ('1e-6', '8.333e-5', '0.25', 'inf')
    """
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def clip(value: object, longest: int = LONGEST_TEXT) -> str:
    """Return a text, shortened if it is long.

    >>> clip("visits"), clip("x" * 500, 3)
    ('visits', 'xxx… (500 characters)')
    """
    text = NOTHING if value is None else str(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def separated(value: float | Decimal, places: int | None = None) -> str:
    """Return a number without a ±, its thousands separated: to some decimal places, or like `real`.

    >>> separated(1963), separated(1963.25), separated(1963.251, 0), separated(-0.2, 0)
    ('1,963', '1,963.25', '1,963', '0')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return real(float(value))
    if places is not None:
        return f"{round(float(value), places) + 0.0:,.{places}f}"
    text = plain(value) if isinstance(value, Decimal) else real(value)
    return text if "e" in text else f"{Decimal(text):,f}"


def with_margins(values: Sequence[Cell], low: "NDArray[Any]", high: "NDArray[Any]") -> list[tuple[str, str]]:
    """Return noisy values, each with its ±, of equal places, so that values and errors stand under each other.

    Dates and times have the ends of their intervals instead, which need not be as long before them as after them.
    """
    if low.dtype.kind == "M":
        ends = zip(values, low.tolist(), high.tolist(), strict=True)
        return [(plain(value), "" if None in (a, b) else f" [{plain(a)} … {plain(b)}]") for value, a, b in ends]
    cells = [(value, float(least), float(most)) for value, least, most in zip(values, low, high, strict=True)]
    reaches = [reach_of(*cell) for cell in cells]
    places = max((places_of(reach) for reach in reaches if math.isfinite(reach)), default=0)
    pairs = [noisy(*cell, places) for cell in cells]
    width = max((len(margin) for _, margin in pairs), default=0)
    return [(value, f" {margin:>{width}}" if width else "") for value, margin in pairs]


def noisy(value: Cell, low: float, high: float, places: int | None = None) -> tuple[str, str]:
    """Return a released value and its ±: the farther end of its interval, rounded up after the value was rounded.

    Args:
        places: Decimal places; enough for two digits of the ± unless given.

    >>> noisy(1234, 1199.0, 1269.0), noisy(2.9134, 2.4822, 3.3446)
    (('1,234', '±35'), ('2.91', '±0.44'))
    """
    if value is None or isinstance(value, bool | str | date):
        return plain(value), ""
    number, reach = float(value), reach_of(value, low, high)
    if not math.isfinite(reach):
        return separated(value), "" if math.isnan(reach) else "±∞"
    if isinstance(value, int):
        return f"{value:,}", f"±{math.ceil(reach):,}"
    kept = places_of(reach) if places is None else places
    near = round(number, kept) + 0.0  # no negative zero
    return f"{near:,.{kept}f}", f"±{rounded_up(max(high - near, near - low), kept):,.{kept}f}"


def reach_of(value: Cell, low: float, high: float) -> float:
    """Return the distance from a value to the farther end of its interval; NaN where there is none."""
    if value is None or isinstance(value, bool | str | date):
        return math.nan
    return max(high - float(value), float(value) - low)


def places_of(reach: float) -> int:
    """Return the decimal places that leave two digits of an error, none for an error of 10 or more."""
    return max(0, 1 - math.floor(math.log10(reach))) if reach > 0 else 2


def rounded_up(value: float, places: int) -> float:
    """Return a number rounded up to some decimal places."""
    scaled = value * 10.0**places
    nearest = round(scaled)
    return (nearest if math.isclose(scaled, nearest, rel_tol=1e-12) else math.ceil(scaled)) / 10.0**places


def margin(reach: float) -> str:
    """Return an error that is promised: rounded up as answers round theirs, to two digits or to a whole number.

    >>> margin(93.0), margin(636615.06), margin(0.27311), margin(math.inf), margin(0.0)
    ('±93', '±636,616', '±0.28', '±∞', '±0')
    """
    if not math.isfinite(reach):
        return "±∞"
    places = places_of(reach) if reach > 0 else 0
    text = f"{rounded_up(reach, places):,.{places}f}"
    return "±" + (text.rstrip("0").rstrip(".") if "." in text else text)


def size(value: float) -> str:
    """Return a scale, a factor or a time, rounded up to three digits or to a whole number.

    >>> size(93.0), size(636615.06), size(0.27311)
    ('93', '636,616', '0.274')
    """
    if not math.isfinite(value):
        return "∞"
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    text = f"{rounded_up(value, places):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def share(part: float | Fraction) -> str:
    """Return a share in percent; what is not nothing never looks like nothing, nor what is not all like all.

    >>> share(0.0367), share(0.0018), share(0.0), share(1.0), share(0.99999), share(25.0)
    ('3.7 %', '0.18 %', '0 %', '100 %', '> 99.9 %', '2,500 %')
    """
    percent = 100 * float(part)
    if percent == 0:
        return "0 %"
    if percent < 0.01:
        return "< 0.01 %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    digits = 2 if percent < 1 else 1
    return f"{percent:.{digits}f}".rstrip("0").rstrip(".") + " %" if percent < 1000 else f"{percent:,.0f} %"


def cost_and_rest(cost: Fraction, left: Fraction) -> tuple[str, str]:
    """Return a cost and what is left as shares in percent, with more digits where both would read the same.

    >>> cost_and_rest(Fraction("0.5"), Fraction("0.25")), cost_and_rest(Fraction("0.08602"), Fraction("0.086"))
    (('50 %', '25 %'), ('8.602 %', '8.6 %'))
    """
    texts = share(cost), share(left)
    return texts if texts[0] != texts[1] else (f"{short(100 * cost)} %", f"{short(100 * left, down=True)} %")


def level(confidence: float | Fraction) -> str:
    """Return the confidence of an interval with all the digits that it was chosen with.

    >>> level(0.95), level(Fraction(9999, 10000))
    ('95 %', '99.99 %')
    """
    return f"{float(100 * confidence):.10g} %"


def epsilon(value: float | Fraction) -> str:
    """Return an epsilon: all digits of a chosen one if they are four at most, else three digits, rounded up.

    >>> epsilon(1.0000000000000002), epsilon(0.1234), epsilon(0.30049), epsilon(Fraction("0.9999999")), epsilon(4321.1)
    ('1', '0.1234', '0.301', '0.9999999', '4,322')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "∞"
    exact = computed(value, 4 if value < 999 else 15) if isinstance(value, float) else value
    if exact > 999:
        return f"{math.ceil(exact):,}"
    chosen = short(exact, 4)
    return chosen if Fraction(chosen) == exact else short(computed(value, 3) if isinstance(value, float) else exact, 3)


def such_queries(count: int) -> str:
    """Return how many queries of one cost fit.

    >>> such_queries(1), such_queries(0), such_queries(1234)
    ('1 such query fits', 'no such query fits', '1,234 such queries fit')
    """
    if count > 1:
        return f"{count:,} such queries fit"
    return "1 such query fits" if count else "no such query fits"


def delta(value: Fraction, *, down: bool = False) -> str:
    """Return a delta to six digits, rounded up; or down, of what is left.

    >>> delta(Fraction(1, 10**6)), delta(Fraction(0))
    ('1e-6', '0')
    """
    return short(value, 6, down=down)


def delta_in_words(value: Fraction) -> str:
    """Return a delta as a number and in words.

    >>> delta_in_words(Fraction(1, 10**6)), delta_in_words(Fraction(1, 3))
    ('1e-6 (1 in a million)', '0.333334')
    """
    said = one_in(value)
    return f"{delta(value)} ({said})" if said else delta(value)


def one_in(probability: Fraction) -> str:
    """Return a small probability in words, rounded up; nothing for 0 and for what is not small.

    >>> one_in(Fraction(1, 10**6)), one_in(Fraction("0.0003")), one_in(Fraction(3, 10**8)), one_in(Fraction(0))
    ('1 in a million', '1 in 3,300', '1 in 33 million', '')
    >>> one_in(Fraction(1, 10**9)), one_in(Fraction(1, 10**20)), one_in(Fraction("0.3"))
    ('1 in a billion', 'below 1 in a trillion', '')
    """
    if not 0 < probability <= Fraction(1, 10):
        return ""
    times = math.floor(1 / probability)
    if times > 10**12:
        return "below 1 in a trillion"
    size, name = next(pair for pair in _SIZES if times >= pair[0])
    cut = 10 ** max(0, len(str(times)) - 2)  # two digits
    count = Fraction(times // cut * cut, size)
    return f"1 in a {name}" if name and count == 1 else f"1 in {float(count):,.10g} {name}".rstrip()


_SIZES: Final = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1, ""))


def amount(kind: str, value: Fraction, *, down: bool = False) -> str:
    """Return what adds up in a kind of ledger, rounded up; or down, of what is left.

    >>> amount("gdp", Fraction("0.12341")), amount("pure", Fraction("0.12349"), down=True)
    ('μ² 0.1235', 'ε 0.1234')
    """
    return f"{AMOUNTS.get(kind, kind)} {short(value, down=down)}"


# ---- HTML, as notebooks show it: names and values are of other people, so that each text is escaped ----

MOST_HTML_ROWS: Final = 500
"""Rows of a table that are shown."""
_NUMBER: Final = ' style="text-align:right"'


def html_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str, numbers: Iterable[str] = ()
) -> str:
    """Return a table of texts under a caption, its first rows if they are many; numbers stand to the right."""
    right = [_NUMBER if name in set(numbers) else "" for name in columns]
    head = "".join(f"<th{how}>{escape(name)}</th>" for name, how in zip(columns, right, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{how}>{escape(cell)}</td>' for cell, how in zip(row, right, strict=True))}</tr>"
        for row in rows[:MOST_HTML_ROWS]
    )
    more = f"<p>… and {len(rows) - MOST_HTML_ROWS:,} more rows</p>" if len(rows) > MOST_HTML_ROWS else ""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def html_facts(*pairs: tuple[str, str]) -> str:
    """Return labelled texts, one a line."""
    lines = "".join(f"<tr><th{_NUMBER}>{escape(label)}</th><td>{escape(text)}</td></tr>" for label, text in pairs)
    return f"<table><tbody>{lines}</tbody></table>"


def html_gauge(spent: float) -> str:
    """Return a bar of what is spent of a budget, and both shares."""
    bar = f'<progress max="1" value="{min(1.0, max(0.0, spent)):.4f}"></progress>'
    return f"<p>{bar} {escape(share(spent))} spent, {escape(share(max(0.0, 1 - spent)))} left</p>"


def html_heading(text: str) -> str:
    """Return a heading."""
    return f"<p><strong>{escape(text)}</strong></p>"
