"""Budgets, their histories and their faults as JSON documents, and read back."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

from lapwing.budget import AllowanceView, BudgetView, Readings
from lapwing.documents.answer_document import Record
from lapwing.ledger.reading import FaultRow, HistoryRow
from lapwing.ledger.state import Spent
from lapwing.ledger.wording import Wording
from lapwing.privacy.amounts import read, written
from lapwing.privacy.measures import Loss, from_record
from lapwing.privacy.odometers import Reading
from lapwing.privacy.parts import PartsAccount, PartSums


class GuaranteeDocument(TypedDict):
    """An (ε, δ), exactly."""

    epsilon: str
    delta: str


class ReadingDocument(TypedDict):
    """An (ε, δ) for what is spent, and when it `holds`; no ε where none is proven."""

    epsilon: float | None
    delta: str
    holds: str


class AllowanceDocument(TypedDict):
    """A share of the budget that holds for the caller."""

    holder: str
    share: str
    spent: Record
    remaining: Record
    delta_remaining: str


class PartDocument(TypedDict):
    """What is spent and left of one part of the data."""

    part: str
    spent: Record
    remaining: Record
    spent_delta_keys: str


class DivisionDocument(TypedDict):
    """How the account of data in parts stands."""

    neighbouring: str
    data_version: str
    parts: list[str]
    differ: int
    everywhere: str
    alone: list[list[str]]


class SpentDocument(TypedDict):
    """What somebody was charged."""

    amount: str
    delta: str


class ChargeDocument(TypedDict):
    """A charge: what was typed and the canonical `question`. `unanswered` says why it bought nothing, if that is known.

    Earlier versions of Lapwing kept no `text`. A date or a decimal among the `parameters` is a text. `first` tells a
    charge for limits or constants that a query needed before it was run; the charge of the query itself follows.
    """

    sequence: int
    time: str
    principal: str
    question: str
    loss: Record
    delta: str
    version: int
    answered: bool
    unanswered: str | None
    parts: list[str] | None
    text: str | None
    parameters: list[Any] | dict[str, Any]
    label: str | None
    first: bool


class FaultDocument(TypedDict):
    """Questions that ended after their charge."""

    sequence: int
    time: str
    cause: str
    charges: list[ChargeDocument]


class StandingDocument(TypedDict):
    """What is granted, spent and left; `allowances` bind the caller, `most` is what one question may cost at most. A
    service adds `least`: the minimum cost of a question, a share of the budget. It adds `stop_reason`, the words of the
    curator who stopped the data set. With `own_history` the history has only the caller's charges."""  # noqa: D205, D209

    total: Record
    spent: Record
    remaining: Record
    share_spent: float
    guarantee: GuaranteeDocument
    spent_epsilon: float | None
    spent_epsilon_means: str
    spent_epsilon_whenever: float | None
    spent_epsilon_whenever_means: str
    spent_delta: str
    delta_keys: str
    delta_keys_spent: str
    version: int
    faults: int
    late: int
    stopped: bool
    stopped_by_curator: bool
    closed: bool
    lost: bool
    allowances: list[AllowanceDocument]
    most: Record | None
    earlier: list[GuaranteeDocument]
    raised: ReadingDocument | None
    parts: list[PartDocument] | None
    least: NotRequired[str]
    stop_reason: NotRequired[str | None]
    own_history: NotRequired[bool]


class BudgetDocument(StandingDocument):
    """A budget with the charges that were made, and how many more at the price of the last it would hold."""

    more_like_the_last: int | None
    history: list[ChargeDocument]


class AccountDocument(StandingDocument):
    """A budget, and all but the history that a client needs to make the same view of it."""

    readings: dict[str, ReadingDocument]
    spending: dict[str, SpentDocument]
    division: DivisionDocument | None


def budget_document(view: BudgetView, most: int | None = None) -> BudgetDocument:
    """Return a budget with its history.

    Args:
        most: With so many of the newest charges, None for all.
    """
    rows = view.history if most is None else view.history[-most:] if most else ()
    last = view.history[-1] if view.history else None
    return {
        **_standing(view),
        "more_like_the_last": None if last is None else view.fits(last.loss, last.parts, last.delta),
        "history": [history_document(row) for row in rows],
    }


def _standing(view: BudgetView) -> StandingDocument:
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
        "late": view.late,
        "stopped": view.stopped,
        "stopped_by_curator": view.stopped_by_curator,
        "closed": view.closed,
        "lost": view.lost,
        "allowances": [_allowance_document(allowance) for allowance in view.allowances],
        "most": None if view.most is None else view.most.to_record(),
        "earlier": [{"epsilon": written(epsilon), "delta": written(delta)} for epsilon, delta in view.earlier],
        "raised": None if view.raised is None else _reading_document(view.raised),
        "parts": None if view.by_part is None else _parts_document(view, view.by_part),
        "own_history": view.own_history,
    }


def _allowance_document(allowance: AllowanceView) -> AllowanceDocument:
    return {
        "holder": allowance.holder,
        "share": written(allowance.share),
        "spent": allowance.spent.to_record(),
        "remaining": allowance.remaining.to_record(),
        "delta_remaining": written(allowance.delta_remaining),
    }


def _parts_document(view: BudgetView, by_part: PartsAccount) -> list[PartDocument]:
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


def history_document(row: HistoryRow) -> ChargeDocument:
    """Return one charge."""
    wording = row.wording
    given: Any = () if wording is None else wording.parameters
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
        "text": None if wording is None else wording.text,
        "parameters": dict(given) if isinstance(given, Mapping) else list(given),
        "label": None if wording is None else wording.label,
        "first": wording is not None and wording.first,
    }


def account_document(view: BudgetView) -> AccountDocument:
    """Return a budget with all that `account_of` needs, beside its history, to make the same view of it."""
    by_part = view.by_part
    return {
        **_standing(view),
        "readings": {"as_if_cap": _reading_document(view.as_if_cap), "whenever": _reading_document(view.whenever)},
        "spending": {
            name: {"amount": written(spent.amount), "delta": written(spent.delta)}
            for name, spent in view.spending.items()
        },
        "division": None if by_part is None else _division_document(by_part),
    }


def _reading_document(reading: Reading) -> ReadingDocument:
    return {"epsilon": reading.epsilon, "delta": written(reading.delta), "holds": reading.holds}


def _division_document(account: PartsAccount) -> DivisionDocument:
    return {
        "neighbouring": account.neighbouring,
        "data_version": account.data_version,
        "parts": list(account.parts),
        "differ": account.sums.differ,
        "everywhere": written(account.sums.everywhere),
        "alone": [[part, written(amount)] for part, amount in account.sums.alone],
    }


def fault_document(fault: FaultRow) -> FaultDocument:
    """Return one fault with its charges."""
    return {
        "sequence": fault.sequence,
        "time": fault.time,
        "cause": fault.cause,
        "charges": [history_document(row) for row in fault.charges],
    }


def account_of(document: Mapping[str, Any], history: Sequence[HistoryRow]) -> BudgetView:
    """Read what `account_document` wrote."""
    total, readings, division = from_record(document["total"]), document["readings"], document["division"]
    parts, raised = document["parts"] or (), document["raised"]
    return BudgetView(
        total=total,
        spent=from_record(document["spent"]),
        remaining=from_record(document["remaining"]),
        epsilon=read(document["guarantee"]["epsilon"], "epsilon"),
        delta=read(document["guarantee"]["delta"], "delta"),
        readings=Readings(_reading_of(readings["as_if_cap"]), _reading_of(readings["whenever"])),
        version=document["version"],
        history=history,
        delta_keys=read(document["delta_keys"], "delta_keys"),
        delta_keys_spent=read(document["delta_keys_spent"], "delta_keys_spent"),
        by_part=None if division is None else _division_of(total, division),
        delta_by_part={part["part"]: read(part["spent_delta_keys"], "delta") for part in parts},
        faults=document["faults"],
        late=document.get("late", 0),  # older services count none
        stopped=document["stopped"],
        spending={
            name: Spent(amount=read(spent["amount"], "amount"), delta=read(spent["delta"], "delta"))
            for name, spent in document["spending"].items()
        },
        closed=document["closed"],
        lost=document["lost"],
        allowances=tuple(map(_allowance_of, document["allowances"])),
        most=None if document["most"] is None else from_record(document["most"]),
        stopped_by_curator=document["stopped_by_curator"],
        earlier=tuple((read(was["epsilon"], "epsilon"), read(was["delta"], "delta")) for was in document["earlier"]),
        raised=None if raised is None else _reading_of(raised),
        own_history=document.get("own_history", False),
    )


def _allowance_of(document: Mapping[str, Any]) -> AllowanceView:
    return AllowanceView(
        holder=document["holder"],
        share=read(document["share"], "share"),
        spent=from_record(document["spent"]),
        remaining=from_record(document["remaining"]),
        delta_remaining=read(document.get("delta_remaining", "0"), "delta_remaining"),
    )


def _reading_of(document: Mapping[str, Any]) -> Reading:
    return Reading(epsilon=document["epsilon"], delta=read(document["delta"], "delta"), holds=document["holds"])


def _division_of(budget: Loss, document: Mapping[str, Any]) -> PartsAccount:
    sums = PartSums(
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
            wording=None if row.get("text") is None else Wording.from_record(row),  # older services tell of none
        )
        for row in rows
    )
