"""What people call a part of a question, and what to write instead of one that is not answered."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from lapwing.query.text.positions import WRITTEN
from lapwing.query.text.syntax_refusals import FIELD, FUNCTIONS


def name_of(node: exp.Expression) -> str:
    """Name what a syntax node is, as the question has it."""
    if isinstance(node, exp.Anonymous):
        return f"The function {node.name.upper()}"
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return "A subquery"
    if isinstance(node, exp.Var):
        return f"The word {node.name}"
    if type(node) in _NODES:
        return _NODES[type(node)]
    if isinstance(node, exp.IgnoreNulls):
        return f"The aggregate {written_name(node) or 'of this kind'}"
    name = written_name(node) or _FUNCTIONS.get(type(node))
    if isinstance(node, exp.AggFunc):
        return f"The aggregate {name or node.sql_name()}"
    return f"The function {name or node.sql_name()}" if isinstance(node, exp.Func) else node.key.upper()


def written_name(node: exp.Expression) -> str:
    """Return the name of a function as it was written, if `parse` has kept it."""
    return str(node.meta.get(WRITTEN, "")).strip('"').upper()


_NODES: Mapping[type[exp.Expression], str] = {
    exp.All: "ALL",
    exp.And: "AND",
    exp.Any: "ANY",
    exp.ArrayContainsAll: "@>",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.BitwiseAnd: "&",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseNot: "~",
    exp.BitwiseOr: "|",
    exp.BitwiseRightShift: ">>",
    exp.BitwiseXor: "XOR",
    exp.Bracket: "A list, or an element of one,",
    exp.ByteString: "An e'…' text",
    exp.Cast: "A cast",
    exp.Collate: "COLLATE",
    exp.DPipe: "||",
    exp.Distinct: "DISTINCT inside a function",
    exp.Dot: "A field after a point",
    exp.EQ: "=",
    exp.Glob: "GLOB",
    exp.IntDiv: "//",
    exp.Interval: "An INTERVAL on its own",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.Kwarg: "A named argument",
    exp.Lambda: "A function of your own",
    exp.Mod: "%",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Order: "ORDER BY inside an aggregate",
    exp.Ordered: "ORDER BY inside an aggregate",
    exp.Placeholder: "A parameter",
    exp.PositionalColumn: "#",
    exp.Pow: "A power",
    exp.PropertyEQ: "A named argument",
    exp.RawString: "A $$…$$ text",
    exp.RegexpILike: "~*",
    exp.SimilarTo: "SIMILAR TO",
    exp.Star: "*",
    exp.TryCast: "A cast",
    exp.Tuple: "A list in parentheses",
    exp.Window: "OVER",
    exp.WithinGroup: "WITHIN GROUP",
}
# Functions whose place in the text the parser does not keep.
_FUNCTIONS: Mapping[type[exp.Expression], str] = {
    exp.ApproxDistinct: "APPROX_COUNT_DISTINCT",
    exp.DateBin: "TIME_BUCKET",
    exp.GroupConcat: "STRING_AGG",
    exp.LogicalAnd: "BOOL_AND",
    exp.LogicalOr: "BOOL_OR",
    exp.Rand: "RANDOM",
    exp.StrToTime: "STRPTIME",
    exp.UnixToTime: "TO_TIMESTAMP",
}

_BETWEEN = "Write DATE_DIFF('year', x, y), or DATE_DIFF('day', x, y) / 365.25."
_CALENDAR = (
    "Write DATE_DIFF('month', earlier, later), which counts the months that begin after the one and by the other."
)
_READ_DATE = "Write STRPTIME(x, '%d.%m.%Y'), with the format of the texts: it is NULL where there is no date."
_READ_NUMBER = "Write TRY_CAST(x AS DOUBLE): it is NULL where there is no number."
_NOISE = "Results have noise of their own; rows are not drawn."
_BITS = "Write % and // instead, as in x % 2 = 1."
_CODES = "Compare texts with =, < or LIKE."
_SPLIT = "Write SPLIT_PART(x, '-', 1)."
_NAN = "Write x IS NULL: NaN counts as NULL."

# What to write instead, by the name of a function or the kind of a node.
REMEDIES: Mapping[str, str] = {
    "ADD_MONTHS": "Write x + INTERVAL 3 MONTH.",
    "AGE": "Write DATE_PART('year', AGE(x, y)): whole years, by birthdays.",
    "ASCII": _CODES,
    "BITAND": _BITS,
    "CENTURY": "Write CEIL(YEAR(x) / 100).",
    "CONTAINS_SUBSTR": "Write x ILIKE '%abc%'.",
    "DATESUB": _BETWEEN,
    "DATE_SUB": _BETWEEN,
    "EXPM1": "Write EXP(x) - 1.",
    "FIND_IN_SET": "Write x IN ('a', 'b').",
    "FROM_UNIXTIME": "Write TO_TIMESTAMP(x).",
    "INITCAP": "Write UPPER(LEFT(x, 1)) || LOWER(SUBSTRING(x, 2)) for one word.",
    "ISFINITE": _NAN,
    "LOG1P": "Write LN(x + 1).",
    "MD5": _CODES,
    "MILLENNIUM": "Write CEIL(YEAR(x) / 1000).",
    "MONTHS_BETWEEN": _CALENDAR,
    "TRY_TO_NUMBER": _READ_NUMBER,
    "UNIX_SECONDS": "Write EPOCH(x).",
    "UNIX_TIMESTAMP": "Write EPOCH(x).",
    "YEARWEEK": "Write ISOYEAR(x) * 100 + WEEK(x).",
}
_REMEDIES_OF_NODES: Mapping[type[exp.Expression], str] = {
    exp.AddMonths: REMEDIES["ADD_MONTHS"],
    exp.Ascii: _CODES,
    exp.BitwiseAnd: _BITS,
    exp.BitwiseOr: _BITS,
    exp.BitwiseLeftShift: "Write x * 2.",
    exp.BitwiseRightShift: "Write x // 2.",
    exp.Cbrt: "Write EXP(LN(x) / 3).",
    exp.Collate: "Compare LOWER(x), or write x ILIKE 'abc'.",
    exp.Glob: "Write x LIKE 'A%'.",
    exp.Initcap: REMEDIES["INITCAP"],
    exp.IsInf: _NAN,
    exp.IsNan: _NAN,
    exp.JSONExtract: FIELD,
    exp.Levenshtein: _CODES,
    exp.MD5: _CODES,
    exp.MonthsBetween: _CALENDAR,
    exp.Rand: _NOISE,
    exp.RegexpSubstr: "Write REGEXP_EXTRACT(x, '[0-9]+').",
    exp.RegexpCount: "Write REGEXP_MATCHES(x, 'abc').",
    exp.RegexpInstr: "Write REGEXP_MATCHES(x, 'abc'), or STRPOS(x, 'abc').",
    exp.Repeat: "Write x || x.",
    exp.SimilarTo: "Write REGEXP_FULL_MATCH(x, '(a|b).*').",
    exp.Soundex: _CODES,
    exp.StrToDate: _READ_DATE,
    exp.SubstringIndex: _SPLIT,
    exp.TimestampDiff: "Write DATE_DIFF('hour', earlier, later): it counts the hours that begin in between.",
    exp.UnixSeconds: "Write EPOCH(x).",
    exp.Overlaps: "Compare the ends: a <= d AND c <= b.",
    exp.ToNumber: _READ_NUMBER,
    exp.Tuple: "Compare one value at a time.",
    exp.Unicode: _CODES,
}


_SEVERAL = "Write COUNT(DISTINCT x), or GROUP BY x and COUNT(*)."
_OF_AGGREGATES: Mapping[type[exp.Expression], str] = {
    exp.AnyValue: "Add it to GROUP BY.",
    exp.ApproxDistinct: "Write COUNT(DISTINCT x).",
    exp.ApproxQuantiles: "Write QUANTILE(x, 0.25), QUANTILE(x, 0.5) and so on: they share one cost.",
    exp.ArrayAgg: _SEVERAL,
    exp.GroupConcat: _SEVERAL,
    exp.LogicalAnd: "Write COUNT_IF(NOT x).",
    exp.LogicalOr: "Write COUNT_IF(x).",
    exp.Mode: "Write SELECT x, COUNT(*) … GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1.",
    exp.Star: "Rows are never shown: write COUNT(*), or name keys and aggregates.",
    exp.Subquery: "Ask for it by itself, and compute with its result.",
}


def instead_of_aggregate(node: exp.Expression) -> str:
    """Return what to write instead of an aggregate that is not answered; nothing if that is not known."""
    kind = type(node.this) if isinstance(node, exp.IgnoreNulls) else type(node)
    return _OF_AGGREGATES.get(kind, "")


_AS_NUMBERS: Mapping[str, str] = {
    "text": "Write TRY_CAST(x AS DOUBLE), or GROUP BY x.",
    "boolean": "Write CAST(x AS INTEGER), or COUNT_IF(x).",
    "date": "Count days: DATE_DIFF('day', DATE '2020-01-01', x).",
    "timestamp": "Count time: DATE_DIFF('hour', TIMESTAMP '2020-01-01 00:00:00', x).",
}


def as_number(kind: str) -> str:
    """Return what makes a number of a value of another kind, as `describe` names it."""
    return _AS_NUMBERS.get(kind, "Write a number.")


def said_of(function: str) -> Callable[[str], str]:
    """Return what makes the reason of a refusal begin with the function that it is about."""
    return lambda reason: f"{function}: {reason[0].lower()}{reason[1:]}"


def remedy_of(node: exp.Expression) -> str:
    """Return what to write instead of a node that is not answered."""
    if isinstance(node, exp.Anonymous):
        return REMEDIES.get(node.name.upper(), FUNCTIONS)
    return _REMEDIES_OF_NODES.get(type(node), FUNCTIONS)
