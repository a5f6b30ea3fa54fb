"""Plan a release, move the slider, run it, download its files and publish its report, by the forms of the console."""

import re
from io import BytesIO
from typing import Final
from zipfile import ZipFile

import pytest

from lapwing.privacy.measures import from_record
from tests.support.server.browsing import Shown, Visitor, visitor
from tests.support.server.world import World

HERE: Final = "/console/data/open/releases"


def errors(shown: Shown) -> list[int]:
    """Return the ± of the tables in a plan."""
    return [int(found.replace(",", "")) for found in re.findall(r"<strong>±([\d,]+)", shown.content.decode())]


def test_a_release_is_planned_run_and_downloaded(place: World, alice: Visitor) -> None:
    empty = alice.go(HERE)
    assert "There are no releases yet." in empty.text
    planned = alice.submit(empty, "/releases")  # the example that the page begins with
    assert "Cost: ε = 1, δ = 0.0005, once for all tables" in planned.text
    cheaper = alice.submit(planned, "/releases", level="-4")
    assert cheaper.form("/run").fields["epsilon"] == "0.5"
    assert min(errors(cheaper)) > max(errors(planned))
    assert place.charges() == 0
    made = alice.submit(cheaper, "/run")
    assert made.status == 200
    assert "All tables together cost ε = 0.5, δ = " in made.text
    body = {"release": planned.form("/run").fields["release"], "epsilon": "0.5"}
    cost = place.ask("POST", "/v1/datasets/open/releases/plan", "alice", body).document["cost"]
    assert place.session().budget().spent == from_record(cost)
    (archive,) = [link for link in made.page.links if link.endswith("/files.zip")]
    with ZipFile(BytesIO(alice.go(archive).content)) as files:
        names = set(files.namelist())
        for link in made.page.links:
            if "/files/" in link:
                file = alice.go(link)
                assert file.content == files.read(link.rpartition("/")[2])
                assert "sandbox" in file.headers["content-security-policy"]
                names -= {link.rpartition("/")[2]}
    assert not names
    planned_again = alice.submit(made, "/releases")  # whose file has the cost that was paid
    assert "All these tables were bought before" in planned_again.text
    alice.submit(planned_again, "/run")
    assert place.charges() == 4
    assert f'href="{made.path}"' in alice.go(HERE).content.decode()


def test_the_next_period_is_planned_from_the_last_one_and_compared(place: World, alice: Visitor) -> None:
    first = alice.submit(alice.submit(alice.go(HERE), "/releases"), "/run")
    assert "Compare" not in first.text  # there is no other release yet
    id_ = first.path.rpartition("/")[2]
    planned = alice.submit(first, "/releases", previous=id_, level="4")
    assert planned.form("/run").fields["previous"] == id_
    assert alice.submit(planned, "/releases").form("/run").fields["previous"] == id_  # the form keeps it
    second = alice.submit(planned, "/run")
    report = alice.go(f"{second.path}/files/method.html").content
    assert b"Compared with the last release" in report
    charges = place.charges()
    shown = alice.go(f"{second.path}/changes?before={id_}")
    assert shown.status == 200
    document = place.ask("GET", f"/v1{second.path.removeprefix('/console')}/changes?before={id_}", "alice").document
    cells = sum(len(one["changes"]) for one in document["numbers"])
    clear = [change for one in document["numbers"] for change in one["changes"] if change["is_clear"]]
    assert cells == 12
    assert len(clear) < cells
    assert ("No change is larger than its ±." in shown.text) == (not clear)
    assert second.form("/changes").fields["before"] == id_
    assert place.charges() == charges
    assert alice.go(f"{second.path}/changes?before=none").status == 404


@pytest.mark.long
def test_what_is_wrong_is_said_before_a_charge(place: World, alice: Visitor) -> None:
    start = alice.go(HERE)
    wrong = alice.submit(start, "/releases", release='title = "T"\nepsilon = 1\n[tables.x]\nquery = "SELECT <b>"')
    assert "Lapwing cannot plan this release" in wrong.text
    assert "<b>" not in wrong.content.decode().split("</textarea>")[1]
    assert wrong.form("/releases").fields["release"].endswith('"SELECT <b>"')
    dear = alice.submit(
        start, "/releases", release=start.form("/releases").fields["release"].replace("= 1\n", "= 999\n")
    )
    assert "You cannot run this release" in dear.text
    assert not [form for form in dear.page.forms if form.action.endswith("/run")]
    refused = alice.post(f"{HERE}/run", {**start.form("/releases").fields, "epsilon": "999"})
    assert refused.status == 409
    assert place.charges() == 0
    audited = visitor(place, "audrey")
    seen = audited.submit(audited.go(HERE), "/releases")
    assert not [form for form in seen.page.forms if form.action.endswith("/run")]
    fragment = alice.post(f"{HERE}/preview", {**start.form("/releases").fields, "level": "8"})
    assert "<html" not in fragment.content.decode()
    assert fragment.form("/run").fields["epsilon"] == "4"


@pytest.mark.long
def test_the_method_report_is_published(place: World, alice: Visitor) -> None:
    made = alice.submit(alice.submit(alice.go(HERE), "/releases"), "/run")
    form = f"{made.path}/publish"
    assert "Ask a curator to allow it" in alice.go(form).text
    carol = visitor(place, "carol")
    carol.submit(carol.go("/console/data/open/published"), "/published")
    shown = alice.submit(alice.go(form), "/publish", name="No Name!")
    assert shown.status == 422
    listed = alice.submit(shown, "/publish", name="counts-of-visits")
    page = Visitor(place).go("/published/counts-of-visits")
    assert page.content == alice.go(f"{made.path}/files/method.html").content
    assert "counts-of-visits" in listed.text
    (file,) = [link for link in alice.go("/console/data/open/published").page.links if link.endswith("/file.html")]
    assert alice.go(file).content == page.content
    assert carol.go(made.path).status == 200
    assert visitor(place, "bob").go(made.path).status == 404
