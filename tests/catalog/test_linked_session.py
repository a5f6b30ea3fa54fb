"""A session on a catalog with linked tables opens, and answers questions about all of them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.cli import main
from lapwing.errors import CatalogMismatch, DataFault
from lapwing.release.account import registration

LINK = 'link = { table = "customer", on = { o_custkey = "c_custkey" } }'
TEXT = f"""\
[dataset]
name = "shop"
ledger = "sqlite:shop.db"

[budget]
epsilon = 10

[tables.orders]
source = "orders.parquet"
{LINK}
max_rows_per_unit = 50

[tables.orders.columns]
o_orderkey = {{ type = "integer" }}
o_custkey = {{ type = "integer" }}

[tables.customer]
source = "customer.parquet"
privacy_unit = "c_custkey"
max_rows_per_unit = 1

[tables.customer.columns]
c_custkey = {{ type = "integer" }}
"""
FILES: dict[str, dict[str, list[object]]] = {
    "customer": {"c_custkey": [1, 2, 3]},
    "orders": {"o_orderkey": [1, 2, 3, 4], "o_custkey": [1, 1, None, 9]},
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        pq.write_table(pa.table(content), tmp_path / f"{name}.parquet")
    (tmp_path / "lapwing.toml").write_text(TEXT, encoding="utf-8")
    return tmp_path / "lapwing.toml"


def test_the_root_and_a_linked_table_are_answered(shop: Path) -> None:
    with lw.connect(shop) as session:
        for question in (
            "SELECT COUNT(*) AS n FROM customer",
            "SELECT COUNT(*) AS n FROM orders",
            "SELECT COUNT(*) AS n FROM customer JOIN orders ON o_custkey = c_custkey",
            "SELECT COUNT(*) AS n FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders)",
        ):
            assert len(session.sql(question, epsilon=1).rows()) == 1


def test_the_ledger_is_registered_for_the_units_of_the_roots(shop: Path) -> None:
    described = load(shop)
    assert registration(described).privacy_unit == "c_custkey"
    lw.connect(shop).close()
    apart = TEXT.replace(
        'link = { table = "customer", on = { o_custkey = "c_custkey" } }', 'privacy_unit = "o_orderkey"'
    )
    shop.write_text(apart, encoding="utf-8")
    with pytest.raises(CatalogMismatch, match="privacy_unit is 'c_custkey' \\(given: 'c_custkey, o_orderkey'\\)"):
        lw.connect(shop)


def test_a_linked_file_must_hold_what_its_table_declares(shop: Path) -> None:
    pq.write_table(pa.table({"o_orderkey": [1]}), shop.parent / "orders.parquet")
    with pytest.raises(DataFault, match=r"orders\.parquet has no column o_custkey"):
        lw.connect(shop)


@pytest.mark.long
def test_linked_tables_have_indexes_too(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("build", "status", "drop"):
        assert main(("index", command, "--catalog", str(shop))) == 0
        said = capsys.readouterr().out.splitlines()
        assert [line.partition(":")[0] for line in said] == ["customer", "orders"], "parents first"


@pytest.mark.long
def test_protecting_again_with_other_bounds_takes_linked_tables_along(shop: Path) -> None:
    people = shop.parent / "customer.parquet"
    facts = {"privacy_unit": "c_custkey", "epsilon": 1, "max_rows_per_unit": 1}
    lw.protect(people, **facts).close()  # type: ignore[arg-type]
    beside = shop.parent / "customer.lapwing.toml"
    orders = TEXT[TEXT.index("[tables.orders]") : TEXT.index("[tables.customer]")]
    beside.write_text(beside.read_text(encoding="utf-8") + orders, encoding="utf-8")
    lw.protect(people, domains={"c_custkey": [1, 2]}, **facts).close()  # type: ignore[arg-type]
    customer, linked = load(beside).tables
    assert customer.columns[0].values == (1, 2)
    assert linked.link is not None
    assert linked.link.parent == customer


@pytest.mark.long
def test_tables_of_the_same_units_are_joined(shop: Path) -> None:
    pq.write_table(pa.table({"pid": [1, 2, 2]}), shop.parent / "bills.parquet")
    bills = TEXT[TEXT.index("[tables.customer]") :].replace("customer", "bills").replace("c_custkey", "pid")
    both = (TEXT + "\n" + bills).replace("max_rows_per_unit = 1\n", 'max_rows_per_unit = 1\nunit = "person"\n')
    shop.write_text(both, encoding="utf-8")
    customer, other = (table for table in load(shop).tables if table.link is None)
    assert customer.units == other.units == '"person"'
    with lw.connect(shop) as session:
        assert len(session.sql("SELECT COUNT(*) AS n FROM bills", epsilon=1).rows()) == 1
        joined = session.sql("SELECT COUNT(*) AS n FROM customer JOIN bills ON c_custkey = pid", epsilon=1)
        assert len(joined.rows()) == 1
