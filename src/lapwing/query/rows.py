"""What a question may name in one row: columns by SQL's rules, and refusals that know where they point."""

from dataclasses import dataclass

from sqlglot import exp

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.errors import QueryRefused
from lapwing.query.expression import Column
from lapwing.query.parse import position_of
from lapwing.query.types import (
    BOOLEAN,
    DATE,
    TEXT,
    TIMESTAMP,
    UNBOUNDED_INTEGER,
    UNBOUNDED_REAL,
    Fixed,
    Type,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The columns that an expression may name, and the text that positions refer to."""

    text: str
    table: Table
    alias: str | None = None

    def column(self, node: exp.Expression) -> Column:
        """Find a column of the table by SQL's rules: plain names fold case, quoted names do not."""
        only(self, node, "this", "table")
        if not self._qualified(node):
            raise refusal(self, node, f"'{node.args['table'].name}' is not the table of this question")
        identifier = node.this
        if not is_column(node):
            raise refusal(self, node, "SELECT * and column patterns are not answered", "Name the columns.")
        only(self, identifier, "this", "quoted")
        for declared in self.table.columns:
            if same_name(identifier, declared.name):
                return Column(name=declared.name, type=column_type(declared))
        if self.is_unit(node):
            raise refusal(
                self,
                node,
                f"'{identifier.name}' is the privacy unit and not a column of the catalog",
                f"Use COUNT(DISTINCT {identifier.name}).",
            )
        known = ", ".join(column.name for column in self.table.columns)
        raise refusal(self, node, f"There is no column '{identifier.name}' in {self.table.name}", f"Columns: {known}.")

    def is_unit(self, node: exp.Expression) -> bool:
        """Tell whether a node names the privacy unit of the table."""
        unit = self.table.privacy_unit
        if unit == "row" or not is_column(node):
            return False
        only(self, node, "this", "table")
        only(self, node.this, "this", "quoted")
        return same_name(node.this, unit) and self._qualified(node)

    def _qualified(self, node: exp.Expression) -> bool:
        qualifier = node.args.get("table")
        if qualifier is None:
            return True
        only(self, qualifier, "this", "quoted")
        return same_name(qualifier, self.alias or self.table.name)


def column_type(declared: Declared) -> Type:
    """Return the type of a declared column's value."""
    match declared.type:
        case "boolean":
            return BOOLEAN
        case "string":
            return TEXT
        case "date":
            return DATE
        case "timestamp":
            return TIMESTAMP
    if not declared.bounded or declared.step is None:
        return UNBOUNDED_INTEGER if declared.type == "integer" else UNBOUNDED_REAL
    return Fixed(step=declared.step, low=declared.low, high=declared.high)


def is_column(node: exp.Expression) -> bool:
    """Tell whether a node is the name of a column, and nothing that resembles one."""
    return type(node) is exp.Column and type(node.this) is exp.Identifier


def same_name(identifier: exp.Expression, name: str) -> bool:
    """Compare an identifier with a declared name: exactly when quoted, else without regard to case."""
    quoted = bool(identifier.args.get("quoted"))
    return identifier.name == name if quoted else identifier.name.casefold() == name.casefold()


def refusal(rows: Rows, node: exp.Expression, reason: str, remedy: str = "") -> QueryRefused:
    """Return a refusal that knows where in the text it points."""
    return QueryRefused(reason, remedy=remedy, position=position_of(node, rows.text))


def only(rows: Rows, node: exp.Expression, *allowed: str) -> None:
    """Refuse a node that carries any argument outside an allow-list."""
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, [], ""):
            what = _ARGUMENTS.get(name, name.rstrip("_").replace("_", " ").upper())
            part = value[0] if isinstance(value, list) else value
            known = isinstance(part, exp.Expression) and position_of(part, rows.text) is not None
            raise refusal(
                rows, part if known else node, f"{what} is not answered here", "See the SQL reference for what is."
            )


_ARGUMENTS = {
    "alias": "An alias",
    "catalog": "A database name",
    "columns": "A list of column names",
    "db": "A schema name",
    "expressions": "A second argument",
    "joins": "A join",
    "kind": "A type of your own",
    "limit_options": "LIMIT in percent",
    "locks": "FOR UPDATE",
    "pivots": "PIVOT",
    "query": "A subquery",
    "sample": "A sample",
    "when": "AT",
    "windows": "WINDOW",
}
