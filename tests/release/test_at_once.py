"""Identical questions that overlap: what happens between looking for an answer and paying for one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import DataChanged
from lapwing.ledger import waiting as under_way
from lapwing.ledger.entries import Charge, StoredAnswer
from lapwing.query.pricing.quote import Quote
from lapwing.release import release, stored
from lapwing.release.request import Access
from lapwing.release.waiting import Waiting
from tests.support.ledger.ledgers import charge

QUESTION = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"person": [1, 2, 3]}), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def opened(visits: Path, epsilon: float = 1) -> lw.Session:
    return lw.protect(visits, privacy_unit="person", epsilon=epsilon, max_rows_per_unit=1)


def check_paid_once(visits: Path, monkeypatch: pytest.MonkeyPatch, epsilon: float = 1) -> None:
    """Let another session ask the same, and be answered, after one has looked for answers and before it pays."""
    look, other_asked, begun = stored.look_up, list[Any](), list[bool]()
    with opened(visits, epsilon) as one, opened(visits, epsilon) as other:

        def late(
            priced: Quote, answers: Callable[[str], Sequence[StoredAnswer]], access: Access, keys: Sequence[str]
        ) -> Any:
            found = look(priced, answers, access, keys)
            if not begun:
                begun.append(True)
                other_asked.append(other.sql(QUESTION, epsilon=0.3).rows())
            return found

        monkeypatch.setattr(release, "look_up", late)
        answer = one.sql(QUESTION, epsilon=0.3)
        assert answer.stored
        assert [answer.rows()] == other_asked
        assert len(one.budget().history) == 1


def test_an_answer_that_comes_before_the_charge_is_free(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_paid_once(visits, monkeypatch)


def test_it_is_free_where_nothing_else_fits(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_paid_once(visits, monkeypatch, epsilon=0.3)


def test_twin_who_looks_at_what_is_under_way_alone_pays_again(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "_answered", lambda *_: None)
    with pytest.raises(AssertionError):
        check_paid_once(visits, monkeypatch)


def test_data_that_change_during_the_wait_are_refused_uncharged(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not charged and then found to be others, which would be a fault besides."""
    with opened(visits) as session:
        session.sql(QUESTION, epsilon=0.001)
        (known,) = (entry for entry in session.ledger_entries() if entry.kind == "charge")
        wanted = Charge.from_record(known.contents())
        charge(session._ledger, session.price(0.5), wanted.key)
        wait = Waiting.for_end_of

        def changed(self: Waiting, awaited: Any) -> None:
            pq.write_table(pa.table({"person": [1, 2, 3, 4]}), visits)
            session._ledger.record_unanswered([awaited.sequence], "interrupt")
            wait(self, awaited)

        monkeypatch.setattr(Waiting, "for_end_of", changed)
        with pytest.raises(DataChanged):
            session.sql(QUESTION, epsilon=0.4)
        assert len(session.budget().history) == 2
        assert session.faults() == ()
