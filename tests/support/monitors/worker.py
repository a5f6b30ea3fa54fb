"""A process that runs a monitor and kills itself: `python -m tests.support.monitors.worker CATALOG STATEMENT`.

It dies at the STATEMENT-th statement that writes to the monitor's file; each tick that it hands over is reported first.
"""

import os
import signal
import sqlite3
import sys
from typing import Any

from lapwing.monitors import open_monitor


class Dying(sqlite3.Connection):
    """Counts what is written, and kills the process."""

    left = 0

    def _count(self, sql: str) -> None:
        if not sql.startswith(("SELECT", "PRAGMA")):
            Dying.left -= 1
            if Dying.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def execute(self, sql: str, *parameters: Any) -> Any:
        self._count(sql)
        return super().execute(sql, *parameters)

    def executemany(self, sql: str, *parameters: Any) -> Any:
        self._count(sql)
        return super().executemany(sql, *parameters)


def main() -> None:
    catalog, statement = sys.argv[1], int(sys.argv[2])
    honest = sqlite3.connect
    sqlite3.connect = lambda *given, **more: honest(*given, **{"factory": Dying} | more)
    with open_monitor(catalog, "m") as monitor:
        Dying.left = statement
        for tick in monitor.run(replay=True, commit=2):
            print(tick.number, *(row["n"] for row in tick.rows()), flush=True)


if __name__ == "__main__":
    main()
