"""The clock in a query: CURRENT_DATE, NOW() and their like stand for one public constant, the moment of the query.

The moment is the beginning of a day, or of an hour, in UTC. The session reads its clock once a query, before it looks
at any row, and passes the moment on when the text is bound again. So the moment is as public as the text: it says
when somebody asks, and depends on no row. It is a constant in the plan, and so in the key of the stored answer. Asked
again on the same day, the query is free.
"""

import re
from dataclasses import replace
from datetime import date, datetime
from typing import Final

from sqlglot import exp

from lapwing.query.text.parse import Parsed
from lapwing.query.text.trees import copied, nodes_of

MAY_TELL_TIME: Final = re.compile(
    r"\b(age|now|today|sysdate|sysdatetime|(cur|get|getutc)date|(get_)?current_\w+|utc_\w+|\w*timestamp)\b",
    re.IGNORECASE,
)
"""The parts of a text that look at the clock."""

_NODES: Final[dict[type[exp.Expression], type[date]]] = {
    exp.CurrentDate: date,
    exp.CurrentTimestamp: datetime,
    exp.CurrentDatetime: datetime,
    exp.Localtimestamp: datetime,
    exp.UtcTimestamp: datetime,
    exp.UtcDate: date,
}
_NAMES: Final[dict[str, type[date]]] = {
    "CURDATE": date,
    "TODAY": date,
    **dict.fromkeys(
        ("NOW", "GETDATE", "GETUTCDATE", "SYSDATE", "SYSDATETIME", "GET_CURRENT_TIMESTAMP", "TRANSACTION_TIMESTAMP",
         "STATEMENT_TIMESTAMP", "CLOCK_TIMESTAMP"),
        datetime,
    ),
}  # fmt: skip


def at_moment(parsed: Parsed, moment: datetime) -> Parsed:
    """Return a query in which a constant stands for each look at the clock; the same if it does not look there."""
    found = [(node, kind) for node in nodes_of(parsed.select) if (kind := _kind_of(node)) is not None]
    if not found:
        return parsed
    select = copied(parsed.select)
    for node in nodes_of(select):
        if isinstance(node, exp.Anonymous) and _is_age(node):  # AGE(x) is AGE(CURRENT_DATE, x)
            node.set("expressions", [_constant(node, date, moment), *node.expressions])
        elif (kind := _kind_of(node)) is not None:
            node.replace(_constant(node, kind, moment))
    return replace(parsed, select=select, moment=moment)


def _kind_of(node: exp.Expr) -> type[date] | None:
    if isinstance(node, exp.Anonymous):
        return date if _is_age(node) else None if node.expressions else _NAMES.get(node.name.upper())
    kind = _NODES.get(type(node)) if isinstance(node, exp.Expression) else None
    given = node.args.get("this")
    precision = isinstance(given, exp.Literal) and (not given.is_string or given.this.upper() == "UTC")
    return kind if given is None or precision else None


def _is_age(node: exp.Anonymous) -> bool:
    return node.name.upper() == "AGE" and len(node.expressions) == 1


def _constant(node: exp.Expr, kind: type[date], moment: datetime) -> exp.Expression:
    """Return DATE '…' or TIMESTAMP '…', at the place of a node."""
    text = moment.isoformat(sep=" ") if kind is datetime else moment.date().isoformat()
    constant = exp.Literal.string(text)
    if "start" in node.meta:
        constant.meta.update(start=node.meta["start"], end=node.meta["end"])
    return exp.Cast(this=constant, to=exp.DataType(this=exp.DType.TIMESTAMPNTZ if kind is datetime else exp.DType.DATE))
