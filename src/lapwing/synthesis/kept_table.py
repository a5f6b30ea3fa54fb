"""A synthetic table as the ledger keeps it, so that asking for the same again is free.

Theory of operation. Kept is what was released, and no more: the distribution, the measured tables with the half widths
of their intervals, the error, and the cells of the drawn rows. Values inside of bins are drawn anew each time, which is
post-processing. What is larger than MOST_KEPT is not kept, and has to be paid again.
"""

import base64
import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.ledger.entries import StoredAnswer
from lapwing.mechanisms.drawn import DrawnMechanism
from lapwing.privacy.measures import Loss, from_record
from lapwing.synthesis.attributes import Integers
from lapwing.synthesis.marginal_tree import MarginalTree
from lapwing.synthesis.reading import Clique
from lapwing.synthesis.synthetic_table import WorkloadError

MOST_KEPT: Final = 4_000_000
"""Characters: a ledger is read whole when it is checked."""
_FORMAT: Final = "synthetic table"
NOT_KEPT: Final = "spent"
"""The format of a charge without a stored table."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """A released table.

    Args:
        half_width: Of the interval of each of its counts, at 95 %.
    """

    clique: Clique
    counts: IntArray
    half_width: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SyntheticRelease:
    """All that was released.

    Args:
        cells: Of the drawn rows, a row each.
        cost: What was charged when it was.
        drawn: The mechanisms that released it. A restored table has none.
    """

    model: MarginalTree
    tables: tuple[Measured, ...]
    error: WorkloadError
    cells: Integers
    cost: Loss
    drawn: tuple[DrawnMechanism, ...] = ()


def payload_of(drawn: SyntheticRelease) -> str:
    """Return what the ledger keeps: the whole, or if it is too large that it is paid."""
    model = drawn.model
    facts = {
        "sizes": model.sizes,
        "nodes": model.nodes,
        "above": model.above,
        "total": model.total,
        "error": asdict(drawn.error),
        "tables": [(table.clique, table.half_width) for table in drawn.tables],
    }
    arrays: dict[str, NDArray[Any]] = {"cells": drawn.cells.astype(np.uint16)}  # a column has 1,000 cells at most
    arrays |= {f"node{place}": table for place, table in enumerate(model.tables)}
    arrays |= {f"table{place}": np.asarray(table.counts) for place, table in enumerate(drawn.tables)}
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    body = base64.b64encode(zlib.compress(packed.getvalue())).decode("ascii")
    mechanisms = [one.to_record() for one in drawn.drawn]
    record = {"format": _FORMAT, "cost": drawn.cost.to_record(), "facts": facts, "arrays": body, "drawn": mechanisms}
    text = json.dumps(record)
    return text if len(text) <= MOST_KEPT else json.dumps({"format": NOT_KEPT, "drawn": mechanisms})


def kept_in(answers: Sequence[StoredAnswer]) -> SyntheticRelease | None:
    """Return the synthetic table that was bought before, if one of these answers has it."""
    for answer in answers:
        record = json.loads(answer.payload)
        if record["format"] == _FORMAT:
            return _read(record)
    return None


def _read(record: dict[str, Any]) -> SyntheticRelease:
    facts, tuples = record["facts"], [tuple(clique) for clique, _ in record["facts"]["tables"]]
    with np.load(io.BytesIO(zlib.decompress(base64.b64decode(record["arrays"]))), allow_pickle=False) as arrays:
        model = MarginalTree(
            sizes=tuple(facts["sizes"]),
            nodes=tuple(tuple(node) for node in facts["nodes"]),
            above=tuple(facts["above"]),
            tables=tuple(arrays[f"node{place}"] for place in range(len(facts["nodes"]))),
            total=facts["total"],
        )
        tables = tuple(
            Measured(clique=clique, counts=arrays[f"table{place}"], half_width=half_width)
            for place, (clique, (_, half_width)) in enumerate(zip(tuples, facts["tables"], strict=True))
        )
        cells = arrays["cells"].astype(np.int64)
    error = WorkloadError(**facts["error"])
    return SyntheticRelease(model=model, tables=tables, error=error, cells=cells, cost=from_record(record["cost"]))
