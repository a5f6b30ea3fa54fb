"""Joins of a table of edges with itself, as people write them, and the statistic that each of them counts.

In SQL the table of edges has the edges of the graph, each once, whatever rows of the data say it: of a directed graph
from its first end to its second, of an undirected one in both directions, as it would be kept to be joined. So

    SELECT COUNT(*) FROM e WHERE e.a < e.b                                                    the edges
    SELECT COUNT(*) FROM e AS x JOIN e AS y ON x.b = y.a WHERE x.a < y.b                      the wedges
    SELECT COUNT(*) FROM e AS x JOIN e AS y ON x.b = y.a JOIN e AS z ON y.b = z.a AND z.b = x.a
                                                                                              six times the triangles

How often each is counted. The columns that are equal make a pattern: its nodes are classes of columns, its edges the
rows that are joined. A row of the join is a map of the pattern into the graph that keeps edges and obeys the
comparisons. Where all nodes of the pattern are told apart, the maps into one triangle, or one star, are the ways to lay
the pattern upon it: all orders of the three nodes, or all orders of the leaves. Comparisons by < allow the same number
of orders wherever the nodes are, as they compare keys, of which no two are the same; so that number is the factor.
Where two leaves may be one node, the join counts the way back, too, and is refused: it is no count of stars.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Final, final

from sqlglot import exp

from lapwing.answer.notes import (
    GRAPH_MULTIPLIED,
)
from lapwing.answer.python_values import Note
from lapwing.catalog.graph import NODE, Graph
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.mechanisms.graphs.ladder import MOST_LEAVES

Place = tuple[str, str]
"""A column of a row that is joined: the row's name, and the end."""
ALLOWED: Final = {"expressions", "from_", "joins", "where", "kind"}
FORMS: Final = (
    "Write SELECT COUNT(*) of the table of edges, joined with itself on the ends that wedges, stars or triangles "
    "share, with comparisons of ends by < or <>; or a function, as SELECT GRAPH_TRIANGLES(friends)."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPattern:
    """A statistic, and how many rows of a join are one of what it counts."""

    graph: Graph
    statistic: str
    times: Fraction
    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def graphs_named(select: exp.Select, graphs: Sequence[Graph]) -> list[Graph]:
    """Return the graphs that a question reads, by their own names or those of their tables of edges."""
    tables = {table.name.casefold() for table in select.find_all(exp.Table)}
    return [graph for graph in graphs if {graph.name.casefold(), graph.edges.name.casefold()} & tables]


def counted(select: exp.Select, graphs: Sequence[Graph]) -> CountedPattern:
    """Return the statistic that a join counts.

    Raises:
        QueryRefused: For what is not answered.
    """
    graph, rows = _rows_of(select, graphs)
    factor, name = _number(select)
    ends = {end.casefold(): end for end in graph.ends}
    joined, apart, before = _conditions(select, rows, ends)
    names = {place: joined.of(place) for place in ((row, end) for row in rows for end in ends)}
    first, second = (end.casefold() for end in graph.ends)
    lines = {(names[row, first], names[row, second]) for row in rows}
    if any(one == other for one, other in lines):
        raise QueryRefused(
            "No edge leads from a node to itself",
            cause=RefusalCause.GRAPH_CONDITION_NOT_SUPPORTED,
            remedy="Join other ends.",
        )
    pattern = _Pattern(
        nodes=frozenset(node for line in lines for node in line),
        lines=frozenset(lines),
        apart=frozenset(frozenset((names[one], names[other])) for one, other in apart),
        before=_closed({(names[one], names[other]) for one, other in before}),
    )
    statistic, arguments, orders = pattern.directed() if graph.directed else pattern.undirected()
    times = factor * orders
    said = f"{_times(times)} the {statistic}, because the join has that many rows for each"
    notes = () if times == 1 else (Note(said, GRAPH_MULTIPLIED),)
    return CountedPattern(graph=graph, statistic=statistic, arguments=arguments, times=times, name=name, notes=notes)


def _times(times: Fraction) -> str:
    return f"{times} times" if times.denominator == 1 else f"{times.numerator}/{times.denominator} of"


# ---- what is read ----------------------------------------------------------------------------------------------------


def _rows_of(select: exp.Select, graphs: Sequence[Graph]) -> tuple[Graph, tuple[str, ...]]:
    """Return the graph whose edges are joined, and the names of the rows."""
    if len({graph.edges.name for graph in graphs}) > 1:
        raise QueryRefused(
            "The query joins the edges of several graphs",
            cause=RefusalCause.SEVERAL_GRAPHS,
            remedy="Query one graph at a time.",
        )
    clauses = [name for name, value in select.args.items() if value and name not in ALLOWED]
    if clauses or select.args.get("kind"):
        raise QueryRefused(
            "A query of edges is one count, and has no other clauses",
            cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED,
            remedy=FORMS,
        )
    source = select.args.get("from_")
    joins = select.args.get("joins") or []
    tables = [one.this for one in ([source] if source is not None else []) + joins]
    known = {name.casefold(): graph for graph in graphs for name in (graph.name, graph.edges.name)}
    for join in joins:
        if join.args.get("using") or join.side or join.method or join.kind not in ("", "INNER", "CROSS"):
            raise QueryRefused(
                "A query of edges joins them by JOIN … ON", cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED, remedy=FORMS
            )
    rows, named = list[str](), set[str]()
    for table in tables:
        if not isinstance(table, exp.Table) or table.args.get("db") or table.name.casefold() not in known:
            shown = table.name if isinstance(table, exp.Table) else "a subquery"
            raise QueryRefused(
                f"The query joins edges with {shown:.60}, and edges can be joined only with edges",
                cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED,
                remedy="For groups of nodes, write SELECT GRAPH_MIXING_MATRIX(friends, by => 'town').",
            )
        named.add(table.name.casefold())
        rows.append(table.alias_or_name.casefold())
    if len(set(rows)) < len(rows):
        raise QueryRefused(
            "Two tables of the query have the same name",
            cause=RefusalCause.DUPLICATE_NAME,
            remedy="Give each a name of its own by AS.",
        )
    return _one_graph(graphs, named), tuple(rows)


def _one_graph(graphs: Sequence[Graph], named: set[str]) -> Graph:
    """Return the one graph that is meant."""
    own = [graph for graph in graphs if graph.name.casefold() in named]
    if len(own) == 1:
        return own[0]
    if len(graphs) == 1:
        return graphs[0]
    names = " and ".join(
        f"{graph.name} ({'a node' if graph.privacy == NODE else 'an edge'} is hidden)" for graph in graphs
    )
    raise QueryRefused(
        f"The edges belong to two graphs, {names}, and a query needs one of them",
        cause=RefusalCause.SEVERAL_GRAPHS,
        remedy=f"Write the name of the graph after FROM and JOIN, like FROM {graphs[0].name} AS e.",
    )


def _number(select: exp.Select) -> tuple[Fraction, str]:
    """Return by what the count is multiplied, and the name of its column."""
    if len(select.expressions) != 1:
        raise QueryRefused(
            "A query of edges has one column", cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED, remedy=FORMS
        )
    (column,) = select.expressions
    value, name = (column.this, column.alias) if isinstance(column, exp.Alias) else (column, "count")
    factor = Fraction(1)
    if isinstance(value, exp.Div | exp.Mul) and isinstance(value.expression, exp.Literal):
        by = value.expression
        if by.is_string or not by.this.isdigit() or not 0 < int(by.this) < 10**6:
            raise QueryRefused(
                "A count can be divided or multiplied only by whole numbers",
                cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED,
                remedy="Write COUNT(*) / 6.",
            )
        factor = Fraction(int(by.this)) if isinstance(value, exp.Mul) else Fraction(1, int(by.this))
        value = value.this
    value = value.this if isinstance(value, exp.Paren) else value
    if not isinstance(value, exp.Count) or not isinstance(value.this, exp.Star | exp.Literal) or value.expressions:
        raise QueryRefused(
            "A query of edges can only count rows", cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED, remedy=FORMS
        )
    return factor, name


@final
class _Classes:
    """Classes of columns that are equal."""

    def __init__(self) -> None:
        self._above: dict[Place, Place] = {}

    def of(self, place: Place) -> Place:
        """Return the column that stands for the class of one."""
        while place in self._above:
            place = self._above[place]
        return place

    def join(self, one: Place, other: Place) -> None:
        """Make two columns equal."""
        one, other = self.of(one), self.of(other)
        if one != other:
            self._above[one] = other


def _conditions(
    select: exp.Select, rows: Sequence[str], ends: Mapping[str, str]
) -> tuple[_Classes, list[tuple[Place, Place]], list[tuple[Place, Place]]]:
    """Return which columns are equal, which differ, and which come before which."""
    where = select.args.get("where")
    given = [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on") is not None]
    joined, apart, before = _Classes(), list[tuple[Place, Place]](), list[tuple[Place, Place]]()
    for condition in _parts([*given, *([] if where is None else [where.this])]):
        if not isinstance(condition, exp.EQ | exp.NEQ | exp.LT | exp.GT):
            raise QueryRefused(
                "A condition on edges is no comparison of two ends by =, <>, < or >",
                cause=RefusalCause.GRAPH_CONDITION_NOT_SUPPORTED,
                remedy=FORMS,
            )
        one, other = (_place(side, rows, ends) for side in (condition.this, condition.expression))
        match condition:
            case exp.EQ():
                joined.join(one, other)
            case exp.NEQ():
                apart.append((one, other))
            case exp.LT():
                before.append((one, other))
            case _:
                before.append((other, one))
    return joined, apart, before


def _parts(conditions: Sequence[exp.Expression]) -> Iterator[exp.Expression]:
    """Yield conditions that are joined by AND one by one."""
    for condition in conditions:
        if isinstance(condition, exp.And):
            yield from _parts([condition.this, condition.expression])
        elif isinstance(condition, exp.Paren):
            yield from _parts([condition.this])
        else:
            yield condition


def _place(side: exp.Expression, rows: Sequence[str], ends: Mapping[str, str]) -> Place:
    if not isinstance(side, exp.Column):
        raise QueryRefused(
            "A condition on edges compares two of their ends, not constants",
            cause=RefusalCause.GRAPH_CONDITION_NOT_SUPPORTED,
            remedy=FORMS,
        )
    row, end = side.table.casefold(), side.name.casefold()
    if not row and len(rows) == 1:
        row = rows[0]
    if row not in rows or end not in ends:
        shown = ", ".join(ends.values())
        raise QueryRefused(
            f"{side.sql():.60} is not an end of an edge in the query",
            cause=RefusalCause.UNKNOWN_COLUMN,
            remedy=f"Name a row and one of its ends: {shown}.",
        )
    return row, end


# ---- what it counts --------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """Nodes and lines between them, which nodes differ, and which come before which."""

    nodes: frozenset[Place]
    lines: frozenset[tuple[Place, Place]]
    apart: frozenset[frozenset[Place]]
    before: frozenset[tuple[Place, Place]]

    def directed(self) -> tuple[str, dict[str, object], int]:
        """Return what is counted of a directed graph, and how often."""
        if len(self.lines) == 1 and not self.before:
            return "edge_count", {}, 1
        raise QueryRefused(
            "Joins of edges are not available for a directed graph",
            cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED,
            remedy="Write SELECT GRAPH_EDGES(friends), or SELECT GRAPH_RECIPROCITY(friends).",
        )

    def undirected(self) -> tuple[str, dict[str, object], int]:
        """Return what is counted of an undirected graph, and how often."""
        joined = {frozenset(line) for line in self.lines}
        if any(one == other for one, other in self.before):
            raise QueryRefused(
                "No node comes before itself, so the count is 0",
                cause=RefusalCause.EMPTY_CONDITION,
                remedy="Reverse one of the comparisons.",
            )
        if len(joined) == 1:
            if not self.before:
                raise QueryRefused(
                    "Each edge is there in both directions, and the query does not say which to count",
                    cause=RefusalCause.GRAPH_CONDITION_NOT_SUPPORTED,
                    remedy="Add WHERE a < b, by the names of the two ends, to count each once.",
                )
            return "edge_count", {}, self._orders(self.nodes)
        if len(self.nodes) == 3 and len(joined) == 3:
            return "triangles", {}, self._orders(self.nodes)
        leaves = len(joined)
        centres = [node for node in self.nodes if all(node in line for line in joined)]
        if len(self.nodes) != leaves + 1 or len(centres) != 1 or leaves > MOST_LEAVES:
            raise QueryRefused(
                f"A join of this shape is not available. Lapwing counts wedges, triangles and stars of up to "
                f"{MOST_LEAVES} leaves",
                cause=RefusalCause.GRAPH_QUERY_NOT_SUPPORTED,
                remedy=FORMS,
            )
        others = self.nodes - {centres[0]}
        for one in others:
            for other in others - {one}:
                told = {(one, other), (other, one)} & self.before or frozenset((one, other)) in self.apart
                if not told:
                    raise QueryRefused(
                        "Two ends may be the same node, so the join would also count every edge forth and back",
                        cause=RefusalCause.GRAPH_CONDITION_NOT_SUPPORTED,
                        remedy=f"Add {one[0]}.{one[1]} <> {other[0]}.{other[1]}.",
                    )
        if any(centres[0] in pair for pair in self.before):
            raise QueryRefused(
                "How many rows a star has would depend on whether its middle comes first",
                cause=RefusalCause.GRAPH_CONDITION_NOT_SUPPORTED,
                remedy="Compare leaves only.",
            )
        if leaves == 2:
            return "wedges", {}, self._orders(others)
        return "stars", {"leaves": leaves}, self._orders(others)

    def _orders(self, nodes: frozenset[Place]) -> int:
        """Return in how many orders of different nodes every comparison holds."""
        return sum(
            all(order.index(one) < order.index(other) for one, other in self.before)
            for order in permutations(sorted(nodes))
        )


def _closed(before: set[tuple[Place, Place]]) -> frozenset[tuple[Place, Place]]:
    """Return what follows from comparisons, too: if x < y and y < z then x < z."""
    found = set(before)
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more:
            return frozenset(found)
        found |= more
