"""Who holds which keys, counted in columns, against counting one by one."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.engines import holders
from lapwing.engines.holders import UnitCountsByKey, counted
from tests.support.engines.tables import by_value

Pair = tuple[Any, ...]

TEXTS = st.sampled_from(["", "a", "b", "Älm", "a\0", "z" * 40])
NUMBERS = st.sampled_from([0, 1, -1, 7, 2**62, -(2**63), 2**63 - 1])
UNITS = {
    "close": (pa.int64(), st.integers(-3, 3)),
    "far": (pa.int64(), NUMBERS),
    "small": (pa.int16(), st.integers(-3, 3)),
    "unsigned": (pa.uint64(), st.sampled_from([0, 2**63, 2**64 - 1])),
    "wide": (pa.decimal128(38, 0), st.sampled_from([Decimal(0), Decimal(2**100), Decimal(-(2**100))])),
    "text": (pa.string(), TEXTS),
    "day": (pa.date32(), st.dates(date(1, 1, 1), date(1, 1, 3))),
}
KEYS = {
    "text": (pa.string(), TEXTS),
    "long text": (pa.large_string(), TEXTS),
    "number": (pa.int64(), NUMBERS),
    "truth": (pa.bool_(), st.booleans()),
    "time": (pa.timestamp("us"), st.sampled_from([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)])),
}


def one_by_one(pairs: Sequence[Pair]) -> dict[Pair, Counter[int]]:
    """Return how many units hold each value, by how many values they hold."""
    held: dict[Any, set[Pair]] = {}
    for pair in pairs:
        held.setdefault(pair[0], set()).add(pair[1:])
    found: dict[Pair, Counter[int]] = {}
    for keys in held.values():
        for key in keys:
            found.setdefault(key, Counter())[len(keys)] += 1
    return found


def part(pairs: Sequence[Pair], kinds: Sequence[pa.DataType], batch: int = 3) -> pa.Table:
    names = ["holder", *(f"key{i}" for i in range(len(kinds) - 1))]
    columns = [pa.array([pair[i] for pair in pairs], kind) for i, kind in enumerate(kinds)]
    table = pa.table(columns, names=names)
    return counted(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=batch)))


def columns_of(pairs: Sequence[Pair], kinds: Sequence[pa.DataType]) -> UnitCountsByKey:
    return UnitCountsByKey.of_parts([part(pairs, kinds)], [None] * (len(kinds) - 1))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Pair], list[pa.DataType]]:
    drawn = [UNITS[draw(st.sampled_from(sorted(UNITS)))]]
    drawn += [KEYS[name] for name in draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3))]
    kinds, values = zip(*drawn, strict=True)
    return draw(st.lists(st.tuples(*values), max_size=30)), list(kinds)


@given(tables())
def test_columns_say_what_counting_one_by_one_says(table: tuple[list[Pair], list[pa.DataType]]) -> None:
    pairs, kinds = table
    found, wanted = columns_of(pairs, kinds), one_by_one(pairs)
    assert by_value(found) == wanted
    assert found.named() == sorted(wanted)
    assert found.units_at.tolist() == [sum(wanted[key].values()) for key in found.named()]
    weights = [sum(n * (1 << 30 - t) for t, n in wanted[key].items()) for key in found.named()]
    assert found.weighed(lambda degree: 1 << 30 - degree).tolist() == weights
    chosen = np.arange(len(wanted)) % 2 == 0
    assert found.named(chosen) == sorted(wanted)[::2]


TORN = [(1, "a"), (2, "a"), (1, "b"), (2, "b"), (1, "a"), (3, "c"), (3, "c")]
BUGS = {
    "pairs that are counted twice": ("_distinct", np.sort),
    "units that are taken to be beside each other": ("_distinct", lambda pairs: pairs[holders._new(pairs)]),
    "a pair that is left out": ("_distinct", lambda pairs: np.unique(pairs)[1:]),
    "degrees of all keys": ("_new", lambda ordered: np.arange(ordered.size) == 0),
}


def check_torn() -> None:
    kinds = [pa.int64(), pa.string()]
    assert by_value(columns_of(TORN, kinds)) == one_by_one(TORN)


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_torn()
    monkeypatch.setattr(holders, *BUGS[bug])
    with pytest.raises((AssertionError, IndexError, ValueError)):
        check_torn()


def test_numbers_that_do_not_fit_one_integer_are_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is the same whether there are gaps between numbers or none; the twin lets them overflow."""
    kinds = [pa.int64(), *[pa.int64()] * 4]
    pairs = [(n, n % 7, n % 11 * 2**40, n % 13, n % 5) for n in [*range(200), 2**31]]
    wanted = one_by_one(pairs)
    assert by_value(columns_of(pairs, kinds)) == wanted
    monkeypatch.setattr(holders, "MOST_PAIRS", 1 << 10)
    assert by_value(columns_of(pairs, kinds)) == wanted
    monkeypatch.setattr(holders, "MOST_PAIRS", 1 << 200)
    monkeypatch.setattr(holders, "CLOSE", 1 << 64)
    far = [(n * 2**53, *rest) for n, *rest in pairs[:-1]]
    assert by_value(columns_of(far, kinds)) != one_by_one(far)


def test_parts_add_up_and_numbers_count_steps() -> None:
    kinds = [pa.int64(), pa.int64()]
    one, other = [(1, 5), (1, 7), (2, 5)], [(3, 5), (4, 6), (4, 5)]
    whole = UnitCountsByKey.of_parts([part(one, kinds), part(other, kinds)], [Fraction(1, 2)])
    assert by_value(whole) == {(key / Fraction(2),): n for (key,), n in one_by_one(one + other).items()}
    assert whole.named() == [(Fraction(5, 2),), (Fraction(3),), (Fraction(7, 2),)]


def test_values_that_few_hold_do_not_show() -> None:
    assert "secret" not in repr(columns_of([(1, "secret")], [pa.int64(), pa.string()]))


def test_a_batch_without_rows_holds_nothing() -> None:
    """An engine may return no batch, or one that is empty: either is an answer of no keys."""
    schema = pa.schema([("holder", pa.int64()), ("key0", pa.string())])
    for batches in ([], [pa.record_batch([pa.array([], kind) for kind in schema.types], schema=schema)]):
        parts = counted(pa.RecordBatchReader.from_batches(schema, batches))
        assert UnitCountsByKey.of_parts([parts], [None]).named() == []
