"""The project of the page on dbt: a real `dbt build`, in an environment of its own, charges once and is free again."""

import sys
from pathlib import Path

import pytest

import lapwing as lw
from tests.support.distribution.built import build, clone, run
from tests.support.docs.pages import DOCS, blocks, prepare

pytestmark = pytest.mark.long
PAGE = DOCS / "how-to" / "dbt.md"
FILES = ("models/by_plan.py", "models/schema.yml", "models/share.sql", "dbt_project.yml", "profiles.yml")
SHARES = "SELECT count(*), round(sum(share), 6) FROM share"
READ = f"import duckdb; print(duckdb.connect('released.duckdb').execute({SHARES!r}).fetchall())"
QUIET = {"DO_NOT_TRACK": "1"}


def environment(folder: Path) -> Path:
    """Return the programs of an environment with dbt, as the page installs it, and this Lapwing."""
    (folder / "clone").mkdir()
    clone(folder / "clone")
    (wheel,) = build(folder / "clone").glob("*.whl")
    (command,) = (block.text for block in blocks(PAGE) if block.language == "sh")
    wanted = [word.strip("'") for word in command.split() if "dbt" in word]
    run(folder, sys.executable, "-m", "venv", "environment")
    run(folder, "environment/bin/pip", "--quiet", "install", str(wheel), *wanted)
    return folder / "environment" / "bin"


def test_the_page_builds_for_one_charge(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    prepare(PAGE, project)
    texts = [block.text for block in blocks(PAGE) if block.language in ("py", "yaml", "jinja")]
    for name, text in zip(FILES, texts, strict=True):
        (project / name).write_text(text)
    programs = environment(tmp_path)
    for _ in range(2):
        shown = run(project, str(programs / "dbt"), "build", "--profiles-dir", ".", environment=QUIET)
        assert "PASS=4 WARN=0 ERROR=0" in shown
    assert run(project, str(programs / "python"), "-c", READ).strip() == "[(6, 1.0)]"
    with lw.connect(project / "lapwing.toml") as session:
        (charge,) = session.budget().history
        assert charge.loss == session.price(0.5)
