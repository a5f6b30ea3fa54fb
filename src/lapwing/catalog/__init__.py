"""The catalog: what a curator says in public about the tables, their units, their columns and the budget.

Everything in a catalog is a public fact. Nothing in it may be learned from the protected data, because sensitivities,
group keys and prices are computed from it and shown to everybody.
"""

from lapwing.catalog.model import Budget, Catalog, Column, Link, PublicTable, Table, View

__all__ = ["Budget", "Catalog", "Column", "Link", "PublicTable", "Table", "View"]
