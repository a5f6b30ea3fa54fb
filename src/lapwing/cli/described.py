"""The texts of the catalog for the keys of an answer, of this machine or of a server, as exports write them."""

from collections.abc import Mapping, Sequence
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
        public = description_document(answer, ())
        keys: Sequence[str] = public["keys"]
        declared: Mapping[str, Any] = public["key_columns"]
    else:
        keys, declared = answer.keys, answer.key_columns
    if not declared:
        return None
    dataset = dataset_document("", session.catalog) if isinstance(session, Session) else session.schema
    texts = texts_of(declared, dataset)
    return DescribedAnswer(answer if shown is None else shown, keys, texts, labelled=labels) if texts else None
