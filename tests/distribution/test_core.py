"""What needs no SQL runs on what `requirements/core.lock` pins, and on nothing else."""

import json
import re
import subprocess
import sys
from typing import Final

from tests.support.docs.pages import ROOT

ROOMS: Final = ("exact", "privacy", "mechanisms", "noise")
SCRIPT: Final = """
import importlib, json, pkgutil, sys, sysconfig
from importlib.abc import MetaPathFinder
from pathlib import Path

allowed, rooms = json.loads(sys.argv[1]), json.loads(sys.argv[2])
missed = {}


class Locked(MetaPathFinder):
    # Finds nothing: an import that is in no list fails here, as it does where it is not installed.
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in allowed or top in sys.stdlib_module_names:
            return None
        missed.setdefault(top, name)
        raise ModuleNotFoundError(f"No module named {top!r}", name=top)


sys.meta_path.insert(0, Locked())
import lapwing

count = 0
for room in rooms:
    module = importlib.import_module(f"lapwing.{room}")
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"lapwing.{room}."):
        importlib.import_module(found.name)
        count += 1
values = lapwing.noise.discrete_laplace(10, 5)
epsilon = lapwing.GaussianDP(1).to_epsilon(delta=1e-6)
loss = lapwing.mechanisms.RoundedGaussian(sigma=10).release(3)
print(json.dumps({"modules": count, "drawn": len(values), "epsilon": epsilon, "missed": missed}))
"""


def pinned(lock: str) -> dict[str, str]:
    """Return the versions that a lock pins, by name."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))


def ran(*allowed: str) -> subprocess.CompletedProcess[str]:
    arguments = [json.dumps(allowed), json.dumps(ROOMS)]
    return subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=False)


IMPORTED: Final = (
    "lapwing",
    "numpy",
    "flint",
    "cryptography",
    "cffi",
    "_cffi_backend",
    "pycparser",
    "typing_extensions",
)


def test_four_rooms_run_on_the_core() -> None:
    done = ran(*IMPORTED)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["modules"] > 100
    assert (found["drawn"], round(found["epsilon"], 2)) == (5, 4.89)
    assert not set(found["missed"]) & {"duckdb", "pyarrow", "sqlglot", "pydantic", "typer", "rich"}


def test_twin_a_package_that_is_left_out_is_missed() -> None:
    done = ran(*(name for name in IMPORTED if name != "flint"))
    assert done.returncode != 0
    assert "No module named 'flint'" in done.stderr


def test_the_lock_has_these_packages_at_the_versions_of_the_others() -> None:
    core, run = pinned("core.lock"), pinned("run.lock")
    assert {"numpy", "python-flint", "cryptography", "typing-extensions"} <= core.keys()
    assert core.items() <= run.items()
    assert len(core) <= 6
