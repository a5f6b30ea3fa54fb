"""Over HTTP: keys alone that cost nothing, and a SELECT over the answer of another."""

import pytest

from tests.support.server.world import World, on_both

NESTED = "SELECT * FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) WHERE n > -1000 ORDER BY plan"


def asked(sql: str) -> dict[str, object]:
    return {"sql": sql, "epsilon": 0.01}


@on_both
def test_public_keys_cost_nothing(world: World) -> None:
    spent = world.session().budget().spent
    for _ in range(2):
        reply = world.query("alice", asked("SELECT DISTINCT plan FROM visits ORDER BY plan"))
        assert reply.status == 200, reply.content
        assert len(reply.document["rows"]) > 1
        assert reply.document["intervals"] == {}
    assert world.session().budget().spent == spent
    preview = world.ask("POST", "/v1/datasets/open/explain", "alice", asked("SELECT DISTINCT plan FROM visits"))
    assert preview.status == 200, preview.content


@on_both
def test_what_stands_around_a_question_is_free(world: World) -> None:
    first = world.query("alice", asked(NESTED))
    assert first.status == 200, first.content
    assert "n" in first.document["intervals"]
    again = world.query("alice", asked("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY plan"))
    assert again.document["stored"]
    assert again.document["rows"] == first.document["rows"]


JOINED = (
    "WITH a AS (SELECT plan, COUNT(*) AS n FROM visits WHERE cost > 7 GROUP BY plan), b AS (SELECT COUNT(*) AS n FROM "
    "visits WHERE cost > 8) SELECT plan, a.n, a.n / b.n AS share FROM a, b ORDER BY plan"
)


@pytest.mark.long
@on_both
def test_a_question_over_several_answers_has_one_price(world: World) -> None:
    spent = world.session().budget().spent.amount
    preview = world.ask("POST", "/v1/datasets/open/explain", "alice", asked(JOINED))
    assert preview.status == 200, preview.content
    first = world.query("alice", {**asked(JOINED), "label": "shares"})
    assert first.status == 200, first.content
    assert set(first.document["intervals"]) == {"n", "share"}
    paid = world.session().budget().spent.amount - spent
    assert 0 < paid <= world.session().price(0.01).amount
    again = world.query("alice", asked(JOINED))
    assert again.document["stored"]
    assert again.document["rows"] == first.document["rows"]
    part = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE cost > 8", "epsilon": 0.005}
    assert world.query("alice", part).document["stored"]
