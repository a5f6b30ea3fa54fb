"""Functions of graphs in SQL: what they mean, and what is refused."""

from pathlib import Path

import pytest

import lapwing as lw
from lapwing.cli import main
from lapwing.errors import QueryRefused
from lapwing.graphs.sql import is_of_graph, read_question
from tests.graphs.test_asking import RING
from tests.support.graphs import written


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
    assert is_of_graph(text)
    question = read_question(text)
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
        read_question(text)


def test_other_questions_are_not_of_graphs() -> None:
    assert not is_of_graph("SELECT COUNT(*) AS graph_edges FROM friends")


def test_in_python_and_on_the_command_line_it_is_the_same_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, 40, RING)
    with lw.graphs.connect(path) as graph:
        answer = graph.sql("SELECT GRAPH_EDGES(friends)", epsilon=2)
        assert graph.ask("edge_count", epsilon=2).stored
        with pytest.raises(QueryRefused, match="is friends"):
            graph.sql("SELECT GRAPH_EDGES(enemies)", epsilon=2)
    assert main(["query", "SELECT GRAPH_EDGES(friends)", "--epsilon", "2", "--catalog", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{answer.rows()[0]['edges']},")
    assert main(["query", "SELECT GRAPH_EDGES(friends)", "--catalog", str(path)]) == 2
    assert main(["query", "SELECT GRAPH_EDGES(friends)", "--epsilon", "1", "--server", "https://dp.example.org"]) == 3
