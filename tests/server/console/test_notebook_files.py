"""The notebook and the snippets that ask a query again: with all that priced it, and a table at the end."""

import json

from lapwing.server.console.answer.files import notebook_of, snippets

REQUEST = {"sql": "SELECT town, COUNT(*) AS n FROM visits GROUP BY town", "epsilon": "0.5", "delta": "1e-8"}


def test_the_last_cell_shows_groups_beside_their_intervals() -> None:
    cells = json.loads(notebook_of("http://127.0.0.1", "open", REQUEST))["cells"]
    assert "".join(cells[-1]["source"]).startswith("answer.to_pandas(0.95)")


def test_all_that_priced_a_query_is_in_what_asks_it_again() -> None:
    texts = dict(snippets("http://127.0.0.1", "open", REQUEST))
    assert "epsilon=0.5, delta=1e-8)" in texts["Python"]
    assert '"delta": "1e-8"' in texts["curl"]
    assert "--epsilon 0.5 --delta 1e-8" in texts["Command line"]


def test_a_cost_in_the_text_is_not_written_twice() -> None:
    texts = dict(snippets("http://127.0.0.1", "open", {"sql": "SELECT 1"}))
    assert "session.sql('SELECT 1')" in texts["Python"]
    assert "--" not in texts["Command line"].partition("\\")[0]
