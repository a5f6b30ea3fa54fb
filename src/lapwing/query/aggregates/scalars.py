"""Bind functions of one row of the answer in the words of SQL, beside those whose arguments stand as they are."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.derived import NUMERIC, Derived, Fixture
from lapwing.query.expressions.rows import Rows

Bind = Callable[[exp.Expression], Derived]
Scalar = Callable[[exp.Expression, Rows, Bind], Derived]

_NOTHING = Fixture(value="", shape="text")
_ONE = Fixture(value=Fraction(1), shape="integer")
_WHOLE = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.INT128}
_REAL = {exp.DType.FLOAT, exp.DType.DOUBLE}


def _if(node: exp.Expression, rows: Rows, derived: Bind) -> Derived:
    rows.only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    last = Fixture(value=None, shape="null") if otherwise is None else derived(otherwise)
    return compute("case", derived(node.this), derived(node.args["true"]), last)


def _joined(node: exp.Expression, rows: Rows, derived: Bind) -> Derived:
    """Bind CONCAT, which leaves out what is NULL."""
    rows.only(node, "expressions", "safe", "coalesce")
    parts = [derived(part) for part in node.expressions]
    return reduce(lambda left, right: compute("concatenate", left, right), (_present(part) for part in parts))


def _present(part: Derived) -> Derived:
    return part if isinstance(part, Fixture) and part.value is not None else compute("coalesce", part, _NOTHING)


def cast(node: exp.Expression, rows: Rows, derived: Bind) -> Derived:
    """Bind a cast of a number to a real, a whole or a decimal number, half up."""
    rows.only(node, "this", "to", "safe")
    value, target = derived(node.this), node.args["to"]
    rows.only(target, "this", "expressions")
    if value.shape in NUMERIC and target.this in _REAL:
        return compute("divide", value, _ONE)
    if value.shape in NUMERIC and target.this in _WHOLE:
        return compute("round", value)
    if value.shape in NUMERIC and target.this == exp.DType.DECIMAL:
        return compute("round", value, Fixture(value=_scale(target), shape="integer"))
    reason = f"A cast of {value.shape} to {target.sql()[:40]} is not answered over the answer"
    raise rows.refusal(node, reason, "Cast numbers to DOUBLE, INTEGER or DECIMAL(10, 2).")


def _scale(target: exp.Expression) -> Fraction:
    """Return the decimals of a DECIMAL; of one without parameters what DuckDB takes."""
    listed = target.expressions
    if not listed:
        return Fraction(3)
    return Fraction(str(listed[1].this.this)) if len(listed) == 2 else Fraction(0)


SCALARS: Mapping[type[exp.Expression], Scalar] = {
    exp.If: _if,
    exp.Concat: _joined,
}
