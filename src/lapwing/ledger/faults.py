"""Questions that bought nothing: why they ended, which of them count as faults, and when these stop the data set.

Theory of operation
-------------------
Memory, disk and time run out sooner on some data than on others, so whether a question fails is outside the guarantee:
whoever asks learns at least one bit that no noise covers, at whatever price the question had. The ledger makes these
bits few, and makes a person look at them. Every charge carries the *asker* that made it, a name for one open ledger of
one process (`ledger.store`), and is *under way* until an `answer` or an `unanswered` entry names it. The latter has
a cause:

- `fault`: after the charge the engine, or anything else, raised. It counts.
- `death`: the asker is gone. Nobody was left to write down why, and the kernel's kill of a process that takes too much
  memory looks like any other: so it counts, as one fault for all that the asker had under way, as one death shows one
  bit. The next charge writes it down before it is decided on, so no charge is made between a death and its count.
- `interrupt`: the user pressed Ctrl-C, or cancelled a question that a service ran. It does not count: when to press is
  the user's own choice, made without anything from the data but the time that passed, and time is outside the guarantee
  in any case; an honest user who has no patience must not stop the data set for all. A charge that was committed
  without its asker being told, as the connection to the store was lost, has this cause too: nothing was read for it.
  Any other end of a process looks like a death, and is taken for one.
- `stop`: the question ended while the data set was stopped, well or not; nothing of it was released. It does not count.

A batch fails as one: one entry names the question that failed and those that were not run after it.

A charge whose asker is present is under way, however long it takes, and never counts: so questions of other threads and
processes stop nothing. Charges of ledgers before there were askers are not under way and count for nothing.

A fault is written down before it is told, unless the ledger cannot be written just then: others hold it for too long,
or the disk is full. Then the open ledger *owes* it, and writes it down before the next charge that it makes. So every
open ledger may owe some until its next charge, those of the questions that it had under way at one time; a process that
ends while it owes them leaves them as a death.

Guarantee:
    Between two `resume` entries, what an analyst learns from failures is which charges they follow, of at most
    FAULTS_ALLOWED faults, of what each open ledger owes, and of one death more for each process that has a question
    under way when the data set stops. Proof. `charging` refuses once FAULTS_ALLOWED faults stand, and `fold` accepts no
    charge then; deaths, and what the open ledger that charges owes, are counted first, and whoever is missing and may
    be dead is counted with them until it is known (`ledger.store`). Any other fault adds one where it is written down,
    under the ledger's lock, before it is told. Every question that ends after the last of them and can write to the
    ledger finds the data set stopped: with an answer in hand or without, it is recorded with the same cause and raises
    the same constant message; one that cannot write is owed, and no answer is released that is not recorded. The
    refusal itself is a function of the entries, and their faults had been seen. So failures divide all that may happen
    to n charges into at most Σ C(n, i), i ≤ FAULTS_ALLOWED, cases, those debts and those deaths. ∎ (No case is
    differentially private. The number says how much can be learned, not that it is harmless.)

Only the curator's `resume` sets the count back, and nothing else does: it never touches what is spent. Accepting a new
version of the data does not, as most of its people were in the last one, and as a script may do it every night without
anybody looking.
"""

from collections.abc import Mapping
from math import comb, log2
from typing import Final, Literal, NamedTuple

from lapwing.errors import DataStopped, EngineFault

Cause = Literal["fault", "death", "interrupt", "stop"]
COUNTED: Final[Mapping[Cause, int]] = {"fault": 1, "death": 1, "interrupt": 0, "stop": 0}
"""How many faults an entry of each cause adds."""

FAULTS_ALLOWED: Final = 3
"""So many faults since the curator last looked stop the data set."""


class LateAnswers(NamedTuple):
    """That answers were late (`ledger.events`): from which moment on (UTC, in ISO 8601), and whose was the first."""

    tick: str
    principal: str


def most_bits(charges: int) -> float:
    """Return what the faults of so many charges between two `resume` entries tell at most, beside debts and deaths."""
    return log2(sum(comb(charges, faults) for faults in range(FAULTS_ALLOWED + 1)))


def stopped() -> DataStopped:
    """Return the refusal of a data set that is stopped."""
    return DataStopped(
        f"{FAULTS_ALLOWED} queries failed after their charge, so Lapwing answers no new query until the curator has "
        f"looked. Nothing was charged; earlier results stay free.",
        curator_remedy="look at the failed queries, and then resume",
        command="`lapwing data faults`, and then `lapwing data resume`",
    )


def given_up() -> EngineFault:
    """Return the fault of a question that ended when it could no longer be answered, whatever it had found."""
    return EngineFault(
        "The data set was stopped, or Lapwing gave up the query as lost, while it was running. The cost is charged "
        "and nothing is released.",
        curator_remedy="look at the failed queries",
        command="`lapwing data faults`",
    )
