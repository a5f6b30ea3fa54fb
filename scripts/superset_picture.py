"""Take the picture of Apache Superset that the documentation shows: a chart of a real service, in Chromium.

    LAPWING_SUPERSET_PYTHON=superset/bin/python python scripts/superset_picture.py [FILE]

`tests/support/server/superset.py` says how the environment of Superset is made.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import lapwing as lw
from lapwing.datasets import rand_hie_catalog, rand_hie_data
from lapwing.server import listener
from lapwing.server.service import Service, ServiceSettings

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the tests' browser and their Superset

from tests.support.browser import chromium  # noqa: E402
from tests.support.server import superset  # noqa: E402
from tests.support.server.browsing import PASSWORD  # noqa: E402
from tests.support.server.world import PEOPLE, serving  # noqa: E402

WIDTH, HEIGHT = 1180, 700


def main(file: Path) -> None:
    """Serve the data set that comes with Lapwing, draw a chart of it in Superset, and take its picture."""
    python, browser = superset.find_superset(), chromium.find_chromium()
    if python is None or browser is None:
        sys.exit(f"{superset.VARIABLE} names no Python, or there is no Chromium.")
    with tempfile.TemporaryDirectory() as name, listener.listening(listener.Endpoint(port=0)) as door:
        folder = Path(name)
        for shipped in (rand_hie_data(), rand_hie_catalog()):
            shutil.copy(shipped, folder)
        session = lw.connect(folder / rand_hie_catalog().name)
        service = Service(folder / "people.db", [session], ServiceSettings(rate=0, strangers=0))
        for person, role in PEOPLE.items():
            service.people.add(person, role, PASSWORD, by="carol", team="research")
        view = session.budget()
        service.policies.grant("rand_hie", "alice", None, view.spending, view.total, by="carol")
        (folder / "superset").mkdir()
        with serving(service, door) as world, superset.running(python, folder / "superset") as running:
            database = running.connected(door.getsockname()[1], world.tokens["alice"], "rand_hie")
            chart = running.chart(running.dataset(database, "rand_hie"), "plan", "Years by plan")
            with chromium.running(browser) as started:
                page = started.page()
                page.size(WIDTH, HEIGHT)
                running.sign_in(page)
                running.draw(page, chart)
                time.sleep(3)  # the bars grow
                page.look(file, WIDTH, HEIGHT)
    print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "assets" / "superset.png")
