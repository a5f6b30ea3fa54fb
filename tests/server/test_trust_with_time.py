"""Who may not see the time is refused what one unit can stretch, and joins of different units, before any charge."""

from collections.abc import Sequence
from typing import Any

import pytest

from lapwing.query.plan import work
from lapwing.release import bounded_work
from lapwing.release.request import Timing
from tests.support.effort import is_long, one_in, only
from tests.support.refusals import refused_as
from tests.support.server.world import World, on_both

PADDED = "LPAD(plan, 1000, 'ab')"
STRETCHED = (
    f"SELECT COUNT(*) AS n FROM visits WHERE REGEXP_MATCHES({PADDED}, '(.{{1,40}}){{20}}x')",
    f"SELECT COUNT(*) AS n FROM visits WHERE REGEXP_REPLACE({PADDED}, 'a.*x|a', '', 'g') = 'b'",
    f"SELECT plan, SUM(cost, contribution_bounds_per_row => AUTO) AS s FROM visits "
    f"WHERE REGEXP_MATCHES({PADDED}, '.*a.{{16}}b') GROUP BY plan",
)
SHARED = (
    "SELECT COUNT(*, contribution_bounds_per_group => (0, 5)) AS n FROM visits a JOIN visits b ON a.plan = b.plan "
    "WHERE a.cost > 3",
)
SHORT = "SELECT COUNT(*) AS n FROM visits WHERE REGEXP_MATCHES(plan, '.{1,9}x')"


def asked(sql: str) -> dict[str, Any]:
    return {"sql": sql, "epsilon": 0.01}


def trust(world: World, *, trusted: bool, who: str = "alice") -> None:
    body = {"share": None, "trusted_with_time": trusted}
    assert world.ask("PUT", f"/v1/datasets/open/grants/{who}", "carol", body).status == 204


def spent(world: World) -> Any:
    return world.session().budget().spent.amount


@pytest.mark.parametrize("sql", only([0], [*STRETCHED, *SHARED]))
def test_who_is_not_trusted_is_refused_before_anything_is_charged(world: World, sql: str) -> None:
    for path, body in (
        ("query", asked(sql)),
        ("explain", asked(sql)),
        ("queries", asked(sql)),
        ("batch", {"questions": [{"sql": SHORT}, {"sql": sql}], "epsilon": 0.01}),
    ):
        reply = world.ask("POST", f"/v1/datasets/open/{path}", "alice", body)
        assert reply.status == 422, reply.content
        assert reply.document["code"] == "query_refused"
        assert "trusts you with time" in reply.document["detail"]
    assert spent(world) == 0
    assert world.query("alice", asked(SHORT)).status == 200


@pytest.mark.parametrize("sql", one_in(3, [STRETCHED[2], *SHARED]))
def test_who_is_trusted_is_answered_and_what_was_bought_is_free_for_all(world: World, sql: str) -> None:
    trust(world, trusted=True)
    listed = world.ask("GET", "/v1/datasets/open/grants", "carol").document
    assert listed["trusted_with_time"] == ["alice"]
    assert world.ask("POST", "/v1/datasets/open/explain", "alice", asked(sql)).status == 200
    bought = world.query("alice", asked(sql))
    assert bought.status == 200, bought.content
    trust(world, trusted=False)
    before = spent(world)
    again = world.query("alice", asked(sql))
    assert again.status == 200
    assert again.document["stored"]
    assert spent(world) == before
    assert world.query("alice", {**asked(sql), "epsilon": 0.02}).status == 422  # a sharper one is computed


@pytest.mark.long
def test_curators_and_those_who_hold_the_file_are_trusted(world: World) -> None:
    assert world.query("carol", asked(STRETCHED[0])).status == 200
    if is_long():
        world.session().sql(STRETCHED[1], epsilon=0.01)


@on_both
def test_a_grant_trusts_with_time_only_while_it_says_so(world: World) -> None:
    policies = world.service.policies
    assert not policies.trusts_with_time("open", "alice")
    trust(world, trusted=True)
    assert policies.trusts_with_time("open", "alice")
    assert not policies.trusts_with_time("closed", "alice")
    assert world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": 0.5}).status == 204
    assert not policies.trusts_with_time("open", "alice")
    log = world.ask("GET", "/v1/audit", "carol").content.decode()
    assert log.count('"trusted_with_time": true') == 1
    wrong = world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": None, "trusted_with_time": "yes"})
    assert wrong.status in (400, 422)


def test_many_questions_at_a_time_are_bounded_together(world: World) -> None:
    one = "SELECT COUNT(*) AS n FROM visits WHERE LENGTH(REGEXP_REPLACE(plan, '[^0-9]', '', 'g')) > {}"
    few, many = ([{"sql": one.format(number)} for number in range(count)] for count in (1, 20))

    def status(queries: Sequence[dict[str, str]]) -> int:
        return world.ask("POST", "/v1/datasets/open/batch", "alice", {"questions": queries, "epsilon": 0.01}).status

    assert status(few) == 200
    assert status(many) == 422


def test_a_bound_that_nobody_keeps_would_be_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: with a multiple that nothing reaches, what was refused is answered."""
    if is_long():
        monkeypatch.setattr(work, "ALWAYS", 1e30)
        assert world.query("alice", asked(STRETCHED[0])).status == 200
    monkeypatch.setattr(bounded_work, "require_bounded_work", lambda *_: None)
    assert world.query("alice", asked(SHARED[0])).status == 200


def test_a_session_that_is_not_trusted_says_why(world: World) -> None:
    session = world.session().acting_for("dave", timing=Timing(trusted=False))
    with refused_as("time_depends_on_data"):
        session.sql(STRETCHED[0], epsilon=0.01)
    with refused_as("time_depends_on_data"):
        session.explain(SHARED[0], epsilon=0.01)
    assert spent(world) == 0
