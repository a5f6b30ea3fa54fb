"""The one place where data become an answer: compare, charge, run, add noise, record.

Guarantee:
    What leaves this module is either a function of the question, the catalog and the ledger alone (a refusal, a stored
    answer), or a vector of exact integers to every entry of which a mechanism has added noise, or what a mechanism has
    chosen by such integers, and whose loss was durably charged before the first private row was read. The order of the
    lines in `_release` is that argument, and its comments bear these numbers:

1. The data's digest is compared with the ledger's current version. It decides only whether the question is served.
2. A stored answer to the same question about the same data, every number of it at least as accurate as asked, is
   served again: it is post-processing of what was released before, so it costs nothing.
   So is the answer of one that is under way for somebody else at the same moment: it is waited for, and then line 1
   begins again (`ledger.waiting`).
3. The ledger commits the charge, to the parts of the data that the question reads, or refuses it. A crash from here on
   wastes budget and never leaks.
   In gdp and zcdp ledgers a sharper answer to a question that was answered before pays the difference (`refinement`).
4. The engine returns exact integers of the bounded question (`query.stability` proves their sensitivity). If it
   fails, one constant message leaves, the price stays paid, and the ledger counts the fault first (`ledger.faults`).
   So it is where memory runs out after the engine.
5. Every cell of the public domain gets noise of the same law, whether any row fell into it or not. Where keys are
   private, they are selected first, and the cells of those that were get noise (`selecting` has the proof).
6. The answers are recorded, and only then returned.

`release_all` stands around it and keeps the law of interruption: whenever Ctrl-C is pressed or anything raises, each
charge that was made is either answered, or the ledger knows that it ended without an answer before anybody is told.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from lapwing.engines import FAILED, Exact
from lapwing.errors import EngineFault, EntropyFault, Interrupted, LapwingError, LedgerFault
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.ledger.entries import Charged
from lapwing.ledger.faults import given_up
from lapwing.ledger.waiting import UnderWay
from lapwing.machine.interrupts import Ending, deferred
from lapwing.mechanisms.additive import FIRST, NoiseLaw
from lapwing.privacy.filters import Refused
from lapwing.query.pricing.quote import NoisyMeasure, Quote
from lapwing.release.cells import cells_of, columns_of, exact_values
from lapwing.release.payload import payload_of
from lapwing.release.refusals import exhausted, stands_against
from lapwing.release.request import Access, Release
from lapwing.release.selecting import chosen, selected_by_counts, selected_keys
from lapwing.release.stored import Purchase, charge_of, keys_of, look_up
from lapwing.release.versions import current_digests
from lapwing.release.waiting import Waiting

if TYPE_CHECKING:
    from lapwing.release.shared_vectors import Together

SAID_AFTER_A_CHARGE: Final = (EngineFault, LedgerFault, Interrupted)
"""Errors that are raised as they are once a price is paid: they are constant, say whether it is, and hold no sums."""


def release_all(batch: Sequence[Quote], access: Access, *, then: Sequence[Quote] = ()) -> tuple[Release, ...]:
    """Answer priced questions, charging all of them first, or none.

    Args:
        then: Questions that the answers lead to, charged later. A charge that leaves too little for them is refused.

    Guarantee:
        See the module. Neighbours: the catalog's `neighbouring`; loss: the sum of `priced.loss`, without those that
        have a stored answer.

    Raises:
        DataChanged: If the data are another version. Nothing is charged.
        DataStopped: If the data set is stopped. Nothing is charged.
        BudgetExhausted: If the budget does not bear the loss. Nothing is charged.
        AllowanceExhausted: If the limits of who asks do not bear it. Nothing is charged.
        EngineFault: If the question fails after its charge. It is charged.
        LedgerFault: If the ledger cannot be trusted or written.
        Interrupted: If the user stops it. It says whether it was charged.
    """
    # Both are filled where a charge and an answer are made, so that a Ctrl-C at any moment finds the truth in them.
    charges: list[Charged] = []
    answers: list[Release] = []
    ending = Ending()  # pressed while it ends, Ctrl-C would only repeat what is being said
    ended: LapwingError

    def unanswered() -> list[int]:
        ending.hold()  # again, for a press that came just before it was held
        recorded = {answer.sequence for answer in answers}
        return [charge.sequence for charge in charges if charge.sequence not in recorded]

    try:
        try:
            _release(batch, then, access, charges, answers)
            return tuple(answers)
        finally:
            ending.hold()
    except KeyboardInterrupt:
        access.ledger.record_unanswered(unanswered(), "interrupt")
        ended = Interrupted(charged=bool(charges))
    except BaseException as error:
        if access.ledger.record_unanswered(unanswered(), "fault"):
            ended = given_up()
        elif charges and isinstance(error, LapwingError | MemoryError) and not isinstance(error, SAID_AFTER_A_CHARGE):
            # Another in its place: its traceback holds exact sums. What it says is kept only of a lack of randomness:
            # the rest may speak of data, or sound as if nothing was charged.
            ended = EntropyFault(str(error)) if isinstance(error, EntropyFault) else EngineFault(FAILED)
        else:
            raise
    finally:
        ending.let_through()
    raise ended  # out here, so that it does not drag along what happened


def _release(
    batch: Sequence[Quote], then: Sequence[Quote], access: Access, charges: list[Charged], answers: list[Release]
) -> None:
    """Add the answers to priced questions to `answers`, in order, and what they are charged to `charges`."""
    waiting, named = None, [keys_of(priced) for priced in batch]
    keys = [key for of_one in named for key in of_one]
    while True:  # all anew after a wait: data may have changed meanwhile, too
        # 1. Compare.
        state, kept = access.ledger.look_up(keys)  # of answers that come after this state, the charge knows
        digests = [current_digests(priced.question.lineage, access.engine, state) for priced in batch]
        # 2. Serve what is stored.
        answered = dict(zip(keys, kept, strict=True))
        lookups = [look_up(one, answered.__getitem__, access, of) for one, of in zip(batch, named, strict=True)]
        buying = [purchase for purchase in lookups if not isinstance(purchase, Release)]
        for purchase in buying:  # before the charge, as a failure to load something must cost nothing
            access.engine.prepare(purchase.bought.question)
        joint = _joint(buying, access)
        # 3. Charge. Ctrl-C waits until the charge is made and noted, or refused.
        asker = access.catalog, access.principal, state, access.wording
        wanted = [charge_of(purchase.bought, purchase.key, *asker) for purchase in buying]
        with deferred():
            # Searches are worth their price only if the questions after them can be paid, too.
            obstacle = stands_against(wanted, then, state, access) if wanted and then else None
            outcome = obstacle or access.ledger.charge_all(wanted, access.limits, state.sequence)
            if not isinstance(outcome, Refused | UnderWay):
                charges.extend(outcome)
        if not isinstance(outcome, UnderWay):
            break
        waiting = waiting or Waiting(access.ledger, access.timing.waits)
        waiting.for_end_of(outcome)
    if isinstance(outcome, Refused):
        raise exhausted([*(purchase.bought for purchase in buying), *then], access.ledger.state(), access.catalog)
    paid, found, together = iter(outcome), list[Release](), dict[int, Release]()
    try:
        if joint is not None:  # 4. and 5. of questions that are measured together: `shared_vectors` leads to the proofs
            pairs = zip(lookups, digests, strict=True)
            of_buying = [versions for lookup, versions in pairs if isinstance(lookup, Purchase)]
            together = joint.released(buying, outcome, of_buying, access)
        for lookup, versions in zip(lookups, digests, strict=True):
            if isinstance(lookup, Purchase):
                charged, run = next(paid), access.engine.run
                # 4. Run, and 5. add noise. What is exact gets no name here, where an error raised later would hold it.
                lookup = together.get(charged.sequence) or _answer(
                    lookup, charged, run(lookup.bought.question, versions), access.entropy
                )
            found.append(lookup)
    except BaseException:
        with suppress(LapwingError):
            _record(found, charges, answers, access)
        raise
    _record(found, charges, answers, access)


def _joint(buying: Sequence[Purchase], access: Access) -> "Together | None":
    if len(buying) < 2:
        return None
    from lapwing.release.shared_vectors import measured_together  # here: it takes two questions

    return measured_together(buying, access)


def _record(found: Sequence[Release], charges: Sequence[Charged], answers: list[Release], access: Access) -> None:
    """Record answers and add them to `answers`, once they may be known to be there."""
    if charges and access.timing.hold is not None:
        access.timing.hold()
    for answer in found:
        if not answer.stored:
            with deferred():
                access.ledger.record_answer(answer.sequence, payload_of(answer))
        answers.append(answer)


def _answer(purchase: Purchase, charged: Charged, exact: Exact, entropy: Entropy) -> Release:
    """Add noise to what the engine returned, and take the mean with an answer that is sharpened."""
    bought, further = purchase.bought, purchase.refinement
    question = bought.question
    if bought.key_selection is not None and bought.key_selection.counting is not None:
        return selected_by_counts(bought, bought.key_selection.counting, charged, exact, entropy)
    keys = () if bought.key_selection is None else selected_keys(bought, exact.holders, entropy)
    cells = cells_of(question, keys)
    sums = exact_values(question, exact.cells, cells, exact.leaves)
    if bought.choosing is not None:
        return chosen(bought, bought.choosing, charged, sums, entropy)
    if further is None:
        values = add_noise(bought.terms, sums, entropy)
        mechanisms: tuple[NoiseLaw, ...] = tuple(term.mechanism for term in bought.terms)
    else:
        fresh = add_noise(bought.terms, [sums[place] for place in further.refinement.fresh], entropy)
        values, mechanisms = further.refinement.merge(further.stored.values, fresh)
    return Release(
        question=question,
        mechanisms=mechanisms,
        selection=None if bought.key_selection is None else bought.key_selection.mechanism,
        keys=columns_of(cells, len(question.keys)),
        values=values,
        sequence=charged.sequence,
        cost=bought.loss,
        refined=further is not None,
    )


def add_noise(terms: Sequence[NoisyMeasure], sums: Sequence[IntArray], entropy: Entropy) -> tuple[IntArray, ...]:
    """Add each measure's own noise to every one of its cells, or release what is chosen by all of them together."""
    if terms and terms[0].mechanism.name == FIRST:
        from lapwing.query.pricing.choices import released_first  # loaded when it was priced

        return released_first(terms, sums, entropy)
    return tuple(term.mechanism.release(values, entropy) for term, values in zip(terms, sums, strict=True))
