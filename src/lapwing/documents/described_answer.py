"""An answer with what the catalog says of its keys: metadata in files, labels for codes, titles for charts."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from lapwing.answer.json_values import json_value
from lapwing.answer.key_texts import LABELS, TEXTS, label_of, labels_in, titles_in
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell
from lapwing.answer.truncated_times import truncated_in
from lapwing.documents.answer_document import AnswerShown, notes_on_empty
from lapwing.documents.tables_with_texts import with_labels_for_codes, with_texts

if TYPE_CHECKING:
    import pyarrow as pa


@final
class DescribedAnswer:
    """An `AnswerShown` with the texts of its keys.

    Args:
        keys: The columns without noise.
        texts: As `texts_of` returns them.
        labelled: Whether rows and tables have labels in the place of codes.
    """

    def __init__(
        self,
        answer: AnswerShown,
        keys: Sequence[str],
        texts: Mapping[str, Mapping[str, Any]],
        *,
        labelled: bool = False,
    ) -> None:
        self._answer, self._labelled = answer, labelled
        self._document: dict[str, Any] = {TEXTS: texts, LABELS: labels_in(texts)}
        self.columns, self.cost, self.stored = answer.columns, answer.cost, answer.stored
        self.notes = (*answer.notes, *notes_on_empty(answer, answer.rows()))
        self.keys: Sequence[str] = keys
        self.titles: Mapping[str, str] = titles_in(texts)
        self.truncated: Mapping[str, str] = truncated_in(answer)

    @property
    def has_labels(self) -> bool:
        """Whether the catalog has labels for a key."""
        return bool(self._document[LABELS])

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts."""
        return self.labelled_rows() if self._labelled else self._answer.rows()

    def labelled_rows(self) -> list[dict[str, Cell]]:
        """Return the rows with the label in the place of each value that has one, as charts show them."""
        return [{name: self._shown(name, value) for name, value in row.items()} for row in self._answer.rows()]

    def _shown(self, name: str, value: Cell) -> Cell:
        label = label_of(self._document, name, json_value(value))
        return value if label is None else label

    def interval(self, confidence: Fraction, /) -> Mapping[str, tuple[EndArray, EndArray]]:
        """Return the ends of an interval for each noisy column."""
        return self._answer.interval(confidence)

    def to_arrow(self, confidence: Fraction, /) -> "pa.Table":
        """Return a table with the intervals, whose fields have the texts of their columns as metadata."""
        table = self._answer.to_arrow(confidence)
        if self._labelled:
            rows = [{name: json_value(value) for name, value in row.items()} for row in self._answer.rows()]
            table = with_labels_for_codes(table, {**self._document, "rows": rows})
        return with_texts(table, self._document)
