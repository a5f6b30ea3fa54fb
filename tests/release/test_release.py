"""The release path: what is charged when, what is free, what is refused, what a fault costs."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from traceback import walk_tb
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.engines import FAILED, DuckDB
from lapwing.privacy.measures import GaussianDP
from lapwing.release import release
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as
from tests.support.release.tables import protected, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return visits(tmp_path)


@pytest.fixture
def session(path: Path) -> Iterator[Session]:
    with protected(path) as opened:
        yield opened


def spent(session: Session) -> Any:
    return session.budget().spent


def rows(answer: lw.Answer) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], answer.rows())


def test_an_answer_is_charged_what_explain_said(session: Session) -> None:
    preview = session.explain(COUNT, epsilon=0.5)
    assert spent(session).amount == 0
    answer = session.sql(COUNT, epsilon=0.5)
    assert answer.cost == preview.cost == spent(session)
    assert abs(rows(answer)[0]["n"] - 400) < 20 * preview.measures[0].scale


@pytest.mark.long
def test_twenty_seven_questions_of_half_fit_three(session: Session) -> None:
    for number in range(27):
        session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", epsilon=0.5)
    with pytest.raises(lw.BudgetExhausted, match="would still fit"):
        session.sql("SELECT SUM(cost) FROM visits", epsilon=0.5)
    assert len(session.budget().history) == 27


@pytest.mark.long
def test_what_is_said_to_fit_fits(path: Path) -> None:
    with protected(path, epsilon=1) as session:
        session.sql(COUNT, epsilon=0.83)
        with pytest.raises(lw.BudgetExhausted) as refused:
            session.sql("SELECT SUM(cost) FROM visits", epsilon=0.9)
        fitting = float(str(refused.value).split("epsilon = ")[1].split(" ")[0])
        before = spent(session)
        session.sql("SELECT SUM(cost) FROM visits", epsilon=fitting)
        assert spent(session) > before


@pytest.mark.parametrize("text", [COUNT, "SELECT SUM(cost) AS s FROM visits"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_an_error_that_is_said_to_fit_fits_and_no_much_smaller_one(path: Path, text: str, delta: float) -> None:
    with protected(path, epsilon=1, delta=delta) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits WHERE cost > 1", epsilon=0.4)
        with pytest.raises(lw.BudgetExhausted) as refused:
            session.sql(text, error=1)
        fitting = Decimal(str(refused.value).split("±")[1].split(";")[0].replace(",", ""))
        with pytest.raises(lw.BudgetExhausted):
            session.sql(text, error=fitting * Decimal("0.8"))
        session.sql(text, error=fitting)


@pytest.mark.parametrize("text", ["SELECT AVG(cost) AS m FROM visits", "SELECT MEDIAN(cost) AS m FROM visits"])
def test_an_error_that_is_no_public_fact_is_not_said_to_fit(path: Path, text: str) -> None:
    with protected(path, epsilon=1) as session, pytest.raises(lw.BudgetExhausted) as refused:
        session.sql(text, epsilon=2)
    assert "ε = 1 would still fit;" in str(refused.value)


def test_a_pure_ledger_adds_decimals_exactly(path: Path) -> None:
    with protected(path, epsilon=1, delta=0) as session:
        for number in range(10):
            session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", epsilon=0.1)
        assert session.budget().remaining.amount == 0
        with pytest.raises(lw.BudgetExhausted, match="No further query fits"):
            session.sql("SELECT SUM(cost) FROM visits", epsilon=1e-17)


@pytest.mark.parametrize(
    "again",
    only(
        [0],
        [
            COUNT,
            "select count ( * ) from VISITS -- the same",
            "SELECT COUNT(*) AS renamed FROM visits ORDER BY 1 LIMIT 5",
            "SELECT COUNT(*) * 2 AS twice FROM visits HAVING COUNT(*) > -1000000",
        ],
    ),
)
def test_the_same_question_is_free_and_the_same(session: Session, again: str) -> None:
    first = rows(session.sql(COUNT, epsilon=0.5))[0]["n"]
    before = spent(session)
    repeated = session.sql(again, epsilon=0.5)
    assert repeated.stored
    assert repeated.cost.amount == 0
    assert spent(session) == before
    assert next(iter(rows(repeated)[0].values())) in (first, 2 * first)


def test_a_less_accurate_question_is_free_and_a_sharper_one_is_not(session: Session) -> None:
    first = session.sql(COUNT, epsilon=0.5)
    assert session.sql(COUNT, epsilon=0.3).rows() == first.rows()
    assert session.explain(COUNT, epsilon=0.3).stored
    assert not session.explain(COUNT, epsilon=0.6).stored
    assert not session.sql(COUNT, epsilon=0.6).stored


def test_a_stored_answer_is_served_only_if_every_number_is_as_accurate(session: Session) -> None:
    """A wanted error splits the price unlike a wanted price: a dearer answer may be the worse one in a column."""
    question = "SELECT COUNT(DISTINCT person_id) AS n, SUM(cost) AS s FROM visits"
    bought = session.sql(question, epsilon=1)
    width = session.explain(question, epsilon=1).columns[1].half_width
    assert width is not None
    error = Decimal(str(width)) * Decimal("0.9")
    preview = session.explain(question, error=error)
    assert preview.price < bought.cost
    assert not preview.stored
    sharper = session.sql(question, error=error)
    assert not sharper.stored
    low, high = sharper.interval()["s"]
    assert (high - low)[0] / 2 <= error
    assert session.sql(question, error=error).stored
    assert session.sql(question, epsilon=1).rows() == bought.rows()


def test_the_order_of_aggregates_and_keys_does_not_matter(session: Session) -> None:
    session.sql("SELECT plan, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY plan", epsilon=0.5)
    assert session.sql("SELECT SUM(cost), COUNT(*), plan FROM visits GROUP BY plan", epsilon=0.5).stored


def test_other_bounds_are_another_question(path: Path) -> None:
    with protected(path) as session:
        session.sql(COUNT, epsilon=0.5)
    with protected(path, bounds={"cost": (0, 50)}) as session:
        assert not session.sql(COUNT, epsilon=0.5).stored
        assert spent(session) > GaussianDP.from_amount(0)
        assert len(session.budget().history) == 2


def test_another_promise_about_the_same_file_is_refused(path: Path) -> None:
    protected(path).close()
    before = (path.parent / "visits.lapwing.toml").read_bytes()
    for change in ({"epsilon": 4}, {"delta": 1e-7}, {"measure": "zcdp"}, {"privacy_unit": "row"}):
        with pytest.raises(lw.CatalogMismatch):
            protected(path, **({"max_rows_per_unit": None} if "privacy_unit" in change else {}) | change)
    assert (path.parent / "visits.lapwing.toml").read_bytes() == before


def test_deleting_the_catalog_does_not_forget_the_promise(path: Path) -> None:
    protected(path).close()
    (path.parent / "visits.lapwing.toml").unlink()
    with pytest.raises(lw.CatalogMismatch, match="epsilon"):
        protected(path, epsilon=100)


@pytest.mark.parametrize(
    ("ask", "reason"),
    one_in(
        3,
        [
            ({"epsilon": 0}, "above 0"),
            ({"epsilon": -1}, "above 0"),
            ({"epsilon": float("nan")}, "finite"),
            ({"epsilon": float("inf")}, "finite"),
            ({"epsilon": "0.5"}, "finite number"),
            ({"epsilon": True}, "finite number"),
            ({"error": 0}, "above 0"),
            ({"epsilon": 1, "error": 1}, "not both"),
            ({}, "has no cost yet"),
        ],
        many=True,
    ),
)
def test_bad_prices_charge_nothing(session: Session, ask: dict[str, Any], reason: str) -> None:
    with pytest.raises(lw.InvalidParameter, match=reason):
        session.sql(COUNT, **ask)
    assert spent(session).amount == 0


def test_a_wanted_error_is_promised_by_the_cheapest_price(session: Session) -> None:
    preview = session.explain(COUNT, error=50)
    assert preview.measures[0].half_width == 50
    cheaper = float(preview.price.to_epsilon(delta=1e-6)) * 0.98
    assert session.explain(COUNT, epsilon=cheaper).measures[0].half_width > 50
    low, high = session.sql(COUNT, error=50).interval()["n"]
    assert high[0] - low[0] == 100


@pytest.mark.parametrize(
    "question", ["SELECT AVG(cost) AS m FROM visits", "SELECT SUM(cost) / COUNT(*) AS m FROM visits"]
)
def test_a_wanted_error_that_is_no_public_fact_is_refused(session: Session, question: str) -> None:
    with refused_as("assumes_rows", "error_not_public"):
        session.sql(question, error=5)


# ---- the data --------------------------------------------------------------------------------------------------------


def test_changed_data_are_refused_until_accepted(path: Path) -> None:
    with protected(path) as session:
        first = session.sql(COUNT, epsilon=0.5)
        visits(path.parent, people=100)
        before = spent(session)
        with pytest.raises(lw.DataChanged, match="data accept"):
            session.sql(COUNT, epsilon=0.5)
        assert spent(session) == before
        assert session.accept_data() == 2
        second = session.sql(COUNT, epsilon=0.5)
        assert not second.stored
        assert spent(session).amount == first.cost.amount + second.cost.amount


def test_a_missing_or_truncated_file_is_a_fault_that_costs_nothing(path: Path) -> None:
    with protected(path) as session:
        content = path.read_bytes()
        for damage in (None, content[: len(content) // 2], b""):
            path.unlink()
            if damage is not None:
                path.write_bytes(damage)
            with pytest.raises((lw.DataFault, lw.DataChanged)):
                session.sql(COUNT, epsilon=0.5)
            path.write_bytes(content)
        assert spent(session).amount == 0
    path.unlink()
    with pytest.raises(lw.DataFault, match="visits"):
        protected(path)


def test_unreadable_data_tell_an_analyst_nothing_of_undeclared_columns(path: Path) -> None:
    with protected(path) as session:
        pq.write_table(pa.table({"person_id": [1], "diagnosis": ["x"]}), path)
        with pytest.raises(lw.DataFault, match="cannot be read as the catalog describes") as raised:
            session.sql(COUNT, epsilon=0.5)
        assert "diagnosis" not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None
        with pytest.raises(lw.DataFault, match="diagnosis"):
            session.accept_data()
        assert spent(session).amount == 0


def test_an_engine_failure_costs_the_price_and_says_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_self: DuckDB, _query: str) -> Any:
        raise RuntimeError("secret value 42")

    monkeypatch.setattr(DuckDB, "fetch", failing)
    with pytest.raises(lw.EngineFault) as fault:
        session.sql(COUNT, epsilon=0.5)
    assert str(fault.value) == FAILED
    assert fault.value.__cause__ is None
    assert spent(session).amount > 0


def test_a_file_replaced_while_it_is_read_gives_no_answer(
    session: Session, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = DuckDB.fetch

    def swapping(self: DuckDB, query: str) -> Any:
        rows = fetch(self, query)
        visits(path.parent, people=10)
        return rows

    monkeypatch.setattr(DuckDB, "fetch", swapping)
    with pytest.raises(lw.EngineFault):
        session.sql(COUNT, epsilon=0.5)


def speaking_of_data(terms: Any, sums: Any, entropy: Any) -> Any:
    raise lw.InvalidParameter(f"The value {int(sums[0][0])} does not fit.")


def check_errors_after_a_charge(path: Path) -> None:
    with protected(path) as session:
        with pytest.raises(lw.LapwingError) as told:
            session.sql(COUNT, epsilon=0.5)
        assert (type(told.value), str(told.value)) == (lw.EngineFault, FAILED)
        assert spent(session).amount > 0


def test_an_error_after_the_charge_is_constant_and_says_that_the_price_is_paid(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "add_noise", speaking_of_data)
    check_errors_after_a_charge(path)


def test_errors_that_pass_as_they_are_would_be_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "add_noise", speaking_of_data)
    monkeypatch.setattr(release, "SAID_AFTER_A_CHARGE", (lw.LapwingError,))
    with pytest.raises(AssertionError):
        check_errors_after_a_charge(path)


def without_randomness(terms: Any, sums: Any, entropy: Any) -> Any:
    raise lw.EntropyFault("none came")


def check_that_no_sums_hang_on_a_lack_of_randomness(path: Path) -> None:
    with protected(path) as session:
        with pytest.raises(lw.EntropyFault, match="none came") as told:
            session.sql(COUNT, epsilon=0.5)
        assert spent(session).amount > 0
    error: BaseException | None = told.value
    while error is not None:
        assert not any("sums" in frame.f_locals for frame, _ in walk_tb(error.__traceback__))
        error = error.__context__


def test_a_lack_of_randomness_after_the_charge_holds_no_sums(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "add_noise", without_randomness)
    check_that_no_sums_hang_on_a_lack_of_randomness(path)


def test_sums_on_a_lack_of_randomness_would_be_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "add_noise", without_randomness)
    monkeypatch.setattr(release, "SAID_AFTER_A_CHARGE", (lw.LapwingError,))
    with pytest.raises(AssertionError):
        check_that_no_sums_hang_on_a_lack_of_randomness(path)


def test_a_new_link_while_a_question_runs_changes_nothing(
    session: Session, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = DuckDB.fetch

    def linking(self: DuckDB, query: str) -> Any:
        (path.parent / "backup.parquet").hardlink_to(path)
        return fetch(self, query)

    monkeypatch.setattr(DuckDB, "fetch", linking)
    assert len(session.sql(COUNT, epsilon=0.5)) == 1


def test_a_closed_session_charges_nothing(path: Path) -> None:
    with protected(path) as session:
        pass
    actions: list[Callable[[], object]] = [
        lambda: session.sql(COUNT, epsilon=0.5),
        lambda: session.explain(COUNT, epsilon=0.5),
        session.budget,
        session.accept_data,
    ]
    for action in actions:
        with pytest.raises(lw.InvalidParameter, match="closed"):
            action()
    with protected(path) as session:
        assert spent(session).amount == 0


def test_protecting_again_without_bounds_keeps_them(path: Path) -> None:
    with protected(path) as session:
        session.sql("SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan", epsilon=0.5)
    beside = path.parent / "visits.lapwing.toml"
    beside.write_text(beside.read_text() + "# a note of the curator\n")
    with protected(path, bounds=None, domains=None) as session:
        assert session.sql("SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan", epsilon=0.5).stored
    assert "a note of the curator" in beside.read_text()
    with protected(path, bounds=None) as session:
        session.explain("SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan", epsilon=0.5)


def test_protecting_again_keeps_the_length_of_texts_that_the_curator_wrote(path: Path) -> None:
    """And a length that nobody wrote follows the values that are listed now."""
    beside = path.parent / "visits.lapwing.toml"
    protected(path, domains={"plan": ["a", "b" * 300]}).close()
    assert "max_length" not in beside.read_text()
    protected(path, domains={"plan": ["a", "b"]}).close()
    assert "max_length" not in beside.read_text()
    beside.write_text(beside.read_text().replace('values = ["a", "b"]', 'values = ["a", "b"], max_length = 7'))
    protected(path, domains={"plan": ["a", "b", "c"]}).close()
    assert 'values = ["a", "b", "c"], max_length = 7' in beside.read_text()


def test_another_file_of_the_same_stem_is_refused(path: Path) -> None:
    protected(path).close()
    (path.parent / "visits.csv").write_text("person_id,plan,cost\n1,a,2.0\n")
    with pytest.raises(lw.CatalogMismatch, match="source"):
        protected(path.parent / "visits.csv")


# ---- charge before touch ---------------------------------------------------------------------------------------------


def charges_seen_by_the_engine(session: Session, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many charges another process would find in the ledger when the first private row is read."""
    counts = []
    fetch = DuckDB.fetch

    def watching(self: DuckDB, query: str) -> Any:
        with lw.connect(session.catalog.folder / "visits.lapwing.toml") as other:
            counts.append(len(other.budget().history))
        return fetch(self, query)

    monkeypatch.setattr(DuckDB, "fetch", watching)
    session.sql(COUNT, epsilon=0.5)
    return counts[0]


def test_the_charge_is_durable_before_data_are_touched(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert charges_seen_by_the_engine(session, monkeypatch) == 1


def test_touching_before_charging_is_noticed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.release import release
    from lapwing.release.versions import current_digests

    def touching(tables: Any, engine: Any, state: Any) -> Any:
        engine.fetch("SELECT 1")
        return current_digests(tables, engine, state)

    monkeypatch.setattr(release, "current_digests", touching)
    assert charges_seen_by_the_engine(session, monkeypatch) == 0


CRASH = """
    import os, signal, sys
    import lapwing as lw
    from lapwing.release import release
    from lapwing.engines import DuckDB
    from lapwing.ledger.ledger import Ledger

    def dying(owner, name, after):
        original = getattr(owner, name)
        def wrapped(*arguments, **options):
            result = original(*arguments, **options) if after else None
            os.kill(os.getpid(), signal.SIGKILL)
            return result
        setattr(owner, name, wrapped)

    where, folder = sys.argv[1], sys.argv[2]
    session = lw.connect(folder + "/visits.lapwing.toml")
    owner, name, after = {
        "before the charge": (Ledger, "charge_all", False),
        "after the charge": (Ledger, "charge_all", True),
        "after the run": (DuckDB, "run", True),
        "after the noise": (release, "add_noise", True),
        "before the record": (Ledger, "record_answer", False),
        "after the record": (Ledger, "record_answer", True),
    }[where]
    dying(owner, name, after)
    print(session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5).rows())
"""


@pytest.mark.parametrize(
    ("where", "charged", "stored"),
    [
        pytest.param("before the charge", 0, False, marks=pytest.mark.long),
        pytest.param("after the charge", 1, False, marks=pytest.mark.long),
        pytest.param("after the run", 1, False, marks=pytest.mark.long),
        pytest.param("after the noise", 1, False, marks=pytest.mark.long),
        ("before the record", 1, False),
        pytest.param("after the record", 1, True, marks=pytest.mark.long),
    ],
)
def test_a_kill_at_any_point_releases_nothing_uncharged(path: Path, where: str, charged: int, stored: bool) -> None:
    protected(path).close()
    script = textwrap.dedent(CRASH)
    ended = subprocess.run(
        [sys.executable, "-c", script, where, str(path.parent)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == ""
    with lw.connect(path.parent / "visits.lapwing.toml") as session:
        assert len(session.budget().history) == charged
        assert session.sql(COUNT, epsilon=0.5).stored is stored


# ---- threads ---------------------------------------------------------------------------------------------------------


def test_threads_spend_the_budget_exactly(path: Path) -> None:
    outcomes: list[bool] = []

    def spend(session: Session, thread: int) -> None:
        for number in range(4):
            try:
                session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {thread * 10 + number}", epsilon=0.2)
                outcomes.append(True)
            except lw.BudgetExhausted:
                outcomes.append(False)

    with protected(path, epsilon=2, delta=0) as session:
        threads = [threading.Thread(target=spend, args=(session, index)) for index in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(outcomes) == 10
        assert session.budget().remaining.amount == 0


def test_the_files_of_a_ledger_are_private(path: Path) -> None:
    protected(path).close()
    for file in path.parent.glob("visits.lapwing.db*"):
        assert os.stat(file).st_mode & 0o077 == 0


@pytest.mark.long
def test_awkward_values_are_counted_as_decided(tmp_path: Path) -> None:
    """NULL units do not exist, NaN is NULL, infinities clamp, and nothing raises."""
    import pyarrow as pa

    table = pa.table(
        {
            "person_id": pa.array([1, 2, 3, 4, 5, None, 6], pa.int64()),
            "plan": ["a", None, "zzz", "b", "b", "a", "a"],
            "cost": [float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 50.0, None],
        }
    )
    pq.write_table(table, tmp_path / "visits.parquet")
    with protected(tmp_path / "visits.parquet", epsilon=2e6, delta=0) as session:
        (whole,) = session.sql(
            "SELECT COUNT(*) AS n, COUNT(cost) AS c, SUM(cost) AS s, AVG(cost) AS m FROM visits", epsilon=1e5
        ).rows()
        assert (whole["n"], whole["c"], round(float(str(whole["s"])))) == (6, 4, 200)
        assert whole["m"] == pytest.approx(50, abs=0.1)
        plans = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=1e5).rows()
        assert plans == [{"plan": "a", "n": 2}, {"plan": "b", "n": 2}, {"plan": "c", "n": 0}]


def test_other_bounds_leave_what_the_curator_added(path: Path) -> None:
    """Public tables, views and promises were written by hand, and no argument of `protect` says them."""
    protected(path).close()
    catalog = path.parent / "visits.lapwing.toml"
    (path.parent / "sites.csv").write_text("plan,size\na,1\n")
    added = '[tables.sites]\npublic = true\nsource = "sites.csv"\n[tables.sites.columns]\nplan = { type = "string" }\n'
    catalog.write_text(f'{catalog.read_text()}\n{added}[views.all]\nsql = "SELECT * FROM visits"\n')
    with protected(path, bounds={"cost": (0, 50)}) as session:
        assert [table.name for table in session.catalog.public_tables] == ["sites"]
        assert [view.name for view in session.catalog.views] == ["all"]
        cost = next(column for column in session.catalog.tables[0].columns if column.name == "cost")
        assert cost.upper == 50
    assert "[views.all]" in catalog.read_text()


def test_a_stored_answer_is_of_one_meaning_of_the_public_tables(path: Path) -> None:
    """Other bounds of a public column are another question, though its file is the same."""
    protected(path).close()
    catalog = path.parent / "visits.lapwing.toml"
    (path.parent / "sizes.csv").write_text("plan,size\na,100\nb,3\n")
    public = """
[tables.sizes]
public = true
source = "sizes.csv"
[tables.sizes.columns]
plan = { type = "string" }
size = { type = "integer", lower = 0, upper = UPPER }
"""
    before = catalog.read_text()
    question = "SELECT SUM(size) AS s FROM visits JOIN sizes USING (plan)"
    for upper in ("1", "100"):
        catalog.write_text(before + public.replace("UPPER", upper))
        with lw.connect(catalog) as session:
            assert not session.sql(question, epsilon=0.5).stored
            assert session.sql(question, epsilon=0.5).stored
