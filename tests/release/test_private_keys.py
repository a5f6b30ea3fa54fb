"""Private group keys: the law by which they are released, what they cost, and that nothing else shows.

Laws are exact: the engine's integers go through the release with every sampler enumerated
(`tests.support.enumeration`), and the laws on neighbouring tables are compared as the loss says.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any, cast

import duckdb as database
import numpy as np
import pyarrow as pa
import pytest
from mpmath import mp, mpf

from lapwing.catalog.model import Table
from lapwing.engines import holders
from lapwing.engines.duckdb import engine as engine_module
from lapwing.engines.duckdb import expressions as render_keys
from lapwing.engines.duckdb import held_keys, stored_rows
from lapwing.engines.duckdb.cleaned import WHOLE, Pass
from lapwing.errors import BudgetExhausted, EngineFault, InvalidParameter, LedgerFault
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import DiscreteLaplace, TruncatedGeometric, WeightedGaussian
from lapwing.opening import open_session
from lapwing.privacy.measures import ApproximateGaussianDP, GaussianDP, PureDP
from lapwing.query.plan import plan
from lapwing.query.pricing.quote import Quote
from lapwing.query.pricing.selection_mechanisms import KeySelectionQuote
from lapwing.release import release, restoring, selecting
from lapwing.release.stored import Purchase, key_of
from lapwing.session import Session
from tests.support.effort import one_in
from tests.support.engines.tables import by_value, holders_of
from tests.support.enumeration import Law, law_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.mechanisms.partition_oracle import geometric_law, weighted_law
from tests.support.privacy.oracle import real
from tests.support.refusals import refused_as
from tests.support.release.small import BUDGETS, GDP, PURE, Row, catalog, exact, opened, priced, row, shown, write


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    with mp.workdps(40):
        yield


BY_TOWN = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
CLOSE = mpf(10) ** -11
DELTA = Fraction(1, 20)


def towns(*held: str) -> list[Row]:
    """Rows of people 1, 2, …, each with the towns that the letters of a text name; a dot is NULL."""
    return [row(person, town=None if t == "." else t) for person, of in enumerate(held, 1) for t in of]


def selection_law(found: Quote, rows: Sequence[Row], folder: Path, **facts: Any) -> Law:
    holders = exact(found.question, catalog(folder, **facts), rows).holders
    return law_of(lambda entropy: tuple(key for (key,) in selecting.selected_keys(found, holders, entropy)))


def hockey_stick(law: Law, other: Law, epsilon: Fraction) -> mpf:
    factor = mp.exp(real(epsilon))
    return mp.fsum(max(mpf(0), p - factor * other.get(outcome, mpf(0))) for outcome, p in law.items())


def coins(found: Quote, epsilon: Fraction, delta: Fraction = DELTA) -> Quote:
    """The same question with a selection whose δ is large enough to be seen."""
    assert found.key_selection is not None
    assert isinstance(found.key_selection.mechanism, TruncatedGeometric)
    mechanism = replace(found.key_selection.mechanism, epsilon=epsilon, delta=delta)
    selecting = KeySelectionQuote(mechanism=mechanism, loss=PureDP(epsilon), delta=delta)
    return replace(found, key_selection=selecting, loss=PureDP(100))


def noisy(found: Quote, sigma: Fraction, delta: Fraction = DELTA) -> Quote:
    """The same with weights in quarters, so that their noise can be enumerated."""
    assert found.key_selection is not None
    assert isinstance(found.key_selection.mechanism, WeightedGaussian)
    mechanism = replace(found.key_selection.mechanism, sigma=sigma, delta=delta, fraction_bits=2)
    selecting = KeySelectionQuote(mechanism=mechanism, loss=GaussianDP(0), delta=delta)
    return replace(found, key_selection=selecting, loss=GaussianDP(100))


def asked(folder: Path, text: str = BY_TOWN, **facts: Any) -> Quote:
    write(folder, [])
    return priced(text, catalog(folder, **facts), epsilon=2, delta=1e-5)


# ---- the law ---------------------------------------------------------------------------------------------------------

TABLES = [("u",), ("uv", "u", "v"), ("u", "u", "u", "v"), ("uu", "uv", "."), ("uv", "vw")]


@pytest.mark.parametrize("held", one_in(5, TABLES), ids="-".join)
def test_the_law_is_the_mechanism_s(tmp_path: Path, held: tuple[str, ...]) -> None:
    check_law(tmp_path, held, BY_TOWN)


def check_law(tmp_path: Path, held: tuple[str, ...], text: str) -> None:
    """A unit holds a key once, however many of its rows have it; NULL is no key."""
    known = [sorted(set(keys) - {"."}) for keys in held]
    holdings = {str(i): "".join(keys) for i, keys in enumerate(known) if keys}
    flipped = coins(asked(tmp_path, text, budget=PURE), Fraction(1))
    wanted = geometric_law(holdings, Fraction(1, 2), DELTA / 2)  # of two keys a unit
    assert_same(selection_law(flipped, towns(*held), tmp_path, budget=PURE), wanted)
    weighed = noisy(asked(tmp_path, text), Fraction(1, 2))
    wanted = weighted_law(holdings, Fraction(1, 2), DELTA, 2, 2)
    assert_same(selection_law(weighed, towns(*held), tmp_path), wanted)


ALONE = ["SELECT town FROM visits GROUP BY town", "SELECT DISTINCT town FROM visits"]


@pytest.mark.long
@pytest.mark.parametrize("text", one_in(2, ALONE))
@pytest.mark.parametrize("held", one_in(2, TABLES[1:3]), ids="-".join)
def test_keys_alone_have_the_same_law(tmp_path: Path, held: tuple[str, ...], text: str) -> None:
    check_law(tmp_path, held, text)


@pytest.mark.parametrize("facts", [{}, {"budget": PURE}], ids=["gdp", "pure"])
def test_keys_alone_take_the_whole_price(tmp_path: Path, facts: dict[str, Any]) -> None:
    """Nothing else is released of them: no noisy number has a part of it."""
    first, second = (asked(tmp_path, text, **facts) for text in ALONE)
    assert first == second
    assert first.terms == ()
    assert first.key_selection is not None
    beside = asked(tmp_path, **facts).key_selection
    assert beside is not None
    assert beside.loss.amount < first.key_selection.loss.amount <= first.loss.amount
    assert first.key_selection.loss.amount > first.loss.amount * Fraction(999, 1000)


def assert_same(found: Law, wanted: Mapping[Any, mpf]) -> None:
    for outcome in found.keys() | wanted.keys():
        assert abs(found.get(outcome, mpf(0)) - wanted.get(outcome, mpf(0))) < CLOSE, outcome


@pytest.mark.long
def test_a_law_without_a_degree_would_be_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: units that put a weight of 1 on each of two keys."""
    forget_degrees(monkeypatch)
    with pytest.raises(AssertionError):
        test_the_law_is_the_mechanism_s(tmp_path, TABLES[1])


def test_null_as_a_key_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_keys, "listed", lambda key: "TRUE")
    with pytest.raises((AssertionError, EngineFault)):
        test_the_law_is_the_mechanism_s(tmp_path, TABLES[3])


def forget_degrees(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = holders.counted

    def one_each(pairs: Any) -> Any:
        found = counted(pairs)
        return found.set_column(1, "degree", [pa.array([1] * found.num_rows, pa.int64())])

    monkeypatch.setattr(held_keys, "counted", one_each)


UNITS = ["u", "uv", "uu", "v."]


def worst(
    folder: Path,
    found: Quote,
    epsilons: Sequence[Fraction],
    allowed: Callable[[Fraction], mpf],
    tables: int = 3,
    **facts: Any,
) -> Iterator[str]:
    """Yield where the laws on neighbouring tables are further apart than allowed: all units added to small tables."""
    laws: dict[tuple[str, ...], Law] = {}

    def law(held: tuple[str, ...]) -> Law:
        if held not in laws:
            laws[held] = selection_law(found, towns(*held), folder, **facts)
        return laws[held]

    for held in [(), ("uv",), ("u",)][:tables]:
        for unit in UNITS:
            for one, other in ((held, (*held, unit)), ((*held, unit), held)):
                for epsilon in epsilons:
                    found_delta = hockey_stick(law(one), law(other), epsilon)
                    if found_delta > allowed(epsilon) + CLOSE:
                        yield f"{one} against {other}: {mp.nstr(found_delta)} at {epsilon}"


def worst_coins(folder: Path, tables: int = 3) -> Iterator[str]:
    found = coins(asked(folder, budget=PURE), Fraction(1))
    return worst(folder, found, [Fraction(1)], lambda _: real(DELTA), tables, budget=PURE)


def worst_weights(folder: Path, tables: int = 3) -> Iterator[str]:
    found, epsilons = noisy(asked(folder), Fraction(1, 4)), [Fraction(x) for x in (0, 1, 4)]
    loss = ApproximateGaussianDP.of(GaussianDP(4), DELTA)
    return worst(folder, found, epsilons, lambda epsilon: mpf(loss.to_delta(epsilon=epsilon)), tables)


TABLES_ADDED_TO = pytest.mark.parametrize("tables", [2, pytest.param(3, marks=pytest.mark.long)])


@pytest.mark.parametrize("tables", [1, pytest.param(3, marks=pytest.mark.long)])
def test_neighbours_differ_by_no_more_than_is_charged(tmp_path: Path, tables: int) -> None:
    assert list(worst_coins(tmp_path, tables)) == []
    assert list(worst_weights(tmp_path, tables)) == []


def test_units_of_more_keys_than_counted_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan.Question, "keys_per_unit", property(lambda question: 1))
    assert next(worst_coins(tmp_path), None)


def test_weights_that_forget_the_degree_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_degrees(monkeypatch)
    assert next(worst_weights(tmp_path), None)


def test_rows_counted_for_units_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holders, "_distinct", np.sort)
    assert next(worst_coins(tmp_path), None)


BY_AGES = BY_TOWN.replace("*", "age")
"""A count that does not select its own keys, also where each unit has one row (`test_one_noise` has those that do)."""


def answer_law(folder: Path, held: tuple[str, ...]) -> Law:
    """The law of keys and counts together: one row a unit, so that a count's noise is small."""
    found = asked(folder, BY_AGES, budget=PURE, most=1)
    (term,) = found.terms
    sharp = replace(term, mechanism=DiscreteLaplace(scale=Fraction(1, 2)))
    bought = replace(coins(found, Fraction(1)), terms=(sharp,))
    exact_answer = exact(found.question, catalog(folder, budget=PURE, most=1), towns(*held))
    charged: Any = type("Charge", (), {"sequence": 3})

    def run(entropy: Entropy) -> Any:
        released = release._answer(Purchase(key="", bought=bought), charged, exact_answer, entropy)
        return released.keys, tuple(tuple(map(int, values)) for values in released.values)

    return law_of(run)


def together(folder: Path, most: int = 3) -> mpf:
    """Return δ at the sum of both epsilons, 1 for the keys and 2 for their counts, over some neighbours."""
    cases = [((), ("u",)), (("v",), ("v", "u")), (("u", "v"), ("u", "v", "u"))]
    pairs = [(answer_law(folder, one), answer_law(folder, other)) for one, other in cases[:most]]
    return max(hockey_stick(p, q, Fraction(3)) for one, other in pairs for p, q in ((one, other), (other, one)))


@pytest.mark.parametrize("most", [2, pytest.param(3, marks=pytest.mark.long)])
def test_keys_and_measures_together_lose_what_is_charged(tmp_path: Path, most: int) -> None:
    assert real(DELTA) / 2 < together(tmp_path, most) <= real(DELTA) + CLOSE


def test_measures_without_noise_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "add_noise", lambda terms, sums, entropy: tuple(sums))
    assert together(tmp_path) > real(DELTA) * 2


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_unit_s_own_keys_appear_with_probability_delta_at_most(tmp_path: Path, budget: str) -> None:
    """By the law of the very mechanism that a question gets."""
    for most in (1, 2, 5):
        found = asked(tmp_path, BY_AGES, budget=BUDGETS[budget], most=most)
        assert found.key_selection is not None
        assert found.delta == Fraction("0.00001")
        for held in range(1, most + 1):
            mechanism: Any = found.key_selection.mechanism
            own = mechanism.chance(1) if isinstance(mechanism, TruncatedGeometric) else mechanism.chance(1, held)
            assert 1 - (1 - own.upper) ** held <= found.delta + Fraction(1, 2**120)
            if isinstance(mechanism, WeightedGaussian):
                looser = replace(mechanism, delta=2 * mechanism.delta)
                assert held < most or 1 - (1 - looser.chance(1, 1).upper) ** 1 > found.delta, "the twin"


# ---- how many units a key needs --------------------------------------------------------------------------------------

OF_TWO = BY_TOWN.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 2)")


@TABLES_ADDED_TO
def test_keys_of_fewer_units_never_appear_and_neighbours_are_as_close(tmp_path: Path, tables: int) -> None:
    flipped = coins(asked(tmp_path, OF_TWO, budget=PURE), Fraction(1))
    weighed = noisy(asked(tmp_path, OF_TWO), Fraction(1, 4))
    loss = ApproximateGaussianDP.of(GaussianDP(4), DELTA)
    for found, budget in ((flipped, PURE), (weighed, GDP)):
        law = selection_law(found, towns("uu", "v", "v"), tmp_path, budget=budget)
        assert set(law) == {(), ("v",)}
    assert list(worst(tmp_path, flipped, [Fraction(1)], lambda _: real(DELTA), tables, budget=PURE)) == []
    within = worst(tmp_path, weighed, [Fraction(0), Fraction(8)], lambda e: mpf(loss.to_delta(epsilon=e)), tables)
    assert list(within) == []


@pytest.mark.long
def test_a_minimum_that_only_drops_keys_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the threshold of one holder, a key's second holder shows."""
    weighed = noisy(asked(tmp_path, OF_TWO), Fraction(1, 4))
    lower: Any = vars(WeightedGaussian)["threshold"].fget
    monkeypatch.setattr(
        WeightedGaussian, "threshold", property(lambda self: lower(self) - (self.minimum - 1) * self.weight(1))
    )
    loss = ApproximateGaussianDP.of(GaussianDP(4), DELTA)
    assert next(worst(tmp_path, weighed, [Fraction(8)], lambda e: mpf(loss.to_delta(epsilon=e))), None)


# ---- rows as units ---------------------------------------------------------------------------------------------------


def test_rows_are_units_of_one_key(tmp_path: Path) -> None:
    facts = {"unit": "row", "budget": PURE}
    found = coins(asked(tmp_path, BY_AGES, **facts), Fraction(1))
    law = selection_law(found, towns("uuv"), tmp_path, **facts)
    assert_same(law, geometric_law({"1": "u", "2": "u", "3": "v"}, Fraction(1), DELTA))


JOINED = "SELECT town || tier AS place, COUNT(*) FROM visits JOIN codes ON visits.plan = codes.plan GROUP BY place"


def test_a_row_of_several_keys_is_refused(tmp_path: Path) -> None:
    """After a join, what a row became bears no mark of it, so its keys cannot be told from those of several rows."""
    with refused_as("private_keys_unproven", saying="2"):
        asked(tmp_path, JOINED, unit="row")
    assert asked(tmp_path, JOINED).question.keys_per_unit == 4


@pytest.mark.long
def test_a_row_of_several_keys_would_be_weighed_as_several_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: without the refusal, one row puts the weight of two on two keys."""
    monkeypatch.setattr(plan.Question, "keys_per_unit", property(lambda question: 1))
    found = noisy(asked(tmp_path, JOINED, unit="row"), Fraction(1, 2))
    law, other = (selection_law(found, towns(held), tmp_path, unit="row") for held in ("u", ""))
    loss = ApproximateGaussianDP.of(GaussianDP(2), DELTA)
    assert hockey_stick(law, other, Fraction(6)) > mpf(loss.to_delta(epsilon=6))


# ---- what the answer shows -------------------------------------------------------------------------------------------


def everybody(count: int = 60) -> list[Row]:
    """Many units, each in one of three towns; every other column takes three values as well."""
    return [
        row(
            n,
            town=["Ulm", "Bonn", "Älm"][n % 3],
            plan="ab"[n % 2],
            day=date(2026, 1, 1 + n % 3),
            seen=datetime(2026, 1, 1, 5, n % 3, 7, n % 3),
            code=2**62 + n % 3,
            age=n % 3,
        )
        for n in range(count)
    ]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, everybody()) as found:
        yield found


@pytest.mark.long
def test_keys_stand_in_the_order_of_their_values_whatever_the_order_of_rows(tmp_path: Path) -> None:
    answers = []
    for place, rows in (("one", everybody()), ("other", everybody()[::-1])):
        (tmp_path / place).mkdir()
        with opened(tmp_path / place, rows, entropy=StreamEntropy("order")) as session:
            answers.append(shown(session.sql(BY_TOWN, epsilon=20, delta=1e-4)))
    assert answers[0] == answers[1]
    assert [found["town"] for found in answers[0]] == ["Bonn", "Ulm", "Älm"]


@pytest.mark.long
def test_noise_falls_on_values_and_not_on_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(tmp_path)
    held = {town: {1: 3 + n, 2: n} for n, town in enumerate(["c", "a", "d", "b"])}
    turned = dict(reversed(held.items()))

    def chosen(held: Any) -> list[Any]:
        weighed = noisy(found, Fraction(4))
        return [selecting.selected_keys(weighed, holders_of(held), StreamEntropy(str(n))) for n in range(40)]

    assert chosen(held) == chosen(turned)
    monkeypatch.setattr(holders, "_order", lambda values: np.arange(len(values)))
    assert chosen(held) != chosen(turned), "the twin"


@pytest.mark.parametrize("key", one_in(7, ["town", "day", "seen", "code", "day, town", "code, plan", "UPPER(town)"]))
def test_a_stored_answer_is_the_same_to_the_last_bit(session: Session, key: str) -> None:
    text = f"SELECT {key}, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY {key}"
    first = session.sql(text, epsilon=20, delta=1e-5)
    with open_session(session.catalog) as later:
        again = later.sql(text, epsilon=20, delta=1e-5)
        less = later.sql(text, epsilon=10, delta=1e-6)
    assert len(first) >= 3
    assert again.stored
    assert less.stored
    assert repr(again.rows()) == repr(first.rows()) == repr(less.rows())
    assert again.mechanisms == first.mechanisms
    assert {name: [list(end) for end in ends] for name, ends in again.interval().items()} == {
        name: [list(end) for end in ends] for name, ends in first.interval().items()
    }


@pytest.mark.long
def test_an_answer_without_keys_is_an_answer(session: Session) -> None:
    text = "SELECT town, plan, COUNT(*) AS n, AVG(age) AS a FROM visits WHERE age > 5 GROUP BY town, plan"
    first = session.sql(text, epsilon=1, delta=1e-5)
    assert shown(first) == []
    assert session.sql(text, epsilon=1, delta=1e-5).stored
    assert first.cost.amount > 0, "that nothing was found is an answer too"


def test_public_keys_stand_beside_every_private_one(session: Session) -> None:
    answer = shown(
        session.sql(
            "SELECT plan, town, COUNT(*) AS n FROM visits WHERE plan = 'a' OR age < 0 GROUP BY plan, town",
            epsilon=30,
            delta=1e-4,
        )
    )
    assert [(found["town"], found["plan"]) for found in answer] == [
        (t, p) for p in "ab" for t in ("Bonn", "Ulm", "Älm")
    ]
    assert all(abs(found["n"] - (10 if found["plan"] == "a" else 0)) < 8 for found in answer)


def write_days(folder: Path, days: Sequence[int]) -> None:
    """Write rows with days since 1970-01-01, also such as no calendar has."""
    values = ", ".join(
        f"({n}, 'Ulm', 'a', 1, 5, DATE '1970-01-01' + {day}::INTEGER, 7, 1.5)" for n, day in enumerate(days)
    )
    columns = "person, town, plan, age, size, day, code, cost"
    with closing(database.connect()) as connection:
        source = f"SELECT *, NULL::TIMESTAMP AS seen FROM (VALUES {values}) AS t({columns})"
        connection.execute(f"COPY ({source}) TO '{folder / 'visits.parquet'}' (FORMAT parquet)")


BEYOND = [18_000] * 60 + [2**31 - 3] * 60 + [-900_000] * 60 + [10_000_000]


def by_day(folder: Path) -> list[dict[str, Any]]:
    """One of the days stands for infinity, one lies before the year 1, one after 9999."""
    write(folder, [])
    write_days(folder, BEYOND)
    with open_session(catalog(folder), entropy=StreamEntropy("days")) as session:
        return shown(session.sql("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", epsilon=20, delta=1e-4))


@pytest.mark.long
def test_days_outside_the_calendar_are_no_keys(tmp_path: Path) -> None:
    """One row with such a day must not stop the question, nor may two days become one on their way out."""
    (found,) = by_day(tmp_path)
    assert found["day"] == date(2019, 4, 14)


@pytest.mark.long
def test_days_that_python_does_not_have_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_keys, "in_calendar", lambda argument: argument)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        by_day(tmp_path)


def replayed(
    folder: Path, rows: Sequence[Row], monkeypatch: pytest.MonkeyPatch, outputs: list[Any] | None
) -> tuple[str, list[Any]]:
    """Ask, with the mechanisms' outputs recorded or replayed, and return everything that shows."""
    folder.mkdir()
    recorded: list[Any] = []

    def record(place: Any, name: str) -> None:
        original = getattr(place, name)

        def played(*arguments: Any) -> Any:
            found = original(*arguments)
            recorded.append(found)
            return found if outputs is None else outputs[len(recorded) - 1]

        monkeypatch.setattr(place, name, played)

    with monkeypatch.context() as patched:
        monkeypatch = patched
        record(WeightedGaussian, "select")
        record(release, "add_noise")
        with opened(folder, rows) as session:
            text = "SELECT town, plan, COUNT(*) AS n, AVG(age) FROM visits GROUP BY town, plan HAVING n > 2 ORDER BY n"
            preview = session.explain(text, epsilon=2, delta=1e-4)
            answer = session.sql(text, epsilon=2, delta=1e-4)
            budget = session.budget()
            again = session.sql(text, epsilon=2, delta=1e-4)
            parts = (preview, answer.rows(), answer.interval(), answer.cost, answer.notes, again.rows(), budget.spent)
            charges = [replace(charge, time="") for charge in budget.history]
    return repr((parts, charges)), recorded


def test_nothing_shows_but_what_the_mechanisms_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, outputs = replayed(tmp_path / "one", everybody(), monkeypatch, None)
    second, _ = replayed(tmp_path / "other", everybody(61)[:0:-1], monkeypatch, outputs)
    assert first == second


def test_a_number_of_units_in_the_notes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: an exact number of keys or units that leaves beside the mechanisms."""
    seen: list[int] = []
    selected = selecting.selected_keys

    def telling(found: Quote, holders: Any, entropy: Entropy) -> Any:
        seen.append(int(holders.units.sum()))
        return selected(found, holders, entropy)

    monkeypatch.setattr(release, "selected_keys", telling)
    monkeypatch.setattr("lapwing.release.answering.notes_of", lambda *_: tuple(map(str, seen)))
    with pytest.raises(AssertionError):
        test_nothing_shows_but_what_the_mechanisms_return(tmp_path, monkeypatch)


# ---- delta -----------------------------------------------------------------------------------------------------------


def deltas(session: Session) -> list[Fraction]:
    return [charge.delta for charge in session.budget().history]


def test_delta_is_charged_once_and_only_for_private_keys(session: Session) -> None:
    assert session.explain(BY_TOWN, epsilon=1, delta=1e-5).delta == Fraction("0.00001")
    assert deltas(session) == []
    session.sql(BY_TOWN, epsilon=1, delta=1e-5)
    session.sql(BY_TOWN, epsilon=1, delta=1e-5)
    session.sql("SELECT plan, COUNT(*) FROM visits GROUP BY plan", epsilon=1, delta=1e-5)
    session.batch(
        [BY_TOWN.replace("town", "day"), BY_TOWN.replace("town", "code"), "SELECT SUM(age) FROM visits"],
        epsilon=1,
        delta=2e-5,
    )
    charged = sorted(deltas(session))
    assert charged == [0, 0, *[Fraction("0.00001")] * 3]


def test_the_choice_of_keys_is_described_before_it_is_paid(session: Session) -> None:
    preview = session.explain(BY_TOWN, epsilon=1, delta=1e-5)
    assert [column.selected for column in preview.columns] == [column.name == "town" for column in preview.columns]
    chosen = preview.selection
    assert chosen is not None
    assert chosen.keys == ("town",)
    assert chosen.mechanism == WeightedGaussian.name
    assert chosen.scale is not None
    assert chosen.threshold is not None
    assert chosen.delta == pytest.approx(1e-5)
    assert 0 < chosen.price_share < 1
    assert chosen.fewest_units is not None
    # The chance that a key of so many units passes the threshold, of noise with this scale: 95 %.
    assert NormalDist(chosen.fewest_units, chosen.scale).cdf(chosen.threshold) <= 0.05
    assert NormalDist(chosen.fewest_units - 1, chosen.scale).cdf(chosen.threshold) > 0.049
    assert session.explain("SELECT plan, COUNT(*) FROM visits GROUP BY plan", epsilon=1).selection is None


def test_columns_are_called_what_the_question_calls_them(session: Session) -> None:
    text = "SELECT place, COUNT(*) FROM (SELECT person, MAX(town) AS place FROM visits GROUP BY person) GROUP BY place"
    with refused_as("needs_delta", saying="place"):
        session.sql(text, epsilon=1)
    with refused_as("needs_delta", saying="town"):
        session.sql("SELECT UPPER(town), COUNT(*) FROM visits GROUP BY 1", epsilon=1)


def test_delta_is_capped_on_every_path(session: Session) -> None:
    for number in range(5):
        session.sql(f"{BY_TOWN.replace(' GROUP', f' WHERE age > {number - 3} GROUP')}", epsilon=1, delta=1e-4)
    assert sum(deltas(session)) == Fraction("0.0005")
    before = session.budget()
    for refused in (
        lambda: session.sql("SELECT code, COUNT(*) FROM visits GROUP BY code", epsilon=1, delta=1e-24),
        lambda: session.batch(["SELECT SUM(cost) FROM visits", BY_TOWN.replace("town", "day")], epsilon=1, delta=1e-9),
    ):
        with pytest.raises(BudgetExhausted, match="kept for keys is left"):
            refused()
    assert session.budget().spent == before.spent
    assert session.budget().history == before.history
    session.sql("SELECT SUM(cost) FROM visits", epsilon=1)
    with pytest.raises(BudgetExhausted, match="kept for keys"):  # a sharper one is bought afresh, keys and all
        session.sql(BY_TOWN.replace(" GROUP", " WHERE age > -3 GROUP"), epsilon=2, delta=1e-4)


@pytest.mark.long
def test_sessions_at_once_do_not_overspend_delta(tmp_path: Path) -> None:
    opened(tmp_path, everybody()).close()

    def spend(number: int) -> int:
        with open_session(catalog(tmp_path)) as own:
            granted = 0
            for turn in range(4):
                try:
                    where = f" WHERE age > {10 * number + turn - 200} GROUP"
                    own.sql(BY_TOWN.replace(" GROUP", where), epsilon=0.5, delta=1e-4)
                    granted += 1
                except BudgetExhausted:
                    pass
            return granted

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(spend, range(4))) == 5
    with open_session(catalog(tmp_path)) as session:
        assert sum(deltas(session)) == Fraction("0.0005")


@pytest.mark.parametrize(
    ("facts", "ask", "reason"),
    one_in(
        2,
        [
            ({}, {}, "needs_delta"),
            ({"budget": "epsilon = 1\ndelta = 1e-6"}, {"delta": 1e-7}, "needs_delta"),
            ({"budget": GDP + '\nneighbouring = "replace_one"'}, {"delta": 1e-7}, "private_keys_unproven"),
            ({"most": 20_000}, {"delta": 1e-7}, "needs_max_groups"),
        ],
        many=True,
    ),
)
def test_keys_that_cannot_be_selected_are_refused(tmp_path: Path, facts: Any, ask: Any, reason: str) -> None:
    with opened(tmp_path, everybody(), **facts) as session:
        with refused_as(reason):
            session.sql(BY_TOWN, epsilon=1, **ask)
        assert session.budget().history == ()


def test_groups_bound_the_keys_of_a_unit(tmp_path: Path) -> None:
    text = BY_TOWN.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 3)")
    found = asked(tmp_path, text, most=20_000)
    assert found.question.keys_per_unit == 3
    laws = selection_law(noisy(found, Fraction(1, 4)), towns("uvwx"), tmp_path, most=20_000)
    assert max(len(cast(tuple[str, ...], keys)) for keys in laws) == 3, "the other keys are not held"


@pytest.mark.parametrize("delta", one_in(3, [0, -1e-9, 1, 2, float("nan"), "x", True]))
def test_a_delta_that_is_none_is_refused(session: Session, delta: Any) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        session.sql(BY_TOWN, epsilon=1, delta=delta)
    if delta != 0:
        with pytest.raises(InvalidParameter, match="delta"):
            session.sql("SELECT COUNT(*) FROM visits", epsilon=1, delta=delta)
    assert session.budget().history == ()


@pytest.mark.long
def test_passes_over_units_find_the_same_holders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit is in one pass with all its rows, so that what passes find adds up, also of who holds how many keys."""
    rows = towns("uv", "u", "vw", "uw", "w", "ww", "u.")
    for text in (
        BY_TOWN,
        BY_TOWN.replace("COUNT(*)", "COUNT(DISTINCT age)"),
        BY_TOWN.replace("COUNT(*)", "MEDIAN(age)"),
    ):
        question = asked(tmp_path, text).question
        whole = exact(question, catalog(tmp_path), rows)
        with monkeypatch.context() as patched:
            patched.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *facts: 3)
            parts = exact(question, catalog(tmp_path), rows)
        assert by_value(parts.holders) == by_value(whole.holders)
        assert parts.cells == whole.cells
        assert by_value(whole.holders)[("u",)] == {1: 2, 2: 2}


def test_units_are_looked_at_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when there are too many to be held in memory together, with one pass over the file and with several."""
    rows = [found for n in range(0, 300, 7) for found in towns(*["uv", "u", "vw", "uw", "w", "ww", "u."])]
    rows = [found | {"person": 7 * (place // 9) + found["person"]} for place, found in enumerate(rows)]
    question = asked(tmp_path).question
    whole = exact(question, catalog(tmp_path), rows)

    def same() -> bool:
        return by_value(exact(question, catalog(tmp_path), rows).holders) == by_value(whole.holders)

    for passes in (1, 3):
        monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_, passes=passes: passes)
        monkeypatch.setattr(held_keys, "BYTES_A_PAIR", 2 * 10**9 // len(rows))
        assert len(parts_of(question, catalog(tmp_path))) >= 3
        assert same()
    chosen = stored_rows.stored

    def first(table: Table, rows: str, part: Pass = WHOLE, within: Pass = WHOLE) -> str:
        return chosen(table, rows, part, replace(within, index=0))

    monkeypatch.setattr(stored_rows, "stored", first)
    assert not same(), "the twin: a part that is counted for all"


def parts_of(question: plan.Question, described: Any) -> Any:
    with closing(engine_module.DuckDB(described)) as engine:
        return engine._key_parts(question)


@pytest.mark.parametrize(
    "change",
    one_in(
        9,
        [
            {"format": 3},
            {"format": 1},
            {"keys": [[["plain"]]]},
            {"keys": None},
            {"mechanisms": [["unknown noise", "1"]]},
            {"mechanisms": [["rounded Gaussian", "-1"]]},
            {"selection": ["weighted Gaussian", "1"]},
            {"values": 7},
            {"measures": []},
        ],
    ),
)
def test_a_payload_of_another_version_is_a_fault(session: Session, change: dict[str, Any]) -> None:
    """And says so, whatever is in it."""
    question = priced(BY_TOWN, session.catalog, epsilon=5, delta=1e-5).question
    session.sql(BY_TOWN, epsilon=5, delta=1e-5)
    (stored,) = session._ledger.answers(key_of(question))
    assert restoring.read(question, stored.payload).keys is not None
    with pytest.raises(LedgerFault, match="did not write this stored result"):
        restoring.read(question, json.dumps(json.loads(stored.payload) | change))


@pytest.mark.long
def test_what_can_be_said_about_keys_is_said_before_they_are_paid(tmp_path: Path) -> None:
    """Of keys that nobody can hold often enough too: there is nothing left to fail once the price is paid."""
    many = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 1000000000)"
    with opened(tmp_path, everybody(), most=50) as session:
        answer = session.sql(BY_TOWN.replace("SELECT", many), epsilon=1, delta=1e-6)
        assert shown(answer) == []
        assert any("may still be missing" in note for note in answer.notes)


def test_notes_that_fail_cost_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.release.answering.notes_of", lambda *_: pytest.fail("no notes"))
    with pytest.raises(pytest.fail.Exception):
        session.sql(BY_TOWN, epsilon=1, delta=1e-6)
    assert session.budget().history == ()
