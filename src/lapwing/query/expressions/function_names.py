"""What every construct of a query is called in it, by the class that the parser gives a node: functions and signs.

Each construct that `calls`, `outputs` and `window_functions` bind has one name here, and no other has, which a test
holds. From this list follow what a shell completes and which names the SQL reference must have.
"""

import re
from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from lapwing.query.expressions.library import ANONYMOUS
from lapwing.query.expressions.naming import REMEDIES

SPELLED: Final[Mapping[type[exp.Expression], str]] = {
    exp.Anonymous: "DATE_PART", exp.Atan: "ATAN", exp.BitwiseXor: "XOR(p, q)", exp.Concat: "CONCAT",
    exp.ConcatWs: "CONCAT_WS", exp.Contains: "CONTAINS", exp.Cos: "COS", exp.CurrentDate: "CURRENT_DATE",
    exp.CurrentTime: "NOW()", exp.CurrentTimestamp: "NOW()", exp.DPipe: "&#124;&#124;", exp.DateAdd: "INTERVAL",
    exp.DateDiff: "DATE_DIFF", exp.DateFromParts: "MAKE_DATE", exp.Day: "DAY", exp.DayOfMonth: "DAY",
    exp.DayOfWeek: "DAYOFWEEK", exp.DayOfWeekIso: "ISODOW", exp.DayOfYear: "DAYOFYEAR", exp.Dayname: "DAYNAME",
    exp.Degrees: "DEGREES", exp.EndsWith: "ENDS_WITH", exp.Escape: "ESCAPE", exp.Exp: "EXP",
    exp.Extract: "EXTRACT(part FROM x)", exp.Hour: "HOUR", exp.ILike: "ILIKE", exp.If: "IF(c, x, y)",
    exp.IntDiv: "//", exp.JSONExtractScalar: "JSON_EXTRACT_STRING", exp.JSONValue: "JSON_VALUE",
    exp.LastDay: "LAST_DAY", exp.Left: "LEFT", exp.Length: "LENGTH", exp.Ln: "LN", exp.Log: "LOG",
    exp.Lower: "LOWER", exp.Minute: "MINUTE", exp.Mod: "%", exp.Month: "MONTH", exp.Monthname: "MONTHNAME",
    exp.NullSafeEQ: "IS [NOT] DISTINCT FROM", exp.NullSafeNEQ: "IS [NOT] DISTINCT FROM", exp.Nullif: "NULLIF",
    exp.AtTimeZone: "AT TIME ZONE", exp.DateBin: "TIME_BUCKET", exp.StrToTime: "STRPTIME",
    exp.UnixToTime: "TO_TIMESTAMP", exp.Pad: "LPAD", exp.Pi: "PI()", exp.Pow: "POWER", exp.Quarter: "QUARTER",
    exp.Radians: "RADIANS",
    exp.RegexpExtract: "REGEXP_EXTRACT", exp.RegexpFullMatch: "REGEXP_FULL_MATCH", exp.RegexpLike: "REGEXP_MATCHES",
    exp.RegexpReplace: "REGEXP_REPLACE", exp.Replace: "REPLACE", exp.Reverse: "REVERSE", exp.Right: "RIGHT",
    exp.Second: "SECOND", exp.Sign: "SIGN", exp.Sin: "SIN", exp.SplitPart: "SPLIT_PART", exp.Sqrt: "SQRT",
    exp.StartsWith: "STARTS_WITH", exp.StrPosition: "STRPOS", exp.Substring: "SUBSTRING",
    exp.TimeToStr: "STRFTIME(x, 'constant')", exp.TimeToUnix: "EPOCH", exp.TimestampTrunc: "DATE_TRUNC",
    exp.Trim: "TRIM", exp.Trunc: "TRUNC", exp.Upper: "UPPER", exp.Week: "WEEK", exp.WeekOfYear: "WEEK",
    exp.WidthBucket: "WIDTH_BUCKET", exp.Year: "YEAR",
    exp.Column: '"quoted"', exp.Literal: "numbers", exp.Boolean: "TRUE", exp.Null: "NULL", exp.Paren: "parentheses",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Neg: "unary `-`",
    exp.Abs: "ABS", exp.Floor: "FLOOR", exp.Ceil: "CEIL", exp.Round: "ROUND", exp.Least: "LEAST",
    exp.Greatest: "GREATEST", exp.Coalesce: "COALESCE", exp.Case: "CASE",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "AND", exp.Or: "OR", exp.Not: "NOT", exp.Between: "BETWEEN", exp.In: "IN", exp.Is: "IS NULL",
    exp.Like: "LIKE", exp.Cast: "CAST", exp.TryCast: "TRY_CAST",
    exp.Count: "COUNT", exp.CountIf: "COUNT_IF", exp.Sum: "SUM", exp.Avg: "AVG", exp.Filter: "FILTER",
    exp.VariancePop: "VAR_POP", exp.Variance: "VAR_SAMP", exp.StddevPop: "STDDEV_POP", exp.StddevSamp: "STDDEV_SAMP",
    exp.Stddev: "STDDEV", exp.CovarPop: "COVAR_POP", exp.CovarSamp: "COVAR_SAMP", exp.Corr: "CORR",
    exp.Grouping: "GROUPING",
    # inside subqueries
    exp.LogicalAnd: "BOOL_AND", exp.LogicalOr: "BOOL_OR", exp.RowNumber: "ROW_NUMBER", exp.Rank: "RANK",
    exp.DenseRank: "DENSE_RANK", exp.Lag: "LAG", exp.Lead: "LEAD", exp.Ntile: "NTILE", exp.CumeDist: "CUME_DIST",
    exp.PercentRank: "PERCENT_RANK", exp.FirstValue: "FIRST_VALUE", exp.LastValue: "LAST_VALUE",
    exp.NthValue: "NTH_VALUE",
    exp.Median: "MEDIAN", exp.Quantile: "QUANTILE", exp.ApproxQuantile: "APPROX_QUANTILE", exp.Min: "MIN",
    exp.Max: "MAX", exp.PercentileCont: "PERCENTILE_CONT", exp.PercentileDisc: "PERCENTILE_DISC",
    exp.WithinGroup: "WITHIN GROUP",
    # as other databases write it
    exp.Date: "DATE(x)", exp.DateTrunc: "DATE_TRUNC", exp.DatetimeAdd: "DATE_ADD", exp.DatetimeSub: "DATE_SUB",
    exp.EqualNull: "EQUAL_NULL", exp.Nvl2: "NVL2", exp.RegexpILike: "~*", exp.SafeDivide: "SAFE_DIVIDE",
    exp.Timestamp: "TIMESTAMP(x)", exp.TimestampAdd: "TIMESTAMP_ADD", exp.TimestampSub: "TIMESTAMP_SUB",
    exp.TimestampFromParts: "MAKE_TIMESTAMP", exp.ToChar: "TO_CHAR",
    exp.Window: "OVER",
}  # fmt: skip

_NO_CALLS: Final = (exp.Connector, exp.Case, exp.DateAdd, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp)
"""Functions to the parser that are not written as calls, or that are refused."""
_ALSO: Final = ("QUANTILE_CONT",)
"""What people call a construct that has another name above."""


def function_names() -> list[str]:
    """Return the names of all functions and aggregates that a query may call, in alphabetical order."""
    written = [text for kind, text in SPELLED.items() if issubclass(kind, exp.Func) and not issubclass(kind, _NO_CALLS)]
    words = [word[0] for text in written if (word := re.match("[A-Z][A-Z0-9_]*", text))]
    return sorted({*words, *ANONYMOUS, *_ALSO} - REMEDIES.keys())
