"""The one place where data become an answer: compare, charge, run, add noise, record.

Guarantee: what leaves `release` is either a function of the question, the catalog and the ledger alone (a refusal, a
stored answer), or a vector of exact integers to which every entry of which a mechanism has added noise, and whose loss
was durably charged before the first private row was read. The order of the lines in `release` is that argument:

1. The data's digest is compared with the ledger's current version. It decides only whether the question is served.
2. A stored answer to the same question about the same data, every number of it at least as accurate as asked, is
   served again: it is post-processing of what was released before, so it costs nothing.
3. The ledger commits the charge, or refuses it. A crash from here on wastes budget and never leaks.
4. The engine returns exact integers of the bounded question (`query.stability` proves their sensitivity). If it
   fails, one constant message leaves, the price stays paid.
5. Every cell of the public domain gets noise of the same law, whether any row fell into it or not.
6. The answer is recorded, and only then returned.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import product
from typing import Final

import numpy as np

from lapwing.catalog.model import Catalog, Table
from lapwing.engines import Cells, Engine
from lapwing.errors import BudgetExhausted, DataChanged, DataFault, Interrupted, LedgerFault
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import IntArray
from lapwing.interrupts import deferred
from lapwing.ledger.records import Charged, StoredAnswer
from lapwing.ledger.sqlite import SqliteLedger
from lapwing.mechanisms import DiscreteLaplace, Mechanism, RoundedGaussian
from lapwing.privacy.amounts import exact, short
from lapwing.privacy.filters import Account, Refused
from lapwing.privacy.measures import Loss
from lapwing.query.calibrate import CONFIDENCE, Priced, Term, request
from lapwing.query.expression import Constant
from lapwing.query.plan import Question

PAYLOAD_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Noisy integers, one a measure and cell, with the mechanisms that made them.

    `values[i][j]` belongs to measure i and to cell j in the order of `cells_of`. `sequence` is the ledger's entry that
    paid for them; `cost` is what this asking was charged, zero if the answer was stored.
    """

    question: Question
    mechanisms: tuple[Mechanism, ...]
    values: tuple[tuple[int, ...], ...]
    sequence: int
    cost: Loss
    stored: bool


def release(
    priced: Priced, *, catalog: Catalog, engine: Engine, ledger: SqliteLedger, entropy: Entropy, principal: str
) -> Released:
    """Answer a priced question, charging it first.

    Guarantee: see the module. Neighbours: the catalog's `neighbouring`; loss: `priced.loss`, 0 for a stored answer.
    Raises: DataChanged, BudgetExhausted (nothing charged); EngineFault (charged); LedgerFault; Interrupted (says
        whether it was charged).
    """
    question, key = priced.question, key_of(priced.question)
    charges: list[Charged] = []  # filled where the charge is made, so that a Ctrl-C at any moment finds the truth here

    def charge(version: int) -> Charged | Refused:
        outcome = ledger.charge(
            key=key,
            question=str(question),
            loss=priced.loss,
            catalog_digest=catalog.digest,
            principal=principal,
            version=version,
        )
        if isinstance(outcome, Charged):
            charges.append(outcome)
        return outcome

    try:
        version, digest = current_version(question.table, engine, ledger)
        stored = stored_answer(priced, ledger)
        if stored is not None:
            return stored
        with deferred():
            outcome = charge(version)
        if isinstance(outcome, Refused):
            raise exhausted(priced.loss, ledger.state().account, catalog)
        return _answer(priced, outcome, digest, engine, ledger, entropy)
    except KeyboardInterrupt:
        raise Interrupted(charged=bool(charges)) from None


def _answer(
    priced: Priced, charged: Charged, digest: str, engine: Engine, ledger: SqliteLedger, entropy: Entropy
) -> Released:
    sums = exact_values(priced.question, engine.run(priced.question, digest))
    released = Released(
        question=priced.question,
        mechanisms=tuple(term.mechanism for term in priced.terms),
        values=add_noise(priced.terms, sums, entropy),
        sequence=charged.sequence,
        cost=priced.loss,
        stored=False,
    )
    with deferred():
        ledger.record_answer(charged.sequence, payload_of(released))
    return released


# ---- the exact values and their noise --------------------------------------------------------------------------------


def cells_of(question: Question) -> tuple[tuple[Constant, ...], ...]:
    """Return every cell of the public domain, in the order in which answers hold them."""
    return tuple(product(*(key.domain for key in question.keys)))


def exact_values(question: Question, cells: Cells) -> tuple[IntArray, ...]:
    """Lay the engine's integers out over the whole public domain: an absent cell is one of zeros."""
    zero = (0,) * len(question.measures)
    rows = [cells.get(cell, zero) for cell in cells_of(question)]
    return tuple(_vector([row[i] for row in rows]) for i in range(len(question.measures)))


def _vector(values: Sequence[int]) -> IntArray:
    wide = any(abs(value) >= 2**62 for value in values)
    return np.array(values, dtype=object) if wide else np.array(values, dtype=np.int64)


def add_noise(terms: Sequence[Term], sums: Sequence[IntArray], entropy: Entropy) -> tuple[tuple[int, ...], ...]:
    """Add each measure's own noise to every one of its cells."""
    return tuple(
        tuple(int(value) for value in term.mechanism.release(values, entropy))
        for term, values in zip(terms, sums, strict=True)
    )


# ---- what the ledger keeps -------------------------------------------------------------------------------------------


def key_of(question: Question) -> str:
    """Name a question up to what cannot change its answer: the canonical plan and the meaning of its table."""
    return sha256(json.dumps([str(question), question.table.digest]).encode()).hexdigest()


def stored_answer(priced: Priced, ledger: SqliteLedger) -> Released | None:
    """Return an answer that was bought before and is at least as accurate as asked in every number, if there is one.

    The loss alone does not tell: two answers of one price may have split it differently.
    """
    for answer in ledger.answers(key_of(priced.question)):
        released = _restored(priced.question, answer, priced.loss)
        pairs = zip(released.mechanisms, priced.terms, strict=True)
        if all(_as_accurate(mechanism, term.mechanism) for mechanism, term in pairs):
            return released
    return None


def _as_accurate(bought: Mechanism, asked: Mechanism) -> bool:
    return bought.standard_deviation <= asked.standard_deviation and bought.half_width(CONFIDENCE) <= asked.half_width(
        CONFIDENCE
    )


def payload_of(released: Released) -> str:
    """Write an answer for the ledger."""
    return json.dumps(
        {
            "format": PAYLOAD_FORMAT,
            "measures": [str(measure) for measure in released.question.measures],
            "mechanisms": [_record(mechanism) for mechanism in released.mechanisms],
            "values": released.values,
        },
        separators=(",", ":"),
    )


def _record(mechanism: Mechanism) -> list[str]:
    scale = mechanism.scale if isinstance(mechanism, DiscreteLaplace) else mechanism.sigma
    return [mechanism.name, str(scale)]


_MECHANISMS: Mapping[str, Callable[[Fraction], Mechanism]] = {
    DiscreteLaplace.name: lambda scale: DiscreteLaplace(scale=scale),
    RoundedGaussian.name: lambda sigma: RoundedGaussian(sigma=sigma),
}


def _restored(question: Question, stored: StoredAnswer, asked: Loss) -> Released:
    content = json.loads(stored.payload)
    if content["format"] != PAYLOAD_FORMAT or content["measures"] != [str(measure) for measure in question.measures]:
        raise LedgerFault("A stored answer is not one that this version of Lapwing wrote; ask the curator.")
    return Released(
        question=question,
        mechanisms=tuple(_MECHANISMS[name](Fraction(scale)) for name, scale in content["mechanisms"]),
        values=tuple(tuple(int(value) for value in values) for values in content["values"]),
        sequence=stored.sequence,
        cost=type(asked).from_amount(Fraction(0)),
        stored=True,
    )


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


def exhausted(loss: Loss, account: Account, catalog: Catalog) -> BudgetExhausted:
    """Return the refusal of a question that the budget cannot bear, saying what would still fit."""
    fitting = largest_epsilon(account.remaining, catalog)
    still = f"A question of epsilon = {fitting} would still fit" if fitting else "No further question fits"
    price, left = (100 * share.amount / account.budget.amount for share in (loss, account.remaining))
    return BudgetExhausted(
        f"The question costs {short(price)} % of the budget, of which {float(left):.4g} % is left. "
        f"Nothing was charged. {still}; answers that were bought before stay free."
    )


def largest_epsilon(remaining: Loss, catalog: Catalog) -> str:
    """Return the largest query `epsilon`, in thousandths, whose loss fits into what remains; empty if there is none."""
    if remaining.amount <= 0:
        return ""
    budget = catalog.budget
    thousandths = int(exact(remaining.to_epsilon(delta=budget.delta - budget.delta_keys), "epsilon") * 1000)
    while thousandths > 0 and not request(Fraction(thousandths, 1000), budget) <= remaining:
        thousandths -= 1
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".") if thousandths else ""
