"""What DuckDB may do here, and how that is locked: it reads the files it was given and nothing else.

It loads no extension, sees no Python variable, spills only into the folder it was given, and does without those
optimizers that would let one row decide whether another is counted, or make a cheap question dear. No statement can
change that afterwards.
"""

from collections.abc import Sequence
from typing import Final

import duckdb

from lapwing.engines.duckdb.literals import text

SPILL: Final = "32GB"
DISABLED_OPTIMIZERS: Final = (
    # It rewrites "the first K rows of each unit" so that all units are in memory at once, and fails at small limits.
    "top_n_window_elimination",
    # They move casts and functions into the reader of the file, where a TRY_CAST of CSV text raises or drops the row.
    "type_pushdown",
    "scalar_fn_pushdown",
    # It reorders arithmetic: from (x * a) * b, which cannot overflow, it makes x * (a * b), which may.
    "expression_rewriter",
    # They believe what a file's footer says of its columns, which leaves NaN out and may take NULL for the one text of
    # a row group: whether one row counts would then depend on its neighbours.
    "statistics_propagation",
    "filter_pushdown",
    # It pushes down the filters on rows that are read twice, by two grouping sets for example, the other one being off.
    "cte_filter_pusher",
    # It believes them too: what the one side of a join holds becomes a filter in the reader of the other's file.
    "join_filter_pushdown",
    # Where a plan has a join, or an IN of five constants, it writes out the plan and with it every word of the types of
    # an index, columns that the question does not read among them: seconds, for a question of milliseconds.
    "common_subplan",
)


def configured(spill: str, memory: int, threads: int) -> duckdb.DuckDBPyConnection:
    """Return a database in memory that spills into a folder and loads nothing."""
    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory}B",
            "threads": threads,
            "temp_directory": spill,
            "max_temp_directory_size": SPILL,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
            # Long texts would not fit into columns with 32-bit offsets, and how long they are is private.
            "arrow_large_buffer_size": True,
            # The page cache is enough; DuckDB's own could serve blocks of a file that was since replaced.
            "enable_external_file_cache": False,
        },
    )


def lock_down(connection: duckdb.DuckDBPyConnection, paths: Sequence[str], folders: Sequence[str] = ()) -> None:
    """Leave a connection, and all cursors it will have, these files and folders, and no way to change that."""
    connection.execute(f"SET GLOBAL allowed_paths = [{', '.join(map(text, paths))}]")
    connection.execute(f"SET GLOBAL allowed_directories = [{', '.join(map(text, folders))}]")
    connection.execute("SET GLOBAL TimeZone = 'UTC'")  # of every cursor, not of this connection alone
    connection.execute(f"SET GLOBAL disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET GLOBAL lock_configuration = true")
