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

from lapwing.catalog.model import Catalog
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.bound_searches import searches_for
from lapwing.query.aggregates.clauses import bind_having, bind_limit, bind_order, bind_qualify, check_distinct
from lapwing.query.aggregates.group_by import bind_keys, has_all_values
from lapwing.query.aggregates.outputs import bind_outputs
from lapwing.query.aggregates.privacy_arguments import check_mixture
from lapwing.query.aggregates.scope import Bounded, Requests, SelectScope
from lapwing.query.aggregates.shared_rows import check_shared
from lapwing.query.derivation.derived import measures_in
from lapwing.query.expressions.magnitudes import ValueBounds
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.scope import Scope as From
from lapwing.query.from_clause.scope import bind_from, protected_table, rows_of
from lapwing.query.plan.capabilities import EVERYTHING, Capabilities
from lapwing.query.plan.combined_keys import CombinedKeys
from lapwing.query.plan.plan import Plan, Question, without_unread
from lapwing.query.relations.contribution import PriceRequest, check_options, with_limits
from lapwing.query.relations.public_rows import NOTHING_PUBLIC, PublicFacts
from lapwing.query.relations.relation import units_of_row
from lapwing.query.text.clock import MAY_TELL_TIME, at_moment
from lapwing.query.text.dialect import require_released
from lapwing.query.text.parameters import Parameters
from lapwing.query.text.parse import Parsed, is_in_plain_words, parse

MAX_CELLS = 1_000_000
_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "qualify", "distinct", "order", "limit",
            "offset", "with_")  # fmt: skip
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
        QueryRefused: With reason, position and remedy; nothing was read but the text, the catalog and what is public.
        InvalidParameter: For a parameter's value.
    """
    parsed, scope = parse(text, parameters), From(text=text, catalog=catalog, facts=facts, reads=reads)
    if moment is not None and MAY_TELL_TIME.search(text):
        parsed = at_moment(parsed, moment)
    bind_parsed = partial(_bind_parsed, within=scope, bounds=bounds, capabilities=capabilities)

    def over_rows(parsed: Parsed) -> Plan:
        try:
            return bind_parsed(parsed, rows_of)
        except QueryRefused as refused:
            if refused.cause is not RefusalCause.UNBOUNDED:
                raise
            from lapwing.query.bind.implicit_bounds import bind_otherwise  # here: most questions are answered so

            return bind_otherwise(refused, parsed, bind_parsed, scope)

    name = getattr(getattr(parsed.select.args.get("from_"), "this", None), "this", None)  # of a table, if it is one
    public = catalog.public_tables and not isinstance(name, str | None) and protected_table(name, scope) is None
    if name is not None and is_in_plain_words(parsed.select) and not public:
        return over_rows(parsed)
    from lapwing.query.bind.stages import planned  # here: most questions are plain

    plan = planned(parsed, scope, over_rows, bind_outputs, constants)
    return plan if plan.moment == parsed.moment else replace(plan, moment=parsed.moment)


def _bind_parsed(
    parsed: Parsed, names: Names, within: From, bounds: Mapping[Bounded, ValueBounds], capabilities: Capabilities
) -> Plan:
    select, options, clause, facts = parsed.select, parsed.options, parsed.select.args.get, within.facts
    if parsed.arguments or options.inside or not options.alone:
        require_released(select, parsed.arguments, options, within.text)

    # FROM and WHERE: the rows. Different units may share one only where aggregates limit what each unit adds.
    limited_by_group = any(named.contribution_bounds_per_group is not None for named in parsed.arguments.values())
    input_, within = bind_from(select, within, sharing=limited_by_group)
    rows = names(input_, within)
    rows.only(select, *_CLAUSES)

    # GROUP BY: the cells, which are public unless a key's values are private.
    sets = bind_keys(select, rows, input_.selection, facts)
    combined, earlier = tuple[CombinedKeys, ...](), None
    if any(sets) and not has_all_values(sets, input_.selection):
        from lapwing.query.aggregates.possible_keys import asked_before, possible_keys  # here: most questions are plain

        sets, combined, earlier = possible_keys(sets, input_.selection, input_.kept, facts)
    keys = tuple(dict.fromkeys(key for grouped in sets for key in grouped))
    if options.written:
        check_options(options, keys, rows)

    # SELECT and what acts on the answer: measures, which touch data, and what is computed from their noisy values.
    scope = SelectScope(rows=rows, selection=input_.selection, keys=keys, sets=sets, arguments=parsed.arguments)
    requests = Requests(bounds=bounds)
    outputs = bind_outputs(select, scope, requests)
    named = replace(scope, aliases={output.name.casefold(): output.value for output in outputs})
    having = None if (node := clause("having")) is None else bind_having(node, named, requests)
    qualify = None if (node := clause("qualify")) is None else bind_qualify(node, named, requests)
    terms = () if (node := clause("order")) is None else bind_order(node, outputs, named, requests)
    conditions = [condition for condition in (having, qualify) if condition is not None]
    measures = measures_in([*(output.value for output in outputs), *conditions, *(term.value for term in terms)])
    if not measures and not keys:
        remedy = "Ask for COUNT, SUM or AVG, with GROUP BY: SELECT x, COUNT(*) FROM … GROUP BY x."
        raise QueryRefused(
            "The query has no aggregate, and rows are never shown", cause=RefusalCause.NO_AGGREGATE, remedy=remedy
        )
    if clause("distinct") is not None:
        check_distinct(select, outputs, sets, rows)
    if units_of_row(input_.selection.relation) > 1:
        check_shared(sets, measures, requests)
    if parsed.arguments:
        check_mixture(measures)

    # The question: all that touches data, in one order whatever the text's, so that asked again it is the same.
    sorted_keys = tuple(sorted(keys, key=str))
    selection = with_limits(input_.selection, sorted_keys, options) if options.written else input_.selection
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
    if question.sets and question.private_keys:
        cause, reason = RefusalCause.VALUES_NOT_PUBLIC, "Grouping sets take keys with public values"
        declare = "declare the values in the catalog, if they are public"
        raise QueryRefused(reason, cause=cause, remedy="Ask for each grouping by itself.", curator_remedy=declare)
    if question.combinations > MAX_CELLS:
        reason = f"GROUP BY spans {question.combinations:,} cells, and every cell appears in the result"
        remedy = f"Group by fewer or coarser columns: at most {MAX_CELLS:,} cells."
        raise QueryRefused(reason, cause=RefusalCause.TOO_MANY_GROUPS, remedy=remedy)
    if not question.combinations:
        from lapwing.query.bind.no_cells import without_cells  # here: most questions have some

        return without_cells(question, outputs, parsed)
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
        price_request=PriceRequest(
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
