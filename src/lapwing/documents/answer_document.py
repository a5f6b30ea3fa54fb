"""Answers as JSON documents and Arrow streams, and the columns of them read back.

Losses and shares are exact texts. A number of an answer is a JSON number where that is exact, else a text; `types` says
what each column is, so that a reader can make the same Python values of it.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import TypedDict  # pydantic describes those of `typing` from Python 3.12 on only

from lapwing.answer.answer import Answer
from lapwing.answer.column_facts import ColumnFacts, DrawnNoise, MeasureFacts
from lapwing.answer.empty_cells import notes_on_empty_cells
from lapwing.answer.json_values import JsonValue, json_value
from lapwing.answer.key_columns import key_columns
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell, Note
from lapwing.answer.truncated_times import TRUNCATED, truncated_keys
from lapwing.answer.unit_columns import unit_columns
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.source_values import shows_key

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answer.consistent import ConsistentAnswer
    from lapwing.graphs.answer import GraphAnswer

Record = dict[str, str]
"""A loss as its `to_record` writes it."""


class EndsDocument(TypedDict):
    """The ends of the intervals of one column, row by row."""

    low: list[JsonValue]
    high: list[JsonValue]


class AnswerDocument(TypedDict):
    """An answer with its intervals by column, its cost and its notes."""

    columns: list[str]
    rows: list[dict[str, JsonValue]]
    confidence: float
    intervals: dict[str, EndsDocument]
    cost: Record
    stored: bool
    notes: list[str]
    note_codes: list[str]


class ConsistentDocument(TypedDict):
    """Rows with numbers that can be true together; `changed` names the columns in which some number is another."""

    columns: list[str]
    rows: list[dict[str, JsonValue]]
    changed: list[str]


class KeyColumnDocument(TypedDict):
    """The declared column that a key of an answer is."""

    table: str
    column: str


class DescriptionDocument(TypedDict):
    """What is public about the columns of an answer: the keys, with their declared columns, and the noise of others.

    `unit_columns` are the declared columns whose unit numbers of the answer have.
    """

    keys: list[str]
    key_columns: dict[str, KeyColumnDocument]
    unit_columns: dict[str, KeyColumnDocument]
    facts: list[dict[str, Any]]


class AnswerShown(Protocol):
    """What is needed of an answer to write it down, wherever it came from."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def cost(self) -> Loss:
        """What was charged."""

    @property
    def stored(self) -> bool:
        """Whether it was bought before."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Public facts that a reader should know."""

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts."""

    def interval(self, confidence: Fraction, /) -> Mapping[str, tuple[EndArray, EndArray]]:
        """Return the ends of an interval for each noisy column."""

    def to_arrow(self, confidence: Fraction, /) -> "pa.Table":
        """Return a table with the intervals."""


def answer_document(
    answer: AnswerShown, confidence: Fraction, columns: Sequence[ColumnFacts] | None = None
) -> AnswerDocument:
    """Return an answer with its intervals, cost and notes.

    Args:
        columns: The facts of `answer.describe()`, if the caller has them.
    """
    ends, rows = answer.interval(confidence), answer.rows()
    notes = (*answer.notes, *notes_on_empty(answer, rows, columns))
    return {
        "columns": list(answer.columns),
        "rows": [{name: json_value(value) for name, value in row.items()} for row in rows],
        "confidence": float(confidence),
        "intervals": {
            name: {"low": [json_value(x) for x in low.tolist()], "high": [json_value(x) for x in high.tolist()]}
            for name, (low, high) in ends.items()
        },
        "cost": answer.cost.to_record(),
        "stored": answer.stored,
        "notes": list(notes),
        "note_codes": codes_of(notes),
    }


def notes_on_empty(
    answer: AnswerShown, rows: Sequence[Mapping[str, Cell]], columns: Sequence[ColumnFacts] | None = None
) -> tuple[str, ...]:
    """Say which numbers noise left empty in rows; an answer of a service has these notes already."""
    if not isinstance(answer, Answer):
        return ()
    return notes_on_empty_cells(answer.describe() if columns is None else columns, rows)


def codes_of(notes: Sequence[str]) -> list[str]:
    """Return the codes of notes, in their order; of one without a code, an empty text."""
    return [note.code if isinstance(note, Note) else "" for note in notes]


def notes_in(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the notes in a document; an older server gives them no codes."""
    texts = document["notes"]
    codes = document.get("note_codes") or [""] * len(texts)
    return tuple(Note(text, code) if code else text for text, code in zip(texts, codes, strict=True))


def description_document(answer: Answer, columns: Sequence[ColumnFacts]) -> DescriptionDocument:
    """Return what is public about the columns of an answer: which are keys, and the noise of the others."""
    keys = [output.name for output in answer.plan.outputs if shows_key(output.value)]
    return {
        "keys": keys,
        "key_columns": _columns(key_columns(answer.plan)),
        "unit_columns": _columns(unit_columns(answer.plan)),
        "facts": [facts_document(column) for column in columns],
    }


def _columns(declared: Mapping[str, tuple[str, str]]) -> dict[str, KeyColumnDocument]:
    return {name: {"table": table, "column": column} for name, (table, column) in declared.items()}


def result_document(answer: "Answer | GraphAnswer", confidence: Fraction) -> dict[str, Any]:
    """Return the document of a result, with what is public about its columns."""
    columns = answer.describe()
    if isinstance(answer, Answer):
        more: Mapping[str, Any] = description_document(answer, columns)
        if units := truncated_keys(answer.plan):
            more = {**more, TRUNCATED: units}
    else:
        more = {"keys": list(answer.keys), "facts": [facts_document(column) for column in columns]}
    return {**answer_document(answer, confidence, columns), "types": answer.types, **more}


def facts_document(column: ColumnFacts) -> dict[str, Any]:
    """Write down a column's facts, field by field: `dataclasses.asdict` copies every value, which takes longer."""
    return {
        "name": column.name,
        "measures": [
            {
                "measure": measure.measure,
                "mechanism": measure.mechanism,
                "scale": measure.scale,
                "half_width": measure.half_width,
                "price_share": measure.price_share,
                **(_drawn_document(measure) if measure.noises else {}),
            }
            for measure in column.measures
        ],
        "half_width": column.half_width,
        "price_share": column.price_share,
        "notes": list(column.notes),
        "note_codes": codes_of(column.notes),
    }


def _drawn_document(measure: MeasureFacts) -> dict[str, Any]:
    noises = [{"mechanism": noise.mechanism, "scale": noise.scale, "step": noise.step} for noise in measure.noises]
    return {"noises": noises, "rounding": measure.rounding}


def facts_of(documents: Sequence[Mapping[str, Any]]) -> tuple[ColumnFacts, ...]:
    """Read what `description_document` wrote as facts."""
    return tuple(
        ColumnFacts(
            name=column["name"],
            measures=tuple(
                MeasureFacts(**{**measure, "noises": tuple(DrawnNoise(**one) for one in measure.get("noises", ()))})
                for measure in column["measures"]
            ),
            half_width=column["half_width"],
            price_share=column["price_share"],
            notes=notes_in(column),
        )
        for column in documents
    )


def consistent_document(view: "ConsistentAnswer") -> ConsistentDocument:
    """Return the rows of a made-consistent view, and which columns it changed."""
    rows = [{name: json_value(value) for name, value in row.items()} for row in view.rows()]
    return {"columns": list(view.columns), "rows": rows, "changed": list(view.changed)}


def value_of(value: JsonValue, type_: str) -> Cell:
    """Read what `json_value` wrote of a value of a column's type.

    >>> value_of(1.5, "decimal"), value_of("2024-12-31", "date")
    (Decimal('1.5'), datetime.date(2024, 12, 31))
    """
    if value is None:
        return None
    match type_:
        case "decimal":
            return Decimal(str(value))
        case "real":
            return float(value)
        case "date":
            return date.fromisoformat(str(value))
        case "timestamp":
            return datetime.fromisoformat(str(value))
        case _:
            return value


def arrow_stream(table: "pa.Table") -> bytes:
    """Return a table as an Arrow IPC stream."""
    from pyarrow import BufferOutputStream, ipc  # a large library that only this format needs

    sink = BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
