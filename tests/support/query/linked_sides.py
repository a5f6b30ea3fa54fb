"""What may be joined: a table or a subquery, with the keys by which it hangs together with others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.support.query.questions import BOOLEAN, DATE, NUMBER, TEXT

Keys = Mapping[str, tuple[str, ...]]
"""The columns by which rows hang together with others, by what they name: a unit, a customer, an order."""


@dataclass(frozen=True)
class Side:
    """Something that may stand in FROM: its SQL, its columns by type, and its keys, the unit among them if shown."""

    sql: str
    columns: dict[str, str]
    keys: Keys

    def called(self, alias: str) -> "Side":
        """Return what its columns are called where it has an alias."""
        keys = {name: tuple(f"{alias}.{column}" for column in columns) for name, columns in self.keys.items()}
        return Side(alias, {f"{alias}.{name}": kind for name, kind in self.columns.items()}, keys)

    @property
    def unit(self) -> str | None:
        return self.keys["unit"][0] if "unit" in self.keys else None


CUSTOMERS = {"plan": TEXT, "age": NUMBER, "member": BOOLEAN}
ORDERS = {"kind": TEXT, "day": DATE, "pay": NUMBER}
ITEMS = {"tag": NUMBER, "unit": TEXT, "cost": NUMBER}
CALLS = {"topic": TEXT, "minutes": NUMBER}
TABLES: Final[Mapping[str, tuple[Side, ...]]] = {
    "by unit": (
        Side("customers", CUSTOMERS, {"unit": ("ck",), "customer": ("ck",)}),
        Side("orders", ORDERS, {"unit": ("ock",), "customer": ("ock",), "order": ("ok",)}),
        Side("items", ITEMS, {"order": ("iok",)}),
        Side("calls", CALLS, {"unit": ("caller",)}),
    ),
    "by key": (
        Side("customers", CUSTOMERS, {"unit": ("who",), "customer": ("ck",)}),
        Side("orders", ORDERS, {"customer": ("ock",), "order": ("ok", "day")}),
        Side("items", ITEMS, {"order": ("iok", "iday")}),
        Side("calls", CALLS, {"unit": ("caller",)}),
    ),
}


def together(sides: list[Side]) -> Side:
    """Return what can be named in a join: of each key, those of the first side that has it."""
    columns = {name: kind for side in sides for name, kind in side.columns.items()}
    keys = {role: key for side in reversed(sides) for role, key in side.keys.items()}
    return Side("", columns, keys)


def bare(column: str) -> str:
    """Return what a column is called without its table."""
    return column.rpartition(".")[2]
