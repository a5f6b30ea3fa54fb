"""References: joins by a key that does not say whose row it is keep what is of one unit, and move as far as is said.

A return has its customer and its sale; some returns in the data name the sale of somebody else. Questions are asked of
the engine without noise, and of plain DuckDB with the comparison of units written out.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lapwing.catalog.toml import dumps, loads
from lapwing.errors import CatalogError, DataFault
from lapwing.query.from_clause import unit_joins
from lapwing.query.sensitivity.stability import of_question
from lapwing.tables import tables_of
from tests.support.effort import one_in, some
from tests.support.query.asked import Tables, World, left, plain
from tests.support.query.printing import ACROSS_UNITS, print_otherwise
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1
[tables.customer]
source = "customer.parquet"
privacy_unit = "ck"
max_rows_per_unit = 1
unit = "person"
[tables.customer.columns]
ck = { type = "integer" }
site = { type = "string", values = ["n", "s"] }
[tables.sales]
source = "sales.parquet"
privacy_unit = "buyer"
max_rows_per_unit = 6
unit = "person"
[tables.sales.columns]
buyer = { type = "integer" }
ticket = { type = "integer" }
item = { type = "integer" }
paid = { type = "integer", lower = 0, upper = 50 }
[tables.returns]
source = "returns.parquet"
privacy_unit = "bringer"
max_rows_per_unit = 5
unit = "person"
[tables.returns.columns]
bringer = { type = "integer" }
r_ticket = { type = "integer" }
r_item = { type = "integer" }
back = { type = "integer", lower = 0, upper = 50 }
[tables.returns.references.sales]
r_ticket = "ticket"
r_item = "item"
[tables.lines]
source = "lines.parquet"
link = { table = "sales", on = { l_ticket = "ticket", l_item = "item" } }
max_rows_per_unit = 9
[tables.lines.columns]
l_ticket = { type = "integer" }
l_item = { type = "integer" }
who = { type = "integer" }
kind = { type = "string", values = ["a", "b"] }
[tables.lines.references.customer]
who = "ck"
"""
ROOMY = re.sub(r"max_rows_per_unit = [2-9]", "max_rows_per_unit = 1000", CATALOG)
ITSELF = CATALOG.replace("[tables.returns]\n", '[tables.sales.references.sales]\nticket = "ticket"\n[tables.returns]\n')
"""Sales refer to themselves by their ticket; in the data some tickets are of two buyers all the same."""
OTHERS = {
    "SELECT COUNT(*), SUM(a.paid) FROM sales a JOIN sales b ON a.ticket = b.ticket AND a.item <> b.item": (
        "SELECT COUNT(*), SUM(a.paid) FROM sales a JOIN sales b ON a.buyer = b.buyer AND a.ticket = b.ticket "
        "AND a.item <> b.item"
    ),
    "SELECT COUNT(*) FROM sales a WHERE EXISTS (SELECT 1 FROM sales b WHERE b.ticket = a.ticket AND b.item > a.item)": (
        "SELECT COUNT(*) FROM sales a WHERE EXISTS (SELECT 1 FROM sales b WHERE b.buyer = a.buyer "
        "AND b.ticket = a.ticket AND b.item > a.item)"
    ),
    "SELECT COUNT(*), SUM(paid) FROM sales WHERE NOT EXISTS (SELECT 1 FROM returns WHERE r_ticket = ticket)": (
        "SELECT COUNT(*), SUM(paid) FROM sales WHERE NOT EXISTS (SELECT 1 FROM returns WHERE r_ticket = ticket "
        "AND bringer = buyer)"
    ),
    "SELECT SUM(back) FROM sales, returns WHERE ticket = r_ticket AND paid > 9": (
        "SELECT SUM(back) FROM sales, returns WHERE ticket = r_ticket AND bringer = buyer AND paid > 9"
    ),
}
"""Questions where sales refer to themselves, and what they mean in plain SQL."""
MEANT = {
    "SELECT COUNT(*), SUM(paid - back) FROM sales JOIN returns ON ticket = r_ticket AND item = r_item": (
        "buyer = bringer"
    ),
    "SELECT COUNT(*), SUM(back) FROM returns JOIN sales ON r_ticket = ticket AND item = r_item": "buyer = bringer",
    "SELECT SUM(back) FROM sales, returns WHERE ticket = r_ticket AND item = r_item AND paid > 9": "buyer = bringer",
    "SELECT COUNT(*), SUM(back) FROM sales LEFT JOIN returns ON ticket = r_ticket AND item = r_item": "buyer = bringer",
    "SELECT COUNT(*) FROM sales WHERE EXISTS (SELECT 1 FROM returns WHERE r_ticket = ticket AND r_item = item)": (
        "buyer = bringer"
    ),
    "SELECT COUNT(*) FROM sales WHERE NOT EXISTS (SELECT 1 FROM returns WHERE r_ticket = ticket AND r_item = item)": (
        "buyer = bringer"
    ),
    "SELECT site, COUNT(*) FROM customer, sales, returns WHERE ck = buyer AND ticket = r_ticket AND item = r_item "
    "GROUP BY site": "buyer = bringer",
    "SELECT site, kind, COUNT(*) FROM lines JOIN customer ON who = ck GROUP BY site, kind": (
        "ck = (SELECT buyer FROM sales WHERE ticket = l_ticket AND item = l_item)"
    ),
}
"""Questions, and how plain SQL says that the rows are of one unit."""
REFUSED = [
    "SELECT COUNT(*) FROM sales JOIN returns ON ticket = r_ticket",
    "SELECT COUNT(*) FROM sales JOIN returns ON ticket = r_item AND item = r_ticket",
    "SELECT COUNT(*) FROM returns a JOIN returns b ON a.r_ticket = b.r_ticket AND a.r_item = b.r_item",
    "SELECT COUNT(*) FROM returns JOIN lines ON r_ticket = l_ticket AND r_item = l_item",
]


def tables(random: Random, *, dirty: bool = True) -> Tables:
    """Return random tables, in which a third of the returns and of the lines names somebody else's row."""
    people = list(range(1, 6))
    sales = [(random.choice(people), n // 2, n % 2, random.randint(0, 50)) for n in range(random.randint(8, 24))]
    returns, lines = [], []
    for buyer, ticket, item, _ in sales:
        for _ in range(random.randint(0, 2)):
            bringer = buyer if random.random() < 2 / 3 else random.choice([*people, None] if dirty else people)
            returns.append((bringer, ticket, random.choice([item, None]) if dirty else item, random.randint(0, 50)))
            lines.append((ticket, item, random.choice([buyer, buyer, *people[:2]]), random.choice("ab")))
    columns: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = {
        "customer": (("ck", "site"), [(one, random.choice("ns")) for one in people]),
        "sales": (("buyer", "ticket", "item", "paid"), sales),
        "returns": (("bringer", "r_ticket", "r_item", "back"), returns),
        "lines": (("l_ticket", "l_item", "who", "kind"), lines),
    }
    return {
        name: pa.table(
            {
                column: pa.array([row[i] for row in rows], pa.string() if column in ("site", "kind") else pa.int64())
                for i, column in enumerate(names)
            }
        )
        for name, (names, rows) in columns.items()
    }


def without(unit: int, found: Tables) -> Tables:
    """Take a unit out of all tables, and what is linked to its rows with it."""
    mine = f"SELECT 1 FROM sales WHERE buyer = {unit} AND ticket = l_ticket AND item = l_item"
    return left(
        {
            "customer": f"SELECT * FROM customer WHERE ck <> {unit}",
            "sales": f"SELECT * FROM sales WHERE buyer <> {unit}",
            "returns": f"SELECT * FROM returns WHERE bringer IS DISTINCT FROM {unit}",
            "lines": f"SELECT * FROM lines WHERE NOT EXISTS ({mine})",
        },
        found,
    )


def check_neighbours(folder: Path, found: Tables, catalog: str = CATALOG, texts: Iterable[str] = MEANT) -> None:
    with World(folder / "all", catalog, found) as world:
        plans = [world.plan(text) for text in texts]
        whole = [world.exact(plan.question) for plan in plans]
    for unit in some(4, range(1, 6)):
        with World(folder / str(unit), catalog, without(unit, found)) as world:
            for plan, cells in zip(plans, whole, strict=True):
                other = world.exact(plan.question)
                for place, candidates in enumerate(of_question(plan.question, "add_remove")):
                    zero = (0,) * len(plan.question.numbers)
                    moved = sum(
                        abs(cells.get(cell, zero)[place] - other.get(cell, zero)[place]) for cell in cells | other
                    )
                    assert all(moved <= candidate.sensitivity.l1 for candidate in candidates), plan


def units_compared(text: str, condition: str) -> str:
    """Write the comparison of units into a question for plain SQL."""
    if "EXISTS" in text:
        return text.replace("r_item = item)", f"r_item = item AND {condition})")
    if " ON " in text:
        return re.sub(r" ON (.*?)( GROUP BY|$)", rf" ON \1 AND {condition}\2", text)
    return text.replace(" WHERE ", f" WHERE {condition} AND ")


@pytest.mark.long
@pytest.mark.parametrize("seed", one_in(2, range(2)))
def test_joins_keep_what_is_of_one_unit(tmp_path: Path, seed: int) -> None:
    found = tables(Random(seed), dirty=False)
    with World(tmp_path, ROOMY, found) as world:
        for text, condition in MEANT.items():
            wanted = {
                tuple(map(str, row[: row_keys(text)])): [int(value or 0) for value in row[row_keys(text) :]]
                for row in plain(units_compared(text, condition), found)
            }
            shown = {tuple(map(str, key)): cell for key, cell in world.exact(world.plan(text).question).items()}
            assert {key: shown_numbers(cell, values) for (key, values), cell in matched(wanted, shown)} == wanted, text


def row_keys(text: str) -> int:
    return text.count(",", text.find("GROUP BY")) + 1 if "GROUP BY" in text else 0


def matched(wanted: dict[Any, list[int]], shown: dict[Any, tuple[int, ...]]) -> Any:
    assert {key for key, cell in shown.items() if any(cell)} <= wanted.keys()
    return [((key, values), shown.get(key, (0,) * len(values))) for key, values in wanted.items()]


def shown_numbers(cell: tuple[int, ...], values: list[int]) -> list[int]:
    return list(cell[: len(values)])


@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_no_unit_moves_a_measure_by_more_than_is_claimed(tmp_path: Path, seed: int) -> None:
    check_neighbours(tmp_path, tables(Random(seed)))


def test_a_table_refers_to_itself_by_what_rows_of_one_unit_share(tmp_path: Path) -> None:
    found = tables(Random(0), dirty=False)
    roomy = re.sub(r"max_rows_per_unit = [2-9]", "max_rows_per_unit = 1000", ITSELF)
    with World(tmp_path / "itself", roomy, found) as world:
        for text, meant in OTHERS.items():
            ((wanted,), (cell,)) = (plain(meant, found), world.exact(world.plan(text).question).values())
            assert list(cell[: len(wanted)]) == [int(value or 0) for value in wanted], text
    check_neighbours(tmp_path, tables(Random(1)), ITSELF, OTHERS)


@pytest.mark.long
def test_nothing_is_supposed_of_rows_that_refer_to_each_other(tmp_path: Path) -> None:
    """Neither that they are unique, nor how many a ticket has: a row meets as many others as its unit has."""
    text = next(iter(OTHERS))
    with World(tmp_path, ITSELF, tables(Random(0))) as world:
        assert world.plan(text).question.selection.rows_per_unit == 6 * 5
    with World(tmp_path / "not", CATALOG, tables(Random(0))) as world, refused_as("unlinked_tables"):
        world.plan(text)


def join_across_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug: without the comparison of units a return of one person reaches the sale of another."""
    print_otherwise(lambda text: re.sub(*ACROSS_UNITS, text), monkeypatch)


def test_twin_rows_joined_across_units_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    join_across_units(monkeypatch)
    with pytest.raises(AssertionError):
        check_neighbours(tmp_path, tables(Random(0)))


@pytest.mark.long
def test_twin_rows_of_a_table_joined_across_units_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    join_across_units(monkeypatch)
    with pytest.raises(AssertionError):
        test_a_table_refers_to_itself_by_what_rows_of_one_unit_share(tmp_path)


def test_a_sale_has_no_more_rows_than_returns_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT COUNT(*) FROM sales JOIN returns ON ticket = r_ticket AND item = r_item"
    with World(tmp_path, CATALOG, tables(Random(0))) as world:
        assert world.plan(text).question.selection.rows_per_unit == 5
        assert world.plan(text.replace("JOIN", "LEFT JOIN")).question.selection.rows_per_unit == 6 + 5 - 1
        monkeypatch.setattr(unit_joins, "at_most_one", lambda *_: False)
        assert world.plan(f"{text} AND 1 = 1").question.selection.rows_per_unit == 30


@pytest.mark.long
@pytest.mark.parametrize("text", REFUSED)
def test_joins_by_less_than_a_reference_are_refused(tmp_path: Path, text: str) -> None:
    with (
        World(tmp_path, CATALOG, tables(Random(0))) as world,
        refused_as("unlinked_tables"),
    ):
        world.plan(text)


def test_without_the_reference_the_join_is_refused(tmp_path: Path) -> None:
    text = re.sub(r"\[tables.returns.references.sales\]\n.*\n.*\n", "", CATALOG)
    with World(tmp_path, text, tables(Random(0))) as world, refused_as("unlinked_tables"):
        world.plan(next(iter(MEANT)))


def test_a_key_that_two_rows_share_is_a_fault(tmp_path: Path) -> None:
    found = tables(Random(0))
    twice = pa.concat_tables([found["sales"], found["sales"].slice(0, 1)])
    with World(tmp_path, CATALOG, found | {"sales": twice}) as world:
        plan = world.plan("SELECT COUNT(*) FROM sales")
        with pytest.raises(DataFault, match="several rows with the same item, ticket"):
            world.exact(plan.question)


def test_a_catalog_with_references_is_written_as_it_is_read(tmp_path: Path) -> None:
    read = loads(CATALOG, file="shop.toml", folder=tmp_path)
    assert loads(dumps(read), file="shop.toml", folder=tmp_path) == read
    plainer = loads(CATALOG[: CATALOG.rfind("[tables.lines.references")], file="shop.toml", folder=tmp_path)
    assert plainer.digest != read.digest


WRONG = {
    ("[tables.returns.references.sales]", "[tables.returns.references.sale]"): (
        'tables.returns.references.sale: there is no protected table "sale"'
    ),
    ("[tables.returns.references.sales]", "[tables.returns.references.returns]"): (
        "is this table itself; write the same column on both sides"
    ),
    ('r_ticket = "ticket"', 'r_ticket = "item"'): "a column appears more than once",
    ('r_ticket = "ticket"', 'r_ticket = "paid"'): "has bounds or a step",
    ('r_ticket = "ticket"', 'r_ticket = "tickets"'): 'there is no column "tickets"',
    ('max_rows_per_unit = 5\nunit = "person"', "max_rows_per_unit = 5"): "have different units",
    ("[tables.lines.references.customer]\nwho", "[tables.lines.references]\ncustomer"): "write a section like",
}


@pytest.mark.parametrize("change", WRONG, ids=lambda change: change[1][-20:])
def test_references_that_cannot_be_meant_are_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    text = CATALOG.replace(*change)
    assert text != CATALOG
    with pytest.raises(CatalogError, match=re.escape(WRONG[change])):
        loads(text, file="shop.toml", folder=tmp_path)


def test_what_a_table_refers_to_is_described() -> None:
    document = {
        "tables": [
            {
                "name": "returns",
                "protected": True,
                "privacy_unit": "bringer",
                "max_rows_per_unit": 5,
                "columns": {},
                "references": {"sales": {"r_ticket": "ticket", "r_item": "item"}},
            }
        ],
        "views": {},
    }
    (described,) = tables_of(document).values()
    assert described.summary.endswith("refers to sales by r_ticket = ticket and r_item = item")
