"""Questions about graphs over HTTP: priced and answered for people who are trusted with time, and for no others."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.errors import AllowanceExhausted, BudgetExhausted, InvalidParameter, QueryRefused
from lapwing.opening import open_session
from lapwing.server.service import Service
from tests.graphs.test_asking import RING, TIES, both, keeping
from tests.support.effort import only
from tests.support.graphs import written
from tests.support.refusals import refused_as
from tests.support.server.world import QUICK, STORE, World, data_set, introduce, serving

EDGES = "SELECT GRAPH_EDGES(friends)"
WEDGES = "SELECT COUNT(*) AS n FROM friends x JOIN friends y ON x.b = y.a WHERE x.a < y.b"
HISTOGRAM = "SELECT GRAPH_DEGREE_HISTOGRAM(friends, level => 8)"


@contextmanager
def town(folder: Path, path: Path) -> Iterator[World]:
    """Serve a town with friends under the name of the data set that alice may ask."""
    path.write_text(path.read_text().replace('name = "town"', 'name = "open"'))
    service = Service(folder / STORE, [open_session(load(path)), data_set(folder, "closed")], QUICK)
    introduce(service)
    with serving(service) as world:
        yield world


def trust(world: World, *, trusted: bool = True, share: Any = None) -> None:
    body = {"share": share, "trusted_with_time": trusted}
    assert world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", body).status == 204


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with town(tmp_path, written(tmp_path, 40, RING, epsilon=10**6)) as made:
        yield made


@pytest.mark.parametrize("sql", only([1], [EDGES, WEDGES]))
def test_who_is_not_trusted_with_time_is_refused_before_anything_is_charged(world: World, sql: str) -> None:
    asked = {"sql": sql, "epsilon": 1}
    batch = {"questions": [{"sql": sql}], "epsilon": 1}
    for path, body in (("query", asked), ("explain", asked), ("queries", asked), ("batch", batch)):
        reply = world.ask("POST", f"/v1/datasets/open/{path}", "alice", body)
        assert reply.status == 422, (path, reply.content)
        assert reply.document["cause"] == "time_depends_on_data", path
    assert world.charges() == 0


@pytest.mark.long
def test_who_is_trusted_is_answered_as_the_library_answers(world: World) -> None:
    trust(world)
    remote = world.connect("alice")
    preview = remote.explain(WEDGES, epsilon=100)
    assert preview.price == lw.PureDP(100)
    assert preview.unit == "id with all edges in friends"
    assert world.charges() == 0
    answer = remote.sql(WEDGES, epsilon=100, label="wedges")
    here = world.session().sql(WEDGES, epsilon=100)
    assert answer.rows() == here.rows()
    assert here.stored
    assert answer.cost == lw.PureDP(100)
    assert {name: [end.tolist() for end in ends] for name, ends in answer.interval().items()} == {
        name: [end.tolist() for end in ends] for name, ends in here.interval().items()
    }
    assert answer.interval(0.5)["n"][0][0] >= answer.interval()["n"][0][0]
    assert answer.describe()[0].measures[0].mechanism == "discrete Laplace"
    assert answer.to_arrow(0.9).column_names == ["n", "n_low", "n_high"]
    with pytest.raises(InvalidParameter):
        answer.consistent()
    (charge,) = remote.budget().history
    assert "wedges" in str(charge.wording)
    histogram = remote.sql(HISTOGRAM, epsilon=1000)
    assert [row["degree"] for row in histogram.rows()] == [str(degree) for degree in range(9)]
    assert histogram.plot() is not None
    trust(world, trusted=False)  # what was bought is served to everybody
    assert remote.sql(WEDGES, epsilon=100).stored
    with refused_as("time_depends_on_data"):
        remote.sql(WEDGES, epsilon=200)


@pytest.mark.long
def test_it_waits_in_the_queue_as_others_do(world: World) -> None:
    trust(world)
    assert world.connect("alice").submit(EDGES, epsilon=100).wait(60).rows()


def test_a_key_is_charged_once(world: World) -> None:
    trust(world)
    replies = [world.query("alice", {"sql": EDGES, "epsilon": 1}, **{"Idempotency-Key": "k"}) for _ in range(2)]
    assert [reply.status for reply in replies] == [200, 200]
    assert replies[0].document["id"] == replies[1].document["id"]
    assert world.charges() == 1


def test_a_data_set_says_what_may_be_asked_of_its_graphs(world: World) -> None:
    (graph,) = world.ask("GET", "/v1/datasets/open", "alice").document["graphs"]
    assert (graph["name"], graph["edges"], graph["ends"]) == ("friends", "friendships", ["a", "b"])
    assert graph["statistics"]["edge_count"] == {"is": "how many edges there are", "takes": ["level"]}


@pytest.mark.long
def test_a_share_of_the_budget_binds_questions_about_graphs(tmp_path: Path) -> None:
    with town(tmp_path, written(tmp_path, 40, RING, epsilon=20)) as world:
        trust(world, share=0.1)
        remote = world.connect("alice")
        assert remote.explain(EDGES, epsilon=2).fits == 1
        assert "alice" in str(remote.explain(EDGES, epsilon=3).refusal)
        with pytest.raises(AllowanceExhausted):
            remote.sql(EDGES, epsilon=3)
        assert remote.sql(EDGES, epsilon=2).rows()
        with pytest.raises(AllowanceExhausted):
            remote.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)


def test_a_share_binds_in_the_budget_of_edges_and_in_that_of_people(tmp_path: Path) -> None:
    with town(tmp_path, written(tmp_path, 40, RING, graph=TIES)) as world:  # 20 for people, 20 for edges
        trust(world, share=0.3)
        remote = world.connect("alice")
        with pytest.raises(AllowanceExhausted):
            remote.sql(EDGES, epsilon=1.5)  # nine of the six that she may spend of people
        assert remote.explain("SELECT GRAPH_TRIANGLES(friends)", epsilon=1).measures[0].half_width == inf
        assert any("one edge is protected" in note for note in remote.sql(EDGES, epsilon=1).notes)
        assert world.session().budget().spent == lw.PureDP(6)
        with pytest.raises(AllowanceExhausted):
            remote.sql("SELECT GRAPH_MAX_DEGREE(friends)", epsilon=0.5)


@pytest.mark.long
def test_a_share_is_looked_at_in_both_budgets_before_either_is_charged(tmp_path: Path) -> None:
    with town(tmp_path, both(tmp_path)) as world:  # 20 for people, 20 for edges, in which a node counts as two
        trust(world, share=0.3)
        with pytest.raises(AllowanceExhausted):
            world.connect("alice").sql(EDGES, epsilon=4)  # four of six for people, eight of six for edges
        assert world.charges() == 0
    with lw.graphs.connect(tmp_path / "lapwing.toml", "ties") as graph:
        assert graph.budget().history == ()


TRIANGLES = "SELECT GRAPH_TRIANGLES(friends)"
OTHERS = """
[tables.visits]
source = "visits.csv"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.visits.columns]
cost = { type = "integer", lower = 0, upper = 9 }
"""


def beside_others(folder: Path) -> Path:
    """Write a graph between public nodes that keeps a δ, and a table of people who have nothing to do with it."""
    path = written(folder, 40, RING, graph=keeping(), public=True)
    (folder / "visits.csv").write_text("id,cost\n" + "".join(f"{i},{i % 9}\n" for i in range(40)))
    path.write_text(path.read_text() + OTHERS)
    return path


@pytest.mark.long
def test_a_bound_is_bought_for_a_part_of_delta(tmp_path: Path) -> None:
    """Priced, charged and served again as the library does it, from the δ that the graph keeps."""
    with town(tmp_path, beside_others(tmp_path)) as world:
        trust(world)
        remote = world.connect("alice")
        preview = remote.explain(TRIANGLES, epsilon=2, delta=1e-6)
        assert (preview.delta, preview.fits) == (Fraction(1, 10**6), 10)
        bought = remote.sql(TRIANGLES, epsilon=2, delta=1e-6)
        low, high = bought.interval()["triangles"]
        assert low[0] <= bought.rows()[0]["triangles"] <= high[0]
        here = world.session().sql(TRIANGLES, epsilon=2, delta=1e-6)
        assert (here.stored, here.rows()) == (True, bought.rows())
        assert bought.notes == here.notes
        with pytest.raises(QueryRefused):  # which takes none
            remote.sql(EDGES, epsilon=1, delta=1e-7)
        with pytest.raises(BudgetExhausted):
            remote.sql("SELECT GRAPH_WEDGES(friends)", epsilon=1, delta=9.5e-6)
        reply = world.query("alice", {"sql": TRIANGLES, "epsilon": 3, "delta": "0.000002"})
        assert reply.status == 200
        assert world.query("alice", {"sql": TRIANGLES, "epsilon": 3, "delta": -1}).status == 422
    with lw.graphs.connect(tmp_path / "lapwing.toml", "friends") as graph:
        view = graph.budget()
        assert view.delta_keys_spent == Fraction(3, 10**6)
        assert [one.answered for one in view.history] == [True, True]


@pytest.mark.long
def test_a_share_of_the_budget_binds_the_delta_of_a_bound(tmp_path: Path) -> None:
    with town(tmp_path, beside_others(tmp_path)) as world:
        trust(world, share=0.1)
        remote = world.connect("alice")
        with pytest.raises(AllowanceExhausted):
            remote.sql(TRIANGLES, epsilon=1, delta=2e-6)
        assert remote.sql(TRIANGLES, epsilon=1, delta=1e-6).rows()
