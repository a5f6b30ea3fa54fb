"""The page of a result, as one HTML file: the same that publishing makes of it (`documents.published`)."""

import json
from datetime import UTC, datetime
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.privacy.measures import Loss
    from lapwing.session import Session


def require_page(*, server: bool = False, population: bool = False, graph: bool = False) -> None:
    """Refuse a page that cannot be made, before anything is charged.

    Args:
        server: Whether a server has the result.
        population: Whether intervals are for the population.
        graph: Whether the query is about a graph.

    Raises:
        InvalidParameter: If it cannot be made.
    """
    if server:
        raise InvalidParameter("The server makes pages of its results. Choose Publish in its console, or write .csv.")
    if population:
        raise InvalidParameter("A page shows intervals for the data. Leave --population out, or write .csv.")
    if graph:
        raise InvalidParameter("A page shows results of tables. For a statistic of a graph, write .csv or .json.")
    if find_spec("jinja2") is None:
        raise InvalidParameter("A page needs an extra: pip install 'lapwing-dp[server]'; .csv needs none.")


def as_page(
    answer: "Answer | RemoteAnswer", session: "Session | RemoteSession", label: str | None, confidence: Fraction
) -> str:
    """Return the page of a result that was bought here.

    Args:
        label: Of the query: the title of the page and of its result.

    Raises:
        InvalidParameter: If it cannot be made.
    """
    # Here: `lapwing --help` loads no engine and no templates.
    from lapwing.answer import Answer
    from lapwing.documents.answer_document import result_document
    from lapwing.documents.published.page import page_of
    from lapwing.documents.published.snapshots import ResultToShow, snapshot_of
    from lapwing.session import Session

    if not isinstance(answer, Answer) or not isinstance(session, Session):
        require_page(server=True)
        raise TypeError  # which is never reached
    catalog, now = session.catalog, datetime.now(UTC)
    result = ResultToShow(
        dataset=catalog.name,
        document=result_document(answer, confidence),
        released=now.date().isoformat(),
        cost=_cost_in_all(answer, session).to_record(),
        title=label or "",
    )
    name = catalog.dictionary.dataset.facts.get("title", catalog.name)
    title = label or f"Result of {name}"
    return page_of(json.dumps(snapshot_of({catalog.name: catalog}, [result], title=title, author=None, now=now)))


def _cost_in_all(answer: "Answer", session: "Session") -> "Loss":
    """Return the charges that a result is made of, or more: of one that was bought before, all for its query."""
    from lapwing.answer.notes import REFINED
    from lapwing.documents.answer_document import codes_of
    from lapwing.ledger.charged_queries import in_all

    if not answer.stored and REFINED not in codes_of(answer.notes):
        return answer.cost
    history = session.history()
    losses = [row.loss for row in in_all(history, [row for row in history if row.sequence in answer.entries])]
    if not losses:
        raise InvalidParameter("The ledger does not say what this result cost, so it can have no page. Write .csv.")
    return sum(losses[1:], losses[0])
