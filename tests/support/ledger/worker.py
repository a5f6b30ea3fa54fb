"""Another process that uses a ledger, and prints what it was told.

python -m tests.support.ledger.worker WHAT PLACE [MORE]
"""

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
from lapwing.ledger import new_mark, transitions
from lapwing.ledger.entries import Charged
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.mark import HeldMark, Mark
from lapwing.ledger.postgres import chain, presence, tables
from lapwing.ledger.postgres.log import PostgresLog
from lapwing.ledger.sqlite import chain as sqlite_chain
from lapwing.ledger.sqlite import file
from lapwing.ledger.transaction import Transaction, head_of
from lapwing.privacy.filters import Account, Granted, Refused
from lapwing.privacy.filters import charge as pay
from lapwing.privacy.measures import Loss, PureDP
from tests.support.ledger.ledgers import charged, opened, spend
from tests.support.ledger.places import Place

THREADS = 8
CHARGES = "LAPWING_TEST_CHARGES"
"""How many charges the budget of a worker's ledger allows, if not as many as usual."""
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


def race(place: Place, processes: int, work: Callable[[Ledger], None]) -> None:
    """Open the ledger at once with others, charge once, and go on once all have, so that all take part."""
    meet(place.folder, processes, "at the door")
    with opened(place.seen_from(f"host {os.getpid()}"), patience=PATIENCE) as ledger:
        spend_once(ledger)
        meet(place.folder, processes, "inside")
        in_threads(lambda: work(ledger))


def report(sequence: int) -> None:
    sys.stdout.write(f"{sequence}\n")
    sys.stdout.flush()


def spend_once(ledger: Ledger) -> Charged | Refused:
    outcome = spend(ledger, PRICE)
    if isinstance(outcome, Charged):
        report(outcome.sequence)
        ledger.record_unanswered([outcome.sequence], "interrupt")
    return outcome


def spend_all(ledger: Ledger) -> None:
    while isinstance(spend_once(ledger), Charged):
        pass


# The planted bug: look at the account in one transaction, charge in another that no longer looks.


def trust(account: Account, loss: Loss) -> Granted:
    outcome = pay(account, loss)
    return outcome if isinstance(outcome, Granted) else Granted(account=account)


def check_then_act(ledger: Ledger) -> None:
    while isinstance(pay(ledger.state().account, PureDP(PRICE)), Granted):
        time.sleep(0.005)
        outcome = spend(ledger, PRICE)
        if isinstance(outcome, Charged):
            report(outcome.sequence)


def unlocked_head(self: Any) -> Mark | None:
    """Plant a bug: look at the head row without keeping others from it."""
    found = self._connection.execute("SELECT sequence, hash FROM lapwing.ledgers").fetchone()
    return None if found is None else Mark(*found)


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


def mark_too_early(self: Any, *entries: Any) -> None:
    """Plant a bug: move the mark before the commit."""
    self.append(*entries)
    if self.appended:
        self._mark.advance(head_of(self.state))
        self._keep(head_of(self.state))


def dying_while_committing(connection: Any, _name: str) -> None:
    """Send the word and die before the answer: it may have been done or not."""
    connection.pgconn.send_query(b"COMMIT")
    connection.pgconn.flush()
    die()


def not_awaiting() -> None:
    """Plant a bug: say that it was committed without having asked for it."""
    chain.commit = lambda *_: None
    before(Ledger, "record_answer")


ANYWHERE: dict[str, Callable[[], None]] = {
    "after commit, before mark": lambda: before(HeldMark, "advance"),
    "after mark": lambda: after(HeldMark, "advance"),
    "between charge and answer": lambda: before(Ledger, "record_answer"),
}
FAULT_POINTS: dict[str, dict[str, Callable[[], None]]] = {
    "sqlite": ANYWHERE
    | {
        "before insert": lambda: before(sqlite_chain, "insert"),
        "after insert, before commit": lambda: before(sqlite_chain, "commit"),
        "during answer, before commit": lambda: before_second(sqlite_chain, "commit"),
    },
    "postgres": ANYWHERE
    | {
        "before insert": lambda: before(PostgresLog, "insert"),
        "after insert, before commit": lambda: before(chain, "commit"),
        "during answer, before commit": lambda: before_second(chain, "commit"),
        "after a commit that is not awaited": lambda: not_awaiting(),
        "while committing": lambda: setattr(chain, "commit", dying_while_committing),
    },
}
AT_CREATION: dict[str, Callable[[], None]] = {
    "before the mark is linked": lambda: before(os, "link"),
    "after the mark": lambda: after(new_mark, "create"),
    "before its mark": lambda: before(HeldMark, "advance"),
    "after its mark": lambda: after(HeldMark, "advance"),
}
CREATION_POINTS: dict[str, dict[str, Callable[[], None]]] = {
    "sqlite": AT_CREATION
    | {
        "after the store": lambda: after(file, "create_file"),
        "inside the tables": lambda: before_in(file, 2),
        "after the tables": lambda: after(file, "connect"),
        "before the opening entry": lambda: before(sqlite_chain, "insert"),
        "before its commit": lambda: before(sqlite_chain, "commit"),
    },
    "postgres": AT_CREATION
    | {
        "after the store": lambda: after(chain, "connect"),
        "inside the tables": lambda: setattr(tables, "STEPS", ((*tables.STEPS[0][:3], Deadly()),)),
        "after the tables": lambda: after(tables, "prepare"),
        "before the opening entry": lambda: before(PostgresLog, "insert"),
        "before its commit": lambda: before(chain, "commit"),
    },
}


class Deadly:
    """A statement that is never sent."""

    encode = staticmethod(die)


def before_second(owner: Any, step: str) -> None:
    whole = getattr(owner, step)

    def first(*given: object) -> None:
        whole(*given)
        setattr(owner, step, die)

    setattr(owner, step, first)


def before_in(owner: Any, place: int) -> None:
    """Die inside a step of the schema: SQLite meets `place` statements, and then a call that never returns."""
    migrate = owner._migrate

    def create(connection: Any, *, since: int) -> None:
        connection.create_function("die", 0, die)
        owner.STEPS = ((*owner.STEPS[0][:place], "SELECT die()"),)
        migrate(connection, since=since)

    owner._migrate = create


def buy_until_death(place: Place, point: str) -> None:
    with opened(place) as ledger:
        for _ in range(3):
            sequence = charged(ledger, Fraction(1, 10))
            ledger.record_answer(sequence, "42")
            report(sequence)
        FAULT_POINTS[place.at.store][point]()
        sequence = charged(ledger, Fraction(1, 10))
        report(sequence)
        ledger.record_answer(sequence, "42")


def fork_while_busy(place: Place) -> None:
    """Fork while threads charge; each child charges once, on its own and through what it inherited."""
    with opened(place, patience=PATIENCE) as ledger:
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


def die_as_a_parent(place: Place) -> None:
    """Fork with a question under way; a child dies with one of its own, the parent sees it and dies before another."""
    with opened(place) as ledger:
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
            while not (place.folder / "looked").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            os._exit(0)
        faults = [row.cause for row in ledger.faults()]
        if faults != ["death"]:
            sys.exit(f"the parent sees {faults}")
        die()


def try_to_spend(place: Place) -> None:
    """Charge as a user who is not root, and print the outcome."""
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    try:
        with opened(place) as ledger:
            report(charged(ledger, Fraction(1, 10)))
    except LapwingError as error:
        sys.stdout.write(f"{error.code}: {error}\n")


def main(what: str, place: Place, *more: str) -> None:
    global PRICE
    PRICE = Fraction(1, int(os.environ.get(CHARGES, "1000")))
    presence.GRACE_SECONDS = 0.0  # type: ignore[misc]
    match what:
        case "spend":
            race(place, int(more[0]), spend_all)
        case "check then act":
            transitions.pay = trust  # type: ignore[assignment, attr-defined]
            race(place, int(more[0]), check_then_act)
        case "die":
            buy_until_death(place, *more)
        case "die with the mark too early":
            Transaction.commit = mark_too_early  # type: ignore[method-assign]
            buy_until_death(place, *more)
        case "die with one under way":
            with opened(place) as ledger:
                charged(ledger, Fraction(1, 10))
                die()
        case "die as a parent":
            die_as_a_parent(place)
        case "die creating":
            CREATION_POINTS[place.at.store][more[0]]()
            with opened(place):
                pass
        case "fork":
            fork_while_busy(place)
        case "unprivileged":
            try_to_spend(place)


if __name__ == "__main__":
    main(sys.argv[1], Place.read(sys.argv[2]), *sys.argv[3:])
