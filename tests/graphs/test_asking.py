"""Graphs from files to answers: prices, budgets, stored answers, and what is refused before anything is paid."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.toml import dumps, load, loads
from lapwing.cli import main
from lapwing.engines.duckdb.graph_rows import GraphFiles
from lapwing.errors import (
    BudgetExhausted,
    CatalogError,
    DataChanged,
    DataFault,
    EngineFault,
    Interrupted,
    InvalidParameter,
)
from lapwing.graphs.pricing import levels, priced
from lapwing.graphs.statistics import recipe_of
from lapwing.privacy.approximate import ApproximateGaussianDP
from tests.support.effort import is_long, one_in, only
from tests.support.graphs import EDGES, NODES, Pairs, catalog, catalog_text, oracle, written
from tests.support.refusals import refused_as

RING: Pairs = frozenset((min(i, (i + step) % 40), max(i, (i + step) % 40)) for i in range(40) for step in (1, 2))
"""Forty nodes of degree 4: 80 edges, 40 triangles, 240 wedges, one component."""
TIES = """privacy = "edge"
degree_at_most = 6
ledger = "sqlite:friends.lapwing.db"
budget = { epsilon = 20 }"""


def value(answer: lw.graphs.GraphAnswer, column: str) -> float:
    (row,) = answer.rows()
    found = row[column]
    assert isinstance(found, int | float)
    return found


@pytest.mark.long
def test_a_node_question_from_file_to_answer(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, epsilon=1000)) as graph:
        assert graph.protects == "each id, present or absent with all edges in friends"
        preview = graph.explain("edge_count", epsilon=100)
        assert preview.loss == lw.PureDP(100)
        assert preview.fits == 10
        assert preview.numbers[0].half_width == 0
        assert graph.budget().history == ()
        answer = graph.ask("edge_count", epsilon=100, level=8)
        assert abs(value(answer, "edges") - 80) <= 4
        low, high = answer.interval()["edges"]
        assert low[0] <= value(answer, "edges") <= high[0]
        assert not answer.stored
        again = graph.ask("edge_count", epsilon=50, level=8)
        assert again.stored
        assert again.cost.amount == 0
        assert again.rows() == answer.rows()
        assert again.interval() == answer.interval()
        assert graph.budget().spent == lw.PureDP(100)
        assert "GRAPH friends: edge_count" in str(answer)
    with lw.graphs.connect(tmp_path / "lapwing.toml", "friends") as graph:  # and for another process
        assert graph.ask("edge_count", epsilon=100, level=8).rows() == answer.rows()


NODE_TRUTHS = {
    ("edge_count", "edges"): 80,
    ("node_count", "nodes"): 40,
    ("triangles", "triangles"): 40,
    ("wedges", "stars"): 240,
    ("clustering", "clustering"): 0.5,
    ("density", "density"): 160 / (40 * 39),
    ("components", "components"): 1,
}
EDGE_TRUTHS = {
    ("edge_count", "edges"): 80,
    ("max_degree", "max_degree"): 4,
    ("components", "components"): 1,
    ("triangles", "triangles"): 40,
    ("wedges", "stars"): 240,
    ("clustering", "clustering"): 0.5,
    ("density", "density"): 160 / (40 * 39),
}


@pytest.mark.long
def test_at_a_high_price_node_answers_are_the_truth(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, epsilon=10**6)) as graph:
        for (statistic, column), truth in NODE_TRUTHS.items():
            said = {} if statistic == "node_count" else {"level": 8}  # a search errs once in a hundred times
            answer = graph.ask(statistic, epsilon=10_000, **said)
            assert value(answer, column) == pytest.approx(truth, rel=0.02), statistic
        histogram = graph.ask("degree_histogram", epsilon=10_000, level=8).rows()
        assert {row["degree"]: row["nodes"] for row in histogram if row["nodes"]} == {"4": 40.0}
        cells = graph.ask("mixing_matrix", epsilon=10_000, by="town", level=8).rows()
        assert [row["edges"] for row in cells] == [20, 40, 20]
        assert graph.ask("mixing_matrix", epsilon=10_000, by="town", level=8).columns == ("one", "other", "edges")


@pytest.mark.long
def test_at_a_high_price_edge_answers_are_the_truth(tmp_path: Path) -> None:
    edges = EDGES.replace("epsilon = 20", "epsilon = 1000000")
    with lw.graphs.connect(written(tmp_path, 40, RING, graph=edges, public=True)) as graph:
        assert "the set of nodes is public" in graph.notes
        for (statistic, column), truth in EDGE_TRUTHS.items():
            answer = graph.ask(statistic, epsilon=10_000)
            assert value(answer, column) == pytest.approx(truth, rel=0.02), statistic
            low, high = answer.interval()[column]
            assert low[0] <= value(answer, column) <= high[0]
        degrees = [row["degree"] for row in graph.ask("degree_sequence", epsilon=10_000).rows()]
        assert degrees == [4.0] * 40
        counts = {row["degree"]: row["nodes"] for row in graph.ask("degree_histogram", epsilon=10_000, up_to=5).rows()}
        assert counts == {"0": 0, "1": 0, "2": 0, "3": 0, "4": 40, "5": 0, "over 5": 0}


@pytest.mark.long
def test_directed_graphs(tmp_path: Path) -> None:
    pairs = frozenset({(0, 1), (1, 0), (1, 2), (2, 3)})
    edges = EDGES.replace("epsilon = 20", "epsilon = 1000000")
    with lw.graphs.connect(written(tmp_path, 5, pairs, graph=edges, public=True, directed=True)) as graph:
        answer = graph.ask("reciprocity", epsilon=10_000)
        assert value(answer, "reciprocity") == 0.5
        counts = [row["nodes"] for row in graph.ask("degree_histogram", epsilon=10_000, up_to=2, direction="in").rows()]
        assert counts == [1, 4, 0, 0]
        with refused_as("statistic_not_supported"):
            graph.ask("triangles", epsilon=1)
        with refused_as("invalid_option"):
            graph.ask("max_degree", epsilon=1, direction="up")


def test_rows_that_are_no_edges_do_not_count(tmp_path: Path) -> None:
    edges = EDGES.replace("epsilon = 20", "epsilon = 1000000")
    path = written(tmp_path, 4, frozenset({(0, 1), (1, 2)}), graph=edges, public=True)
    with (tmp_path / "friendships.csv").open("a") as file:
        file.write("1,0\n3,3\n3,99\n,1\n0,1\n")
    with lw.graphs.connect(path) as graph:
        assert value(graph.ask("edge_count", epsilon=10_000), "edges") == 2


# ---- bounds that are bought -----------------------------------------------------------------------------------------


def keeping(measure: str = "pure", delta: str = "delta = 1e-5, delta_keys = 1e-5") -> str:
    return EDGES.replace("{ epsilon = 20 }", f'{{ epsilon = 20, {delta}, measure = "{measure}" }}')


@pytest.mark.long
@pytest.mark.parametrize(
    ("measure", "delta"),
    one_in(2, [("pure", "delta = 1e-5, delta_keys = 1e-5"), ("gdp", "delta = 1e-4, delta_keys = 1e-5")], many=True),
)
def test_a_bound_is_bought_and_stays_free(tmp_path: Path, measure: str, delta: str) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, graph=keeping(measure, delta), public=True)) as graph:
        preview = graph.explain("triangles", epsilon=2, delta=1e-6)
        assert (preview.delta, preview.fits) == (Fraction(1, 10**6), 10)
        assert preview.numbers[0].half_width is None
        ladder = graph.ask("triangles", epsilon=1)
        bought = graph.ask("triangles", epsilon=2, delta=1e-6)
        assert not bought.stored
        low, high = bought.interval()["triangles"]
        assert low[0] <= value(bought, "triangles") <= high[0]
        (number,) = bought.outcome.released
        assert number.base is not None
        assert number.base >= 2  # what two nodes have in common at most, but for δ = 1e-6
        assert any(f"at most {number.base:,}" in note and "1e-6" in note for note in bought.notes)
        group = preview.for_group(3)
        assert isinstance(group, lw.ApproxDP | ApproximateGaussianDP)
        assert group.exact_part == preview.loss.for_group(3)
        assert group.delta > 3 * preview.delta  # of a group it grows faster
        assert bought.describe()[0].half_width == number.half_width(Fraction(95, 100))
        assert graph.ask("triangles", epsilon=1).rows() == ladder.rows()  # as it was asked, before all others
        again = graph.ask("triangles", epsilon=2)  # for which no ladder was bought
        assert (again.stored, again.rows(), again.interval()) == (True, bought.rows(), bought.interval())
        assert graph.sql("SELECT GRAPH_TRIANGLES(friends)", epsilon=1, delta=1e-7).stored
        view = graph.budget()
        assert view.delta_keys_spent == Fraction(1, 10**6)
        assert len(view.history) == 2
        assert "bound => bought" in view.history[-1].question
        with pytest.raises(BudgetExhausted, match="delta"):
            graph.ask("clustering", epsilon=1, delta=9.5e-6)
        both = graph.ask("clustering", epsilon=1, delta=9e-6)
        assert not both.stored
        assert graph.budget().delta_keys_spent == Fraction(1, 10**5)
    with lw.graphs.connect(tmp_path / "lapwing.toml") as graph:  # and for another process
        assert graph.ask("clustering", epsilon=1, delta=9e-6).rows() == both.rows()


@pytest.mark.long
def test_a_scale_is_not_released_for_nothing(tmp_path: Path) -> None:
    """In a ledger that keeps no delta, or beside people who are charged too, or where nothing is proven: refused."""
    (tmp_path / "people").mkdir()
    no_delta, zcdp = keeping(delta="delta = 0"), keeping("zcdp", "delta = 1e-4, delta_keys = 1e-5")
    beside = TIES.replace("{ epsilon = 20 }", '{ epsilon = 20, delta = 1e-5, delta_keys = 1e-5, measure = "pure" }')
    ways = [(no_delta, True), (zcdp, True), (beside, False), (NODES, False)]
    for place, (promise, public) in enumerate(ways[:: 1 if is_long() else 2]):
        folder = tmp_path / str(place)
        folder.mkdir()
        with lw.graphs.connect(written(folder, 40, RING, graph=promise, public=public)) as graph:
            with refused_as("cost_not_allowed", "needs_delta"):
                graph.ask("triangles", epsilon=1, delta=1e-7)
            assert graph.budget().history == ()
    with lw.graphs.connect(written(tmp_path, 40, RING, graph=keeping(), public=True)) as graph:
        for statistic, said in (("edge_count", {}), ("stars", {"leaves": 3})):
            with refused_as("cost_not_allowed"):
                graph.ask(statistic, epsilon=1, delta=1e-7, **said)
        with pytest.raises(InvalidParameter):
            graph.ask("triangles", epsilon=1, delta=-1)
        assert graph.budget().history == ()


def test_noise_out_of_range_at_any_level_is_refused_before_the_charge(tmp_path: Path) -> None:
    """A level is chosen after the charge: what its noise cannot be must not be found out then."""
    with lw.graphs.connect(written(tmp_path, 40, RING, rows=1_000_000, epsilon=20)) as graph:
        with refused_as("epsilon_too_small"):
            graph.ask("stars", epsilon=Fraction(1, 10**9), leaves=5)
        assert graph.budget().history == ()
    priced_at_one = priced(recipe_of(graph.graph, "stars", {"leaves": 5}), lw.PureDP(1), "add_remove")
    spoilt = replace(priced_at_one, shared=lw.PureDP(Fraction(1, 10**9)))
    spoilt.numbers(levels(spoilt)[0])  # the twin: what was tried before is in range, and another level is not
    with pytest.raises(InvalidParameter):
        spoilt.numbers(levels(spoilt)[-1])


@pytest.mark.long
def test_what_is_of_no_use_at_a_price_is_said_before(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING)) as graph:
        for statistic in ("triangles", "wedges"):
            assert any("not usable" in note for note in graph.explain(statistic, epsilon=0.001).notes)
            assert not any("not usable" in note for note in graph.explain(statistic, epsilon=5).notes)


# ---- two budgets -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_edge_question_counts_for_people_as_a_group_of_the_largest_degree(tmp_path: Path) -> None:
    path = written(tmp_path, 40, RING, graph=TIES)
    with lw.graphs.connect(path) as graph:
        assert "as 6 edges of one of them" in graph.notes[-1]
        assert graph.explain("edge_count", epsilon=2).beside == {"town": lw.PureDP(12)}
        graph.ask("edge_count", epsilon=2)
        graph.ask("edge_count", epsilon=1)  # bought before: neither pays
        assert graph.budget().spent == lw.PureDP(2)
    with lw.connect(path) as session:
        assert session.budget().spent == lw.PureDP(12)
        assert "as a group of 6" in session.budget().history[0].question
    with lw.graphs.connect(path) as graph, pytest.raises(BudgetExhausted, match="of the budget of town"):
        graph.ask("max_degree", epsilon=2)  # 12 of 8 that are left, though the edges have 18
    with lw.graphs.connect(path) as graph:
        assert graph.budget().spent == lw.PureDP(2)


def both(folder: Path, neighbouring: str = "add_remove") -> Path:
    path = written(folder, 40, RING, neighbouring=neighbouring)
    again = catalog_text(graph=EDGES).split("[graphs.friends]")[1]
    path.write_text(path.read_text() + "\n[graphs.ties]" + again)
    return path


@pytest.mark.parametrize(("neighbouring", "group"), one_in(2, [("add_remove", 2), ("replace_one", 1)], many=True))
def test_a_node_question_counts_for_edges_as_a_group(tmp_path: Path, neighbouring: str, group: int) -> None:
    path = both(tmp_path, neighbouring)
    with lw.graphs.connect(path, "friends") as graph:
        graph.ask("edge_count", epsilon=3)
    with lw.graphs.connect(path, "ties") as graph:
        assert graph.budget().spent == lw.PureDP(3 * group)
        assert "does not cover" in graph.notes[-1]
    if group == 2:
        with lw.graphs.connect(path, "friends") as graph, pytest.raises(BudgetExhausted, match=r"town\.ties"):
            graph.ask("node_count", epsilon=16)
    with lw.connect(path) as session:
        assert session.budget().spent == lw.PureDP(3)


@pytest.mark.parametrize(
    ("promise", "public", "words"),
    one_in(
        4,
        [
            (NODES, False, None),
            (EDGES, False, "does not cover the edges of friends"),
            (EDGES, True, "who is a node there is public"),
            (TIES, False, "as 6 edges of one person"),
        ],
        many=True,
    ),
)
def test_the_budget_of_people_says_what_it_covers(
    tmp_path: Path, promise: str, public: bool, words: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, 40, RING, graph=promise, public=public)
    (tmp_path / "visits.csv").write_text("person\n1\n")
    visits = 'source = "visits.csv"\nprivacy_unit = "person"\nmax_rows_per_unit = 1'
    path.write_text(f"{path.read_text()}\n[tables.visits]\n{visits}\n")
    pages = []
    for command in ("budget", "guarantee"):
        assert main([command, "--catalog", str(path)]) == 0
        pages.append(" ".join("".join(capsys.readouterr()).split()))
    if words is None:
        assert not any("does not cover the" in page for page in pages)
        assert "present or absent with all edges in friends" in pages[1]
    else:
        assert all(words in page for page in pages), pages


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "said", "words"),
    one_in(
        4,
        [
            ("diameter", {}, "unknown_statistic"),
            ("degree_sequence", {}, "statistic_not_supported"),
            ("edge_count", {"up_to": 3}, "inapplicable_option"),
            ("edge_count", {"level": 0}, "invalid_option"),
            ("edge_count", {"level": True}, "invalid_option"),
            ("stars", {"leaves": 9}, "invalid_option"),
            ("mixing_matrix", {}, "invalid_option"),
            ("mixing_matrix", {"by": "id"}, "invalid_option"),
            ("reciprocity", {}, "statistic_not_supported"),
            ("degree_histogram", {"up_to": 4}, "inapplicable_option"),
            ("most_connected", {}, "invalid_option"),
            ("most_connected", {"by": "town", "count": 3}, "invalid_option"),
            ("max_degree", {"direction": "in"}, "inapplicable_option"),
        ],
        many=True,
    ),
)
def test_what_cannot_be_asked_is_refused_and_costs_nothing(
    tmp_path: Path, statistic: str, said: dict[str, Any], words: str
) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING)) as graph:
        with refused_as(words):
            graph.ask(statistic, epsilon=1, **said)
        assert graph.budget().history == ()


def test_protected_attributes_do_not_mix_with_edges_alone(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, graph=EDGES)) as graph:
        with refused_as("needs_degree_limit"):
            graph.ask("mixing_matrix", epsilon=1, by="town")
        for statistic in ("degree_sequence", "components", "density"):
            with refused_as("statistic_not_supported"):
                graph.ask(statistic, epsilon=1)
        degrees = [row["degree"] for row in graph.ask("degree_histogram", epsilon=1, up_to=2).rows()]
        assert degrees == ["1", "2", "over 2"]


def test_too_small_a_price_is_refused_before_it_is_paid(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, rows=100)) as graph:
        with refused_as("epsilon_too_small"):
            graph.ask("edge_count", epsilon=0.01)
        with pytest.raises(BudgetExhausted, match="Nothing was charged"):
            graph.ask("edge_count", epsilon=21)
        with pytest.raises(InvalidParameter):
            graph.ask("edge_count", epsilon=0)
        assert graph.budget().history == ()


@pytest.mark.long
def test_data_that_changed_are_not_answered_from(tmp_path: Path) -> None:
    path = written(tmp_path, 40, RING)
    with lw.graphs.connect(path) as graph:
        graph.ask("edge_count", epsilon=1)
        (tmp_path / "friendships.csv").write_text("a,b\n0,1\n")
        with pytest.raises(DataChanged, match="friendships"):
            graph.ask("edge_count", epsilon=1)
        graph.accept_data()
        assert not graph.ask("edge_count", epsilon=1).stored
        assert graph.budget().spent == lw.PureDP(2)


@pytest.mark.parametrize("promise", one_in(2, [NODES, TIES]))
def test_data_beyond_the_public_limits_are_not_accepted(tmp_path: Path, promise: str) -> None:
    path = written(tmp_path, 40, RING, graph=f"{promise}\n".replace("degree_at_most = 6\n", "") + "degree_at_most = 3")
    with pytest.raises(DataFault, match="more edges than the 3"):
        lw.graphs.connect(path)
    assert not list(tmp_path.glob("*.db"))
    path = written(tmp_path, 40, RING, graph=promise, rows=79)
    with pytest.raises(DataFault, match="more rows than the 79"):
        lw.graphs.connect(path)


def test_a_failure_after_the_charge_says_one_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> object:
        raise MemoryError("17 edges")

    with lw.graphs.connect(written(tmp_path, 40, RING)) as graph:
        monkeypatch.setattr(GraphFiles, "all_rows", failing)
        with pytest.raises(EngineFault) as caught:
            graph.ask("edge_count", epsilon=1)
        assert "17" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert graph.budget().faults == 1
        assert graph.budget().spent == lw.PureDP(1)


def test_ctrl_c_after_the_charge_says_that_it_was_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> object:
        raise KeyboardInterrupt

    with lw.graphs.connect(written(tmp_path, 40, RING)) as graph:
        monkeypatch.setattr(GraphFiles, "all_rows", pressed)
        with pytest.raises(Interrupted, match="after the charge"):
            graph.ask("edge_count", epsilon=1)
        (row,) = graph.budget().history
        assert (row.answered, row.unanswered) == (False, "interrupt")
        monkeypatch.undo()
        assert not graph.ask("edge_count", epsilon=1).stored


@pytest.mark.long
def test_the_same_at_the_same_moment_is_paid_once(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING)) as graph, ThreadPoolExecutor(max_workers=4) as askers:
        answers = list(askers.map(lambda _: graph.ask("edge_count", epsilon=1).rows(), range(4)))
        assert all(rows == answers[0] for rows in answers)
        assert graph.budget().spent == lw.PureDP(1)


# ---- catalogs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [{}, {"graph": EDGES, "public": True}, {"graph": TIES, "directed": True}])
def test_a_catalog_is_written_as_it_was_read(said: dict[str, Any]) -> None:
    known = catalog(**said)
    assert loads(dumps(known), file="again", folder=known.folder) == known


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('privacy = "node"', "", "graphs.friends.privacy: missing"),
        ('privacy = "node"', 'privacy = "person"', "write one of node, edge"),
        ('privacy = "node"', 'privacy = "edge"', "budget of their own"),
        ('privacy = "node"', 'privacy = "node"\nledger = "sqlite:x.db"', "one budget and ledger"),
        ('nodes = "people"', 'nodes = "persons"', "no table 'persons'|no table \"persons\""),
        ('edges = "friendships"', 'edges = "friends"', "describe it in"),
        ("rows_at_most = 1000", "", "public limit on its edges"),
        ("rows_at_most = 1000", "rows_at_most = 100_000_000", "4 GB of memory"),
        (
            "rows_at_most = 1000",
            'rows_at_most = 1000\nprivacy_unit = "a"',
            "the graph of the table declares its protection",
        ),
        ('["a", "b"]', '["a", "a"]', "two different columns"),
        ('["a", "b"]', '["a", "c"]', 'no column "c"'),
        ('b = { type = "integer" }', 'b = { type = "string" }', "declare both as one of"),
        ('b = { type = "integer" }', 'b = { type = "integer", lower = 0, upper = 9 }', "bounds or values"),
        ("max_rows_per_unit = 1", "max_rows_per_unit = 2", "max_rows_per_unit = 1"),
        ('privacy = "node"', 'privacy = "node"\ndegree_at_most = 0', "most edges of any node"),
    ],
)
def test_catalogs_that_make_no_sense_are_refused(old: str, new: str, words: str) -> None:
    text = catalog_text()
    assert old in text
    with pytest.raises(CatalogError, match=words):
        loads(text.replace(old, new), file="lapwing.toml", folder=Path("."))


def test_a_table_of_edges_is_asked_for_by_its_graph_alone(tmp_path: Path) -> None:
    with lw.connect(written(tmp_path, 40, RING)) as session:
        with refused_as("graph_query_not_supported"):
            session.sql("SELECT a, COUNT(*) AS n FROM friendships GROUP BY a", epsilon=1)
        assert session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).rows()
    assert load(tmp_path / "lapwing.toml").graph("FRIENDS").name == "friends"


@pytest.mark.long
def test_two_tables_of_nodes(tmp_path: Path) -> None:
    path = written(tmp_path, 6, frozenset({(0, 1), (0, 2), (3, 1)}), epsilon=10**6)
    (tmp_path / "shops.csv").write_text("shop,kind\n1,food\n2,books\n9,food\n")
    text = path.read_text().replace('nodes = "people"', 'nodes = ["people", "shops"]')
    path.write_text(
        text + '\n[tables.shops]\nsource = "shops.csv"\nprivacy_unit = "shop"\nmax_rows_per_unit = 1\n'
        '[tables.shops.columns]\nshop = { type = "integer" }\nkind = { type = "string", values = ["food", "books"] }\n'
    )
    with lw.graphs.connect(path) as graph:
        assert value(graph.ask("edge_count", epsilon=10_000, level=4), "edges") == 3
        cells = graph.ask("mixing_matrix", epsilon=10_000, by="town", by_other="kind", level=4).rows()
        assert [row["edges"] for row in cells] == [1, 1, 1, 0]
        with refused_as("statistic_not_supported"):
            graph.ask("triangles", epsilon=1)


@pytest.mark.parametrize(("rows", "lowest"), [(1000, 1), (10_000_000, 16), (20_000_000, 32)])
def test_large_graphs_are_not_cut_where_it_takes_longest(rows: int, lowest: int) -> None:
    search = recipe_of(catalog(rows=rows).graphs[0], "edge_count", {}).search
    assert search is not None
    assert search.levels[0] == lowest


# ---- quantiles, largest degrees, groups ------------------------------------------------------------------------------

STAR: Pairs = RING | frozenset((0, i) for i in range(3, 30) if i % 2)
"""The ring, and a node that knows many in the south: the north has half of the nodes, the south most edges' ends."""


@pytest.mark.long
def test_quantiles_of_degrees(tmp_path: Path) -> None:
    edges = EDGES.replace("epsilon = 20", "epsilon = 1000000")
    with lw.graphs.connect(written(tmp_path, 40, STAR, graph=edges, public=True)) as graph:
        rows = graph.ask("degree_quantiles", epsilon=10_000, at="0.5, 0.99, 1").rows()
        assert rows == [{"at": 0.5, "degree": 4.0}, {"at": 0.99, "degree": 18.0}, {"at": 1.0, "degree": 18.0}]
        assert graph.ask("degree_quantiles", epsilon=1, at=[0.5, 0.99, 1]).stored
        assert [row["at"] for row in graph.ask("degree_quantiles", epsilon=10).rows()] == [0.25, 0.5, 0.75]
        assert graph.sql("SELECT GRAPH_DEGREE_QUANTILES(friends, at => '0.5')", epsilon=1).rows()[0]["at"] == 0.5
        for at in ("", "half", "0", "1.1", [], [True], [None], "0.5,,1"):
            with refused_as("invalid_option"):
                graph.ask("degree_quantiles", epsilon=1, at=at)


@pytest.mark.long
def test_a_level_that_hardly_a_node_is_above(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, epsilon=10**6)) as graph:
        answer = graph.ask("max_degree", epsilon=10_000, level=4)
        assert answer.rows() == [{"max_degree": 4, "full_nodes": 40}]
        found = graph.ask("max_degree", epsilon=10_000).rows()[0]
        assert isinstance(found["max_degree"], int)
        assert found["max_degree"] >= 8  # at so high a price no handicap tells one level from the next
        assert found["full_nodes"] == 0
        assert "ends at one of these nodes" in answer.notes[0]


@pytest.mark.long
@pytest.mark.parametrize(("promise", "public"), only([1], [(NODES, False), (EDGES, True)], many=True))
def test_the_groups_with_most_edges(tmp_path: Path, promise: str, public: bool) -> None:
    # All of the south know each other.
    spoke: Pairs = frozenset((i, j) for i in range(1, 40, 2) for j in range(i + 2, 40, 2))
    generous = promise.replace("epsilon = 20", "epsilon = 1000000")
    with lw.graphs.connect(written(tmp_path, 40, spoke, graph=generous, public=public, epsilon=10**6)) as graph:
        said: dict[str, Any] = {} if public else {"level": 64}
        answer = graph.ask("most_connected", epsilon=10_000, by="town", **said)
        assert answer.rows() == [{"rank": 1, "town": "south"}]
        assert answer.interval() == {}
        assert "fewer than the best" in answer.notes[0]
        both_of_them = graph.ask("most_connected", epsilon=10_000, by="town", count=2, **said)
        assert [row["town"] for row in both_of_them.rows()] == ["south", "north"]
        assert graph.ask("most_connected", epsilon=10_000, by="town", **said).stored
        assert graph.explain("most_connected", epsilon=1, by="town", **said).numbers[0].mechanism == "permute-and-flip"
        assert answer.describe()[1].measures == ()


@pytest.mark.long
def test_numbers_of_a_graph_that_is_cut_say_that_they_are_bounds(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, epsilon=1000)) as graph:
        for statistic, sides in (
            ("edge_count", {"edges": "lower bound"}),
            ("triangles", {"triangles": "lower bound"}),
            ("clustering", {"triangles": "lower bound", "wedges": "lower bound"}),
            ("density", {"edges": "lower bound"}),
            ("components", {"components": "upper bound"}),
            ("node_count", {}),
        ):
            answer = graph.ask(statistic, epsilon=50)
            assert answer.one_sided == sides
            marked = {facts.name: facts.notes for facts in answer.describe() if facts.notes}
            assert marked == {name: (side,) for name, side in sides.items()}
            assert any(f"({side})" in str(answer) for side in sides.values()) == bool(sides)
            assert answer.rows()[0].keys() == set(answer.columns)  # the mark is not in the names
            assert answer.plot() is not None


@pytest.mark.long
def test_a_price_that_buys_noise_alone_says_so_before(tmp_path: Path) -> None:
    with lw.graphs.connect(written(tmp_path, 40, RING, epsilon=1000)) as graph:
        note = "not usable at this cost"
        assert graph.graph.edges_at_most == 1_000
        for level, said in ((8, False), (256, True)):
            preview = graph.explain("edge_count", epsilon=1, level=level)
            assert any(line.startswith(note) for line in preview.notes) == said
            assert (2 * (preview.numbers[0].half_width or 0) >= 1_000) == said


def test_one_node_does_not_decide_whether_there_are_components(tmp_path: Path) -> None:
    """The oracle: with node 0 the version before raised a fault, without her it gave a number, at any price."""
    graph = oracle()
    pairs = frozenset(zip(graph.first.tolist(), graph.second.tolist(), strict=True))
    for name, some in (("with", pairs), ("without", frozenset(pair for pair in pairs if 0 not in pair))):
        (tmp_path / name).mkdir()
        with lw.graphs.connect(written(tmp_path / name, 67, some, epsilon=10)) as session:
            assert session.ask("components", epsilon=Fraction(1, 1000)).columns == ("components",)
            assert session.budget().spent == lw.PureDP(Fraction(1, 1000))
