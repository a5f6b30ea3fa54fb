"""Turn a syntax tree into a plan, reading the catalog only.

Every node kind and every argument of it is on an allow-list; what is not understood is refused with its position and
a remedy. `bind` reads from top to bottom: the text is parsed (`text`), FROM and WHERE say which rows are asked about
(`from_clause`), GROUP BY gives the keys, the SELECT list the measures and what is computed from them (`aggregates`),
and the clauses after it act on the answer. Expressions over one row are bound in `expressions.calls`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import MappingProxyType

from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.bound_searches import searches_for
from lapwing.query.aggregates.clauses import bind_having, bind_limit, bind_order, bind_qualify, check_distinct
from lapwing.query.aggregates.grouping_sets import Sets, grouping_sets
from lapwing.query.aggregates.outputs import bind_output
from lapwing.query.aggregates.privacy_arguments import check_mixture
from lapwing.query.aggregates.scope import Bounded, Requests, SelectScope, has_aggregate
from lapwing.query.aggregates.shared_rows import check_shared
from lapwing.query.derivation.derived import KeyValue, measures_of
from lapwing.query.derivation.node import Derived, Output
from lapwing.query.expressions.as_read import key_of
from lapwing.query.expressions.calls import bind_both
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, columns_of, require_bounded
from lapwing.query.expressions.magnitudes import ValueBounds
from lapwing.query.expressions.rows import RowScope, is_column, same_name
from lapwing.query.expressions.types import Real
from lapwing.query.from_clause.scope import Scope as From
from lapwing.query.from_clause.scope import bind_from, rows_of
from lapwing.query.measures.measures import Key, Measure, argument_of, declared_values
from lapwing.query.plan.capabilities import EVERYTHING, Capabilities
from lapwing.query.plan.combined_keys import CombinedKeys
from lapwing.query.plan.plan import Plan, Question, without_unread
from lapwing.query.relations.contribution import PriceRequest, check_options, with_limits
from lapwing.query.relations.domains import listed_by, values_of
from lapwing.query.relations.images import MAX_VALUES
from lapwing.query.relations.public_rows import NOTHING_PUBLIC, PublicFacts
from lapwing.query.relations.relation import ProtectedRows, Selection, units_of_row
from lapwing.query.text.clock import MAY_TELL_TIME, at_moment
from lapwing.query.text.dialect import require_released
from lapwing.query.text.parameters import Parameters
from lapwing.query.text.parse import Parsed, is_in_plain_words, parse

MAX_CELLS = 1_000_000
MAX_OUTPUTS = 200
_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "qualify", "distinct", "order", "limit",
            "offset", "with_")  # fmt: skip
_GROUPED = (exp.GroupingSets, exp.Rollup, exp.Cube, exp.Tuple, exp.Paren)
Names = Callable[..., RowScope]
NOTHING_FOUND: Mapping[Bounded, ValueBounds] = MappingProxyType({})


def bind(
    text: str,
    catalog: Catalog,
    facts: PublicFacts = NOTHING_PUBLIC,
    parameters: Parameters = (),
    bounds: Mapping[Bounded, ValueBounds] = NOTHING_FOUND,
    capabilities: Capabilities = EVERYTHING,
    constants: Sequence[tuple[Plan, Sequence[tuple[object, ...]]]] = (),
    reads: bool = True,
    moment: datetime | None = None,
) -> Plan:
    """Parse a question and return its plan.

    Args:
        bounds: Those that the plan's searches have found; without them it stands with the widest.
        capabilities: What the engine that will run the plan has.
        constants: Those that were asked for, by their plans.
        reads: Whether conditions and keys see bounded numbers as read; if not, the plan is that of earlier versions.
        moment: The time that queries see as now; without it the clock is refused.

    Raises:
        QueryRefused: With reason, position and remedy; nothing has been read but the text, the catalog and what is
            public.
        InvalidParameter: For a parameter's value.
    """
    parsed, scope = parse(text, parameters), From(text=text, catalog=catalog, facts=facts, reads=reads)
    if moment is not None and MAY_TELL_TIME.search(text):
        parsed = at_moment(parsed, moment)
    bound = partial(_bound, within=scope, bounds=bounds, capabilities=capabilities)

    def over_rows(parsed: Parsed) -> Plan:
        try:
            return bound(parsed, rows_of)
        except QueryRefused as refused:
            from lapwing.query.bind.implicit_bounds import (
                bound_otherwise,  # here: most questions are answered as they stand
            )

            return bound_otherwise(refused, parsed, bound, scope)

    if is_in_plain_words(parsed.select):
        return over_rows(parsed)
    from lapwing.query.bind.stages import planned  # here: most questions are plain

    plan = planned(parsed, scope, over_rows, _outputs, constants)
    return plan if plan.moment == parsed.moment else replace(plan, moment=parsed.moment)


def _bound(
    parsed: Parsed, names: Names, within: From, bounds: Mapping[Bounded, ValueBounds], capabilities: Capabilities
) -> Plan:
    select, options, clause, facts = parsed.select, parsed.options, parsed.select.args.get, within.facts
    if parsed.arguments or options.inside or not options.alone:
        require_released(select, parsed.arguments, options, within.text)

    # FROM and WHERE: the rows. Different units may share one only where aggregates limit what each unit adds.
    limited_by_group = any(named.contribution_bounds_per_group is not None for named in parsed.arguments.values())
    bound, within = bind_from(select, within, sharing=limited_by_group)
    rows = names(bound, within)
    rows.only(select, *_CLAUSES)

    # GROUP BY: the cells, which are public unless a key's values are private.
    sets = _keys(select, rows, bound.selection, facts)
    combined, earlier = tuple[CombinedKeys, ...](), None
    if any(sets) and not _is_plain(sets, bound.selection):
        from lapwing.query.aggregates.possible_keys import asked_before, possible_keys  # here: most questions are plain

        sets, combined, earlier = possible_keys(sets, bound.selection, bound.kept, facts)
    keys = tuple(dict.fromkeys(key for grouped in sets for key in grouped))
    if options.written:
        check_options(options, keys, rows)

    # SELECT and what acts on the answer: measures, which touch data, and what is computed from their noisy values.
    scope = SelectScope(rows=rows, selection=bound.selection, keys=keys, sets=sets, arguments=parsed.arguments)
    requests = Requests(bounds=bounds)
    outputs = _outputs(select, scope, requests)
    named = replace(scope, aliases={output.name.casefold(): output.value for output in outputs})
    having = None if (node := clause("having")) is None else bind_having(node, named, requests)
    qualify = None if (node := clause("qualify")) is None else bind_qualify(node, named, requests)
    terms = () if (node := clause("order")) is None else bind_order(node, outputs, named, requests)
    conditions = [condition for condition in (having, qualify) if condition is not None]
    measures = _measures([*(output.value for output in outputs), *conditions, *(term.value for term in terms)], keys)
    if clause("distinct") is not None:
        check_distinct(select, outputs, sets, rows)
    if units_of_row(bound.selection.relation) > 1:
        check_shared(sets, measures, requests)
    if parsed.arguments:
        check_mixture(measures)

    # The question: all that touches data, in one order whatever the text's, so that asked again it is the same.
    sorted_keys = tuple(sorted(keys, key=str))
    selection = with_limits(bound.selection, sorted_keys, options) if options.written else bound.selection
    asked_of = without_unread(selection, sorted_keys, measures)
    if len(asked_of.relation.sources) > 1:
        from lapwing.query.relations.ordered_rows import told_apart  # here: few queries join rows of a unit

        asked_of = told_apart(asked_of)
    question = Question(
        selection=asked_of,
        keys=sorted_keys,
        measures=measures,
        fewest_units=options.min_privacy_units_per_group or 1,
        sets=tuple(tuple(sorted(grouped, key=str)) for grouped in sets) if len(sets) > 1 else (),
        combined=combined,
    )
    _check_cells(question)
    question = question if earlier is None else replace(question, wider=asked_before(question, earlier))
    searches = searches_for(requests, selection, sets) if requests.searches else ()
    if capabilities.missing:  # the engine at hand refuses what it cannot compute before anything is paid
        for part in (question, *(search.question for search in searches)):
            capabilities.require(part)

    return Plan(
        question=question,
        keys=keys,
        outputs=outputs,
        having=having,
        qualify=qualify,
        order=terms,
        limit=None if (node := clause("limit")) is None else bind_limit(node, "limit", rows),
        offset=0 if (node := clause("offset")) is None else bind_limit(node, "offset", rows),
        asked=PriceRequest(
            epsilon=options.epsilon,
            delta=options.delta,
            shares=dict(requests.shares),
            weights=dict(requests.weights),
            selection=options.group_selection_epsilon,
        ),
        explain=parsed.explain,
        searches=searches,
        unsettled=frozenset(requests.unsettled) if requests.searches and not bounds else frozenset(),
        moment=parsed.moment,
    )


def _measures(derived: Sequence[Derived], keys: Sequence[Key]) -> tuple[Measure, ...]:
    """Collect every measure once, in canonical order, so that the order of the SELECT list does not matter."""
    every = [measure for value in derived for measure in measures_of(value)]
    require_bounded(argument for argument in map(argument_of, every) if argument is not None)
    if not every and not keys:
        remedy = "Ask for COUNT, SUM or AVG, with GROUP BY: SELECT x, COUNT(*) FROM … GROUP BY x."
        raise QueryRefused(
            "The question has no aggregate, and rows are never shown", cause=RefusalCause.NO_AGGREGATE, remedy=remedy
        )
    return tuple(sorted(set(every), key=str))


# ---- GROUP BY -------------------------------------------------------------------------------------------------------


def _keys(select: exp.Select, rows: RowScope, selection: Selection, facts: PublicFacts) -> Sets:
    """Return the keys of every grouping set, in the order of the text."""
    clause, alone = select.args.get("group"), not any(map(has_aggregate, select.expressions))
    if clause is None and (select.args.get("distinct") is None or not alone):
        return ((),)
    clause = clause or exp.Group(all=True)  # SELECT DISTINCT k: each value once
    rows.only(clause, "expressions", "all")

    def key(node: exp.Expression) -> Key:
        return _key(_aliased(node, select, rows), rows, selection, facts)

    if clause.args.get("all"):
        items = [item.this if type(item) is exp.Alias else item for item in select.expressions]
        return (tuple(dict.fromkeys(key(item) for item in items if not has_aggregate(item))),)
    if not any(isinstance(item, _GROUPED) for item in clause.expressions):
        return (tuple(dict.fromkeys(map(key, clause.expressions))),)
    return grouping_sets(clause.expressions, key, rows)


def _aliased(node: exp.Expression, select: exp.Select, rows: RowScope) -> exp.Expression:
    """Resolve GROUP BY 1 and GROUP BY alias to what the SELECT list says there."""
    if is_column(node) and any(same_name(node.this, name) for source in rows.sources for name in source.columns):
        return node
    from lapwing.query.from_clause.select_list import chosen  # here: most keys are columns

    return chosen(node, select, rows)


def _key(node: exp.Expression, rows: RowScope, selection: Selection, facts: PublicFacts) -> Key:
    if rows.is_unit(node):
        remedy = "Group by another column, or by the unit in a subquery and aggregate what comes out."
        reason = "Grouping by the privacy unit would show each unit"
        raise rows.refusal(node, RefusalCause.SHOWS_UNITS, reason, remedy)
    if has_aggregate(node):
        raise rows.refusal(
            node,
            RefusalCause.INVALID_GROUP_KEY,
            "GROUP BY takes columns, not aggregates",
            "Aggregate in a subquery first.",
        )
    # Most keys are names of columns; other expressions need the whole of `calls`.
    value = rows.column(node) if is_column(node) else bind_both(node, rows)
    if isinstance(value, Literal):
        raise rows.refusal(
            node, RefusalCause.INVALID_GROUP_KEY, "GROUP BY takes columns, not constants", "Leave it out."
        )
    relation = selection.relation
    domain = declared_values(value, relation.table) if isinstance(relation, ProtectedRows) else None
    if domain is None:
        domain = values_of(value, relation, facts)
    expression: Expression = value
    if value.read is not None:
        among = None if domain is None else listed_by(selection, value) or domain
        expression = key_of(value, None if among is None else among.listed)
    if domain is not None:
        return Key(expression=expression, values=domain.listed, other=domain.other)
    if isinstance(expression.type, Real):
        remedy = f"Round them: FLOOR(x / 10), to at most {MAX_VALUES:,} whole numbers."
        raise rows.refusal(
            node, RefusalCause.INVALID_GROUP_KEY, "GROUP BY takes no fractions of unknown values", remedy
        )
    return Key(expression=expression, values=None)


def _check_cells(question: Question) -> None:
    if question.sets and question.private_keys:
        remedy = "Ask for each grouping by itself, or let the curator declare `values`."
        raise QueryRefused(
            "Grouping sets take keys with public values", cause=RefusalCause.VALUES_NOT_PUBLIC, remedy=remedy
        )
    if question.combinations > MAX_CELLS:
        reason = f"GROUP BY spans {question.combinations:,} cells, and every cell appears in the answer"
        raise QueryRefused(
            reason,
            cause=RefusalCause.TOO_MANY_GROUPS,
            remedy=f"Group by fewer or coarser columns: at most {MAX_CELLS:,} cells.",
        )


def _is_plain(sets: Sets, selection: Selection) -> bool:
    """Tell whether a table's rows are grouped by a column, of which WHERE says nothing: it can have all its values."""
    column = sets[0][0].expression if len(sets[0]) == 1 and isinstance(selection.relation, ProtectedRows) else None
    names = {column.name, (column.cleaned or column).name} if isinstance(column, ColumnReference) else set[str]()
    return bool(names) and names.isdisjoint(columns_of(selection.where))


# ---- SELECT ----------------------------------------------------------------------------------------------------------


def _outputs(select: exp.Select, scope: SelectScope, requests: Requests) -> tuple[Output, ...]:
    if len(select.expressions) > MAX_OUTPUTS:
        raise QueryRefused(
            f"The SELECT list has more than {MAX_OUTPUTS} columns",
            cause=RefusalCause.TOO_MANY_COLUMNS,
            remedy="Ask for fewer at a time.",
        )
    outputs: list[Output] = []
    taken: set[str] = set()
    for item in select.expressions:
        node, name = item, ""
        if type(item) is exp.Alias:
            scope.rows.only(item, "this", "alias")
            scope.rows.only(item.args["alias"], "this", "quoted")
            node, name = item.this, item.alias
            if name.casefold() in taken:
                raise scope.rows.refusal(
                    item, RefusalCause.DUPLICATE_NAME, f"Two columns of the answer are called '{name}'", "Rename one."
                )
        value = bind_output(node, scope, requests)
        name = name or _free(_default_name(node, value), taken)
        taken.add(name.casefold())
        outputs.append(Output(name=name, value=value))
        scope = replace(scope, aliases={name.casefold(): value, **scope.aliases})  # later columns may name earlier ones
    _refuse_names_of_ends(outputs)
    return tuple(outputs)


def _refuse_names_of_ends(outputs: Sequence[Output]) -> None:
    """Keep the names that exports give to the ends of a noisy column's interval free for them."""
    names = {output.name.casefold() for output in outputs}
    for output in outputs:
        for end in (f"{output.name}_low", f"{output.name}_high"):
            if measures_of(output.value) and end.casefold() in names:
                reason = f"'{end}' is the name of an end of the interval of '{output.name}'"
                raise QueryRefused(reason, cause=RefusalCause.DUPLICATE_NAME, remedy="Rename one.")


def _free(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate.casefold() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _default_name(node: exp.Expression, value: Derived) -> str:
    """Name a column after what it is written as."""
    inner = node.this if type(node) is exp.Filter else node
    if is_column(inner):
        return str(inner.name)
    if isinstance(value, KeyValue):
        return "key"
    if not isinstance(inner, exp.AggFunc):
        return "value"
    if isinstance(inner, exp.Count | exp.CountIf):
        return "count"
    name = inner.sql_name().lower()
    return f"{name}_{inner.this.name}" if is_column(inner.this) else name
