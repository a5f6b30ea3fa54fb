"""What an analyst writes, or a key holds, cannot move the cursor of whoever reads it, nor add a line to the page."""

import ast
import csv
import io
import json
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import lapwing as lw
from lapwing.cli import answer_formats, console, main
from lapwing.cli.characters import in_json, visible
from lapwing.engines import FAILED, DuckDB
from tests.support.cli.command import INIT, Run, write_visits
from tests.support.effort import one_in, only

CLEAR = "\x1b[2J\x1b]0;owned\x07"
FORGED = "a\n2026-01-01 00:00   ana   failed   SELECT forged"
TURNED = "\u202egnp\u2066\u200b\u2028\x9b31m\U000e0041\r\t\x7f\ue000"
HOSTILE = (CLEAR, FORGED, TURNED)


def is_harmless(page: str) -> bool:
    """Tell whether only line ends move anything; that these are the page's own is for the caller to see."""
    return all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for c in set(page))


PLANES = [0, 1, 14]
"""Those with characters, one of which none is assigned, and one of which all are private."""


@pytest.mark.parametrize("plane", only(PLANES, range(17)))
def test_all_characters_of_these_classes_are_escapes_and_no_others(plane: int) -> None:
    for first in range(plane << 16, (plane + 1) << 16, 0x1000):
        characters = [chr(code) for code in range(first, first + 0x1000)]
        shown = [visible(character) for character in characters]
        for character, as_shown in zip(characters, shown, strict=True):
            escaped = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
            assert (as_shown != character) is escaped, ascii(character)
            assert as_shown.isascii() or not escaped
        assert visible("".join(shown)) == "".join(shown)
        document = in_json(json.dumps(characters, ensure_ascii=False))
        assert json.loads(document) == characters
        assert is_harmless(document)


def test_escapes_are_those_of_python() -> None:
    assert [visible(c) for c in "\x1b\n\u202e\ud800é±"] == ["\\x1b", "\\n", "\\u202e", "\\ud800", "é", "±"]
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"


@pytest.fixture
def asked(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of which hostile questions were asked, and all failed."""

    def failing(_self: DuckDB, _question: object, _digest: str) -> object:
        raise lw.EngineFault(FAILED)

    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", failing)
        for text in HOSTILE:
            status = run("query", f"SELECT COUNT(*) AS n FROM visits WHERE plan = '{text}'", "--epsilon", "0.1").status
            assert status == 6
    return visits


@pytest.mark.long
@pytest.mark.parametrize("command", one_in(3, [("data", "faults"), ("budget",), ("ledger", "verify")]))
@pytest.mark.parametrize("form", ["table", "json"])
def test_what_was_asked_cannot_paint_over_the_curators_page(
    command: tuple[str, ...], form: str, asked: Path, run: Run
) -> None:
    options = () if command[0] == "ledger" else ("--format", form)
    said = run(*command, *options)
    assert said.status == 0, asked
    assert is_harmless(said.out)
    assert is_harmless(said.err)
    if form == "table" and options:
        assert "\\x1b[2J" in said.out
        assert not any(line.startswith("2026-01-01") for line in said.out.splitlines()), "a line that nobody wrote"
    elif options:
        questions = json.dumps(json.loads(said.out), ensure_ascii=False)
        assert all(json.dumps(text, ensure_ascii=False)[1:-1] in questions for text in HOSTILE), "programs get it whole"


@pytest.mark.long
def test_twin_a_page_of_the_text_as_it_is(asked: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "visible", lambda text: text)
    said = run("data", "faults")
    assert not is_harmless(said.out), asked


@pytest.fixture
def keyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set whose public keys are hostile texts."""
    monkeypatch.chdir(tmp_path)
    path = write_visits(tmp_path)
    rows = pyarrow.parquet.read_table(path)
    plans = pa.array([HOSTILE[i % 3] for i in range(len(rows))])
    pyarrow.parquet.write_table(rows.set_column(1, "plan", plans), path)
    assert main([part for part in INIT if part not in ("--values", "plan=a,b")]) == 0
    catalog = Path("lapwing.toml").read_text(encoding="utf-8")
    listed = ", ".join(
        json.dumps(text).replace("\\udb40\\udc41", "\\U000E0041").replace("\x7f", "\\u007f") for text in HOSTILE
    )
    Path("lapwing.toml").write_text(
        catalog.replace('plan = { type = "string" }', f'plan = {{ type = "string", values = [{listed}] }}'), "utf-8"
    )
    return tmp_path


GROUPED = 'SELECT plan AS "p\x1b[1m", COUNT(*) AS n FROM visits GROUP BY plan ORDER BY plan'


@pytest.mark.long
def test_keys_are_seen_on_a_page_and_exact_for_programs(keyed: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    page = run("query", GROUPED, "--epsilon", "1", "--format", "table")
    assert (page.status, is_harmless(page.out), is_harmless(page.err)) == (0, True, True), keyed
    assert "\\x1b[2J" in page.out
    assert is_harmless(run("explain", GROUPED, "--epsilon", "1").out)
    names = ["p\x1b[1m", "n", "n_low", "n_high"]
    piped = list(csv.reader(io.StringIO(run("query", GROUPED, "--epsilon", "1", "--format", "csv").out, newline="")))
    assert (piped[0], sorted(row[0] for row in piped[1:])) == (names, sorted(HOSTILE))
    document = run("query", GROUPED, "--epsilon", "1", "--format", "json").out
    assert is_harmless(document)
    assert sorted(row[names[0]] for row in json.loads(document)["rows"]) == sorted(HOSTILE)
    run("query", GROUPED, "--epsilon", "1", "-o", "answer.arrow")
    assert sorted(pa.ipc.open_stream(Path("answer.arrow").read_bytes()).read_all()[0].to_pylist()) == sorted(HOSTILE)
    monkeypatch.setattr("lapwing.cli.asking.sys.stdout.isatty", lambda: True)
    assert is_harmless(run("query", GROUPED, "--epsilon", "1", "--format", "csv").out), "a person reads it here"


def test_a_refusal_points_at_what_is_seen(visits: Path, run: Run) -> None:
    refused = run("query", "SELECT COUNT(*) AS n FROM visits WHERE plan = '\x1b[2J' AND nothing = 1", "--epsilon", "1")
    assert (refused.status, is_harmless(refused.err)) == (3, True), visits
    lines = refused.err.splitlines()
    assert lines[-2][lines[-1].index("^") :].startswith("nothing")
    wrong = run("query", 'SELECT "a\nlapwing: all is well\x1b[2J" FROM visits', "--epsilon", "1")
    assert is_harmless(wrong.err)
    assert not any("all is well" in line and line.startswith("lapwing: all") for line in wrong.err.splitlines())


@pytest.mark.long
def test_pages_are_made_of_text_that_is_seen() -> None:
    """Rich's own Text is made of constants only, outside the one function; the demo shows its own questions."""
    folder = Path(answer_formats.__file__).parent
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Text"]
        given = [ast.unparse(node) for node in made if node.args]
        allowed = {"console.py": ["Text(visible(content), style)", "Text(str(cell))"]}
        assert given == allowed.get(path.name, []), path.name
