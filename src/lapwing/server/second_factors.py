"""Second factors: a code of an authenticator app, beside the password, or a recovery code in its place.

Theory of operation
-------------------
The secret that app and service share is in the store as it is, since the service must compute its codes: whoever reads
the store has it, as they have all else there. Of recovery codes it keeps hashes, and each lets in once.

A code lets in once. The step of the last code that was taken is kept, and only a code of a later step is taken: so one
that was seen over a shoulder, or on its way, is of no use. This, and counting wrong codes, happens in one transaction,
which holds the store alone: of two requests with the same code, on whatever hosts, one is let in.

Guesses: who has the password may try `FREE` codes. After that each wrong one doubles the pause before the next, up to
`LONGEST_PAUSE`, and only a right one ends that. So a guesser has 24 tries a day, each right with probability 3/10⁶
(`one_time_codes`). In a pause no code of the app is looked at, so that waiting is all that one learns by asking;
recovery codes, which nobody guesses, still let the owner in.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from lapwing.errors import InvalidParameter, NotAuthorised, SecondFactorNeeded, TooManyRequests
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.one_time_codes import DIGITS, kept_of, new_recovery_code, new_secret, plain, step_of
from lapwing.server.store import ServiceStore, StoreConnection, time_text

RECOVERY_CODES: Final = 10
FREE: Final = 5
FIRST_PAUSE: Final = 30.0
LONGEST_PAUSE: Final = 3600.0
NEEDED: Final = "The password is right. Also send the code that your authenticator app shows now, or a recovery code."
WRONG: Final = "The code is wrong, was used before, or is no longer the one that your app shows."
OFF: Final = "There is no second factor to change. Nothing was changed."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecondFactor:
    """What may be known of somebody's second factor; since: when it was switched on, None if it is off."""

    on: bool
    since: str | None
    recovery_codes_left: int


@final
class SecondFactors:
    """The second factors of a service's people.

    Args:
        clock: Returns the seconds since 1970. A code is valid at one of its moments.
    """

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self.clock = store, clock

    def of(self, name: str) -> SecondFactor:
        """Return how somebody's stands."""
        with self._store.reading() as connection:
            row = connection.execute(
                "SELECT created FROM second_factors WHERE person = ? AND confirmed = 1", (name,)
            ).fetchone()
            left = connection.execute(
                "SELECT COUNT(*) FROM recovery_codes WHERE person = ? AND used IS NULL", (name,)
            ).fetchone()[0]
        return SecondFactor(on=row is not None, since=row[0] if row else None, recovery_codes_left=left)

    def is_on(self, name: str) -> bool:
        """Tell whether somebody has one."""
        return bool(self._store.look("SELECT 1 FROM second_factors WHERE person = ? AND confirmed = 1", (name,)))

    def begin(self, name: str) -> str:
        """Return a new secret for somebody's app; it asks for nothing until a code of it was confirmed.

        Raises:
            InvalidParameter: If one is on.
        """
        secret, now = new_secret(), time_text(self.clock())
        with self._store.transaction() as connection:
            if _row(connection, name, confirmed=True) is not None:
                raise InvalidParameter("A second factor is already on. Switch it off first. Nothing was changed.")
            connection.execute("DELETE FROM second_factors WHERE person = ?", (name,))
            connection.execute(
                "INSERT INTO second_factors (person, secret, created) VALUES (?, ?, ?)", (name, secret, now)
            )
        return secret

    def confirm(self, name: str, code: str) -> list[str]:
        """Switch it on by a code of the new secret, and return the recovery codes, which are shown this once.

        Raises:
            InvalidParameter: If a value is not allowed.
            TooManyRequests: If there are too many requests.
        """
        with self._store.transaction() as connection:
            row = _row(connection, name, confirmed=False)
            if row is None:
                raise InvalidParameter("No second factor was started, or it is already on. Nothing was changed.")
            right = self._takes(connection, name, row, code)
            if right:
                connection.execute(
                    "UPDATE second_factors SET confirmed = 1, created = ? WHERE person = ?",
                    (time_text(self.clock()), name),
                )
                note(connection, name, "second factor added", name)
                return _new_codes(connection, name)
        text = f"{WRONG} Check the clock of the device. Nothing was changed."
        raise at_field("code", InvalidParameter(text))

    def require(self, name: str, code: str | None) -> None:
        """Let through who has none, or sends a code that holds; that is spent then.

        Raises:
            SecondFactorNeeded: Without a code.
            NotAuthorised: For a wrong one.
            TooManyRequests: In a pause.
        """
        if not self.is_on(name):
            return
        with self._store.transaction() as connection:
            row = _row(connection, name, confirmed=True)
            if row is None:
                return
            if code is None or not plain(code):
                raise SecondFactorNeeded(NEEDED)
            if self._takes(connection, name, row, code) or _takes_recovery(connection, name, code, self.clock()):
                return
        raise at_field("code", NotAuthorised(WRONG))  # after the transaction, which keeps that a code was wrong

    def renew(self, name: str) -> list[str]:
        """Return new recovery codes, in the place of all old ones; they are shown this once."""
        with self._store.transaction() as connection:
            if _row(connection, name, confirmed=True) is None:
                raise InvalidParameter(OFF)
            note(connection, name, "recovery codes made", name)
            return _new_codes(connection, name)

    def remove(self, name: str, *, by: str) -> None:
        """Switch somebody's off; whoever knows the password is let in by it alone.

        Raises:
            InvalidParameter: If there is none.
        """
        with self._store.transaction() as connection:
            if _row(connection, name, confirmed=True) is None:
                raise InvalidParameter(OFF)
            connection.execute("DELETE FROM second_factors WHERE person = ?", (name,))
            connection.execute("DELETE FROM recovery_codes WHERE person = ?", (name,))
            note(connection, by, "second factor removed", name)

    def _takes(self, connection: StoreConnection, name: str, row: tuple[str, int, int, float], code: str) -> bool:
        """Tell whether a code of the app holds, and spend it; or count that it was wrong.

        Raises:
            TooManyRequests: In a pause.
        """
        secret, last, failures, pause_until = row
        now, typed = self.clock(), plain(code)
        if len(typed) != DIGITS:  # a recovery code, or none at all
            return False
        if now < pause_until:
            raise TooManyRequests(
                f"Too many codes were wrong. Try the next one in {_seconds(pause_until - now)}, or use a recovery "
                f"code now."
            )
        step = step_of(secret, typed, now)
        if step is not None and step > last:
            connection.execute(
                "UPDATE second_factors SET last_step = ?, failures = 0, pause_until = 0 WHERE person = ?", (step, name)
            )
            return True
        beyond = failures + 1 - FREE
        pause = 0.0 if beyond < 0 else min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(beyond, 20))
        connection.execute(
            "UPDATE second_factors SET failures = ?, pause_until = ? WHERE person = ?",
            (failures + 1, now + pause, name),
        )
        return False


def _row(connection: StoreConnection, name: str, *, confirmed: bool) -> tuple[str, int, int, float] | None:
    row: tuple[str, int, int, float] | None = connection.execute(
        "SELECT secret, last_step, failures, pause_until FROM second_factors WHERE person = ? AND confirmed = ?",
        (name, int(confirmed)),
    ).fetchone()
    return row


def _takes_recovery(connection: StoreConnection, name: str, code: str, now: float) -> bool:
    """Tell whether a recovery code holds, and spend it."""
    unused = "UPDATE recovery_codes SET used = ? WHERE person = ? AND hash = ? AND used IS NULL"
    if connection.execute(unused, (time_text(now), name, kept_of(code))).rowcount != 1:
        return False
    connection.execute("UPDATE second_factors SET failures = 0, pause_until = 0 WHERE person = ?", (name,))
    left = connection.execute("SELECT COUNT(*) FROM recovery_codes WHERE person = ? AND used IS NULL", (name,))
    note(connection, name, "recovery code used", name, left=left.fetchone()[0])
    return True


def _new_codes(connection: StoreConnection, name: str) -> list[str]:
    codes = [new_recovery_code() for _ in range(RECOVERY_CODES)]
    connection.execute("DELETE FROM recovery_codes WHERE person = ?", (name,))
    for code in codes:
        connection.execute("INSERT INTO recovery_codes (person, hash) VALUES (?, ?)", (name, kept_of(code)))
    return codes


def _seconds(pause: float) -> str:
    return f"{pause:.0f} seconds" if pause < 120 else f"{pause / 60:.0f} minutes"
