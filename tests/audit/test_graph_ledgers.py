"""A ledger that a graph has of its own is audited like the ledger of people, and charges in both are compared."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

import lapwing as lw
from lapwing.audit import AuditEffort, AuditReport, Subject, graph_ledgers, running
from lapwing.audit.subject import body_of
from lapwing.ledger.entries import Entry
from tests.support.audit import codes, edit, rewrite

CATALOG: Final = """
[dataset]
name = "town"
ledger = "sqlite:town.db"
[budget]
epsilon = 10
{budget}
[tables.people]
source = "people.csv"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = {{ type = "integer" }}
[tables.ties]
source = "ties.csv"
rows_at_most = 500
[tables.ties.columns]
a = {{ type = "integer" }}
b = {{ type = "integer" }}
[graphs.friends]
nodes = "people"
edges = "ties"
ends = ["a", "b"]
privacy = "node"
[graphs.secrets]
nodes = "people"
edges = "ties"
ends = ["a", "b"]
privacy = "edge"
degree_at_most = 8
ledger = "sqlite:secrets.db"
[graphs.secrets.budget]
epsilon = 5
{budget}
"""
BUDGETS: Final = {"gdp": "delta = 1e-6", "zcdp": 'delta = 1e-6\nmeasure = "zcdp"', "pure": 'measure = "pure"'}


def ask(catalog: Path) -> None:
    with lw.graphs.connect(catalog, "secrets") as graph:
        for statistic in ("edge_count", "degree_histogram", "triangles"):
            graph.ask(statistic, epsilon=0.1)
    with lw.graphs.connect(catalog, "friends") as graph:
        graph.ask("edge_count", epsilon=0.1)


@pytest.fixture(scope="module", params=list(BUDGETS))
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph of people, a graph of edges with a ledger of its own, and queries about both."""
    folder = tmp_path_factory.mktemp("town")
    (folder / "people.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(40)))
    (folder / "ties.csv").write_text("a,b\n" + "".join(f"{i},{(i + j) % 40}\n" for i in range(40) for j in (1, 2)))
    (folder / "lapwing.toml").write_text(CATALOG.format(budget=BUDGETS[request.param]))
    ask(folder / "lapwing.toml")
    return folder


@pytest.fixture
def town(asked: Path, tmp_path: Path) -> Path:
    """The catalog of a copy of it."""
    shutil.copytree(asked, tmp_path / "copy")
    return tmp_path / "copy" / "lapwing.toml"


def found(catalog: Path) -> list[str]:
    return codes(graph_ledgers.checks(Subject.from_file(catalog), AuditEffort()))


def edited(subject: Subject, sequence: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the body of an entry, and seal the ledger anew."""

    def changed(entry: Entry) -> Entry:
        body = body_of(entry) or {}
        if entry.sequence != sequence:
            return entry
        change(body)
        return replace(entry, body=json.dumps(body))

    rewrite(subject, map(changed, subject.entries))


def times(part: Fraction) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        body["loss"]["amount"] = f"{float(Fraction(body['loss']['amount']) * part):.20f}"

    return change


def less_noise(body: dict[str, Any]) -> None:
    payload = json.loads(body["payload"])
    for drawn in payload["drawn"]:
        drawn["law"][1] = str(Fraction(drawn["law"][1]) * Fraction(9, 10))
    body["payload"] = json.dumps(payload)


def test_honest_ledgers_pass(town: Path) -> None:
    checks = {check.name: check for check in graph_ledgers.checks(Subject.from_file(town), AuditEffort())}
    assert codes(checks.values()) == []
    assert checks["ledger chain of graph secrets"].tried == 10
    assert "3 with a stored one" in checks["charges of graph secrets"].what_was_tried
    assert "1 charges for a group" in checks["charges of graph secrets"].not_tried
    pairs = ("charges in two ledgers of graph friends", "charges in two ledgers of graph secrets")
    assert [checks[name].tried for name in pairs] == [1, 3]


def test_an_edited_entry_is_found(town: Path) -> None:
    edit(town.with_name("secrets.db"), "UPDATE entries SET time = '2020' WHERE sequence = 4")
    assert found(town)[0] == "entry_edited"


@pytest.mark.parametrize(("sequence", "change"), [(3, times(Fraction(9, 10))), (4, less_noise), (8, less_noise)])
def test_a_charge_below_the_loss_of_its_mechanisms_is_found(
    town: Path, sequence: int, change: Callable[[dict[str, Any]], None]
) -> None:
    edited(dict(Subject.from_file(town).graphs)["secrets"], sequence, change)
    assert found(town) == ["charge_below_loss"]


def test_a_smaller_charge_of_people_for_edges_is_found(town: Path) -> None:
    subject = Subject.from_file(town)
    (first, *_) = [one.sequence for one in subject.entries if "of edges, as a group of 8" in one.body]
    edited(subject, first, times(Fraction(999_999, 1_000_000)))
    assert found(town) == ["charge_missing_beside"]


def test_a_missing_charge_of_edges_for_nodes_is_found(town: Path) -> None:
    own = dict(Subject.from_file(town).graphs)["secrets"]
    rewrite(own, own.entries[:8])
    assert found(town) == ["charge_missing_beside"]


def test_a_graph_s_ledger_that_was_rolled_back_is_found_with_an_earlier_report(town: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "CHECKS", ())
        earlier = AuditReport.from_record(running.audit(town).to_record())
        assert earlier.graphs["secrets"][0] == 10
        own = dict(Subject.from_file(town).graphs)["secrets"]
        rewrite(own, own.entries[:6])
        report = running.audit(town, earlier=earlier)
    assert [(one.code, one.about) for one in report.findings] == [
        ("ledger_behind_report", "graph secrets, ledger secrets.db")
    ]
