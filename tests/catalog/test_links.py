"""Links between protected tables: what they mean as values and as text, what they change, and how they are refused."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog import Catalog, Column, Link, Table
from lapwing.catalog.checks import MOST_LINKS
from lapwing.catalog.digests import table_facts
from lapwing.catalog.toml import dumps, loads, parents_first
from lapwing.errors import CatalogError, InvalidParameter
from tests.support.catalog.examples import FOLDER, catalog
from tests.support.catalog.linked import LINKED, linked, table


def refused(message: str) -> pytest.RaisesExc[CatalogError]:
    """Expect a refusal that says this."""
    return pytest.raises(CatalogError, match=re.escape(message))


# ---- meaning ---------------------------------------------------------------------------------------------------------


def test_links_are_read_wherever_their_tables_stand() -> None:
    read = linked()
    assert [found.name for found in read.tables] == ["lineitem", "customer", "orders", "bills", "shelves"]
    lineitem, customer, orders = read.tables[:3]
    assert lineitem.link == Link(parent=orders, on=(("l_orderkey", "o_orderkey"), ("l_day", "o_day")))
    assert orders.link == Link(parent=customer, on=(("o_custkey", "c_custkey"),))
    assert lineitem.lineage == (lineitem, orders, customer)
    assert (lineitem.root, customer.root, customer.lineage) == (customer, customer, (customer,))
    assert (lineitem.privacy_unit, lineitem.unit, lineitem.unit_is_row) == (None, None, False)


def test_whose_rows_they_are() -> None:
    lineitem, customer, orders, bills, shelves = linked().tables
    assert lineitem.units == orders.units == customer.units == bills.units == '"person"'
    assert shelves.units == "shelves.row"
    apart = linked('privacy_unit = "pid"\nunit = "person"', 'privacy_unit = "pid"').tables
    assert apart[3].units == "bills.pid"
    assert apart[0].units == '"person"'


def test_without_a_name_the_units_of_two_tables_are_two() -> None:
    """Also where their columns are called the same."""
    visits = catalog().tables[0]
    other = replace(visits, name="other", source="other.parquet")
    assert visits.privacy_unit == other.privacy_unit
    assert visits.units != other.units


@given(
    st.text('a."\\ ', min_size=1, max_size=6), st.text('a."\\ ', min_size=1, max_size=6), st.text('a.\\" ', min_size=1)
)
def test_no_name_for_units_is_that_of_a_table(name: str, column: str, unit: str) -> None:
    declared = (Column(name=column, type="integer"),)
    facts: dict[str, Any] = {"source": "s", "privacy_unit": column, "max_rows_per_unit": 1, "columns": declared}
    unnamed, named = Table(name=name, **facts), Table(name=name, unit=unit, **facts)
    assert unnamed.units != named.units


def test_the_column_of_the_unit_is_the_tables_own() -> None:
    lineitem, customer, *_, shelves = linked().tables
    assert (customer.unit_column, customer.unit_type) == ("c_custkey", "integer")
    assert catalog().tables[0].unit_type == "string"
    for found in (lineitem, shelves):
        with pytest.raises(InvalidParameter, match="says whose row it is; ask its root"):
            _ = found.unit_column


def test_it_is_written_as_it_was_read() -> None:
    read = linked()
    assert loads(dumps(read), file="x", folder=FOLDER) == read
    assert 'link = { table = "orders", on = { l_orderkey = "o_orderkey", l_day = "o_day" } }' in dumps(read)
    assert 'unit = "person"' in dumps(read)
    assert "privacy_unit = None" not in dumps(read)


def test_odd_names_are_written_in_quotes() -> None:
    odd = LINKED.replace("[tables.orders", '[tables."or ders"').replace('table = "orders"', 'table = "or ders"')
    odd = odd.replace("l_orderkey", '"l \\" é"').replace("o_orderkey =", '"o.k" =').replace('"o_orderkey"', '"o.k"')
    read = catalog(odd)
    assert loads(dumps(read), file="x", folder=FOLDER) == read


def test_a_changed_table_takes_its_children_along() -> None:
    read = linked()
    doubled = read.with_table(replace(table("customer"), max_rows_per_unit=2))
    assert doubled == linked("max_rows_per_unit = 1\n", "max_rows_per_unit = 2\n")
    with refused('tables.orders.link.table: leads to a different "customer" than the one in this catalog'):
        replace(read, tables=(read.tables[0], replace(table("customer"), max_rows_per_unit=2), *read.tables[2:]))
    with refused('tables.lineitem.link.table: there is no table "orders"; put it into the'):
        replace(read, tables=read.tables[:2])


# ---- in which order tables are read ----------------------------------------------------------------------------------


@given(st.integers(1, MOST_LINKS), st.randoms())
def test_a_table_comes_after_its_parent(length: int, random: Any) -> None:
    names = [f"t{number}" for number in range(length + 1)]
    pairs: list[tuple[str, str | None]] = [*zip(names[1:], names, strict=False), (names[0], None)]
    random.shuffle(pairs)
    assert parents_first(dict(pairs), ()) == tuple(names)


def chain(length: int) -> Table:
    key = Column(name="k", type="integer")
    found = Table(name="t0", source="s", privacy_unit="k", max_rows_per_unit=1, columns=(key,))
    for number in range(1, length + 1):
        link = Link(parent=found, on=(("k", "k"),))
        found = Table(name=f"t{number}", source="s", max_rows_per_unit=1, columns=(key,), link=link)
    return found


def test_the_longest_lineage() -> None:
    longest = chain(MOST_LINKS)
    assert len(longest.lineage) == MOST_LINKS + 1
    read = replace(linked(), tables=longest.lineage, public_tables=())
    assert loads(dumps(read), file="x", folder=FOLDER) == read
    with refused("tables.t17.link.table: more than 16 links to the privacy unit"):
        chain(MOST_LINKS + 1)
    links = {f"t{number}": f"t{number - 1}" if number else None for number in range(5000)}
    with refused("tables.t17.link.table: more than 16 links to the privacy unit"):
        parents_first(links, ())


# ---- refusals --------------------------------------------------------------------------------------------------------

ORDERS = 'link = { table = "customer", on = { o_custkey = "c_custkey" } }'
CUSTOMER = 'privacy_unit = "c_custkey"\nunit = "person"'
BILLS = 'privacy_unit = "pid"\nunit = "person"'


def to(parent: str, on: str = 'o_custkey = "c_custkey"') -> tuple[str, str]:
    """Change where the link of the orders leads."""
    return ORDERS, f"link = {{ table = {parent}, on = {{ {on} }} }}"


def key(here: str, there: str) -> tuple[str, str]:
    """Change what the link of the orders compares."""
    return to('"customer"', f'{here} = "{there}"')


REFUSED = {
    "unknown parent": (*to('"custmer"'), 'tables.orders.link.table: there is no table "custmer" (did you mean "cust'),
    "nothing like it": (*to('"zebra"'), 'tables.orders.link.table: there is no table "zebra"; name a protected table'),
    "another case": (*to('"Customer"'), 'tables.orders.link.table: "Customer" differs only by case from the table "c'),
    "public's case": (*to('"Codes"'), 'tables.orders.link.table: "Codes" differs only by case from the table "codes"'),
    "itself": (*to('"orders"'), 'tables.orders.link.table: "orders" is this table itself; name the table that its'),
    "circle": (*to('"lineitem"'), "tables.orders.link.table: links form a circle, "
               '"lineitem" to "orders" to "lineitem"; give one of these tables a privacy_unit'),
    "public": (*to('"codes"'), 'tables.orders.link.table: "codes" is a public table, and nobody belongs to its rows'),
    "rows": (*to('"shelves"', 'o_custkey = "shelf"'), 'tables.orders.link.table: each row of "shelves" is protected by '
             'itself, so no other row can belong to it; declare its key there, for example privacy_unit = "shelf"'),
    "rows by two": (*to('"shelves"', 'o_custkey = "shelf", o_day = "x"'), "tables.orders.link.table: each row of"),
    "parent a number": (*to("1"), "tables.orders.link.table: 1 is an integer; write a string, for example table ="),
    "no parent": (ORDERS, 'link = { on = { o_custkey = "c_custkey" } }', "tables.orders.link.table: missing; add for"),
    "text": (ORDERS, 'link = "customer"', 'tables.orders.link: "customer" is a string; write a section like'),
    "unknown key": (ORDERS, 'link = { table = "customer", onn = 1 }', 'tables.orders.link: unknown "onn" (did you'),
    "no on": (ORDERS, 'link = { table = "customer" }', "tables.orders.link.on: no columns; write which column here"),
    "empty on": (*to('"customer"', ""), "tables.orders.link.on: no columns; write which column here equals which"),
    "on a text": (ORDERS, 'link = { table = "customer", on = "c_custkey" }', 'tables.orders.link.on: "c_custkey" is a'),
    "on a number": (*to('"customer"', "o_custkey = 1"), "tables.orders.link.on.o_custkey: 1 is an integer; write a"),
    "column here": (*key("o_cust", "c_custkey"), 'tables.orders.link.on.o_cust: there is no column "o_cust" in '
                    "[tables.orders.columns]; declare it there with its type"),
    "column there": (*key("o_custkey", "c_cust"), 'tables.orders.link.on.o_custkey: there is no column "c_cust" in '
                     "[tables.customer.columns]; declare it there with its type"),
    "case here": (*key("O_CUSTKEY", "c_custkey"), 'tables.orders.link.on.O_CUSTKEY: "O_CUSTKEY" differs only by case '
                  'from "o_custkey" in [tables.orders.columns]'),
    "case there": (*key("o_custkey", "C_custkey"), 'tables.orders.link.on.o_custkey: "C_custkey" differs only by case'),
    "two to one": (*to('"customer"', 'o_custkey = "c_custkey", o_orderkey = "c_custkey"'),
                   "tables.orders.link.on: a column appears more than once; write pairs of different columns"),
    "integer and string": (*key("o_custkey", "c_name"), "tables.orders.link.on.o_custkey: is of type integer, but "
                           '"c_name" of "customer" is of type string; declare both alike'),
    "decimal and integer": (*key("o_total", "c_custkey"), "tables.orders.link.on.o_total: is of type decimal, but"),
    "date and integer": (*key("o_day", "c_custkey"), "tables.orders.link.on.o_day: is of type date, but"),
    "float": (*key("o_rank", "c_score"), "tables.orders.link.on.o_rank: is of type float, which cannot tell keys"),
    "bounds here": ("o_custkey = { type = \"integer\" }", "o_custkey = { type = \"integer\", lower = 1, upper = 9 }",
                    'tables.orders.link.on.o_custkey: "o_custkey" has bounds or a step, which make different keys one; '
                    "remove lower, upper and step in [tables.orders.columns]"),
    "bounds there": ("o_day = { type = \"date\" }", "o_day = { type = 'date', lower = 2020-01-01, upper = 2020-01-02 }",
                     'tables.lineitem.link.on.l_day: "o_day" has bounds or a step, which make different keys one; '
                     "remove lower, upper and step in [tables.orders.columns]"),
    "step": ("o_custkey = { type = \"integer\" }", "o_custkey = { type = \"integer\", step = 2 }",
             'tables.orders.link.on.o_custkey: "o_custkey" has bounds or a step'),
    "promise": ("o_custkey = { type = \"integer\"", "o_custkey = { type = 'integer', values = [1], nullable = false",
                'tables.orders.link.on.o_custkey: "o_custkey" promises not to be NULL, so a missing key would'),
    "link and unit": (ORDERS, f'privacy_unit = "o_custkey"\n{ORDERS}', "tables.orders.privacy_unit: the link to "
                      '"customer" already says whose the rows are; remove one of the two'),
    "link and row": (ORDERS, f'privacy_unit = "row"\n{ORDERS}', "tables.orders.privacy_unit: the link to"),
    "link and unit's name": (ORDERS, f'unit = "person"\n{ORDERS}', "tables.orders.unit: the link to "),
    "link and part": (ORDERS, f'part = "o_day"\n{ORDERS}', "tables.orders.part: the table at the end of"),
    "neither": (ORDERS, "", "tables.orders.privacy_unit: missing; add for example privacy_unit"),
    "no row bound": ("max_rows_per_unit = 50\n", "", "tables.orders.max_rows_per_unit: missing; add for example"),
    "units of rows": ('privacy_unit = "row"', 'privacy_unit = "row"\nunit = "shelf"', "tables.shelves.unit: each row "
                      "is protected by itself, so no other table can have rows of the same; remove it"),
    "unit empty": (BILLS, 'privacy_unit = "pid"\nunit = ""', "tables.bills.unit: use at least one character"),
    "unit a number": (BILLS, 'privacy_unit = "pid"\nunit = 1', "tables.bills.unit: 1 is an integer; write a string"),
    "unit's case": (BILLS, 'privacy_unit = "pid"\nunit = "Person"', 'tables.bills.unit: "person" and "Person" differ '
                    "only by case; write both alike"),
    "undeclared unit": (CUSTOMER, 'privacy_unit = "c_id"\nunit = "person"', "tables.customer.unit: needs the type of "
                        'the privacy unit, to find it in other tables; declare the column "c_id"'),
    "unit's type": ('unit = "person"\nmax_rows_per_unit = 4\n\n[tables.bills.columns]\npid = { type = "integer" }',
                    'unit = "person"\nmax_rows_per_unit = 4\n\n[tables.bills.columns]\npid = { type = "string" }',
                    'tables.bills.unit: "pid" of "bills" is of type string, but "c_custkey" of "customer" is of type '
                    "integer; declare both alike"),
    "decimal unit": (BILLS, 'privacy_unit = "sum"\nunit = "person"', 'tables.bills.unit: "sum" is of type decimal; '
                     "tables are compared by one of integer, string, date, timestamp"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_names_the_place(name: str) -> None:
    old, new, message = REFUSED[name]
    with pytest.raises(CatalogError) as caught:
        linked(old, new)
    assert str(caught.value).startswith(f"lapwing.toml: {message}")


@pytest.mark.parametrize("kind", ["boolean", "float", "decimal"])
def test_keys_that_cannot_be_told_apart(kind: str) -> None:
    parent = Table(name="p", source="p", privacy_unit="u", max_rows_per_unit=1, columns=(Column(name="k", type=kind),))
    link = Link(parent=parent, on=(("k", "k"),))
    with refused(f"tables.c.link.on.k: is of type {kind}, which cannot tell keys apart"):
        Table(name="c", source="c", max_rows_per_unit=1, columns=parent.columns, link=link)


def test_refusals_of_values_that_no_text_can_say() -> None:
    orders = table("orders")
    with refused("tables.orders.privacy_unit: missing; name the column that says whose row"):
        replace(orders, link=None)
    twice = Link(parent=table("customer"), on=(("o_custkey", "c_custkey"), ("o_custkey", "c_name")))
    with refused("tables.orders.link.on: a column appears more than once"):
        replace(orders, link=twice)


# ---- digests ---------------------------------------------------------------------------------------------------------

ON = 'on = { l_orderkey = "o_orderkey", l_day = "o_day" }'
MEANS_ANOTHER = {
    "parent's link": (*key("o_orderkey", "c_custkey"), ("lineitem", "orders")),
    "root's row bound": ("max_rows_per_unit = 1\n", "max_rows_per_unit = 2\n", ("lineitem", "orders", "customer")),
    "parent's row bound": ("max_rows_per_unit = 50", "max_rows_per_unit = 51", ("lineitem", "orders")),
    "own row bound": ("max_rows_per_unit = 300", "max_rows_per_unit = 301", ("lineitem",)),
    "root's part": ('part = "c_site"\n', "", ("lineitem", "orders", "customer")),
    "root's unit": ('"c_custkey"\nunit = "person"', '"c_name"', ("lineitem", "orders", "customer")),
    "root's column": ("c_score = { type = \"float", "c_score = { type = \"integer", ("lineitem", "orders", "customer")),
    "parent's column": ("o_rush =", "o_hurry =", ("lineitem", "orders")),
    "pairs": (ON, 'on = { l_orderkey = "o_orderkey" }', ("lineitem",)),
    "pairs crossed": (ON, 'on = { l_orderkey = "o_custkey", l_day = "o_day" }', ("lineitem",)),
    "no link": ('link = { table = "orders", ' + ON + " }", 'privacy_unit = "l_orderkey"', ("lineitem",)),
}  # fmt: skip


def changed_by(old: str, new: str) -> set[str]:
    before, after = linked(), linked(old, new)
    assert before.digest != after.digest
    return {one.name for one, other in zip(before.tables, after.tables, strict=True) if one.digest != other.digest}


@pytest.mark.parametrize("name", MEANS_ANOTHER)
def test_a_digest_covers_all_that_the_rows_mean(name: str) -> None:
    old, new, changed = MEANS_ANOTHER[name]
    assert changed_by(old, new) == set(changed)


def test_a_digest_of_one_table_alone_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "lineage", property(lambda found: (found,)))
    old, new, changed = MEANS_ANOTHER["root's row bound"]
    assert changed_by(old, new) != set(changed)


def test_a_digest_without_links_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("table", "model"):
        monkeypatch.setattr(
            f"lapwing.catalog.{module}.table_facts",
            lambda table: {key: fact for key, fact in table_facts(table).items() if key != "link"},
        )
    old, new, _ = MEANS_ANOTHER["pairs crossed"]
    assert linked(old, new).digest == linked().digest


def test_which_units_are_the_same_is_a_fact_about_the_catalog() -> None:
    """A question about one table means the same with and without: only those about two need it."""
    apart = linked('privacy_unit = "pid"\nunit = "person"', 'privacy_unit = "pid"')
    assert apart.digest != linked().digest
    assert [found.digest for found in apart.tables] == [found.digest for found in linked().tables]


def test_the_order_of_pairs_and_tables_means_nothing() -> None:
    turned = linked(ON, 'on = { l_day = "o_day", l_orderkey = "o_orderkey" }')
    assert turned != linked()
    assert table("lineitem", turned).digest == table("lineitem").digest
    assert turned.digest == linked().digest == replace(linked(), tables=linked().tables[::-1]).digest


def tables_of(read: Catalog) -> set[str]:
    return {found.digest for found in read.tables}


def test_different_tables_have_different_digests() -> None:
    assert len(tables_of(linked())) == len(linked().tables)
