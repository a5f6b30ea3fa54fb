"""What a question says about its own privacy: what each option means, what it moves, and what contradicts it.

The sensitivities that follow from options are found by brute force: every unit of up to four rows goes through the SQL
that runs, and its vector over the cells is compared with what is claimed.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.engines import DuckDB
from lapwing.engines.duckdb import clamped_sums, group_limits
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.cleaned import Location, layer
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity import stability
from lapwing.query.sensitivity.stability import SensitivityBound
from lapwing.release.cells import cells_of
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as
from tests.support.release.small import GDP, catalog, opened, row, shown

Vector = tuple[int, ...]
TYPES = {
    "person": "BIGINT",
    "town": "VARCHAR",
    "plan": "VARCHAR",
    "age": "BIGINT",
    "size": "BIGINT",
    "day": "DATE",
    "seen": "TIMESTAMP",
    "code": "BIGINT",
    "cost": "DOUBLE",
}
PLANS, AGES, COSTS = ["a", "b", None], [-1, 3, None], [0.0, 8.0]


def said(options: str, text: str) -> str:
    return text.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options})", 1)


BOUNDS = ["0, 2", "-1, 1", "2, 5", "-3, -2", "1, 1", "0, 0"]
PER_GROUP = [f"SUM(age, contribution_bounds_per_group => ({ends}))" for ends in BOUNDS]
COUNTS = [f"COUNT(*, contribution_bounds_per_group => ({ends}))" for ends in BOUNDS]
PER_ROW = [f"SUM(age, contribution_bounds_per_row => ({ends}))" for ends in ("0, 1", "2, 2", "-1, 9", "-2, 0")]
SPREADS = ["VAR_POP(age)", "COVAR_POP(age, cost)", "CORR(age, cost)", "STDDEV(age) FILTER (WHERE cost > 1)"]
AGGREGATES = ["COUNT(*)", "SUM(age)", "COUNT(DISTINCT person)", "AVG(age)", *PER_GROUP, *COUNTS, *PER_ROW, *SPREADS]
FROM = ["SELECT {} FROM visits", "SELECT plan, {} FROM visits GROUP BY plan"]
QUESTIONS = [form.format(aggregate) for aggregate in AGGREGATES for form in FROM]
QUESTIONS += [
    said(f"max_rows_contributed = {most}", form.format(a)) for form in FROM for a in AGGREGATES[:6] for most in (1, 2)
]
QUESTIONS += [said("max_groups_contributed = 1", FROM[1].format(a)) for a in AGGREGATES]


@pytest.fixture(scope="module")
def units() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every unit of up to four rows, a few at a time."""
    kinds = list(product(PLANS, AGES, COSTS))
    few = kinds[::3]
    tables = [t for size in (1, 2) for t in combinations_with_replacement(kinds, size)]
    tables += [t for size in (3, 4) for t in combinations_with_replacement(few, size)]
    people = [(n, *values) for n, table in enumerate(tables) for values in table]
    columns = list(zip(*people, strict=True))
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT unnest($1::BIGINT[]) AS person, 'Ulm' AS town, "
            "unnest($2::VARCHAR[]) AS plan, unnest($3::BIGINT[]) AS age, 5::BIGINT AS size, "
            "DATE '2026-01-01' AS day, TIMESTAMP '2026-01-01' AS seen, "
            "7::BIGINT AS code, unnest($4::DOUBLE[]) AS cost",
            [list(column) for column in columns],
        )
        yield connection


def question_of(text: str, **facts: Any) -> Question:
    return bind(text, catalog(Path(), most=3, **facts)).question


def vectors_of(question: Question, connection: duckdb.DuckDBPyConnection) -> list[set[Vector]]:
    """Return, for each measure, the vectors that units add, and the one of nobody."""
    keys, asked = len(question.keys), render.answer(question)
    unit = "holder" if " AS holder" in asked else "unit"
    grouped = " GROUP BY 1" if keys else ""
    assert asked.endswith(grouped)
    asked = asked.removesuffix(grouped).replace("SELECT ", f"SELECT {unit}, ", 1)
    kept = layer(question.table, Location(relation="visits", types=TYPES), True)
    by = ", ".join(str(i + 1) for i in range(keys + 1))
    places = {cell: i for i, cell in enumerate(cells_of(question))}
    found: list[dict[int, list[int]]] = [{-1: [0] * len(places)} for _ in question.measures]
    for person, *values in connection.execute(f"WITH {kept} {asked} GROUP BY {by}").fetchall():
        for added, value in zip(found, values[keys:], strict=True):
            added.setdefault(person, [0] * len(places))[places[tuple(values[:keys])]] += value
    return [set(map(tuple, added.values())) for added in found]


def farthest(found: set[Vector], neighbouring: str) -> tuple[int, int]:
    nobody = (0,) * len(next(iter(found)))
    moves = [
        [abs(x - y) for x, y in zip(one, other, strict=True)]
        for one in found
        for other in (found if neighbouring == "replace_one" else {nobody})
    ]
    return max(map(sum, moves)), max(sum(d * d for d in move) for move in moves)


def too_small(text: str, connection: duckdb.DuckDBPyConnection, neighbouring: str, **facts: Any) -> list[str]:
    """Return which candidates are less than what some unit moves; each of them must hold by itself."""
    question = question_of(text, **facts)
    found = zip(vectors_of(question, connection), stability.of_question(question, neighbouring), strict=True)
    wrong = []
    for vectors, candidates in found:
        l1, l2_squared = farthest(vectors, neighbouring)
        for candidate in candidates:
            claim = candidate.sensitivity
            if claim.l1 < l1 or claim.l2_squared < l2_squared:
                wrong.append(f"{text}: {candidate.reason}: {claim} < {l1}, {l2_squared}")
    return wrong


@pytest.mark.parametrize("neighbouring", one_in(2, ["replace_one", "add_remove"]))
@pytest.mark.parametrize("plan", one_in(2, [', other = "rest"', ""]))
@pytest.mark.parametrize("part", one_in(6, range(6)))
def test_no_unit_moves_a_measure_further_than_any_claim(
    neighbouring: str, plan: str, part: int, units: duckdb.DuckDBPyConnection
) -> None:
    assert [wrong for text in QUESTIONS[part::6] for wrong in too_small(text, units, neighbouring, plan=plan)] == []


def tight(text: str, connection: duckdb.DuckDBPyConnection, neighbouring: str) -> bool:
    question = question_of(text)
    return all(
        farthest(vectors, neighbouring)
        == (min(c.sensitivity.l1 for c in candidates), min(c.sensitivity.l2_squared for c in candidates))
        for vectors, candidates in zip(
            vectors_of(question, connection), stability.of_question(question, neighbouring), strict=True
        )
    )


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "text",
    [
        said("max_rows_contributed = 2", FROM[0].format("SUM(age)")),
        said("max_rows_contributed = 1", FROM[1].format("COUNT(*)")),
        FROM[0].format(PER_GROUP[0]),
        FROM[1].format(PER_GROUP[1]),
        FROM[0].format(COUNTS[0]),
        FROM[0].format(PER_ROW[0]),
        said("max_groups_contributed = 1", FROM[1].format(PER_GROUP[2])),
        said("max_groups_contributed = 1", FROM[1].format("COUNT(DISTINCT person)")),
    ],
)
def test_some_unit_moves_it_as_far(text: str, neighbouring: str, units: duckdb.DuckDBPyConnection) -> None:
    assert tight(text, units, neighbouring)


def found(units: duckdb.DuckDBPyConnection, first: int) -> bool:
    """Tell whether a question, from that of a number on, shows the bug."""
    return any(too_small(text, units, way) for text in QUESTIONS[first:] for way in ("add_remove", "replace_one"))


@pytest.mark.parametrize(
    ("place", "name", "bug", "first"),
    [
        (group_limits, "numbered", lambda function, unit, order, most: "row_number() OVER () > 0", 48),
        (clamped_sums, "clamp", lambda value, *_: value, 8),
    ],
)
def test_a_bound_that_is_not_kept_is_found(
    place: Any, name: str, bug: Any, first: int, units: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, bug)
    assert found(units, first)


def test_values_that_are_not_clamped_are_found(
    units: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is claimed follows from the clamped value."""
    plain, clamp = vars(render)["expression"], vars(render)["clamp"]
    monkeypatch.setattr(render, "expression", lambda node: '"age"' if "least" in str(node) else plain(node))
    monkeypatch.setattr(render, "clamp", lambda value, *ends: value if ends == (0, 1) else clamp(value, *ends))
    assert found(units, 32)


def test_a_clamp_away_from_zero_that_forgets_absent_units_is_found(
    units: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that comes adds at least 2, one that is absent 0; between 2 and 5 lie 3, between 0 and 5 lie 5."""

    def narrow(
        clamp: tuple[int, int], _step: Fraction, groups: int, _cells: int, _replace_one: bool
    ) -> SensitivityBound:
        return stability._candidate(groups * (clamp[1] - clamp[0]), groups * (clamp[1] - clamp[0]) ** 2, "")

    monkeypatch.setattr(stability, "_clamped", narrow)
    assert found(units, 12)


def test_rows_that_hold_under_any_clamp_are_found(
    units: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound by rows says nothing of a unit whose every sum is moved up to 2."""
    candidates = stability.sensitivity_bounds

    def both(measure: Any, **facts: Any) -> tuple[SensitivityBound, ...]:
        if not isinstance(measure, Count | Sum) or measure.clamp is None:
            return candidates(measure, **facts)
        rows = stability._rows(measure, facts["rows_per_unit"], facts["cells"], facts["neighbouring"] == "replace_one")
        return (*candidates(measure, **facts), rows)

    monkeypatch.setattr(stability, "sensitivity_bounds", both)
    assert found(units, 25)


# ---- what the options mean -------------------------------------------------------------------------------------------

BY_SIZE = "SELECT size, COUNT(*) AS n FROM visits GROUP BY size"
BY_PLAN = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
BY_TOWN = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
PEOPLE = [row(n, plan="ab"[n % 2], age=3, cost=float(m)) for n in range(50) for m in range(3)]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, PEOPLE, most=3, budget=GDP.replace("100", "100000")) as session:
        yield session


@pytest.mark.parametrize(
    ("text", "true"),
    only(
        [0],
        [
            (FROM[0].format("COUNT(*) AS n"), 150),
            (said("max_rows_contributed = 2", FROM[0].format("COUNT(*) AS n")), 100),
            (said("max_rows_contributed = 2", FROM[0].format("SUM(age) AS n") + " WHERE cost > 0"), 300),
            (said("max_rows_contributed = 1", FROM[0].format("COUNT(*) AS n") + " WHERE cost > 1"), 50),
            (FROM[0].format("SUM(age, contribution_bounds_per_group => (0, 4)) AS n"), 200),
            (FROM[0].format("SUM(age, contribution_bounds_per_row => (0, 2)) AS n"), 300),
            (FROM[0].format("COUNT(*, contribution_bounds_per_group => (0, 1)) AS n"), 50),
            (FROM[0].format("SUM(cost, contribution_bounds_per_group => (1, 2)) AS n"), 100),
            (
                said(
                    "max_groups_contributed = 1",
                    "SELECT size, COUNT(*) AS n FROM visits GROUP BY size LIMIT 1 OFFSET 1",
                ),
                150,
            ),
        ],
        many=True,
    ),
)
def test_the_bounded_answer(session: Session, text: str, true: int) -> None:
    answer = session.sql(text, epsilon=3000)
    assert abs(float(shown(answer)[0]["n"]) - true) < 3


def test_an_option_that_bounds_nothing_changes_nothing(session: Session) -> None:
    session.sql(BY_PLAN, epsilon=1)
    for option in ("max_rows_contributed = 3", "max_groups_contributed = 3", "max_rows_contributed = 1000000000"):
        assert session.sql(said(option, BY_PLAN), epsilon=1).stored
    for option in ("privacy_unit_column = person", "privacy_unit_column = visits.person", "delta = 1e-6"):
        assert session.sql(said(option, BY_PLAN), epsilon=1).stored


def test_tighter_bounds_promise_less_noise(session: Session) -> None:
    text = "SELECT COUNT(*) AS n FROM visits"
    loose, tight = (
        session.explain(t, epsilon=1).measures[0].scale for t in (text, said("max_rows_contributed = 1", text))
    )
    assert abs(loose / tight - 3) < 1e-9


def test_the_question_says_its_price(session: Session) -> None:
    text = said("epsilon = 0.25", "SELECT COUNT(*) AS n FROM visits")
    assert session.explain(text).price == session.price(0.25)
    assert session.sql(text).cost == session.price(0.25)
    assert session.sql(text, epsilon=0.25).stored, "the same price in both places is no contradiction"


def test_aggregates_say_their_part_of_the_price(session: Session) -> None:
    """The others share what is left; where all say a part, the question costs no more than they."""
    text = "SELECT COUNT(*, epsilon => 0.5) AS n, SUM(age) AS s, SUM(cost) AS c FROM visits"
    widths = {c.name: c.half_width for c in session.explain(text, epsilon=2).columns}
    alone = session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=0.5).columns[0].half_width
    assert widths["n"] == alone
    assert session.sql(text, epsilon=2).cost == session.price(2)
    both = "SELECT COUNT(*, epsilon => 0.5) AS n, SUM(age, epsilon => 0.5) AS s FROM visits"
    assert session.explain(both, epsilon=3).price.amount == 2 * session.price(0.5).amount


SELECTING = "epsilon = 1, delta = 1e-6, group_selection_epsilon = 0.7"


def test_the_selection_of_keys_says_its_part(session: Session) -> None:
    text = said(SELECTING, BY_TOWN)
    less = said(SELECTING.replace("0.7", "0.1"), BY_TOWN)
    many, few = (session.explain(t).columns[1].half_width for t in (text, less))
    assert many is not None
    assert few is not None
    assert many > few
    assert session.explain(text).price == session.price(1)
    assert session.explain(text).delta == Fraction("0.000001")


ONE = {"epsilon": 1}


@pytest.mark.parametrize(
    ("text", "ask", "reason"),
    one_in(
        6,
        [
            (said("epsilon = 0.5", "SELECT COUNT(*) FROM visits"), ONE, "give one of them"),
            (said("epsilon = 0.5", "SELECT COUNT(*) FROM visits"), {"error": 1}, "not both"),
            ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "error": 1}, "not both"),
            ("SELECT COUNT(*) FROM visits", {}, "has no cost yet"),
            ("SELECT SUM(age, epsilon => 0.5) FROM visits", {"error": 10}, "its own epsilon"),
            ("SELECT SUM(age, epsilon => 0.5), COUNT(*) FROM visits", {"epsilon": 0.5}, "more than its cost"),
            ("SELECT SUM(age, epsilon => 0.5) FROM visits", {"epsilon": 0.4}, "more than its cost"),
            (said(SELECTING, BY_TOWN), {"delta": 1e-5}, "delta"),
            (said("group_selection_epsilon = 0.1", BY_PLAN), ONE, "no private keys"),
            (said("min_privacy_units_per_group = 5", BY_PLAN), ONE, "of any size"),
            (said("group_selection_strategy = PUBLIC_GROUPS", BY_TOWN), {"epsilon": 1, "delta": 1e-6}, "not public"),
            (said("privacy_unit_column = town", "SELECT COUNT(*) FROM visits"), ONE, "not the privacy unit"),
            (FROM[0].format("MEDIAN(age, contribution_bounds_per_group => (0, 1))"), ONE, "takes no"),
            (FROM[0].format("COUNT(*, contribution_bounds_per_row => (0, 1))"), ONE, "takes no"),
            (FROM[0].format("SUM(age, contribution_bounds_per_group => (0.2, 0.4))"), ONE, "No value lies"),
            (FROM[0].format("SUM(age, contribution_bounds_per_group => (-1e30, 1e30))"), ONE, "sigma"),
            (FROM[0].format(f"{PER_GROUP[0]}, COUNT(DISTINCT age)"), ONE, "not a sum over units"),
            ("EXPLAIN PRIVACY SELECT COUNT(*) FROM visits", ONE, "asks for a cost"),
        ],
        many=True,
    ),
)
def test_contradictions_are_refused_and_cost_nothing(session: Session, text: str, ask: Any, reason: str) -> None:
    with pytest.raises((InvalidParameter, QueryRefused), match=reason):
        session.sql(text, **ask)
    assert session.budget().history == ()


JOINED = "SELECT COUNT(*) FROM visits JOIN codes ON visits.plan = codes.plan"


@pytest.mark.parametrize(
    "text",
    one_in(
        3,
        [
            said("max_rows_contributed = 1", JOINED),
            said("max_groups_contributed = 1", f"{JOINED} GROUP BY codes.tier".replace("COUNT", "codes.tier, COUNT")),
            "SELECT SUM(age, contribution_bounds_per_group => (0, 1)) FROM visits",
        ],
    ),
)
def test_rows_as_units_take_no_bounds_of_units(tmp_path: Path, text: str) -> None:
    """After a join, nothing tells which rows one row became: there is nothing to number them by."""
    with opened(tmp_path, PEOPLE, unit="row") as session:
        with refused_as("inapplicable_option"):
            session.sql(text, epsilon=1)
        assert session.budget().history == ()


def test_units_that_a_subquery_does_not_name_are_bounded_all_the_same(session: Session) -> None:
    text = said(
        "max_groups_contributed = 1", "SELECT size, COUNT(*) AS n FROM (SELECT size, plan FROM visits) GROUP BY size"
    )
    assert abs(shown(session.sql(text, epsilon=3000))[1]["n"] - 150) < 3


def test_explain_touches_no_data(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an engine nor a file, and it tells the same of other data."""
    texts = [
        (said(SELECTING, BY_TOWN), {}),
        (
            said(
                "max_rows_contributed = 1", "SELECT plan, AVG(age) AS a, DP_INTERVAL_LOW(a) FROM visits GROUP BY plan"
            ),
            {"epsilon": 1},
        ),
        ("EXPLAIN PRIVACY SELECT VAR_POP(cost) FROM visits", {"epsilon": 1}),
    ]
    before = [session.explain(text, **ask) for text, ask in texts]  # type: ignore[arg-type]
    for name in ("run", "digest"):
        monkeypatch.setattr(DuckDB, name, lambda *arguments: pytest.fail("data were touched"))
    (tmp_path / "visits.parquet").unlink()
    assert [session.explain(text, **ask) for text, ask in texts] == before  # type: ignore[arg-type]
    assert session.budget().history == ()


def test_parameters_take_the_place_of_constants(session: Session) -> None:
    """The same constant, written or given, is the same question."""
    session.sql("SELECT COUNT(*) AS n FROM visits WHERE plan = 'a' AND age >= 2.5", epsilon=1)
    assert session.sql("SELECT COUNT(*) AS n FROM visits WHERE plan = ? AND age >= ?", ["a", 2.5], epsilon=1).stored
    named = {"plan": "a", "least": Fraction(5, 2)}
    assert session.sql("SELECT COUNT(*) AS n FROM visits WHERE plan = $plan AND age >= $least", named, epsilon=1).stored
    assert session.explain("SELECT COUNT(*) AS n FROM visits WHERE plan = ? AND age >= ?", ["a", 2.5], epsilon=1).stored
    assert not session.sql("SELECT COUNT(*) AS n FROM visits WHERE plan = ? AND age >= 2.5", ["b"], epsilon=1).stored


@pytest.mark.long
def test_ends_of_intervals_are_columns(session: Session) -> None:
    """They are the ends that `interval` gives at 95 %, and cost nothing."""
    plain = "SELECT plan, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY plan"
    text = plain.replace(
        "AS a", "AS a, DP_INTERVAL_LOW(s) AS lo, DP_INTERVAL_HIGH(s) AS hi, DP_INTERVAL_HIGH(a) AS top"
    )
    answer = session.sql(text, epsilon=1)
    assert session.sql(plain, epsilon=1).stored
    ends = answer.interval()
    for i, line in enumerate(shown(answer)):
        assert (float(line["lo"]), float(line["hi"])) == (ends["s"][0][i], ends["s"][1][i])
        assert abs(float(line["top"]) - ends["a"][1][i]) < 1e-12
