"""Small tables of people with several rows each, to train on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.unit_rows import Integers, UnitRows
from lapwing.mechanisms import RoundedGaussian

Row = dict[str, Any]
SCHEMA = pa.schema(
    [("person", pa.string()), ("age", pa.int64()), ("pay", pa.float64()), ("plan", pa.string()), ("ill", pa.bool_())]
)
ROWS_PER_PERSON = 3


def people(count: int, seed: int = 1) -> list[Row]:
    """Draw people with one to three rows; who is older, or has plan b, is ill more often."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(count):
        for _ in range(int(rng.integers(1, ROWS_PER_PERSON + 1))):
            age, plan = int(rng.integers(0, 100)), str(rng.choice(["a", "b", "c"]))
            pay = round(float(np.clip(2 * age + rng.normal(0, 20), 0, 200)), 1)
            ill = bool(rng.random() < 1 / (1 + np.exp(-(age - 50) / 12 - (2 if plan == "b" else 0))))
            rows.append({"person": f"p{person}", "age": age, "pay": pay, "plan": plan, "ill": ill})
    return rows


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def opened(folder: Path, rows: Sequence[Row], **more: Any) -> lw.Session:
    """Protect rows in a folder of their own."""
    folder.mkdir(exist_ok=True)
    pq.write_table(table_of(rows), folder / "visits.parquet")
    options: dict[str, Any] = {
        "privacy_unit": "person",
        "epsilon": 50,
        "delta": 1e-6,
        "max_rows_per_unit": ROWS_PER_PERSON,
        "bounds": {"age": (0, 100), "pay": (0, 200)},
        "domains": {"plan": ["a", "b", "c"]},
    }
    return lw.protect(folder / "visits.parquet", **(options | more))


@dataclass
class Seen:
    """What was released: of each release its name, the exact sum, the bound, the variance of the noise, the outcome."""

    names: list[str] = field(default_factory=list)
    exact: list[Integers] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)
    variances: list[Any] = field(default_factory=list)
    released: list[Integers] = field(default_factory=list)


Release = Callable[..., Integers]


@contextmanager
def watched(seen: Seen, replayed: Seen | None = None) -> Iterator[None]:
    """Record what noise is added to; with a recording, give its outcomes again instead of fresh ones."""
    add, release, counts = RoundedGaussian.release, Releases.release, Releases.release_counts

    def noisy(mechanism: Any, values: Any, *entropy: Any) -> Any:
        seen.exact.append(np.array(values))
        seen.variances.append(mechanism.sigma**2)
        fresh = add(mechanism, values, *entropy)
        seen.released.append(replayed.released[len(seen.released)] if replayed is not None else fresh)
        return seen.released[-1]

    def named(
        self: Releases, name: str, rows: UnitRows, contributions: Integers, *, reach: int, bound: int
    ) -> Integers:
        seen.names.append(name)
        seen.bounds.append(bound)
        return release(self, name, rows, contributions, reach=reach, bound=bound)

    def counted(self: Releases, name: str, *arguments: Any, bound: int, **more: Any) -> Integers:
        seen.names.append(name)
        seen.bounds.append(bound)
        return counts(self, name, *arguments, bound=bound, **more)

    with (
        patch.object(RoundedGaussian, "release", noisy),
        patch.object(Releases, "release", named),
        patch.object(Releases, "release_counts", counted),
    ):
        yield


def farthest(first: Seen, second: Seen) -> float:
    """Return by how much, in bounds, the exact sums of two runs differ at most."""
    assert first.names == second.names
    assert first.bounds == second.bounds
    pairs = zip(first.exact, second.exact, first.bounds, strict=True)
    return max(float(np.sqrt(np.square((one - other).astype(float)).sum())) / bound for one, other, bound in pairs)


def lost(seen: Seen) -> float:
    """Return μ² of all that was released, by the noise that was really added."""
    return sum(float(bound**2 / variance) for bound, variance in zip(seen.bounds, seen.variances, strict=True))
