"""Two services on two hosts, with one ledger and one source in PostgreSQL, and folders of their own: one truth."""

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.server.people import DAY, RIGHTS_OF, People
from lapwing.server.policies import Policies
from lapwing.server.store_places import open_store, people_of
from tests.support.postgres import Postgres
from tests.support.server.crew import CATALOG, Crew, Reply, ask, crew
from tests.support.sources import rows
from tests.support.sources.rows import visits

FIRST, MORE = 4_000, 4_000


def host(folder: Path, source: str, ledger: str) -> Path:
    """Make the folder of a host, which has fetched what there is."""
    folder.mkdir()
    rows.catalog(folder, source, ledger=ledger)
    (folder / "lapwing.toml").rename(folder / CATALOG)
    assert lw.refresh_data(folder / CATALOG) == 1
    return folder


def token_of_alice(catalog: Path) -> str:
    """Give alice a fifth of the budget, and return her token."""
    with lw.connect(catalog) as session:
        store, view = open_store(people_of(session.catalog)), session.budget()
    known, policies = People(store), Policies(store)
    known.add("carol", "curator", None, by="carol")
    known.add("alice", "analyst", None, by="carol")
    token, _ = known.issue("alice", label="", scopes=RIGHTS_OF["analyst"], seconds=DAY, by="carol")
    policies.grant("visits", "alice", Fraction(1, 5), view.spending, view.total, view.delta_keys, by="carol")
    store.close()
    return token


def counted(reply: Reply) -> int:
    assert reply.status == 200, reply.content
    (row,) = json.loads(reply.content)["rows"]
    return int(row["n"])


def question(insured: str, epsilon: float = 0.2) -> dict[str, Any]:
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE {insured}", "epsilon": str(epsilon)}


ALL = question("insured OR NOT insured OR insured IS NULL")
ANOTHER = question("plan = plan OR plan IS NULL")
THIRD = question("day = day OR day IS NULL")


def check_one_truth(folder: Path, source_database: str, ledger: str, planted: str) -> None:
    people = visits(FIRST)
    source = rows.fill_postgres(source_database, people)
    folders = [host(folder / name, source, f"{ledger}&ledger=visits") for name in ("one", "two")]
    token = token_of_alice(folders[0] / CATALOG)
    with crew(folders[0], number=2, planted=planted) as one, crew(folders[1], number=2, planted=planted) as two:

        def asked(service: Crew, body: dict[str, Any]) -> Reply:
            return ask(service.port, token, body)

        with ThreadPoolExecutor(2) as threads:
            under_way = [threads.submit(asked, one, ALL), threads.submit(asked, two, ANOTHER)]
            for service in (one, two):
                service.wait_for("a question is under way")
            rows.fill_postgres(source_database, visits(MORE, seed=3, first=10_000))
            assert lw.refresh_data(folders[0] / CATALOG) == 2
            for place in folders:
                (place / "go").touch()
            before = [counted(reply.result()) for reply in under_way]
        assert all(abs(n - kept(people)) < 700 for n in before), f"questions that ran are of version 1: {before}"
        spent = json.loads(_budget(folders[0]))
        refused = asked(two, ALL)
        assert (refused.status, refused.code) == (409, "data_changed"), refused.content
        assert b"accept the new data" in refused.content
        assert b"lapwing data" not in refused.content, "an analyst types no command"
        assert json.loads(_budget(folders[0])) == spent, "nothing was charged"
        here = counted(asked(one, THIRD))
        assert abs(here - kept(people) - kept(visits(MORE, seed=3, first=10_000))) < 700
        assert lw.refresh_data(folders[1] / CATALOG) == 2, "the same rows, fetched elsewhere, are the same version"
        assert counted(asked(two, THIRD)) == here, "bought once for both"


def kept(table: Any) -> int:
    """Return how many rows there are once those without a person, and beyond three of each, are left out."""
    people = [row["person"] for row in table.to_pylist() if row["person"] is not None]
    return sum(min(3, people.count(person)) for person in set(people))


def _budget(folder: Path) -> str:
    with lw.connect(folder / CATALOG) as session:
        return json.dumps(str(session.budget(history=False).spent))


@pytest.mark.long
def test_two_services_answer_from_one_version_or_say_that_they_do_not(
    tmp_path: Path, postgres: str, shared_postgres: Postgres
) -> None:
    with shared_postgres.database() as ledger:
        check_one_truth(tmp_path, postgres, ledger, "hold questions")


@pytest.mark.long
def test_a_service_that_answers_from_what_it_has_is_noticed(
    tmp_path: Path, postgres: str, shared_postgres: Postgres
) -> None:
    """The planted bug: whatever was fetched last on a host answers there."""
    with shared_postgres.database() as ledger, pytest.raises(AssertionError, match=r"are of version 1|data_changed"):
        check_one_truth(tmp_path, postgres, ledger, "answer from the newest")
