"""One argument at a time, each in a process of its own: nothing that a function does with one reaches the next."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.machine.isolation import Isolated
from tests.support.effort import is_long, only

KEPT: list[int] = []


def stateful(number: int) -> list[float]:
    """Say how many it was asked before, and do something terrible for some numbers."""
    KEPT.append(number)
    match number:
        case 1:
            raise ValueError("a secret")
        case 2:
            raise SystemExit
        case 3:
            raise KeyboardInterrupt
        case 4:
            os._exit(0)
        case 5:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 6:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case 7:
            bytearray(1 << 40)
        case 8:
            return [1.0, 2.0]
        case 9:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            np.random.seed(1)
            sys.setrecursionlimit(500)
            os.environ["KEPT"] = "9"
            os.chdir("/")
        case 10:
            print("a secret")
            os.write(1, b"a secret")
            os.write(2, b"a secret")
    return [len(KEPT) + ("KEPT" in os.environ) + (os.getcwd() == "/")]


def test_whatever_it_does_with_one_the_next_finds_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    with Isolated(stateful) as isolated:
        said = [float(isolated.ask(number, 1)[0]) for number in [*range(12), *(range(11, -1, -1) if is_long() else ())]]
    wanted = [1.0, *[np.nan] * 8, 3.0, 1.0, 1.0]
    np.testing.assert_array_equal(said, [*wanted, *(reversed(wanted) if is_long() else ())])
    assert not KEPT
    assert capfd.readouterr() == ("", "")


def test_twin_in_one_process_it_would_not() -> None:
    """The planted bug: the function is asked here."""
    said = [stateful(0)[0] for _ in range(3)]
    KEPT.clear()
    assert said == [1, 2, 3]


@pytest.mark.long
def test_an_argument_is_a_copy_and_may_be_large() -> None:
    def doubled(numbers: Any) -> Any:
        numbers *= 2
        return numbers

    rows = np.arange(300_000.0)
    with Isolated(doubled) as isolated:
        np.testing.assert_array_equal(isolated.ask(rows, rows.size), 2 * np.arange(300_000.0))
        assert np.isnan(isolated.ask(rows, rows.size - 1)).all()
        assert np.isnan(isolated.ask(lambda: 0, 1)).all()  # which cannot be sent
    assert rows[-1] == 299_999


@pytest.mark.long
def test_a_place_in_a_file_is_not_shared(tmp_path: Path) -> None:
    """An open file has one place for all processes that have it: state that would last."""
    (tmp_path / "weights").write_bytes(b"0123456789")
    with open(tmp_path / "weights", "rb", buffering=0) as file, Isolated(lambda _: [len(file.read(3))]) as isolated:
        assert [float(isolated.ask(0, 1)[0]) for _ in range(3)] == [0, 0, 0]
        assert file.tell() == 0


def test_locks_of_the_program_are_let_go(tmp_path: Path) -> None:
    """A process that is left over must not hold the lock of a ledger."""
    with open(tmp_path / "lock", "w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        with Isolated(lambda _: [0.0]) as isolated:
            isolated.ask(0, 1)
            first.close()
            with open(tmp_path / "lock") as second:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("forever", only([1], ["busy", "asleep"]))
def test_what_does_not_end_is_ended(forever: str) -> None:
    def stuck(number: int) -> list[float]:
        while number and forever == "busy":
            pass
        time.sleep(100 * number)
        return [5.0]

    with Isolated(stuck, seconds=1) as isolated:
        for number in (0, 1, 0):  # one of those that end may come too late where the machine is busy, but not always
            said = (float(isolated.ask(number, 1)[0]) for _ in range(1 if number else 60))
            assert (5.0 in said) is not bool(number)


@pytest.mark.long
def test_a_trial_says_why() -> None:
    with Isolated(stateful) as isolated:
        assert isolated.trial(0, 1) is None
        assert isolated.trial(1, 1) == "ValueError: a secret"
        assert "one number for each" in str(isolated.trial(8, 1))
        assert "died" in str(isolated.trial(5, 1))


def test_its_processes_end_with_it_and_with_the_program() -> None:
    def number_of_parent(_: int) -> list[float]:
        return [os.getppid()]

    with Isolated(number_of_parent) as isolated:
        parent = int(isolated.ask(0, 1)[0])
        assert int(isolated.ask(0, 1)[0]) == parent  # one that forks each of them
    assert not is_there(parent)
    program = (
        "import os; from lapwing.machine.isolation import Isolated\n"
        "with Isolated(lambda _: [os.getppid()]) as isolated:\n"
        "    print(int(isolated.ask(0, 1)[0]), flush=True); os._exit(0)"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    left = int(made.stdout)
    for _ in range(100):
        if not is_there(left):
            break
        time.sleep(0.1)
    assert not is_there(left)


def is_there(process: int) -> bool:
    """Tell whether a process runs: one that has ended may still wait to be counted."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
