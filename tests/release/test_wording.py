"""The history in the words of who asked: text, parameters and label as typed, which the key of a charge knows not."""

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import pytest

import lapwing as lw
from lapwing.ledger.entries import Charge
from lapwing.ledger.wording import LONGEST_LABEL, Wording
from lapwing.release import stored
from lapwing.session import Session
from tests.support.effort import one_in
from tests.support.release.small import GDP, opened, row

PEOPLE = [row(n, plan="ab"[n % 2], age=n % 3, code=n % 60) for n in range(60)]
TEXT = "SELECT plan,\n  COUNT(*) AS n  -- of each\nFROM Visits GROUP BY plan"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, PEOPLE, budget=GDP) as found:
        yield found


def last(session: Session) -> Wording | None:
    return session.history()[-1].wording


@pytest.mark.parametrize(
    ("text", "given", "kept", "line"),
    one_in(
        3,
        [
            (TEXT, (), (), "SELECT plan, COUNT(*) AS n -- of each FROM Visits GROUP BY plan"),
            (
                "SELECT COUNT(*) FROM visits WHERE age > ? AND day < ? AND 'b' <> ?",
                [1, date(2026, 5, 1), "a"],
                (1, "2026-05-01", "a"),
                "SELECT COUNT(*) FROM visits WHERE age > ? AND day < ? AND 'b' <> ? "
                "with ?1 = 1, ?2 = '2026-05-01', ?3 = 'a'",
            ),
            (
                "SELECT COUNT(*) FROM visits WHERE cost > $least",
                {"least": Decimal("1.50")},
                {"least": "1.50"},
                "SELECT COUNT(*) FROM visits WHERE cost > $least with $least = '1.50'",
            ),
        ],
        many=True,
    ),
    ids=["text", "by order", "by name"],
)
def test_the_text_as_typed_and_its_parameters(session: Session, text: str, given: Any, kept: Any, line: str) -> None:
    session.sql(text, given, epsilon=0.1)
    assert last(session) == Wording(text=text, parameters=kept)
    assert session.history()[-1].asked == line
    session.sql(text, given, epsilon=0.2, label="Annual report, table 2")  # sharper: what was lacking is charged
    assert last(session) == Wording(text=text, parameters=kept, label="Annual report, table 2")
    assert session.history()[-1].asked == f"Annual report, table 2: {line}"


def test_other_words_for_the_same_question_are_free(session: Session) -> None:
    paid = session.sql(TEXT, epsilon=0.1, label="first")
    again = session.sql("select PLAN, count(*) as n from visits group by 1", epsilon=0.1, label="second")
    assert (again.stored, [row["n"] for row in again]) == (True, [row["n"] for row in paid])
    assert [charge.asked.split(":")[0] for charge in session.history()] == ["first"]


def test_twin_a_key_that_knows_the_words_charges_twice(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    known = stored.charge_of

    def by_words(priced: Any, key: str, *told: Any) -> Charge:
        charge = known(priced, key, *told)
        return Charge(**{name: getattr(charge, name) for name in Charge.__slots__} | {"key": f"{key}{charge.wording}"})

    monkeypatch.setattr("lapwing.release.release.charge_of", by_words)
    session.sql(TEXT, epsilon=0.1)
    assert not session.sql("select PLAN, count(*) as n from visits group by 1", epsilon=0.1).stored


@pytest.mark.long
def test_each_question_of_a_batch_has_its_own(session: Session) -> None:
    ages = "SELECT SUM(age) AS s FROM visits"
    codes = "SELECT SUM(code, contribution_bounds_per_row => AUTO) FROM visits"
    session.batch([TEXT, (f"{ages} WHERE age > ?", [1]), codes], epsilon=1, label="at once")
    search, *others = [charge.wording for charge in session.history()]
    assert search == Wording(text=codes, label="at once", first=True), (
        "a search is charged for the question that needs it"
    )
    assert others == [
        Wording(text=TEXT, label="at once"),
        Wording(text=f"{ages} WHERE age > ?", parameters=(1,), label="at once"),
        Wording(text=codes, label="at once"),
    ]


@pytest.mark.long
def test_a_search_has_that_of_its_question(session: Session) -> None:
    text = "SELECT SUM(code, contribution_bounds_per_row => AUTO) AS s FROM visits"
    session.sql(text, epsilon=1)
    assert [charge.wording for charge in session.history()] == [Wording(text=text, first=True), Wording(text=text)]


@pytest.mark.long
def test_an_expression_has_its_sql(session: Session) -> None:
    question = session.table("visits").count().name("n")
    session.sql(question, epsilon=0.1, label="by expression")
    assert last(session) == Wording(text=ibis.to_sql(question), label="by expression")


def test_charges_without_words_show_their_plan(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the ledgers of earlier versions have them."""
    monkeypatch.setattr("lapwing.release.answering.wordings_of", lambda _: None)
    session.sql(TEXT, epsilon=0.1)
    (charge,) = session.history()
    assert charge.wording is None
    assert charge.asked == charge.question == 'SELECT COUNT(*) FROM "visits" GROUP BY "plan"'
    entry = next(entry for entry in session.ledger_entries() if entry.kind == "charge")
    assert "wording" not in json.loads(entry.body)


@pytest.mark.parametrize("label", one_in(2, ["", "two\nlines", "x" * (LONGEST_LABEL + 1), "\x1b[31mred", 7]))
def test_a_label_that_no_line_can_show_is_refused(session: Session, label: Any) -> None:
    for asked in (
        lambda: session.sql(TEXT, epsilon=0.1, label=label),
        lambda: session.batch([TEXT], epsilon=0.1, label=label),
    ):
        with pytest.raises(lw.InvalidParameter, match="is not allowed; write one line of 1 to 200 printable"):
            asked()
    assert session.history() == ()
