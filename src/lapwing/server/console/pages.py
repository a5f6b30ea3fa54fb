"""All pages behind the sign-in."""

from typing import Final

from lapwing.server.console import (
    access,
    account,
    answer,
    ask,
    audit,
    batch,
    budget,
    cap,
    dashboards,
    data,
    difference,
    guarantee,
    health,
    history,
    home,
    people,
    queue,
    rearranged,
    register,
    saved,
    sign_ins,
)
from lapwing.server.console.visits import Page

PAGES: Final[tuple[Page, ...]] = (
    *home.PAGES,
    *data.PAGES,
    *ask.PAGES,
    *batch.PAGES,
    *answer.PAGES,
    *rearranged.PAGES,
    *difference.PAGES,
    *saved.PAGES,
    *dashboards.PAGES,
    *history.PAGES,
    *queue.PAGES,
    *budget.PAGES,
    *cap.PAGES,
    *guarantee.PAGES,
    *access.PAGES,
    *people.PAGES,
    *register.PAGES,
    *audit.PAGES,
    *sign_ins.PAGES,
    *health.PAGES,
    *account.PAGES,
)
