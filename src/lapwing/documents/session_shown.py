"""A session as notebooks show it."""

from lapwing.budget import BudgetView
from lapwing.catalog.model import Catalog
from lapwing.catalog.protection import units_of
from lapwing.privacy import figures
from lapwing.tables.tables import Tables


def as_html(catalog: Catalog, shown: tuple[BudgetView, Tables] | None) -> str:
    """Return whom a session protects, how much of its budget is spent, and its tables; None of one that has ended."""
    if shown is None:
        return figures.html_heading(f"{catalog.name}: this session is closed")
    budget, tables = shown
    head = figures.html_heading(f"{catalog.name} protects {units_of(catalog.tables)}")
    return head + figures.html_gauge(budget.share_spent) + tables._repr_html_()
