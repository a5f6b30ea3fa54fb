"""The one place where data become an answer: compare, charge, run, add noise, record.

Guarantee: what leaves this module is either a function of the question, the catalog and the ledger alone (a refusal, a
stored answer), or a vector of exact integers to which every entry of which a mechanism has added noise, and whose loss
was durably charged before the first private row was read. The order of the lines in `release_all` is that argument:

1. The data's digest is compared with the ledger's current version. It decides only whether the question is served.
2. A stored answer to the same question about the same data, every number of it at least as accurate as asked, is
   served again: it is post-processing of what was released before, so it costs nothing.
3. The ledger commits the charge, to the parts of the data that the question reads, or refuses it. A crash from here on
   wastes budget and never leaks.
   In gdp and zcdp ledgers a sharper answer to a question that was answered before pays the difference (`refinement`).
4. The engine returns exact integers of the bounded question (`query.stability` proves their sensitivity). If it
   fails, one constant message leaves, the price stays paid.
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
a pair of the sum. What was not selected leaves no trace: its integers are dropped before any noise is drawn. ∎
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import product
from types import MappingProxyType
from typing import Final

import numpy as np

from lapwing import payload
from lapwing.catalog.model import Catalog, Table
from lapwing.engines import Cells, Engine, Exact, Holders, Leaves
from lapwing.errors import BudgetExhausted, DataChanged, DataFault, Interrupted
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import IntArray
from lapwing.interrupts import deferred
from lapwing.ledger.entries import State
from lapwing.ledger.parts import Parts
from lapwing.ledger.records import Charge, Charged, StoredAnswer
from lapwing.ledger.sqlite import SqliteLedger
from lapwing.mechanisms import TruncatedGeometric, WeightedGaussian
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.trees import levels_above
from lapwing.payload import KeySelection
from lapwing.privacy.amounts import exact, short
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import Loss
from lapwing.query.calibrate import Priced, Term, request
from lapwing.query.expression import Constant
from lapwing.query.measures import Distribution, Measure
from lapwing.query.parts import parts_read
from lapwing.query.plan import Question
from lapwing.refinement import Refinement, as_accurate, refinement

MOST_NAMED: Final = 10
"""How many parts an error names at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Noisy integers, one a measure and cell, with the mechanisms that made them.

    `values[i][j]` belongs to measure i and to cell j, whose keys are `keys[k][j]` for each key k of the question: all
    cells of the public domain in the order of `cells_of`, of the private keys those that were selected. `sequence` is
    the ledger's entry that paid for them; `cost` is what this asking was charged, zero if the answer was stored.
    """

    question: Question
    mechanisms: tuple[NoiseLaw, ...]
    selection: KeySelection | None
    keys: tuple[tuple[Constant, ...], ...]
    values: tuple[IntArray, ...]
    sequence: int
    cost: Loss
    stored: bool


def release_all(
    batch: Sequence[Priced],
    *,
    catalog: Catalog,
    engine: Engine,
    ledger: SqliteLedger,
    entropy: Entropy,
    principal: str,
) -> tuple[Released, ...]:
    """Answer priced questions, charging all of them first, or none.

    Guarantee: see the module. Neighbours: the catalog's `neighbouring`; loss: the sum of `priced.loss`, without those
        that have a stored answer.
    Raises: DataChanged, BudgetExhausted (nothing charged); EngineFault (charged); LedgerFault; Interrupted (says
        whether it was charged).
    """
    charges: list[Charged] = []  # filled where the charge is made, so that a Ctrl-C at any moment finds the truth here

    def charge(offers: Sequence[Offer], version: int) -> tuple[Charged, ...] | Refused:
        state = ledger.state()
        outcome = ledger.charge_all([_request(offer.bought, catalog, principal, version, state) for offer in offers])
        if not isinstance(outcome, Refused):
            charges.extend(outcome)
        return outcome

    try:
        versions = {priced.question.table: current_version(priced.question.table, engine, ledger) for priced in batch}
        offers = [offered(priced, ledger) for priced in batch]
        buying = [offer for offer in offers if not isinstance(offer, Released)]
        version = max((version for version, _ in versions.values()), default=0)
        with deferred():
            outcome = charge(buying, version)
        if isinstance(outcome, Refused):
            raise exhausted([offer.bought for offer in buying], ledger.state(), catalog)
        sequences = iter(outcome)
        answers = []
        for offer in offers:
            if isinstance(offer, Released):
                answers.append(offer)
                continue
            question, charged = offer.bought.question, next(sequences)
            released = _answer(offer, charged, engine.run(question, versions[question.table][1]), entropy)
            with deferred():
                ledger.record_answer(charged.sequence, payload_of(released))
            answers.append(released)
        return tuple(answers)
    except KeyboardInterrupt:
        raise Interrupted(charged=bool(charges)) from None


def _request(priced: Priced, catalog: Catalog, principal: str, version: int, state: State) -> Charge:
    return Charge(
        key=key_of(priced.question),
        question=str(priced.question),
        loss=priced.loss,
        catalog_digest=catalog.digest,
        principal=principal,
        version=version,
        delta=priced.delta,
        parts=parts_charged(priced.question, state),
    )


def parts_charged(question: Question, state: State) -> tuple[str, ...] | None:
    """Return the parts that a question is charged to, in order; None for all.

    These are the parts that it reads, if the ledger has divided the data by the parts of the question's table.
    """
    if state.division is None or state.division.parts != Parts.of_table(question.table):
        return None
    read = parts_read(question)
    return None if read is None else tuple(part for part in state.division.parts.values if part in read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a question takes: an answer of its own, or what a stored one lacks."""

    bought: Priced
    further: "Sharpening | None" = None


def offered(priced: Priced, ledger: SqliteLedger) -> Released | Offer:
    """Return the stored answer to a question, or what is to be bought."""
    stored = stored_answer(priced, ledger)
    if stored is not None:
        return stored
    further = sharpening(priced, ledger)
    return Offer(bought=priced if further is None else further.refinement.priced, further=further)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharpening:
    """A stored answer, and what is still to be bought to make it as accurate as is wanted."""

    stored: Released
    refinement: Refinement


def sharpening(priced: Priced, ledger: SqliteLedger) -> Sharpening | None:
    """Return the stored answer that takes the least to be sharpened, if that costs less than an answer afresh."""
    found = []
    for answer in ledger.answers(key_of(priced.question)):
        stored = restored(priced.question, answer, priced.loss)
        needed = refinement(priced, stored.mechanisms)
        if needed is not None and needed.priced.loss < priced.loss:
            found.append(Sharpening(stored=stored, refinement=needed))
    return min(found, key=lambda further: further.refinement.priced.loss.amount, default=None)


def _answer(offer: Offer, charged: Charged, exact: Exact, entropy: Entropy) -> Released:
    """Add noise to what the engine found, and take the mean with an answer that is sharpened."""
    bought, further = offer.bought, offer.further
    question = bought.question
    cells = cells_of(question, selected_keys(bought, exact.holders, entropy))
    sums = exact_values(question, exact.cells, cells, exact.leaves)
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


# ---- the exact values and their noise --------------------------------------------------------------------------------


Chosen = Sequence[tuple[Constant, ...]]


def selected_keys(priced: Priced, holders: Holders, entropy: Entropy) -> Chosen:
    """Return the values of the private keys that are released, in an order that follows from the values.

    Guarantee: the loss of `priced.selecting`, of which the engine has bounded the units: each holds at most
        `max_keys` values, and puts a weight on each that depends on how many it holds.
    """
    if priced.selecting is None:
        return ()
    mechanism = priced.selecting.mechanism
    found = sorted(holders)
    units = [sum(holders[values].values()) for values in found]
    weights = [sum(count * mechanism.weight(degree) for degree, count in holders[values].items()) for values in found]
    released = mechanism.select(np.array(units, dtype=np.int64), np.array(weights, dtype=np.int64), entropy)
    return [values for values, kept in zip(found, released, strict=True) if kept]


def cells_of(question: Question, chosen: Chosen = ()) -> tuple[tuple[Constant, ...], ...]:
    """Return every cell of the answer, in the order in which answers hold them.

    Without private keys these are all of the public domain; with them, all public values for each that was chosen.
    """
    public = [key.domain for key in question.keys if not key.private]
    if not question.private_keys:
        spans = [[key.domain if key in part.keys else (None,) for key in question.keys] for part in question.parts]
        return tuple(cell for span in spans for cell in product(*span))
    places = [key.private for key in question.keys]
    return tuple(_merged(places, values, rest) for values in chosen for rest in product(*public))


def _merged(
    places: Sequence[bool], private: tuple[Constant, ...], public: tuple[Constant, ...]
) -> tuple[Constant, ...]:
    ours, theirs = iter(private), iter(public)
    return tuple(next(ours) if place else next(theirs) for place in places)


def columns_of(cells: Sequence[tuple[Constant, ...]], keys: int) -> tuple[tuple[Constant, ...], ...]:
    """Return the cells key by key."""
    return tuple(zip(*cells, strict=True)) if cells else ((),) * keys


def exact_values(
    question: Question,
    cells: Cells,
    wanted: Sequence[tuple[Constant, ...]],
    leaves: Mapping[Distribution, Leaves] = MappingProxyType({}),
) -> tuple[IntArray, ...]:
    """Lay the engine's integers out over the cells of the answer: an absent cell is one of zeros.

    Of a distribution these are the numbers of rows in all nodes, a row of the array a cell, from the top down.
    """
    zero = (0,) * len(question.numbers)
    rows = [cells.get(cell, zero) for cell in wanted]
    found: dict[Measure, IntArray] = {m: _vector([row[i] for row in rows]) for i, m in enumerate(question.numbers)}
    found |= {m: _nodes(m, leaves.get(m, {}), wanted) for m in question.distributions}
    return tuple(found[measure] for measure in question.measures)


def _nodes(measure: Distribution, leaves: Leaves, wanted: Sequence[tuple[Constant, ...]]) -> IntArray:
    counts = np.zeros((len(wanted), measure.sizes[-1]), dtype=np.int64)
    for row, cell in zip(counts, wanted, strict=True):
        if cell in leaves:
            np.add.at(row, *leaves[cell])
    return np.concatenate(levels_above(counts, measure.branching), axis=-1)


def _vector(values: Sequence[int]) -> IntArray:
    wide = any(abs(value) >= 2**62 for value in values)
    return np.array(values, dtype=object) if wide else np.array(values, dtype=np.int64)


def add_noise(terms: Sequence[Term], sums: Sequence[IntArray], entropy: Entropy) -> tuple[IntArray, ...]:
    """Add each measure's own noise to every one of its cells."""
    return tuple(term.mechanism.release(values, entropy) for term, values in zip(terms, sums, strict=True))


# ---- what the ledger keeps -------------------------------------------------------------------------------------------


def key_of(question: Question) -> str:
    """Name a question up to what cannot change its answer: the canonical plan and the meaning of its tables.

    The contents of the public tables that it joins are a part of it, those of the protected table a version of its own.
    """
    meaning = [str(question), question.table.digest, *question.public_contents]
    return sha256(json.dumps(meaning).encode()).hexdigest()


def payload_of(released: Released) -> str:
    """Write an answer for the ledger."""
    private = bool(released.question.private_keys)
    content = payload.Content(
        mechanisms=released.mechanisms,
        values=released.values,
        selection=released.selection,
        keys=released.keys if private else None,
    )
    return payload.written(released.question, content)


def restored(question: Question, stored: StoredAnswer, asked: Loss) -> Released:
    """Return what the ledger kept of an answer."""
    content = payload.read(question, stored.payload)
    keys = content.keys if content.keys is not None else columns_of(cells_of(question), len(question.keys))
    return Released(
        question=question,
        mechanisms=content.mechanisms,
        selection=content.selection,
        keys=keys,
        values=content.values,
        sequence=stored.sequence,
        cost=asked.nothing(),
        stored=True,
    )


def stored_answer(priced: Priced, ledger: SqliteLedger) -> Released | None:
    """Return an answer that was bought before and is at least as accurate as asked in every number, if there is one.

    The loss alone does not tell: two answers of one price may have split it differently.
    """
    for answer in ledger.answers(key_of(priced.question)):
        released = restored(priced.question, answer, priced.loss)
        pairs = zip(released.mechanisms, priced.terms, strict=True)
        if all(as_accurate(bought, term.mechanism) for bought, term in pairs) and _selects_as_well(released, priced):
            return released
    return None


def _selects_as_well(released: Released, priced: Priced) -> bool:
    """Tell whether a stored answer selected its keys with no more noise and no less delta than is asked for."""
    if priced.selecting is None:
        return True
    match released.selection, priced.selecting.mechanism:
        case WeightedGaussian() as bought, WeightedGaussian() as asked:
            return bought.sigma <= asked.sigma and bought.delta >= asked.delta
        case TruncatedGeometric() as bought, TruncatedGeometric() as asked:
            return bought.epsilon >= asked.epsilon and bought.delta >= asked.delta
        case _:
            return False


# ---- deciding --------------------------------------------------------------------------------------------------------


def current_version(table: Table, engine: Engine, ledger: SqliteLedger) -> tuple[int, str]:
    """Return the ledger's data version and the table's digest in it, if the table's data are those of it.

    Raises: DataChanged otherwise, or DataFault if there are no data to compare; what is said does not depend on what
        the data hold, nor on columns that the catalog does not declare.
    """
    state = ledger.state()
    digest = state.digests.get(table.name)
    try:
        found = engine.digest(table)
    except DataFault:
        found = None
    if found is None:
        raise DataFault(
            f"The data of {table.name} are missing, or cannot be read as the catalog describes them. Nothing was "
            "charged. To the curator, `lapwing data accept` says what is wrong with them."
        )
    if digest is None or digest != found:
        raise DataChanged(
            f"The data of {table.name} are not those of version {state.version}. Nothing was charged. "
            "If the change is meant, let the curator run `lapwing data accept`; spending stays with the people."
        )
    return state.version, digest


def exhausted(asked: Sequence[Priced], state: State, catalog: Catalog) -> BudgetExhausted:
    """Return the refusal of questions that the budget cannot bear, saying what would still fit, and in which parts."""
    loss, charged = asked[0].loss.nothing(), [parts_charged(priced.question, state) for priced in asked]
    for priced in asked:
        loss = loss + priced.loss
    delta = sum((priced.delta for priced in asked), Fraction(0))
    parts = _united(charged, state)
    where = _lacking(asked, charged, state)
    if delta > state.delta_room(parts):
        return BudgetExhausted(
            f"The selection of keys takes delta = {float(delta):g}, and {float(state.delta_room(parts)):g} of the "
            f"{float(catalog.budget.delta_keys):g} kept for keys is left{where}. Nothing was charged. Give a smaller "
            "delta, or group by columns with public values."
        )
    remaining = state.room(parts)
    fitting = largest_epsilon(remaining, catalog)
    what = "The question costs" if len(asked) == 1 else f"The {len(asked)} questions together cost"
    still = f"A question of epsilon = {fitting} would still fit" if fitting else "No further question fits"
    price, left = (100 * share.amount / state.account.budget.amount for share in (loss, remaining))
    return BudgetExhausted(
        f"{what} {short(price)} % of the budget, of which {float(left):.4g} % is left{where}. "
        f"Nothing was charged. {still}; answers that were bought before stay free."
    )


def _united(charged: Sequence[tuple[str, ...] | None], state: State) -> tuple[str, ...] | None:
    """Return all parts that several questions are charged to, in order; None for all."""
    if state.division is None or None in charged:
        return None
    named = {part for parts in charged if parts is not None for part in parts}
    return tuple(part for part in state.division.parts.values if part in named)


def _lacking(asked: Sequence[Priced], charged: Sequence[tuple[str, ...] | None], state: State) -> str:
    """Name the parts that lack budget for the questions that read them; nothing where there are no parts."""
    if state.division is None:
        return ""
    nothing = (asked[0].loss.nothing(), Fraction(0))
    wanted = dict.fromkeys(state.division.parts.values, nothing)
    for priced, parts in zip(asked, charged, strict=True):
        for part in wanted if parts is None else parts:
            loss, delta = wanted[part]
            wanted[part] = loss + priced.loss.rounded_up(), delta + priced.delta
    short_of = state.division.short(wanted, state.registration.delta_keys)
    if not short_of:
        return " for the parts that are read together"
    more = f" and {len(short_of) - MOST_NAMED:,} more" if len(short_of) > MOST_NAMED else ""
    named = f"{'part' if len(short_of) == 1 else 'parts'} {', '.join(short_of[:MOST_NAMED])}{more}"
    return f" for the parts that are read, too little in {named}"


def largest_epsilon(remaining: Loss, catalog: Catalog) -> str:
    """Return the largest query `epsilon`, in thousandths, whose loss fits into what remains; empty if there is none."""
    if remaining.amount <= 0:
        return ""
    budget = catalog.budget
    thousandths = int(exact(remaining.to_epsilon(delta=budget.delta - budget.delta_keys), "epsilon") * 1000)
    while thousandths > 0 and not request(Fraction(thousandths, 1000), budget) <= remaining:
        thousandths -= 1
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".") if thousandths else ""
