"""Functions of graphs in SQL: what they mean, and what is refused."""

from pathlib import Path

import duckdb
import pytest

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.cli import main
from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused
from lapwing.graphs import GraphAnswer
from lapwing.graphs.recipe import NoisyVector
from lapwing.graphs.sql import is_function, question_of, read_function
from lapwing.graphs.statistics import recipe_of
from tests.graphs.test_asking import RING, TIES, both
from tests.support.effort import one_in
from tests.support.graphs import catalog, simple, written
from tests.support.refusals import refused_as


@pytest.mark.parametrize(
    ("text", "graph", "statistic", "arguments"),
    [
        ("SELECT GRAPH_EDGES(friends)", "friends", "edge_count", {}),
        ("select graph_triangles ( friends , level => 64 ) ;", "friends", "triangles", {"level": 64}),
        (
            "SELECT GRAPH_MIXING_MATRIX(\"Friends of us\", by => 'home town', level=>4)",
            "Friends of us",
            "mixing_matrix",
            {"by": "home town", "level": 4},
        ),
    ],
)
def test_a_function_is_a_statistic(text: str, graph: str, statistic: str, arguments: dict[str, object]) -> None:
    assert is_function(text)
    question = read_function(text)
    assert (question.graph, question.statistic, question.arguments) == (graph, statistic, arguments)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT GRAPH_EDGES(friends) + 1",
        "SELECT GRAPH_EDGES(friends) FROM people",
        "SELECT GRAPH_EDGES(friends), GRAPH_NODES(friends)",
        "SELECT GRAPH_PATHS(friends)",
        "SELECT GRAPH_EDGES(friends, 64)",
        "SELECT GRAPH_EDGES(friends, level => 1, level => 2)",
        "SELECT GRAPH_EDGES(friends, level => (SELECT 1))",
        "SELECT GRAPH_EDGES()",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        read_function(text)


def test_other_questions_are_not_of_graphs() -> None:
    assert not is_function("SELECT COUNT(*) AS graph_edges FROM friends")


@pytest.mark.long
def test_in_python_and_on_the_command_line_it_is_the_same_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, 40, RING)
    with lw.graphs.connect(path) as graph:
        answer = graph.sql("SELECT GRAPH_EDGES(friends)", epsilon=2)
        assert graph.ask("edge_count", epsilon=2).stored
        with refused_as("several_graphs"):
            graph.sql("SELECT GRAPH_EDGES(enemies)", epsilon=2)
    assert main(["query", "SELECT GRAPH_EDGES(friends)", "--epsilon", "2", "--catalog", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{answer.rows()[0]['edges']},")
    assert main(["query", "SELECT GRAPH_EDGES(friends)", "--catalog", str(path)]) == 2


# ---- joins of edges with themselves ----------------------------------------------------------------------------------

WEDGES = "SELECT COUNT(*) FROM friendships x JOIN friendships y ON x.b = y.a"
TRIANGLES = f"{WEDGES} JOIN friendships z ON y.b = z.a AND z.b = x.a"
JOINS = {
    "SELECT COUNT(*) AS n FROM friendships WHERE a < b": ("edge_count", 1),
    "SELECT COUNT(*) FROM friends AS f WHERE f.b > f.a": ("edge_count", 1),
    f"{WEDGES} WHERE x.a < y.b": ("wedges", 1),
    f"{WEDGES} WHERE x.a <> y.b": ("wedges", 2),
    "SELECT COUNT(*) FROM friendships x, friendships y WHERE x.a = y.a AND x.b < y.b": ("wedges", 1),
    TRIANGLES: ("triangles", 6),
    TRIANGLES.replace("COUNT(*)", "COUNT(*) / 6 AS triangles"): ("triangles", 1),
    f"{TRIANGLES} WHERE x.a < y.a": ("triangles", 3),
    f"{TRIANGLES} WHERE x.a < y.a AND y.a < z.a": ("triangles", 1),
    f"{TRIANGLES} WHERE x.a < y.a AND x.a < z.a": ("triangles", 2),
    "SELECT COUNT(*) FROM friendships x JOIN friendships y ON x.a = y.a JOIN friendships z ON z.a = y.a "
    "WHERE x.b < y.b AND y.b < z.b": ("stars", 1),
    "SELECT COUNT(*) FROM friendships x JOIN friendships y ON x.a = y.a JOIN friendships z ON z.a = y.a "
    "WHERE x.b <> y.b AND y.b <> z.b AND z.b <> x.b": ("stars", 6),
}


@pytest.mark.parametrize("text", one_in(8, JOINS))
def test_a_join_counts_a_statistic(text: str) -> None:
    """Against DuckDB, which is asked of the edges in both directions, in a graph that has no two alike nodes."""
    statistic, times = JOINS[text]
    graph = catalog().graphs[0]
    question = question_of(text, [graph])
    assert question is not None
    assert (question.graph, question.statistic) == ("friends", statistic)
    assert question.times == times
    pairs = sorted({(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (0, 4), (1, 5), (1, 6)})
    both = [*pairs, *((b, a) for a, b in pairs)]
    made = "SELECT * FROM (VALUES " + ", ".join(map(str, both)) + ") AS made(a, b)"
    asked = text.replace("friends AS", "friendships AS")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE friendships AS {made}")
        (found,) = connection.execute(asked).fetchone() or (None,)
    rows = GraphRows(graph=simple(7, frozenset(pairs)), labels={}, sizes=(7,))
    recipe = recipe_of(graph, statistic, {**question.arguments, "level": 1000})
    (number,) = recipe.numbers(1000)
    assert isinstance(number, NoisyVector)
    assert int(number.exact(rows)[0]) * times == found


REFUSED = {
    "SELECT COUNT(*) FROM friendships": "graph_condition_not_supported",
    f"{WEDGES}": "graph_condition_not_supported",
    f"{WEDGES} WHERE x.a < y.b AND x.a < x.b": "graph_condition_not_supported",
    f"{WEDGES} WHERE x.a < y.b AND y.b < x.a": "empty_condition",
    f"{WEDGES} JOIN friendships z ON y.b = z.a WHERE x.a <> y.b AND x.b <> z.b": "graph_query_not_supported",
    f"{WEDGES} WHERE x.a <> 7": "graph_condition_not_supported",
    f"{WEDGES} WHERE x.a <> y.b OR x.a = 1": "graph_condition_not_supported",
    f"{WEDGES} WHERE x.c < y.b": "unknown_column",
    "SELECT COUNT(*) FROM friendships x LEFT JOIN friendships y ON x.b = y.a": "graph_query_not_supported",
    "SELECT COUNT(*) FROM friendships x JOIN people p ON x.a = p.id": "graph_query_not_supported",
    "SELECT a, COUNT(*) FROM friendships GROUP BY a": "graph_query_not_supported",
    "SELECT DISTINCT a FROM friendships": "graph_query_not_supported",
    "SELECT SUM(a) FROM friendships": "graph_query_not_supported",
    "SELECT COUNT(*), COUNT(*) FROM friendships WHERE a < b": "graph_query_not_supported",
    "SELECT COUNT(DISTINCT a) FROM friendships WHERE a < b": "graph_query_not_supported",
    "SELECT COUNT(*) FROM friendships WHERE a = b": "graph_condition_not_supported",
    "SELECT COUNT(*) FROM (SELECT * FROM friendships) AS f": "graph_query_not_supported",
    "SELECT COUNT(*) FROM people WHERE id IN (SELECT a FROM friendships)": "graph_query_not_supported",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) FROM friendships WHERE a < b": "cost_not_allowed",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_joins_are_refused_with_what_to_write(text: str) -> None:
    with refused_as(REFUSED[text]):
        question_of(text, [catalog().graphs[0]])


def test_joins_of_directed_edges() -> None:
    graph = catalog(directed=True).graphs[0]
    question = question_of("SELECT COUNT(*) FROM friendships", [graph])
    assert question is not None
    assert question.statistic == "edge_count"
    assert question.times == 1
    with refused_as("graph_query_not_supported"):
        question_of(TRIANGLES, [graph])


def test_a_factor_that_forgets_an_order_is_found() -> None:
    """A planted error: all six orders of a triangle, though a comparison allows three."""
    question = question_of(f"{TRIANGLES} WHERE x.a < y.a", [catalog().graphs[0]])
    free = question_of(TRIANGLES, [catalog().graphs[0]])
    assert question is not None
    assert free is not None
    assert question.times != free.times


def test_edges_with_two_promises_are_asked_for_by_the_name_of_one(tmp_path: Path) -> None:
    graphs = load(both(tmp_path)).graphs
    with refused_as("several_graphs"):
        question_of("SELECT COUNT(*) FROM friendships WHERE a < b", graphs)
    with refused_as("several_graphs"):
        question_of("SELECT COUNT(*) FROM friends x JOIN ties y ON x.b = y.a WHERE x.a < y.b", graphs)
    for name in ("friends", "ties"):
        question = question_of(f"SELECT COUNT(*) FROM {name} WHERE a < b", graphs)
        assert question is not None
        assert question.graph == name


# ---- sessions --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_session_answers_about_its_graphs(tmp_path: Path) -> None:
    with lw.connect(written(tmp_path, 40, RING, epsilon=10**6)) as session:
        preview = session.explain(f"{TRIANGLES}", epsilon=1000)
        assert preview.price == lw.PureDP(1000)
        assert preview.refusal is None
        assert not preview.stored
        assert session.budget().history == ()
        answer = session.sql(TRIANGLES, epsilon=1000, label="how closed it is")
        assert isinstance(answer, GraphAnswer)
        (row,) = answer
        assert row["count"] == pytest.approx(240, abs=60)
        low, high = answer.interval()["count"]
        assert low[0] <= int(str(answer[0]["count"])) <= high[0]
        assert any("6 times" in note for note in answer.notes)
        free = session.sql("SELECT GRAPH_TRIANGLES(friends) AS t", epsilon=1000)
        assert free.stored
        assert free.columns == ("t",)
        assert session.explain(TRIANGLES, epsilon=1000).stored
        (charge,) = session.budget().history
        assert "how closed it is" in str(charge.wording)
        assert session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).rows()
        with pytest.raises(InvalidParameter, match="a cost in epsilon"):
            session.sql(TRIANGLES, error=10)
        with refused_as("unknown_table", saying="foes"):
            session.sql("SELECT GRAPH_EDGES(foes)", epsilon=1)
        assert "GRAPH_TRIANGLES" not in str(answer.describe())
        assert answer._repr_html_().startswith("<table>")
        assert answer.to_arrow().column_names == ["count"]
        assert answer.to_arrow(0.9).column_names == ["count", "count_low", "count_high"]


@pytest.mark.long
def test_a_session_charges_what_a_graph_with_a_ledger_of_its_own_is_asked(tmp_path: Path) -> None:
    with lw.connect(written(tmp_path, 40, RING, graph=TIES)) as session:
        session.sql("SELECT GRAPH_EDGES(friends)", epsilon=2)
        assert session.budget().spent == lw.PureDP(12)  # six edges of one person
        with pytest.raises(BudgetExhausted, match="of the budget of town"):
            session.sql("SELECT GRAPH_MAX_DEGREE(friends)", epsilon=2)
    with lw.graphs.connect(tmp_path / "lapwing.toml") as graph:
        assert graph.budget().spent == lw.PureDP(2)


@pytest.mark.long
def test_a_price_alone_is_asked_for_as_of_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 40, RING, graph=TIES)
    for text in ("EXPLAIN PRIVACY SELECT GRAPH_TRIANGLES(friends)", f"EXPLAIN PRIVACY {TRIANGLES}"):
        with lw.connect(path) as session, refused_as("explain_needs_its_call"):
            session.sql(text, epsilon=1)
        with lw.graphs.connect(path) as graph, refused_as("explain_needs_its_call"):
            graph.sql(text, epsilon=1)
        assert main(["query", text, "--epsilon", "1", "--catalog", str(path)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "edge of friends, present or absent" in shown
        assert "as the data need" in shown
        assert "in the budget of town" in shown


@pytest.mark.long
def test_every_answer_says_that_its_promise_is_the_weaker_one(tmp_path: Path) -> None:
    with lw.connect(written(tmp_path, 40, RING, graph=TIES)) as session:
        answer = session.sql("SELECT GRAPH_EDGES(friends)", epsilon=1)
        assert any("one edge is protected" in note for note in answer.notes)
        assert any("the budget of the edges of friends, ε = 20" in note for note in answer.notes)


@pytest.mark.long
def test_a_choice_may_be_renamed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, 40, RING, epsilon=1000)
    with lw.connect(path) as session:
        text = "SELECT GRAPH_MOST_CONNECTED(friends, by => 'town', level => 8) AS best"
        assert session.sql(text, epsilon=100).columns == ("rank", "best")
    chart = tmp_path / "edges.svg"
    said = ["--epsilon", "1", "--label", "how many", "--plot", str(chart), "--catalog", str(path)]
    assert main(["query", "SELECT GRAPH_DEGREE_HISTOGRAM(friends, level => 4)", *said]) == 0
    assert chart.read_text().startswith("<svg")
    capsys.readouterr()
    with lw.graphs.connect(path) as graph:
        assert "how many" in str(graph.budget().history[-1].wording)
