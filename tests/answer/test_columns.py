"""Columns agree with the definitions cell by cell, bit for bit: values, order, intervals, Arrow tables."""

import struct
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from lapwing.answer import Answer
from lapwing.mechanisms import DiscreteLaplace, Mechanism, RoundedGaussian
from lapwing.privacy.measures import GaussianDP
from lapwing.query.derivation import answer_functions, comparing, intervals, rationals
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import KeyValue, MeasureValue
from lapwing.query.derivation.node import Derived, Output, OutputOrder
from lapwing.query.plan.plan import Plan, Question
from lapwing.release.cells import cells_of, columns_of
from tests.support.answer.cell_by_cell import CellByCell
from tests.support.answer.plans import CELLS, CENTRED, KEYS, MEASURES, PAID, PLAN, ROWS, SIZE, TOTAL, Maker
from tests.support.calls import within
from tests.support.effort import numbers, only

MECHANISMS: list[Mechanism] = [
    RoundedGaussian(sigma=Fraction(3)),
    DiscreteLaplace(scale=Fraction(2)),
    RoundedGaussian(sigma=Fraction(1)),
    RoundedGaussian(sigma=Fraction(40)),
    RoundedGaussian(sigma=Fraction(20)),
    DiscreteLaplace(scale=Fraction(50)),
]


def answer(plan: Plan, values: Any, keys: Any = None) -> Answer:
    keys = columns_of(cells_of(plan.question), len(plan.question.keys)) if keys is None else keys
    return Answer(plan=plan, mechanisms=MECHANISMS, keys=keys, values=values, cost=GaussianDP.from_amount(0))


def exactly(value: Any) -> Any:
    """What tells apart all that Python can tell apart: types, signs of zero, exponents of Decimals."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    return ("Decimal", value.as_tuple()) if isinstance(value, Decimal) else (type(value).__name__, value)


def same(plan: Plan, values: Any, keys: Any = None) -> None:
    ours, theirs = answer(plan, values, keys=keys), CellByCell(plan, MECHANISMS, values, keys)
    rows, expected = ours.rows(), theirs.rows()
    assert len(ours) == len(expected)
    assert [[exactly(v) for v in row.values()] for row in rows] == [
        [exactly(v) for v in row.values()] for row in expected
    ]
    table = theirs.to_arrow()
    assert ours.to_arrow().schema == table.schema
    assert ours.to_arrow().equals(table)
    ends, wanted = ours.interval(0.9), theirs.interval(0.9)
    assert ends.keys() == wanted.keys()
    shapes = {output.name: output.value.shape for output in plan.outputs}
    for name, pair in wanted.items():
        for one, other in zip(ends[name], pair, strict=True):
            whole = shapes[name] == "integer" and all(abs(end) < 2**53 and end == int(end) for end in other.tolist())
            assert one.dtype == (np.int64 if whole else np.float64)
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("block", numbers(1, 150))
def test_columns_are_what_cells_are(block: int) -> None:
    for seed in range(12 * block, 12 * block + 12):
        maker = Maker(seed)
        same(maker.plan(), maker.released())


def order_by(value: Derived, *, descending: bool) -> Plan:
    return Plan(
        question=Question(selection=cast(Any, None), keys=KEYS, measures=MEASURES),
        keys=KEYS,
        outputs=tuple(Output(name=str(key), value=KeyValue(key=key, shape="text")) for key in (PLAN,)),
        order=(OutputOrder(value=value, descending=descending, nulls_first=False),),
    )


def nearly_equal() -> list[list[int]]:
    """Means that are different numbers, but the same double, and some that are the same number."""
    counts = [2**60 + i % 7 for i in range(CELLS)]
    return [
        [1] * CELLS,
        counts,
        [1] * CELLS,
        [0] * CELLS,
        [2 * count + i % 3 for i, count in enumerate(counts)],
        *[[0] * CELLS],
    ]


@pytest.mark.parametrize("descending", [True, False])
def test_order_is_exact_where_doubles_are_equal(descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, values = order_by(Average(total=CENTRED, count=PAID), descending=descending), nearly_equal()
    same(plan, values)
    monkeypatch.setattr(comparing, "exact_ranks", rationals.floats)
    with pytest.raises(AssertionError):
        same(plan, values)


def test_released_keys_are_taken_as_they_are() -> None:
    """A key that is released has its own values, in the order of the domain and then by value; NULL is one of them."""
    made = Maker(5)
    plan = replace(made.plan(), having=None, order=(), limit=None, offset=0, keys=(PLAN,))
    plan = replace(
        plan,
        question=Question(selection=cast(Any, None), keys=(replace(PLAN, values=(), other=None),), measures=MEASURES),
        outputs=(
            Output(name="plan", value=KeyValue(key=PLAN, shape="text")),
            Output(name="n", value=MeasureValue(measure=ROWS)),
        ),
    )
    values = [[index] * 4 for index in range(len(MEASURES))]
    values[0] = [7, 8, 9, 10]
    rows = answer(plan, values, keys=[["zz", None, "ab", "b"]]).rows()
    assert rows == [{"plan": "b", "n": 10}, {"plan": "ab", "n": 9}, {"plan": "zz", "n": 7}, {"plan": None, "n": 8}]


@pytest.mark.long
def test_no_cells_at_all() -> None:
    for seed in range(20):
        plan = Maker(seed).plan()
        same(replace(plan, order=()), [[] for _ in MEASURES], keys=[[] for _ in KEYS])


@pytest.mark.parametrize(
    "kind", [list, tuple, lambda v: np.array(v, dtype=np.int64), lambda v: np.array(v, dtype=object)]
)
def test_integers_may_come_in_any_array(kind: Any) -> None:
    plan = Maker(3).plan()
    values = [[i * j for j in range(CELLS)] for i in range(len(MEASURES))]
    assert answer(plan, [kind(v) for v in values]).to_arrow().equals(answer(plan, values).to_arrow())


def plan_of(cells: int) -> Plan:
    key = replace(SIZE, values=tuple(Fraction(i) for i in range(cells)))
    outputs: dict[str, Derived] = {
        "size": KeyValue(key=key, shape="integer"),
        "n": MeasureValue(measure=ROWS),
        "s": MeasureValue(measure=TOTAL),
        "m": Average(total=CENTRED, count=PAID),
    }
    return Plan(
        question=Question(selection=cast(Any, None), keys=(key,), measures=MEASURES),
        keys=(key,),
        outputs=tuple(Output(name=name, value=value) for name, value in outputs.items()),
        order=(OutputOrder(value=outputs["m"], descending=True, nulls_first=False),),
    )


def values_of(cells: int) -> list[Any]:
    generator = np.random.default_rng(1)
    return [generator.integers(-1000, 1000, cells) for _ in MEASURES]


@pytest.mark.long
def test_many_cells_are_read_with_little_work() -> None:
    cells, few = 50_000, 500
    made = answer(plan_of(cells), values_of(cells))
    rows, table = within(40 * cells, lambda: (made.rows(), made.to_arrow(0.95)))  # it makes 15 calls a cell
    assert len(rows) == table.num_rows == cells
    twin = CellByCell(plan_of(few), MECHANISMS, [part.tolist() for part in values_of(few)])
    with pytest.raises(AssertionError, match="calls"):
        within(40 * few, lambda: (twin.rows(), twin.to_arrow()))


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def wrapped(x: Any, y: Any) -> Any:
    return x * y if x.dtype == y.dtype == np.int64 else x.astype(object) * y.astype(object)


def careless_floats(x: Any) -> Any:
    tops, bottoms = rationals.integers(x)
    return np.asarray(tops.astype(np.float64) / (1 if bottoms is None else bottoms.astype(np.float64)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("place", "name", "bug"),
    only(
        [0],
        [
            (rationals, "product", wrapped),
            (rationals, "total", lambda x, y: x + y),
            (rationals, "floats", careless_floats),
            (rationals, "either", lambda x, y: x),
            (intervals, "at_most", lambda x, y: rationals.at_most(x.numbers, y.numbers)),
            (intervals, "_flags", lambda x: np.zeros(1, dtype=np.int64)),
            (intervals, "_turned", lambda _mask, part: part),
            (answer_functions, "_skipping_null", None),
        ],
        many=True,
    ),
)
def test_a_planted_bug_is_found(place: Any, name: str, bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug is None:
        entry = replace(answer_functions.FUNCTIONS["least"], column=answer_functions._arithmetic(rationals.lesser))
        monkeypatch.setitem(vars(answer_functions)["FUNCTIONS"], "least", entry)
    else:
        monkeypatch.setattr(place, name, bug)
    with pytest.raises(AssertionError):
        _all_blocks()


def _all_blocks() -> None:
    for block in range(20):
        test_columns_are_what_cells_are(block)
