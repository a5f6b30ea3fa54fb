"""A table that the ledger knows stays that of the same people: by its privacy unit, or by where its link leads."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import CatalogMismatch
from lapwing.ledger import administration
from tests.support.effort import one_in

SUPPLIERS = """
[tables.supplier]
source = "supplier.parquet"
privacy_unit = "sk"
max_rows_per_unit = 1
[tables.supplier.columns]
sk = { type = "integer" }
"""
ORDERS = """
[tables.orders]
source = "orders.parquet"
{owner}
max_rows_per_unit = 4
[tables.orders.columns]
ck = {{ type = "integer" }}
osk = {{ type = "integer" }}
"""
CUSTOMERS = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1
[tables.customer]
source = "customer.parquet"
privacy_unit = "ck"
max_rows_per_unit = 1
[tables.customer.columns]
ck = { type = "integer" }
"""
TO_CUSTOMER = 'link = { table = "customer", on = { ck = "ck" } }'
OTHERS = (
    'link = { table = "supplier", on = { ck = "sk" } }',
    'link = { table = "supplier", on = { osk = "sk" } }',
    'link = { table = "customer", on = { osk = "ck" } }',
    'privacy_unit = "sk"',
)


def catalog_of(owner: str) -> str:
    return CUSTOMERS + SUPPLIERS + ORDERS.format(owner=owner)


@pytest.fixture
def registered(tmp_path: Path) -> Path:
    """Return a catalog with a ledger that knows whose rows its tables have."""
    for name, columns in {
        "customer": {"ck": [1, 2], "site": ["n", "s"]},
        "supplier": {"sk": [1, 2]},
        "orders": {"ck": [1, 2, 2], "osk": [2, 2, 1], "sk": [1, 1, 1]},
    }.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    path = tmp_path / "lapwing.toml"
    path.write_text(catalog_of(TO_CUSTOMER), encoding="utf-8")
    with lw.connect(path) as session:
        session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=0.1)
    return path


@pytest.mark.parametrize("owner", one_in(4, OTHERS))
def test_a_table_that_is_known_does_not_become_that_of_others(registered: Path, owner: str) -> None:
    registered.write_text(catalog_of(owner), encoding="utf-8")
    with pytest.raises(CatalogMismatch, match=r"rows of orders are: linked to customer by ck = ck \(given: "):
        lw.connect(registered)
    registered.write_text(catalog_of(TO_CUSTOMER), encoding="utf-8")
    with lw.connect(registered) as session:
        assert len(session.budget().history) == 1, "nothing was changed"


def test_twin_owners_that_are_not_compared_become_others(registered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "require_same_owners", lambda *_: None)
    registered.write_text(catalog_of(OTHERS[0]), encoding="utf-8")
    lw.connect(registered).close()


def test_a_table_that_came_later_is_known_from_then_on(registered: Path) -> None:
    registered.write_text(
        catalog_of(TO_CUSTOMER) + VISITS.format(TO_CUSTOMER.replace("{ ck", "{ vid")), encoding="utf-8"
    )
    pq.write_table(pa.table({"vid": [1]}), registered.parent / "visits.parquet")
    with lw.connect(registered) as session:
        session.accept_data()
    registered.write_text(catalog_of(TO_CUSTOMER) + VISITS.format(OTHERS[0].replace("{ ck", "{ vid")), encoding="utf-8")
    with pytest.raises(CatalogMismatch, match="rows of visits are"):
        lw.connect(registered)


VISITS = """
[tables.visits]
source = "visits.parquet"
{}
max_rows_per_unit = 2
[tables.visits.columns]
vid = {{ type = "integer" }}
"""


def renamed(text: str) -> str:
    return text.replace("[tables.customer", "[tables.people").replace('table = "customer"', 'table = "people"')


def on_its_own(text: str) -> str:
    return text.replace(TO_CUSTOMER, 'privacy_unit = "ck"')


@pytest.mark.parametrize("changed", one_in(2, [renamed, on_its_own]))
def test_a_table_of_the_same_people_may_say_so_otherwise(registered: Path, changed: Callable[[str], str]) -> None:
    for text in (changed(catalog_of(TO_CUSTOMER)), catalog_of(TO_CUSTOMER)):
        registered.write_text(text, encoding="utf-8")
        with lw.connect(registered) as session:
            session.accept_data()
