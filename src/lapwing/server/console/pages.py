"""All pages behind the sign-in."""

from typing import Final

from lapwing.server.console import (
    access,
    account,
    answer,
    ask,
    audit,
    budget,
    data,
    guarantee,
    health,
    history,
    home,
    people,
    queue,
)
from lapwing.server.console.visits import Page

PAGES: Final[tuple[Page, ...]] = (
    *home.PAGES,
    *data.PAGES,
    *ask.PAGES,
    *answer.PAGES,
    *history.PAGES,
    *queue.PAGES,
    *budget.PAGES,
    *guarantee.PAGES,
    *access.PAGES,
    *people.PAGES,
    *audit.PAGES,
    *health.PAGES,
    *account.PAGES,
)
