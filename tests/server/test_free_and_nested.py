"""Over HTTP: keys alone that cost nothing, and a SELECT over the answer of another."""

from collections import Counter

import pytest

from tests.support.release.small import CODES
from tests.support.server.world import World, on_both

NESTED = "SELECT * FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) WHERE n > -1000 ORDER BY plan"

TIERS = Counter(row["tier"] for row in CODES)


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


@on_both
def test_only_public_tables_are_free_for_whoever_may_ask(world: World) -> None:
    """They take no price and no part of a limit; who may not run queries does not get them."""
    body = {"sql": "SELECT tier, COUNT(*) AS n FROM codes GROUP BY tier ORDER BY tier"}
    spent, charges = world.session().budget().spent, world.charges()
    preview = world.ask("POST", "/v1/datasets/open/explain", "alice", body)
    assert (preview.status, preview.document["epsilon"], preview.document["refusal"]) == (200, 0.0, None)
    reply = world.query("alice", body)
    assert reply.status == 200, reply.content
    assert {row["tier"]: row["n"] for row in reply.document["rows"]} == TIERS
    assert (reply.document["intervals"], reply.document["stored"]) == ({}, False)
    assert world.ask("GET", f"/v1/answers/{reply.document['id']}", "alice").document["rows"] == reply.document["rows"]
    assert world.query("bob", body).status in (403, 404)
    assert world.query("alice", {"sql": "SELECT COUNT(*) AS n FROM visits"}).status == 422
    assert (world.session().budget().spent, world.charges()) == (spent, charges)
