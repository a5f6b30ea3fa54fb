"""Random plans over made-up measures and keys, and random released integers for them, by seeds."""

import random
from datetime import date
from fractions import Fraction
from typing import Any, cast

from lapwing.query.derivation import moments
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute, interval_end
from lapwing.query.derivation.derived import KeyValue, MeasureValue, measures_of
from lapwing.query.derivation.node import Derived, Output, OutputOrder
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import BOOLEAN, DATE, TEXT, Fixed
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Count, Key, Measure, Sum
from lapwing.query.plan.plan import Plan, Question

PAY = ColumnReference(name="pay", type=Fixed(step=Fraction(1, 4), low=-20, high=60))
FINE = ColumnReference(name="fine", type=Fixed(step=Fraction(5, 3 * 2**20), low=0, high=2**20))
ROWS, PAID, UNITS = Count(), Count(argument=PAY), CountUnits()
TOTAL, CENTRED, PARTS = Sum(argument=PAY), Sum(argument=PAY, origin=20), Sum(argument=FINE)
MEASURES: tuple[Measure, ...] = (ROWS, PAID, UNITS, TOTAL, CENTRED, PARTS)

PLAN = Key(expression=ColumnReference(name="plan", type=TEXT), values=("b", "a", "ä"), other="else")
SIZE = Key(
    expression=ColumnReference(name="size", type=Fixed(step=Fraction(1, 2), low=0, high=9)),
    values=(Fraction(3), Fraction(1, 2), Fraction(4)),
)
OPEN = Key(expression=ColumnReference(name="open", type=BOOLEAN), values=(True, False))
DAY = Key(expression=ColumnReference(name="day", type=DATE), values=(date(2026, 3, 1), date(2025, 1, 1)))
KEYS = (DAY, OPEN, PLAN, SIZE)
CELLS = 2 * 2 * 4 * 3


def number(value: Fraction | int) -> ConstantValue:
    value = Fraction(value)
    return ConstantValue(value=value, shape="integer" if value.denominator == 1 else "decimal")


def power(base: Derived, exponent: int) -> Derived:
    return compute("power", base, number(exponent))


NULL, TRUE = ConstantValue(value=None, shape="null"), ConstantValue(value=True, shape="boolean")
NUMBERS: list[Derived] = [
    *(MeasureValue(measure=measure) for measure in MEASURES),
    Average(total=CENTRED, count=PAID),
    Average(total=PARTS, count=ROWS),
    KeyValue(key=SIZE, shape="decimal"),
    moments.variance(CENTRED, PARTS, PAID, sample=True),
    moments.deviation(CENTRED, PARTS, ROWS, sample=False),
    *(number(Fraction(value)) for value in ("0", "1", "-2", "-3/2", "1e30", "1/7")),
]
TEXTS: list[Derived] = [
    KeyValue(key=PLAN, shape="text"),
    ConstantValue(value="a", shape="text"),
    compute("upper", KeyValue(key=PLAN, shape="text")),
    compute("concatenate", KeyValue(key=PLAN, shape="text"), ConstantValue(value="-", shape="text")),
    compute("null_if", KeyValue(key=PLAN, shape="text"), ConstantValue(value="b", shape="text")),
]
DAYS: list[Derived] = [KeyValue(key=DAY, shape="date"), ConstantValue(value=date(2026, 1, 1), shape="date")]
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
BINARY = ("add", "subtract", "multiply", "divide", "divide", "least", "greatest", "modulo", "null_if", "coalesce")
UNARY = ("negate", "absolute", "sign", "round", "floor", "ceiling", "square_root", "sample_factor")


class Maker:
    """Makes everything from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, depth: int) -> Derived:
        kind = self.random.randrange(12) if depth else 0
        if kind == 0:
            return self.random.choice(NUMBERS)
        first = self.number(depth - 1)
        if kind <= 5:
            return compute(self.random.choice(BINARY), first, self.number(depth - 1))
        if kind <= 7:
            return compute(self.random.choice(UNARY), first)
        match kind:
            case 8:
                return power(first, self.random.randint(-3, 3))
            case 9:
                if measures_of(first) and first.has_interval and self.random.random() < 0.5:
                    return interval_end(first, self.random.choice(("low", "high")))
                return compute("within", first, self.number(depth - 1), self.number(0))
            case 10:
                return compute("round", first, number(self.random.randint(-3, 3)))
            case _:
                otherwise = self.random.choice([NULL, self.number(depth - 1)])
                return compute("case", self.condition(depth - 1), first, otherwise)

    def condition(self, depth: int) -> Derived:
        match self.random.randrange(8) if depth else 0:
            case 1:
                return compute("not", self.condition(depth - 1))
            case 2 | 3:
                rule = self.random.choice(("and", "or", "coalesce"))
                return compute(rule, self.condition(depth - 1), self.condition(depth - 1))
            case 4:
                return KeyValue(key=OPEN, shape="boolean") if self.random.random() < 0.5 else TRUE
            case _:
                return self.comparison(max(0, depth - 1))

    def comparison(self, depth: int) -> Derived:
        make = self.random.choice([lambda: self.number(depth), lambda: self.number(depth), self.text, self.day])
        match self.random.randrange(6):
            case 0:
                return compute("between", make(), make(), make())
            case 1:
                return compute("in", make(), make(), make())
            case 2:
                return compute("is_null", make())
            case _:
                return compute(self.random.choice(COMPARISONS), make(), make())

    def text(self) -> Derived:
        one, other = self.random.choice(TEXTS), self.random.choice(TEXTS)
        match self.random.randrange(4):
            case 0:
                return compute("case", self.comparison(0), one, other)
            case 1:
                return compute("coalesce", one, other)
            case _:
                return one

    def day(self) -> Derived:
        return self.random.choice(DAYS)

    def value(self) -> Derived:
        match self.random.randrange(10):
            case 0:
                return self.condition(2)
            case 1:
                return self.random.choice([self.text(), self.day(), NULL])
            case _:
                return self.number(self.random.randint(0, 3))

    def plan(self) -> Plan:
        order = [
            OutputOrder(
                value=self.value(), descending=self.random.random() < 0.5, nulls_first=self.random.random() < 0.5
            )
            for _ in range(self.random.choice((0, 1, 2)))
        ]
        return Plan(
            question=Question(selection=cast(Any, None), keys=KEYS, measures=MEASURES),
            keys=tuple(self.random.sample(KEYS, len(KEYS))),
            outputs=tuple(Output(name=f"c{i}", value=self.value()) for i in range(6)),
            having=self.condition(2) if self.random.random() < 0.2 else None,
            order=tuple(order),
            limit=self.random.randint(1, 50) if self.random.random() < 0.2 else None,
            offset=self.random.choice((0, 0, 3)),
        )

    def released(self, cells: int = CELLS) -> list[list[int]]:
        """Integers of very different sizes, with ties, zeros and what does not fit 64 bits."""
        large = self.random.choice((3, 50, 10**6, 2**31, 2**53, 2**62, 2**70))
        values = [
            [self.random.randint(-most, most) for _ in range(cells)]
            for most in (self.random.choice((3, 40, large)) for _ in MEASURES)
        ]
        if self.random.random() < 0.3:
            self.random.choice(values)[self.random.randrange(cells)] = self.random.choice((-(2**63), 2**63 - 1, 2**63))
        return values
