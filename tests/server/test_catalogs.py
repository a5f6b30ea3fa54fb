"""Changing the catalog of a data set that is served: what it does, what it refuses, and what holds whatever dies."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapwing import catalog_changes
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import dumps, load, loads
from lapwing.errors import CatalogMismatch
from lapwing.opening import open_session
from lapwing.server.datasets import Datasets
from lapwing.server.people import Caller
from lapwing.session import Session
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy
from tests.support.server.world import QUICK, World, on_both, service_in, serving

SUM = {"sql": "SELECT plan, SUM(cost) AS cost FROM visits GROUP BY plan", "epsilon": 1}
CAROL = Caller(name="carol", role="curator", rights=frozenset({"read", "ask", "audit", "admin"}), token="")


@pytest.fixture
def file(world: World) -> Path:
    return world.catalog_file()


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service for tests that change nothing, with a folder in which other files lie."""
    folder = tmp_path_factory.mktemp("catalogs")
    data = folder / "data"
    data.mkdir()
    (data / "more.csv").write_text("person,cost\n1,2\n")
    (folder / "outside.csv").write_text("person,cost\n1,2\n")
    with serving(service_in(folder, replace(QUICK, folders=(data,)))) as running:
        running.catalog_file()
        yield running


def catalog(world: World) -> dict[str, Any]:
    return dict(world.ask("GET", "/v1/datasets/open/catalog", "carol").document)


def changed(world: World, *pairs: tuple[str, str], was: str | None = None) -> Any:
    """Send the catalog in force with other words in some places."""
    known = catalog(world)
    text = known["catalog"]
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    return world.ask("PUT", "/v1/datasets/open/catalog", "carol", {"catalog": text, "was": was or known["state"]})


def previewed(world: World, *pairs: tuple[str, str], **more: object) -> Any:
    text = catalog(world)["catalog"]
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    return world.ask("POST", "/v1/datasets/open/catalog/preview", "carol", {"catalog": text, **more})


@on_both
def test_a_change_is_in_force_at_once_and_the_ledger_stays(world: World, file: Path) -> None:
    before = world.query("alice", SUM).document
    spent = world.ask("GET", "/v1/datasets/open/budget", "carol").document["spent"]
    told = changed(world, ("upper = 8", "upper = 4"), ("[dataset]", "# halved\n[dataset]"))
    assert (told.status, told.document["number"], told.document["unaccepted"]) == (200, 2, [])
    assert world.ask("GET", "/v1/datasets/open/budget", "carol").document["spent"] == spent
    columns = world.ask("GET", "/v1/datasets/open", "alice").document["tables"][0]["columns"]
    assert columns["cost"]["upper"] == "4"
    again = world.query("alice", SUM).document
    assert (again["stored"], again["id"] != before["id"]) == (False, True)
    assert world.charges() == 2
    assert again["facts"] != before["facts"]  # noise of half the scale
    assert world.ask("GET", f"/v1/answers/{before['id']}", "alice").document["rows"] == before["rows"]
    assert file.read_text().count("# halved") == 1  # the text as it was written
    assert load(file).digest == world.session().catalog.digest
    acts = [line["act"] for line in map(json.loads, world.ask("GET", "/v1/audit", "carol").content.splitlines())]
    assert acts[-2:] == ["catalog change begun", "catalog changed"]
    with open_session(load(file)) as restarted:
        assert restarted.budget().spent.amount == world.session().budget().spent.amount


@pytest.mark.long
def test_versions_have_what_was_in_force_and_who_changed_it(world: World, file: Path) -> None:
    first = catalog(world)["catalog"]
    changed(world, ("upper = 8", "upper = 4"))
    changed(world, ("upper = 4", "upper = 2"))
    listed = world.ask("GET", "/v1/datasets/open/versions", "audrey").document
    assert [(one["number"], one["person"]) for one in listed["catalogs"]] == [(3, "carol"), (2, "carol"), (1, "")]
    assert (listed["number"], listed["newest_in_force"]) == (3, True)
    assert listed["catalogs"][0]["digest"] == listed["catalog"]
    assert [one["version"] for one in listed["data"]] == [1]
    assert set(listed["data"][0]["digests"]) == {"visits"}
    assert listed["data"][-1]["by_service"]  # nobody registered it: it was there when the service started
    assert world.ask("GET", "/v1/datasets/open/versions/1", "carol").content.decode() == first
    assert world.ask("GET", "/v1/datasets/open/versions/9", "carol").status == 404
    assert world.ask("GET", "/v1/datasets/open/versions/1", "audrey").content.decode() == first
    assert world.ask("GET", "/v1/datasets/open/versions/1", "alice").status == 403


@pytest.mark.long
def test_an_auditor_reads_what_changed_with_old_and_new_values(world: World, file: Path) -> None:
    """By the route, and in the line of the audit log; raises of the budget have a list of their own."""
    changed(world, ("upper = 8", "upper = 4"))
    place = "tables.visits.columns.cost.upper"
    (one,) = world.ask("GET", "/v1/datasets/open/versions/2/changes", "audrey").document["changes"]
    assert one == {"place": place, "was": "8", "now": "4", "refusal": None}
    first = world.ask("GET", "/v1/datasets/open/versions/1/changes", "audrey").document
    assert first == {"number": 1, "earlier": None, "changes": []}
    log = [json.loads(line) for line in world.ask("GET", "/v1/audit", "audrey").content.splitlines()]
    assert log[-1]["details"]["changes"] == [f"{place}: 8 → 4"]
    assert world.ask("GET", "/v1/datasets/open/versions", "audrey").document["raises"] == []


@pytest.mark.long
def test_what_may_be_accepted_next_is_said(world: World, file: Path) -> None:
    def following() -> dict[str, Any]:
        return dict(world.ask("POST", "/v1/datasets/open/versions/next", "carol").document)

    assert following() == {"version": 1, "same": {"visits": True}, "refusal": None}
    (file.parent / "visits.parquet").write_bytes((file.parent / "codes.parquet").read_bytes())
    told = following()
    assert (told["version"], told["same"]["visits"]) == (2, False)


@pytest.mark.long
def test_somebody_elses_change_is_not_lost(world: World, file: Path) -> None:
    seen = catalog(world)["state"]
    assert changed(world, ("upper = 8", "upper = 4")).status == 200
    late = changed(world, ("upper = 4", "upper = 2"), was=seen)
    assert (late.status, late.document["code"]) == (409, "catalog_mismatch")
    assert "upper = 4" in file.read_text()


REFUSED = {
    "another unit": [('privacy_unit = "person"', 'privacy_unit = "code"')],
    "each row": [('privacy_unit = "person"', 'privacy_unit = "row"'), ("unit = 2", "unit = 1")],
    "the type of the unit": [("[tables.visits.columns]", '[tables.visits.columns]\nperson = { type = "integer" }')],
    "neighbours": [("add_remove", "replace_one")],
    "a larger budget": [("epsilon = 100", "epsilon = 101")],
    "a smaller budget": [("epsilon = 100", "epsilon = 1")],
    "delta for keys": [("delta_keys = 0.0005", "delta_keys = 0.0001")],
    "the measure": [('measure = "gdp"', 'measure = "zcdp"')],
    "the ledger": [("sqlite:small.db", "sqlite:other.db")],
    "the name": [('name = "open"', 'name = "opened"')],
}  # fmt: skip


@pytest.mark.parametrize("name", one_in(10, list(REFUSED)))
def test_what_would_protect_others_is_refused_with_its_reason(looked_at: World, name: str) -> None:
    before = catalog(looked_at)
    told = previewed(looked_at, *REFUSED[name]).document
    assert (told["allowed"], told["prices"]) == (False, [])
    assert any(one["refusal"] for one in told["changes"])
    refused = changed(looked_at, *REFUSED[name])
    assert (refused.status, refused.document["code"]) == (409, "catalog_mismatch")
    assert catalog(looked_at) == before
    assert looked_at.service.catalog_versions.newest_number("open") == 0


def test_a_change_of_units_that_nobody_looks_at_is_found(looked_at: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody compares whose rows they are. The ledger alone does not know the types of what names units."""
    monkeypatch.setattr(catalog_changes, "_refusals", lambda *_: iter(()))
    assert previewed(looked_at, *REFUSED["the type of the unit"]).document["allowed"]


@pytest.mark.long
def test_a_type_of_units_cannot_be_changed_by_two_steps_either(world: World, file: Path) -> None:
    """A table that is left out, and comes back with units that are told apart by another type."""
    text = catalog(world)["catalog"]
    section = text[text.index("[tables.visits]") : text.index("[tables.codes]")]
    other = section.replace("[tables.visits", "[tables.stays")  # the same file under another name
    assert changed(world, (section, other)).status == 200
    back = section.replace("[tables.visits.columns]", '[tables.visits.columns]\nperson = { type = "integer" }')
    refused = changed(world, (other, back))
    assert (refused.status, "An earlier catalog" in refused.document["detail"]) == (409, True)
    assert changed(world, (other, section)).status == 200


@pytest.mark.long
def test_what_was_protected_does_not_become_public_under_another_name(world: World, file: Path) -> None:
    text = catalog(world)["catalog"]
    copy = file.parent / "copy.parquet"
    os.link(file.parent / "visits.parquet", copy)
    assert (
        changed(world, ('source = "codes.parquet"', 'source = "copy.parquet"')).status == 422
    )  # not inside of a folder
    link = loads(text.replace('source = "codes.parquet"', 'source = "copy.parquet"'), file="x", folder=file.parent)
    told = [one for one in catalog_changes.changes(world.session().catalog, link) if one.refusal]
    assert [one.place for one in told] == ["tables.codes.public"]


def test_files_of_the_machine_stay_out_of_reach(looked_at: World) -> None:
    public = '[tables.extra]\nsource = "{}"\npublic = true\n[tables.extra.columns]\nperson = {{ type = "string" }}\n'
    for source in ("../outside.csv", "/etc/passwd", "../closed/visits.parquet", "open.toml", "http://x/y.csv"):
        told = previewed(looked_at, ("[tables.codes]", public.format(source) + "[tables.codes]"))
        assert (told.status, told.document["code"]) == (422, "invalid_catalog"), source
    inside = str(looked_at.service.registry.folders[0] / "more.csv")
    assert previewed(looked_at, ("[tables.codes]", public.format(inside) + "[tables.codes]")).document["allowed"]


@pytest.mark.long
def test_what_the_data_do_not_fit_is_not_put_into_force(world: World, file: Path) -> None:
    before = file.read_text()
    refused = changed(world, ('town = { type = "string" }', 'town = { type = "integer" }'))
    assert (refused.status, refused.document["code"]) == (503, "data_fault")
    assert file.read_text() == before
    assert world.service.catalog_versions.newest_number("open") == 0
    assert world.query("alice").status == 200


@pytest.mark.long
def test_prices_are_compared_by_what_people_asked_and_saved(looked_at: World) -> None:
    looked_at.query("alice", SUM)
    question = {"sql": "SELECT AVG(cost) AS mean FROM visits", "epsilon": "0.5"}
    looked_at.ask("POST", "/v1/datasets/open/saved", "carol", {"title": "mean", "question": question})
    charges = looked_at.charges()
    told = previewed(looked_at, ("upper = 8", "upper = 4"), questions=["SELECT nothing FROM visits"]).document
    assert told["allowed"]
    assert [(one["place"], one["was"], one["now"]) for one in told["changes"]] == [
        ("tables.visits.columns.cost.upper", "8", "4")
    ]
    assert [one["kind"] for one in told["consequences"]] == ["repeats"]
    by_source = {one["source"]: one for one in reversed(told["prices"])}
    assert by_source["given"]["before"]["refusal"]
    assert by_source["saved"]["sql"] == question["sql"]
    asked = by_source["asked"]
    assert float(asked["epsilon"]) == pytest.approx(SUM["epsilon"], rel=1e-3)
    halved = [width["columns"][0]["half_width"] for width in (asked["before"], asked["after"])]
    assert halved[1] == pytest.approx(halved[0] / 2, rel=0.05)
    assert by_source["example"]["before"]["columns"]
    assert looked_at.charges() == charges


def test_saved_queries_are_priced_by_all_that_they_state(looked_at: World) -> None:
    sql = "SELECT AVG(cost) AS mean FROM visits"
    for title, stated in (("wanted", {"error": "1"}), ("many", {"epsilon": "0.5", "assuming_count": 1000})):
        question = {"sql": sql, **stated}
        saved = looked_at.ask("POST", "/v1/datasets/open/saved", "carol", {"title": title, "question": question})
        assert saved.document["question"] == question
    told = previewed(looked_at, ("upper = 8", "upper = 4")).document
    wanted, many = (next(one for one in told["prices"] if key in one) for key in ("error", "assuming_count"))
    assert wanted["before"]["columns"][0]["half_width"] <= 1
    assert wanted["after"]["share"] < wanted["before"]["share"]  # half the range: the same error costs less
    assert (wanted["error"], many["assuming_count"], many["epsilon"]) == ("1", 1000, "0.5")
    asked = looked_at.ask(
        "POST", "/v1/datasets/open/explain", "carol", {"sql": sql, "epsilon": "0.5", "assuming_count": 1000}
    ).document
    assert many["before"]["columns"][0]["half_width"] == pytest.approx(asked["columns"][0]["half_width"])


def test_a_check_shows_what_is_private_to_curators_alone(looked_at: World) -> None:
    sent = {"catalog": catalog(looked_at)["catalog"]}
    told = looked_at.ask("POST", "/v1/datasets/open/catalog/check", "carol", sent).document
    assert (told["private"], told["passes"], told["tables"][0]["rows"]) == (True, True, 20)
    assert looked_at.ask("POST", "/v1/datasets/open/catalog/check", "audrey", sent).status == 403


@pytest.mark.long
def test_what_the_operator_wrote_by_hand_meanwhile_is_not_lost(world: World, file: Path) -> None:
    file.write_text(file.read_text().replace("upper = 8", "upper = 6"))
    own = file.read_text()
    assert "upper = 8" in catalog(world)["catalog"]  # which is in force
    refused = changed(world, ("upper = 8", "upper = 4"))
    assert (refused.status, "somebody's change" in refused.document["detail"]) == (409, True)
    assert file.read_text() == own


def upper(catalog: Catalog) -> object:
    """Return the upper bound of a cost."""
    (bound,) = (column.upper for column in catalog.tables[0].columns if column.name == "cost")
    return bound


def second_process(world: World) -> Session:
    """Return a session as another worker has it, opened before the catalog changed."""
    catalog = world.session().catalog
    return open_session(catalog, entropy=StreamEntropy("other"))


@pytest.mark.long
def test_other_processes_take_it_up_before_they_answer(world: World, file: Path) -> None:
    other = Datasets([second_process(world)], world.service.policies, versions=world.service.catalog_versions)
    held = other.visible(CAROL, "open")
    assert changed(world, ("upper = 8", "upper = 4")).status == 200
    assert other.known(CAROL, "open") is None  # it has to be opened first
    taken = other.visible(CAROL, "open")
    assert (taken.number, taken.session.catalog.digest) == (2, world.session().catalog.digest)
    assert held.session.explain(SUM["sql"], epsilon=1).columns[1].half_width  # what is under way goes on
    assert other.known(CAROL, "open") is taken
    other.close()


@pytest.mark.long
def test_one_that_cannot_take_it_up_goes_on_by_the_old_catalog(
    world: World, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Datasets([second_process(world)], world.service.policies, versions=world.service.catalog_versions)
    assert changed(world, ("upper = 8", "upper = 4")).status == 200

    def broken(*_: object, **__: object) -> None:
        raise CatalogMismatch("planted")

    monkeypatch.setattr(catalog_changes, "opened_by", broken)
    assert other.visible(CAROL, "open").number == 0
    assert other.known(CAROL, "open") is not None
    other.close()


@pytest.mark.long
def test_who_starts_while_it_changes_takes_it_up(world: World, file: Path) -> None:
    late = second_process(world)  # has read the file
    assert changed(world, ("upper = 8", "upper = 4")).status == 200
    late.catalog = replace(late.catalog, file=file)
    other = Datasets([late], world.service.policies, versions=world.service.catalog_versions)
    assert other.visible(CAROL, "open").session.catalog.digest == world.session().catalog.digest
    other.close()
    file.write_text(dumps(late.catalog).replace("upper = 8", "upper = 6"))  # the operator's own
    with open_session(load(file)) as own:
        again = Datasets([own], world.service.policies, versions=world.service.catalog_versions)
        assert upper(again.visible(CAROL, "open").session.catalog) == 6


@pytest.mark.long
def test_a_death_between_the_file_and_the_store_leaves_a_file_that_opens(
    world: World, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(type(world.service.catalog_versions), "add", dead)
    assert changed(world, ("upper = 8", "upper = 4")).status == 500
    with open_session(load(file)) as restarted:
        assert upper(restarted.catalog) == 4
    assert world.query("alice").status == 200  # still by the old one
    assert not [name for name in os.listdir(file.parent) if re.match(r"\.open\.toml\.", name)]


@pytest.mark.long
def test_after_a_raise_the_text_has_the_larger_budget(world: World, file: Path) -> None:
    was = world.ask("GET", "/v1/datasets/open/budget", "carol").document["guarantee"]
    body = {"was": {"epsilon": was["epsilon"], "delta": was["delta"]}, "epsilon": 120, "delta": was["delta"]}
    assert (
        world.ask("PUT", "/v1/datasets/open/cap", "carol", {**body, "confirmed": True}).document["catalog"] == "written"
    )
    assert "epsilon = 120" in catalog(world)["catalog"]
    assert changed(world, ("upper = 8", "upper = 4")).status == 200
    again = {**body, "was": {"epsilon": 120, "delta": was["delta"]}, "epsilon": 130, "confirmed": True}
    assert world.ask("PUT", "/v1/datasets/open/cap", "carol", again).document["catalog"] == "written"
    assert (int(load(file).budget.epsilon), upper(load(file))) == (130, 4)
