"""What another catalog would do to prices and errors, by questions that people have asked, saved, or might ask.

All of it follows from the two catalogs, the public tables and the ledger, as a price does: no private row is read.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, Final, Literal

from lapwing import catalog_changes
from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.suggestions import name_in_sql
from lapwing.documents.catalog_document import PriceChangeDocument, QuestionPriceDocument
from lapwing.errors import LapwingError
from lapwing.privacy.amounts import written
from lapwing.server.saved import SavedItem
from lapwing.session import Session

MOST: Final = 12
"""Questions that are compared."""
MOST_TRIED: Final = 50
"""Questions that are looked at for that."""
RECENT: Final = 200
"""Charges, the newest, among which questions are looked for."""
ASSUMED: Final = 100
"""Rows that a mean is assumed to be of, as its error depends on it."""
USUAL_SHARE: Final = Fraction(1, 20)
"""Of the budget's epsilon: what a question is priced at that has no price of its own."""
MOST_PAID: Final = 1e6
"""The greatest epsilon at which a query that somebody paid is priced again."""
Source = Literal["given", "saved", "asked", "example"]
Asked = tuple[str, str, Source]
"""A question, its epsilon, and where it comes from."""


def compared(
    session: Session, catalog: Catalog, given: Sequence[str], saved: Sequence[SavedItem]
) -> list[PriceChangeDocument]:
    """Price questions by the catalog of a session and by another one; the first so many that are told apart.

    Args:
        given: Questions to be compared, before those that people have saved and asked, and examples.
    """
    found: dict[str, PriceChangeDocument] = {}
    other = catalog_changes.priced_by(session, catalog)
    try:
        for sql, epsilon, source in islice(_questions(session, catalog, given, saved), MOST_TRIED):
            name = " ".join(sql.split())
            if name in found:
                continue
            before, after = _price(session, sql, epsilon), _price(other, sql, epsilon)
            if source != "given" and before["refusal"] and after["refusal"]:
                continue  # as what monitors and trainings were charged by, which are no questions
            found[name] = {"sql": sql, "epsilon": epsilon, "source": source, "before": before, "after": after}
            if len(found) == MOST:
                break
    finally:
        other.public_tables.close()
    return list(found.values())


def _questions(session: Session, catalog: Catalog, given: Sequence[str], saved: Sequence[SavedItem]) -> Iterator[Asked]:
    usual = written(session.catalog.budget.epsilon * USUAL_SHARE)
    yield from ((sql, usual, "given") for sql in given)
    for item in saved:
        question: dict[str, Any] = item.content.get("question") or {}
        if question.get("sql"):
            yield question["sql"], str(question.get("epsilon") or usual), "saved"
    newest, budget = session._state().sequence, session.catalog.budget
    for row in reversed(session.history(after=max(0, newest - RECENT))):
        if row.wording is not None and not row.wording.parameters:
            paid = row.loss.to_epsilon(delta=budget.delta - budget.delta_keys)
            yield row.wording.text, f"{paid:.4g}" if 0 < paid < MOST_PAID else usual, "asked"
    for table in catalog.tables:
        yield from ((sql, usual, "example") for sql in examples(table))


def examples(table: Table) -> Iterator[str]:
    """Yield questions that anybody might ask of a table, by what its catalog says of the columns."""
    name = name_in_sql(table.name)
    yield f"SELECT COUNT(*) AS n FROM {name}"
    bounded = [column for column in table.columns if column.bounded and column.numeric]
    listed = [column for column in table.columns if column.values is not None]
    for column in bounded[:2]:
        yield f"SELECT SUM({name_in_sql(column.name)}) AS total FROM {name}"
    for column in listed[:2]:
        yield f"SELECT {name_in_sql(column.name)}, COUNT(*) AS n FROM {name} GROUP BY {name_in_sql(column.name)}"
    if bounded and listed:
        key = name_in_sql(listed[0].name)
        yield f"SELECT {key}, SUM({name_in_sql(bounded[-1].name)}) AS total FROM {name} GROUP BY {key}"


def _price(session: Session, sql: str, epsilon: str) -> QuestionPriceDocument:
    try:
        preview = session.explain(sql, epsilon=Fraction(epsilon), assuming_count=ASSUMED)
    except LapwingError as error:
        return {"refusal": str(error), "stored": False, "share": None, "cells": None, "columns": []}
    total = session.budget(history=False).total.amount
    return {
        "refusal": preview.refusal,
        "stored": preview.stored,
        "share": float(preview.cost.amount / total),
        "cells": preview.cells,
        "columns": [
            {"name": column.name, "half_width": column.half_width} for column in preview.columns if column.rests_on
        ],
    }
