"""A SELECT over the answer of another: FROM (SELECT plan, COUNT(*) AS n … GROUP BY plan) WHERE n > 10.

The inner question is released; what stands around it is computed from released numbers and keys alone, so that it costs
nothing and cannot leak. Nothing but the inner question touches data, and it is the same question, found again and
stored under the same name, as one that is written without anything around it.

What SQL does with the rows of the inner answer is what HAVING, QUALIFY, ORDER BY, LIMIT and window functions do with
the rows of an answer: WHERE keeps some of them before windows are computed, as HAVING does, or after the inner ones, as
QUALIFY does. An aggregate over them is that window function over each group, of which one row is shown. Where the inner
and the outer SELECT would need two passes of the same kind, the question is refused.

Which SELECT is the question? One that groups by the privacy unit gives rows of units (`classify.kinds`), and one
that aggregates over such is the question, bound as such (`from_clause.subqueries`). So no text has two meanings.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.clauses import bind_limit, bind_order, bind_qualify, bind_where, check_distinct
from lapwing.query.aggregates.outputs import bind_output
from lapwing.query.aggregates.result_aggregates import in_known_words
from lapwing.query.aggregates.scope import Requests, SelectScope
from lapwing.query.classify.inner_select import InnerSelect
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.derived import KeyValue, measures_of
from lapwing.query.derivation.node import Derived, Output, OutputOrder
from lapwing.query.derivation.window_values import over_in
from lapwing.query.expressions.expression import Literal
from lapwing.query.expressions.rows import RowScope, TableReference, is_column, same_name
from lapwing.query.expressions.types import NULL
from lapwing.query.from_clause.common_tables import (
    checked_name,
)
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.select_list import chosen, replaced, starred
from lapwing.query.plan.plan import Plan, without_unread
from lapwing.query.text.trees import copied, nodes_of

Outputs = Callable[[exp.Select, SelectScope, Requests], tuple[Output, ...]]
"""Binds a SELECT list."""
_CLAUSES = (
    "expressions", "from_", "where", "group", "having", "qualify", "distinct", "order", "limit", "offset", "with_",
)  # fmt: skip


def over_answer(plan: Plan, inner: "InnerSelect", select: exp.Select, outputs: Outputs, text: str) -> Plan:
    """Return the plan of a SELECT over the answer to a question.

    Raises:
        QueryRefused: With `TWICE_OVER_ANSWER` as its cause if one pass over the answer is not enough.
    """
    if is_aggregated(select) and plan.composition is None and not plan.question.measures:
        reason = "The SELECT inside shows keys alone, public ones whether or not any row has them"
        raise QueryRefused(
            reason,
            cause=RefusalCause.KEYS_WITHOUT_NUMBER,
            remedy="Ask for COUNT(DISTINCT x), or show COUNT(*) beside the keys.",
        )
    return OuterSelect(plan, inner, text, outputs).over(select)


class OuterSelect:
    """A SELECT over the answer of a plan: of one question, or one that is made of several (`compositions`)."""

    def __init__(self, plan: Plan, inner: InnerSelect, text: str, outputs: Outputs) -> None:
        self._plan, self._inner, self._outputs = plan, inner, outputs
        names = inner.columns or tuple(output.name for output in plan.outputs)
        nothing = Literal(value=None, type=NULL)
        source = TableReference(name=inner.name, columns=dict.fromkeys(names, nothing))
        self._rows = RowScope(text=text, sources=(source,))
        self._names = names
        if len(names) != len(plan.outputs) or len({name.casefold() for name in names}) < len(names):
            raise QueryRefused(
                f"'{inner.name}' has {len(plan.outputs)} columns",
                cause=RefusalCause.COLUMN_LIST_MISMATCH,
                remedy="Name each of them, all different.",
            )

    def over(self, select: exp.Select) -> Plan:
        """Return the plan of a SELECT over the answer."""
        self._rows.only(select, *_CLAUSES)
        # WITH and FROM are read already; what is left is changed, and the text of others is not.
        select = copied(select)
        select.set("with_", None)
        select.set("from_", None)
        self._unqualified(select)
        self._without_stars(select)
        aggregated = is_aggregated(select)
        if not aggregated and select.args.get("having") is not None:
            raise self._rows.refusal(
                select.args["having"], RefusalCause.HAVING_WITHOUT_GROUP_BY, "HAVING without GROUP BY", "Write WHERE."
            )
        one_of_group = self._as_windows(select) if aggregated else None
        return self._bind(select, one_of_group)

    def _bind(self, select: exp.Select, one_of_group: exp.Expression | None) -> Plan:
        plan, rows, clause, requests = self._plan, self._rows, select.args.get, Requests()
        inside = {name.casefold(): o.value for name, o in zip(self._names, plan.outputs, strict=True)}
        scope = SelectScope(rows=rows, selection=plan.question.selection, keys=(), aliases=inside)
        outputs = self._outputs(select, scope, requests)
        # Everywhere but in ORDER BY a name is that of a column of the subquery before it is one of this answer.
        named = replace(scope, aliases={**{output.name.casefold(): output.value for output in outputs}, **inside})
        where = None if (node := clause("where")) is None else bind_where(node, scope, requests)
        chosen = [bind_qualify(node, named, requests) for name in ("qualify", "having") if (node := clause(name))]
        conditions = chosen if one_of_group is None else [_one_row(bind_output(one_of_group, scope, requests)), *chosen]
        terms: tuple[OutputOrder, ...] = ()
        if (node := clause("order")) is not None:
            terms = bind_order(_placed(node, outputs, rows), outputs, named, requests)
        if clause("distinct") is not None:
            question = plan.question
            check_distinct(select, outputs, question.sets or (question.keys,), rows)
        limit = None if (node := clause("limit")) is None else bind_limit(node, "limit", rows)
        offset = 0 if (node := clause("offset")) is None else bind_limit(node, "offset", rows)

        # What the inner SELECT does last must not come after what this one does first.
        values = [*(output.value for output in outputs), *conditions, *(term.value for term in terms)]
        own = _windows(values, beyond=[output.value for output in plan.outputs])
        inner_windows = plan.qualify is not None or any(over_in(output.value) for output in plan.outputs)
        acts = where is not None or conditions or terms or limit is not None or offset or own
        if acts and (plan.limit is not None or plan.offset):
            raise self._refused(select, "a LIMIT inside", "Put LIMIT outside, or ORDER BY and LIMIT together.")
        if own and (plan.qualify is not None or (inner_windows and where is not None)):
            reason = "window functions or aggregates over a subquery that chooses by some"
            raise self._refused(select, reason, "Compute them in one SELECT.")
        late = where is not None and (inner_windows or bool(over_in(where)))
        return _settled(
            replace(
                plan,
                outputs=outputs,
                having=plan.having if late else _both(plan.having, where),
                qualify=_both(plan.qualify, where if late else None, *conditions),
                order=terms or (() if one_of_group is not None else plan.order),
                limit=plan.limit if limit is None else limit,
                offset=offset or plan.offset,
            )
        )

    def _refused(self, node: exp.Expression, what: str, remedy: str) -> QueryRefused:
        reason = f"A SELECT over the result of another does not go with {what}"
        return self._rows.refusal(node, RefusalCause.TWICE_OVER_ANSWER, reason, remedy)

    # ---- the text, so that it can be bound like that of one SELECT --------------------------------------------------

    def _unqualified(self, select: exp.Select) -> None:
        """Leave out the name of the subquery before its columns."""
        for column in nodes_of(select, exp.Column):
            qualifier = column.args.get("table")
            if isinstance(qualifier, exp.Identifier) and same_name(qualifier, self._inner.name):
                checked_name(qualifier, self._rows)
                column.set("table", None)

    def _without_stars(self, select: exp.Select) -> None:
        """Write the names of all columns in the place of *."""
        items: list[exp.Expression] = []
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) and not item.args.get("table") else item
            if isinstance(star, exp.Star):
                names = starred(star, self._names, self._rows)
                others = replaced(star, names, self._rows)
                items += [_shown(name, others.get(name)) for name in names]
            else:
                items.append(item)
        select.set("expressions", items)

    def _as_windows(self, select: exp.Select) -> exp.Expression:
        """Make window functions of the aggregates, and return the condition that keeps one row of every group."""
        if select.args.get("distinct") is not None or select.args.get("qualify") is not None:
            raise self._refused(select, "DISTINCT or QUALIFY beside aggregates", "Leave it out.")
        groups = self._groups(select)
        for clause in (*select.expressions, select.args.get("having"), select.args.get("order")):
            if clause is not None:
                self._over_groups(clause, groups, select)
        select.set("group", None)
        first = groups[0] if groups else exp.Column(this=exp.Identifier(this=self._names[0], quoted=True))
        order = exp.Order(expressions=[exp.Ordered(this=copied(first))])
        number = exp.Window(this=exp.RowNumber(), partition_by=[copied(group) for group in groups], order=order)
        return exp.EQ(this=number, expression=exp.Literal.number(1))

    def _groups(self, select: exp.Select) -> list[exp.Expression]:
        clause = select.args.get("group")
        if clause is None:
            return []
        self._rows.only(clause, "expressions")
        return [chosen(node, select, self._rows).copy() for node in clause.expressions]

    def _is_never_null(self, node: exp.Expression | None) -> bool:
        """Tell whether a node is a column of the answer that has a value in every row."""
        values = [
            output.value
            for name, output in zip(self._names, self._plan.outputs, strict=True)
            if node is not None and is_column(node) and same_name(node.this, name)
        ]
        keys = not self._plan.question.sets
        return any(value.never_null or (keys and isinstance(value, KeyValue)) for value in values)

    def _over_groups(self, node: exp.Expression, groups: Sequence[exp.Expression], select: exp.Select) -> None:
        """Make a window function over each group of every aggregate in a node."""
        if _is_group(node, groups) or isinstance(node, exp.Subquery):
            return
        if isinstance(node, exp.Filter):
            node = _as_case(node, self._rows)
        other = in_known_words(node, self._rows)
        if other is not None:
            around = exp.Paren(this=other)
            node.replace(around)
            self._over_groups(around, groups, select)
            return
        if isinstance(node, exp.Window | exp.Filter):
            raise self._refused(node, "window functions or FILTER beside aggregates", "Compute them in a SELECT each.")
        if isinstance(node, exp.ArgMax | exp.ArgMin):  # the value of another column where one is largest or least
            self._rows.only(node, "this", "expression")
            order = exp.Ordered(this=copied(node.expression), desc=isinstance(node, exp.ArgMax), nulls_first=False)
            first = exp.FirstValue(this=copied(node.this))
            ordered = exp.Order(expressions=[order])
            node.replace(exp.Window(this=first, partition_by=[copied(group) for group in groups], order=ordered))
            return
        if isinstance(node, exp.AggFunc):
            if isinstance(node, exp.Count) and self._is_never_null(node.this):
                node.set("this", exp.Star())
            node.replace(exp.Window(this=copied(node), partition_by=[copied(group) for group in groups]))
            return
        if is_column(node):
            aliases = [item.alias for item in select.expressions if type(item) is exp.Alias]
            if isinstance(node.parent, exp.Ordered) and any(same_name(node.this, alias) for alias in aliases):
                return
            reason = f"'{node.name}' is neither a key nor inside an aggregate"
            raise self._rows.refusal(node, RefusalCause.NOT_GROUPED, reason, "Add it to GROUP BY.")
        for child in list(node.iter_expressions()):
            self._over_groups(child, groups, select)


def _is_group(node: exp.Expression, groups: Sequence[exp.Expression]) -> bool:
    """Tell whether a node is one of GROUP BY, without regard to the case of names."""
    return any(node == group or (type(node) is type(group) and _folded(node) == _folded(group)) for group in groups)


def _folded(node: exp.Expression) -> exp.Expression:
    folded = copied(node)
    for identifier in nodes_of(folded, exp.Identifier):
        identifier.replace(exp.to_identifier(identifier.name.casefold(), quoted=True))
    return folded


def _as_case(node: exp.Expression, rows: RowScope) -> exp.Expression:
    """Write an aggregate of some rows, SUM(x) FILTER (WHERE c), as SUM(CASE WHEN c THEN x END), where it skips NULL."""
    call = node.this
    if not isinstance(call, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max) or isinstance(call.this, exp.Distinct):
        return node
    rows.only(node, "this", "expression")
    rows.only(node.expression, "this")
    value = exp.Literal.number(1) if isinstance(call.this, exp.Star) else copied(call.this)
    call = copied(call)
    call.set("this", exp.Case(ifs=[exp.If(this=copied(node.expression.this), true=value)]))
    node.replace(call)
    return call


def _shown(name: str, value: exp.Expression | None) -> exp.Expression:
    """Return a column of * in the SELECT list: as it is, or with another value."""
    column = exp.Identifier(this=name, quoted=True)
    return exp.Column(this=column) if value is None else exp.Alias(this=copied(value), alias=column)


def _one_row(condition: Derived) -> Derived:
    """Return the condition that keeps one row of a group; of all rows, one that holds even if there are none."""
    (number,) = over_in(condition)
    one = ConstantValue(value=Fraction(1), shape="integer")
    return condition if number.partition else compute("=", replace(number, of_all=True), one)


def _placed(clause: exp.Expression, outputs: Sequence[Output], rows: RowScope) -> exp.Expression:
    """Write the position of a column of the answer in the place of its name, where that is a whole term."""
    for term in clause.expressions:
        for place, output in enumerate(outputs, start=1):
            if is_column(term.this) and term.this.args.get("table") is None and same_name(term.this.this, output.name):
                rows.only(term.this, "this")
                checked_name(term.this.this, rows)
                term.set("this", exp.Literal.number(place))
    return clause


def _windows(values: Sequence[Derived], *, beyond: Sequence[Derived]) -> bool:
    """Tell whether values have window functions that others do not have."""
    known = {window for value in beyond for window in over_in(value)}
    return any(window not in known for value in values for window in over_in(value))


def _both(*conditions: Derived | None) -> Derived | None:
    """Return what holds where all conditions do."""
    both: Derived | None = None
    for condition in conditions:
        if condition is not None:
            both = condition if both is None else compute("and", both, condition)
    return both


def _settled(plan: Plan) -> Plan:
    """Leave out the measures that nothing rests on any more, unless the question says what each of them may cost."""
    question, read = plan.question, {measure for value in shown(plan) for measure in measures_of(value)}
    if plan.composition is not None or not read or not may_leave_out(plan) or read == set(question.measures):
        return plan
    measures = tuple(measure for measure in question.measures if measure in read)
    selection = without_unread(question.selection, question.keys, measures)
    return replace(plan, question=replace(question, measures=measures, selection=selection))


def shown(plan: Plan) -> list[Derived]:
    """Return all that a plan shows, or chooses and sorts rows by."""
    conditions = [condition for condition in (plan.having, plan.qualify) if condition is not None]
    return [*(output.value for output in plan.outputs), *conditions, *(term.value for term in plan.order)]


def may_leave_out(plan: Plan) -> bool:
    """Tell whether measures may be left out: not where the question says what each of them may cost."""
    return not (plan.searches or plan.price_request.shares or plan.price_request.weights)
