"""The bill of materials: the locks' packages, each with whoever asks for it, and nothing that the project lacks."""

import json
import subprocess
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

import bill_of_materials
import pytest
from bill_of_materials import Incomplete, bill, read_lock, require_complete
from packaging.requirements import Requirement

from tests.support.docs.pages import ROOT

LOCK = """\
click==8.5.1 ; python_version < '4' \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
    # via -c requirements/dev.lock, Typer
shellingham==1.5.4 \\
    --hash=sha256:{c}
    # via typer
typer==0.29.2 \\
    --hash=sha256:{a}
    # via lapwing-dp (pyproject.toml)
""".format(a="a" * 64, b="b" * 64, c="c" * 64)


@cache
def made() -> dict[str, Any]:
    return bill(ROOT, {"lapwing.whl": "0" * 64}, 1_700_000_000)


def components() -> dict[str, dict[str, Any]]:
    return {one["bom-ref"]: one for one in made()["components"]}


def test_a_lock_is_read_whole() -> None:
    click, shellingham, typer = read_lock(LOCK)
    assert (click.url, click.marker) == ("pkg:pypi/click@8.5.1", "python_version < '4'")
    assert click.hashes == ("a" * 64, "b" * 64)
    assert click.asked_by == {"typer"}
    assert (shellingham.marker, shellingham.hashes) == (None, ("c" * 64,))
    assert shellingham.asked_by == {"typer"}
    assert typer.asked_by == {"lapwing-dp"}


@pytest.mark.parametrize("planted", ["    # via lapwing-dp (pyproject.toml)\n", "==0.29.2"])
def test_an_entry_that_is_not_understood_is_refused(planted: str) -> None:
    with pytest.raises(Incomplete, match="typer"):
        read_lock(LOCK.replace(planted, ""))


@pytest.mark.parametrize("asked", ["typer>=0.30", "rich"])
def test_a_lock_without_what_the_project_asks_for_is_refused(asked: str) -> None:
    require_complete({"": [Requirement("typer>=0.29")]}, read_lock(LOCK))
    with pytest.raises(Incomplete, match=r"the extra shell asks for .* run `make lock-extras`"):
        require_complete({"shell": [Requirement(asked)]}, read_lock(LOCK))


def test_every_requirement_of_the_project_is_in_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    by_name = {one["name"]: one for one in components().values()}
    for text in project["dependencies"]:
        assert by_name[Requirement(text).name]["scope"] == "required"
    for extra, texts in project["optional-dependencies"].items():
        for text in texts:
            notes = by_name[Requirement(text).name].get("properties", [])
            assert {"name": "lapwing:extra", "value": extra} in notes
    assert "pytest" not in by_name, "tools of development are not given out"


def test_what_it_brings_in_turn_hangs_together() -> None:
    """Everything is reached from Lapwing, and every edge leads to something."""
    edges = {edge["ref"]: edge["dependsOn"] for edge in made()["dependencies"]}
    whole = made()["metadata"]["component"]["bom-ref"]
    assert set(edges) == {whole, *components()}
    reached: set[str] = set()
    waiting = [whole]
    while waiting:
        reached.add(one := waiting.pop())
        waiting += [needed for needed in edges[one] if needed not in reached]
    assert reached == {whole, *components()}


def test_the_packages_in_the_editor_are_in_it() -> None:
    licences = (ROOT / "src/lapwing/server/console/editor-licences.txt").read_text(encoding="utf-8")
    bundled = {(one["name"], one["version"]): one for url, one in components().items() if url.startswith("pkg:npm/")}
    for name, version in bundled:
        assert f"{name} {version}, {bundled[name, version]['licenses'][0]['license']['id']}" in licences
    assert licences.count(", MIT\n") == len(bundled) >= 10
    assert not any("esbuild" in name for name, _ in bundled), "what builds it is not in it"
    state = next(one for (name, _), one in bundled.items() if name == "@codemirror/state")
    assert state["purl"].startswith("pkg:npm/%40codemirror/state@6.")
    (hashed,) = state["externalReferences"][0]["hashes"]
    assert (hashed["alg"], len(hashed["content"])) == ("SHA-512", 128)


def test_the_same_bill_has_the_same_number_and_another_has_another() -> None:
    assert bill(ROOT, {"lapwing.whl": "0" * 64}, 1_700_000_000) == made()
    other = bill(ROOT, {"lapwing.whl": "1" + "0" * 63}, 1_700_000_000)
    assert other["serialNumber"] != made()["serialNumber"]
    assert made()["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"


def test_an_extra_without_a_lock_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: an extra is added, and `make lock-extras` is forgotten."""
    read = bill_of_materials.requirements_of

    def with_another(project: Mapping[str, Any]) -> dict[str, list[Requirement]]:
        return read(project) | {"new": [Requirement("never-locked>=1")]}

    monkeypatch.setattr(bill_of_materials, "requirements_of", with_another)
    with pytest.raises(Incomplete, match="the extra new asks for never-locked>=1, and the locks have nothing"):
        bill(ROOT, {}, 0)


def test_it_names_no_host_but_that_of_its_own_form() -> None:
    """Packages are named by package URLs: where they are fetched from is for whoever fetches them to say."""
    hosts = {text for text in json.dumps(made()).split('"') if "://" in text}
    assert hosts == {"http://cyclonedx.org/schema/bom-1.6.schema.json"}


@pytest.mark.long
def test_the_standards_own_schema_takes_it(tmp_path: Any) -> None:
    """By the reference library, in an environment of its own: the project needs it for nothing else."""
    from tests.support.distribution.built import environment_with

    environment = environment_with(tmp_path, "install", "cyclonedx-python-lib[json-validation]>=9")
    script = (
        "import sys; from cyclonedx.schema import SchemaVersion as V;"
        "from cyclonedx.validation.json import JsonStrictValidator as J;"
        "print(J(V.V1_6).validate_str(sys.stdin.read()))"
    )

    def judged(document: Mapping[str, Any]) -> str:
        command = [str(environment / "bin/python"), "-c", script]
        text = json.dumps(document)
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()

    assert judged(made()) == "None"
    assert "specVersoin" in judged(made() | {"specVersoin": "1.6"})  # planted
