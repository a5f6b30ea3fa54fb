"""The texts of the catalog for the keys of an answer, of this machine or of a server, as exports write them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.client import RemoteAnswer, RemoteSession
    from lapwing.documents.answer_document import AnswerShown
    from lapwing.documents.described_answer import DescribedAnswer
    from lapwing.session import Session


def described(
    answer: "Answer | RemoteAnswer",
    session: "Session | RemoteSession",
    *,
    labels: bool,
    shown: "AnswerShown | None" = None,
) -> "DescribedAnswer | None":
    """Return an answer with the texts of its keys; None if there are none.

    Args:
        labels: Whether labels stand in the place of codes.
        shown: The same answer with other intervals.
    """
    # Here: `lapwing --help` loads no engine.
    from lapwing.answer import Answer
    from lapwing.answer.key_texts import texts_of
    from lapwing.documents.answer_document import description_document
    from lapwing.documents.dataset_document import dataset_document
    from lapwing.documents.described_answer import DescribedAnswer
    from lapwing.session import Session

    if isinstance(answer, Answer):
        public: Mapping[str, Any] = description_document(answer, ())
    else:
        declared = {"key_columns": answer.key_columns, "unit_columns": answer.unit_columns}
        public = {"keys": answer.keys, **declared}
    if not public["key_columns"] and not public["unit_columns"]:
        return None
    dataset = dataset_document("", session.catalog) if isinstance(session, Session) else session.schema
    texts = texts_of(public, dataset)
    return (
        DescribedAnswer(answer if shown is None else shown, public["keys"], texts, labelled=labels) if texts else None
    )
