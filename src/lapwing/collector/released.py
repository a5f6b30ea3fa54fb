"""Reports as they are released: in Parquet files, without identities, in random order."""

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM, Entropy

COLUMN: Final = "r"
"""What a report says, as JSON."""


def write_released(
    path: Path, said: Sequence[str], *, digest: str, until: date, least: int, entropy: Entropy = SYSTEM
) -> None:
    """Write reports in random order, durably: the whole file, or none.

    Every order of the reports is as likely. The file says of which task they are, and the last day on which one of them
    was taken; a row has what one report says, and nothing else.

    Args:
        said: Of each report, as JSON.
        least: The size of the smallest group of reports that was ever made known.
    """
    order = uniform_order(len(said), entropy)
    table = pa.table({COLUMN: pa.array([said[place] for place in order], type=pa.string())})
    facts = {"task": digest, "until": until.isoformat(), "reports": str(len(said)), "least": str(least)}
    table = table.replace_schema_metadata(facts)
    draft = path.with_suffix(".new")
    with draft.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def uniform_order(count: int, entropy: Entropy) -> list[int]:
    """Return the numbers below a count in a uniformly random order: by random keys, drawn anew if two are the same.

    Given that no two are the same, every order of independent keys is as likely.
    """
    while True:
        keys = samplers.uniform_integers(1 << 62, count, entropy)
        order = np.argsort(keys, kind="stable")
        if np.all(np.diff(keys[order]) > 0):
            return list(map(int, order))
