"""Relations: what one unit changes is bounded as stated, whatever the order of rows; planted bugs are found."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import cleaned
from lapwing.engines.duckdb import expressions as printers
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb import relations as render_relations
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import logic
from lapwing.query.relations.domains import values_of
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.row_numbers import Admitted, count
from lapwing.query.relations.set_operations import Union
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.query.relations.windowed import Window, Windowed
from tests.support.effort import one_in
from tests.support.query import composed
from tests.support.query.neighbours import CODES, SOURCE, catalog, cells_of_rows, violations
from tests.support.query.printing import ACROSS_UNITS, OVER_ALL_UNITS, print_otherwise
from tests.support.replay import SCHEMA, Row


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return catalog(tmp_path_factory.mktemp("relations"))


@pytest.fixture(scope="module")
def facts(small: Catalog) -> Iterator[PublicData]:
    facts = PublicData(small)
    yield facts
    facts.close()


def row(person: int, **values: Any) -> Row:
    plain: Row = {"person": person, "plan": "a", "member": True, "age": 30, "cost": 1.0, "score": 0, "note": "x"}
    return plain | {"day": None, "pay": None} | values


def without(rows: list[Row], person: int = 1) -> list[Row]:
    return [row for row in rows if row["person"] != person]


# ---- bounds on a unit's rows -----------------------------------------------------------------------------------------

PAIRED = "SELECT COUNT(*) FROM visits AS a {} JOIN {} ON a.person = b.person"
INNER = "SELECT COUNT(*) FROM visits AS v JOIN {} ON {}"


@pytest.mark.parametrize(
    ("text", "most"),
    one_in(
        4,
        [
            ("SELECT COUNT(*) FROM visits", 2),
            ("SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person)", 1),
            ("SELECT COUNT(*) FROM (SELECT person, plan FROM visits GROUP BY person, plan)", 2),
            ("SELECT COUNT(*) FROM (SELECT DISTINCT person FROM visits)", 1),
            ("SELECT COUNT(*) FROM (SELECT DISTINCT person, plan FROM visits)", 2),
            ("SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM visits WHERE FALSE)", 4),
            (INNER.format("codes AS c", "v.plan = c.plan"), 4),
            (INNER.format("codes AS c", "v.plan = c.plan AND v.age = c.factor"), 2),
            (INNER.format("codes AS c", "v.age = c.factor"), 4),
            (INNER.format("codes AS c", "v.age = c.factor * 0"), 8),  # NULL equals nothing
            (INNER.format("codes AS c", "v.cost = c.rate"), 4),
            (INNER.format("(SELECT DISTINCT plan FROM codes) AS c", "v.plan = c.plan"), 2),
            (INNER.format("(SELECT DISTINCT plan, tier FROM codes) AS c", "v.plan = c.plan"), 4),
            ("SELECT COUNT(*) FROM visits LEFT JOIN codes USING (plan)", 4),
            ("SELECT COUNT(*) FROM visits SEMI JOIN codes USING (plan)", 2),
            ("SELECT COUNT(*) FROM visits WHERE plan NOT IN (SELECT plan FROM codes)", 2),
            (PAIRED.format("", "visits AS b"), 4),
            (PAIRED.format("LEFT", "visits AS b"), 4),
            (PAIRED.format("", "(SELECT person, MAX(age) AS top FROM visits GROUP BY person) AS b"), 2),
            (PAIRED.format("LEFT", "(SELECT DISTINCT person FROM visits) AS b"), 2),
            (PAIRED.format("SEMI", "visits AS b"), 2),
            ("SELECT COUNT(*) FROM visits WHERE person NOT IN (SELECT person FROM visits WHERE member)", 2),
            ("SELECT COUNT(*) FROM (SELECT person FROM visits INTERSECT SELECT person FROM visits WHERE member)", 1),
            ("SELECT COUNT(*) FROM (SELECT person, plan FROM visits EXCEPT SELECT person, plan FROM visits)", 2),
            ("SELECT COUNT(c.plan) FROM codes AS c JOIN visits AS v ON v.plan = c.plan", 4),
            ("SELECT COUNT(person) FROM codes AS c LEFT JOIN visits AS v ON v.plan = c.plan", 4),
            ("SELECT COUNT(*) FROM codes AS c RIGHT JOIN visits AS v ON v.plan = c.plan", 4),
            ("SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY {n} <= 1)", 1),
            ("SELECT COUNT(*) FROM (SELECT *, {n} AS n FROM visits) WHERE n < 2 AND age > 3", 1),
            ("SELECT COUNT(*) FROM (SELECT *, {n} AS n FROM visits) WHERE 1 = n", 1),
            ("SELECT COUNT(*) FROM (SELECT *, {n} AS n FROM visits) WHERE 1 >= n", 1),
            ("SELECT COUNT(*) FROM (SELECT *, {n} AS n FROM visits) WHERE n <= -7", 1),
            ("SELECT COUNT(*) FROM (SELECT *, {n} AS n FROM visits) WHERE n <= 1 OR age > 3", 2),
            ("SELECT COUNT(*) FROM (SELECT *, {n} AS n FROM visits) WHERE n >= 1", 2),
            ("SELECT COUNT(*) FROM (SELECT *, {n} AS n FROM visits) WHERE NOT n <= 1", 2),
            ("SELECT COUNT(*) FROM (SELECT *, {r} AS n FROM visits) WHERE n <= 1", 2),
            ("SELECT COUNT(*) FROM (SELECT *, {p} AS n FROM visits) WHERE n <= 1", 2),
        ],
        many=True,
    ),
)
def test_the_rows_of_a_unit_are_bounded_from_public_facts(
    text: str, most: int, small: Catalog, facts: PublicData
) -> None:
    text = text.format(
        n="ROW_NUMBER() OVER (PARTITION BY person ORDER BY age)",
        r="RANK() OVER (PARTITION BY person ORDER BY age)",
        p="ROW_NUMBER() OVER (PARTITION BY person, plan ORDER BY age)",
    )
    assert bind(text, small, facts).question.selection.rows_per_unit == most


# ---- equal questions, and only they, have equal texts ----------------------------------------------------------------


def text_of(inner: str, small: Catalog, facts: PublicData, outer: str = "SELECT COUNT(*) FROM ({})") -> str:
    return str(bind(outer.format(inner), small, facts).question)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "SELECT DISTINCT person, plan, age FROM visits",
            "SELECT DISTINCT v.age AS x, person AS p, v.plan FROM visits AS v",
        ),
        (
            "SELECT age FROM visits UNION ALL SELECT pay FROM visits",
            "SELECT pay FROM visits UNION ALL SELECT age FROM visits",
        ),
        (
            "SELECT person, plan, age FROM visits UNION ALL (SELECT person, plan, age FROM visits UNION ALL "
            "SELECT person, plan, pay FROM visits)",
            "SELECT person, plan, age FROM visits UNION ALL SELECT person, plan, pay FROM visits UNION ALL "
            "SELECT person, plan, age FROM visits",
        ),
        (
            "SELECT v.age, c.tier FROM visits AS v JOIN codes AS c ON v.plan = c.plan AND c.factor = v.age",
            "SELECT tier, age FROM visits JOIN (SELECT tier, plan AS p, factor AS f FROM codes) AS d "
            "ON d.f = visits.age AND visits.plan = d.p",
        ),
        (
            "SELECT COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY person, plan",
            "SELECT SUM(age) AS s, COUNT(*) AS n FROM visits GROUP BY plan, person",
        ),
    ],
)
def test_how_it_is_written_changes_nothing(one: str, other: str, small: Catalog, facts: PublicData) -> None:
    assert text_of(one, small, facts) == text_of(other, small, facts)


@pytest.mark.parametrize(
    ("one", "other", "outer"),
    [
        (
            "SELECT c.a, c.b FROM visits AS v JOIN (SELECT plan, factor AS a, rate AS b FROM codes) AS c USING (plan)",
            "SELECT c.a, c.b FROM visits AS v JOIN (SELECT plan, rate AS a, factor AS b FROM codes) AS c USING (plan)",
            "SELECT SUM(a) FROM ({})",
        ),
        (
            "SELECT plan FROM visits SEMI JOIN codes USING (plan)",
            "SELECT plan FROM visits WHERE plan NOT IN (SELECT plan FROM codes)",
            "SELECT COUNT(*) FROM ({})",
        ),
        (
            "SELECT age FROM visits JOIN (SELECT DISTINCT plan FROM codes) AS c USING (plan)",
            "SELECT age FROM visits JOIN codes USING (plan)",
            "SELECT SUM(age) FROM ({})",
        ),
        (
            "SELECT SUM(age) OVER (PARTITION BY person) AS x FROM visits",
            "SELECT SUM(age) OVER (PARTITION BY person ORDER BY day) AS x FROM visits",
            "SELECT SUM(x) FROM ({})",
        ),
        (
            "SELECT LAG(age) OVER (PARTITION BY person ORDER BY day) AS x FROM visits",
            "SELECT LAG(age) OVER (PARTITION BY person ORDER BY day NULLS FIRST) AS x FROM visits",
            "SELECT SUM(x) FROM ({})",
        ),
        (
            "SELECT age AS x, pay AS y FROM visits UNION ALL SELECT pay, age FROM visits",
            "SELECT age AS x, pay AS y FROM visits UNION ALL SELECT age, pay FROM visits",
            "SELECT SUM(x) FROM ({})",
        ),
    ],
)
def test_what_means_something_else_is_written_otherwise(
    one: str, other: str, outer: str, small: Catalog, facts: PublicData
) -> None:
    assert text_of(one, small, facts, outer) != text_of(other, small, facts, outer)


# ---- values of keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "listed"),
    [
        ("SELECT person, plan AS k FROM visits", ("a", "b", "it's")),
        ("SELECT DISTINCT person, plan AS k FROM visits", ("a", "b", "it's")),
        ("SELECT person, MAX(plan) AS k FROM visits GROUP BY person", ("a", "b", "it's")),
        ("SELECT person, COUNT(*) AS k FROM visits GROUP BY person", (1, 2)),
        ("SELECT person, member AS k FROM visits GROUP BY ALL", (False, True)),
        ("SELECT LAG(plan) OVER (PARTITION BY person ORDER BY age) AS k FROM visits", ("a", "b", "it's")),
        ("SELECT plan AS k FROM visits UNION ALL SELECT 'x' FROM visits", ("a", "b", "it's", "x")),
        ("SELECT tier AS k FROM visits JOIN codes USING (plan)", ("basic", "gold")),
        ("SELECT codes.plan AS k FROM visits LEFT JOIN codes ON visits.plan = codes.plan", ("a", "b", "it's")),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY person ORDER BY age) AS k FROM visits", (1, 2)),
        ("SELECT CASE WHEN member THEN 'm' WHEN age > 3 THEN 'o' END AS k FROM visits", ("m", "o")),
    ],
)
def test_values_are_followed_through_relations(
    inner: str, listed: tuple[Any, ...], small: Catalog, facts: PublicData
) -> None:
    (key,) = bind(f"SELECT k, COUNT(*) FROM ({inner}) GROUP BY k", small, facts).question.keys
    assert key.values == listed


def test_no_key_has_an_empty_list_of_values(small: Catalog, facts: PublicData) -> None:
    """It would be SQL that no engine reads."""
    relation = bind("SELECT COUNT(*) FROM visits", small).question.selection.relation
    for nothing in (logic.NULL_LITERAL, logic.coalesce(logic.NULL_LITERAL, logic.NULL_LITERAL)):
        assert values_of(nothing, relation, facts) is None


# ---- planted bugs ----------------------------------------------------------------------------------------------------

OTHERS = [row(p, plan=plan, age=age) for p in range(2, 12) for plan, age in (("a", p), ("b", 2 * p))]
RUN = [row(1, plan="a"), row(1, plan="b"), *OTHERS]


def test_a_window_over_all_units_is_found(small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch) -> None:
    question = "SELECT SUM(c) FROM (SELECT COUNT(*) OVER (PARTITION BY person) AS c FROM visits)"
    assert violations(question, RUN, without(RUN), small, facts) == []
    print_otherwise(lambda text: text.replace(*OVER_ALL_UNITS), monkeypatch)
    assert violations(question, RUN, without(RUN), small, facts)


@pytest.mark.parametrize("groups", ["person", "person, plan"])
def test_a_group_of_several_units_is_found(
    groups: str, small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(1, plan="a"), row(1, plan="b"), *(row(p, plan=plan) for p in (2, 3) for plan in "ab")]
    size = 3 if groups != "person" else 6
    question = f"SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY {groups}) WHERE n = {size}"
    assert violations(question, rows, without(rows), small, facts) == []
    print_otherwise(
        lambda text: text.replace("(SELECT unit,", "(SELECT MIN(unit) AS unit,").replace(
            "GROUP BY unit", "GROUP BY TRUE"
        ),
        monkeypatch,
    )
    assert violations(question, rows, without(rows), small, facts)


@pytest.mark.long
def test_rows_made_distinct_across_units_are_found(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit would then take rows away from others, which are counted with theirs."""
    inner = "SELECT person, COUNT(*) AS n FROM (SELECT DISTINCT person, plan FROM visits) GROUP BY person"
    question = f"SELECT COUNT(*) FROM ({inner}) WHERE n = 1"
    rows = [row(1, plan="a"), row(1, plan="b"), *(row(p, plan=plan) for p in (2, 3) for plan in ("a", str(p)))]
    assert violations(question, rows, without(rows), small, facts) == []
    items = render_relations._items

    def first_of_all(parts: Any) -> str:
        text = items(parts)
        return f"ON ({', '.join(part.split(' AS ')[0] for part in parts[1:])}) {text}" if '"d0"' in text else text

    relation = render_relations.relation
    monkeypatch.setattr(render_relations, "_items", first_of_all)
    assert "DISTINCT ON" in relation(bind(question, small, facts).question.selection.relation)
    moved = cells_of_rows(bind(question, small, facts).question, rows, facts)
    monkeypatch.setattr(render_relations, "_items", items)
    assert moved != cells_of_rows(bind(question, small, facts).question, rows, facts)


def test_a_multiplicity_off_by_one_is_found(small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch) -> None:
    question = "SELECT COUNT(*) FROM visits JOIN codes USING (plan)"
    rows = [row(1), row(1, age=1), *OTHERS]
    assert violations(question, rows, without(rows), small, facts) == []
    multiplicity = PublicData.multiplicity
    monkeypatch.setattr(PublicData, "multiplicity", lambda *given: multiplicity(*given) - 1)
    assert violations(question, rows, without(rows), small, facts)


def test_a_multiplicity_of_values_before_they_are_cleaned_is_found(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN is no value, and 0.0 and -0.0 are one rate."""
    question = "SELECT COUNT(*) FROM visits JOIN codes ON age = rate"
    rows = [row(1, age=0), row(1, age=0, member=None), *OTHERS]
    assert violations(question, rows, without(rows), small, facts) == []
    raw = max([str(record["rate"]) for record in CODES].count(rate) for rate in ("0.0", "-0.0"))
    monkeypatch.setattr(PublicData, "multiplicity", lambda *_: raw)
    assert violations(question, rows, without(rows), small, facts)


def test_a_union_with_the_bound_of_one_part_is_found(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM visits)"
    assert violations(question, RUN, without(RUN), small, facts) == []
    monkeypatch.setattr(Union, "rows_within", lambda union, _: union.parts[0].source.rows_per_unit)
    assert violations(question, RUN, without(RUN), small, facts)


def test_a_join_with_the_bound_of_one_match_is_found(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "SELECT COUNT(*) FROM visits LEFT JOIN codes USING (plan)"
    rows = [row(1), row(1, age=1)]
    assert violations(question, rows, [], small, facts) == []
    monkeypatch.setattr(PublicJoin, "rows_within", lambda join, _: join.source.rows_per_unit)
    assert violations(question, rows, [], small, facts)


def test_a_semi_join_that_is_an_inner_one_is_found(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "SELECT COUNT(*) FROM visits WHERE plan IN (SELECT plan FROM codes)"
    rows = [row(1), row(1, age=1)]
    assert violations(question, rows, [], small, facts) == []
    print_otherwise(lambda text: text.replace("SEMI JOIN", "JOIN"), monkeypatch)
    assert violations(question, rows, [], small, facts)


ALONE = [row(1, age=1), row(1, age=2), *(row(p, age=p) for p in range(2, 9))]


@pytest.mark.parametrize(
    "text",
    one_in(
        8,
        [
            "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.person = b.person",
            "SELECT COUNT(*) FROM visits AS a LEFT JOIN visits AS b ON a.person = b.person AND a.age <= b.age",
            "SELECT COUNT(*) FROM visits WHERE person IN (SELECT person FROM visits WHERE age < 2)",
            "SELECT COUNT(*) FROM visits AS a WHERE NOT EXISTS (SELECT 1 FROM visits AS b WHERE a.person = b.person "
            "AND b.age < 2)",
            "SELECT COUNT(*) FROM "
            "(SELECT person, plan FROM visits EXCEPT SELECT person, plan FROM visits WHERE age < 2)",
        ],
    ),
)
def test_a_join_across_units_is_found(
    text: str, small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert violations(text, ALONE, without(ALONE), small, facts) == []
    assert not orders_differ(text, ALONE, small, facts)
    print_otherwise(lambda text: re.sub(*ACROSS_UNITS, text), monkeypatch)
    assert violations(text, ALONE, without(ALONE), small, facts)


@pytest.mark.parametrize("side", ["", "LEFT"])
def test_a_join_of_units_that_counts_one_side_is_found(
    side: str, small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"SELECT COUNT(*) FROM visits AS a {side} JOIN visits AS b ON a.person = b.person"
    assert violations(text, ALONE, without(ALONE), small, facts) == []
    monkeypatch.setattr(UnitJoin, "rows_within", lambda node, _: node.source.rows_per_unit)
    assert violations(text, ALONE, without(ALONE), small, facts)


def any_number(node: Windowed, numbers: Admitted) -> int:
    """Count the numbers that a condition admits in any column that a window adds."""
    limits = [count(numbers[column.name]) for column in node.added if column.name in numbers]
    return min([node.source.rows_per_unit, *(limit for limit in limits if limit is not None)])


def test_row_numbers_that_are_no_such_are_found(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound of ROW_NUMBER used for RANK, which gives several rows one number."""
    question = (
        "SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY RANK() OVER (PARTITION BY person ORDER BY member) = 1)"
    )
    assert violations(question, RUN, without(RUN), small, facts) == []
    monkeypatch.setattr(Windowed, "rows_within", any_number)
    assert violations(question, RUN, without(RUN), small, facts)


def as_they_come(*_: Any) -> str:
    """Return the layer `kept` without its sort, of rows that are within the bounds anyway."""
    return "SELECT * FROM cleaned"


def orders_differ(text: str, rows: list[Row], small: Catalog, facts: PublicData) -> bool:
    question = bind(text, small, facts).question
    chance = random.Random(1)
    tables = [rows, rows[::-1], *(chance.sample(rows, len(rows)) for _ in range(4))]
    found = [cells_of_rows(question, table, facts) for table in tables]
    return any(cells != found[0] for cells in found)


SOME = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


@pytest.mark.parametrize(
    "window",
    one_in(
        15,
        [
            *("ROW_NUMBER()", "LAG(age)", "LEAD(age, 1, 99)", "NTILE(2)", "FIRST_VALUE(age)"),
            *(f"{name}|{SOME}" for name in ("SUM(age)", "AVG(age)", "MAX(age)")),
            "LAST_VALUE(age)|ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
            "NTH_VALUE(age, 2)|ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            "COUNT(*) FILTER (WHERE age > 4)|ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING",
        ],
    ),
)
def test_ties_broken_by_position_are_found(
    window: str, small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, _, frame = window.partition("|")
    window = f"{function} OVER (PARTITION BY person ORDER BY member {frame})"
    question = f"SELECT SUM(age * k + k * k) AS s FROM (SELECT age, COALESCE({window}, 0) AS k FROM visits)"
    monkeypatch.setattr(cleaned, "kept", as_they_come)
    assert not orders_differ(question, RUN, small, facts)
    monkeypatch.setattr(Window, "positional", property(lambda _: False))
    assert orders_differ(question, RUN, small, facts)


@pytest.mark.parametrize(
    ("windows", "numbered"),
    [
        ("ROW_NUMBER() OVER w AS k", 0),
        ("ROW_NUMBER() OVER w AS k, RANK() OVER w AS l, SUM(age) OVER w AS m", 0),
        ("ROW_NUMBER() OVER w AS k, LAG(age) OVER w AS l", 3),
        (f"AVG(age) OVER (w {SOME}) AS k", 4),
        (f"SUM(age) OVER (w {SOME}) AS k", 0),
    ],
)
def test_the_rows_are_numbered_where_several_windows_count_them(
    windows: str, numbered: int, small: Catalog, facts: PublicData
) -> None:
    text = f"SELECT COUNT(*) AS n FROM (SELECT {windows} FROM visits WINDOW w AS (PARTITION BY person ORDER BY age))"
    sql = render_relations.relation(bind(text, small, facts).question.selection.relation)
    assert sql.count('"place"') == numbered


@pytest.mark.long
def test_several_windows_break_ties_in_one_way(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal rows are interchangeable, but not in one column of numbers and differently in another.

    An engine may hold them in another order for each window. Here it does: the second numbers its ties backwards.
    """
    pair = (
        "SELECT SUM(k * l) AS s FROM (SELECT {} OVER (PARTITION BY person ORDER BY age) AS k, "
        "ROW_NUMBER() OVER (PARTITION BY person ORDER BY age DESC) AS l FROM visits)"
    )
    question = pair.format("ROW_NUMBER()")
    rows = [row(p) for p in range(1, 20) for _ in "ab"]

    def sums(one: str, other: str) -> int:
        """Ask where the engine breaks what ties are left by the row's own place, forwards or backwards."""
        with composed.connect() as connection:
            connection.register("held", pa.Table.from_pylist(rows, schema=SCHEMA))
            bound = bind(question, small, facts).question
            sql = f"{composed.prefix(bound, SOURCE)} {render.answer(bound)}"
            sql = sql.replace(") SELECT * FROM cleaned", ") SELECT *, random() AS luck FROM cleaned", 1)
            return int(connection.execute(sql.replace("@one", one).replace("@other", other)).fetchall()[0][0])

    window = render_relations._window

    def unlucky(node: Any, ties: Any, unit: str) -> str:
        place = "@other" if node.order[0].descending else "@one"
        return window(node, [*ties, place], unit)

    monkeypatch.setattr(render_relations, "_window", unlucky)
    monkeypatch.setattr(cleaned, "kept", lambda *_: "SELECT * FROM cleaned")
    assert sums("luck", "luck") == sums("luck", "luck DESC")
    monkeypatch.setattr(render_relations, "_positions", lambda _: 0)
    assert sums("luck", "luck") != sums("luck", "luck DESC")


@pytest.mark.long
def test_an_average_of_doubles_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are different doubles: a condition on the average tells the order."""
    three = catalog(tmp_path, rows=3)
    facts = PublicData(three)
    rows = [row(p, age=age) for p in range(1, 20) for age in (1, 2, 3)]
    question = "SELECT COUNT(*) AS n FROM (SELECT AVG(age) AS a FROM visits GROUP BY person) WHERE a > 2"
    monkeypatch.setattr(cleaned, "kept", as_they_come)
    assert not orders_differ(question, rows, three, facts)
    averaged = render_relations._averaged

    def in_doubles(total: str, count: str, *given: Any) -> str:
        return averaged(total.replace('"age"', '(CAST("age" AS DOUBLE) * 0.1)'), count, *given).replace(
            " / CAST", " * 10 / CAST"
        )

    monkeypatch.setattr(render_relations, "_averaged", in_doubles)
    assert orders_differ(question, rows, three, facts)
    facts.close()


def zeros(small: Catalog, facts: PublicData) -> set[str]:
    """Return how the zero is written that is left of rows with both of them, in either order."""
    zero = "CASE WHEN member THEN age / 3 ELSE age / -3 END AS z"
    question = bind(f"SELECT COUNT(*) FROM (SELECT DISTINCT person, {zero} FROM visits)", small, facts).question
    sql = render_relations.relation(question.selection.relation)
    rows = [row(1, age=0, member=True), row(1, age=0, member=False)]
    left = set()
    for table in (rows, rows[::-1]):
        with composed.connect() as connection:
            connection.register("held", pa.Table.from_pylist(table, schema=SCHEMA))
            found = connection.execute(f"{composed.prefix(question, SOURCE)} SELECT d0 FROM {sql}")
            left |= {str(value) for (value,) in found.fetchall()}
    return left


@pytest.mark.long
def test_which_of_two_zeros_is_left_does_not_depend_on_the_order(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaned, "kept", as_they_come)
    assert zeros(small, facts) == {"0.0"}
    monkeypatch.setattr(render_relations, "_column", printers.expression)
    assert zeros(small, facts) == {"0.0", "-0.0"}


def test_a_column_beyond_its_proven_bounds_is_clamped(
    small: Catalog, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed with doubles may stray past its bounds; a column that does would be summed as it is."""
    made = "ROUND(cost / 3) AS x"
    question = f"SELECT SUM(x) FROM (SELECT DISTINCT person, {made} FROM visits)"
    sql = render_relations.relation(bind(question, small, facts).question.selection.relation)
    assert "LEAST(GREATEST(" in sql
    monkeypatch.setattr(render_relations, "_inside", lambda value, _kind: value)
    sql = render_relations.relation(bind(question, small, facts).question.selection.relation)
    sql = sql.replace('THEN LEAST(GREATEST("cost as read"', "")  # which is what is rounded
    assert "LEAST(GREATEST(" not in sql
