"""T36–T40: randomness is the system's and nobody else's; what is spent stays spent, whoever races, dies or meddles."""

import inspect
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing import mechanisms
from lapwing import noise as public_noise
from lapwing.errors import EntropyFault, LedgerFault
from lapwing.exact import entropy as entropies
from lapwing.exact.entropy import SystemEntropy
from lapwing.ledger import transitions
from lapwing.ledger.entries import Charged
from lapwing.ledger.ledger import Ledger
from lapwing.privacy import filters
from lapwing.privacy.amounts import grid_up
from tests.support.ledger.ledgers import NAME, charged, opened, spend
from tests.support.release.tables import protected, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"

# ---- T36 -------------------------------------------------------------------------------------------------------------

SEEDS = {"seed", "random_state", "rng", "generator", "prng"}


def in_children(read: Callable[[int], bytes], children: int = 8, size: int = 32) -> list[bytes]:
    """Return what a source gives to several children that were forked after it had given something."""
    read(size)
    pieces = []
    for _ in range(children):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.write(writer, read(size))
            os._exit(0)
        os.waitpid(child, 0)
        pieces.append(os.read(reader, size))
        os.close(reader)
        os.close(writer)
    return [*pieces, read(size)]


def test_t36_randomness() -> None:
    """No piece comes twice, across forks and threads, nobody can give a seed, and a short read is no answer."""
    source = SystemEntropy()
    with ThreadPoolExecutor(8) as pool:
        pieces = in_children(source.read) + list(pool.map(source.read, [32] * 64))
    assert len(set(pieces)) == len(pieces)
    public: list[Any] = [lw.connect, lw.protect, lw.Session.sql, lw.Session.batch]
    public += [getattr(public_noise, name) for name in public_noise.__all__]
    public += [getattr(mechanisms, name) for name in mechanisms.__all__]
    for function in filter(callable, public):
        assert not SEEDS & set(inspect.signature(function).parameters), function


def test_t36_fails_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with protected(visits(tmp_path)) as session:
        monkeypatch.setattr(os, "urandom", lambda size: bytes(size - 1))
        with pytest.raises(EntropyFault):
            session.sql(COUNT, epsilon=1)


def test_t36_twin_a_generator_in_the_process() -> None:
    state = [0]

    def read(size: int) -> bytes:
        state[0] += 1
        return state[0].to_bytes(size, "big")

    pieces = in_children(read)
    assert len(set(pieces)) < len(pieces)
    assert "random" not in inspect.getsource(entropies).replace("urandom", "").split(), "no other source is imported"


# ---- T37 -------------------------------------------------------------------------------------------------------------


def raced(path: Path, threads: int = 32, price: Fraction = Fraction(1, 20)) -> None:
    """Let everybody charge at the same moment: exactly as many succeed as the budget holds."""
    with opened(path) as ledger:
        start = threading.Barrier(threads)

        def charge(number: int) -> bool:
            start.wait()
            return isinstance(spend(ledger, price, f"q{number}"), Charged)

        with ThreadPoolExecutor(threads) as pool:
            granted = sum(pool.map(charge, range(threads)))
        assert granted == 1 / price
        assert ledger.state().account.spent.amount == granted * price


def test_t37_double_spend(tmp_path: Path) -> None:
    raced(tmp_path / NAME)


def test_t37_twin_a_charge_that_sees_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is left is what was left at first."""
    monkeypatch.setattr(transitions, "paid", lambda state, charge: state)
    with pytest.raises(AssertionError):
        raced(tmp_path / NAME)


# ---- T38 -------------------------------------------------------------------------------------------------------------


def died_between(path: Path) -> None:
    """A death between charge and answer leaves the price paid; the re-ask pays again, and an answer stays free."""
    child = os.fork()
    if not child:
        with protected(path) as session:
            session._ledger.record_answer = lambda *_: os._exit(9)  # type: ignore[method-assign]
            session.sql(COUNT, epsilon=1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with protected(path) as session:
        paid = session.budget().spent.amount
        assert paid > 0, "nothing is refunded"
        first = session.sql(COUNT, epsilon=1)
        assert session.budget().spent.amount == 2 * paid
        assert [row.unanswered for row in session.budget().history] == ["death", None]
        again = session.sql(COUNT, epsilon=1)
        assert (again.rows(), again.stored) == (first.rows(), True)
        assert session.budget().spent.amount == 2 * paid


def test_t38_crash(tmp_path: Path) -> None:
    died_between(visits(tmp_path))


def test_t38_twin_an_answer_before_its_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a charge is written down with its answer."""

    def late(self: Ledger, requests: Any, limits: Any = None, since: Any = None) -> Any:
        return tuple(Charged(sequence=0, account=self.state().account) for _ in requests)

    monkeypatch.setattr(Ledger, "charge_all", late)
    with pytest.raises(AssertionError):
        died_between(visits(tmp_path))


# ---- T39 -------------------------------------------------------------------------------------------------------------


def absorbed(path: Path) -> None:
    """Prices that a float would lose beside the sum are counted, and ten of a tenth are one."""
    with opened(path, 2) as ledger:
        charged(ledger, 1, "large")
        for number in range(10):
            charged(ledger, Fraction(1, 10**17), f"small {number}")
        assert ledger.state().account.spent.amount == 1 + Fraction(10, 10**17)
        for number in range(9):
            charged(ledger, 0.1, f"tenth {number}")
        assert not isinstance(spend(ledger, 0.1, "one too many"), Charged)


def test_t39_absorption(tmp_path: Path) -> None:
    absorbed(tmp_path / NAME)


def test_t39_twin_sums_of_floats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_floats(account: Any, loss: Any) -> Any:
        outcome = filters.charge(account, loss)
        spent = Fraction(float(account.spent.amount) + float(loss.amount))
        if hasattr(outcome, "account"):
            object.__setattr__(outcome.account, "spent", account.spent.from_amount(spent))
        return outcome

    monkeypatch.setattr(transitions, "pay", by_floats)
    assert grid_up(Fraction(1, 10**17)) > 0
    with pytest.raises((AssertionError, LedgerFault)):
        absorbed(tmp_path / NAME)


# ---- T40 -------------------------------------------------------------------------------------------------------------


def rolled_back(folder: Path) -> None:
    """An older copy of the ledger in its place is noticed, and so is a hand that alters an entry."""
    path = folder / NAME
    with opened(path) as ledger:
        charged(ledger, 0.5)
    shutil.copy(path, folder / "older")
    with opened(path) as ledger:
        charged(ledger, 0.5, "later")
    newer = path.read_bytes()
    shutil.copy(folder / "older", path)
    with pytest.raises(LedgerFault, match="no longer holds"), opened(path):
        pass
    path.write_bytes(newer.replace(b"SELECT later", b"SELECT LATER"))
    with pytest.raises(LedgerFault), opened(path) as ledger:
        ledger.verify()


def test_t40_rollback(tmp_path: Path) -> None:
    rolled_back(tmp_path)


def test_t40_twin_a_mark_that_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.ledger.sqlite.chain.advance", lambda *_: None)
    with pytest.raises(pytest.fail.Exception):
        rolled_back(tmp_path)
