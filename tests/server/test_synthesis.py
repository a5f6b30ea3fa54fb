"""Synthetic rows of a service: for people who are trusted with time, charged once, as Arrow with a report."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from lapwing.errors import AllowanceExhausted, InvalidParameter
from lapwing.synthesis import asking
from tests.support.refusals import refused_as
from tests.support.server.world import World, service_in, serving
from tests.support.synthesis.joint_model import JointModel

ASKED = {"columns": ["age", "plan"], "epsilon": 1, "method": "mst", "bins": 3}
PATH = "/v1/datasets/open/synthesize"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serving(service_in(tmp_path)) as running, patch.object(asking, "GraphicalModel", JointModel):
        yield running


def trust(world: World, share: object = None) -> None:
    body = {"share": share, "trusted_with_time": True}
    assert world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", body).status == 204


def test_synthetic_rows_are_charged_once_and_come_with_their_report(world: World) -> None:
    far = world.connect("alice")
    with refused_as("time_depends_on_data"):  # before anything is charged
        far.synthesize(["age", "plan"], epsilon=1, method="mst", bins=3)
    assert world.charges() == 0
    trust(world)
    made = far.synthesize(["age", "plan"], epsilon=1, method="mst", bins=3)
    near = world.session().synthesize(["age", "plan"], epsilon=1, method="mst", bins=3)
    assert near.stored
    assert world.charges() == 1
    assert made.cost == world.session().price(1)
    assert (made.error, made.columns, made.method, made.left_out) == (near.error, ("age", "plan"), "mst", ())
    assert len(made) == len(near)
    assert made.to_arrow().schema == near.to_arrow().schema
    assert made.to_arrow()["plan"] == near.to_arrow()["plan"]
    assert str(made).replace(str(made.cost), "") == str(near).replace(str(near.cost), "")
    assert [list(one.rows()) for one in made.report] == [list(one.rows()) for one in near.report]
    reply = world.ask("POST", PATH, "alice", ASKED)
    assert reply.status == 200
    assert reply.document["stored"] is True
    assert reply.document["rows"] == len(made)
    assert "no guarantee of accuracy" in reply.document["warning"]
    assert world.charges() == 1
    assert world.ask("POST", PATH, "alice", ASKED | {"columns": ["age"]}).status == 422
    assert world.ask("POST", PATH, "bob", ASKED).status == 404
    with pytest.raises(InvalidParameter, match="not a column"):
        far.synthesize(["age", "none"], epsilon=1)
    trust(world, share=0.000001)
    with pytest.raises(AllowanceExhausted):
        far.synthesize(["age", "plan"], epsilon=1, method="mst", bins=2)
    assert world.charges() == 1
