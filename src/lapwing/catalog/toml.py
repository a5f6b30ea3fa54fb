"""A catalog as a TOML file: read, checked, and written with a word of explanation on each line.

Numbers are read exactly (0.1 is one tenth) and what is written reads back as the same catalog.
"""

import os
import threading
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, cast

from lapwing.catalog import spelling
from lapwing.catalog.checks import MOST_LINKS
from lapwing.catalog.column_checks import LONGEST_TEXT, TYPES, default_length, default_step
from lapwing.catalog.condition import check_from_source, condition_lines, conditions_of
from lapwing.catalog.dictionary import OF_COLUMN, OF_DATASET, OF_TABLE, Dictionary, Texts
from lapwing.catalog.dictionary_section import (
    column_entries,
    dataset_lines,
    dictionary_in,
    table_lines,
    values_entry,
    values_in,
)
from lapwing.catalog.graph import Graph
from lapwing.catalog.model import (
    CLOCKS,
    ENGINES,
    MEASURES,
    NEIGHBOURING,
    ROW,
    Budget,
    Catalog,
    Link,
    PublicTable,
    Reference,
    Table,
    View,
)
from lapwing.catalog.monitor_section import MonitorSection
from lapwing.catalog.place import refuse, within
from lapwing.catalog.reading import OPTIONS, reading_in
from lapwing.catalog.section import TomlSection
from lapwing.catalog.source_address import is_address
from lapwing.catalog.source_names import is_text
from lapwing.catalog.suggestions import closest
from lapwing.catalog.table import Column, Value
from lapwing.catalog.text_files import TextFormat, format_of
from lapwing.errors import CatalogError

WRITTEN: Final = {"delimiter": ";", "quote": '"', "encoding": "windows-1252"}
"""How a CSV file is written, with examples."""


def load(path: Path) -> Catalog:
    """Read the catalog in a file; relative paths in it start from the file's folder.

    Raises:
        CatalogError: With file, table, column and key, if the file is missing, is not TOML, or makes no sense.
    """
    if not path.is_file():
        refuse(path.name, "there is no such file; write one with `lapwing init`, or try `lapwing demo`")
    try:
        content = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CatalogError(f"{path.name}: cannot be read: {error.strerror}; check its permissions") from None
    except UnicodeDecodeError:
        raise CatalogError(f"{path.name}: not UTF-8 text; save it as UTF-8") from None
    return replace(loads(content, file=path.name, folder=path.absolute().parent), file=path.absolute())


def loads(content: str, *, file: str, folder: Path) -> Catalog:
    """Read a catalog from text; `file` is the name for messages, `folder` where relative paths start from."""
    with within(f"{file}: "):
        document = TomlSection(path="", content=_parse(content))
        document.allow("dataset", "budget", "tables", "views", "graphs", "monitors")
        dataset = document.section("dataset")
        dataset.allow("name", "engine", "cluster", "ledger", "clock", *OF_DATASET)
        tables, views, graphs = document.section("tables"), document.section("views"), document.section("graphs")
        monitors = document.section("monitors")
        sections = {name: tables.section(name) for name in tables.content}
        drawn = {name: graphs.section(name) for name in graphs.content}
        edges = {section.text("edges", example="friendships") for section in drawn.values()}
        for section in drawn.values():
            named = section.text("edges", example="friendships")
            if named not in sections:
                place, reason = section.place("edges"), f"there is no table {spelling.text(named)}"
                refuse(place, f"{reason}; describe it in [tables.{spelling.key(named)}]")
        protected, public = _tables({name: section for name, section in sections.items() if name not in edges})
        found = tuple(_graph(section, name, sections, protected, public) for name, section in drawn.items())
        # Of a catalog that protects edges alone, the account is that of its first graph.
        own = next((graph for graph in found if graph.ledger), None) if not protected else None
        described = {table.name: table.columns for table in (*protected, *(graph.edges for graph in found))}
        described |= {table.name: table.columns for table in public}
        return Catalog(
            name=dataset.text("name", example="visits"),
            engine=dataset.text("engine", "duckdb", example="duckdb"),
            cluster=dataset.text("cluster", example="spark://host:7077") if dataset.has("cluster") else None,
            ledger=dataset.text("ledger", own.ledger if own else None, example="sqlite:visits.lapwing.db"),
            budget=own.budget if own and own.budget else _budget(document.section("budget")),
            tables=protected,
            folder=folder,
            public_tables=public,
            views=tuple(_view(views.section(name), name) for name in views.content),
            references=tuple(
                _reference(section.section("references").section(to), name, to)
                for name, section in sections.items()
                for to in section.section("references").content
            ),
            graphs=found,
            clock=dataset.text("clock", "day", example="day"),
            monitors=tuple(MonitorSection.of(name, monitors.section(name)) for name in monitors.content),
            dictionary=dictionary_in(dataset, sections, described),
        )


def _parse(content: str) -> dict[str, object]:
    try:
        return tomllib.loads(content, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:  # its text ends in line and column
        raise CatalogError(f"not TOML: {error}; correct that line") from None
    except (ValueError, ArithmeticError):
        raise CatalogError("not TOML: a number has too many digits or a date does not exist; correct it") from None
    except RecursionError:
        raise CatalogError("not a catalog: nested too deeply; write it as the documentation shows") from None


def _budget(section: TomlSection) -> Budget:
    section.allow("epsilon", "delta", "delta_keys", "measure", "neighbouring")
    delta = section.number("delta", Fraction(0), example="1e-6")
    return Budget(
        epsilon=section.number("epsilon", example="3.0"),
        delta=delta,
        delta_keys=section.number("delta_keys", Fraction(0), example="1e-7"),
        measure=section.text("measure", default_measure(delta), example="gdp"),
        neighbouring=section.text("neighbouring", "add_remove", example="add_remove"),
    )


def default_measure(delta: Fraction) -> str:
    """Return the measure of a ledger whose catalog names none."""
    return "gdp" if delta > 0 else "pure"


def _tables(sections: Mapping[str, TomlSection]) -> tuple[tuple[Table, ...], tuple[PublicTable, ...]]:
    """Read protected and public tables, in the order of the file; a table after the one that its link leads to."""
    public = {name for name, section in sections.items() if section.boolean("public", False)}
    links = {
        name: section.section("link").text("table", example="customer") if section.has("link") else None
        for name, section in sections.items()
        if name not in public
    }
    protected_tables: dict[str, Table] = {}
    for name in parents_first(links, public):
        protected_tables[name] = _table(sections[name], name, protected_tables)
    protected = tuple(protected_tables[name] for name in sections if name in protected_tables)
    return protected, tuple(_public_table(sections[name], name) for name in sections if name in public)


def _table(section: TomlSection, name: str, others: Mapping[str, Table]) -> Table:
    section.allow(
        "source",
        "public",
        "privacy_unit",
        "unit",
        "link",
        "references",
        "max_rows_per_unit",
        "rows_at_most",
        "people",
        "unreadable",
        "part",
        "where",
        *WRITTEN,
        *OF_TABLE,
        "columns",
    )
    linked = section.has("link")
    whose, day = _whose(section) if section.has("privacy_unit") or not linked else (None, None)
    table = Table(
        name=name,
        source=section.text("source", example="visits.parquet"),
        privacy_unit=whose,
        max_rows_per_unit=section.integer("max_rows_per_unit", 1 if whose == ROW else None, example=10),
        columns=_columns(section),
        part=section.text("part", example="site") if section.has("part") else None,
        link=_link(section.section("link"), others) if linked else None,
        unit_day=day,
        unit=section.text("unit", example="person") if section.has("unit") else None,
        rows_at_most=section.integer("rows_at_most", None, example=1_000_000) if section.has("rows_at_most") else None,
        people=section.integer("people", None, example=1000) if section.has("people") else None,
        unreadable=section.text("unreadable", example="null") if section.has("unreadable") else None,
        text=_text_format(section),
        where=conditions_of(section.section("where")),
    )
    check_from_source(table)
    return table


def _whose(section: TomlSection) -> tuple[str, str | None]:
    """Return the column that says whose row it is, and the one whose day is a part of the unit, if one is."""
    said = section.content.get("privacy_unit")
    if isinstance(said, list):
        if len(said) != 2 or not all(isinstance(name, str) for name in said):
            refuse(section.place("privacy_unit"), 'a list; write a person and a day, like ["person_id", "at"]')
        return said[0], said[1]
    return section.text("privacy_unit", example="person_id"), None


def _text_format(section: TomlSection) -> TextFormat | None:
    said = {key: section.text(key, example=example) for key, example in WRITTEN.items() if section.has(key)}
    source = Path(section.text("source", example="visits.csv"))
    return replace(format_of(source) if is_text(source) else TextFormat(), **said) if said else None


def _link(section: TomlSection, others: Mapping[str, Table]) -> Link:
    section.allow("table", "on")
    on = _pairs(section.section("on"))
    return Link(parent=others[section.text("table", example="customer")], on=on)


def _reference(section: TomlSection, table: str, to: str) -> Reference:
    return Reference(table=table, to=to, on=_pairs(section))


def _pairs(section: TomlSection) -> tuple[tuple[str, str], ...]:
    return tuple((here, section.text(here, example="c_custkey")) for here in section.content)


def _public_table(section: TomlSection, name: str) -> PublicTable:
    protecting = ("privacy_unit", "unit", "link", "references", "max_rows_per_unit", "rows_at_most", "people", "part")
    for key in (*protecting, "unreadable"):
        if section.has(key):
            refuse(section.place(key), "nobody is protected in a public table; remove it, or remove public = true")
    section.allow("source", "public", "where", *WRITTEN, *OF_TABLE, "columns")
    source = section.text("source", example="codes.csv")
    where = conditions_of(section.section("where"))
    table = PublicTable(name=name, source=source, columns=_columns(section), text=_text_format(section), where=where)
    check_from_source(table)
    return table


def _view(section: TomlSection, name: str) -> View:
    section.allow("sql")
    return View(name=name, sql=section.text("sql", example="SELECT * FROM visits WHERE age >= 18"))


def _graph(
    section: TomlSection,
    name: str,
    sections: Mapping[str, TomlSection],
    protected: Sequence[Table],
    public: Sequence[PublicTable],
) -> Graph:
    section.allow("nodes", "edges", "ends", "directed", "privacy", "degree_at_most", "key", "budget", "ledger")
    named = (
        section.items("nodes")
        if isinstance(section.content.get("nodes"), list)
        else (section.text("nodes", example="people"),)
    )
    known = {table.name: table for table in protected}
    open_to_all = {table.name: table for table in public}
    nodes = []
    for node in named:
        if node in known:
            nodes.append(known[str(node)])
        elif node in open_to_all:
            key = section.text("key", example="id")
            nodes.append(_node_table(open_to_all[str(node)], key))
        else:
            refuse(
                section.place("nodes"),
                f"there is no table {spelling.value(node)}; name one of {', '.join([*known, *open_to_all])}",
            )
    edges = section.text("edges", example="friendships")
    ends = tuple(str(end) for end in section.items("ends"))
    return Graph(
        name=name,
        nodes=tuple(nodes),
        edges=_edge_table(sections[edges], edges),
        ends=cast(tuple[str, str], ends),
        directed=section.boolean("directed", False),
        privacy=section.text("privacy", example="node"),
        degree_at_most=section.integer("degree_at_most", None, example=500) if section.has("degree_at_most") else None,
        budget=_budget(section.section("budget")) if section.has("budget") else None,
        ledger=section.text("ledger", example="sqlite:edges.lapwing.db") if section.has("ledger") else None,
        public_nodes=any(node in open_to_all for node in named),
    )


def _edge_table(section: TomlSection, name: str) -> Table:
    """Read the table of a graph's edges: its graph says what is protected in it."""
    for key in ("privacy_unit", "unit", "link", "max_rows_per_unit", "people", "part", "public"):
        if section.has(key):
            refuse(section.place(key), "the graph of the table declares its protection; remove it")
    section.allow("source", "rows_at_most", "unreadable", *WRITTEN, *OF_TABLE, "columns")
    return Table(
        name=name,
        source=section.text("source", example="friendships.csv"),
        privacy_unit=ROW,
        max_rows_per_unit=1,
        columns=_columns(section),
        rows_at_most=section.integer("rows_at_most", None, example=1_000_000) if section.has("rows_at_most") else None,
        unreadable=section.text("unreadable", example="null") if section.has("unreadable") else None,
        text=_text_format(section),
    )


def _node_table(table: PublicTable, key: str) -> Table:
    """Return a public table as one of nodes, of which `key` says which node a row is."""
    return Table(
        name=table.name,
        source=table.source,
        privacy_unit=key,
        max_rows_per_unit=1,
        columns=table.columns,
        text=table.text,
        unreadable="null",
    )


def _columns(table: TomlSection) -> tuple[Column, ...]:
    columns = table.section("columns")
    return tuple(_column(columns.section(name), name, table.path) for name in columns.content)


def _column(section: TomlSection, name: str, table: str) -> Column:
    keys = ("type", "lower", "upper", "step", "values", "other", "nullable", "max_length", "unreadable", *OPTIONS)
    section.allow(*keys, *OF_COLUMN)
    kind = section.text("type", example="integer")
    lower, upper = (section.bound(key) if section.has(key) else None for key in ("lower", "upper"))
    step = section.number("step", example="0.01") if section.has("step") else None
    values = cast(tuple[Value, ...], values_in(section)) if section.has("values") else None  # Column checks them
    other = "other" if section.content.get("other") is True else None
    other = section.text("other", example="other") if section.has("other") and other is None else other
    nullable = section.boolean("nullable", True)
    max_length = section.integer("max_length", None, example=LONGEST_TEXT) if section.has("max_length") else None
    reading = reading_in(section, kind)
    unreadable = section.text("unreadable", example="refuse") if section.has("unreadable") else None
    with within(f"{table}."):
        return Column(
            name=name,
            type=kind,
            lower=lower,
            upper=upper,
            step=step,
            values=values,
            other=other,
            nullable=nullable,
            max_length=max_length,
            reading=reading,
            unreadable=unreadable,
        )


# ---- the order of tables ---------------------------------------------------------------------------------------------


def parents_first(links: Mapping[str, str | None], public: Collection[str]) -> tuple[str, ...]:
    """Return the names of tables, each after its parent.

    Args:
        links: Every protected table, and the name of its parent or None.
        public: The names of public tables.

    Raises:
        CatalogError: Starting with `tables.<name>.link.table`, if a link leads nowhere, or round in a circle.
    """
    for name, parent in links.items():
        if parent is not None:
            _check_parent(name, parent, links, public)
    depths = {name: _depth(name, links) for name in links}
    return tuple(sorted(links, key=lambda name: depths[name]))


def _check_parent(name: str, parent: str, links: Mapping[str, str | None], public: Collection[str]) -> None:
    place, named = _link_place(name), spelling.text(parent)
    if parent == name:
        refuse(place, f"{named} is this table itself; name the table that its rows belong to")
    if parent in public:
        reason = f"{named} is a public table, and nobody belongs to its rows"
        refuse(place, f"{reason}; name a protected one, and join the public one in queries")
    if parent in links:
        return
    for other in (*links, *public):
        if other.casefold() == parent.casefold():
            refuse(place, f"{named} differs only by case from the table {spelling.text(other)}; write both alike")
    close = closest(parent, links)
    meant = f" (did you mean {spelling.text(close[0])}?)" if close else ""
    refuse(place, f"there is no table {named}{meant}; name a protected table of this catalog")


def _depth(name: str, links: Mapping[str, str | None]) -> int:
    """Return how many links there are from a table to the end."""
    path, parent = [name], links[name]
    while parent is not None:
        if parent in path:
            circle = " to ".join(map(spelling.text, (*path[path.index(parent) :], parent)))
            refuse(
                _link_place(path[-1]),
                f"links form a circle, {circle}; give one of these tables a privacy_unit",
            )
        if len(path) > MOST_LINKS:
            refuse(
                _link_place(name),
                f"more than {MOST_LINKS} links to the privacy unit; link to a table nearer to it",
            )
        path.append(parent)
        parent = links[parent]
    return len(path) - 1


def _link_place(name: str) -> str:
    return f"tables.{spelling.key(name)}.link.table"


# ---- writing ---------------------------------------------------------------------------------------------------------


NEIGHBOURING_WORDS: Final = "add_remove hides whether somebody is in the data; replace_one only what their rows say"


def dumps(catalog: Catalog) -> str:
    """Write a catalog as TOML with explanations; reading it in the same folder gives an equal catalog."""
    budget = catalog.budget
    lines = [
        "# A Lapwing catalog: public facts about a protected data set. Nothing in it may be learned from the data.",
        "",
        "[dataset]",
        _line("name", catalog.name, ""),
        _line("engine", catalog.engine, f"{' | '.join(ENGINES)}"),
        *([_line("cluster", catalog.cluster, "the master of Spark")] if catalog.cluster is not None else []),
        _line("ledger", catalog.ledger, "the record of what was spent; relative to this file"),
        *([_line("clock", catalog.clock, " | ".join(CLOCKS))] if catalog.clock != "day" else []),
        *dataset_lines(catalog.dictionary),
        "",
        "[budget]",
        _line("epsilon", budget.epsilon, "the most that all results together may reveal about one person (or row)"),
        _line("delta", budget.delta, "the probability that epsilon may fail; keep it far below 1 / (number of people)"),
        _line("delta_keys", budget.delta_keys, "part of delta, to find groups of values that are not listed"),
        _line("measure", budget.measure, f"{' | '.join(MEASURES)}: how the costs of queries add up"),
        _line("neighbouring", budget.neighbouring, NEIGHBOURING_WORDS),
    ]
    for table in catalog.tables:
        lines += _table_lines(table, catalog.dictionary)
        for reference in catalog.references:
            lines += _reference_lines(reference) if reference.table == table.name else []
    for public_table in catalog.public_tables:
        lines += _public_table_lines(public_table, catalog.dictionary)
    for graph in catalog.graphs:
        earlier = {one.edges.name for one in catalog.graphs[: catalog.graphs.index(graph)]}
        lines += _graph_lines(graph, catalog.dictionary, written=graph.edges.name in earlier)
    for view in catalog.views:
        lines += ["", f"[views.{spelling.key(view.name)}]", _line("sql", view.sql, "")]
    for monitor in catalog.monitors:
        lines += monitor.lines()
    return "\n".join(lines) + "\n"


def _table_lines(table: Table, dictionary: Dictionary) -> list[str]:
    path = f"tables.{spelling.key(table.name)}"
    parts = "the column that splits the units into disjoint parts; rows of a unit's other parts do not exist"
    promised = any(not column.nullable for column in table.columns)
    return [
        "",
        f"[{path}]",
        _line("source", table.source, "without password" if is_address(table.source) else "relative to this file"),
        *table_lines(dictionary, table.name),
        *condition_lines(table.where),
        *_text_lines(table.text),
        *_whose_lines(table),
        _line(
            "max_rows_per_unit",
            table.max_rows_per_unit,
            "queries use at most this many rows with one value of privacy_unit",
        ),
        *([_line("rows_at_most", table.rows_at_most, "in all; more are not accepted")] if table.rows_at_most else []),
        *([_line("people", table.people, "a constant, never compared with the data")] if table.people else []),
        *([_line("unreadable", table.unreadable, "what counts as NULL, or is rounded")] if table.unreadable else []),
        *([_line("part", table.part, parts)] if table.part is not None else []),
        "",
        f"# One column a line; a column that is not here is invisible. Types: {', '.join(TYPES)}.",
        "# lower, upper: public bounds, needed for SUM and AVG, which count a value outside as the bound.",
        "# step: numbers are rounded to multiples of it.",
        "# values: public values to group by, all in every result. other: one more, for texts that are not listed.",
        *(["# nullable = false: no value is NULL; one that is counts as the least value."] if promised else []),
        f"[{path}.columns]",
        *(_column_line(column, dictionary.column(table.name, column.name)) for column in table.columns),
    ]


def _reference_lines(reference: Reference) -> list[str]:
    path = f"tables.{spelling.key(reference.table)}.references.{spelling.key(reference.to)}"
    why = "# Questions may join these rows with those of this key there, which must be unique, if they are of one unit."
    return ["", why, f"[{path}]", *(f"{spelling.key(here)} = {spelling.text(there)}" for here, there in reference.on)]


def _graph_lines(graph: Graph, dictionary: Dictionary, *, written: bool) -> list[str]:
    """Return the section of a graph, and that of its edges unless another graph wrote it."""
    path, edges = f"tables.{spelling.key(graph.edges.name)}", graph.edges
    names = [spelling.text(table.name) for table in graph.nodes]
    nodes = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    table = [
        "",
        f"[{path}]",
        _line("source", edges.source, "relative to this file"),
        *table_lines(dictionary, edges.name),
        *_text_lines(edges.text),
        *([_line("rows_at_most", edges.rows_at_most, "in all; more are not accepted")] if edges.rows_at_most else []),
        *([_line("unreadable", edges.unreadable, "what counts as NULL")] if edges.unreadable else []),
        "",
        f"[{path}.columns]",
        *(_column_line(column, dictionary.column(edges.name, column.name)) for column in edges.columns),
    ]
    budget = graph.budget
    account = (
        []
        if budget is None
        else [
            _line("ledger", graph.ledger, "only of the edges"),
            "",
            f"[graphs.{spelling.key(graph.name)}.budget]",
            _line("epsilon", budget.epsilon, "the most that all results together may reveal about one edge"),
            _line("delta", budget.delta, ""),
            _line("delta_keys", budget.delta_keys, ""),
            _line("measure", budget.measure, ""),
            _line("neighbouring", budget.neighbouring, " | ".join(NEIGHBOURING)),
        ]
    )
    return [
        *([] if written else table),
        "",
        f"[graphs.{spelling.key(graph.name)}]",
        f"nodes = {nodes}",
        *([_line("key", graph.nodes[0].privacy_unit, "which node a row is")] if graph.public_nodes else []),
        _line("edges", edges.name, ""),
        f"ends = [{', '.join(map(spelling.text, graph.ends))}]",
        _line("directed", graph.directed, ""),
        _line("privacy", graph.privacy, "node: a node with all its edges; edge: one edge, a weaker promise"),
        *(
            [_line("degree_at_most", graph.degree_at_most, "edges of a node; more are not accepted")]
            if graph.degree_at_most
            else []
        ),
        *account,
    ]


def _text_lines(text: TextFormat | None) -> list[str]:
    if text is None:
        return []
    quote = [] if text.quote == '"' else [_line("quote", text.quote, "around fields that hold a delimiter")]
    encoding = [] if text.encoding == "utf-8" else [_line("encoding", text.encoding, "how its characters are written")]
    return [_line("delimiter", text.delimiter, "between its fields"), *quote, *encoding]


def _whose_lines(table: Table) -> list[str]:
    if table.link is not None:
        on = ", ".join(f"{spelling.key(here)} = {spelling.text(there)}" for here, there in table.link.on)
        link = f"link = {{ table = {spelling.text(table.link.parent.name)}, on = {{ {on} }} }}"
        return [f"{link:<39} # a row belongs to the unit of the row there with this key, which must be unique there"]
    whose = 'the column that says whose row it is, or "row": each row is protected separately'
    same = "tables that say the same protect the same units"
    named = [_line("unit", table.unit, same)] if table.unit is not None else []
    if table.unit_day is not None:
        pair = f"privacy_unit = [{spelling.text(table.unit_column)}, {spelling.text(table.unit_day)}]"
        return [f"{pair:<39} # a person, and the day of a time"]
    return [_line("privacy_unit", table.privacy_unit, whose), *named]


def _public_table_lines(table: PublicTable, dictionary: Dictionary) -> list[str]:
    path = f"tables.{spelling.key(table.name)}"
    return [
        "",
        f"[{path}]",
        _line("source", table.source, "without password" if is_address(table.source) else "relative to this file"),
        *table_lines(dictionary, table.name),
        *condition_lines(table.where),
        *_text_lines(table.text),
        _line("public", True, "nobody is protected in this table"),
        "",
        "# One column a line; bounds and values that are not here are those of the data.",
        f"[{path}.columns]",
        *(_column_line(column, dictionary.column(table.name, column.name)) for column in table.columns),
    ]


def _column_line(column: Column, texts: Texts) -> str:
    return f"{spelling.key(column.name)} = {{ {', '.join([*_entries(column, texts), *column_entries(texts)])} }}"


def _entries(column: Column, texts: Texts) -> list[str]:
    parts: dict[str, object] = {"type": column.type, "lower": column.lower, "upper": column.upper}
    follows = column.bounded and column.type in ("integer", "float") and column.step == default_step(column)
    if not follows:
        parts["step"] = column.step
    entries = [f"{key} = {spelling.value(content)}" for key, content in parts.items() if content is not None]
    default = column.type == "boolean" and column.values == (False, True) and not texts.labels
    if column.values is not None and not default:
        entries.append(values_entry(column, texts))
    if column.other is not None:
        entries.append(f"other = {spelling.text(column.other)}")
    if not column.nullable:
        entries.append("nullable = false")
    if column.max_length is not None and column.max_length != default_length(column):
        entries.append(f"max_length = {column.max_length}")
    if column.reading is not None:
        entries += column.reading.entries()
    if column.unreadable is not None:
        entries.append(f"unreadable = {spelling.text(column.unreadable)}")
    return entries


def _line(key: str, content: object, why: str) -> str:
    setting = f"{key} = {spelling.value(content)}"
    return f"{setting:<39} # {why}" if why else setting


def write(catalog: Catalog, path: Path, *, overwrite: bool = False) -> None:
    """Write a catalog to a file in the folder that its relative paths start from.

    Raises:
        CatalogError: If the file exists (unless `overwrite`), is in another folder, or cannot be written.
    """
    if path.absolute().parent.resolve() != catalog.folder.resolve():
        raise CatalogError(f"{path.name}: its paths start from another folder; write it to the folder of the data")
    try:
        if overwrite:  # at once, so that nobody ever reads half a catalog
            fresh = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
            fresh.write_text(dumps(catalog), encoding="utf-8", newline="\n")
            fresh.replace(path)
        else:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(dumps(catalog))
    except FileExistsError:
        raise CatalogError(
            f"{path.name}: exists already; remove it, choose another name, or ask to overwrite"
        ) from None
    except OSError as error:
        raise CatalogError(f"{path.name}: cannot be written: {error.strerror}") from None
