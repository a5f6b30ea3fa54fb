"""A field of a JSON text: x ->> '$.address.city', x -> 'tags' ->> 0, JSON_EXTRACT_STRING(x, '$.tags[0]').

JSON_VALUE(x, '$.age') is the same, but NULL of an object or a list. DuckDB's function of this name returns JSON, so its
whole is read as a text.

Guarantee:
    Total. A text that is no JSON has no fields. So the value is NULL, and so it is where the path leads nowhere. The
    engine's function fails on no valid JSON, and is handed nothing else (`engines.duckdb.printers`). The path is a
    constant of names and places. The value is a text of the row, with private values. It is at most six times as long
    as the JSON. A number may be written with more digits: `9e20` has 4 characters, and 23 are shown. Nothing else
    grows more.
"""

import re
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions.rows import RowScope

LONGEST_PATH: Final = 20
"""Names and places in one path at most."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def field_of_json(node: exp.Expression, rows: RowScope) -> tuple[exp.Expression, str]:
    """Return the text that x ->> path looks into, and the path as the engine reads it: `$."a"[0]`.

    Raises:
        QueryRefused: If the path is no constant of names and places.
    """
    # What only_json_types and scalar_only say is fixed by the dialect: numbers and truths are fields, too.
    rows.only(node, "this", "expression", "only_json_types", "scalar_only")
    parts, inner = _parts(node.expression, rows), node.this
    while isinstance(inner, exp.JSONExtract) and parts is not None:
        rows.only(inner, "this", "expression", "only_json_types")
        before = _parts(inner.expression, rows)
        parts, inner = None if before is None else before + parts, inner.this
    if parts is None or parts.count("[") + parts.count(".") > LONGEST_PATH:
        reason = "A field of a JSON text takes a constant path of names and places"
        raise rows.refusal(
            node, RefusalCause.NOT_CONSTANT, reason, "Write x ->> '$.address.city' or x ->> '$.tags[0]'."
        )
    return inner, f"${parts}"


def _parts(node: exp.Expr | None, rows: RowScope) -> str | None:
    """Return the parts of a path, `."a"[0]`; None if it has others, or if its text is not clear.

    The parser reads 'a.b' as '$.a.b', where DuckDB and PostgreSQL mean a name with a point. So a path of several parts
    must stand in the text with its $, and never without. It also reads '$a', which is no path.
    """
    if not isinstance(node, exp.JSONPath) or not isinstance(node.expressions[0], exp.JSONPathRoot):
        return None
    rows.only(node, "expressions")
    rows.only(node.expressions[0])
    written = found = ""
    for part in node.expressions[1:]:
        rows.only(part, "this")
        if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str) and _NAME.fullmatch(part.this):
            written, found = f"{written}.{part.this}", f'{found}."{part.this}"'
        elif isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int) and 0 <= part.this < 10**6:
            written, found = f"{written}[{part.this}]", f"{found}[{part.this}]"
        else:
            return None
    clear = len(node.expressions) == 2 or (f"'${written}'" in rows.text and f"'{written[1:]}'" not in rows.text)
    clear = clear and f"'${written[1:]}'" not in rows.text
    return found if found and clear else None
