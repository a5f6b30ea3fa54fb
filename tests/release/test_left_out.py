"""What an answer leaves out by declaration is said beside it, by codes, and not where nothing can be."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.answer.notes import LONG_TEXTS, ROWS_OF_UNIT, UNLISTED_KEYS
from lapwing.documents.answer_document import answer_document, notes_in
from lapwing.documents.preview_document import preview_document, preview_of
from lapwing.release import answering, rare_notes
from lapwing.session import Session
from tests.support.effort import one_in

COLUMNS = """
id = { type = "integer" }
size = { type = "string", values = ["1-5", "6-10"] }
kind = { type = "string", values = ["a", "b"], other = true }
sure = { type = "string", values = ["a", "b"], nullable = false }
smokes = { type = "boolean" }
fit = { type = "boolean", nullable = false }
age = { type = "integer", lower = 0, upper = 110 }
score = { type = "integer", lower = 0, upper = 9, nullable = false }
note = { type = "string" }
"""
CATALOG = """
[dataset]
name = "poll"
ledger = "sqlite:poll.db"
[budget]
epsilon = 1000
[tables.poll]
source = "poll.csv"
privacy_unit = "id"
max_rows_per_unit = 2
[tables.poll.columns]
"""
SAYS = {
    "SELECT size, COUNT(*) AS n FROM poll GROUP BY size": {UNLISTED_KEYS},
    "SELECT size, smokes, COUNT(*) AS n FROM poll GROUP BY ROLLUP(size, smokes)": {UNLISTED_KEYS},
    "SELECT sure, COUNT(*) AS n FROM poll GROUP BY sure": {UNLISTED_KEYS},
    "SELECT smokes, COUNT(*) AS n FROM poll GROUP BY smokes": {UNLISTED_KEYS},
    "SELECT UPPER(size) AS s, COUNT(*) AS n FROM poll GROUP BY s": {UNLISTED_KEYS},
    "SELECT FLOOR(age / 10) AS d, COUNT(*) AS n FROM poll GROUP BY d": {UNLISTED_KEYS},
    "SELECT COUNT(*) AS n FROM poll WHERE note <> 'NA'": {LONG_TEXTS},
    "SELECT COUNT(*) AS n FROM poll WHERE NOT note = 'NA'": {LONG_TEXTS},
    "SELECT COUNT(note) AS n FROM poll": {LONG_TEXTS},
    "SELECT COUNT(*) AS n FROM poll": set(),
    "SELECT kind, COUNT(*) AS n FROM poll GROUP BY kind": set(),
    "SELECT fit, COUNT(*) AS n FROM poll GROUP BY fit": set(),
    "SELECT size, COUNT(*) AS n FROM poll WHERE size IN ('1-5', '6-10') GROUP BY size": set(),
    "SELECT score, COUNT(*) AS n FROM poll GROUP BY score": {UNLISTED_KEYS},  # those beyond the bounds
    "SELECT score, COUNT(*) AS n FROM poll WHERE score BETWEEN 3 AND 5 GROUP BY score": set(),
    "SELECT age, COUNT(*) AS n FROM poll GROUP BY age": {UNLISTED_KEYS},
    "SELECT age, COUNT(*) AS n FROM poll WHERE age IN (18, 65) GROUP BY age": set(),
    "SELECT score % 2 AS odd, COUNT(*) AS n FROM poll WHERE score % 2 = 1 GROUP BY odd": set(),
    "SELECT COUNT(*) AS n FROM poll WHERE note = 'NA' AND age > 3": set(),
    "SELECT CASE WHEN age >= 18 THEN 'adult' ELSE 'child' END AS g, COUNT(*) AS n FROM poll GROUP BY g": set(),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("poll")
    (folder / "poll.csv").write_text(
        "id,size,kind,sure,smokes,fit,age,score,note\n" + "1,06-Okt,c,a,true,true,5,5,x\n" * 3
    )
    (folder / "lapwing.toml").write_text(CATALOG + COLUMNS)
    with lw.connect(folder / "lapwing.toml") as opened:
        yield opened


def codes(notes: tuple[str, ...]) -> list[str]:
    return [code for note in notes if (code := getattr(note, "code", "")) in (UNLISTED_KEYS, LONG_TEXTS)]


@pytest.mark.parametrize("sql", one_in(20, SAYS))
def test_what_is_left_out_is_said_before_and_after(sql: str, session: Session) -> None:
    preview, answer = session.explain(sql, epsilon=1), session.sql(sql, epsilon=1)
    assert set(codes(answer.notes)) == SAYS[sql]
    assert codes(preview.notes) == codes(answer.notes)
    assert ROWS_OF_UNIT in [getattr(note, "code", "") for note in answer.notes]
    assert len(codes(answer.notes)) <= 2, "once a reason"


@pytest.mark.long
def test_rows_without_a_unit_are_said_to_be_left_out(session: Session, tmp_path: Path) -> None:
    """Unless the catalog promises that there are none; a row that is its own unit has one."""

    def said(catalog: str) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        lines = ["id,size,kind,sure,smokes,fit,age,score,note", *[",1-5,a,a,true,true,5,5,x"] * 2]
        (folder / "poll.csv").write_text("\n".join(lines) + "\n")
        (folder / "lapwing.toml").write_text(catalog)
        with lw.connect(folder / "lapwing.toml") as opened:
            answer = opened.sql("SELECT COUNT(*) AS n FROM poll", epsilon=900)
            assert answer.rows()[0]["n"] == (2 if 'unit = "row"' in catalog else 0)
            return [note for note in answer.notes if getattr(note, "code", "") == ROWS_OF_UNIT]

    whole, bounds = CATALOG + COLUMNS, 'id = { type = "integer", lower = 1, upper = 9'
    assert ["rows without id" in note for note in said(whole)] == [True]
    promised = whole.replace('id = { type = "integer"', bounds + ", nullable = false")
    assert ["rows without" in note for note in said(promised)] == [False]
    assert said(whole.replace('unit = "id"', 'unit = "row"').replace("max_rows_per_unit = 2\n", "")) == []


def test_documents_keep_the_codes(session: Session) -> None:
    sql = "SELECT size, COUNT(*) AS n FROM poll WHERE note <> 'x' GROUP BY size"
    answer, preview = session.sql(sql, epsilon=1), session.explain(sql, epsilon=1)
    document = answer_document(answer, lw.answer.CONFIDENCE)  # type: ignore[arg-type]
    assert codes(notes_in(document)) == codes(answer.notes) == [UNLISTED_KEYS, LONG_TEXTS]
    again = preview_of(preview_document(preview, "add_remove"))
    assert (again.notes, codes(again.notes)) == (preview.notes, codes(preview.notes))
    assert notes_in({"notes": ["of an older server"]}) == ("of an older server",)


def test_nothing_of_the_data_is_in_a_note(session: Session, tmp_path: Path) -> None:
    """Other data under the same catalog say the same."""
    (tmp_path / "poll.csv").write_text("id,size,kind,sure,smokes,fit,age,score,note\n1,1-5,a,a,true,true,5,5,x\n")
    (tmp_path / "lapwing.toml").write_text(CATALOG + COLUMNS)
    with lw.connect(tmp_path / "lapwing.toml") as other:
        for sql in SAYS:
            assert other.explain(sql, epsilon=1).notes == session.explain(sql, epsilon=1).notes


def test_a_twin_without_the_note_is_seen(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_in_no_group", lambda plan, columns: ())
    monkeypatch.setattr(rare_notes, "notes_on_long_texts", lambda plan, texts: ())
    assert any(set(codes(session.explain(sql, epsilon=1).notes)) != said for sql, said in SAYS.items())
