"""Take the pictures of the console that the documentation shows: of a real service, in Chromium, as they are.

    python scripts/console_pictures.py [FOLDER]

Two data sets: the one that comes with Lapwing, and a clinic that is made up here, whose arrivals a monitor counts by
the hour. What is on the pictures was bought and released on the way; only the noise is another one each time.
"""

import json
import shutil
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.datasets import rand_hie_catalog, rand_hie_data
from lapwing.monitors import create_monitor
from lapwing.server.service import Service, ServiceSettings
from lapwing.session import Session

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the tests' browser, which needs no package

from tests.server.console.test_in_a_browser import sign_in  # noqa: E402
from tests.support.browser.chromium import Page, find_chromium, running  # noqa: E402
from tests.support.server.browsing import PASSWORD  # noqa: E402
from tests.support.server.world import PEOPLE, World, serving  # noqa: E402

WIDTH: Final = 1180
WARDS: Final = ("emergency", "maternity", "surgery")
ARRIVALS: Final = "SELECT COUNT(*) AS arrivals FROM stays EVERY '1 hour' FOR '1 day' STARTING '2026-03-02'"
ANSWERS: Final = {
    "Stays by ward": "SELECT ward, COUNT(*) AS stays FROM stays GROUP BY ward",
    "Nights, on average": "SELECT ward, AVG(nights) AS nights FROM stays GROUP BY ward",
    "Ages": "SELECT FLOOR(age / 10) * 10 AS age, COUNT(*) AS stays FROM stays GROUP BY FLOOR(age / 10) * 10",
}
ADULTS: Final = "SELECT health, COUNT(*) AS years\nFROM rand_hie\nWHERE age >= 18\nGROUP BY health"
BY_TWO: Final = (
    "SELECT health, sex, COUNT(*) AS years, AVG(outpatient_visits) AS visits\nFROM rand_hie\nGROUP BY health, sex"
)


def rand_hie(folder: Path) -> Session:
    """Open the data set that comes with Lapwing."""
    for file in (rand_hie_data(), rand_hie_catalog()):
        shutil.copy(file, folder)
    return lw.connect(folder / rand_hie_catalog().name)


def clinic(folder: Path) -> Session:
    """Make up a clinic: 4,000 people, a stay each."""
    generator, people = np.random.default_rng(27), 4_000
    begins = datetime(2026, 3, 2)
    hours = np.clip(generator.normal(13, 4, people), 0, 23.9)
    table = pa.table({
        "person": np.arange(people),
        "ward": np.array(WARDS)[generator.choice(3, people, p=[0.5, 0.2, 0.3])],
        "age": np.clip(generator.normal(48, 20, people), 0, 99).astype(int),
        "nights": np.clip(generator.exponential(4, people), 0, 30).astype(int),
        "seen": [begins + timedelta(hours=float(hour)) for hour in hours],
    })  # fmt: skip
    pq.write_table(table, folder / "stays.parquet")
    catalog = folder / "clinic.toml"
    catalog.write_text(
        '[dataset]\nname = "clinic"\nledger = "sqlite:clinic.db"\n[budget]\nepsilon = 10\ndelta = 1e-6\n'
        '[tables.stays]\nsource = "stays.parquet"\nprivacy_unit = "person"\nmax_rows_per_unit = 1\n'
        f'[tables.stays.columns]\nward = {{ type = "string", values = {json.dumps(WARDS)} }}\n'
        'age = { type = "integer", lower = 0, upper = 99 }\nnights = { type = "integer", lower = 0, upper = 30 }\n'
        'seen = { type = "timestamp" }\n'
    )
    return lw.connect(catalog)


def observed(world: World, session: Session) -> None:
    """Let a monitor count arrivals until four in the afternoon."""
    table = pq.read_table(session.catalog.folder / "stays.parquet").to_pylist()
    lines = [
        json.dumps({"id": f"{row['person']}", "person": row["person"], "seen": row["seen"].isoformat()})
        for row in table
        if row["seen"].hour < 16
    ]
    with create_monitor(
        session.catalog, "arrivals", ARRIVALS, epsilon=1, time="seen", most=1, source="service"
    ) as monitor:
        path, kind = "/v1/datasets/clinic/monitors/arrivals/events", {"Content-Type": "application/x-ndjson"}
        assert world.ask("POST", path, "carol", "\n".join(lines).encode(), kind).status == 200
        for _ in zip(range(16), monitor.run(replay=True), strict=False):
            pass


def answer(world: World, dataset: str, sql: str, epsilon: float, label: str) -> str:
    """Let alice buy an answer, and return its id."""
    body = {"sql": sql, "epsilon": epsilon, "label": label}
    bought: dict[str, Any] = world.query("alice", body, dataset).document
    return str(bought["id"])


def taken(page: Page, world: World, path: str, file: Path, until: str = "true") -> None:
    """Take a picture of a page, once something is so."""
    page.go(world.address + path)
    page.wait(until)
    page.look(file, WIDTH, 640)
    print(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def main(folder: Path) -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as name, running(find_chromium() or "chromium") as chromium:
        sessions = [rand_hie(Path(name)), clinic(Path(name))]
        files = Path(name) / "tables"
        files.mkdir()
        shutil.copy(Path(name) / "stays.parquet", files)
        settings = ServiceSettings(rate=0, strangers=0, folders=(files,))
        service = Service(Path(name) / "people.db", sessions, settings)
        for person, role in PEOPLE.items():
            service.people.add(person, role, PASSWORD, by="carol", team="research")
        for session in sessions:
            view = session.budget()
            service.policies.grant(session.catalog.name, "alice", None, view.spending, view.total, by="carol")
        with serving(service) as world:
            observed(world, sessions[1])
            tiles = [{"answer": answer(world, "clinic", sql, 1, label)} for label, sql in ANSWERS.items()]
            body = {"title": "The clinic today", "tiles": [{"monitor": "arrivals"}, *tiles], "shared": True}
            board = world.ask("POST", "/v1/datasets/clinic/saved", "alice", body).document["id"]
            adults = answer(world, "rand_hie", ADULTS, 0.2, "years of adults, by health")
            both = answer(world, "rand_hie", BY_TWO, 0.3, "by health and sex")
            page = chromium.page()
            page.size(WIDTH, 640)
            sign_in(page, world, "alice")
            example = quote(ADULTS.replace("age >= 18", "age >= 65"))
            ask = f"/console/data/rand_hie/ask?sql={example}&epsilon=0.1"
            taken(page, world, ask, folder / "ask.png", "document.querySelector('.cm-editor')")
            taken(page, world, f"/console/answers/{adults}", folder / "answer.png")
            taken(page, world, f"/console/answers/{both}/rearranged?chosen=1&k0=1", folder / "rearranged.png")
            live = "document.getElementById('live').textContent == 'This page updates automatically.'"
            taken(page, world, f"/console/dashboards/{board}", folder / "dashboard.png", live)
            curator = chromium_of(chromium, world)
            taken(curator, world, "/console/data/rand_hie/budget", folder / "budget.png")
            registered(curator, world, folder / "register.png")
            curator.go(f"{world.address}/console/account/second-factor")
            sent(curator, "/second-factor", "document.querySelector('.qr')", password=PASSWORD)
            shot(curator, folder / "second-factor.png")


def registered(page: Page, world: World, file: Path) -> None:
    """Take a picture of the third step of a registration, with the check beside the catalog."""
    page.go(f"{world.address}/console/register/file?folder=&file=stays.parquet")
    said = {"unit": "person", "rows": "1", "epsilon": "1", "dataset": "stays", "values-1": ", ".join(WARDS)}
    bounds = {"lower-2": "0", "upper-2": "90", "lower-3": "0", "upper-3": "30"}
    check = """document.querySelector('[formaction$="/check"]')"""
    sent(page, "/register/file", check, **said, **bounds)
    page.run(f"setTimeout(() => {check}.click())")
    page.wait("document.querySelector('.private')")
    shot(page, file)


def sent(page: Page, action: str, until: str, **typed: str) -> None:
    """Fill in a form and send it, and wait until something is so."""
    page.run(
        f"const form = [...document.forms].find((one) => one.getAttribute('action')?.endsWith({json.dumps(action)}));"
        f"for (const [name, value] of Object.entries({json.dumps(typed)})) form.elements[name].value = value;"
        "setTimeout(() => form.requestSubmit());"
    )
    page.wait(until)


def shot(page: Page, file: Path) -> None:
    """Take a picture of a page as it is."""
    page.look(file, WIDTH, 640)
    print(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def chromium_of(chromium: Any, world: World) -> Page:
    """Return a page of the curator."""
    page: Page = chromium.page()
    page.size(WIDTH, 640)
    sign_in(page, world, "carol")
    return page


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "assets" / "console")
