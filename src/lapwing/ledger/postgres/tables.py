"""The tables of ledgers in a PostgreSQL database: the schema `lapwing`, which several ledgers share.

One transaction a step, under a lock of its own, so that any number of processes may make or extend them at once.
"""

from importlib.resources import files
from typing import Final

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import RESTORE
from lapwing.ledger.migrations import Step, steps_of
from lapwing.ledger.postgres.connection import Connection

STEPS: Final = steps_of("postgres")
_MADE: Final = (files("lapwing.ledger") / "schema" / "postgres" / "made.txt").read_text("utf-8")
"""What the steps make, as PostgreSQL describes it."""
_LOCK: Final = int.from_bytes(b"lapwing ", "big")
_HAS: Final = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'lapwing' AND tablename = 'steps')"
_DESCRIBED: Final = """
WITH ours AS (SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'lapwing')
SELECT relkind::text || ' ' || relname || '.' || attname || ' ' || format_type(atttypid, atttypmod)
    || CASE WHEN attnotnull THEN ' not null' ELSE '' END || CASE WHEN atthasdef THEN ' default' ELSE '' END
    FROM ours JOIN pg_attribute ON attrelid = ours.oid WHERE attnum > 0 AND NOT attisdropped AND relkind <> 'i'
UNION ALL SELECT pg_get_indexdef(indexrelid) || CASE WHEN indisvalid THEN '' ELSE ' invalid' END
    FROM ours JOIN pg_index ON indrelid = ours.oid
UNION ALL SELECT 'trigger ' || tgname FROM ours JOIN pg_trigger ON tgrelid = ours.oid WHERE NOT tgisinternal
UNION ALL SELECT 'rule ' || rulename FROM ours JOIN pg_rewrite ON ev_class = ours.oid
UNION ALL SELECT 'row security ' || relname FROM ours WHERE relrowsecurity
UNION ALL SELECT 'not logged ' || relname FROM ours WHERE relpersistence <> 'p'
"""


def prepare(connection: Connection, name: str) -> None:
    """Make the tables, or extend them, as far as this Lapwing knows.

    Raises:
        LedgerFault: If they are newer, or other than Lapwing made.
    """
    number, known = _number(connection), len(STEPS)
    for step in range(number, known):
        _apply(connection, step + 1, STEPS[step])
    if number > known:
        raise LedgerFault(
            f"The ledger {name} is in a database of schema version {number} and this Lapwing knows version {known}. "
            "Use the release of Lapwing that wrote it, or a newer one."
        )
    require(connection, name)


def require(connection: Connection, name: str) -> None:
    """Refuse tables that could change what is written or read.

    Raises:
        LedgerFault: If the ledger cannot be trusted or written.
    """
    if described(connection) != _MADE:
        raise LedgerFault(f"The ledger {name} has other tables in PostgreSQL than Lapwing made. {RESTORE}")


def described(connection: Connection) -> str:
    """Return the tables as PostgreSQL describes them, a line each, in order."""
    return "".join(sorted(f"{line}\n" for (line,) in connection.execute(_DESCRIBED)))


def exist(connection: Connection) -> bool:
    """Tell whether there are tables of Lapwing."""
    return _number(connection) > 0


def _number(connection: Connection) -> int:
    """Return how many steps were applied."""
    if connection.execute(_HAS).fetchone() != (True,):
        return 0
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM lapwing.steps").fetchone() or (0,)
    return int(number)


def _apply(connection: Connection, number: int, step: Step) -> None:
    """Apply a step unless somebody else has done it meanwhile."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        if _number(connection) >= number:
            return
        known = connection.execute("SELECT FROM pg_namespace WHERE nspname = 'lapwing'").fetchone()
        if known is None:  # an administrator may have made it for a user who may not
            connection.execute("CREATE SCHEMA lapwing")
        for statement in step:
            connection.execute(statement.encode())
        connection.execute("INSERT INTO lapwing.steps VALUES (%s)", (number,))
