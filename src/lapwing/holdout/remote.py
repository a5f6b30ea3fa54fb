"""Questions to a holdout that a service keeps: it counts them, charges them, and holds the rows."""

from typing import Self, final

from lapwing.client import RemoteSession
from lapwing.documents.holdout_document import HoldoutAnswerDocument, HoldoutDocument
from lapwing.errors import InvalidParameter
from lapwing.holdout.answer import HoldoutAnswer
from lapwing.privacy.amounts import Number


@final
class RemoteAnswering:
    """One holdout of a service. What it promises is as it was made; how many questions are left is asked anew."""

    def __init__(self, session: RemoteSession, document: HoldoutDocument) -> None:
        self._session, self.terms = session, document
        self.id = document["id"]

    @classmethod
    def of(
        cls, session: RemoteSession, id: str | None, people: int | None, questions: int | None, confidence: Number
    ) -> Self:
        """Return a new holdout for so many questions, or the one of an id."""
        if id is not None:
            if people is not None or questions is not None:
                raise InvalidParameter("A holdout that already exists has its people and questions; give only its id.")
            return cls(session, session.holdouts.find(id))
        if people is None or questions is None:
            raise InvalidParameter(
                "For a session, give people (the public number of rows) and questions (the maximum number). Or give "
                "the id of an existing holdout."
            )
        return cls(session, session.holdouts.make(people, questions, confidence))

    @property
    def asked(self) -> int:
        """How many questions were counted."""
        return self._session.holdouts.find(self.id)["asked"]

    @property
    def left(self) -> int:
        """How many more are answered, if others leave their part of the budget."""
        return self._session.holdouts.find(self.id)["left"]

    def answer(self, text: str, table: str | None, label: str | None) -> HoldoutAnswer:
        """Answer and charge."""
        return _answer_of(self._session.holdouts.ask(self.id, text, table, label))

    def answers(self) -> tuple[HoldoutAnswer, ...]:
        """Return what was answered so far."""
        return tuple(map(_answer_of, self._session.holdouts.answers(self.id)))


def _answer_of(document: HoldoutAnswerDocument) -> HoldoutAnswer:
    low, high = document["bounds"]
    return HoldoutAnswer(
        value=document["value"],
        low=document["low"],
        high=document["high"],
        confidence=document["confidence"],
        question=document["question"],
        strategy=document["strategy"],
        source=document["source"],
        bounds=(low, high),
    )
