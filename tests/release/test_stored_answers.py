"""Ledgers and answers of earlier versions: they open, and every question that was answered is answered again for free.

`fixtures/stored_answers.tar.xz` was written by the version of commit 2b9ec42: eight data sets with their catalogs and
ledgers, one question for every structurally distinct plan among thousands of random ones, and all that the golden files
and the survey ask. What identifies a stored answer is the printed plan: so no renaming in the code may enter it, and no
other spelling of a plan may replace it.
"""

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing import session as session_module
from lapwing.answer import interval_ends, presentation
from lapwing.answer.notes import AS_READ, code_of
from lapwing.catalog.dictionary import Dictionary, Texts
from lapwing.catalog.toml import load, write
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.ledger import curating
from lapwing.query.aggregates import order_statistics, possible_keys
from lapwing.query.bind.bind import bind
from lapwing.query.derivation import rationals
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation, walk
from lapwing.query.measures.measures import Count, argument_of
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Question
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import ProtectedRows
from lapwing.release import earlier_meanings
from tests.support.effort import one_in, only
from tests.support.release.small import GDP, opened, row

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "stored_answers.tar.xz"
WHOLE = ("golden", "survey", "visits_gdp", "shop_by_unit")
OTHERS = ("visits_zcdp", "visits_pure", "shop_by_key", "shop_replaced")
DATA_SETS = [
    *((name, 5) for name in WHOLE),
    *((name, 12) for name in OTHERS),
    *(pytest.param(name, 1, marks=pytest.mark.long) for name in [*WHOLE, *OTHERS]),
]
"""Of the others the short run asks fewer questions: they differ in the budget, or in how tables are linked."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    return folder


def questions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def differing(folder: Path, step: int = 1) -> Iterator[str]:
    """Ask every question again, or one in so many, and yield what is not as it was."""
    head = json.loads((folder / "head.json").read_text())
    changed = CHANGED[folder.name]
    with lw.connect(folder / "lapwing.toml") as session:
        for place, entry in list(enumerate(questions(folder)))[::step]:
            if place in changed:  # it would be asked anew
                continue
            price: Any = {name: Fraction(value) for name, value in entry["price"].items()}
            answer = session.sql(entry["text"], entry["values"], **price)
            if not answer.stored:
                yield f"not free: {entry['text']}"
                continue
            ends = {name: (low.tolist(), high.tolist()) for name, (low, high) in answer.interval().items()}
            was = entry["rows"], entry["intervals"]  # notes are texts, which anybody may improve
            if (digest(repr(answer.rows())), digest(repr(ends))) != was:
                yield f"another answer: {entry['text']} {answer.rows()[:2]} {entry['begins']}"
        newest = list(session.ledger_entries())[-1]
    if (newest.sequence, newest.hash) != (head["sequence"], head["hash"]):
        yield "the ledger has grown"


CHANGED: dict[str, dict[int, list[str]]] = {
    name: {int(place): reasons for place, reasons in places.items()}
    for name, places in json.loads(ARCHIVE.with_name("stored_answers_changed.json").read_text()).items()
}
"""Questions that had another meaning, and have another text now, each with what looks at a number as it is read."""


@pytest.fixture(autouse=True)
def shown_as_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of floats were shown as decimals then, and ends as doubles: the numbers are the same."""
    for module in (rationals, order_statistics):
        monkeypatch.setattr(module, "shape_in_steps", lambda step: "integer" if step.denominator == 1 else "decimal")
    monkeypatch.setattr(presentation, "EXACT", 0)


@pytest.fixture(autouse=True)
def margins_apart_as_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of means and formulas had a margin for each number then, and were wider: the numbers are the same."""
    monkeypatch.setattr(interval_ends, "joint_margins", lambda *_: None)
    monkeypatch.setattr(interval_ends, "joint_numbers", lambda *_: None)


@pytest.fixture(autouse=True)
def all_keys_as_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that can have no rows were cells then. Without them it is another question, which is asked anew."""
    monkeypatch.setattr(possible_keys, "possible_keys", lambda sets, *_: (sets, (), None))


@pytest.mark.parametrize(("name", "step"), one_in(4, DATA_SETS, many=True))
def test_what_was_answered_stays_free_and_the_same(name: str, step: int, archive: Path) -> None:
    assert len(questions(archive / name)) > 30
    assert list(differing(archive / name, step)) == []


def test_texts_of_the_data_dictionary_leave_all_of_it_free(archive: Path, tmp_path: Path) -> None:
    """Every table, column and listed value of an old catalog gets a text, and its ledger knows all answers."""
    folder = tmp_path / "visits_gdp"
    shutil.copytree(archive / folder.name, folder)
    catalog = load(folder / "lapwing.toml")
    entries: dict[tuple[str, ...], Texts] = {}
    columns = {table.name: table.columns for table in catalog.tables}
    columns |= {table.name: table.columns for table in catalog.public_tables}
    for name, listed in columns.items():
        entries[(name,)] = Texts(title=f"Title of {name}", owner="Statistics")
        for column in listed:
            labels = tuple((value, f"label of {value}") for value in column.values or ())
            entries[(name, column.name)] = Texts(description="Its meaning.", unit="kg", labels=labels)
    described = replace(catalog, dictionary=Dictionary.of(entries, Texts(title="All of it")))
    write(described, folder / "lapwing.toml", overwrite=True)
    assert load(folder / "lapwing.toml").dictionary == described.dictionary
    assert any(texts.labels for texts in entries.values())
    assert load(folder / "lapwing.toml").digest == catalog.digest
    assert list(differing(folder, 20)) == []


@pytest.mark.parametrize("name", only((3,), [*WHOLE, *OTHERS]))
def test_questions_whose_meaning_changed_have_another_text(name: str, archive: Path) -> None:
    """One by one: what is not listed above looks at bounded values alone, and what is listed does not."""
    assert reading(archive / name) == CHANGED[name]


def reading(folder: Path) -> dict[int, list[str]]:
    """Return which questions look at what was read, and where they do."""
    catalog = load(folder / "lapwing.toml")
    facts, found = PublicData(catalog), dict[int, list[str]]()
    for place, entry in enumerate(questions(folder)):
        plan = bind(entry["text"], catalog, facts, entry["values"] or ())
        asked = [part for one in plans_asked(plan) for part in (one.question, *(s.question for s in one.searches))]
        looks = {reason for question in asked for reason in reasons(question)}
        assert bool(looks) is any(" as read" in str(question) for question in asked), entry["text"]
        if looks:
            found[place] = sorted(looks)
    facts.close()
    return found


def reasons(question: Question) -> Iterator[str]:
    """Yield what of a question looks at a bounded number as it is read."""
    if any(looks(key.expression) for key in question.keys):
        yield "a key"
    for argument in [one for measure in question.measures if (one := argument_of(measure)) is not None]:
        if "inside(" in str(argument):
            yield "a sum of what jumps between steps"
        if looks(argument) and not (isinstance(argument, Operation) and str(argument).count("inside(")):
            yield "a condition in an aggregate, or a count of values"
    pending = [question.selection]
    while pending:
        selection = pending.pop()
        pending += selection.relation.sources
        if looks(selection.where):
            yield "a condition"
        if any(looks(part) for values in selection.relation.computed for part in values):
            yield selection.relation.construct
        if isinstance(selection.relation, PublicJoin) and compares_public_floats(selection.relation):
            yield "a float of a public table"


def compares_public_floats(join: PublicJoin) -> bool:
    return " as read" in f"{join.other} {[str(public) for _, public in join.on]}"


def looks(expression: Expression | None) -> bool:
    return any(isinstance(node, ColumnReference) and node.cleaned is not None for node in walk(expression))


FEWER_ROWS = {"golden": {135}, "shop_by_unit": {46}}
"""Questions with a closer bound on the rows of a unit now: their old answers have other keys for that reason, too."""


def told_of(folder: Path, step: int = 1) -> tuple[set[int], set[int]]:
    """Return questions of which a note says that an earlier version answered them otherwise, and those that it should.

    Of questions whose meaning is as it was one in so many is asked; those that are refused now have no notes.
    """
    told, changed = set[int](), set[int]()
    with lw.connect(folder / "lapwing.toml") as session:
        for place, entry in enumerate(questions(folder)):
            if place % step and place not in CHANGED[folder.name]:
                continue
            try:
                price: Any = {name: Fraction(value) for name, value in entry["price"].items()}
                notes = session.explain(entry["text"], entry["values"], **price).notes
            except lw.QueryRefused:
                continue
            told |= {place} if AS_READ in map(code_of, notes) else set()
            changed |= {place} & CHANGED[folder.name].keys() - FEWER_ROWS.get(folder.name, set())
    return told, changed


@pytest.mark.parametrize(("name", "step"), only([0], DATA_SETS, many=True))
def test_a_note_names_what_had_another_meaning(name: str, step: int, archive: Path) -> None:
    """Of every answer that is in the ledger, and of no other question."""
    told, changed = told_of(archive / name, 4 * step)
    assert told == changed
    assert len(changed) > 10


def test_looking_for_old_answers_under_new_plans_is_found(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: words are bound with the meaning that they have now, which nobody bought then."""
    monkeypatch.setattr(earlier_meanings, "bind", lambda *asked, reads, **further: bind(*asked, **further))
    told, changed = told_of(archive / "survey", 100)
    assert not told
    assert changed


def test_a_note_names_no_answer_to_other_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said where nobody bought anything, nor of other words; of the same words it is, to whoever asks."""
    monkeypatch.setattr(curating, "MEANING", 1)  # as if an earlier version had accepted the data
    text = "SELECT COUNT(*) AS n FROM visits WHERE cost >= 1.2"
    with opened(tmp_path, [row(1)], budget=GDP) as session:
        assert AS_READ not in map(code_of, session.sql(text, epsilon=1).notes)
        with pytest.MonkeyPatch.context() as before:  # bought with the meaning of earlier versions
            before.setattr(session_module, "bind", partial(bind, reads=False))
            session.sql(f"{text} AND age > 0", epsilon=1)
        other = session.acting_for("other")
        assert AS_READ not in map(code_of, other.sql(text, epsilon=1).notes)
        assert AS_READ in map(code_of, other.sql(f"{text} AND age > 0", epsilon=1).notes)


@pytest.mark.parametrize(
    ("accepted_by", "wanted"),
    [(curating.MEANING, []), (2, [True, True, True]), (1, [False, True, False, True, True])],
)
def test_words_are_bound_again_only_where_they_may_have_meant_something_else(
    accepted_by: int, wanted: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the ledger says of the data's version, in this session and when it is opened again.

    Once for each earlier meaning, and with today's where one of them has an answer.
    """
    meant = list[bool]()

    def noted(*asked: Any, **further: Any) -> Any:
        meant.append(further["reads"])
        return bind(*asked, **further)

    monkeypatch.setattr(curating, "MEANING", accepted_by)
    monkeypatch.setattr(earlier_meanings, "bind", noted)
    for price in (1, 2):
        with opened(tmp_path, [row(1)], budget=GDP) as session:
            session.sql("SELECT COUNT(*) AS n FROM visits WHERE cost >= 1.2", epsilon=price)
    assert meant == wanted


@pytest.mark.parametrize("node", [Count, ProtectedRows])
def test_a_plan_that_is_printed_otherwise_is_noticed(node: Any, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: the name of a class in the printed plan, as a renaming in the code would leave it there."""
    printed: Callable[[object], str] = node.__str__
    monkeypatch.setattr(node, "__str__", lambda self: f"{type(self).__name__} {printed(self)}")
    assert next(differing(archive / "visits_gdp")).startswith("not free")
