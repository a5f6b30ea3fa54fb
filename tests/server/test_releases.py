"""Releases of tables on a service: planned for free, charged once, listed, downloaded, and their report published."""

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from zipfile import ZipFile

import pytest

from lapwing.engines import DuckDB
from lapwing.privacy.measures import from_record
from lapwing.server import release_routes, release_store
from lapwing.server.release_store import KeptRelease
from lapwing.tabulation import (
    PublishedRelease,
    TableRelease,
    changes_between,
    comparison_document,
    plan_release,
    run_release,
)
from tests.server.test_published import allow, publish, read
from tests.support.server.world import QUICK, Reply, World, on_both, service_in, serving

CREATED, FORBIDDEN, MISSING, REFUSED = 201, 403, 404, 422
TEXT: Final = """
title = "Visits & more"
epsilon = 1
adjusted = true
[tables.n]
select = "COUNT(*) AS n"
from = "visits"
by = [[], ["plan"], ["plan", "size"]]
"""
PATH: Final = "/v1/datasets/open/releases"


def planned(world: World, who: str = "alice", **body: Any) -> Reply:
    return world.ask("POST", f"{PATH}/plan", who, {"release": TEXT, **body})


def ran(world: World, who: str = "alice", **body: Any) -> Reply:
    return world.ask("POST", PATH, who, {"release": TEXT, **body})


def test_a_plan_is_free_and_what_the_library_says(world: World) -> None:
    with patch.object(DuckDB, "run", side_effect=AssertionError("a row is read")):
        document = planned(world).document
        dearer = planned(world, epsilon=2).document
    assert world.charges() == 0
    plan = plan_release(world.session(), TableRelease.from_text(TEXT))
    assert [table["numbers"][0]["half_width"] for table in document["tables"]] == [
        table.numbers[0].half_width for table in plan.tables
    ]
    assert (document["cost"], document["charge"]) == (plan.cost.to_record(), plan.cost.to_record())
    assert document["refusal"] is None
    assert dearer["epsilon"] == 2
    assert dearer["tables"][0]["numbers"][0]["half_width"] < document["tables"][0]["numbers"][0]["half_width"]
    too_dear = planned(world, epsilon=200).document
    assert too_dear["refusal_code"] == "budget_exhausted"


@on_both
def test_a_run_is_charged_once_and_gives_the_files_of_the_library(world: World, tmp_path: Path) -> None:
    made = ran(world)
    assert made.status == 200, made.content
    charged = world.session().budget().spent
    assert charged == from_record(planned(world).document["cost"])
    assert ran(world).document["id"] == made.document["id"]  # the same files are kept once
    assert world.session().budget().spent == charged
    assert from_record(planned(world).document["charge"]).amount == 0
    archive = world.ask("GET", f"/v1/releases/{made.document['id']}/files", "alice")
    near = run_release(world.session(), TableRelease.from_text(TEXT))
    near.write(tmp_path / "near")
    with ZipFile(BytesIO(archive.content)) as files:
        assert {name: files.read(name) for name in files.namelist()} == {
            file.name: file.read_bytes() for file in (tmp_path / "near").iterdir()
        }
    one = world.ask("GET", f"/v1/releases/{made.document['id']}/files/method.html", "alice")
    assert one.content == (tmp_path / "near" / "method.html").read_bytes()
    assert "attachment" in one.headers["content-disposition"]
    for name in ("none.csv", "..%2Fmanifest.json"):
        assert world.ask("GET", f"/v1/releases/{made.document['id']}/files/{name}", "alice").status == MISSING
    (listed,) = world.ask("GET", PATH, "alice").document
    assert "manifest" not in listed
    assert {file["file"] for file in listed["files"]} | {"manifest.json"} == {
        file.name for file in (tmp_path / "near").iterdir()
    }
    shown = world.ask("GET", f"/v1/releases/{made.document['id']}", "alice").document
    assert shown["manifest"] == json.loads((tmp_path / "near" / "manifest.json").read_bytes())


def test_whoever_may_not_see_a_release_is_told_that_there_is_none(world: World) -> None:
    id_ = ran(world).document["id"]
    for path in ("", "/files", "/files/method.html"):
        assert world.ask("GET", f"/v1/releases/{id_}{path}", "bob").status == MISSING
        assert world.ask("GET", f"/v1/releases/{id_}{path}", "audrey").status == 200
        assert world.ask("GET", f"/v1/releases/{id_}{path}", "carol").status == 200
        assert world.ask("GET", f"/v1/releases/{id_}{path}").status == 401
    assert len(world.ask("GET", PATH, "carol").document) == 1
    world.ask("PUT", "/v1/datasets/open/grants/bob", "carol", {"share": None})
    assert world.ask("GET", PATH, "bob").document == []  # he may ask the data set, and the release is not his
    assert world.ask("GET", f"/v1/releases/{id_}", "bob").status == MISSING
    with patch.object(release_routes, "may_open", lambda service, _caller, found: service.releases.find(found)):
        assert world.ask("GET", f"/v1/releases/{id_}", "bob").status == 200  # the twin
    assert ran(world, "audrey").status == FORBIDDEN
    world.ask("DELETE", "/v1/datasets/open/grants/alice", "carol")
    assert world.ask("GET", f"/v1/releases/{id_}", "alice").status == MISSING


def test_two_releases_are_compared_as_the_library_does(world: World, tmp_path: Path) -> None:
    first, second = (ran(world, epsilon=epsilon).document["id"] for epsilon in (1, 2))
    for id_ in (first, second):
        with ZipFile(BytesIO(world.ask("GET", f"/v1/releases/{id_}/files", "alice").content)) as files:
            files.extractall(tmp_path / id_)
    near = [PublishedRelease.from_file(tmp_path / id_ / "manifest.json") for id_ in (first, second)]
    found = changes_between(near[0], near[1])
    path = f"/v1/releases/{second}/changes?before="
    document = world.ask("GET", path + first, "alice").document
    assert document == json.loads(json.dumps(comparison_document(near[0], near[1], found)))
    assert [len(one["changes"]) for one in document["numbers"]] == [1, 2, 6]
    assert document["together"]["epsilon"] > 2
    assert {one["id"] for one in world.ask("GET", "/v1/releases", "alice").document} == {first, second}
    assert world.ask("GET", "/v1/releases", "bob").document == []
    assert world.ask("GET", path + first, "bob").status == MISSING
    assert world.ask("GET", path + "none", "alice").status == MISSING
    assert world.ask("GET", path, "alice").status == REFUSED
    other = "title = 'T'\nepsilon = 1\nformats = ['xlsx']\n[tables.x]\nquery = 'SELECT COUNT(*) AS x FROM visits'"
    apart = ran(world, release=other).document["id"]
    assert world.ask("GET", path + apart, "alice").status == REFUSED  # no table that can be read again


def test_a_page_of_releases_reads_no_other_manifest(world: World) -> None:
    ids = [ran(world, epsilon=epsilon).document["id"] for epsilon in (1, 2, 3)]
    every = world.ask("GET", "/v1/releases", "alice").document
    read = list[str]()

    def counted(**fields: Any) -> KeptRelease:
        read.append(fields["id"])
        return KeptRelease(**fields)

    for path in ("/v1/releases", PATH):
        pages, after = [], ""
        with patch.object(release_store, "KeptRelease", counted):
            for _ in ids:
                reply = world.ask("GET", f"{path}?limit=1{after}", "alice")
                pages += reply.document
                after = f"&after={reply.document[0]['id']}"
                assert ("link" in reply.headers) is (len(pages) < len(ids))
        assert pages == every
        assert read == [one["id"] for one in every]
        read.clear()


def test_a_method_report_compares_with_the_last_period(world: World) -> None:
    """The twin: a release of another data set, whose curator did not allow to publish its numbers."""
    first = ran(world).document["id"]
    made = ran(world, epsilon=2, previous=first).document
    assert made["request"]["previous"] == first
    report = world.ask("GET", f"/v1/releases/{made['id']}/files/method.html", "alice").content
    assert b"Compared with the last release" in report
    charges = world.charges()
    assert ran(world, epsilon=2, previous=first).document["id"] == made["id"]
    refused = ran(world, epsilon=3, previous="none")
    assert (refused.status, refused.document["field"]) == (MISSING, "previous")
    with patch.object(release_routes, "may_open", lambda *_: replace(world.service.releases.find(first), dataset="x")):
        assert ran(world, epsilon=3, previous=first).status == MISSING
    assert world.charges() == charges


@pytest.mark.long
def test_limits_of_the_caller_hold_for_a_run(world: World) -> None:
    world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": 0.00001})
    refused = planned(world).document
    assert refused["refusal_code"] == "allowance_exhausted"
    assert ran(world).document["code"] == "allowance_exhausted"
    assert world.charges() == 0
    world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": 1})
    assert ran(world).status == 200


@pytest.mark.long
def test_wrong_files_and_large_ones_are_refused_before_the_charge(world: World) -> None:
    for text in ("title = 1", "title = 'T'\nepsilon = 1", TEXT.replace("COUNT(*)", "person")):
        for reply in (world.ask("POST", PATH, "alice", {"release": text}), planned(world, release=text)):
            assert reply.status == REFUSED
    assert planned(world, release="title = 1").document["field"] == "release"
    assert planned(world, epsilon="x").document["field"] == "epsilon"
    with patch.object(release_routes, "MOST_CELLS", 8):
        assert ran(world).status == REFUSED
    many = "".join(f'[tables.t{n}]\nquery = "SELECT COUNT(*) + {n} AS n FROM visits"\n' for n in range(201))
    assert planned(world, release=f"title = 'T'\nepsilon = 1\n{many}").status == REFUSED
    assert world.charges() == 0


@pytest.mark.long
def test_whoever_is_not_trusted_with_time_runs_none_where_answers_are_late(world: World) -> None:
    executor = type(world.service.executor)
    with patch.object(executor, "holds_answers", property(lambda _: True)):
        assert ran(world).document["cause"] == "time_depends_on_data"
        assert world.charges() == 0
        world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": None, "trusted_with_time": True})
        assert ran(world).status == 200


@pytest.mark.long
def test_the_method_report_is_published_where_the_curator_allows_it(world: World) -> None:
    id_ = ran(world).document["id"]
    assert publish(world, release=id_).status == FORBIDDEN
    allow(world)
    made = publish(world, release=id_, name="visits")
    assert made.status == CREATED, made.content
    page = read(world, made.document)
    report = world.ask("GET", f"/v1/releases/{id_}/files/method.html", "alice").content
    assert page.content == report  # the very file that the manifest has a hash of
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.split(";")[1].strip().encode() in report  # the hash of its own style
    assert "script" not in policy
    assert world.ask("GET", f"/v1/published/{made.document['id']}/page", "alice").content == report
    assert publish(world, "bob", release=id_).status == MISSING
    assert publish(world, release="none").status == MISSING
    assert publish(world, release=id_, answers=["x"]).status == REFUSED
    assert publish(world, release=id_, show_query=True).status == REFUSED
    allow(world, dataset="closed")
    assert publish(world, "carol", "closed", release=id_).status == MISSING


@pytest.mark.long
def test_releases_are_kept_as_long_as_answers(tmp_path: Path) -> None:
    service = service_in(tmp_path, replace(QUICK, keep_answers=1))
    with serving(service) as world:
        id_ = ran(world).document["id"]
        assert service.releases.drop_old() == 0
        with service.store.transaction() as connection:
            connection.execute("UPDATE releases SET created = '2020-01-01T00:00:00+00:00'")
        assert world.ask("GET", f"/v1/releases/{id_}", "alice").status == MISSING
        assert world.ask("GET", f"/v1/releases/{id_}/files", "alice").status == MISSING
        assert world.ask("GET", PATH, "alice").document == []
        assert service.releases.drop_old() == 1
        assert ran(world).document["id"] != id_  # for nothing, from the ledger
        assert len(world.session().history()) == 3
