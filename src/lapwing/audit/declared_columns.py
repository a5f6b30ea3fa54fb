"""Columns that make something public which looks personal, and bounds that look learned. It reads no row.

Whether a bound is the largest value in the data cannot be looked at: the answer would depend on one row. So a bound is
judged by how it is written. People who choose a bound from common knowledge choose a round number.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from fractions import Fraction
from math import prod
from typing import Final

from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.catalog.model import Catalog, Column, PublicTable, Table

MANY_VALUES: Final = 1_000
MANY_COMBINATIONS: Final = 100_000
PERSONAL: Final = re.compile(
    r"(^|_)(first_?name|last_?name|sur_?name|full_?name|given_?name|name|e_?mail|phone|telephone|mobile|ssn|passport|"
    r"iban|street|address|licen[cs]e_?plate|ip|username|login|national_?id|insurance_?(no|number))(_|$)"
)
IDENTIFIER: Final = re.compile(
    r"(person|patient|user|customer|client|member|employee|student|citizen)_?(id|no|number)$"
)
QUASI: Final[dict[str, re.Pattern[str]]] = {
    "a place": re.compile(r"(post_?code|zip|postal|municipality|commune|city|village)"),
    "a birth date": re.compile(r"(birth|dob)"),
    "the sex": re.compile(r"^(sex|gender)$"),
    "an occupation": re.compile(r"(occupation|profession|job)"),
}
LOOKS_PERSONAL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}|^\+?[0-9][0-9 /-]{7,}$", re.IGNORECASE)
OBSERVED: Final = re.compile(
    r"\b(observed|in the data|of the data|from the data|data (minimum|maximum|min|max))\b", re.I
)
COMMON: Final = frozenset({1440, 3600, 7200, 8760, 8784, 10080, 86400, 525600, 604800, 1048575, 65535, 32767})
"""Minutes, hours and seconds of days, weeks and years, and the ends of integers."""


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield two checks: of public columns, and of bounds."""
    catalog = subject.catalog
    tables: tuple[Table | PublicTable, ...] = (*catalog.tables, *catalog.public_tables)
    columns = [(table, column) for table in tables for column in table.columns]
    yield AuditCheck(
        name="public columns",
        tried=len(columns),
        what_was_tried="columns: their names and their listed values",
        power="A listed e-mail address or phone number. A column that is named like personal data, in English. "
        f"{MANY_VALUES:,} listed values. A place, a birth date and the like that are listed together.",
        not_tried="Names in other languages, and values that are not listed in the catalog.",
        findings=tuple(_personal(catalog)),
    )
    bounded = [(table, column) for table, column in columns if isinstance(table, Table) and column.bounded]
    yield AuditCheck(
        name="bounds",
        tried=len(bounded),
        what_was_tried="columns with bounds: how they are written, and what their descriptions say",
        power="A bound that is not round, such as 17.3826: of five digits, or of four with decimal places. A "
        "description that says that a bound was observed.",
        not_tried="Whether a round bound was learned from the data. No audit may look at that: it would depend on a "
        "single row.",
        findings=tuple(finding for table, column in bounded for finding in _learned(catalog, table, column)),
    )


def _personal(catalog: Catalog) -> Iterator[AuditFinding]:
    for table in catalog.tables:
        for column in table.columns:
            yield from _of_column(table, column)
        yield from _combined(table)
    units = {table.root.privacy_unit for table in catalog.tables} - {"row", None}
    for public in catalog.public_tables:
        for column in public.columns:
            if column.name in units or PERSONAL.search(column.name.casefold()):
                yield _warning(
                    "public_table_of_people",
                    f"public table {public.name}, column {column.name}",
                    "The table is public, and this column seems to list people. Everybody can see all of it.",
                    "Check that nobody in it needs protection; otherwise declare the table as protected.",
                )


def _of_column(table: Table, column: Column) -> Iterator[AuditFinding]:
    about = f"table {table.name}, column {column.name}"
    texts = [value for value in column.values or () if isinstance(value, str)]
    name = column.name.casefold()
    if any(LOOKS_PERSONAL.search(text) for text in texts):
        what = "The catalog lists values that look like e-mail addresses or phone numbers. The catalog is public."
        yield _warning("values_look_personal", about, what, "Remove the listed values, or the column.")
    if texts and (PERSONAL.search(name) or IDENTIFIER.search(name)):
        what = "The column seems to hold personal data, and the catalog lists its values for everybody to see."
        yield _warning("personal_values_public", about, what, "Remove the listed values, or the column.")
    elif PERSONAL.search(name) and column.name != table.root.privacy_unit:
        what = "The column seems to hold personal data. Queries can use it in conditions."
        yield _remark("personal_column", about, what, "Leave the column out of the catalog if no query needs it.")
    if len(column.values or ()) >= MANY_VALUES:
        what = f"The catalog lists {len(column.values or ()):,} values. A list that long often comes from the data."
        yield _warning("many_public_values", about, what, "Check that the list is public, such as a list of codes.")


def _combined(table: Table) -> Iterator[AuditFinding]:
    """Yield that columns which together single people out have public values."""
    found: dict[str, Column] = {}
    for column in table.columns:
        kind = next((kind for kind, pattern in QUASI.items() if pattern.search(column.name.casefold())), None)
        if kind is not None and (column.values or column.bounded):
            found.setdefault(kind, column)
    cells = prod(len(column.values) if column.values else max(1, _steps(column)) for column in found.values())
    if len(found) >= 2 and cells >= MANY_COMBINATIONS:
        names = ", ".join(column.name for column in found.values())
        yield _warning(
            "quasi_identifiers",
            f"table {table.name}",
            f"Queries can group by {names}: {cells:,} combinations. Together such columns single people out, and "
            "results about single people are noise.",
            "Leave one of them out, or declare coarser values, such as the year of birth or the first two digits of a "
            "postcode.",
        )


def _steps(column: Column) -> int:
    if column.numeric:
        return column.steps + 1
    if isinstance(column.lower, date) and isinstance(column.upper, date):
        return (column.upper - column.lower).days + 1
    return 1


# ---- bounds ----------------------------------------------------------------------------------------------------------


def _learned(catalog: Catalog, table: Table | PublicTable, column: Column) -> Iterator[AuditFinding]:
    about = f"table {table.name}, column {column.name}"
    odd = [str(bound) if isinstance(bound, date) else _decimal(bound) for bound in _odd((column.lower, column.upper))]
    if odd:
        yield _warning(
            "bound_looks_learned",
            about,
            f"The bound {' and '.join(odd)} is not round. If it is the smallest or largest value in the data, the "
            "catalog publishes one person's value.",
            "Choose a round bound from public knowledge, and start a new ledger if the old bound came from the data.",
        )
    texts = catalog.dictionary.column(table.name, column.name)
    said = " ".join(filter(None, (texts.description, texts.provenance, texts.title)))
    if OBSERVED.search(said):
        yield _warning(
            "bound_said_observed",
            about,
            f"The description says where the bounds come from: {said[:120]!r}.",
            "Bounds must come from public knowledge, and never from the protected data.",
        )


def _odd(bounds: Iterable[object]) -> Iterator[Fraction | date]:
    """Yield the bounds that nobody would choose without the data."""
    for bound in bounds:
        match bound:
            case Fraction() if _is_odd_number(bound):
                yield bound
            case date() if bound.day not in (1, 28, 29, 30, 31):
                yield bound


def _is_odd_number(bound: Fraction) -> bool:
    digits = _decimal(abs(bound)).replace(".", "").strip("0")
    whole = bound.denominator == 1
    if len(digits) < (5 if whole else 4) or set(digits) == {"9"}:
        return False
    size = abs(int(bound))
    return not (whole and (size in COMMON or size & (size - 1) == 0 or size & (size + 1) == 0))


def _decimal(bound: object) -> str:
    """Return a decimal number as it is written."""
    if not isinstance(bound, Fraction):
        return str(bound)
    places = next((places for places in range(40) if (bound * 10**places).denominator == 1), 40)
    scaled = abs(int(bound * 10**places))
    text = str(scaled).rjust(places + 1, "0")
    sign = "-" if bound < 0 else ""
    return f"{sign}{text[:-places]}.{text[-places:]}" if places else f"{sign}{text}"


def _warning(code: str, about: str, what: str, remedy: str) -> AuditFinding:
    return AuditFinding(code=code, severity=Severity.warning, about=about, what=what, remedy=remedy)


def _remark(code: str, about: str, what: str, remedy: str) -> AuditFinding:
    return AuditFinding(code=code, severity=Severity.remark, about=about, what=what, remedy=remedy)
