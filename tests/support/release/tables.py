"""A small protected table for tests of the release path."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.opening import open_session
from tests.support.fixed_entropy import StreamEntropy

PEOPLE = 200


def visits(folder: Path, *, people: int = PEOPLE) -> Path:
    """Write a table of two visits a person; plan alternates, cost runs from 0 to 99."""
    rows = range(2 * people)
    table = pa.table(
        {
            "person_id": [row // 2 for row in rows],
            "plan": ["ab"[row % 2] for row in rows],
            "cost": [float(row % 100) for row in rows],
        }
    )
    path = folder / "visits.parquet"
    pq.write_table(table, path)
    return path


def protected(path: Path, **changes: Any) -> lw.Session:
    """Protect the table with ordinary bounds."""
    facts: dict[str, Any] = {
        "privacy_unit": "person_id",
        "epsilon": 3,
        "delta": 1e-6,
        "max_rows_per_unit": 2,
        "bounds": {"cost": (0, 100)},
        "domains": {"plan": ["a", "b", "c"]},
    }
    return lw.protect(path, **(facts | changes))


def repeatable(path: Path, label: str, **changes: Any) -> lw.Session:
    """Protect the table, and open a session whose noise is the same for the same label."""
    with protected(path, **changes) as first:
        catalog = first.catalog
    return open_session(catalog, entropy=StreamEntropy(label))
