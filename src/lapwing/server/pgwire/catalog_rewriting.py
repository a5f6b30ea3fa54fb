"""Write statements of PostgreSQL about its catalog anew for DuckDB, and refuse what is not known to be harmless."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from sqlglot import exp

from lapwing.server.pgwire.catalog_facts import CASTS, FIRST_OWN, NAMES_OF, OWNER, TYPES, Facts, type_name
from lapwing.server.pgwire.catalog_limits import MOST_SERIES, MOST_TEXT, NotAnswered, is_array, require_small, short
from lapwing.server.pgwire.catalog_texts import formatted, names_of, parts_of

_PLAIN: Final = frozenset({"array_to_string", "generate_subscripts", "starts_with"})
"""Functions that DuckDB has as PostgreSQL has them, and that sqlglot does not know by a type of its own."""
_KNOWN: Final = (
    exp.And, exp.Or, exp.Xor, exp.Cast, exp.Case, exp.If, exp.Array, exp.ArrayAgg, exp.ArraySize, exp.ArrayPosition,
    exp.ArrayAppend, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg,
    exp.LogicalAnd, exp.LogicalOr, exp.GroupConcat, exp.RowNumber, exp.Rank, exp.Exists, exp.Lower, exp.Upper,
    exp.Length, exp.Trim, exp.SplitPart, exp.Concat, exp.ConcatWs, exp.Left, exp.Right,
    exp.Substring, exp.StrPosition,
    exp.RegexpLike, exp.RegexpILike, exp.Explode, exp.Unnest, exp.GenerateSeries,
    exp.ExplodingGenerateSeries, exp.Abs, exp.Round, exp.JSONObject,
)  # fmt: skip
"""Functions and operators that mean the same here and there."""
_OPERATORS: Final[Mapping[str, type[exp.Expr]]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, ">": exp.GT, "<=": exp.LTE, ">=": exp.GTE, "~": exp.RegexpLike,
    "~*": exp.RegexpILike, "~~": exp.Like, "~~*": exp.ILike, "||": exp.DPipe, "+": exp.Add, "-": exp.Sub,
}  # fmt: skip
_NUMBERS: Final = ("oid", "int4", "int", "integer", "int8", "bigint")
_TEXTS: Final = ("text", "varchar", "name")
_PERSON: Final = ("user", "current_role")
_PROCEDURES: Final = ("typinput", "typoutput", "typreceive", "typsend")
"""Columns that have the number of a function, and show its name."""
_WITHOUT_EFFECT: Final = ("jit", "search_path", "bytea_output", "extra_float_digits", "statement_timeout")
"""Settings that a function may be asked to set, because nothing here depends on them."""
_SCHEMAS: Final = ("pg_catalog", "information_schema")
_WRITTEN: Final = frozenset(NAMES_OF.values()) | {"pgf_grants", "pgf_procedure_name", "list_contains"}
"""Names that `Rewriter` writes itself."""


@final
class Rewriter:
    """Writes a statement of PostgreSQL anew for the tables of `catalog.sql`, and refuses what it does not know."""

    def __init__(
        self,
        facts: Facts,
        settings: Mapping[str, str],
        tables: set[tuple[str, str]],
        macros: set[str],
        numbers: Mapping[str, int],
        given: Sequence[object],
    ) -> None:
        self._facts, self._tables, self._macros, self._numbers = facts, tables, macros, numbers
        self._settings, self._given = settings, given
        self._of_withs: set[int] = set()

    def is_of_catalog(self, tree: exp.Expr) -> bool:
        """Tell whether all tables of a statement are of the catalog.

        Raises:
            NotAnswered: If only some are.
        """
        if not isinstance(tree, exp.Query | exp.Values):
            raise NotAnswered("Only a SELECT can read the catalog.")
        kinds = {
            self._place(table) is not None
            for table in tree.find_all(exp.Table)
            if isinstance(table.this, exp.Identifier) and _with_of(table) is None
        }
        if kinds == {True, False}:
            raise NotAnswered("A statement reads the catalog, or tables of the data set, but not both.")
        return kinds != {False}

    def _place(self, table: exp.Table) -> tuple[str, str] | None:
        """Return where a table of the catalog is here; None of any other.

        Raises:
            NotAnswered: If the catalog has none of that name.
        """
        schema, name = table.db.lower(), table.name.lower()
        if schema not in ("", "pg_catalog", "information_schema"):
            return None
        found = ("info" if schema == "information_schema" else "pg", name)
        if found not in self._tables:
            if schema:
                raise NotAnswered(f"The table {schema}.{name[:64]} is not answered here.")
            return None
        if table.catalog and table.catalog != self._facts.dataset:
            raise NotAnswered("A statement reads the catalog of its own database.")
        return found

    def rewritten(self, tree: exp.Expr) -> exp.Expr:
        """Return a statement for the tables here.

        Raises:
            NotAnswered: If it holds anything unknown.
        """
        require_small(tree)
        self._rename_withs(tree)
        return self._rewritten(tree)

    def _rename_withs(self, tree: exp.Expr) -> None:
        """Give each query of a WITH a name that DuckDB does not have, and use it where the query is meant.

        So a name that means something else at its place, such as a view of DuckDB, is never taken for one.
        """
        meant = [(table, cte) for table in tree.find_all(exp.Table) if (cte := _with_of(table)) is not None]
        fresh = {id(cte): f"pgw {number}" for number, cte in enumerate(tree.find_all(exp.CTE))}
        for table, cte in meant:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=checked(table.this).copy()))
            table.set("this", exp.to_identifier(fresh[id(cte)], quoted=True))
        for cte in tree.find_all(exp.CTE):
            cte.args["alias"].set("this", exp.to_identifier(fresh[id(cte)], quoted=True))
        self._of_withs = {id(table) for table, _ in meant}

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        """Return an expression for the tables here, its parts first, so that none is passed over."""
        for part in list(node.iter_expressions()):
            key, index = part.arg_key, part.index  # before it may become a part of what stands for it
            written = self._rewritten(part)
            if written is not part and key is not None:
                node.set(key, written, index)
        return self._node(node)

    def _node(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Into() | exp.DML() | exp.DDL() | exp.Command():
                raise NotAnswered("Only a SELECT can read the catalog.")
            case exp.Dot(this=exp.Identifier(this=schema)) if schema.lower() in _SCHEMAS:
                return checked(node.expression)
            case exp.Table():
                return self._table_of(node)
            case exp.Column():
                return self._column(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Operator():
                return self._operator(node)
            case exp.DPipe() if not (
                isinstance(node.parent, exp.DPipe) or is_array(node.this) or is_array(node.expression)
            ):
                return short(node)
            case exp.Collate():
                return checked(node.this)
            case exp.NEQ(expression=exp.Anonymous()) if node.expression.name.lower() == "all":
                listed = exp.Anonymous(this="list_contains", expressions=[*node.expression.expressions, node.this])
                return exp.Not(this=listed)
            case exp.ByteString():
                return exp.Literal.string(node.this)
            case exp.Literal(is_string=True) if node.this[:1] == "{" and node.this[-1:] == "}":
                return exp.Literal.string(f"[{node.this[1:-1]}]")
            case exp.Parameter():
                self._value(node)  # so that one that did not come is refused
                return node
            case exp.Func():
                return self.call(node)
            case _:
                return node

    def _table_of(self, node: exp.Table) -> exp.Expr:
        if isinstance(node.this, exp.Func):
            return _function_table(node)
        if not isinstance(node.this, exp.Identifier):
            raise NotAnswered("This table is not answered here.")
        if id(node) in self._of_withs:
            return node
        place = self._place(node)
        if place is None:
            raise NotAnswered("A statement reads the catalog, or tables of the data set, but not both.")
        if place == ("pg", "pg_settings"):
            return self._settings_table(node)
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(place[1], quoted=True)))
        node.set("this", exp.to_identifier(place[1], quoted=True))
        node.set("db", exp.to_identifier(place[0]))
        node.set("catalog", None)
        return node

    def _settings_table(self, node: exp.Table) -> exp.Expr:
        """Return the settings of the connection as a table of constants."""
        rows = [(name, value, None, "string", "user", value, value) for name, value in self._settings.items()]
        names = ("name", "setting", "unit", "vartype", "context", "boot_val", "reset_val")
        return exp.values([*rows, ("max_index_keys", "32", None, "integer", "internal", "32", "32")],
                          alias=node.alias or "pg_settings", columns=names)  # fmt: skip

    def _column(self, node: exp.Column) -> exp.Expr:
        if node.db.lower() in _SCHEMAS:
            node.set("db", None)
            node.set("catalog", None)
        name = node.this
        if node.name.lower() in _PROCEDURES and _is_shown(node):
            return exp.Anonymous(this="pgf_procedure_name", expressions=[node])
        if not node.table and isinstance(name, exp.Identifier) and not name.quoted and name.name.lower() in _PERSON:
            return exp.Literal.string(self._facts.person)
        return node

    def _cast(self, node: exp.Cast) -> exp.Expr:
        """Return a cast; one between the number and the name of an object is looked up."""
        kind, depth = type_name(node.to)
        if kind in ("regclass", "regtype", "regnamespace", "regrole", "regproc"):
            inner = node.this
            while isinstance(inner, exp.Collate | exp.Paren):
                inner = inner.this
            constant = self._constant(inner)
            if constant is not None:
                number: exp.Expr = exp.Literal.number(self._object(kind, constant))
            elif kind == "regclass" and isinstance(inner, exp.Left | exp.DPipe):  # a name that is put together
                number = exp.Anonymous(this="pgf_relation_number", expressions=[inner])
            else:
                number = inner
            outer = type_name(node.parent.to)[0] if isinstance(node.parent, exp.Cast) else ""
            named = constant is not None and not (isinstance(inner, exp.Literal) and not inner.is_string)
            compared = isinstance(node.parent, exp.EQ | exp.NEQ | exp.In)
            if kind == "regproc" or outer in _NUMBERS or compared or (named and outer not in _TEXTS):
                return exp.cast(number, "UINTEGER", dialect="duckdb")
            inner = number
            more = [exp.null()] if kind == "regtype" else []
            return exp.Anonymous(this=NAMES_OF[kind], expressions=[inner, *more])
        if kind not in CASTS:
            raise NotAnswered(f"A cast to {kind[:64]} is not answered here.")
        node.set("to", exp.DataType.build(CASTS[kind] + "[]" * depth, dialect="duckdb"))
        return node

    def _constant(self, node: exp.Expr) -> str | None:
        """Return the text of a constant or of a parameter; None of any other expression."""
        if isinstance(node, exp.Cast) and type_name(node.to)[0] in (*_TEXTS, "unknown"):
            return self._constant(node.this)
        if isinstance(node, exp.Literal):
            return str(node.this)
        if isinstance(node, exp.Parameter):
            return str(self._value(node))
        return None

    def _object(self, kind: str, text: str) -> int:
        """Return the number of an object by its name, or by its number as a text."""
        if text == "" or (text.isdecimal() and len(text) <= 10 and int(text) < 2**32):
            return int(text or "0")
        schema, _, name = text.rpartition(".")
        name = name[1:-1].replace('""', '"') if name[:1] == '"' else name.lower()
        known: Mapping[str, int] = {
            "regclass": self._numbers,
            "regtype": {spelt: row[0] for row in TYPES for spelt in row[1:3]},
            "regnamespace": {"pg_catalog": 11, "public": 2200, "information_schema": 13000},
            "regproc": {"array_in": 750, "array_recv": 2400},
            "regrole": {OWNER: 10, self._facts.person: FIRST_OWN - 1},
        }.get(kind, {})
        if name not in known or schema.strip('"').lower() not in ("", "public", "pg_catalog"):
            raise NotAnswered(f"There is no {name[:64]!r}.", "42P01" if kind == "regclass" else "42704")
        return known[name]

    def _operator(self, node: exp.Operator) -> exp.Expr:
        """Return an operator that was written as OPERATOR(pg_catalog.=)."""
        name = str(node.args["operator"]).rpartition("pg_catalog.")[2]
        negated, kind = name.startswith("!"), _OPERATORS.get(name.removeprefix("!"))
        if kind is None:
            raise NotAnswered(f"The operator {name[:16]} is not answered here.")
        plain = kind(this=node.this, expression=node.expression)
        if kind is exp.DPipe:
            return short(plain)
        return exp.Not(this=plain) if negated else plain

    def used(self, tree: exp.Expr) -> dict[str, object]:
        """Return the values of the parameters that are left in a statement, by name."""
        return {one.name: self._value(one) for one in tree.find_all(exp.Parameter)}

    def _value(self, node: exp.Parameter) -> object:
        """Return the value of `$1`; an array that came as a text, as a list."""
        if not node.name.isdecimal() or not 0 < int(node.name[:100]) <= len(self._given):
            raise NotAnswered("There is no parameter of this number.", "42P02")
        value = self._given[int(node.name[:100]) - 1]
        if isinstance(value, str | list) and len(str(value)) > MOST_TEXT:
            raise NotAnswered(f"A parameter of a statement about the catalog has at most {MOST_TEXT:,} characters.",
                              "54000")  # fmt: skip
        if isinstance(value, str) and value[:1] == "{" and value[-1:] == "}":
            return [one.strip('"') for one in value[1:-1].split(",") if one]
        return value

    def call(self, node: exp.Func) -> exp.Expr:
        """Return what a function of the list is here; any other is refused."""
        match node:
            case exp.CurrentUser() | exp.SessionUser():
                return exp.Literal.string(self._facts.person)
            case exp.CurrentDatabase() | exp.CurrentCatalog():
                return exp.Literal.string(self._facts.dataset)
            case exp.CurrentSchema():
                return exp.Literal.string("public")
            case exp.CurrentSchemas():
                return _search_path()
            case exp.CurrentVersion():
                return exp.Literal.string(self._facts.version)
            case exp.Anonymous():
                return self._named(node)
            case exp.Concat() | exp.ConcatWs():
                return short(node)
            case exp.Replace():
                return _replaced(node)
            case exp.StringToArray():
                return parts_of(node.this, node.args.get("expression"))
            case exp.Format():
                return formatted(node)
            case exp.GroupConcat() if not isinstance(node.args.get("separator"), exp.Literal | None):
                raise NotAnswered("The texts between others are constants here.")
            case exp.GenerateSeries() | exp.ExplodingGenerateSeries():
                return self._series(node)
            case exp.AggFunc() | exp.Func() if isinstance(node, _KNOWN):
                return node
            case _:
                raise NotAnswered(f"The function {node.sql_name().lower()[:64]} is not answered here.")

    def _named(self, node: exp.Anonymous) -> exp.Expr:
        name = node.name.lower()
        plain = {"version": self._facts.version, "current_database": self._facts.dataset, "current_schema": "public"}
        if name in plain and not node.expressions:
            return exp.Literal.string(plain[name])
        if name == "current_schemas":
            return _search_path()
        if name in ("current_setting", "to_regclass", "to_regtype", "parse_ident") and node.expressions:
            constant = self._constant(node.expressions[0])
            if constant is None:
                raise NotAnswered(f"{name} takes a constant here.")
            return self._looked_up(name, constant)
        if name == "all" and isinstance(node.parent, exp.NEQ) and len(node.expressions) == 1:
            return node
        if name == "set_config" and len(node.expressions) == 3:
            return self._unchanged(node)
        if name == "pg_partition_ancestors" and len(node.expressions) == 1:
            number = exp.cast(node.expressions[0], "UINTEGER", dialect="duckdb")
            return exp.Explode(this=exp.Array(expressions=[number]))
        if f"pgf_{name}" in self._macros:
            return exp.Anonymous(this=f"pgf_{name}", expressions=node.expressions)
        if name == "json_build_object":
            return exp.Anonymous(this="json_object", expressions=node.expressions)
        if name == "array_to_string":
            if not all(isinstance(expression, exp.Literal) for expression in node.expressions[1:]):
                raise NotAnswered("The texts between others are constants here.")
            return short(node)
        if name in _PLAIN or name in _WRITTEN:
            return node
        raise NotAnswered(f"The function {name[:64]} is not answered here.")

    def _unchanged(self, node: exp.Anonymous) -> exp.Expr:
        """Return the value that a client gives to a setting which changes nothing here; any other is refused."""
        name, value = (self._constant(expression) for expression in node.expressions[:2])
        if name is None or value is None or name.lower() not in _WITHOUT_EFFECT:
            raise NotAnswered("Write SET name = value; set_config takes no setting that has an effect here.")
        return exp.Literal.string(value)

    def _series(self, node: exp.Func) -> exp.Expr:
        """Return a series whose ends are small constants, or the ends of an array."""
        for end in (node.args.get(name) for name in ("start", "end", "step")):
            while isinstance(end, exp.Paren | exp.Neg | exp.Cast):
                end = end.this
            small = isinstance(end, exp.Literal) and end.is_int and int(end.name[:9]) <= MOST_SERIES
            of_array = isinstance(end, exp.Anonymous) and end.name.lower() in ("pgf_array_upper", "pgf_array_lower")
            if end is not None and not small and not of_array:
                raise NotAnswered(f"A series has constant ends here, up to {MOST_SERIES:,}.")
        return node

    def _looked_up(self, name: str, constant: str) -> exp.Expr:
        if name == "parse_ident":
            return names_of(constant)
        if name == "current_setting":
            known = {one.lower(): value for one, value in self._settings.items()}
            value = known.get(constant.lower())
            return exp.null() if value is None else exp.Literal.string(value)
        try:
            number = self._object(name.removeprefix("to_"), constant)
        except NotAnswered:
            return exp.null()
        return exp.cast(exp.Literal.number(number), "UINTEGER", dialect="duckdb")


def _replaced(node: exp.Replace) -> exp.Expr:
    """Return a replacement in a text, by constants that make it at most twice as long."""
    old, new = node.expression, node.args.get("replacement")
    if not all(isinstance(one, exp.Literal) and one.is_string for one in (old, new)):
        raise NotAnswered("A text is replaced by a constant here.")
    if not old.name or len(checked(new).name) > 2 * len(old.name):
        raise NotAnswered("A replacement makes a text at most twice as long here.", "54000")
    return short(node)


def _is_shown(node: exp.Column) -> bool:
    """Tell whether a column is in a list of results, or becomes a text."""
    outer = node.parent
    if isinstance(outer, exp.Cast):
        return type_name(outer.to)[0] in _TEXTS
    return isinstance(outer, exp.Select) and node.arg_key == "expressions"


def _with_of(table: exp.Table) -> exp.CTE | None:
    """Return the query of a WITH that the name of a table means at its place."""
    if table.db:
        return None
    name, node = table.name.lower(), table.parent
    below: exp.Expr = table
    while node is not None:
        within = node.args.get("with_")
        if isinstance(node, exp.With):
            known = node.expressions[: _place_in(node.expressions, below) + bool(node.recursive)]
        elif isinstance(within, exp.With) and within is not below:
            known = within.expressions
        else:
            known = []
        for cte in known:
            if isinstance(cte, exp.CTE) and cte.alias.lower() == name:
                return cte
        below, node = node, node.parent
    return None


def _place_in(parts: Sequence[object], part: object) -> int:
    return next(place for place, one in enumerate(parts) if one is part)


def _function_table(node: exp.Table) -> exp.Expr:
    """Return a function in FROM, whose column has the name of the table, as in PostgreSQL."""
    node.set("db", None)
    node.set("catalog", None)
    alias = node.args.get("alias")
    if alias is not None and alias.this is not None and not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])
    if isinstance(node.this, exp.Array):  # one row with an array
        name = alias.this if alias is not None and alias.this is not None else exp.to_identifier("array")
        return exp.select(exp.alias_(node.this, name.copy())).subquery(name.copy())
    if not isinstance(node.this, exp.Explode):
        return node
    columns = alias.args.get("columns", []) if alias is not None else []
    counted = columns.pop() if node.args.get("ordinality") and len(columns) > 1 else None
    return exp.Unnest(expressions=[node.this.this], alias=alias, offset=counted)


def checked(node: Any) -> exp.Expr:
    """Return a part of an expression, which sqlglot declares as anything."""
    if not isinstance(node, exp.Expr):
        raise NotAnswered("This statement about the catalog cannot be answered.")
    return node


def _search_path() -> exp.Expr:
    return exp.array(exp.Literal.string("pg_catalog"), exp.Literal.string("public"))


def column_names(tree: exp.Expr) -> list[str] | None:
    """Return the names that PostgreSQL gives the columns of a query; None where a star stands for some."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    names = []
    for shown in tree.expressions:
        if shown.is_star:
            return None
        names.append(_name(shown))
    return names


def _name(shown: exp.Expr) -> str:
    """Return the name of a column that its query may not have named."""
    match shown:
        case exp.Alias():
            return shown.alias
        case exp.Column() | exp.Anonymous():
            return shown.name if isinstance(shown, exp.Column) else shown.name.lower()
        case exp.Cast():
            inner = _name(shown.this)
            return type_name(shown.to)[0] if inner == "?column?" else inner
        case exp.Dot() | exp.Paren() | exp.Collate():
            return _name(shown.expression if isinstance(shown, exp.Dot) else shown.this)
        case exp.Identifier():
            return str(shown.this)
        case exp.Case():
            return "case"
        case exp.CurrentVersion():
            return "version"
        case exp.Array():
            return "array"
        case exp.And() | exp.Or():
            return "?column?"
        case exp.Func():
            return shown.sql_name().lower()
        case _:
            return "?column?"
