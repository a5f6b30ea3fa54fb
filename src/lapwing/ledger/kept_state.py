"""The state of a ledger kept in a file beside its mark, so that opening a long ledger folds the newest entries only.

Folding 100,000 entries takes ten seconds. A state is a cache of what entries add up to (`ledger.state`), so it may be
kept: `<ledger>.state` holds it as JSON after a line with its digest. It is believed only if

- the digest fits, so a torn or edited file is passed over;
- the ledger has its newest entry, with the same hash, where it says. As each hash covers all entries before it, those
  that it adds up are the ones that the ledger had when they were folded and checked one by one.

Else the whole chain is folded, as where there is no file. The file can be removed at any time, and a copy of a ledger
does not need it. It is never synced and never decides alone: the mark (`ledger.mark`) is held against the chain all the
same, so an older file only costs the time to fold what came after it.

The file is not signed, and neither is the ledger: whoever can write one of them can write the other. What damages an
entry, or an index of the store, behind a kept state is found by `lapwing ledger verify`, which never reads the file.

The file says which data a ledger is about and who asked, as the ledger does, so it has the same rights: 0600.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast, final

from lapwing.errors import LapwingError
from lapwing.ledger.entries import digest_of
from lapwing.ledger.faults import LateAnswers
from lapwing.ledger.owners import owners_from
from lapwing.ledger.parts import Division, Parts
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState, Spent
from lapwing.ledger.store import Log
from lapwing.privacy import measures
from lapwing.privacy.amounts import read as number
from lapwing.privacy.amounts import written
from lapwing.privacy.filters import Account
from lapwing.privacy.parts import Neighbouring, PartsAccount, PartSums

EVERY: Final = 256
"""A state is kept anew when so many entries came after the last one: folding them takes some 20 ms."""
_FORM: Final = "lapwing state 2"
"""Changes whenever `LedgerState`, or what an entry does to it, does: a file of another form is passed over."""


@final
class StateFile:
    """The kept state of a ledger, for its chain. `due`: the sequence from which on it is to be kept anew."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self.due = EVERY

    def read(self, log: Log) -> LedgerState | None:
        """Return the state that was kept, as `kept`."""
        state = kept(self._ledger, log)
        self.due = EVERY + (0 if state is None else state.sequence)
        return state

    def keep(self, state: LedgerState) -> None:
        """Keep a state, as `keep`."""
        keep(self._ledger, state)
        self.due = EVERY + state.sequence


def path_of(ledger: Path) -> Path:
    """Return where the state of a ledger is kept."""
    return ledger.with_name(ledger.name + ".state")


def keep(ledger: Path, state: LedgerState) -> None:
    """Keep the state after a committed entry; the caller holds the mark. A file that cannot be written is left out."""
    text = json.dumps(to_record(state), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    path = path_of(ledger)
    draft = path.with_name(path.name + ".new")
    with suppress(OSError):
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{_FORM} {digest_of(_FORM, text)}\n{text}")
        # Put there only when it is whole: a reader finds the old state or the new one, never a part.
        draft.replace(path)


def kept(ledger: Path, log: Log) -> LedgerState | None:
    """Return the state that was kept, if it is one of this chain; None if there is none, or a doubt.

    Raises:
        LedgerFault: If the store cannot be read.
    """
    try:
        head, _, text = path_of(ledger).read_text(encoding="ascii").partition("\n")
        if head != f"{_FORM} {digest_of(_FORM, text)}":
            return None
        state = from_record(json.loads(text))
    except (OSError, LapwingError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        return None
    newest = log.entry(state.sequence)
    return state if newest is not None and newest.hash == state.hash else None


def to_record(state: LedgerState) -> dict[str, object]:
    """Return a state as JSON, numbers as exact text."""
    return {
        "sequence": state.sequence,
        "hash": state.hash,
        "registration": state.registration.to_record(),
        "account": {"budget": state.account.budget.to_record(), "spent": state.account.spent.to_record()},
        "version": state.version,
        "digests": dict(state.digests),
        "delta_spent": written(state.delta_spent),
        "division": None if state.division is None else _division_record(state.division),
        "faults": state.faults,
        "late": [list(late) for late in state.late],
        "under_way": {str(charge): asker for charge, asker in state.under_way.items()},
        "spending": {name: [written(spent.amount), written(spent.delta)] for name, spent in state.spending.items()},
        "owners": dict(state.owners),
        "earlier": [registration.to_record() for registration in state.earlier],
        "closed": state.closed,
        "lost": state.lost,
        "meaning": state.meaning,
    }


def from_record(record: Mapping[str, Any]) -> LedgerState:
    """Read what `to_record` wrote."""
    account = record["account"]
    return LedgerState(
        sequence=record["sequence"],
        hash=record["hash"],
        registration=Registration.from_record(record["registration"]),
        account=Account(budget=measures.from_record(account["budget"]), spent=measures.from_record(account["spent"])),
        version=record["version"],
        digests=MappingProxyType(record["digests"]),
        delta_spent=number(record["delta_spent"], "delta_spent"),
        division=None if record["division"] is None else _division_from(record["division"]),
        faults=record["faults"],
        late=tuple(LateAnswers(*late) for late in record["late"]),
        under_way=MappingProxyType({int(charge): asker for charge, asker in record["under_way"].items()}),
        spending=MappingProxyType(
            {
                name: Spent(amount=number(amount, "amount"), delta=number(delta, "delta"))
                for name, (amount, delta) in record["spending"].items()
            }
        ),
        owners=MappingProxyType(owners_from(record["owners"])),
        earlier=tuple(map(Registration.from_record, record["earlier"])),
        closed=record["closed"],
        lost=record["lost"],
        meaning=record.get("meaning", 1),  # an older file's: then more is looked for than has to be
    )


def _division_record(division: Division) -> dict[str, object]:
    losses = division.losses
    return {
        "parts": division.parts.to_record(),
        "budget": losses.budget.to_record(),
        "neighbouring": losses.neighbouring,
        "data_version": losses.data_version,
        "names": list(losses.parts),
        "losses": _sums_record(losses.sums),
        "deltas": _sums_record(division.deltas),
    }


def _division_from(record: Mapping[str, Any]) -> Division:
    losses = PartsAccount(
        budget=measures.from_record(record["budget"]),
        neighbouring=cast(Neighbouring, record["neighbouring"]),
        data_version=record["data_version"],
        parts=tuple(record["names"]),
        sums=_sums_from(record["losses"]),
    )
    return Division(parts=Parts.from_record(record["parts"]), losses=losses, deltas=_sums_from(record["deltas"]))


def _sums_record(sums: PartSums) -> dict[str, object]:
    alone = [[part, written(amount)] for part, amount in sums.alone]
    return {"differ": sums.differ, "everywhere": written(sums.everywhere), "alone": alone}


def _sums_from(record: Mapping[str, Any]) -> PartSums:
    alone: tuple[tuple[str, Fraction], ...] = tuple(
        (part, number(amount, "amount")) for part, amount in record["alone"]
    )
    return PartSums(differ=record["differ"], everywhere=number(record["everywhere"], "everywhere"), alone=alone)
