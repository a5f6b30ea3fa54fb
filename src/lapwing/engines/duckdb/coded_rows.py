"""The rows that exist as one question reads them: texts that are keys as codes, and other texts not at all.

Putting each unit's rows in order is most of what a question without an index does, and rows of a fixed width are put in
order in two thirds of the time. What is selected is the relation `kept` as far as the question can see. Proof. Both
take the first K rows of a unit: `kept` by hash, fixed widths, texts; this by hash, fixed widths, of which the codes
are a part. So they differ at most in which of two rows they keep that agree in the hash and in all fixed widths. Such
rows differ in texts that the question does not read, or both have NULL as the code of a text that is a key: then
neither has a value of that key, or each counts as its `other`. The question cannot tell them apart. ∎ The hash is of
the whole row, texts included.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, final

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.engines.duckdb.cleaned import Location, Pass, cleaned, fixed_width, row_order
from lapwing.engines.duckdb.files import File
from lapwing.engines.duckdb.literals import free_name, identifier, kept_name, unit_name
from lapwing.engines.duckdb.queries import is_additive, queries_of
from lapwing.query.expressions.as_read import names_read
from lapwing.query.expressions.expression import ColumnReference, columns_of
from lapwing.query.measures.measures import Key, argument_of
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import ProtectedRows, reads


def coded_rows(question: Question, file: File, memory: int) -> "CodedRows | None":
    """Return the rows for a question, or None where it reads texts themselves, or nothing would be gained."""
    table = question.table
    if not _reads_codes(question, table):
        return None
    read = reads(question.selection.relation)
    return CodedRows(table=table, source=file.source, rows=file.rows, memory=memory, reads=read)


def _reads_codes(question: Question, table: Table) -> bool:
    """Tell whether a question reads no text but through its code, and there is a text that need not be sorted."""
    if queries_of(question) > 1 or not is_additive(question):
        return False
    if not isinstance(question.selection.relation, ProtectedRows) or table.link is not None or table.unit_is_row:
        return False
    texts = {column.name: column for column in table.columns if column.type == "string"}
    if question.private_keys or not texts or table.unit_column in texts:
        return False
    keys = [*question.keys, *(key for keys in question.sets for key in keys)]
    coded = [key for key in keys if isinstance(key.expression, ColumnReference) and _is_coded(key, texts)]
    looked_at = [question.where, *(k.expression for k in keys if k not in coded), *map(argument_of, question.measures)]
    return not texts.keys() & frozenset().union(*map(columns_of, looked_at))


def _is_coded(key: Key, texts: Mapping[str, Declared]) -> bool:
    """Tell whether a key is a text that has a code for each value of the key."""
    column = texts.get(cast(ColumnReference, key.expression).name)
    return column is not None and fixed_width(column) is not None and {*(key.values or ())} <= {*(column.values or ())}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CodedRows:
    """The rows of a table for a question that reads codes, and in how many passes they are put in order.

    Args:
        rows: How many rows the table's file has.
        memory: The most memory the engine may use, in bytes.
        reads: Whether bounded numbers are looked at as they are read.
    """

    table: Table
    source: Location
    rows: int
    memory: int
    reads: bool

    @property
    def passes(self) -> int:
        """How many passes keep most of the sort in memory; what little of it does not fit is spilled."""
        sorted_by = [c for c in self.table.columns if c.name != self.table.privacy_unit and fixed_width(c) is not None]
        width = 24 + sum(1 if column.type == "string" else 8 for column in sorted_by) + 8 * len(self._read())
        return max(1, -(-self.rows * width // self.memory))

    def layer(self, part: Pass) -> str:
        """Return what stands for `cleaned.layer`, of a part of the units."""
        table, unit, place = self.table, unit_name(self.table), free_name("place", self.table)
        hashed, columns = row_order(table, unit, self.source)
        terms = {identifier(c.name): term for c in columns if (term := fixed_width(c)) is not None}
        own, read = [identifier(column.name) for column in table.columns if column not in columns], self._read()
        named = (f"{term} AS {name}" for name, term in terms.items())
        shown = ", ".join([unit, *own, *named, *read.values(), f"{hashed} AS {place}"])
        order = f"PARTITION BY {unit} ORDER BY {', '.join([place, *(read.get(name, name) for name in terms)])}"
        return (
            f"{kept_name(table)} AS (WITH cleaned AS ({cleaned(table, self.source, self.reads, part)}), "
            f"coded AS (SELECT {shown} FROM cleaned) "
            f"SELECT * FROM coded QUALIFY row_number() OVER ({order}) <= {table.max_rows_per_unit})"
        )

    def _read(self) -> dict[str, str]:
        """Return the columns of bounded numbers as they are read, by those of the bounded ones, if they are there."""
        names = names_read(self.table) if self.reads else {}
        return {identifier(own): identifier(name) for own, name in names.items()}
