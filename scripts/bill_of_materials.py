"""The bill of materials of a release in CycloneDX's form: what the locks say of it, with nothing looked up.

It lists every Python package that Lapwing or one of its extras can bring, as the locks pin them, and the npm packages
that are bundled into the editor of the console. An edge says what asks for what, as `uv` notes it in an annotated lock.
"""

import base64
import hashlib
import json
import re
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK: Final = Path("requirements/extras.lock")
"""What all extras bring. An extra that is not in it has a lock of its own, which is named after it."""
EDITOR: Final = Path("src/lapwing/server/console/static/editor.js")
EDITOR_LOCK: Final = Path("scripts/console-editor/package-lock.json")

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;]+)(?: ; (.*?))?(?: \\)?$")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_ASKED: Final = re.compile(r"^    # via (.*)$")


class Incomplete(ValueError):
    """A lock lacks what the project asks for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package as a lock pins it; `asked_by` names those that ask for it, the project among them."""

    name: str
    version: str
    marker: str | None = None
    hashes: tuple[str, ...] = ()
    asked_by: frozenset[str] = field(default_factory=frozenset)

    @property
    def url(self) -> str:
        """Its package URL, which is also how the bill refers to it."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str) -> list[Package]:
    """Return the packages of an annotated lock (`uv pip compile --annotation-style line`)."""
    packages: list[Package] = []
    for entry in re.split(r"\n(?=[A-Za-z0-9])", text.strip()):
        first, *rest = entry.split("\n")
        pin = _PIN.match(first)
        asked = [found[1] for line in rest if (found := _ASKED.match(line))]
        if pin is None or len(asked) != 1:
            raise Incomplete(f"This is no entry of an annotated lock: {first!r}")
        names = [name.strip().split(" ")[0] for name in asked[0].split(", ") if not name.startswith("-c ")]
        packages.append(
            Package(
                name=canonicalize_name(pin[1]),
                version=pin[2],
                marker=pin[3],
                hashes=tuple(_HASH.findall(entry)),
                asked_by=frozenset(map(canonicalize_name, names)),
            )
        )
    return packages


def requirements_of(project: Mapping[str, Any]) -> dict[str, list[Requirement]]:
    """Return what a project asks for: always, under the empty name, and by extra."""
    extras = project.get("optional-dependencies", {})
    return {name: list(map(Requirement, texts)) for name, texts in {"": project["dependencies"], **extras}.items()}


def require_complete(asked: Mapping[str, Iterable[Requirement]], packages: Sequence[Package]) -> None:
    """Refuse locks that lack a requirement, or have it in a version that it does not admit.

    Raises: Incomplete.
    """
    for extra, requirements in asked.items():
        for requirement in requirements:
            versions = [one.version for one in packages if one.name == canonicalize_name(requirement.name)]
            if not versions or not all(requirement.specifier.contains(one, prereleases=True) for one in versions):
                whose = f"the extra {extra}" if extra else "the project"
                locked = ", ".join(versions) or "nothing"
                raise Incomplete(f"{whose} asks for {requirement}, and the locks have {locked}: run `make lock-extras`")


def reached(roots: Iterable[str], packages: Sequence[Package]) -> set[str]:
    """Return the names of packages, and of all that they ask for in turn."""
    names: set[str] = set()
    waiting: set[str] = {canonicalize_name(root) for root in roots}
    while waiting:
        names |= waiting
        waiting = {one.name for one in packages if one.asked_by & waiting} - names
    return names


def python_components(asked: Mapping[str, list[Requirement]], packages: Sequence[Package]) -> list[dict[str, Any]]:
    """Return the Python packages as components: required, or optional with the extras that bring them."""
    brought = {extra: reached((one.name for one in needs), packages) for extra, needs in asked.items()}
    components = []
    for package in packages:
        extras = sorted(extra for extra, names in brought.items() if extra and package.name in names)
        notes = [("lapwing:extra", extra) for extra in extras if package.name not in brought[""]]
        if package.marker is not None:
            notes.append(("lapwing:marker", package.marker))
        components.append(
            {
                "type": "library",
                "bom-ref": package.url,
                "name": package.name,
                "version": package.version,
                "scope": "required" if package.name in brought[""] else "optional",
                "purl": package.url,
                "externalReferences": [distribution(package.url, package.hashes)],
            }
            | ({"properties": [{"name": name, "value": value} for name, value in notes]} if notes else {})
        )
    return components


def editor_components(lock: Mapping[str, Any], editor: bytes) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the editor of the console with the npm packages that are bundled into it, and what asks for what."""
    bundled = {path: one for path, one in lock["packages"].items() if path and not one.get("dev")}
    urls = {path.removeprefix("node_modules/"): _npm_url(path, one) for path, one in bundled.items()}
    file = {
        "type": "file",
        "bom-ref": str(EDITOR),
        "name": str(EDITOR.relative_to("src")),
        "scope": "optional",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(editor).hexdigest()}],
        "properties": [{"name": "lapwing:extra", "value": "server"}],
    }
    components = [file]
    edges = [{"ref": str(EDITOR), "dependsOn": sorted(urls[name] for name in lock["packages"][""]["dependencies"])}]
    for path, one in bundled.items():
        name = path.removeprefix("node_modules/")
        algorithm, _, digest = one["integrity"].partition("-")
        content = base64.b64decode(digest).hex()
        components.append(
            {
                "type": "library",
                "bom-ref": urls[name],
                "name": name,
                "version": one["version"],
                "scope": "optional",
                "licenses": [{"license": {"id": one["license"]}}],
                "purl": urls[name],
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": urls[name],
                        "hashes": [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": content}],
                    }
                ],
                "properties": [{"name": "lapwing:extra", "value": "server"}],
            }
        )
        edges.append({"ref": urls[name], "dependsOn": sorted(urls[needed] for needed in one.get("dependencies", {}))})
    return components, edges


def distribution(url: str, hashes: Iterable[str]) -> dict[str, Any]:
    """Return a reference to files that may be installed, of which a lock has the hashes."""
    listed = [{"alg": "SHA-256", "content": one} for one in hashes]
    return {"type": "distribution", "url": url, "hashes": listed}


def bill(root: Path, built: Mapping[str, str], moment: int) -> dict[str, Any]:
    """Return the bill of materials of what was built from a folder.

    Args: built: SHA-256 by the names of the files that were built; moment: seconds since 1970, which the bill states.
    Raises: Incomplete if a lock lacks what `pyproject.toml` asks for.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = requirements_of(project)
    own = [root / "requirements" / f"{extra}.lock" for extra in asked if extra]
    locks = [root / LOCK, *(lock for lock in own if lock.exists())]
    packages = _merged(package for lock in locks for package in read_lock(lock.read_text(encoding="utf-8")))
    require_complete(asked, packages)
    editor, editor_edges = editor_components(
        json.loads((root / EDITOR_LOCK).read_text(encoding="utf-8")), (root / EDITOR).read_bytes()
    )
    whole = f"pkg:pypi/{project['name']}@{project['version']}"
    direct = [one.url for one in packages if project["name"] in one.asked_by]
    edges = [{"ref": whole, "dependsOn": sorted([*direct, str(EDITOR)])}]
    for package in packages:
        needs = {one.url for one in packages if package.name in one.asked_by}
        edges.append({"ref": package.url, "dependsOn": sorted(needs)})
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": whole,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": whole,
                "externalReferences": [distribution(name, [digest]) for name, digest in sorted(built.items())],
            },
        },
        "components": [*python_components(asked, packages), *editor],
        "dependencies": [*edges, *editor_edges],
    }
    # The same bill has the same number, whoever makes it and however often.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return document | {"serialNumber": f"urn:uuid:{number}"}


def _merged(packages: Iterable[Package]) -> list[Package]:
    """Return the packages of several locks, each version once, sorted."""
    found: dict[str, Package] = {}
    for one in packages:
        before = found.get(one.url, one)
        found[one.url] = Package(
            name=one.name,
            version=one.version,
            marker=before.marker if before.marker == one.marker else None,
            hashes=tuple(sorted({*before.hashes, *one.hashes})),
            asked_by=before.asked_by | one.asked_by,
        )
    return [found[url] for url in sorted(found)]


def _npm_url(path: str, package: Mapping[str, Any]) -> str:
    name = path.removeprefix("node_modules/").replace("@", "%40", 1)
    return f"pkg:npm/{name}@{package['version']}"
