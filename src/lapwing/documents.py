"""Answers, previews and budgets as JSON documents, for programs; and read back from them by another Lapwing.

Losses and shares are exact texts. A number of an answer is a JSON number where that is exact, else a text; `types` says
what each column is, so that a reader can make the same Python values of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from lapwing.answer.facts import ColumnFacts, MeasureFacts
from lapwing.answer.showing import Cell, EndArray
from lapwing.budget import BudgetView
from lapwing.ledger.allowances import Spent
from lapwing.ledger.records import FaultRow, HistoryRow
from lapwing.preview import ColumnPreview, MeasurePreview, PartPreview, Preview, SelectionPreview
from lapwing.privacy.amounts import exact, read, written
from lapwing.privacy.measures import Loss, from_record
from lapwing.privacy.odometers import Reading
from lapwing.privacy.parts import PartsAccount, Sums
from lapwing.query.derivation.derived import KeyValue

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answer import Answer
    from lapwing.answer.consistent import ConsistentAnswer

Document = dict[str, Any]


class AnswerShown(Protocol):
    """What is needed of an answer to write it down, wherever it came from."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    @property
    def cost(self) -> Loss:
        """What was charged."""
        ...

    @property
    def stored(self) -> bool:
        """Whether it was bought before."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Public facts that a reader should know."""
        ...

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts."""
        ...

    def interval(self, confidence: Fraction, /) -> Mapping[str, tuple[EndArray, EndArray]]:
        """Return the ends of an interval for each noisy column."""
        ...

    def to_arrow(self, confidence: Fraction, /) -> "pa.Table":
        """Return a table with the intervals."""
        ...


# ---- Answers ---------------------------------------------------------------------------------------------------------


def answer_document(answer: AnswerShown, confidence: Fraction) -> Document:
    """Return an answer with its intervals, cost and notes."""
    ends = answer.interval(confidence)
    return {
        "columns": list(answer.columns),
        "rows": [{name: json_value(value) for name, value in row.items()} for row in answer.rows()],
        "confidence": float(confidence),
        "intervals": {
            name: {"low": [json_value(x) for x in low.tolist()], "high": [json_value(x) for x in high.tolist()]}
            for name, (low, high) in ends.items()
        },
        "cost": answer.cost.to_record(),
        "stored": answer.stored,
        "notes": list(answer.notes),
    }


def described(answer: "Answer") -> Document:
    """Return what is public about the columns of an answer: which are keys, and the noise of the others."""
    keys = [output.name for output in answer.plan.outputs if isinstance(output.value, KeyValue)]
    return {"keys": keys, "facts": [asdict(column) for column in answer.describe()]}


def facts_of(documents: Sequence[Mapping[str, Any]]) -> tuple[ColumnFacts, ...]:
    """Read what `described` wrote as facts."""
    return tuple(
        ColumnFacts(
            name=column["name"],
            measures=tuple(MeasureFacts(**measure) for measure in column["measures"]),
            half_width=column["half_width"],
            price_share=column["price_share"],
            notes=tuple(column["notes"]),
        )
        for column in documents
    )


def consistent_document(view: "ConsistentAnswer") -> Document:
    """Return the rows of a made-consistent view, and which columns it changed."""
    rows = [{name: json_value(value) for name, value in row.items()} for row in view.rows()]
    return {"columns": list(view.columns), "rows": rows, "changed": list(view.changed)}


def json_value(value: Cell) -> bool | int | float | str | None:
    """Return a value that JSON has; a decimal is a number where that is exact, else a text."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return float(value) if Decimal(repr(float(value))) == value else f"{value:f}"
        case date():
            return value.isoformat()
        case _:
            return value


def value_of(value: bool | int | float | str | None, type_: str) -> Cell:
    """Read what `json_value` wrote of a value of a column's type.

    >>> value_of(1.5, "decimal"), value_of("2024-12-31", "date")
    (Decimal('1.5'), datetime.date(2024, 12, 31))
    """
    if value is None:
        return None
    match type_:
        case "decimal":
            return Decimal(str(value))
        case "real":
            return float(value)
        case "date":
            return date.fromisoformat(str(value))
        case "timestamp":
            return datetime.fromisoformat(str(value))
        case _:
            return value


def arrow_stream(table: "pa.Table") -> bytes:
    """Return a table as an Arrow IPC stream."""
    from pyarrow import BufferOutputStream, ipc  # a large library that only this format needs

    sink = BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


# ---- Previews --------------------------------------------------------------------------------------------------------


def preview_document(preview: Preview, neighbouring: str) -> Document:
    """Return a preview."""
    part = preview.share_of_remaining
    return {
        "cost": preview.cost.to_record(),
        "price": preview.price.to_record(),
        "epsilon": preview.epsilon,
        "epsilon_means": "the price of this question alone",
        "stored": preview.stored,
        "share_of_remaining": part if math.isfinite(part) else None,
        "remaining": preview.remaining.to_record(),
        "fits": preview.fits,
        "cells": preview.cells,
        "delta": float(preview.delta),
        "unit": preview.unit,
        "bound": preview.bound,
        "neighbouring": neighbouring,
        "assuming_count": preview.assuming_count,
        "sharpens": preview.sharpens,
        "selection": None if preview.selection is None else asdict(preview.selection),
        "columns": [asdict(column) for column in preview.columns],
        "measures": [asdict(measure) for measure in preview.measures],
        "notes": list(preview.notes),
        "parts": None if preview.parts is None else [_part_document(part) for part in preview.parts],
    }


def _part_document(part: PartPreview) -> Document:
    return {"part": part.part, "spent": part.spent.to_record(), "remaining": part.remaining.to_record()}


def preview_of(document: Mapping[str, Any]) -> Preview:
    """Read what `preview_document` wrote."""
    share, selection, parts = (document[name] for name in ("share_of_remaining", "selection", "parts"))
    return Preview(
        cost=from_record(document["cost"]),
        price=from_record(document["price"]),
        epsilon=document["epsilon"],
        share_of_remaining=math.inf if share is None else share,
        remaining=from_record(document["remaining"]),
        fits=document["fits"],
        cells=document["cells"],
        unit=document["unit"],
        bound=document["bound"],
        measures=tuple(MeasurePreview(**measure) for measure in document["measures"]),
        columns=tuple(
            ColumnPreview(**{**column, "rests_on": tuple(column["rests_on"])}) for column in document["columns"]
        ),
        notes=tuple(document["notes"]),
        delta=exact(document["delta"], "delta"),
        sharpens=document["sharpens"],
        assuming_count=document["assuming_count"],
        parts=None if parts is None else tuple(_part_of(part) for part in parts),
        selection=None if selection is None else SelectionPreview(**{**selection, "keys": tuple(selection["keys"])}),
    )


def _part_of(document: Mapping[str, Any]) -> PartPreview:
    spent, remaining = from_record(document["spent"]), from_record(document["remaining"])
    return PartPreview(part=document["part"], spent=spent, remaining=remaining)


# ---- Budgets ---------------------------------------------------------------------------------------------------------


def budget_document(view: BudgetView) -> Document:
    """Return a budget."""
    return {
        "total": view.total.to_record(),
        "spent": view.spent.to_record(),
        "remaining": view.remaining.to_record(),
        "share_spent": view.share_spent,
        "guarantee": {"epsilon": written(view.epsilon), "delta": written(view.delta)},
        "spent_epsilon": view.as_if_cap.epsilon,
        "spent_epsilon_means": view.as_if_cap.holds,
        "spent_epsilon_whenever": view.whenever.epsilon,
        "spent_epsilon_whenever_means": f"{view.whenever.holds}: at most",
        "spent_delta": written(view.as_if_cap.delta),
        "delta_keys": written(view.delta_keys),
        "delta_keys_spent": written(view.delta_keys_spent),
        "version": view.version,
        "faults": view.faults,
        "stopped": view.stopped,
        "closed": view.closed,
        "earlier": [{"epsilon": written(epsilon), "delta": written(delta)} for epsilon, delta in view.earlier],
        "raised": None if view.raised is None else _reading_document(view.raised),
        "more_like_the_last": view.fits(view.history[-1].loss, view.history[-1].parts) if view.history else None,
        "parts": None if view.by_part is None else _parts_document(view, view.by_part),
        "history": [history_document(row) for row in view.history],
    }


def _parts_document(view: BudgetView, by_part: PartsAccount) -> list[Document]:
    left = by_part.rooms()
    return [
        {
            "part": part,
            "spent": spent.to_record(),
            "remaining": left[part].to_record(),
            "spent_delta_keys": written(view.delta_by_part[part]),
        }
        for part, spent in view.parts.items()
    ]


def history_document(row: HistoryRow) -> Document:
    """Return one charge."""
    return {
        "sequence": row.sequence,
        "time": row.time,
        "principal": row.principal,
        "question": row.question,
        "loss": row.loss.to_record(),
        "delta": written(row.delta),
        "version": row.version,
        "answered": row.answered,
        "unanswered": row.unanswered,
        "parts": None if row.parts is None else list(row.parts),
    }


def account_document(view: BudgetView) -> Document:
    """Return a budget with all that `account_of` needs to make the same view of it."""
    by_part = view.by_part
    return budget_document(view) | {
        "readings": {name: _reading_document(getattr(view, name)) for name in ("as_if_cap", "whenever")},
        "spending": {
            name: {"amount": written(spent.amount), "delta": written(spent.delta)}
            for name, spent in view.spending.items()
        },
        "division": None if by_part is None else _division_document(by_part),
    }


def _reading_document(reading: Reading) -> Document:
    return {"epsilon": reading.epsilon, "delta": written(reading.delta), "holds": reading.holds}


def _division_document(account: PartsAccount) -> Document:
    return {
        "neighbouring": account.neighbouring,
        "data_version": account.data_version,
        "parts": list(account.parts),
        "differ": account.sums.differ,
        "everywhere": written(account.sums.everywhere),
        "alone": [[part, written(amount)] for part, amount in account.sums.alone],
    }


def account_of(document: Mapping[str, Any]) -> BudgetView:
    """Read what `account_document` wrote."""
    total, readings, division = from_record(document["total"]), document["readings"], document["division"]
    parts, raised = document["parts"] or (), document["raised"]
    return BudgetView(
        total=total,
        spent=from_record(document["spent"]),
        remaining=from_record(document["remaining"]),
        epsilon=read(document["guarantee"]["epsilon"], "epsilon"),
        delta=read(document["guarantee"]["delta"], "delta"),
        as_if_cap=_reading_of(readings["as_if_cap"]),
        whenever=_reading_of(readings["whenever"]),
        version=document["version"],
        history=history_of(document["history"]),
        delta_keys=read(document["delta_keys"], "delta_keys"),
        delta_keys_spent=read(document["delta_keys_spent"], "delta_keys_spent"),
        by_part=None if division is None else _division_of(total, division),
        delta_by_part={part["part"]: read(part["spent_delta_keys"], "delta") for part in parts},
        faults=document["faults"],
        stopped=document["stopped"],
        spending={
            name: Spent(amount=read(spent["amount"], "amount"), delta=read(spent["delta"], "delta"))
            for name, spent in document["spending"].items()
        },
        closed=document["closed"],
        earlier=tuple((read(was["epsilon"], "epsilon"), read(was["delta"], "delta")) for was in document["earlier"]),
        raised=None if raised is None else _reading_of(raised),
    )


def _reading_of(document: Mapping[str, Any]) -> Reading:
    return Reading(epsilon=document["epsilon"], delta=read(document["delta"], "delta"), holds=document["holds"])


def _division_of(budget: Loss, document: Mapping[str, Any]) -> PartsAccount:
    sums = Sums(
        differ=document["differ"],
        everywhere=read(document["everywhere"], "everywhere"),
        alone=tuple((part, read(amount, part)) for part, amount in document["alone"]),
    )
    return PartsAccount(
        budget=budget,
        neighbouring=document["neighbouring"],
        data_version=document["data_version"],
        parts=tuple(document["parts"]),
        sums=sums,
    )


def faults_of(documents: Sequence[Mapping[str, Any]]) -> tuple[FaultRow, ...]:
    """Read the faults that a service tells of."""
    return tuple(FaultRow(**{**fault, "charges": history_of(fault["charges"])}) for fault in documents)


def history_of(rows: Sequence[Mapping[str, Any]]) -> tuple[HistoryRow, ...]:
    """Read what `history_document` wrote, of each charge."""
    return tuple(
        HistoryRow(
            sequence=row["sequence"],
            time=row["time"],
            principal=row["principal"],
            question=row["question"],
            loss=from_record(row["loss"]),
            version=row["version"],
            answered=row["answered"],
            delta=read(row["delta"], "delta"),
            parts=None if row["parts"] is None else tuple(row["parts"]),
            unanswered=row["unanswered"],
        )
        for row in rows
    )
