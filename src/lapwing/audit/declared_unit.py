"""The privacy unit of a catalog: is it the person whom people have in mind? The check reads no row."""

import re
from collections.abc import Iterator
from typing import Final

from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.catalog.graph import EDGE
from lapwing.catalog.model import Catalog, Table

ROWS_LARGE: Final = 100
ROWS_VERY_LARGE: Final = 10_000
"""Rows of a unit from which on noise hides most results."""
PERSON: Final = re.compile(r"(person|people|patient|user|customer|client|member|employee|student|citizen|subject|ssn)")
EVENT: Final = re.compile(r"(visit|order|trip|event|session|transaction|encounter|admission|purchase|record|row|line)")
GROUP: Final = re.compile(r"(household|family|device|card|account|vehicle|phone|ip)")


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the check of the privacy unit."""
    catalog = subject.catalog
    findings = [finding for table in catalog.tables for finding in _of_table(table)]
    findings += [*_of_graphs(catalog), *_of_all(catalog)]
    yield AuditCheck(
        name="privacy unit",
        tried=len(catalog.tables) + len(catalog.graphs),
        what_was_tried="tables and graphs: the unit that each protects, its links, its parts and its row limit",
        power="A unit that is a row, an event, a day of a person or an edge, and a row limit of "
        f"{ROWS_VERY_LARGE:,} or more. Names decide: a unit with a misleading name is not found.",
        not_tried="Whether the unit column really names people: one person with two identifiers has two budgets.",
        findings=tuple(findings),
    )


def _of_table(table: Table) -> Iterator[AuditFinding]:
    about, unit = f"table {table.name}", (table.root.privacy_unit or "").casefold()
    if table.unit_is_row:
        people = [column.name for column in table.columns if PERSON.search(column.name.casefold())]
        named = f" The column {people[0]} seems to name people." if people else ""
        yield _warning(
            "unit_is_row",
            about,
            f"Each row is protected by itself. A person with k rows is protected k times less.{named}",
            "If a person can have several rows, declare `privacy_unit` with the column that names the person.",
        )
    elif table.root.unit_day is not None:
        yield _warning(
            "unit_is_a_day",
            about,
            f"The unit is a {unit} and a day. Results hide one day of a person, and not the person.",
            "Say so wherever you name the guarantee, or use the person as the unit.",
        )
    elif EVENT.search(unit) and not PERSON.search(unit):
        yield _warning(
            "unit_may_be_an_event",
            about,
            f"The unit {table.root.privacy_unit} seems to be an event. A person with several is protected less.",
            "If a person can have several of these, declare the column that names the person.",
        )
    elif GROUP.search(unit):
        yield _remark(
            "unit_may_be_a_group",
            about,
            f"The unit {table.root.privacy_unit} may stand for several people, or for one of several of a person.",
            "Check that a person belongs to one of them only.",
        )
    if table.max_rows_per_unit >= ROWS_VERY_LARGE:
        yield _warning(
            "max_rows_very_large",
            about,
            f"A unit may have {table.max_rows_per_unit:,} rows. Noise on counts hides that many rows.",
            "Choose a limit that nearly all units keep, from public knowledge.",
        )
    elif table.max_rows_per_unit >= ROWS_LARGE:
        yield _remark(
            "max_rows_large",
            about,
            f"A unit may have {table.max_rows_per_unit:,} rows, and noise on counts hides that many.",
            "Check that the limit is not the largest number in the data.",
        )
    if table.part is not None:
        yield _remark(
            "parts",
            about,
            f"Queries about some values of {table.part} are charged to these parts only. A person counts in one part.",
            "Check that nobody belongs to several parts: such rows are lost, and no result says so.",
        )
    if table.link is not None:
        yield _remark(
            "linked",
            about,
            f"Rows belong to units of {table.root.name}, along links. Rows without a parent do not exist for queries.",
            "Check that the link leads to the person whom the row is about.",
        )


def _of_graphs(catalog: Catalog) -> Iterator[AuditFinding]:
    for graph in catalog.graphs:
        if graph.privacy == EDGE:
            yield _warning(
                "edge_privacy",
                f"graph {graph.name}",
                "The unit is an edge. Results hide one relation, and not a person with all relations.",
                "Use node privacy where people expect to be protected as a whole.",
            )
        if graph.ledger is not None and graph.ledger != catalog.ledger:
            yield _warning(
                "several_ledgers",
                f"graph {graph.name}",
                "The graph has a ledger of its own. People in the graph and in the tables are promised the sum of both "
                "budgets.",
                "Name the sum wherever you name the guarantee.",
            )


def _of_all(catalog: Catalog) -> Iterator[AuditFinding]:
    units = {table.units: table.name for table in catalog.tables}
    if len(units) > 1:
        names = ", ".join(sorted(units.values()))
        yield _remark(
            "several_units",
            "all tables",
            f"Tables protect different units: {names}. Nothing says that these are the same people.",
            "If they are, say so with `unit`, or link the tables.",
        )


def _warning(code: str, about: str, what: str, remedy: str) -> AuditFinding:
    return AuditFinding(code=code, severity=Severity.warning, about=about, what=what, remedy=remedy)


def _remark(code: str, about: str, what: str, remedy: str) -> AuditFinding:
    return AuditFinding(code=code, severity=Severity.remark, about=about, what=what, remedy=remedy)
