"""Identical questions at the same moment: the first is charged, and the others wait for its answer, which is free.

While a charge is under way its answer is not there yet, so an identical question that is asked meanwhile would be paid
a second time, for nothing. So the transaction that is to make a charge looks first whether one for the same key and the
same version of the data, and of at least the same loss, is under way by an asker that is present. Then nothing is
charged, and the caller is told which charge to wait for. Charges are made one after another, so of any number of
identical questions one finds none under way, and is charged, and the others find it.

Whoever asks has looked for answers before that transaction. An answer that was recorded in between was not found then,
and its charge is no longer under way now. So the transaction reports it too (`since`), and the caller looks again.

Who waits holds nothing: no charge, no lock, no turn. A batch is charged all at once or not at all, so none of its
questions is under way while it waits. Hence nobody waits for somebody who waits, and there is no circle.

Waiting ends when the charge that was waited for ends, however it does. Answered: its answer is served for nothing,
where it is at least as accurate in every number. (The loss alone does not tell, as two questions of one loss may split
it differently; then this one is charged as usual.) Unanswered, or its asker dead: this one is charged, or waits for the
next charge of the same. An analyst learns from it that somebody asked the same and how long the answer took, which any
stored answer shows as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import Charge, subject_of
from lapwing.ledger.state import LedgerState
from lapwing.ledger.store import Log


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A charge to wait for: somebody asks the same, or just had an answer; `sequence` names it. Nothing was charged."""

    sequence: int


def under_way(state: LedgerState, requests: Sequence[Charge], log: Log, since: int | None = None) -> UnderWay | None:
    """Return a charge whose answer may serve one of these requests, if there is one.

    Nothing comes of any that is under way while the data set is stopped.

    Args:
        since: The newest entry when answers were looked for; what was answered after it is returned, too.
    """
    if state.stopped:
        return None
    # Before what is under way: what was answered since then is under way no more, and would be paid for again.
    if since is not None and since < state.sequence:
        answered = _answered(requests, log, since)
        if answered is not None:
            return answered
    if not state.under_way:
        return None
    first = min(state.under_way)
    for request in requests:
        for entry in log.charges(subject_of(request.key), since=first):
            if entry.sequence in state.under_way and _serves(entry.charge(), request):
                return UnderWay(sequence=entry.sequence)
    return None


def _answered(requests: Sequence[Charge], log: Log, since: int) -> UnderWay | None:
    """Return a charge that was answered after an entry, and may serve one of these requests."""
    for request in requests:
        for entry in log.answered_charges(subject_of(request.key)):
            answer = log.answer(entry.sequence)
            late = answer is not None and answer.sequence > since
            if late and _serves(entry.charge(), request):
                return UnderWay(sequence=entry.sequence)
    return None


def _serves(known: Charge, wanted: Charge) -> bool:
    """Tell whether the answer of one charge may be as accurate as another's would be."""
    if (known.key, known.version, known.loss.kind) != (wanted.key, wanted.version, wanted.loss.kind):
        return False
    return known.loss.amount >= wanted.loss.amount and known.delta >= wanted.delta


def still_waiting(seconds: float) -> LedgerFault:
    """Return the fault of a question that has waited for another for too long."""
    return LedgerFault(
        f"Somebody else is running the same query, and has had no result for {seconds:g} seconds. Nothing was "
        f"charged. Run it again later; it is then free."
    )
