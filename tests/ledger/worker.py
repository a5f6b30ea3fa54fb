"""Another process that uses a ledger: `python -m tests.ledger.worker WHAT PATH [MORE]`; it prints what it was told."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from lapwing.errors import LapwingError
from lapwing.ledger import database, entries, folding
from lapwing.ledger import mark as marks
from lapwing.ledger.chain import Transaction
from lapwing.ledger.mark import HeldMark, Mark
from lapwing.ledger.records import Charged
from lapwing.ledger.sqlite import SqliteLedger
from lapwing.privacy.filters import Account, Granted, Refused
from lapwing.privacy.filters import charge as pay
from lapwing.privacy.measures import Loss, PureDP
from tests.ledger.ledgers import charged, opened, spend

THREADS = 8
PRICE = Fraction(1, 1000)
# The lock is not fair: a busy machine may keep one of many waiting for most of a race, which is no fault of the ledger.
PATIENCE = 600


def in_threads(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def meet(folder: Path, processes: int, where: str) -> None:
    """Wait until all have come."""
    (folder / f"{where}.{os.getpid()}").touch()
    while len(list(folder.glob(f"{where}.*"))) < processes:
        time.sleep(0.001)


def race(path: Path, processes: int, work: Callable[[SqliteLedger], None]) -> None:
    """Open the ledger at once with others, charge once, and go on once all have, so that all take part."""
    meet(path.parent, processes, "at the door")
    with opened(path, patience=PATIENCE) as ledger:
        spend_once(ledger)
        meet(path.parent, processes, "inside")
        in_threads(lambda: work(ledger))


def report(sequence: int) -> None:
    sys.stdout.write(f"{sequence}\n")
    sys.stdout.flush()


def spend_once(ledger: SqliteLedger) -> Charged | Refused:
    outcome = spend(ledger, PRICE)
    if isinstance(outcome, Charged):
        report(outcome.sequence)
        ledger.record_unanswered([outcome.sequence], "interrupt")
    return outcome


def spend_all(ledger: SqliteLedger) -> None:
    while isinstance(spend_once(ledger), Charged):
        pass


# The planted bug: look at the account in one transaction, charge in another that no longer looks.


def trust(account: Account, loss: Loss) -> Granted:
    outcome = pay(account, loss)
    return outcome if isinstance(outcome, Granted) else Granted(account=account)


def check_then_act(ledger: SqliteLedger) -> None:
    while isinstance(pay(ledger.state().account, PureDP(PRICE)), Granted):
        time.sleep(0.005)
        outcome = spend(ledger, PRICE)
        if isinstance(outcome, Charged):
            report(outcome.sequence)


# Dying at a fault point: `die` is put before or after a step of the ledger.


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, step: str) -> None:
    setattr(owner, step, die)


def after(owner: Any, step: str) -> None:
    whole = getattr(owner, step)

    def then_die(*given: object, **named: object) -> None:
        whole(*given, **named)
        die()

    setattr(owner, step, then_die)


def mark_too_early(self: Transaction, entry: entries.Entry) -> None:
    """Plant a bug: move the mark before the commit."""
    state = folding.fold(self.newest, entry)
    database.insert(self.connection, entry)
    self._mark.advance(Mark(state.sequence, state.hash))
    database.commit(self.connection)
    self.newest = state


FAULT_POINTS: dict[str, Callable[[], None]] = {
    "before insert": lambda: before(database, "insert"),
    "after insert, before commit": lambda: before(database, "commit"),
    "after commit, before mark": lambda: before(HeldMark, "advance"),
    "after mark": lambda: after(HeldMark, "advance"),
    "between charge and answer": lambda: before(SqliteLedger, "record_answer"),
    "during answer, before commit": lambda: before_second(database, "commit"),
}
CREATION_POINTS: dict[str, Callable[[], None]] = {
    "before the mark is linked": lambda: before(os, "link"),
    "after the mark": lambda: after(marks, "create"),
    "after the empty file": lambda: after(database, "create_file"),
    "inside the tables": lambda: before_in(database, "_TABLES", 2),
    "after the tables": lambda: after(database, "connect"),
    "before the opening entry": lambda: before(database, "insert"),
    "before its commit": lambda: before(database, "commit"),
    "before its mark": lambda: before(HeldMark, "advance"),
    "after its mark": lambda: after(HeldMark, "advance"),
}


def before_second(owner: Any, step: str) -> None:
    whole = getattr(owner, step)

    def first(*given: object) -> None:
        whole(*given)
        setattr(owner, step, die)

    setattr(owner, step, first)


def before_in(owner: Any, name: str, place: int) -> None:
    """Die inside a list of statements: SQLite meets `place` of them, and then a call that never returns."""
    connect = owner._create_tables

    def create(connection: Any) -> None:
        connection.create_function("die", 0, die)
        statements = getattr(owner, name)
        setattr(owner, name, (*statements[:place], "SELECT die()"))
        connect(connection)

    owner._create_tables = create


def buy_until_death(path: Path, point: str) -> None:
    with opened(path) as ledger:
        for _ in range(3):
            sequence = charged(ledger, Fraction(1, 10))
            ledger.record_answer(sequence, "42")
            report(sequence)
        FAULT_POINTS[point]()
        sequence = charged(ledger, Fraction(1, 10))
        report(sequence)
        ledger.record_answer(sequence, "42")


def fork_while_busy(path: Path) -> None:
    """Fork while threads charge; each child charges once, on its own and through what it inherited."""
    with opened(path, patience=PATIENCE) as ledger:
        children: list[int] = []
        threads = [threading.Thread(target=spend_all, args=(ledger,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            child = os.fork()
            if child == 0:
                outcome = spend_once(ledger)
                os._exit(0 if isinstance(outcome, Charged | Refused) else 1)
            children.append(child)
        for thread in threads:
            thread.join()
        for child in children:
            if os.waitpid(child, 0)[1]:
                sys.exit("a child failed")


def die_as_a_parent(path: Path) -> None:
    """Fork with a question under way; a child dies with one of its own, the parent sees it and dies before another."""
    with opened(path) as ledger:
        charged(ledger, PRICE, "parent")
        dying = os.fork()
        if dying == 0:
            charged(ledger, PRICE, "child")
            die()
        os.waitpid(dying, 0)
        surviving = os.fork()
        if surviving == 0:  # it has the parent's files, and must not keep its name alive
            os.closerange(1, 3)
            deadline = time.monotonic() + 300
            while not path.with_name("looked").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            os._exit(0)
        faults = [row.cause for row in ledger.faults()]
        if faults != ["death"]:
            sys.exit(f"the parent sees {faults}")
        die()


def try_to_spend(path: Path) -> None:
    """Charge as a user who is not root, and print the outcome."""
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    try:
        with opened(path) as ledger:
            report(charged(ledger, Fraction(1, 10)))
    except LapwingError as error:
        sys.stdout.write(f"{error.code}: {error}\n")


def main(what: str, path: Path, *more: str) -> None:
    match what:
        case "spend":
            race(path, int(more[0]), spend_all)
        case "check then act":
            folding.pay = trust  # type: ignore[assignment, attr-defined]
            race(path, int(more[0]), check_then_act)
        case "die":
            buy_until_death(path, *more)
        case "die with the mark too early":
            Transaction.commit = mark_too_early  # type: ignore[method-assign, assignment]
            buy_until_death(path, *more)
        case "die with one under way":
            with opened(path) as ledger:
                charged(ledger, Fraction(1, 10))
                die()
        case "die as a parent":
            die_as_a_parent(path)
        case "die creating":
            CREATION_POINTS[more[0]]()
            with opened(path):
                pass
        case "fork":
            fork_while_busy(path)
        case "unprivileged":
            try_to_spend(path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
