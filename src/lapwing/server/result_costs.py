"""The whole cost of a result: the loss that a published page states for it.

Guarantee:
    The returned loss is no smaller than the loss of the numbers that the result shows. A result that was bought before
    was paid by an earlier request. A result that makes an earlier one more exact was charged only the difference. Its
    numbers follow from both releases, so both charges count. A ledger adds such losses up (`release.refinement`).
    Such charges are all for one version of the data. The record does not say which, so the dearest version counts.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from lapwing.answer.notes import REFINED
from lapwing.documents.answer_document import codes_of, notes_in
from lapwing.errors import InvalidParameter
from lapwing.ledger.charged_queries import in_all
from lapwing.ledger.reading import HistoryRow
from lapwing.privacy.measures import from_record
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.recorded_results import asked_of, same_release
from lapwing.server.service import Service

_UNKNOWN: Final = "so its cost is unknown. Use another one."


def cost_in_all(service: Service, record: AnswerRecord) -> Mapping[str, str]:
    """Return the record of all charges that a result is made of.

    Raises:
        InvalidParameter: If they are not known.
    """
    if record.document["stored"]:
        first = service.answers.bought_first(record, same_release)
        if first is None:
            raise InvalidParameter(f"Lapwing no longer stores the first copy of this result, {_UNKNOWN}")
        record = first
    cost: Mapping[str, str] = record.document["cost"]
    if REFINED not in codes_of(notes_in(record.document)):
        return cost
    history = service.datasets.session_of(record.dataset).history()
    charges = _charges_of(history, record)
    versions = {row.version for row in charges}
    found = [in_all(history, [row for row in charges if row.version == version]) for version in versions]
    sums = [sum((row.loss for row in rows[1:]), rows[0].loss) for rows in found if len(rows) > 1]
    if not sums:  # the earlier charge is not among them
        raise InvalidParameter(f"The ledger does not say which earlier result this one refines, {_UNKNOWN}")
    return max(*sums, from_record(cost), key=lambda loss: loss.amount).to_record()


def _charges_of(history: Sequence[HistoryRow], record: AnswerRecord) -> list[HistoryRow]:
    """Return the charges for the query of a result, as it was typed; later ones too, which states more than is due."""
    request = asked_of(record)
    asked = _asked(request.get("sql"), request.get("parameters"))
    return [row for row in history if row.wording and _asked(row.wording.text, row.wording.parameters) == asked]


def _asked(text: object, parameters: object) -> tuple[object, list[str]]:
    given = parameters or ()
    named = given.items() if isinstance(given, Mapping) else enumerate(given if isinstance(given, Sequence) else ())
    return text, [f"{name}={value}" for name, value in named]
