"""Questions about graphs that are asked of a session, as all others are: in SQL, of the people and of their graphs."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.graphs.answer import GraphAnswer
from lapwing.graphs.answering import answered, previewed_in_sql
from lapwing.graphs.asking import Wording
from lapwing.graphs.opened import OpenGraph, opened
from lapwing.graphs.recipe import Recipe
from lapwing.graphs.sql import question_of
from lapwing.ledger.wording import require_label
from lapwing.preview import Preview
from lapwing.privacy.measures import Number
from lapwing.query.text.parameters import Parameters
from lapwing.release.request import Access

_OPENING: Final = threading.Lock()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfGraph:
    """A question about a graph with its price, to be answered or previewed."""

    held: OpenGraph
    recipe: Recipe
    epsilon: Number
    wording: Wording

    def answer(self) -> GraphAnswer:
        """Answer and charge it. Guarantee, Raises: as `asking.answer`."""
        return answered(self.held, self.recipe, self.epsilon, self.wording)

    def preview(self) -> Preview:
        """Return what it would cost and promise; free, and no row is read."""
        return previewed_in_sql(self.held, self.recipe, self.epsilon)


def asked_of_graph(
    question: object,
    parameters: Parameters,
    label: str | None,
    epsilon: Number | None,
    error: Number | None,
    delta: Number | None,
    options: Mapping[str, object],
    *,
    people: Access,
    held: dict[str, OpenGraph],
) -> AskedOfGraph | None:
    """Return a question about a graph of a catalog; None for any other.

    Args: as of `Session.sql`; people: what is asked about the catalog's people with; held: the graphs that are open
        already, to which one is added.
    Raises: QueryRefused, InvalidParameter.
    """
    found = question_of(question, people.catalog.graphs, parameters) if isinstance(question, str) else None
    if found is None:
        return None
    if epsilon is None or any(value is not None for value in (error, delta, *options.values())):
        raise InvalidParameter("A statistic of a graph has a price in epsilon: give that, and nothing else.")
    if label is not None:
        require_label(label)
    graph = _open(people, found.graph, held)
    typed: Wording = {"text": question} if label is None else {"text": question, "label": label}
    recipe = found.recipe(graph.graph)
    return AskedOfGraph(held=graph, recipe=recipe, epsilon=epsilon, wording=typed)


def _open(people: Access, name: str, held: dict[str, OpenGraph]) -> OpenGraph:
    """Return a graph for somebody who asks, from when it was first asked about.

    Raises: QueryRefused if there is none of the name.
    """
    catalog = people.catalog
    graph = next((one for one in catalog.graphs if one.name.casefold() == name.casefold()), None)
    if graph is None:
        names = ", ".join(one.name for one in catalog.graphs)
        raise QueryRefused(f"There is no graph {name:.60}", remedy=f"Ask about one of {names}.")
    with _OPENING:
        if graph.name not in held:
            held[graph.name] = opened(catalog, graph, people=people)
    return held[graph.name].acting_for(people)
