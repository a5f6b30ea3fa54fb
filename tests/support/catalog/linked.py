"""A catalog of linked tables, as text and as values."""

from lapwing.catalog import Catalog, Table
from tests.support.catalog.examples import catalog

LINKED = """\
[dataset]
name = "shop"
ledger = "sqlite:shop.db"

[budget]
epsilon = 1

[tables.lineitem]
source = "lineitem.parquet"
link = { table = "orders", on = { l_orderkey = "o_orderkey", l_day = "o_day" } }
max_rows_per_unit = 300

[tables.lineitem.columns]
l_orderkey = { type = "integer" }
l_day = { type = "date" }
l_price = { type = "decimal", lower = 0, upper = 1000, step = 0.01 }

[tables.customer]
source = "customer.parquet"
privacy_unit = "c_custkey"
unit = "person"
max_rows_per_unit = 1
part = "c_site"

[tables.customer.columns]
c_custkey = { type = "integer" }
c_name = { type = "string" }
c_score = { type = "float" }
c_site = { type = "integer", values = [1, 2] }

[tables.orders]
source = "orders.parquet"
link = { table = "customer", on = { o_custkey = "c_custkey" } }
max_rows_per_unit = 50

[tables.orders.columns]
o_orderkey = { type = "integer" }
o_custkey = { type = "integer" }
o_day = { type = "date" }
o_clerk = { type = "string" }
o_total = { type = "decimal" }
o_rush = { type = "boolean" }
o_rank = { type = "float" }

[tables.bills]
source = "bills.parquet"
privacy_unit = "pid"
unit = "person"
max_rows_per_unit = 4

[tables.bills.columns]
pid = { type = "integer" }
paid = { type = "boolean" }
sum = { type = "decimal" }

[tables.shelves]
source = "shelves.parquet"
privacy_unit = "row"

[tables.shelves.columns]
shelf = { type = "integer" }

[tables.codes]
source = "codes.csv"
public = true

[tables.codes.columns]
code = { type = "integer" }
"""


def linked(old: str = "", new: str = "") -> Catalog:
    """Read the catalog of linked tables, with one place changed."""
    assert not old or LINKED.count(old) == 1, old
    return catalog(LINKED.replace(old, new) if old else LINKED)


def table(name: str, read: Catalog | None = None) -> Table:
    """Return a table of the catalog."""
    return next(found for found in (read or linked()).tables if found.name == name)
