"""Ask a caller's function of one unit at a time, each time in a process of its own that starts from the same state.

Theory of operation. A mechanism that adds up what a function says of units needs two things of it: each unit adds a
number within public bounds, and this number is a function of that unit alone. Code that somebody brings promises
neither. It may raise for one row, end the process, fill the memory, or keep something for the next unit; and a library
may round a row differently by which others are there (a matrix product in NumPy does). So it is never trusted:

- A *parent* is forked once. It holds no unit, runs none of the function, and changes nothing between two units.
- For each unit it forks a *child*. The child reads this unit from a socket that nobody else has, calls the function,
  writes a fixed number of floats, and ends. So every unit meets the same state, with its argument copied.
- Whatever goes wrong (an exception, a death, a limit, another shape) the unit's numbers are NaN, and the caller puts
  the worst value within the bounds in their place. Nothing that one unit does decides how many units are asked, how, or
  in what state the next one is asked. There is no other way that is taken first: to ask all at once and one by one only
  after an exception would be a switch by what one unit holds.

What a child prints is dropped. Files, locks and sockets that were open are closed in it, since a shared place in a file
would be state that lasts from one unit to the next.

Guarantee:
    What is added up of a function of the caller moves by at most the width of the bounds for each number of a unit, as
    long as the function reads nothing but its argument and its own memory. It may still read a clock, a file or a
    process number, look through the memory of the program that it was started from, and write to places that outlive
    it: this is a copy of a process, not a prison. `docs/limitations.md` says so to users.

Time: a unit takes a fork of the whole process, which costs the more, the more libraries that has: 4 to 20 ms of a
processor on a busy machine.
"""

import gc
import os
import pickle
import resource
import select
import signal
import socket
import struct
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter

SECONDS: Final = 60
"""Of a processor, for one unit. A clock stops what only waits, after twice as long."""
MEMORY: Final = 2 << 30
"""In bytes, beyond what the process has."""
TEACHER_SECONDS: Final = 3_600

_HEAD: Final = struct.Struct("<QQ")
_MOST_SAID: Final = 400
_WRONG_SHAPE: Final = "it does not return one number for each"


@final
class Isolated:
    """A function of the caller that is asked of one unit at a time: a context, which ends its processes.

    Not safe for threads.

    Args:
        function: Takes an argument and returns numbers.
        seconds: Of a processor, for each argument.
    """

    def __init__(self, function: Callable[[Any], Any], *, seconds: int = SECONDS) -> None:
        self._function = function
        self._seconds = seconds
        self._control: socket.socket | None = None
        self._parent = 0

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(self, argument: Any, count: int) -> NDArray[np.float64]:
        """Return what the function says of an argument: so many numbers, NaN where there is none.

        Raises:
            InvalidParameter: If the system starts no processes, whatever the argument is.
        """
        try:
            payload = pickle.dumps(argument)
        except Exception:  # by what is in this unit alone
            return np.full(count, np.nan)
        said = self._asked(payload, count, 8 * count)
        return np.frombuffer(said, dtype="<f8").copy() if len(said) == 8 * count else np.full(count, np.nan)

    def trial(self, argument: Any, count: int) -> str | None:
        """Return why the function says nothing of an argument that nobody has, or None if it does.

        The words are the caller's own, so this is for arguments that are public.
        """
        said = self._asked(pickle.dumps(argument), -count - 1, max(8 * count, _MOST_SAID))
        if said[:1] == b"!":
            return said[1:].decode(errors="replace")
        if len(said) == 8 * count + 1:
            return None
        return (
            f"its process died, or did not end within {self._seconds} seconds; a copy of a process lacks the threads "
            "that a library may have started"
        )

    # ---- on the caller's side ----------------------------------------------------------------------------------------

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            with warnings.catch_warnings():
                # Python and JAX warn of forks beside threads: a child that waits for one is stopped by its limit.
                warnings.simplefilter("ignore")
                parent = os.fork()
        except OSError as error:
            ours.close()
            theirs.close()
            raise InvalidParameter(f"No process can be started for a function of yours: {error.strerror}.") from None
        if parent == 0:
            try:
                _serve(theirs, self._function, self._seconds)
            finally:
                os._exit(0)
        theirs.close()
        self._control, self._parent = ours, parent
        return ours

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
            with suppress(OSError):
                os.killpg(self._parent, signal.SIGKILL)  # which leads a group of its own
            with suppress(OSError):
                os.kill(self._parent, signal.SIGKILL)  # if it had not come to that
            with suppress(OSError):
                os.waitpid(self._parent, 0)

    def _asked(self, payload: bytes, count: int, most: int) -> bytes:
        """Return what a child writes, at most a byte more than `most`; nothing if it or its parent dies."""
        control = self._control or self._start()  # anew, if what came before ended the last one
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                try:
                    socket.send_fds(control, [b"1"], [theirs.fileno()])
                except OSError:
                    self._stop()
                    return b""
            ours.setblocking(False)
            said, alive = _exchange(ours, control, _HEAD.pack(len(payload), count % (1 << 64)) + payload, most + 1)
        if not alive:
            self._stop()  # the next unit gets a parent that is like this one
        return said


def _exchange(ours: socket.socket, control: socket.socket, message: bytes, most: int) -> tuple[bytes, bool]:
    """Send a message and read an answer until the child has ended; tell whether its parent lives."""
    left, said, ended, alive = memoryview(message), bytearray(), False, True
    while not ended:
        wanted = select.POLLIN if len(said) < most else 0
        poll = select.poll()
        poll.register(control, select.POLLIN)
        if wanted or left:
            poll.register(ours, wanted | (select.POLLOUT if left else 0))
        for place, event in poll.poll():
            if place == control.fileno():
                ended, alive = True, _received(control, 1) == b"1"
            elif event & select.POLLOUT and left:
                try:
                    left = left[ours.send(left) :]
                except BlockingIOError:
                    continue
                except OSError:
                    left = left[:0]
            else:
                part = _received(ours, most - len(said))
                said += part
                if not part:  # the child has closed its end; what is left is to be told that it ended
                    left, most = left[:0], len(said)
    while len(said) < most and (part := _received(ours, most - len(said))):
        said += part
    return bytes(said), alive


def _received(one: socket.socket, most: int) -> bytes:
    try:
        return one.recv(most)
    except OSError:
        return b""


# ---- in the parent, and its children ---------------------------------------------------------------------------------


def _serve(control: socket.socket, function: Callable[[Any], Any], seconds: int) -> None:
    """Fork a child for each socket that arrives, and say when it has ended. Never returns into the caller's code."""
    gc.disable()  # nothing that was left over in the caller's program is to be closed here
    os.setsid()
    signal.set_wakeup_fd(-1)
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(one, signal.SIG_IGN if one == signal.SIGPIPE else signal.SIG_DFL)
    warnings.simplefilter("ignore")
    _leave_files(control.fileno())
    child = 0

    def stop(*_: object) -> None:
        if child > 0:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    while True:
        message, places, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        try:
            child = os.fork()
        except OSError:
            child = -1
        if child == 0:
            try:
                _answer(places[0], control.fileno(), function, seconds)
            finally:
                os._exit(0)
        os.close(places[0])
        if child > 0:
            signal.setitimer(signal.ITIMER_REAL, 2 * seconds, 1)
            with suppress(OSError):
                os.waitpid(child, 0)
            child = 0
            signal.setitimer(signal.ITIMER_REAL, 0)
        control.send(b"1")


def _leave_files(kept: int) -> None:
    """Put nothing in the place of all open files but one: their numbers are not used again, and locks are let go."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for place in {0, 1, 2, *(int(name) for name in os.listdir("/dev/fd"))} - {kept, nothing}:
        with suppress(OSError):
            os.dup2(nothing, place)


def _answer(place: int, control: int, function: Callable[[Any], Any], seconds: int) -> None:
    """Read an argument, ask the function, and write its numbers."""
    os.close(control)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _limit(seconds)
    with socket.socket(fileno=place) as own:
        size, count = _HEAD.unpack(_exactly(own, _HEAD.size))
        argument = pickle.loads(_exactly(own, size))  # noqa: S301 - which the caller's own side wrote
        on_trial = count >= 1 << 63
        said = _said(function, argument, (1 << 64) - count - 1 if on_trial else count, on_trial)
        own.sendall(said)


def _said(function: Callable[[Any], Any], argument: Any, count: int, on_trial: bool) -> bytes:
    try:
        numbers = np.asarray(function(argument), dtype="<f8")
        why = "" if numbers.shape == (count,) else _WRONG_SHAPE
    except BaseException as error:  # whatever it is, it ends with this child
        numbers, why = np.zeros(0), f"{type(error).__name__}: {error!s:.200}"
    if not on_trial:
        return b"" if why else numbers.tobytes()
    return b"!" + why.encode(errors="replace") if why else b"=" + numbers.tobytes()


def _exactly(own: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = own.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _limit(seconds: int) -> None:
    """Limit a child's time and memory, and let it write no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_CPU, seconds)
    with suppress(OSError), open("/proc/self/statm") as sizes:  # of Linux; elsewhere memory is limited by the system
        _lower(resource.RLIMIT_AS, int(sizes.read().split()[0]) * resource.getpagesize() + MEMORY)


def _lower(kind: int, value: int) -> None:
    soft, hard = resource.getrlimit(kind)
    limits: Iterable[int] = (one for one in (value, soft, hard) if one != resource.RLIM_INFINITY)
    least = min(limits)
    resource.setrlimit(kind, (least, least))
