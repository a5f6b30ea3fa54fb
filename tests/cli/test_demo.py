"""`lapwing demo`: real answers, the truth only where it is marked, and everything in a fresh folder."""

import ast
import re
from pathlib import Path

import pytest

import lapwing
import lapwing as lw
from lapwing.cli import demo
from lapwing.cli.demo.scenes import SCENES
from lapwing.cli.demo.truth import truth
from tests.support.cli.command import Run

SOURCES = Path(lapwing.__file__).parent


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture
def shown(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the demo prints, the first time in a folder of its own; what to type does not depend on where we are."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(demo, "executable", lambda _folder: "lapwing")
    if not (place / "shown").exists():
        outcome = run("demo", "--folder", "lesson")
        assert (outcome.status, outcome.err) == (0, "")
        (place / "shown").write_text(outcome.out)
    return (place / "shown").read_text()


def test_it_teaches(shown: str) -> None:
    for words in (
        "±",
        "cost",
        "budget",
        "█",
        "truth –",
        "teaching only",
        "never do this with real data",
        "free: it was",
    ):
        assert words in shown, words
    assert shown.count("never do this with real data") == 1
    assert shown.count("teaching only") > len(re.findall("(inside|outside) the", shown))  # every truth is marked
    assert "exit status 3" in shown
    assert "exit status 4" in shown
    assert "Use COUNT(DISTINCT person_id)" in shown
    assert "would still fit" in shown


def test_it_fits_the_page(shown: str) -> None:
    assert max(len(line) for line in shown.splitlines() if not line.startswith("  lapwing ")) <= 100
    assert "\x1b" not in shown


def test_most_truths_are_inside(shown: str) -> None:
    """24 intervals at 95 %, six of them shown twice: a third or fewer right has a probability below 1e-12."""
    scores = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) of (\d+) truths are inside", shown)]
    assert sum(total for _, total in scores) >= 24
    assert 3 * sum(inside for inside, _ in scores) > sum(total for _, total in scores)


def test_the_folder_holds_everything_and_its_ledger_is_what_was_shown(shown: str, place: Path, run: Run) -> None:
    assert {path.name for path in place.iterdir()} == {"lesson", "shown"}
    assert "hospital_admissions" in (place / "lesson" / "README.md").read_text()
    with lw.connect("lesson/lapwing.toml") as session:
        view = session.budget()
    assert 0.4 < view.share_spent < 0.5
    assert len(view.history) == 5
    assert run("ledger", "verify", "--catalog", "lesson/lapwing.toml").status == 0


def test_the_same_question_again_shows_the_same_numbers(shown: str) -> None:
    first, again = (part.split("── ")[0] for part in re.split(r"── [16]  .*\n", shown)[1:3])
    rows = [line.split() for line in first.splitlines() if "±35" in line]
    assert len(rows) == 6
    assert sorted(rows) == sorted(line.split() for line in again.splitlines() if "±35" in line)


@pytest.mark.long
def test_a_second_run_takes_a_new_folder(shown: str, place: Path, run: Run) -> None:
    before = (place / "lesson" / "rand_hie.lapwing.db").read_bytes()
    assert run("demo", "--folder", "lesson").status == 0
    assert (place / "lesson-2" / "lapwing.toml").exists()
    assert (place / "lesson" / "rand_hie.lapwing.db").read_bytes() == before


def test_a_folder_that_cannot_be_made(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").touch()
    assert run("demo", "--folder", str(tmp_path / "file" / "demo")).status == 2


def test_what_to_type_next_names_this_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "lapwing"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert demo.executable(tmp_path / "demo") == "../bin/lapwing"
    monkeypatch.setenv("PATH", str(program.parent))
    assert demo.executable(tmp_path / "demo") == "lapwing"
    monkeypatch.setattr("sys.argv", [str(SOURCES / "__main__.py")])
    assert demo.executable(tmp_path / "demo").endswith("-m lapwing")


def test_every_refused_scene_is_the_kind_it_says() -> None:
    titles = [scene.title for scene in SCENES]
    assert [title for title in titles if title.endswith("refused")] == titles[-2:]
    assert all((scene.epsilon is None) != (scene.error is None) for scene in SCENES)


def test_the_truth_is_the_truth() -> None:
    assert truth("SELECT COUNT(*) AS n, COUNT(DISTINCT person_id) AS people FROM rand_hie") == [
        {"n": 20_190, "people": 5_912}
    ]


def importers_of_the_truth(folder: Path) -> set[str]:
    """Return the modules below a folder that name the truth in an import or a string."""
    found = set()
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "truth" in text else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            source = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            said = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if any(name.split(".")[-1] == "truth" for name in (*names, source)) or "demo.truth" in said:
                found.add(path.relative_to(folder).as_posix())
    return found


@pytest.mark.long
def test_only_the_demo_can_reach_the_truth() -> None:
    assert importers_of_the_truth(SOURCES) == {"cli/demo/stage.py"}


@pytest.mark.parametrize(
    "planted",
    [
        "from lapwing.cli.demo.truth import truth",
        "from lapwing.cli.demo import truth as t",
        "import lapwing.cli.demo.truth",
        "from importlib import import_module\nimport_module('lapwing.cli.demo.truth')",
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, planted: str) -> None:
    (tmp_path / "release.py").write_text(planted)
    assert importers_of_the_truth(tmp_path) == {"release.py"}
