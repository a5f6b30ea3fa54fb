"""The one place where data become an answer: compare, charge, run, add noise, record.

Guarantee: what leaves this module is either a function of the question, the catalog and the ledger alone (a refusal, a
stored answer), or a vector of exact integers to every entry of which a mechanism has added noise, or what a mechanism
has chosen by such integers, and whose loss was durably charged before the first private row was read. The order of the
lines in `release_all` is that argument:

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
5. Every cell of the public domain gets noise of the same law, whether any row fell into it or not.
6. The answer is recorded, and only then returned.

Private keys. Where a key's values are private, line 5 goes twice: the keys are selected first, then the cells of those
that were get noise. Together they lose the selection's loss and the measures', and δ once. Proof. Let unit v be added
to D, which makes D'. The selection is a pair of its loss but for an event of probability δ at most on D': that it
releases a key that only v holds, or that only v brings to the least number of units (`mechanisms.partitions`; in a pure
ledger it is (ε, δ)-DP, which says the same by `privacy.approximate`). Otherwise its outcome is a set K of keys that
could have come from D too. Given K, whichever it is, what is measured in the cells of K is a part of the vector over
all cells, and leaving entries out brings no two vectors further apart: so the sensitivities of `query.stability`, which
hold for any number of cells, hold for it. Hence the measures, chosen in the light of K, are a pair of their own losses,
and losses of pairs chosen along the way add up (`privacy.filters`): with probability 1 − δ keys and values together are
a pair of the sum. What was not selected leaves no trace: its integers are dropped before any noise is drawn, and how
much there is to do from then on follows from K, which is released, and from the public keys. ∎
"""

from collections.abc import Mapping, Sequence
from typing import Final

from lapwing.catalog.model import Catalog, Table
from lapwing.engines import FAILED, Engine, Exact, Holders
from lapwing.errors import DataChanged, DataFault, EngineFault, EntropyFault, Interrupted, LapwingError, LedgerFault
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import IntArray
from lapwing.interrupts import Ending, deferred
from lapwing.ledger.allowances import LimitsNow, require_within
from lapwing.ledger.faults import Cause, given_up
from lapwing.ledger.folding import State
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.records import Charged
from lapwing.ledger.waiting import UnderWay
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.privacy.filters import Refused
from lapwing.query.calibrate import Choosing, Priced, Term
from lapwing.release.cells import Chosen, cells_of, columns_of, exact_values
from lapwing.release.charges import bears, charge_of, exhausted
from lapwing.release.payload import Choice
from lapwing.release.released import Released
from lapwing.release.stored import Offer, offered, payload_of
from lapwing.release.waiting import Waiting

SAID_AFTER_A_CHARGE: Final = (EngineFault, EntropyFault, LedgerFault, Interrupted)
"""Errors that are raised as they are once a price is paid: they are constant, and say whether it is."""


def release_all(
    batch: Sequence[Priced],
    *,
    catalog: Catalog,
    engine: Engine,
    ledger: Ledger,
    entropy: Entropy,
    principal: str,
    then: Sequence[Priced] = (),
    limits: LimitsNow | None = None,
) -> tuple[Released, ...]:
    """Answer priced questions, charging all of them first, or none.

    Args: then: questions that will be asked in the light of the answers, by a call of their own which charges them. If
        anything is to be charged now that would leave too little for them, it is refused. limits: what the asker must
        keep to beside the budget (`ledger.allowances`).
    Guarantee: see the module. Neighbours: the catalog's `neighbouring`; loss: the sum of `priced.loss`, without those
        that have a stored answer.
    Raises: DataChanged, DataStopped, BudgetExhausted, AllowanceExhausted (nothing charged); EngineFault (charged);
        LedgerFault; Interrupted (says whether it was charged).
    """
    charges: list[Charged] = []  # filled where the charge is made, so that a Ctrl-C at any moment finds the truth here
    answers: list[Released] = []
    ended: LapwingError
    ending = Ending()  # pressed while it ends, Ctrl-C would only repeat what is being said

    def leave(cause: Cause) -> bool:
        ending.hold()  # again, for a press that came just before it was held
        recorded = {answer.sequence for answer in answers}
        return ledger.record_unanswered([c.sequence for c in charges if c.sequence not in recorded], cause)

    def charge(offers: Sequence[Offer], version: int, state: State) -> tuple[Charged, ...] | Refused | UnderWay:
        wanted = [charge_of(offer.bought, catalog, principal, version, state) for offer in offers]
        later = [charge_of(priced, catalog, principal, version, state) for priced in then]
        awaited = ledger.under_way(wanted, state.sequence) if wanted and later else None
        if awaited is not None:
            return awaited
        if wanted and later and not bears(state, [*wanted, *later]):
            return Refused(shortfall=wanted[0].loss.nothing())
        if wanted and later and limits is not None:
            require_within(limits(), state.spending, state.registration, [*wanted, *later])
        outcome = ledger.charge_all(wanted, limits, state.sequence)
        if not isinstance(outcome, Refused | UnderWay):
            charges.extend(outcome)
        return outcome

    try:
        try:
            waiting = Waiting(ledger)
            while True:  # all anew after a wait: data may have changed meanwhile, too
                found = [current_version(priced.question.lineage, engine, ledger) for priced in batch]
                version = max((version for version, _ in found), default=0)
                state = ledger.state()  # before answers are looked for: the charge knows of those that come after it
                offers = [offered(priced, ledger) for priced in batch]
                buying = [offer for offer in offers if not isinstance(offer, Released)]
                with deferred():
                    outcome = charge(buying, version, state)
                if not isinstance(outcome, UnderWay):
                    break
                waiting.for_end_of(outcome)
            if isinstance(outcome, Refused):
                raise exhausted([*(offer.bought for offer in buying), *then], ledger.state(), catalog)
            sequences = iter(outcome)
            for offer, (_, digests) in zip(offers, found, strict=True):
                if isinstance(offer, Released):
                    answers.append(offer)
                    continue
                question, charged = offer.bought.question, next(sequences)
                released = _answer(offer, charged, engine.run(question, digests), entropy)
                with deferred():
                    ledger.record_answer(charged.sequence, payload_of(released))
                answers.append(released)
            return tuple(answers)
        finally:
            ending.hold()
    except KeyboardInterrupt:
        leave("interrupt")
        ended = Interrupted(charged=bool(charges))
    except BaseException as error:
        if leave("fault"):
            ended = given_up()
        elif charges and isinstance(error, LapwingError | MemoryError) and not isinstance(error, SAID_AFTER_A_CHARGE):
            ended = EngineFault(FAILED)  # what it says may speak of data, or sound as if nothing was charged
        else:
            raise
    finally:
        ending.let_through()
    raise ended  # out here, so that it does not drag along what happened


def current_version(tables: Sequence[Table], engine: Engine, ledger: Ledger) -> tuple[int, Mapping[str, str]]:
    """Return the ledger's data version and the digests of tables in it, if the data of all are those of it.

    Raises: DataChanged otherwise, or DataFault if there are no data to compare; what is said does not depend on what
        the data hold, nor on columns that the catalog does not declare.
    """
    state = ledger.state()
    found = {table.name: _digest(table, engine) for table in tables}
    for name, digest in found.items():
        if digest is None:
            raise DataFault(
                f"The data of {name} are missing, or cannot be read as the catalog describes them. Nothing was "
                "charged. To the curator, `lapwing data accept` says what is wrong with them."
            )
    digests = {name: digest for name, digest in found.items() if digest is not None}
    for name, digest in digests.items():
        if state.digests.get(name) != digest:
            raise DataChanged(
                f"The data of {name} are not those of version {state.version}. Nothing was charged. "
                "If the change is meant, let the curator run `lapwing data accept`; spending stays with the people."
            )
    return state.version, digests


def _digest(table: Table, engine: Engine) -> str | None:
    try:
        return engine.digest(table)
    except DataFault:
        return None


def _answer(offer: Offer, charged: Charged, exact: Exact, entropy: Entropy) -> Released:
    """Add noise to what the engine found, and take the mean with an answer that is sharpened."""
    bought, further = offer.bought, offer.further
    question = bought.question
    cells = cells_of(question, selected_keys(bought, exact.holders, entropy))
    sums = exact_values(question, exact.cells, cells, exact.leaves)
    if bought.choosing is not None:
        return _chosen(bought, bought.choosing, charged, sums, entropy)
    if further is None:
        values = add_noise(bought.terms, sums, entropy)
        mechanisms: tuple[NoiseLaw, ...] = tuple(term.mechanism for term in bought.terms)
    else:
        places = further.refinement.terms
        fresh = add_noise(bought.terms, [sums[place] for place in places], entropy)
        values, mechanisms = further.refinement.merge(further.stored.values, fresh)
    return Released(
        question=question,
        mechanisms=mechanisms,
        selection=None if bought.selecting is None else bought.selecting.mechanism,
        keys=columns_of(cells, len(question.keys)),
        values=values,
        sequence=charged.sequence,
        cost=bought.loss,
        stored=False,
    )


def _chosen(
    bought: Priced, choosing: Choosing, charged: Charged, sums: Sequence[IntArray], entropy: Entropy
) -> Released:
    """Choose among the measures of a question, and release the place of the best alone.

    Guarantee: the loss of `choosing`; the score of a measure is its sum over all cells.
    """
    scores = [sum(values.tolist()) for values in sums]
    return Released(
        question=bought.question,
        mechanisms=(),
        selection=None,
        keys=((),) * len(bought.question.keys),
        values=(),
        sequence=charged.sequence,
        cost=bought.loss,
        stored=False,
        choice=Choice(place=choosing.mechanism.release(scores, entropy), mechanism=choosing.mechanism),
    )


def selected_keys(priced: Priced, holders: Holders | None, entropy: Entropy) -> Chosen:
    """Return the values of the private keys that are released, in an order that follows from the values.

    Guarantee: the loss of `priced.selecting`, of which the engine has bounded the units: each holds at most
        `max_keys` values, and puts a weight on each that depends on how many it holds.
    """
    if priced.selecting is None or holders is None:
        return ()
    mechanism = priced.selecting.mechanism
    return holders.named(mechanism.select(holders.units_at, holders.weighed(mechanism.weight), entropy))


def add_noise(terms: Sequence[Term], sums: Sequence[IntArray], entropy: Entropy) -> tuple[IntArray, ...]:
    """Add each measure's own noise to every one of its cells."""
    return tuple(term.mechanism.release(values, entropy) for term, values in zip(terms, sums, strict=True))
