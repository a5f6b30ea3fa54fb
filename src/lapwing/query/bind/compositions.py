"""A SELECT over the answers to several others: joined, below each other with UNION ALL, or one number beside a table.

    WITH a AS (SELECT plan, COUNT(*) AS n … GROUP BY plan), b AS (…) SELECT a.plan, a.n / b.n FROM a JOIN b USING (plan)
    SELECT plan, COUNT(*) / (SELECT COUNT(*) FROM visits) AS share FROM visits GROUP BY plan

Each SELECT inside is a question of its own, bound as one that stands alone, so that its answer is found and stored
under the same name; however often a common table expression is named, it is one question. They are released together,
at one price. What stands around them touches released rows only: it is post-processing, costs nothing and cannot leak.

Which questions are read so follows from what their FROM names (`classify`): no text has two meanings.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.outputs import bind_output, default_name, free_name
from lapwing.query.aggregates.scope import Requests, SelectScope
from lapwing.query.bind.answer_sets import below_each_other
from lapwing.query.bind.layers import OuterSelect, Outputs
from lapwing.query.bind.listed_answers import listed_answer
from lapwing.query.bind.public_answers import named_in, nothing_of, one_row, public_answer, public_rows
from lapwing.query.bind.public_conditions import asked_of_rows
from lapwing.query.bind.source_names import SourceNames, in_words_of_the_text, written
from lapwing.query.classify.inner_select import InnerSelect
from lapwing.query.classify.kinds import Kinds, RelationKind
from lapwing.query.classify.scalar_subqueries import apart, around_answer, scalars_in, without_fixed_groups
from lapwing.query.classify.select_kinds import SelectKind
from lapwing.query.derivation.derive import FunctionValue, compute
from lapwing.query.derivation.derived import values_in
from lapwing.query.derivation.node import Derived, Output
from lapwing.query.derivation.source_values import SourceValue, UnionValue
from lapwing.query.expressions.attempts import NAMES
from lapwing.query.expressions.rows import attempted, refused_as, same_name
from lapwing.query.from_clause.common_tables import (
    all_of,
    bare,
    checked_common_tables,
    checked_name,
    common_tables,
    with_named,
)
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.scope import PublicInput, Scope
from lapwing.query.plan.composition import (
    MOST_FREE_ROWS,
    MOST_ROWS,
    MOST_ROWS_BESIDE_PUBLIC,
    Composition,
    JoinKind,
    SourceJoin,
    impossible_in,
    plans_asked,
)  # fmt: skip
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.contribution import PriceRequest
from lapwing.query.text.dialect import not_released
from lapwing.query.text.parse import Parsed
from lapwing.query.text.plain import of_query
from lapwing.query.text.trees import copied, has, nodes_of

Whole = Callable[[Parsed], Plan]
"""Binds a question in every way in which one is read."""
_MOST_DEPTH: Final = 16
"""SELECTs over answers that stand in each other."""
_SIDES: Final[dict[str, JoinKind]] = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
_NEEDS_KEYS = "Join them where their keys are equal: a JOIN b USING (plan)."


def compose(parsed: Parsed, kind: SelectKind, whole: Whole, outputs: Outputs, within: Scope) -> Plan | None:
    """Bind a question over the answers to others; None if what it is over is no such answer, nor public rows.

    Raises:
        QueryRefused: If it is over answers, and is not answered.
    """
    public = kind is SelectKind.OVER_PUBLIC_ROWS
    composer, select, rows = _Composer(parsed, whole, outputs, within, public=public), parsed.select, within.nowhere
    if kind is SelectKind.BESIDE_AGGREGATES:
        split = around_answer(select, rows)
        if split is None:
            return None
        return composer.all_of(
            [] if split.inner is None else [_ComposedItem(query=split.inner, name=None)], split.outer
        )
    if kind is SelectKind.SETS_OF_RESULTS:
        select = below_each_other(select, rows) or select
    select = _named(select) if public else select
    if public and select.args.get("from_") is None:
        return composer.all_of([_ComposedItem(query=select, name=None, plan=one_row(within))], select)
    items = composer.items(select, public=public)
    if items is None:
        return None
    one_row_of_all = is_aggregated(select) and select.args.get("group") is None and not has(select, exp.Window)
    plan = None if public and one_row_of_all else composer.all_of(items, select)
    if plan is not None and (plans_asked(plan) or not one_row_of_all):
        return plan
    return composer.all_of(*composer.beside_one_row(items, _named(select)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComposedItem:
    """What stands in FROM: a query, its name if it has one, what it may name, and its columns if they are renamed.

    Args:
        public: The rows that it gives, if these are public and it asks nothing.
        node: Where it stands.
        plan: Its plan, if it has one already.
    """

    query: exp.Expression
    name: str | None
    outside: tuple[exp.Expression, ...] = ()
    columns: tuple[str, ...] = ()
    public: PublicInput | None = None
    node: exp.Expression | None = None
    plan: Plan | None = None


class _Composer:
    def __init__(self, parsed: Parsed, whole: Whole, outputs: Outputs, within: Scope, *, public: bool) -> None:
        self._parsed, self._whole, self._outputs, self._within = parsed, whole, outputs, within
        self._public = public
        self._rows = within.nowhere
        self._looked_at: dict[int, tuple[exp.Expression, bool]] = {}  # by identity, as the query is held
        self._said: set[int] = set()

    def all_of(self, items: list[_ComposedItem], select: exp.Select) -> Plan:
        """Return the plan of a whole question, of which nothing may be said about privacy where nothing is released."""
        plan = self.over(items, select)
        others = {*self._parsed.arguments, *self._parsed.options.inside} - self._said
        if others:
            raise not_released(min(others), self._rows.text)
        return plan

    # ---- what stands in FROM ----------------------------------------------------------------------------------------

    def items(
        self, select: exp.Select, outside: Sequence[exp.Expression] = (), depth: int = 0, *, public: bool = False
    ) -> list[_ComposedItem] | None:
        """Return what FROM names, None unless all of it are answers to questions, or public rows beside such.

        Args:
            outside: Common table expressions that it may name beside its own.
            depth: How many SELECTs it stands in.
            public: Whether public rows may stand there alone.
        """
        clause = select.args.get("from_")
        if clause is None or depth > _MOST_DEPTH:
            return None
        visible = (*outside, *checked_common_tables(select, self._rows))
        self._rows.only(clause, "this")
        nodes = [clause.this, *(join.this for join in select.args.get("joins") or ())]
        queries = [None if isinstance(node, exp.Values) else self._query_of(node, visible) for node in nodes]
        answers = [query is not None and self._is_answer(*query, depth) for query in queries]
        # Else, of queries in one another, each would be read for every one that it stands in.
        if not any(answers) and not public:
            return None
        items = list[_ComposedItem]()
        for node, query, answer in zip(nodes, queries, answers, strict=True):
            item = None if query is None else self._item(node, *query, is_answer=answer)
            if isinstance(node, exp.Values):
                item = self._listed(node)
            if item is None:
                return None
            items.append(item)
        return items

    def _query_of(
        self, node: exp.Expression, visible: Sequence[exp.Expression]
    ) -> tuple[exp.Expression, Sequence[exp.Expression]] | None:
        """Return the query that something in FROM is, and the common table expressions that it may name."""
        if isinstance(node, exp.Subquery):
            return bare(node.this), visible
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return None
        place = next((i for i, table in enumerate(visible) if same_name(node.this, str(table.alias))), None)
        self._rows.only(node.this, "this", "quoted")
        if place is None:  # a table or view, of whose rows SQL shows all: no answer
            query = all_of(exp.Table(this=copied(node.this)))
            self._looked_at[id(query)] = query, False
            return query, ()
        return bare(visible[place].this), visible[:place]

    def _listed(self, node: exp.Values) -> _ComposedItem | None:
        """Return rows of constants, which ask nothing."""
        alias = node.args.get("alias")
        columns = [] if alias is None else [column.name for column in alias.args.get("columns") or ()]
        if not columns and node.expressions:
            columns = [f"col{place}" for place, _ in enumerate(node.expressions[0].expressions)]
        if not columns:
            return None
        plan = listed_answer(node, columns, self._within)
        return _ComposedItem(query=node, name=node.alias, columns=tuple(columns), node=node, plan=plan)

    def _item(
        self, node: exp.Expression, query: exp.Expression, visible: Sequence[exp.Expression], *, is_answer: bool
    ) -> _ComposedItem | None:
        """Return an answer or public rows; None for anything else."""
        rows, alias = self._rows, node.args.get("alias")
        public = None
        if not is_answer:
            public = public_rows(with_named(query, visible), self._within)
            if public is None and Kinds(self._within).of(query, visible) is not RelationKind.PUBLIC:
                return None
        rows.only(node, "this", "alias")
        if public is not None:
            public = replace(public, source=replace(public.source, name=node.alias_or_name or public.source.name))
        if alias is None:
            return _ComposedItem(query=query, outside=tuple(visible), name=node.name or None, public=public, node=node)
        rows.only(alias, "this", *(["columns"] if isinstance(alias.args.get("columns"), list) else []))
        columns = tuple(checked_name(column, rows) for column in alias.args.get("columns") or ())
        name = checked_name(alias.this, rows)
        return _ComposedItem(query=query, outside=tuple(visible), name=name, columns=columns, public=public, node=node)

    def _is_answer(self, query: exp.Expression, visible: Sequence[exp.Expression], depth: int) -> bool:
        """Tell whether a query is a question, or over the answers to such; each is looked at once."""
        if id(query) not in self._looked_at:
            if isinstance(query, exp.Union):
                inside = (*visible, *common_tables(query))
                answer = all(self._is_answer(leg, inside, depth + 1) for leg in _legs(query))
            else:
                answer = isinstance(query, exp.Select) and (
                    is_aggregated(query) or self.items(query, visible, depth + 1) is not None
                )
            self._looked_at[id(query)] = query, answer
        return self._looked_at[id(query)][1]

    def _plan_of(self, item: _ComposedItem, select: exp.Select, conditions: Sequence[exp.Expression]) -> Plan:
        if item.plan is not None:
            return item.plan
        if item.public is None:
            return self._source(with_named(item.query, item.outside))
        named = None if item.columns else named_in(select)
        about = [] if item.columns else conditions
        return public_answer(item.public, named, item.node or item.query, self._within, about)

    def _asked_of_rows(self, items: Sequence[_ComposedItem], select: exp.Select) -> Sequence[_ComposedItem]:
        """Ask public rows what WHERE says of only one table, and take it out of the SELECT."""
        sources, where = [item.public for item in items if item.public is not None], select.args.get("where")
        if where is None or len(sources) < len(items) or any(item.columns for item in items):
            return items
        sources, left = asked_of_rows(sources, conjuncts(where.this, self._rows), self._within)
        select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)
        return [replace(item, public=public) for item, public in zip(items, sources, strict=True)]

    def beside_one_row(
        self, items: Sequence[_ComposedItem], select: exp.Select
    ) -> tuple[list[_ComposedItem], exp.Select]:
        """Return aggregates without GROUP BY as what is beside one row: of no rows, COUNT is 0, all else NULL.

        A group has a row in an answer because one of its rows stands for it (`layers`); of no rows none does.
        """
        around = apart(select, self._rows)
        inner, outer = around.inner or select, around.outer
        counted = {item.alias for item in inner.expressions if _is_count(item.this)}
        for column in [column for column in nodes_of(outer, exp.Column) if column.name in counted]:
            column.replace(exp.Coalesce(this=copied(column), expressions=[exp.Literal.number(0)]))
        outer.set("from_", exp.From(this=exp.Subquery(this=inner)))
        outer.set("joins", [exp.Join(this=exp.Subquery(this=inner), side="LEFT")])
        one = _ComposedItem(query=select, name=None, plan=one_row(self._within))
        return [one, _ComposedItem(query=select, name=None, plan=self.over(items, inner))], outer

    def _source(self, query: exp.Expression) -> Plan:
        if isinstance(query, exp.Union):
            return self._union(query)
        if not isinstance(query, exp.Select):
            raise self._rows.refusal(
                query, RefusalCause.SUBQUERY_NOT_SUPPORTED, "This is no SELECT", "Write SELECT … GROUP BY …."
            )
        # The price is that of all of them together; what else is said about privacy holds for each of them.
        alone = replace(self._parsed, options=replace(self._parsed.options, epsilon=None, delta=None), explain=False)
        parsed = of_query(alone, query, self._rows.text)
        self._said |= {*parsed.arguments, *parsed.options.inside}
        plan = self._whole(parsed)
        leaves = plans_asked(plan)
        if leaves and not any(leaf.question.measures for leaf in leaves):
            reason = "A SELECT inside shows keys alone, public ones whether or not any row has them"
            raise self._rows.refusal(query, RefusalCause.KEYS_WITHOUT_NUMBER, reason, "Show COUNT(*) beside the keys.")
        return plan

    def _composed(self, composition: Composition, outputs: Sequence[Output]) -> Plan:
        rows, options = composition.most_rows, self._parsed.options
        asked = [bool(plans_asked(source) or impossible_in(source)) for source in composition.sources]
        most = MOST_ROWS if all(asked) else MOST_ROWS_BESIDE_PUBLIC if any(asked) else MOST_FREE_ROWS
        if rows is not None and rows > most:
            reason = f"The result would be made of up to {rows:,} rows, and at most {most:,} are joined"
            raise QueryRefused(reason, cause=RefusalCause.RESULT_TOO_LARGE, remedy=_NEEDS_KEYS)
        return Plan(
            question=self._question_of(composition),
            keys=(),
            outputs=tuple(outputs),
            price_request=PriceRequest(epsilon=options.epsilon, delta=options.delta),
            explain=self._parsed.explain,
            composition=composition,
        )

    def _question_of(self, composition: Composition) -> Question:
        """Return what stands in the place of a question: the rows of the first that touches data, and no measure."""
        leaf = next((leaf for source in composition.sources for leaf in plans_asked(source)), None)
        if leaf is None:
            return nothing_of(self._within)
        return Question(selection=leaf.question.selection, keys=(), measures=())

    # ---- UNION ALL --------------------------------------------------------------------------------------------------

    def _union(self, union: exp.Union) -> Plan:
        rows, before = self._rows, common_tables(union)
        if union.args.get("distinct"):  # all that is alike is one, whatever stands below each other before
            return self._source(_distinct(union))
        legs = [self._source(with_named(leg, before)) for leg in _legs(union)]
        for node in _unions(union):
            rows.only(node, "this", "expression", "distinct", "with_")
            if node.args.get("distinct"):
                reason = "UNION ALL after UNION would leave out some rows of answers that are alike, and keep others"
                raise rows.refusal(
                    node.expression,
                    RefusalCause.SET_OPERATION_NOT_SUPPORTED,
                    reason,
                    "Write UNION last, or UNION ALL throughout.",
                )
        first, *others = legs
        if any(len(leg.outputs) != len(first.outputs) for leg in others):
            reason = "UNION ALL is of answers with the same number of columns"
            raise rows.refusal(union.expression, RefusalCause.SET_OPERATION_MISMATCH, reason, "Add or leave out some.")
        outputs = []
        for column, output in enumerate(first.outputs):
            values = tuple(
                SourceValue(source=place, value=leg.outputs[column].value, optional=True)
                for place, leg in enumerate(legs)
            )
            with rows.pointing(union.expression):
                shape = compute("coalesce", *values).shape
            outputs.append(Output(name=output.name, value=UnionValue(values=values, shape=shape)))
        return self._composed(Composition(sources=tuple(legs), joins=None), outputs)

    # ---- joins ------------------------------------------------------------------------------------------------------

    def over(self, items: Sequence[_ComposedItem], select: exp.Select) -> Plan:
        """Return the plan of a SELECT over the answers that FROM names."""
        select, names, joins = copied(select), SourceNames(self._rows), list[SourceJoin]()
        clauses = [None, *(select.args.get("joins") or ())]
        where = select.args.get("where")
        plain = all(_kind(clause) == "inner" for clause in clauses if clause is not None)
        if plain:
            items = self._asked_of_rows(items, select)
            where = select.args.get("where")
        equalities = conjuncts(where.this, self._rows) if plain and where is not None else []
        for item, clause in zip(items, clauses, strict=False):
            place = names.add(self._plan_of(item, select, equalities), item.name, item.columns, item.query)
            if clause is not None:
                joins.append(self._join(clause, place, names, equalities))
        joins += self._members(select, names)
        joins += self._scalars(select, names)
        del joins[len(names.plans) - 1 :]  # of what has no FROM, the first has nothing to be joined to
        for name in ("with_", "from_", "joins"):
            select.set(name, None)
        names.write_stars(select)
        if select.args.get("distinct") is not None and not is_aggregated(select):
            self._group_by_all(select)
        names.rename(select)
        composition = Composition(sources=tuple(names.plans), joins=tuple(joins))
        outputs = [Output(name=name, value=value) for name, value in names.aliases().items()]
        base = self._composed(composition, outputs)
        with refused_as(lambda refused: refused.reworded(*map(in_words_of_the_text, (refused.reason, refused.remedy)))):
            return OuterSelect(base, InnerSelect(select, "answer", ()), self._rows.text, self._outputs).over(select)

    def _group_by_all(self, select: exp.Select) -> None:
        """Write DISTINCT as GROUP BY: equal rows are one."""
        self._rows.only(select.args["distinct"])
        items = [item.this if type(item) is exp.Alias else item for item in select.expressions]
        items = [item.unnest() for item in items]  # SELECT DISTINCT (a), as it is often written, is of a
        select.set("group", exp.Group(expressions=[copied(item) for item in items]))
        select.set("distinct", None)

    def _join(
        self, clause: exp.Expression, place: int, names: SourceNames, equalities: Sequence[exp.Expression]
    ) -> SourceJoin:
        """Bind how a source is joined; inner joins know what WHERE says is equal, too."""
        self._rows.only(clause, "this", "side", "kind", "on", "using")
        kind = _kind(clause)
        if kind is None or str(clause.args.get("kind") or "").upper() not in ("", "INNER", "CROSS", "OUTER"):
            reason = "Results are joined by JOIN, LEFT, RIGHT, FULL or CROSS JOIN"
            raise self._rows.refusal(clause.this, RefusalCause.JOIN_NOT_SUPPORTED, reason, _NEEDS_KEYS)
        pairs = [names.use(column, place) for column in clause.args.get("using") or ()]
        others: list[Derived] = []
        on = clause.args.get("on")
        for node in [] if on is None else conjuncts(on, self._rows):
            condition = self._condition(node, names)
            pair = _pair(condition, place)
            if pair is None:
                others.append(condition)
            else:
                pairs.append(pair)
        for node in equalities:
            pair = _pair(self._condition(node, names), place) if _is_between(node, names, place) else None
            pairs += [] if pair is None else [pair]
        if kind in ("left", "full"):
            names.make_optional([place])
        if kind in ("right", "full"):
            names.make_optional(range(place))
        both = compute("and", *others) if len(others) > 1 else others[0] if others else None
        return SourceJoin(kind=kind, pairs=tuple(pairs), condition=both)

    def _condition(self, node: exp.Expression, names: SourceNames) -> Derived:
        holder = exp.Paren(this=copied(node))
        names.rename(holder)
        selection = names.plans[0].question.selection
        scope = SelectScope(rows=self._rows, selection=selection, keys=(), aliases=names.aliases())
        condition = bind_output(holder, scope, Requests())
        if condition.shape != "boolean":
            raise self._rows.refusal(
                node,
                RefusalCause.NOT_A_CONDITION,
                f"ON needs a condition, not {condition.shape}",
                "Write a comparison.",
            )
        return condition

    def _members(self, select: exp.Select, names: SourceNames) -> Iterator[SourceJoin]:
        """Join public rows to the different values of `x IN (SELECT …)` in WHERE: a row equals one of them, or none.

        NULL is equal to nothing: where IN is not true for that, WHERE leaves a row out, as the join does.
        """
        where, rows = select.args.get("where"), self._rows
        if where is None or not self._public:
            return
        visible, left = checked_common_tables(self._parsed.select, rows), list[exp.Expression]()
        for node in conjuncts(where.this, rows):
            query = node.args.get("query") if isinstance(node, exp.In) else None
            if not isinstance(query, exp.Expression):
                left.append(node)
                continue
            rows.only(node, "this", "query")
            inside = with_named(bare(query), visible)
            source = exp.Subquery(this=copied(inside), alias=exp.TableAlias(this=exp.to_identifier("members")))
            place = names.add(self._source(all_of(source, distinct=True)), None, (), query, hidden=True)
            if len(names.columns[place]) != 1:
                reason = "IN compares with a subquery of one column"
                raise rows.refusal(node, RefusalCause.SUBQUERY_NOT_ONE_COLUMN, reason, "Leave out the others.")
            (name,) = names.columns[place]
            condition = self._condition(exp.EQ(this=copied(node.this), expression=written((place, name))), names)
            pair = _pair(condition, place)
            yield SourceJoin(kind="inner", pairs=() if pair is None else (pair,), condition=None if pair else condition)
        select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)
        every = [one for node in left for one in nodes_of(node, exp.Expression)]
        nested = [one for one in every if isinstance(one, exp.Exists | exp.In)]
        for other in nested:
            if has(other, exp.Query):
                reason = (
                    "Over public rows, NOT IN is not supported, nor is EXISTS without an equality of a unique column"
                )
                remedy = "Write LEFT JOIN … ON a.x = b.x, and WHERE b.x IS NULL, or IS NOT NULL."
                raise rows.refusal(other, RefusalCause.SUBQUERY_NOT_SUPPORTED, reason, remedy)

    # ---- one number -------------------------------------------------------------------------------------------------

    def _scalars(self, select: exp.Select, names: SourceNames) -> Iterator[SourceJoin]:
        """Join the subqueries that stand for one number each, and write a column in the place of each."""
        before, rows = checked_common_tables(self._parsed.select, self._rows), self._rows
        for node in list(scalars_in(select)):
            rows.only(node, "this")
            inside = bare(node.this)
            inside = without_fixed_groups(inside, rows) if isinstance(inside, exp.Select) else inside
            query = with_named(inside, before)
            if not self._is_one_row(inside, before):
                reason = "A subquery in the place of a number is not surely one row"
                raise rows.refusal(
                    node,
                    RefusalCause.SUBQUERY_NOT_ONE_ROW,
                    reason,
                    "Write an aggregate without GROUP BY: (SELECT AVG(n) FROM a).",
                )
            place = names.add(self._source(query), None, (), query, hidden=True)
            if len(names.columns[place]) != 1:
                raise rows.refusal(
                    node,
                    RefusalCause.SUBQUERY_NOT_ONE_COLUMN,
                    "A subquery in the place of a number has one column",
                    "Leave out the others.",
                )
            names.make_optional([place])
            (name,) = names.columns[place]
            column = written((place, name))
            if node.parent is select and node.arg_key == "expressions":
                shown = free_name(name, {item.alias_or_name.casefold() for item in select.expressions})
                column = exp.Alias(this=column, alias=exp.Identifier(this=shown, quoted=True))
            node.replace(column)
            yield SourceJoin(kind="left")

    def _is_one_row(self, query: exp.Expression, visible: Sequence[exp.Expression]) -> bool:
        """Tell whether a query has at most one row."""
        if not isinstance(query, exp.Select) or query.args.get("group") is not None:
            return False
        if is_aggregated(query):
            return True
        items = self.items(query, visible)
        return items is not None and all(self._is_one_row(item.query, item.outside) for item in items)


def _named(select: exp.Select) -> exp.Select:
    """Return a SELECT whose aggregates have the names that they have over rows."""
    select, taken = copied(select), {item.alias_or_name.casefold() for item in select.expressions}
    items: list[exp.Expression] = list(select.expressions)
    for item in items:
        if isinstance(item, exp.AggFunc | exp.Filter):
            name = free_name(default_name(item), taken)
            taken.add(name)
            item.replace(exp.Alias(this=copied(item), alias=exp.Identifier(this=name, quoted=True)))
    return select


def _is_count(node: exp.Expression) -> bool:
    return isinstance(node, exp.Count) or (isinstance(node, exp.Filter) and isinstance(node.this, exp.Count))


def _kind(clause: exp.Expression) -> JoinKind | None:
    return _SIDES.get(str(clause.args.get("side") or "").upper())


def _is_between(node: exp.Expression, names: SourceNames, place: int) -> bool:
    """Tell whether a condition of WHERE compares a source with those before it, and nothing that comes later."""
    if not isinstance(node, exp.EQ) or any(map(node.find, (exp.Subquery, exp.AggFunc, exp.Window))):
        return False
    places = attempted(NAMES, lambda: [names.place(column) for column in nodes_of(node, exp.Column)])
    if isinstance(places, QueryRefused):  # a name may be of what comes later in FROM; if it is not, it is refused there
        return False
    return None not in places and place in [found[0] for found in places if found is not None]


def _pair(condition: Derived, place: int) -> tuple[Derived, SourceValue] | None:
    """Return the two sides of an equality of a column of a source with values of those before it, or constants."""
    if not isinstance(condition, FunctionValue) or condition.function != "=":
        return None
    for left, right in (condition.arguments, condition.arguments[::-1]):
        before = [value.source for value in values_in(left) if isinstance(value, SourceValue)]
        if isinstance(right, SourceValue) and right.source == place and max(before, default=-1) < place:
            return left, right
    return None


# ---- text ------------------------------------------------------------------------------------------------------------


def _unions(union: exp.Expression) -> Iterator[exp.Union]:
    node = union
    while isinstance(node, exp.Union):
        yield node
        node = bare(node.this)


def _distinct(union: exp.Union) -> exp.Select:
    """Return the different rows of answers below each other as a SELECT."""
    every = copied(union)
    for node in _unions(every):
        node.set("distinct", False)
    alias = exp.TableAlias(this=exp.to_identifier("all"))
    outer = all_of(exp.Subquery(this=every, alias=alias), distinct=True)
    outer.set("with_", every.args.get("with_"))
    every.set("with_", None)
    return outer


def _legs(union: exp.Expression) -> list[exp.Expression]:
    """Return the queries that stand below each other, from the first on."""
    nodes = list(_unions(union))
    return [bare(nodes[-1].this), *(bare(node.expression) for node in reversed(nodes))]
