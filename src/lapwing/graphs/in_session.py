"""Questions about graphs that are asked of a session, as all others are: in SQL, of the people and of their graphs."""

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

from lapwing.answer.notes import GRAPH_PROMISE
from lapwing.answer.python_values import Note
from lapwing.catalog.model import Catalog
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.graphs.answer import GraphAnswer
from lapwing.graphs.answering import answered, previewed_in_sql, priced_for
from lapwing.graphs.asking import Wording, stored_answer
from lapwing.graphs.opened import OpenGraph, opened
from lapwing.graphs.recipe import Recipe
from lapwing.graphs.shown import multiplied, promise_notes
from lapwing.graphs.sql import only_priced, question_of
from lapwing.ledger.wording import require_label
from lapwing.preview import Preview
from lapwing.privacy.measures import Number
from lapwing.query.text.parameters import Parameters
from lapwing.release.request import Access

_OPENING: Final = threading.Lock()
_RUNNING: Final = threading.Lock()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfGraph:
    """A question about a graph with its price, to be answered or previewed."""

    held: OpenGraph
    recipe: Recipe
    epsilon: Number
    wording: Wording
    explain: bool = False
    delta: Number | None = None

    def answer(self) -> GraphAnswer:
        """Answer and charge it.

        Guarantee:
            As `asking.answer`.

        Raises:
            LapwingError: As `asking.answer`.

        One at a time is computed in a process, so that no two take their memory together.
        """
        if self.explain:
            raise only_priced()
        with nullcontext() if self._bought() else _RUNNING:
            return answered(self.held, self.recipe, self.epsilon, self.wording, delta=self.delta)

    def _bought(self) -> bool:
        asked = priced_for(self.held, self.recipe, self.epsilon, self.delta)
        return stored_answer(self.held.graph, asked, self.held.account) is not None

    def preview(self) -> Preview:
        """Return what it would cost and promise; free, and no row is read."""
        return previewed_in_sql(self.held, self.recipe, self.epsilon, delta=self.delta)


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

    The other arguments are those of `Session.sql`.

    Args:
        people: What is asked about the catalog's people with.
        held: The graphs that are open already, to which one is added.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        InvalidParameter: If a value is not allowed.
    """
    found = question_of(question, people.catalog.graphs, parameters) if isinstance(question, str) else None
    if found is None:
        return None
    if epsilon is None or any(value is not None for value in (error, *options.values())):
        raise InvalidParameter(
            "A graph statistic has a cost in epsilon. Give only epsilon, and delta where the statistic takes one."
        )
    if label is not None:
        require_label(label)
    graph = _open(people, found.graph, held)
    typed: Wording = {"text": question} if label is None else {"text": question, "label": label}
    recipe = found.recipe(graph.graph)
    if graph.graph.notes:  # of a promise that is weaker than that to people, wherever it is answered
        total = graph.account.catalog.budget.loss
        own = f"the cost is charged to the budget of the edges of {graph.graph.name}, {total}"
        recipe = replace(
            recipe,
            show=multiplied(recipe.show, Fraction(1), None, (Note(own, GRAPH_PROMISE), *promise_notes(graph.graph))),
        )
    return AskedOfGraph(held=graph, recipe=recipe, epsilon=epsilon, wording=typed, explain=found.explain, delta=delta)


def require_of_tables(question: str, catalog: Catalog, parameters: Parameters) -> None:
    """Refuse a question about a graph, where none is answered: in a batch, or at a deadline.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
    """
    if question_of(question, catalog.graphs, parameters) is not None:
        raise QueryRefused(
            "The time of a graph query depends on the data. Only people whom the curator trusts with time may run "
            "one, and only by itself",
            cause=RefusalCause.TIME_DEPENDS_ON_DATA,
            remedy="Run it by itself.",
            curator_remedy="give you a grant that trusts you with time",
        )


def _open(people: Access, name: str, held: dict[str, OpenGraph]) -> OpenGraph:
    """Return a graph for somebody who asks, from when it was first asked about.

    Raises:
        QueryRefused: If there is none of the name.
    """
    catalog = people.catalog
    graph = next((one for one in catalog.graphs if one.name.casefold() == name.casefold()), None)
    if graph is None:
        names = ", ".join(one.name for one in catalog.graphs)
        raise QueryRefused(
            f"There is no graph {name:.60}", cause=RefusalCause.UNKNOWN_TABLE, remedy=f"Name one of {names}."
        )
    with _OPENING:
        if graph.name not in held:
            held[graph.name] = opened(catalog, graph, people=people)
    return held[graph.name].acting_for(people)
