"""Questions about parts of the data, from session to ledger: what they are charged to, and what is left for whom."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.ledger.state import LedgerState
from lapwing.privacy.measures import Loss, PureDP
from lapwing.query.plan.plan import Question
from lapwing.release import stored
from lapwing.session import Session
from tests.support.effort import only

CATALOG = """
[dataset]
name = "wards"
ledger = "sqlite:wards.lapwing.db"
[budget]
epsilon = 1
delta = {delta}
delta_keys = {delta}
measure = "pure"
neighbouring = "{neighbouring}"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person_id"
max_rows_per_unit = 2
{part}
[tables.visits.columns]
site = {{ type = "integer", values = [1, 2, 3] }}
cost = {{ type = "integer", lower = 0, upper = 100 }}
town = {{ type = "string" }}
{more}
"""
STAFF = """
[tables.staff]
source = "visits.parquet"
privacy_unit = "person_id"
max_rows_per_unit = 2
[tables.staff.columns]
site = { type = "integer", values = [1, 2, 3] }
"""


def write(folder: Path, *, part: str = 'part = "site"', neighbouring: str = "add_remove", more: str = "") -> Path:
    delta = "1e-6" if neighbouring == "add_remove" else "0"
    (folder / "lapwing.toml").write_text(CATALOG.format(part=part, neighbouring=neighbouring, delta=delta, more=more))
    return folder / "lapwing.toml"


def write_visits(folder: Path, people: int = 90) -> None:
    rows = [(person, 1 + person % 3, person % 100, "t") for person in range(people) for _ in range(2)]
    columns = zip(("person_id", "site", "cost", "town"), zip(*rows, strict=True), strict=True)
    pq.write_table(pa.table({name: list(values) for name, values in columns}), folder / "visits.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_visits(tmp_path)
    return tmp_path


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    with lw.connect(write(folder)) as opened:
        yield opened


def about(*sites: int, what: str = "COUNT(*)") -> str:
    where = f" WHERE site IN ({', '.join(map(str, sites))})" if sites else ""
    return f"SELECT {what} AS n FROM visits{where}"


def parts(session: Session) -> dict[str, Fraction]:
    return {part: loss.amount for part, loss in session.budget().parts.items()}


def tenths(*numbers: int) -> dict[str, Fraction]:
    return {str(place): Fraction(number, 10) for place, number in enumerate(numbers, 1)}


def check_charged(session: Session) -> None:
    session.sql(about(2), epsilon=0.6)
    assert parts(session) == tenths(0, 6, 0)
    session.sql(about(1, 3), epsilon=0.7)
    assert parts(session) == tenths(7, 6, 7)
    session.sql(about(), epsilon=0.2)
    assert parts(session) == tenths(9, 8, 9)
    session.sql(about(2, what="SUM(cost)"), epsilon=0.2)
    assert parts(session) == tenths(9, 10, 9)
    view = session.budget()
    assert (view.spent, view.remaining) == (PureDP(1), PureDP(0))
    assert [row.parts for row in view.history] == [("2",), ("1", "3"), None, ("2",)]
    with pytest.raises(lw.BudgetExhausted):
        session.sql(about(2, what="SUM(cost)"), epsilon=0.3)
    session.sql(about(3, what="SUM(cost)"), epsilon=0.1)


def test_questions_are_charged_to_the_parts_that_they_read(session: Session) -> None:
    check_charged(session)


def test_twin_another_part_than_the_one_that_is_read_is_caught(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = stored.parts_charged

    def other(question: Question, state: LedgerState) -> tuple[str, ...] | None:
        found = real(question, state)
        return None if found is None else ("1",)

    monkeypatch.setattr(stored, "parts_charged", other)
    with pytest.raises(AssertionError):
        check_charged(session)


def test_under_replace_one_two_parts_share_the_budget(folder: Path) -> None:
    with lw.connect(write(folder, neighbouring="replace_one")) as session:
        session.sql(about(1), epsilon=0.5)
        session.sql(about(2), epsilon=0.5)
        session.sql(about(3), epsilon=0.5)
        assert parts(session) == tenths(5, 5, 5)
        assert session.budget().spent == PureDP(1)
        with pytest.raises(lw.BudgetExhausted, match="too little in part 3"):
            session.sql(about(3, what="SUM(cost)"), epsilon=0.1)
        assert session.explain(about(3, what="SUM(cost)"), epsilon=0.1).share_of_remaining > 1


def test_explain_looks_at_what_is_left_for_the_parts_that_are_read(session: Session) -> None:
    session.sql(about(2), epsilon=0.6)
    cheap = session.explain(about(1), epsilon=0.25)
    assert (cheap.remaining, cheap.fits, cheap.share_of_remaining) == (PureDP(1), 4, 0.25)
    assert cheap.parts is not None
    assert [(part.part, part.spent, part.remaining) for part in cheap.parts] == [("1", PureDP(0), PureDP(1))]
    both = session.explain(about(1, 2), epsilon=0.25)
    assert (both.remaining, both.fits) == (PureDP(0.4), 1)
    assert both.parts is not None
    assert [part.remaining for part in both.parts] == [PureDP(1), PureDP(0.4)]
    everyone = session.explain(about(), epsilon=0.5)
    assert everyone.parts is None
    assert everyone.remaining == PureDP(0.4)
    assert everyone.share_of_remaining > 1


@pytest.mark.long
@pytest.mark.parametrize("asked", only([0], [(1,), (2,), (1, 3), (1, 2), ()]))
def test_what_is_said_to_fit_fits(session: Session, asked: tuple[int, ...]) -> None:
    session.sql(about(2), epsilon=0.6)
    session.sql(about(1, what="SUM(cost)"), epsilon=0.3)
    preview = session.explain(about(*asked, what="AVG(cost)"), epsilon=0.13)
    price: Loss = preview.price
    assert preview.fits == session.budget().fits(
        price, None if preview.parts is None else [p.part for p in preview.parts]
    )
    for number in range(preview.fits):
        session.sql(about(*asked, what=f"SUM(cost + {number})"), epsilon=0.13)
    with pytest.raises(lw.BudgetExhausted):
        session.sql(about(*asked, what="AVG(cost)"), epsilon=0.13)


def test_refusals_name_the_parts_that_lack_budget(session: Session) -> None:
    session.sql(about(1), epsilon=0.9)
    with pytest.raises(
        lw.BudgetExhausted, match=r"10 % is left for the parts that are read, too little in part 1\."
    ) as no:
        session.sql(about(1, 2), epsilon=0.5)
    assert "ε = 0.1 would still fit" in str(no.value)
    session.sql(about(2, what="SUM(cost)"), epsilon=0.7)
    with pytest.raises(lw.BudgetExhausted, match="too little in parts 1, 2"):
        session.sql(about(what="SUM(cost)"), epsilon=0.5)
    assert parts(session) == tenths(9, 7, 0)


def test_a_batch_is_charged_part_by_part_and_wholly_or_not(session: Session) -> None:
    session.batch([about(1), about(2), about(3)], epsilon=0.9)
    assert parts(session) == tenths(3, 3, 3)
    with pytest.raises(lw.BudgetExhausted, match="too little in part 2"):
        session.batch([about(1, what="SUM(cost)"), about(2, what="SUM(cost)"), about(2, what="AVG(cost)")], epsilon=1.2)
    assert parts(session) == tenths(3, 3, 3)


def test_delta_for_keys_is_charged_to_the_parts_too(session: Session) -> None:
    question = "SELECT town, COUNT(DISTINCT person_id) AS n FROM visits WHERE site = {} GROUP BY town"
    for site in (1, 2):
        session.sql(question.format(site), epsilon=0.5, delta=8e-7)
    view = session.budget()
    assert dict(view.delta_by_part) == {"1": Fraction(8, 10**7), "2": Fraction(8, 10**7), "3": Fraction(0)}
    with pytest.raises(
        lw.BudgetExhausted, match="kept for keys is left for the parts that are read, too little in part 1"
    ):
        session.sql(question.format(1), epsilon=0.4, delta=9e-7)


@pytest.mark.long
def test_a_new_version_carries_the_dearest_part_to_all(folder: Path, session: Session) -> None:
    session.sql(about(2), epsilon=0.6)
    session.sql(about(1), epsilon=0.3)
    write_visits(folder, people=120)
    session.accept_data()
    assert parts(session) == tenths(6, 6, 6)
    with pytest.raises(lw.BudgetExhausted):
        session.sql(about(3), epsilon=0.5)
    session.sql(about(3), epsilon=0.4)


def test_a_stored_answer_is_free_and_charged_to_nobody(session: Session) -> None:
    session.sql(about(2), epsilon=0.6)
    assert session.sql(about(2), epsilon=0.5).stored
    assert session.explain(about(2), epsilon=0.5).stored
    assert parts(session) == tenths(0, 6, 0)


@pytest.mark.long
def test_other_tables_and_catalogs_without_parts_are_charged_to_all(folder: Path) -> None:
    with lw.connect(write(folder, more=STAFF)) as session:
        session.sql("SELECT COUNT(*) AS n FROM staff WHERE site = 1", epsilon=0.2)
        session.sql(about(2), epsilon=0.3)
        assert parts(session) == tenths(2, 5, 2)
    with lw.connect(write(folder, part="", more=STAFF)) as plain:
        assert plain.explain(about(1), epsilon=0.3).parts is None
        plain.sql(about(1), epsilon=0.1)
        assert parts(plain) == tenths(3, 6, 3)
    with lw.connect(write(folder, more=STAFF)) as again:
        again.sql(about(1, what="SUM(cost)"), epsilon=0.1)
        assert parts(again) == tenths(4, 6, 3)


def test_an_old_ledger_may_be_divided_later(folder: Path) -> None:
    with lw.connect(write(folder, part="")) as plain:
        plain.sql(about(1), epsilon=0.4)
        assert plain.budget().parts == {}
        assert plain.budget().fits(PureDP(0.3)) == 2
    with lw.connect(write(folder)) as session:
        assert parts(session) == tenths(4, 4, 4)
        session.sql(about(1), epsilon=0.3)
        assert parts(session) == tenths(7, 4, 4)


def test_parts_that_move_people_are_refused(folder: Path) -> None:
    lw.connect(write(folder)).close()
    text = write(folder).read_text().replace("[1, 2, 3]", "[3, 2, 1]")
    (folder / "lapwing.toml").write_text(text)
    with pytest.raises(lw.CatalogMismatch, match="or in another order"):
        lw.connect(folder / "lapwing.toml")


def test_two_tables_in_parts_are_refused(folder: Path) -> None:
    both = STAFF.replace("max_rows_per_unit = 2", 'max_rows_per_unit = 2\npart = "site"')
    with pytest.raises(lw.CatalogError, match=r"tables\.staff\.part: the table \"visits\" has parts already"):
        lw.connect(write(folder, more=both))


def test_a_view_without_parts_is_as_before(session: Session) -> None:
    view = replace(session.budget(), by_part=None)
    assert view.parts == {}
    assert view.room() == view.room(["1"]) == view.remaining
