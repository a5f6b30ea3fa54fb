"""A service on a sample of forty thousand people, one row each: whose ages are even from 0 to 99."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.toml import load
from lapwing.opening import open_session
from lapwing.server.service import Service, ServiceSettings
from tests.support.server.world import QUICK, STORE, World, introduce, serving

PEOPLE = 40_000
CATALOG = """
[dataset]
name = "open"
ledger = "sqlite:open.db"
[budget]
epsilon = 0.2
delta = 1e-6
[tables.people]
source = "people.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.people.columns]
age = { type = "integer", lower = 0, upper = 100 }
"""


@contextmanager
def sampled(folder: Path, settings: ServiceSettings = QUICK, people: str | None = None) -> Iterator[World]:
    """Run the service; alice and bob may ask."""
    folder.mkdir(exist_ok=True)
    ages = np.random.default_rng(3).integers(0, 100, PEOPLE)
    pq.write_table(pa.table({"person": np.arange(PEOPLE), "age": ages}), folder / "people.parquet")
    (folder / "open.toml").write_text(CATALOG, "utf-8")
    service = Service(people or folder / STORE, [open_session(load(folder / "open.toml"))], settings)
    introduce(service)
    (served,) = service.datasets.everything()
    service.policies.grant("open", "bob", None, {}, served.session.budget().total, by="carol")
    with serving(service) as world:
        yield world
