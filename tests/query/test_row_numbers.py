"""How many numbered rows a condition lets through: never more than the limit that is found, by trying them all."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import duckdb
import pytest

from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import LapwingError
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import arithmetic
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.types import BOOLEAN, Fixed
from lapwing.query.plan.plan import Plan
from lapwing.query.relations import row_numbers, unit_join
from tests.support.effort import is_long, numbers, one_in
from tests.support.release import small

REAL_LINE = row_numbers._line
MEANING: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "equal": eq, "less_equal": le, "less": lt, "greater": gt, "greater_equal": ge, "not_equal": ne,
}  # fmt: skip
NUMBER = Fixed(step=Fraction(1, 2), low=-200, high=200)
ROWS = 12
LINES: dict[str, Callable[[Expression], Expression]] = {
    "n": lambda n: n,
    "n + 2": lambda n: operation("add", n, literal(2)),
    "3 + n": lambda n: operation("add", literal(3), n),
    "n - 1": lambda n: operation("subtract", n, literal(1)),
    "5 - n": lambda n: operation("subtract", literal(5), n),
    "-n": lambda n: operation("negate", n),
    "n * 3": lambda n: operation("multiply", n, literal(3)),
    "-2 * n": lambda n: operation("multiply", literal(-2), n),
    "n * 0": lambda n: operation("multiply", n, literal(0)),
    "rescaled": lambda n: operation("rescale", n),
    "1 - (n + 2) * -2": lambda n: operation(
        "subtract", literal(1), operation("multiply", operation("add", n, literal(2)), literal(-2))
    ),
    "n * n": lambda n: operation("multiply", n, n),
    "|n|": lambda n: operation("absolute", n),
}
VALUES: dict[str, Callable[[Fraction], Fraction]] = {
    "n": lambda n: n, "n + 2": lambda n: n + 2, "3 + n": lambda n: 3 + n, "n - 1": lambda n: n - 1,
    "5 - n": lambda n: 5 - n, "-n": lambda n: -n, "n * 3": lambda n: n * 3, "-2 * n": lambda n: -2 * n,
    "n * 0": lambda n: n * 0, "rescaled": lambda n: n, "1 - (n + 2) * -2": lambda n: 1 - (n + 2) * -2,
    "n * n": lambda n: n * n, "|n|": abs,
}  # fmt: skip
BOUNDS = [Fraction(value) for value in (-7, -3, 0, 1, "3/2", 2, "5/2", 4, 9)]
CASES = list(product(MEANING, LINES, BOUNDS, (False, True)))
Case = tuple[str, str, Fraction, bool]


def operation(function: str, *arguments: Expression) -> Operation:
    return Operation(function=function, arguments=arguments, type=NUMBER)


def literal(value: Fraction | int) -> Literal:
    return Literal(value=Fraction(value), type=NUMBER)


def condition(function: str, line: str, bound: Fraction, turned: bool) -> Expression:
    sides = (LINES[line](ColumnReference(name="r", type=NUMBER)), literal(bound))
    return Operation(function=function, arguments=sides[::-1] if turned else sides, type=BOOLEAN)


def holds(case: Case, number: int) -> bool:
    function, line, bound, turned = case
    sides = VALUES[line](Fraction(number)), bound
    return MEANING[function](*(sides[::-1] if turned else sides))


def allowed(condition: Expression, number: int) -> bool:
    ranges = row_numbers.admitted(condition).get("r", ((1, None),))
    return any(low <= number and (high is None or number <= high) for low, high in ranges)


def wrong() -> list[Case]:
    """Return the conditions that let a number through which is not admitted."""
    return [case for case in CASES if any(holds(case, n) and not allowed(condition(*case), n) for n in range(1, ROWS))]


def test_what_a_comparison_lets_through_is_admitted() -> None:
    assert not wrong()
    # And nothing else, where a column times a number, plus another, stands beside a constant.
    linear = [case for case in CASES if case[0] != "not_equal" and case[1] not in ("n * 0", "n * n", "|n|")]
    for case in linear:
        assert [n for n in range(1, ROWS) if allowed(condition(*case), n)] == [
            n for n in range(1, ROWS) if holds(case, n)
        ], case


@pytest.mark.long
@pytest.mark.parametrize("count", [300, pytest.param(3_000, marks=pytest.mark.long)])
def test_compound_conditions_admit_what_they_let_through(count: int) -> None:
    chance = Random(7)
    for _ in range(count):
        cases = [chance.choice(CASES) for _ in range(3)]
        first, second = chance.choice(["and", "or"]), chance.choice(["and", "or"])
        parts = [condition(*case) for case in cases]
        inner = Operation(function=first, arguments=(parts[0], parts[1]), type=BOOLEAN)
        whole = Operation(function=second, arguments=(inner, parts[2]), type=BOOLEAN)
        meaning = {"and": all, "or": any}
        for n in range(1, ROWS):
            both = meaning[first]([holds(cases[0], n), holds(cases[1], n)])
            assert allowed(whole, n) or not meaning[second]([both, holds(cases[2], n)])


@pytest.mark.long
@pytest.mark.parametrize(
    "planted",
    one_in(
        3,
        [
            lambda value: (value.name, Fraction(1), Fraction(0)) if isinstance(value, ColumnReference) else None,
            lambda value: ("r", Fraction(1), Fraction(0)) if isinstance(value, Operation) else REAL_LINE(value),
            lambda value: (lambda line: line and (line[0], line[1], -line[2]))(REAL_LINE(value)),
            lambda value: (lambda line: line and (line[0], abs(line[1]), line[2]))(REAL_LINE(value)),
        ],
    ),
)
def test_twins_a_line_that_is_read_wrongly_is_found(planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_numbers, "_line", planted)
    with pytest.raises(AssertionError):
        test_what_a_comparison_lets_through_is_admitted()


# ---- over relations: no unit has more rows than is said --------------------------------------------------------------

NUMBERED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY person ORDER BY code, age) AS rn FROM visits)"
SOURCES = {
    "plain": f"{NUMBERED} v",
    "public": f"{NUMBERED} v JOIN codes USING (plan)",
    "public, left": f"{NUMBERED} v LEFT JOIN codes USING (plan)",
    "unnested": f"{NUMBERED} v, UNNEST([1, 2, 3]) AS t(x)",
    "windows": f"(SELECT *, LAG(age) OVER (PARTITION BY person ORDER BY code) AS before FROM {NUMBERED}) v",
    "distinct": f"(SELECT DISTINCT person, rn, plan FROM {NUMBERED}) v",
    "united": f"(SELECT person, rn FROM {NUMBERED} UNION ALL SELECT person, rn FROM {NUMBERED}) v",
    "joined": f"{NUMBERED} v JOIN (SELECT person, age AS years, rn AS other FROM {NUMBERED}) w ON v.person = w.person",
    "joined by number": (
        f"{NUMBERED} v JOIN (SELECT person, age AS years, rn AS other FROM {NUMBERED}) w"
        " ON v.person = w.person AND v.rn = w.other"
    ),
    "joined, left": (
        f"{NUMBERED} v LEFT JOIN (SELECT person, plan AS kind, rn AS other FROM {NUMBERED}) w"
        " ON v.person = w.person AND v.plan = w.kind"
    ),
}
SPELLED = {
    "rn <= 1.5": 1, "rn * 1 <= 1": 1, "rn BETWEEN 2 AND 3": 2, "-rn >= -1": 1, "rn IN (2, 4)": 2, "3 - rn >= 2": 1,
    "rn <= 2 AND rn > 1": 1, "rn = 1 OR rn * 2 = 8": 2, "2 * rn - 1 < 4": 2, "rn <= 1": 1,
}  # fmt: skip
TRIED = {
    "CAST(rn AS DOUBLE) <= 1.5": 1, "rn / 2 <= 1": 2, "1 / rn >= 0.3": 3, "ABS(rn) <= 1": 1, "ABS(rn - 3) < 1": 1,
    "rn // 2 = 1": 2, "rn % 3 = 2": 2, "rn % 2 = 0": 2, "FLOOR(rn / 2) = 1": 2, "rn * rn <= 4": 2,
    "rn <> 2 AND rn < 4": 2, "rn % 4 IN (0, 1)": 3, "ABS(rn) >= 4": 2,
}  # fmt: skip
TIMES = {"public": 2, "public, left": 2, "unnested": 3, "united": 2}
"""How many rows one row becomes."""
PEOPLE, MOST = 8, 5


@cache
def world() -> tuple[Any, PublicData, duckdb.DuckDBPyConnection]:
    folder, chance = Path(mkdtemp()), Random(3)
    rows = [
        small.row(person, plan=chance.choice("ab"), age=chance.randrange(4), code=chance.randrange(9))
        for person in range(PEOPLE)
        for _ in range(MOST)
    ]
    small.write(folder, rows)
    catalog = small.catalog(folder, most=MOST)
    connection = duckdb.connect(config={"error_on_division_by_zero": False, "ieee_floating_point_ops": False})
    for name in ("visits", "codes"):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
    return catalog, PublicData(catalog), connection


def bound(source: str, where: str) -> Plan:
    catalog, facts, _ = world()
    return bind(f"SELECT COUNT(*) AS n FROM {SOURCES[source]} WHERE {where}", catalog, facts)


def most_rows(source: str, where: str) -> int:
    """Return the most rows that a person has, by DuckDB alone, to which 0.3 is not the double nearest to it."""
    where = where.replace("CAST(0.3 AS DOUBLE)", "0.3")  # a constant is the number that is written
    person = "person" if "joined" not in source else "v.person"
    counted = f"SELECT {person}, COUNT(*) AS n FROM {SOURCES[source]} WHERE {where} GROUP BY ALL"
    return int(world()[2].execute(f"SELECT COALESCE(MAX(n), 0) FROM ({counted})").fetchall()[0][0])


def too_few(every: int = 1) -> Iterator[tuple[str, str]]:
    further = ["rn >= 2", "rn <> 1", "rn = 2 OR age > 1", "rn IS NULL OR rn = 1"]
    for source, where in [*product(SOURCES, [*SPELLED, *further])][::every]:
        if "age" in where and source in ("distinct", "united"):
            continue
        if most_rows(source, where) > bound(source, where).question.selection.rows_per_unit:
            yield source, where
    for source, where in product(
        ["joined", "joined by number", "joined, left"], ["other <= 1", "other = 1 AND rn <= 2", "other IS NULL"]
    ):
        if most_rows(source, where) > bound(source, where).question.selection.rows_per_unit:
            yield source, where


@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.long)])
def test_no_unit_has_more_rows_than_is_said(every: int) -> None:
    assert list(too_few(every)) == []


@pytest.mark.parametrize("where", one_in(6, SPELLED | TRIED))
def test_a_limit_is_found_in_every_spelling_and_after_every_step(where: str) -> None:
    limit = (SPELLED | TRIED)[where]
    for source in SOURCES:
        if "joined" not in source:
            expected = limit * TIMES.get(source, 1)
            assert bound(source, where).question.selection.rows_per_unit == expected, source
    assert bound("joined", f"({where}) AND other <= 1").question.selection.rows_per_unit == limit
    assert bound("joined by number", where).question.selection.rows_per_unit == limit


def test_a_number_tells_the_rows_of_a_unit_or_of_its_part_apart() -> None:
    """Joined on it, a row meets one other; and not where the number counts anew in each part."""
    assert bound("joined by number", "TRUE").question.selection.rows_per_unit == MOST
    parts = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY person, plan ORDER BY code) AS rn FROM visits)"
    joined = f"{parts} v JOIN (SELECT person, plan AS kind, rn AS other FROM {parts}) w ON v.person = w.person"
    by_number, by_both = f"{joined} AND v.rn = w.other", f"{joined} AND v.rn = w.other AND v.plan = w.kind"
    catalog, facts, _ = world()
    limits = [
        bind(f"SELECT COUNT(*) AS n FROM {source}", catalog, facts).question.selection.rows_per_unit
        for source in (by_number, by_both)
    ]
    assert limits == [MOST * MOST, MOST]


FORMS = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "rn // 2", "(rn + age) // 3", "rn // age", "{0} % {1}",
    "ABS({0})", "-({0})", "FLOOR({0})",
    "CAST({0} AS DOUBLE)", "CASE WHEN {0} < {1} THEN {0} ELSE 2 END", "COALESCE({0}, {1})", "ROUND({0}, 1)",
)  # fmt: skip


def value_of(chance: Random, depth: int) -> str:
    """Write a random number of a row."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(["rn", "rn", "age", "1", "2", "3", "1.5", "0.1", "-2", "CAST(0.3 AS DOUBLE)"])
    return "(" + chance.choice(FORMS).format(value_of(chance, depth - 1), value_of(chance, depth - 1)) + ")"


def condition_of(chance: Random) -> str:
    """Write a random condition on one or two of these."""
    parts = [
        f"{value_of(chance, 2)} {chance.choice(['<', '<=', '=', '<>', '>', '>='])} {value_of(chance, 1)}"
        for _ in range(chance.choice([1, 1, 2]))
    ]
    return chance.choice([" AND ", " OR "]).join(parts)


def violations(count: int, seed: int) -> tuple[list[str], int]:
    """Return random conditions that let more rows of a person through than is said; and how often a limit was found."""
    chance, found, limited = Random(seed), list[str](), 0
    while count:
        where = condition_of(chance)
        try:
            said = bound("plain", where).question.selection.rows_per_unit
        except LapwingError:  # two doubles in a quotient, a number without bounds: no question
            continue
        count, limited = count - 1, limited + (said < MOST)
        if most_rows("plain", where) > said:
            found.append(where)
    return found, limited


@pytest.mark.long
@pytest.mark.parametrize("seed", numbers(1, 30))
def test_no_random_condition_lets_more_rows_through_than_is_said(seed: int) -> None:
    count = 150 if is_long() else 60
    found, limited = violations(count, seed)
    assert found == []
    assert limited > count // 5


@pytest.mark.parametrize(
    ("function", "planted"),
    [
        ("remainder", lambda left, right: left),
        ("absolute", arithmetic.negate),
        ("divide", lambda left, right: left),
        ("quotient", lambda left, right: left),
    ],
)
def test_twins_a_wrong_rule_lets_rows_through(function: str, planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_numbers, "_RULES", {**row_numbers._RULES, function: planted})
    assert any(most_rows("plain", where) > bound("plain", where).question.selection.rows_per_unit for where in TRIED)


@pytest.mark.long
def test_twin_a_join_that_forgets_its_pairs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_join.UnitJoin, "rows_within", lambda self, numbers: self.source.rows_within(numbers))
    assert next(too_few(), None)


@pytest.mark.long
def test_twin_a_condition_of_which_any_part_is_read_as_all_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_numbers, "_any", lambda each: reduce(row_numbers.both, each))
    assert next(too_few(), None)


def test_ranges_are_united_and_intersected_as_sets_are() -> None:
    """Both walk along their ranges once, as lists have hundreds of them."""
    chance = Random(3)

    def ranges() -> row_numbers.Numbers:
        ends = sorted(chance.sample(range(1, 15), 2 * chance.randrange(5)))
        pairs: list[tuple[int, int | None]] = list(zip(ends[::2], ends[1::2], strict=True))
        if pairs and chance.random() < 0.4:
            pairs[-1] = pairs[-1][0], None
        return row_numbers._united(pairs)

    def numbers(found: row_numbers.Numbers) -> set[int]:
        return {n for n in range(1, 40) for low, high in found if low <= n and (high is None or n <= high)}

    for _ in range(500):
        one, other = ranges(), ranges()
        both, either = row_numbers._intersection(one, other), row_numbers._united([*one, *other])
        assert numbers(both) == numbers(one) & numbers(other)
        assert numbers(either) == numbers(one) | numbers(other)
        assert both == row_numbers._united(both)  # apart and in order


def test_long_lists_are_read_as_sets() -> None:
    """A list of a thousand values is united at once, and met with another one by walking along both."""
    column = ColumnReference(name="r", type=NUMBER)
    many = operation("member", column, *map(literal, range(1, 2_000, 2)))
    some = operation("member", column, *map(literal, range(1, 3_000, 3)))
    found = row_numbers.admitted(operation("and", many, some))["r"]
    assert list(found) == [(n, n) for n in range(1, 2_000, 6)]
