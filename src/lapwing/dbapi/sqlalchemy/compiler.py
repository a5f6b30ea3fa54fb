"""The SQL that SQLAlchemy writes, in the words that Lapwing reads.

It differs from standard SQL in little. A pattern of LIKE is one constant, so what begins, ends or contains is a
function. A list without values is a condition that never holds. Division is of numbers, never of whole ones.
"""

from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.exc import CompileError
from sqlalchemy.sql.compiler import RESERVED_WORDS, IdentifierPreparer, SQLCompiler
from sqlalchemy.sql.elements import BinaryExpression
from sqlglot.dialects.duckdb import DuckDB

_EXAMPLES: Final = {types.Boolean: "TRUE", types.Date: "DATE '2000-01-01'", types.DateTime: "TIMESTAMP '2000-01-01'"}


class LapwingCompiler(SQLCompiler):
    """Writes SELECT."""

    def visit_startswith_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write `startswith`, in which `%` and `_` are characters like others."""
        return self._call("starts_with", binary, **kw)

    def visit_not_startswith_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write its opposite."""
        return f"NOT {self._call('starts_with', binary, **kw)}"

    def visit_endswith_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write `endswith`."""
        return self._call("ends_with", binary, **kw)

    def visit_not_endswith_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write its opposite."""
        return f"NOT {self._call('ends_with', binary, **kw)}"

    def visit_contains_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write `contains`."""
        return self._call("contains", binary, **kw)

    def visit_not_contains_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write its opposite."""
        return f"NOT {self._call('contains', binary, **kw)}"

    def visit_ilike_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write `ilike`."""
        return self._like("ILIKE", binary, **kw)

    def visit_not_ilike_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write its opposite."""
        return self._like("NOT ILIKE", binary, **kw)

    def visit_regexp_match_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write `regexp_match`."""
        return self._call("regexp_matches", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: BinaryExpression[Any], operator: Any, **kw: Any) -> str:
        """Write its opposite."""
        return f"NOT {self._call('regexp_matches', binary, **kw)}"

    def visit_empty_set_op_expr(self, type_: Any, expand_op: Any, **kw: Any) -> str:
        """Write what stands in `IN (…)` without values, with a condition after it that decides."""
        negated = getattr(expand_op, "__name__", "") == "not_in_op"
        kinds = type_ if isinstance(type_, list | tuple) else [type_]
        if len(kinds) != 1:
            raise CompileError("A list of rows without values is not supported; leave the condition out.")
        return f"{_example(kinds[0])}) {'OR (1 = 1' if negated else 'AND (1 = 0'}"

    def _call(self, function: str, binary: BinaryExpression[Any], **kw: Any) -> str:
        modifiers = {name for name, value in (binary.modifiers or {}).items() if value}
        if modifiers:
            raise CompileError(f"{function} takes no {', '.join(sorted(modifiers))}; leave it out.")
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        return f"{function}({left}, {right})"

    def _like(self, word: str, binary: BinaryExpression[Any], **kw: Any) -> str:
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        escape = (binary.modifiers or {}).get("escape")
        tail = "" if escape is None else f" ESCAPE {self.render_literal_value(escape, types.String())}"
        return f"{left} {word} {right}{tail}"


def _example(kind: Any) -> str:
    """Return a constant of a type."""
    if isinstance(kind, types.Integer | types.Numeric):
        return "0"
    return next((text for known, text in _EXAMPLES.items() if isinstance(kind, known)), "''")


class LapwingPreparer(IdentifierPreparer):
    """Writes names: in quotes, if the parser of Lapwing has a word like it."""

    reserved_words = RESERVED_WORDS | {word.lower() for word in DuckDB.Tokenizer.KEYWORDS if word.isidentifier()}
