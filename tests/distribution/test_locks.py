"""The locks agree with the project and with each other, and the page about installing with both."""

import re
import tomllib
from typing import Any, Final

from bill_of_materials import Package, read_lock, require_complete, requirements_of

from tests.distribution.test_bare_environment import EXAMPLES
from tests.support.docs.pages import DOCS, ROOT

PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE: Final = (DOCS / "how-to" / "install.md").read_text(encoding="utf-8")


def packages(lock: str) -> list[Package]:
    return read_lock((ROOT / "requirements" / lock).read_text(encoding="utf-8"))


def extras_of_the_service() -> list[str]:
    """Return the extras with which `make lock-extras` makes the lock of the service."""
    line = re.search(r"^SERVICE = (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    return re.findall(r"--extra (\w+)", line[1])


def test_the_services_lock_has_what_the_service_asks_for() -> None:
    asked = requirements_of(PROJECT)
    require_complete({extra: asked[extra] for extra in ("", *extras_of_the_service())}, packages("service.lock"))


def test_the_service_runs_what_is_on_the_bill() -> None:
    on_the_bill = {package.url: set(package.hashes) for package in packages("extras.lock")}
    assert all(set(package.hashes) <= on_the_bill[package.url] for package in packages("service.lock"))


def test_the_page_names_every_extra() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == set(PROJECT["optional-dependencies"])


def test_every_extra_has_an_example_of_what_lacks_it() -> None:
    assert set(PROJECT["optional-dependencies"]) == {*EXAMPLES, "shell"}


def test_whoever_names_the_services_extras_names_them_all() -> None:
    *most, last = extras_of_the_service()
    named = f"{', '.join(f'`{extra}`' for extra in most)} and `{last}`"
    for page in (PAGE, (DOCS / "deploy.md").read_text(encoding="utf-8")):
        assert named in " ".join(page.split())
    assert named.replace("`", "") in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
