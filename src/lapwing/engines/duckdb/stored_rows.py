"""Rows that exist, stored and read again: in an index, or for as long as one question takes.

Every question stands on `kept`, and `kept` may be stored, because it is the same relation whenever it is selected, and
in however many passes. Proof. A row's cleaned values depend on the row alone, and its hash on these values and its
unit. The order within a unit is total, except for rows that are equal in everything that can be asked; so the first K
rows are one bag, whatever the order in which rows arrive, the threads and the memory. (Where different rows of a unit
have equal hashes, a question that looks at numbers as they were read may keep another one of them than one that does
not, and so may an index: a function of that unit's rows alone all the same.) A join is one of bags, so the
rows of a linked table are one bag if the parent's kept rows are. A pass takes or leaves whole units by the unit's value
alone, in the root or where rows are stored, and linked rows have the units of their parents. So the rows of all passes
together are those of a single pass, if all layers of a pass take the same units. ∎ For that, the unit's value must have
one type in all tables that share units (`unit_value`), as an engine may hash an integer of another width to another
number. The premise is that the data, this SQL and the engine are the same; and the order of stored rows means nothing,
since a question asks only for functions of the bag.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from lapwing.catalog.model import Table
from lapwing.engines.duckdb.cleaned import WHOLE, Location, Pass, Relations, layer, needed, of_part
from lapwing.engines.duckdb.database import QueryRunner
from lapwing.engines.duckdb.literals import identifier, kept_name, unit_name
from lapwing.machine import progress


def stored(table: Table, relation: str, part: Pass = WHOLE, within: Pass = WHOLE) -> str:
    """Return the layer of a table (`cleaned.layer`) where a relation holds the rows that `kept_rows` selects.

    Args:
        part: The units that `layer` takes.
        within: Of these, a part that is divided otherwise, so that either can be divided by the other.
    """
    unit = unit_name(table)
    conditions = [condition for condition in (of_part([unit], part), of_part([unit, "'stored'"], within)) if condition]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"{kept_name(table)} AS (SELECT * FROM {relation}{where})"


def held(tables: Iterable[Table], relations: Relations, part: Pass = WHOLE, within: Pass = WHOLE) -> list[str]:
    """Return the layers of tables whose rows are all stored, of the units of a pass and of a part of these."""
    return [stored(table, relations[table.name], part, within) for table in tables]


def kept_rows(
    table: Table,
    source: Location,
    reads: bool,
    part: Pass,
    parents: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
) -> str:
    """Return a query whose rows are those of `kept`, a unit's beside each other.

    Args:
        parents: The layers beneath that of a linked table, of the same part.
        types: In which columns are wanted.
    """
    order = "" if table.unit_is_row else f" ORDER BY {unit_name(table)}"
    kinds = {identifier(name): kind for name, kind in (types or {}).items()}
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in kinds.items())
    shown = f"*{f' REPLACE ({casts})' if casts else ''}"
    layers = ", ".join([*parents, layer(table, source, reads, part)])
    return f"WITH {layers} SELECT {shown} FROM {kept_name(table)}{order}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Common table expressions over files as they are described when they are asked for.

    Args:
        reads: Whether they have bounded numbers as they are read, too.
    """

    source: Callable[[Table], Location]
    reads: bool

    def of(self, tables: Iterable[Table], relations: Relations, part: Pass) -> list[str]:
        """Return the layers of tables, parents first, of the units of a pass."""
        return [
            stored(table, relations[table.name], part)
            if table.name in relations
            else layer(table, self.source(table), self.reads, part)
            for table in tables
        ]

    def above(self, table: Table, relations: Relations, part: Pass) -> list[str]:
        """Return the layers from which the rows of a linked table are taken; none for another."""
        parents = () if table.link is None else (table.link.parent,)
        return self.of(needed(parents, relations), relations, part)

    def rows(
        self,
        table: Table,
        relations: Relations,
        part: Pass,
        types: Mapping[str, str] | None = None,
    ) -> str:
        """Return the query for the rows of a table that exist, made from its file."""
        above = self.above(table, relations, part)
        return kept_rows(table, self.source(table), self.reads, part, above, types)


@contextmanager
def gathered(
    tables: Sequence[Table], relations: Relations, parts: Sequence[Pass], layers: Layers, query: QueryRunner
) -> Iterator[Relations]:
    """Store the rows of tables that exist, of several passes, and drop them afterwards: they may spill meanwhile.

    A linked table's rows of a pass are taken from those of its parent, which were gathered just before.

    Args:
        tables: Parents first.
        relations: Of the tables whose rows are stored already; they are returned too.
    """
    all_relations = {**relations, **{table.name: f"temp.kept_{i}" for i, table in enumerate(tables)}}
    try:
        for number, part in enumerate(parts):
            with progress.step(number, len(parts)):
                for i, table in enumerate(tables):
                    into = f"INSERT INTO temp.kept_{i}" if number else f"CREATE TEMP TABLE kept_{i} AS"
                    query(f"{into} {layers.rows(table, all_relations, part)}")
        yield all_relations
    finally:
        for i in range(len(tables)):
            query(f"DROP TABLE IF EXISTS temp.kept_{i}")
