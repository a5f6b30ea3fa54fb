"""Random queries about the tables of a catalog, in the forms that Lapwing answers.

A form is a shape of the answer, such as numbers, groups by public values, or quantiles. Its rows are drawn separately:
of a table, or of a subquery, a join or a common table expression. So every form meets every source.
Queries that the catalog does not allow are refused on both neighbours, and counted. Everything follows from the catalog
and from the number of the world.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from lapwing.audit.asking import MadeQuery
from lapwing.audit.made_expressions import MadeReading, aggregate, condition, number, public_keys
from lapwing.audit.made_readings import reading_of
from lapwing.catalog.model import Catalog, Table
from lapwing.tables import quoted

PLAIN_FORM: Final = "of one column"
BATCH_FORM: Final = "several at one price"
BATCHES: Final = 0.12
"""The part of made queries that are several at one price."""
MOST_PLAIN: Final = 12
"""The most of these queries that each world begins with."""


def plain_queries(table: Table) -> Iterator[MadeQuery]:
    """Yield the simplest queries about every column: what a bound, a listed value or a unit does wrong shows there."""
    source, unit = quoted(table.name), None if table.unit_is_row else table.privacy_unit
    texts = [f"SELECT COUNT(*) AS c FROM {source}"]
    texts += [] if unit is None else [f"SELECT COUNT(DISTINCT {quoted(unit)}) AS c FROM {source}"]
    for column in table.columns:
        name = quoted(column.name)
        if column.numeric and column.bounded:
            texts += [f"SELECT SUM({name}) AS c FROM {source}", f"SELECT MEDIAN({name}) AS c FROM {source}"]
        if column.values is not None or (column.type == "string" and column.name != unit):
            texts.append(f"SELECT {name} AS k, COUNT(*) AS c FROM {source} GROUP BY {name}")
        if column.type == "string":
            texts.append(f"SELECT COUNT(*) AS c FROM {source} WHERE TRY_CAST({name} AS DOUBLE) > 1")
    texts += _limited_in_two_groups(table)
    yield from (MadeQuery(text=text, form=PLAIN_FORM) for text in texts)


def _limited_in_two_groups(table: Table) -> Iterator[str]:
    """Yield sums in which a unit counts in two groups, up to the bound of a column in each: one row reaches it."""
    summed = next((column for column in table.columns if column.numeric and column.bounded), None)
    if table.unit_is_row or table.max_rows_per_unit == 1 or summed is None:
        return
    low, high = summed.lower or 0, summed.upper or 0
    for key in (quoted(column.name) for column in table.columns if column.values is not None):
        clamped = f"SUM({quoted(summed.name)}, contribution_bounds_per_group => ({min(low, 0)}, {max(high, 0)}))"
        yield (
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) {key} AS k, {clamped} AS c "
            f"FROM {quoted(table.name)} GROUP BY {key}"
        )


def made_queries(catalog: Catalog, world: int) -> Iterator[MadeQuery]:
    """Yield queries without end; of the same number, the same."""
    chance = Random(f"lapwing audit queries {world}")  # noqa: S311 - which queries are tried is no secret
    plain = [query for table in catalog.tables for query in plain_queries(table)]
    yield from chance.sample(plain, min(len(plain), MOST_PLAIN))
    while catalog.tables:
        if chance.random() < BATCHES:
            yield _batch(catalog, chance)
            continue
        name, form = chance.choice(FORMS)
        reading = reading_of(catalog, chance.choice(catalog.tables), chance)
        yield MadeQuery(text=f"{reading.before}{form(reading, chance)}", form=name)


def _batch(catalog: Catalog, chance: Random) -> MadeQuery:
    """Return queries at one price: tables by some keys and by all of them, numbers of the same rows, or any of both."""
    reading = reading_of(catalog, chance.choice(catalog.tables), chance)
    way = chance.randrange(3)
    if way == 0:
        shown = chance.choice(["COUNT(*)", f"SUM({number(reading, chance)})"])
        keys = list(dict.fromkeys((*public_keys(reading, chance), *public_keys(reading, chance))))[:2]
        texts = [_table_of(reading, by, shown) for by in [[key] for key in keys] + ([keys] if len(keys) > 1 else [[]])]
    elif way == 1:
        keys = public_keys(reading, chance)[:1] if chance.random() < 0.5 else []
        shown_each = dict.fromkeys(("COUNT(*)", *(f"SUM({number(reading, chance)})" for _ in range(2))))
        texts = [_table_of(reading, keys, shown) for shown in shown_each]
    else:
        forms = [chance.choice((_numbers, _groups)) for _ in range(chance.randint(2, 4))]
        readings = [reading, *(reading_of(catalog, chance.choice(catalog.tables), chance) for _ in forms[1:])]
        texts = [f"{one.before}{form(one, chance)}" for one, form in zip(readings, forms, strict=True)]
    return MadeQuery(text=texts[0], more=tuple(texts[1:]), form=BATCH_FORM)


def _table_of(reading: MadeReading, by: Sequence[str], shown: str) -> str:
    keys = "".join(f"{key} AS k{at}, " for at, key in enumerate(by))
    grouped = f" GROUP BY {', '.join(by)}" if by else ""
    return f"{reading.before}SELECT {keys}{shown} AS c FROM {reading.source}{grouped}"


def _numbers(reading: MadeReading, chance: Random) -> str:
    outputs = ", ".join(f"{aggregate(reading, chance)} AS c{at}" for at in range(chance.randint(1, 3)))
    where = f" WHERE {condition(reading, chance)}" if chance.random() < 0.5 else ""
    return f"SELECT {outputs} FROM {reading.source}{where}"


def _groups(reading: MadeReading, chance: Random) -> str:
    keys = list(dict.fromkeys(public_keys(reading, chance)))
    shown = ", ".join([f"{key} AS k{at}" for at, key in enumerate(keys)])
    outputs = ", ".join(f"{aggregate(reading, chance)} AS c{at}" for at in range(chance.randint(1, 2)))
    where = f" WHERE {condition(reading, chance)}" if chance.random() < 0.3 else ""
    having = f" HAVING COUNT(*) > {chance.randint(-3, 3)}" if chance.random() < 0.2 else ""
    order = chance.choice(["", "", " ORDER BY c0 DESC", " ORDER BY c0 DESC LIMIT 2"])
    grouped = chance.choice(["{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})"]).format(", ".join(keys))
    return f"SELECT {shown}, {outputs} FROM {reading.source}{where} GROUP BY {grouped}{having}{order}"


def _private_groups(reading: MadeReading, chance: Random) -> str:
    free = [column for column in reading.columns if column.values is None and column.name != reading.unit]
    key = quoted(chance.choice(free).name) if free else public_keys(reading, chance)[0]
    return f"SELECT {key} AS k, {aggregate(reading, chance)} AS c FROM {reading.source} GROUP BY {key}"


def _ranks(reading: MadeReading, chance: Random) -> str:
    bounded = number(reading, chance)
    rank = chance.choice([
        f"MEDIAN({bounded})", f"QUANTILE_CONT({bounded}, 0.9)", f"QUANTILE_DISC({bounded}, 0.25)", f"MIN({bounded})",
        f"MAX({bounded})", f"APPROX_QUANTILE({bounded}, 0.75)",
        f"MEDIAN({bounded}) AS m, QUANTILE_CONT({bounded}, 0.9)",
    ])  # fmt: skip
    keys = public_keys(reading, chance)[:1] if chance.random() < 0.3 else []
    grouped = f" GROUP BY {keys[0]}" if keys else ""
    return f"SELECT {''.join(f'{key} AS k, ' for key in keys)}{rank} AS r FROM {reading.source}{grouped}"


def _largest(reading: MadeReading, chance: Random) -> str:
    key, by = public_keys(reading, chance)[0], aggregate(reading, chance)
    way = chance.choice(["DESC", "ASC"])
    return f"SELECT {key} AS k FROM {reading.source} GROUP BY {key} ORDER BY {by} {way} LIMIT {chance.randint(1, 3)}"


def _thresholds(reading: MadeReading, chance: Random) -> str:
    compared = [
        f"COUNT_IF({condition(reading, chance)}) {chance.choice(['<', '>='])} {chance.randint(-2, 9)}"
        for _ in range(chance.randint(3, 5))
    ]
    return f"SELECT ABOVE_THRESHOLD({', '.join(compared)}) AS first FROM {reading.source}"


def _searched(reading: MadeReading, chance: Random) -> str:
    columns = reading.of("integer", "decimal", "float")
    name = quoted(chance.choice(columns).name) if columns else "1"
    aggregate = chance.choice(["SUM", "AVG"])
    return f"SELECT {aggregate}({name}, contribution_bounds_per_row => AUTO) AS s FROM {reading.source}"


def _values_of_all(reading: MadeReading, chance: Random) -> str:
    """Count values that two sides share, or that only the first has, whoever has them."""
    if not reading.columns:
        return f"SELECT COUNT(*) AS c FROM {reading.source}"
    name, other = (quoted(chance.choice(reading.columns).name) for _ in range(2))
    how = chance.choice(["INTERSECT", "EXCEPT"])
    where = f" WHERE {condition(reading, chance)}" if chance.random() < 0.5 else ""
    return (
        f"SELECT COUNT(*) AS c FROM (SELECT {name} FROM {reading.source} {how} "
        f"SELECT {chance.choice([name, other])} FROM {reading.source}{where}) AS sides"
    )


def _limited_groups(reading: MadeReading, chance: Random) -> str:
    key = public_keys(reading, chance)[0]
    options = chance.choice(["max_groups_contributed = 1", "max_groups_contributed = 2"])
    clamped = f"SUM({number(reading, chance)}, contribution_bounds_per_group => (0, 50))"
    return (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) {key} AS k, {chance.choice([clamped, 'COUNT(*)'])} AS c "
        f"FROM {reading.source} GROUP BY {key}"
    )


def _over_answers(reading: MadeReading, chance: Random) -> str:
    key = public_keys(reading, chance)[0]
    return (
        f"SELECT k, c, SUM(c) OVER (ORDER BY k) AS running, RANK() OVER (ORDER BY c DESC) AS place "
        f"FROM (SELECT {key} AS k, {aggregate(reading, chance)} AS c FROM {reading.source} GROUP BY {key}) AS answered"
    )


FORMS: Final[Sequence[tuple[str, Callable[[MadeReading, Random], str]]]] = (
    *(("numbers", _numbers),) * 3,
    *(("groups by public values", _groups),) * 3,
    ("groups by private values", _private_groups),
    ("quantiles", _ranks),
    ("largest groups", _largest),
    ("first above a threshold", _thresholds),
    ("searched bounds", _searched),
    ("limits on groups", _limited_groups),
    ("values of two sides", _values_of_all),
    ("windows over answers", _over_answers),
)
