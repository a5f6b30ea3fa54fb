"""Holdouts that a server keeps, as their documents; `lapwing.holdout.ReusableHoldout` asks them."""

from typing import final
from urllib.parse import quote

from lapwing.client.encoding import amounts, new_key
from lapwing.client.transport import ServerConnection
from lapwing.documents.holdout_document import HoldoutAnswerDocument, HoldoutDocument
from lapwing.privacy.amounts import Number


@final
class RemoteHoldouts:
    """The holdouts of one data set of a server.

    Raises:
        LapwingError: What the server refuses with, as `RemoteSession.sql`.
        NotFound: For an id that is none.
    """

    def __init__(self, connection: ServerConnection, dataset_path: str) -> None:
        self._connection, self._path = connection, f"{dataset_path}/holdouts"

    def make(self, people: int, questions: int, confidence: Number) -> HoldoutDocument:
        """Make a holdout; free. If the connection breaks, look whether it is there before you make another."""
        body = {"people": people, "questions": questions, **amounts(confidence=confidence)}
        made: HoldoutDocument = self._connection.post(self._path, body)
        return made

    def all(self) -> list[HoldoutDocument]:
        """Return one's own, the newest first."""
        return self._connection.listed(self._path, "id")

    def find(self, id: str) -> HoldoutDocument:
        """Return what one promises, and how many questions it has left."""
        document: HoldoutDocument = self._connection.get(_path(id))
        return document

    def ask(self, id: str, sql: str, table: str | None, label: str | None) -> HoldoutAnswerDocument:
        """Ask it for an AVG; charged once, even if the connection breaks."""
        body = {"sql": sql, "table": table, "label": label}
        answer: HoldoutAnswerDocument = self._connection.post(f"{_path(id)}/query", body, new_key())
        return answer

    def answers(self, id: str) -> list[HoldoutAnswerDocument]:
        """Return what it answered, in order; free."""
        return self._connection.listed(f"{_path(id)}/answers", "question")


def _path(id: str) -> str:
    return f"/v1/holdouts/{quote(id, safe='')}"
