"""A loss with a delta is never added, compared or shown by its other coordinate alone: what people see of a budget."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.budget import AllowanceView, BudgetView
from lapwing.cli import asking, figures
from lapwing.cli import budget as page
from lapwing.cli.console import rendered
from lapwing.documents import budget_document
from lapwing.guarantee import sections
from lapwing.server.batch_prices import TOO_DEAR, explain_together
from lapwing.server.bodies import BatchBody
from tests.support.effort import one_in

KEYS = Fraction(1, 10**6)
PRIVATE = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"


CATALOG = """
[dataset]
name = "visits"
engine = "duckdb"
ledger = "sqlite:visits.lapwing.db"

[budget]
epsilon = 4
delta = {delta}
delta_keys = 1e-6
measure = "{measure}"
neighbouring = "add_remove"

[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 1

[tables.visits.columns]
person = {{ type = "integer", lower = 0, upper = 200 }}
town = {{ type = "string" }}
"""


@pytest.fixture(params=one_in(2, [("gdp", "2e-6"), ("pure", "1e-6")]), ids=["gdp", "pure"])
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[lw.Session]:
    measure, delta = request.param
    rows = {"person": list(range(200)), "town": ["Ely"] * 150 + ["Rye"] * 50}
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    (tmp_path / "lapwing.toml").write_text(CATALOG.format(measure=measure, delta=delta))
    with lw.connect(tmp_path / "lapwing.toml") as opened:
        yield opened


def shown_of(view: BudgetView) -> str:
    return " ".join(rendered(io.StringIO(), *page.as_page(view, "visits", view.delta - view.delta_keys)).split())


def test_questions_that_fit_fit_with_their_delta(session: lw.Session) -> None:
    """Each takes 0.4 of the delta for keys: one more fits after the first, whatever epsilon is left."""
    session.sql(PRIVATE, epsilon=Fraction(1, 10), delta=KEYS * Fraction(4, 10))
    view = session.budget()
    (row,) = view.history
    assert view.fits(row.loss, row.parts) > 10  # the planted bug: by the loss alone
    assert view.fits(row.loss, row.parts, row.delta) == 1
    assert budget_document.budget_document(view)["more_like_the_last"] == 1
    share = AllowanceView(
        holder="alice", share=Fraction(1, 2), spent=view.spent, remaining=view.remaining, delta_remaining=KEYS / 10
    )
    assert replace(view, allowances=(share,)).fits(row.loss, row.parts, row.delta) == 0
    tenth = view.total.from_amount(view.total.amount / 10)
    assert replace(view, most=tenth).fits(row.loss, row.parts, row.delta) == 0
    assert "delta 1e-7 for finding groups" in figures.allowance(share, view.total)
    assert "1 more query at" in shown_of(view)


@pytest.mark.long
def test_the_share_of_what_is_left_is_that_of_the_coordinate_that_runs_out(session: lw.Session) -> None:
    """A question that takes nearly all of the delta takes nearly all of what is left, however small its epsilon is."""
    tenth, delta = Fraction(1, 10), KEYS * Fraction(6, 10)
    preview = session.explain(PRIVATE, epsilon=tenth, delta=delta)
    by_loss = preview.price.amount / preview.remaining.amount
    assert float(by_loss) < 0.1 < preview.share_of_remaining == pytest.approx(0.6)
    session.sql(PRIVATE, epsilon=tenth, delta=delta)
    other = session.explain(PRIVATE.replace("visits", "visits WHERE person > 3"), epsilon=tenth, delta=delta)
    assert other.fits == 0
    assert other.share_of_remaining == pytest.approx(1.5)
    assert other.refusal is not None
    public = session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=Fraction(1, 10))
    assert public.share_of_remaining == pytest.approx(float(public.price.amount / public.remaining.amount))


def test_what_more_like_it_means_is_said_with_the_delta(session: lw.Session) -> None:
    answer = session.sql(PRIVATE, epsilon=Fraction(1, 10), delta=KEYS * Fraction(4, 10))
    view = session.budget()
    line = asking.price_line(answer, view)
    assert "delta 4e-7 (1 in 2.5 million) for finding groups" in line
    assert "1 more like it" in line
    assert "delta for groups" in shown_of(view)
    assert ["spent of δ for finding groups", "4e-7", "40 %"] in [list(row) for row in sections._spent(view, 1).table]
    session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=Fraction(1, 10))
    assert "for finding groups" not in asking.price_line(
        session.sql("SELECT SUM(person) AS n FROM visits", epsilon=0.2), session.budget()
    )


def test_what_is_spent_is_shown_with_its_delta(session: lw.Session) -> None:
    session.sql(PRIVATE, epsilon=Fraction(1, 10), delta=KEYS / 2)
    view = session.budget()
    shown = shown_of(view)
    spent = re.search(r" so far (.*?) (?:shares of|groups) ", shown)
    assert spent is not None, shown
    assert spent[1].count("epsilon ") == spent[1].count("delta ") == 1, shown  # the total's own stands above
    said = sections._spent(view, 1).paragraphs[1]
    assert said.count("ε = ") == said.count("δ = ") > 0, said
    only_delta = replace(view, spent=view.spent.nothing())
    assert len(sections._spent(only_delta, 1).paragraphs) == len(sections._spent(view, 1).paragraphs)
    raised = replace(view, earlier=((Fraction(2), KEYS),), raised=view.as_if_cap)
    assert "it was epsilon 2, delta 1e-6" in shown_of(raised)


@pytest.mark.long
def test_a_batch_is_refused_for_its_delta(session: lw.Session) -> None:
    """Of the 0.4 of the delta that are left, each of the two takes 0.3."""
    session.sql(PRIVATE, epsilon=Fraction(1, 10), delta=KEYS * Fraction(6, 10))
    texts = [PRIVATE.replace("visits", f"visits WHERE person > {least}") for least in (3, 4)]

    def refusal(*questions: str, delta: str) -> str | None:
        asked = [{"sql": text} for text in questions]
        return explain_together(
            session, BatchBody.model_validate({"questions": asked, "epsilon": "0.2", "delta": delta})
        )["refusal"]

    assert refusal(texts[1], delta="0.0000003") is None
    assert refusal(*texts, delta="0.0000003") is None
    assert refusal(*texts, delta="0.0000006") == TOO_DEAR
    priced = explain_together(
        session, BatchBody.model_validate({"questions": [{"sql": texts[0]}], "epsilon": "0.2", "delta": "0.0000003"})
    )
    assert (priced["delta"], priced["delta_remaining"]) == ("0.0000003", "0.0000004")
