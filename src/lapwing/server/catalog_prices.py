"""What another catalog would do to prices and errors, by questions that people have asked, saved, or might ask.

All of it follows from the two catalogs, the public tables and the ledger, as a price does: no private row is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, final

from lapwing import catalog_changes
from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.suggestions import name_in_sql
from lapwing.documents.catalog_document import PriceChangeDocument, QuestionPriceDocument
from lapwing.errors import LapwingError
from lapwing.privacy.amounts import written
from lapwing.server.saved import SavedItem
from lapwing.session import Session

if TYPE_CHECKING:
    from lapwing.preview import Preview

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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedQuestion:
    """A question that two catalogs price, by what a person stated who saved or ran it.

    Args:
        epsilon: The cost, unless the question wants an error.
        assuming: The rows that a mean is assumed to be of; `ASSUMED` unless stated.
        source: Where it comes from.
    """

    sql: str
    epsilon: str
    source: Source
    error: str | None = None
    delta: str | None = None
    assuming: int | None = None

    @property
    def name(self) -> tuple[str, str | None, str | None, int | None]:
        """Return a key that no other question has."""
        return " ".join(self.sql.split()), self.error, self.delta, self.assuming

    def explained(self, session: Session) -> "Preview":
        """Return the price, by what the question states.

        Raises:
            LapwingError: If it cannot be answered.
        """
        return session.explain(
            self.sql,
            epsilon=Fraction(self.epsilon) if self.error is None else None,
            error=None if self.error is None else Fraction(self.error),
            delta=None if self.delta is None else Fraction(self.delta),
            assuming_count=self.assuming or ASSUMED,
        )


def compared(
    session: Session, catalog: Catalog, given: Sequence[str], saved: Sequence[SavedItem]
) -> list[PriceChangeDocument]:
    """Price questions by the catalog of a session and by another one; the first so many that are told apart.

    Args:
        given: Questions to be compared, before those that people have saved and asked, and examples.
    """
    found: dict[object, PriceChangeDocument] = {}
    other = catalog_changes.priced_by(session, catalog)
    try:
        for asked in islice(_questions(session, catalog, given, saved), MOST_TRIED):
            if asked.name in found:
                continue
            (before, epsilon), (after, _) = _price(session, asked), _price(other, asked)
            if asked.source != "given" and before["refusal"] and after["refusal"]:
                continue  # as what monitors and trainings were charged by, which are no questions
            found[asked.name] = _document(asked, epsilon, before, after)
            if len(found) == MOST:
                break
    finally:
        other.public_tables.close()
    return list(found.values())


def _document(
    asked: ComparedQuestion, epsilon: str, before: QuestionPriceDocument, after: QuestionPriceDocument
) -> PriceChangeDocument:
    document: PriceChangeDocument = {
        "sql": asked.sql,
        "epsilon": epsilon,
        "source": asked.source,
        "before": before,
        "after": after,
    }
    if asked.error is not None:
        document["error"] = asked.error
    if asked.delta is not None:
        document["delta"] = asked.delta
    if asked.assuming is not None:
        document["assuming_count"] = asked.assuming
    return document


def _questions(
    session: Session, catalog: Catalog, given: Sequence[str], saved: Sequence[SavedItem]
) -> Iterator[ComparedQuestion]:
    usual = written(session.catalog.budget.epsilon * USUAL_SHARE)
    yield from (ComparedQuestion(sql=sql, epsilon=usual, source="given") for sql in given)
    for item in saved:
        question: dict[str, Any] = item.content.get("question") or {}
        if question.get("sql"):
            yield _saved(question, usual)
    newest, budget = session._state().sequence, session.catalog.budget
    for row in reversed(session.history(after=max(0, newest - RECENT))):
        if row.wording is not None and not row.wording.parameters:
            paid = row.loss.to_epsilon(delta=budget.delta - budget.delta_keys)
            epsilon = f"{paid:.4g}" if 0 < paid < MOST_PAID else usual
            yield ComparedQuestion(sql=row.wording.text, epsilon=epsilon, source="asked")
    for table in catalog.tables:
        yield from (ComparedQuestion(sql=sql, epsilon=usual, source="example") for sql in examples(table))


def _saved(question: Mapping[str, Any], usual: str) -> ComparedQuestion:
    """Return a saved question with what it states: a cost or an error, a delta, and rows for means."""
    stated = {name: str(question[name]) for name in ("error", "delta") if question.get(name) is not None}
    epsilon, rows = str(question.get("epsilon") or usual), question.get("assuming_count")
    return ComparedQuestion(sql=question["sql"], epsilon=epsilon, source="saved", assuming=rows, **stated)


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


def _price(session: Session, asked: ComparedQuestion) -> tuple[QuestionPriceDocument, str]:
    """Return the price of a question, and its epsilon."""
    try:
        preview = asked.explained(session)
    except LapwingError as error:
        return {"refusal": str(error), "stored": False, "share": None, "cells": None, "columns": []}, asked.epsilon
    total, budget = session.budget(history=False).total.amount, session.catalog.budget
    epsilon = asked.epsilon
    if asked.error is not None and preview.cost.amount:
        epsilon = f"{preview.cost.to_epsilon(delta=budget.delta - budget.delta_keys):.4g}"
    document: QuestionPriceDocument = {
        "refusal": preview.refusal,
        "stored": preview.stored,
        "share": float(preview.cost.amount / total),
        "cells": preview.cells,
        "columns": [
            {"name": column.name, "half_width": column.half_width} for column in preview.columns if column.rests_on
        ],
    }
    return document, epsilon
