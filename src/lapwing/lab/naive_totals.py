"""Naive targets of differencing: exact totals of groups, of which those of small groups are not shown.

None of it has a way into the engine.
"""

import pyarrow as pa
import pyarrow.compute as pc

from lapwing.lab.naive_counts import HIDDEN_BELOW


def exact_total(table: pa.Table, column: str, editor: str, *, without: int | None = None) -> int | None:
    """Sum a column over those who use an editor, except one student; or None for a small group."""
    mask = pc.equal(table["editor"], editor)
    if without is not None:
        mask = pc.and_(mask, pc.not_equal(table["id"], without))
    group = table.filter(mask)
    return int(pc.sum(group[column]).as_py()) if group.num_rows >= HIDDEN_BELOW else None
