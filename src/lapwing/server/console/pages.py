"""All pages behind the sign-in."""

from typing import Final

from lapwing.server.console import answer, ask, budget, data, guarantee, history, home
from lapwing.server.console.visits import Page

PAGES: Final[tuple[Page, ...]] = (
    *home.PAGES,
    *data.PAGES,
    *ask.PAGES,
    *answer.PAGES,
    *history.PAGES,
    *budget.PAGES,
    *guarantee.PAGES,
)
