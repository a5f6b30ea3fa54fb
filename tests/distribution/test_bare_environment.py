"""The wheel in an environment that has nothing else: it answers, serves, has types, and says which extra is missing."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.support.distribution.built import build, clean, clone, environment_with, once, run
from tests.support.docs.pages import ROOT

pytestmark = pytest.mark.long
EXTRAS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
COUNT: Final = "SELECT COUNT(*) AS n FROM rand_hie"
PROTECT: Final = ("--privacy-unit", "person_id", "--epsilon", "1", "--output", "new.toml")
POSTGRES: Final = "postgres://lapwing@localhost/lapwing?ledger=visits"
EXAMPLES: Final = {
    "plots": ["lab", "coin", "--short", "--plot", "chart.png"],
    "server": ["serve", "catalog.toml"],
    "joins": ["python", "from lapwing.mechanisms import packing; packing.require_solver()"],
    "xlsx": ["query", COUNT, "--epsilon", "0.1", "--catalog", "catalog.toml", "--output", "n.xlsx"],
    "postgres": ["budget", "--catalog", "in_postgres.toml"],
    "adbc": ["init", "sqlite:clinic.db#visits", *PROTECT],
    "lake": ["init", "delta:visits", *PROTECT],
    "spark": ["query", COUNT, "--epsilon", "0.1", "--catalog", "on_spark.toml"],
    "spark-connect": ["query", COUNT, "--epsilon", "0.1", "--catalog", "on_connect.toml"],
    "deep": ["python", "from lapwing.learn import deep; deep.dense"],
    "synthesis": ["synthesize", "sex", "plan", "--epsilon", "0.1", "--catalog", "catalog.toml", "--output", "rows.csv"],
    "sqlalchemy": ["python", "import lapwing.dbapi.sqlalchemy"],
    "ibis": ["python", "import lapwing as lw; lw.connect('catalog.toml').table('rand_hie')"],
}
"""What needs an extra: a command, or Python after `python`. The extra `shell` is a comfort, and never missed."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment's programs."""

    def make(folder: Path) -> None:
        (folder / "clone").mkdir()
        clone(folder / "clone")
        (wheel,) = build(folder / "clone").glob("*.whl")
        environment_with(folder, "install", str(wheel))

    return once(tmp_path_factory, "bare", make) / "environment" / "bin"


def said(program: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(program / "lapwing"), *arguments]
    if arguments[0] == "python":
        command = [str(program / "python"), "-c", arguments[1]]
    return subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True, timeout=600)


def test_it_has_what_the_project_always_needs_and_nothing_else(bare: Path, tmp_path: Path) -> None:
    listed = json.loads(run(tmp_path, str(bare / "python"), "-m", "pip", "list", "--format", "json"))
    names = {one["name"].lower().replace("_", "-") for one in listed}
    assert "lapwing-dp" in names
    for extra, texts in EXTRAS.items():
        brought = {Requirement(text).name for text in texts} - {"packaging"}
        assert not brought & names, extra
    run(tmp_path, str(bare / "python"), "-m", "pip", "check")


def test_it_answers_questions(bare: Path, tmp_path: Path) -> None:
    """The demo: data, catalog, engine, ledger and noise out of the wheel alone."""
    shown = said(bare, tmp_path, "demo", "--folder", "demo")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "How many people had each insurance plan?" in shown.stdout
    ask = ["query", COUNT, "--epsilon", "0.1", "--format", "json"]
    answered = said(bare, tmp_path / "demo", *ask)
    assert abs(json.loads(answered.stdout)["rows"][0]["n"] - 20_190) < 2_000
    assert said(bare, tmp_path, "python", "import lapwing; print(lapwing.__file__)").stdout.startswith(str(bare.parent))


IMPORT_ALL: Final = """
import importlib, json, pkgutil, lapwing
missing = {}
for module in pkgutil.walk_packages(lapwing.__path__, "lapwing.", onerror=lambda _: None):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing[module.name] = error.name
        except lapwing.LapwingError as error:
            missing[module.name] = str(error)
print(json.dumps(missing))
"""


def test_each_module_lacks_nothing_but_extras(bare: Path, tmp_path: Path) -> None:
    """A module whose requirement is in no list of the project would fail for everybody but us."""
    missing = json.loads(said(bare, tmp_path, "python", IMPORT_ALL).stdout)
    brought = {Requirement(text).name.replace("-", "_") for texts in EXTRAS.values() for text in texts}
    brought |= {"argon2", "h11", "starlette", "vl_convert", "prompt_toolkit", "IPython", "ibis", "adbc_driver_manager"}
    assert {
        module: lacks for module, lacks in missing.items() if lacks not in brought and "lapwing-dp[" not in lacks
    } == {}
    assert len(missing) > 20


@pytest.mark.parametrize("extra", sorted(EXAMPLES))
def test_what_lacks_an_extra_names_it(bare: Path, tmp_path: Path, extra: str) -> None:
    said(bare, tmp_path, "demo", "--folder", "demo")
    for file in (tmp_path / "demo").iterdir():
        file.rename(tmp_path / file.name)
    catalog = (tmp_path / "lapwing.toml").read_text()
    (tmp_path / "catalog.toml").write_text(catalog)
    (tmp_path / "in_postgres.toml").write_text(catalog.replace("sqlite:rand_hie.lapwing.db", POSTGRES))
    on_spark = catalog.replace("rand_hie.lapwing.db", "on_spark.db").replace('engine = "duckdb"', 'engine = "spark"')
    (tmp_path / "on_spark.toml").write_text(on_spark)
    served = on_spark.replace('engine = "spark"', 'engine = "spark"\ncluster = "sc://localhost:15002"')
    (tmp_path / "on_connect.toml").write_text(served)
    ended = said(bare, tmp_path, *EXAMPLES[extra])
    assert ended.returncode != 0
    assert f"pip install 'lapwing-dp[{extra}]'" in " ".join(ended.stderr.split()).replace('"', "'")
    assert EXAMPLES[extra][0] == "python" or "Traceback" not in ended.stderr


def test_type_checkers_see_its_types(bare: Path, tmp_path: Path) -> None:
    """By `py.typed` in the installed package: a wrong argument is found in somebody else's program."""
    program = tmp_path / "program.py"
    lines = (
        "import lapwing as lw",
        "",
        'session = lw.connect("lapwing.toml")',
        "reveal_type(session.sql)",
        "lw.connect(3.5)",
    )
    program.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--config-file=", "program.py"]
    command += ["--python-executable", str(bare / "python")]
    told = subprocess.run(command, cwd=tmp_path, env=clean(), capture_output=True, text=True).stdout
    assert 'No overload variant of "connect" matches argument type "float"' in told
    assert re.search(r"program\.py:4: note: Revealed type .*Answer", told)
