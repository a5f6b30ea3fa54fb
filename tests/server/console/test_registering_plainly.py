"""Registering without TOML: a plain table, the way back to the form, and codes for missing values by a tick."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.server.console.conftest import with_passwords
from tests.server.console.test_refused_forms import faults
from tests.server.console.test_registering import column
from tests.support.server.browsing import visitor
from tests.support.server.world import QUICK, World, service_in, serving


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = "".join(f"{person},{-99 if person < 3 else 30},x\n" for person in range(1, 20))
    (folder / "stays.csv").write_text("person,age,note\n" + rows)
    return folder


@pytest.fixture
def registry(tmp_path: Path, data: Path) -> Iterator[World]:
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,)))) as running:
        yield with_passwords(running)


def test_a_file_is_registered_without_reading_toml(registry: World, data: Path) -> None:
    carol = visitor(registry, "carol")
    columns = carol.go(f"/console/register/file?folder={data}&file=stays.csv")
    age, note = (column(columns.form("/register/file").fields, name) for name in ("age", "note"))
    typed = {
        "unit": "person", "rows": "1", "epsilon": "1", "dataset": "stays 2025", f"type-{age}": "integer",
        f"lower-{age}": "0", f"upper-{age}": "110", f"missing-{age}": "NA", f"out-{note}": "on",
    }  # fmt: skip
    refused = carol.submit(columns, "/register/file", **typed)
    (marked,) = faults(refused).fields
    assert (refused.status, marked["name"]) == (422, "dataset")  # not a step later
    taken = carol.submit(refused, "/register/file", **{**typed, "dataset": "open"})
    assert (taken.status, faults(taken).fields[0]["name"]) == (422, "dataset")

    drafted = carol.submit(refused, "/register/file", **{**typed, "dataset": "stays"})
    for said in ("Rows with the same person belong together", "right at most 55 times", "0 to 110", "left out"):
        assert said in drafted.text
    assert "<details open" not in drafted.content.decode()
    form = drafted.form("/console/register").fields

    checked = carol.post("/console/register/check", form)
    assert "-99 (2 times)" in checked.text
    assert 'class="tag good">This data' not in checked.content.decode()
    assert checked.form("/console/register").fields == form  # a code that is not ticked is sent on in no field
    added = carol.post("/console/register/missing", {**form, f"code-{age}": "-99"})
    assert 'missing = ["NA", -99]' in added.form("/console/register").fields["catalog"]
    again = carol.post("/console/register/check", added.form("/console/register").fields)
    assert 'class="tag good">This data would be accepted' in again.content.decode()

    back = carol.post("/console/register/back", added.form("/console/register").fields)
    fields = back.form("/register/file").fields
    assert (fields["dataset"], fields[f"missing-{age}"], fields[f"upper-{age}"]) == ("stays", "NA, -99", "110")
    done = carol.post("/console/register", again.form("/console/register").fields)
    assert done.path == "/console/data/stays/access?done=registered"
