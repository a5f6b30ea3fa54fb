"""The bodies of questions: what may be sent, and nothing else. Other bodies stand with their routes."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, TypedDict

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from lapwing.answer import Answer
from lapwing.errors import InvalidParameter
from lapwing.ledger.wording import LONGEST_LABEL
from lapwing.privacy.amounts import Number, exact, positive, read
from lapwing.query.plan.plan import Plan
from lapwing.query.text.parameters import Parameters
from lapwing.server.faulty_field import at_field
from lapwing.session import Session

MOST_SQL: Final = 200_000
MOST_VALUES: Final = 1_000
MOST_QUESTIONS: Final = 100
"""Of a batch."""


def _is_text(text: str) -> str:
    """Refuse half of a character, which no text can be written with."""
    text.encode()
    return text


Text = Annotated[StrictStr, AfterValidator(_is_text)]
Amount = StrictInt | StrictFloat | Annotated[Text, Field(max_length=200)]
"""A number, or a text such as "0.125" or "1/3" for what no decimal is."""
Name = Annotated[Text, Field(min_length=1, max_length=64)]

Label = Annotated[Text, Field(min_length=1, max_length=LONGEST_LABEL)]
"""What the history calls a question."""


class Body(BaseModel):
    """A body in which nothing but its fields may be, and no number but finite ones."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def _fraction(text: str) -> Fraction:
    """Read p/q alone: `Fraction` also takes 1e999999999, for which it works for hours."""
    if not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):
        raise ValueError
    return Fraction(text)


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "decimal": Decimal,
    "fraction": _fraction,
}
EXAMPLES: Final = {
    "date": "write it like 2026-12-31",
    "timestamp": "write it like 2026-12-31T23:59:59",
    "decimal": "write it like 0.125",
    "fraction": "write it like 1/3",
}


class TypedValue(Body):
    """A value that JSON does not have: give one of these."""

    date: Annotated[Text, Field(max_length=40)] | None = None
    timestamp: Annotated[Text, Field(max_length=40)] | None = None
    decimal: Annotated[Text, Field(max_length=200)] | None = None
    fraction: Annotated[Text, Field(max_length=200)] | None = None

    def value(self) -> object:
        """Return the value."""
        typed = {name: text for name, text in self.model_dump().items() if text is not None}
        if len(typed) != 1:
            raise InvalidParameter('A value of a parameter has one type, like {"date": "2026-12-31"}.')
        ((name, text),) = typed.items()
        try:
            read_as: Callable[[str], object] = READERS[name]
            return read_as(text)
        except (ValueError, ArithmeticError):
            raise InvalidParameter(f"A value of a parameter is not a valid {name}; {EXAMPLES[name]}.") from None


Value = StrictBool | StrictInt | StrictFloat | Text | TypedValue | None


class SqlBody(Body):
    """A question in SQL."""

    sql: Annotated[Text, Field(min_length=1, max_length=MOST_SQL)]
    parameters: Annotated[list[Value], Field(max_length=MOST_VALUES)] | dict[Name, Value] = Field(default_factory=list)

    def values(self) -> Parameters:
        """Return the parameters as Python values."""
        if isinstance(self.parameters, dict):
            return {name: _value(value) for name, value in self.parameters.items()}
        return [_value(value) for value in self.parameters]


class Prices(TypedDict):
    """What a price is asked by."""

    epsilon: Number | None
    error: Number | None
    delta: Number | None


class PricedBody(SqlBody):
    """A question in SQL and its price."""

    epsilon: Amount | None = None
    error: Amount | None = None
    delta: Amount | None = None
    assuming_count: Annotated[StrictInt, Field(ge=1, le=10**15)] | None = None

    def prices(self) -> Prices:
        """Return what the price is asked by; JSON's numbers as they are, so that messages show what was sent."""
        return {
            "epsilon": _priced_by(self.epsilon, "epsilon"),
            "error": _priced_by(self.error, "error"),
            "delta": number(self.delta, "delta") if isinstance(self.delta, str) else self.delta,
        }


class QueryBody(PricedBody):
    """A question to be answered."""

    confidence: Amount = 0.95
    label: Label | None = None

    def bought(self, session: Session) -> tuple[Answer, ...]:
        """Return the answer of a session, alone."""
        answer = session.sql(
            self.sql, self.values(), **self.prices(), label=self.label, assuming_count=self.assuming_count
        )
        return (answer,)

    def plans(self, session: Session) -> tuple[Plan, ...]:
        """Return what would be done, alone."""
        _require_of_tables(session, self)
        return (session.plan(self.sql, self.values(), **self.prices(), assuming_count=self.assuming_count),)


class BatchBody(Body):
    """Questions to be answered at one price: all are charged, or none."""

    questions: Annotated[list[SqlBody], Field(min_length=1, max_length=MOST_QUESTIONS)]
    epsilon: Amount
    delta: Amount | None = None
    confidence: Amount = 0.95
    label: Label | None = None

    def bought(self, session: Session) -> tuple[Answer, ...]:
        """Return the answers of a session, in order."""
        delta = None if self.delta is None else number(self.delta, "delta")
        _require_of_tables(session, *self.questions)
        pairs = [(question.sql, question.values()) for question in self.questions]
        return session.batch(pairs, epsilon=number(self.epsilon, "epsilon"), delta=delta, label=self.label)

    def plans(self, session: Session) -> tuple[Plan, ...]:
        """Return what would be done for each question, in order; at what price does not matter for that."""
        epsilon = number(self.epsilon, "epsilon")
        _require_of_tables(session, *self.questions)
        return tuple(session.plan(question.sql, question.values(), epsilon=epsilon) for question in self.questions)


class ExplainBody(PricedBody):
    """A question to be priced."""


def requests_of(body: QueryBody | BatchBody) -> Sequence[Mapping[str, Any]]:
    """Return, for each answer, what buys it again: of several questions all, and which of them."""
    request = body.model_dump(mode="json")
    if isinstance(body, QueryBody):
        return (request,)
    return tuple(request | {"place": place} for place in range(len(body.questions)))


def body_of(request: Mapping[str, Any]) -> tuple[QueryBody | BatchBody, int]:
    """Read what `requests_of` wrote of one answer: what was asked, and which of the answers this is."""
    if "place" not in request:
        return QueryBody.model_validate(request), 0
    asked = {name: value for name, value in request.items() if name != "place"}
    return BatchBody.model_validate(asked), request["place"]


def number(amount: int | float | str, name: str) -> Fraction:
    """Return a number exactly: of a JSON number, its shortest decimal."""
    try:
        return read(amount, name) if isinstance(amount, str) else exact(amount, name)
    except InvalidParameter as error:
        raise at_field(name, error) from None


def _priced_by(amount: int | float | str | None, name: str) -> Number | None:
    """Return an amount that a price is asked by; an error of it names the field."""
    if amount is None:
        return None
    try:
        given = read(amount, name) if isinstance(amount, str) else amount
        positive(given, name)
    except InvalidParameter as error:
        raise at_field(name, error) from None
    return given


def _require_of_tables(session: Session, *questions: SqlBody) -> None:
    """Refuse questions about graphs, which are asked one by one, and by people who are trusted with time."""
    if session.catalog.graphs:
        from lapwing.graphs.in_session import require_of_tables  # here: few catalogs have graphs

        for question in questions:
            require_of_tables(question.sql, session.catalog, question.values())


def _value(value: object) -> object:
    return value.value() if isinstance(value, TypedValue) else value
