"""Asked of a session, a question is the same question: bought once, whichever way it was said."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.datasets import rand_hie_catalog, rand_hie_data


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    shutil.copy(rand_hie_data(), tmp_path / "rand_hie.parquet")
    shutil.copy(rand_hie_catalog(), tmp_path / "lapwing.toml")
    with lw.connect(tmp_path / "lapwing.toml") as session:
        yield session


def test_one_price_for_both(session: lw.Session) -> None:
    text = "SELECT plan, COUNT(*) AS n, AVG(total_dollars) AS cost FROM rand_hie WHERE age > 30 GROUP BY plan"
    question = (
        session.table("rand_hie")
        .filter(lw.col.age > 30)
        .group_by("plan")
        .agg(n=lw.count(), cost=lw.mean("total_dollars"))
    )
    preview = question.explain(epsilon=0.5)
    assert preview == session.explain(text, epsilon=0.5)
    answer = question.answer(epsilon=0.5)
    assert answer.cost == preview.cost
    again = session.sql(text, epsilon=0.5)
    assert again.stored
    assert again.rows() == answer.rows()
    assert len(session.budget().history) == 1
    assert question.answer(epsilon=0.5).stored


def test_error_and_delta_are_passed_on(session: lw.Session) -> None:
    question = session.table("rand_hie").count()
    preview = question.explain(error=50)
    assert preview.measures[0].half_width <= 50
    assert question.answer(error=50).interval()["count"][0][0] < question.answer(error=50).rows()[0]["count"]
    assert question.explain(epsilon=1, assuming_count=10).assuming_count == 10
    with pytest.raises(lw.LapwingError):
        session.table("rand_hie").group_by("income").count().answer(epsilon=0.1, delta=1e-7)


def test_a_batch_takes_its_text(session: lw.Session) -> None:
    table = session.table("rand_hie")
    answers = session.batch([table.count().to_sql(), table.group_by("sex").count().to_sql()], epsilon=0.5)
    assert [len(answer) for answer in answers] == [1, 2]


def test_a_closed_session_begins_nothing(session: lw.Session) -> None:
    table = session.table("rand_hie")
    session.close()
    with pytest.raises(lw.InvalidParameter, match="closed"):
        session.table("rand_hie")
    with pytest.raises(lw.InvalidParameter, match="closed"):
        table.count().answer(epsilon=0.1)


def test_nothing_is_asked_before_answer(session: lw.Session) -> None:
    repr(session.table("rand_hie").filter(lw.col.age > 3).count())
    session.table("rand_hie").count().explain(epsilon=1)
    assert not session.budget().history
