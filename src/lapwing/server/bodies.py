"""The bodies of requests: what may be sent, and nothing else."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import exact, read
from lapwing.query.text.parameters import Parameters
from lapwing.server.rights import Right, Role

MOST_SQL: Final = 200_000
MOST_VALUES: Final = 1_000
_FORBID: Final = ConfigDict(extra="forbid", allow_inf_nan=False)


def _is_text(text: str) -> str:
    """Refuse half of a character, which no text can be written with."""
    text.encode()
    return text


Text = Annotated[StrictStr, AfterValidator(_is_text)]
Amount = StrictInt | StrictFloat | Annotated[Text, Field(max_length=200)]
"""A number, or a text such as "0.125" or "1/3" for what no decimal is."""
Name = Annotated[Text, Field(min_length=1, max_length=64)]
Password = Annotated[Text, Field(max_length=1000)]


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "decimal": Decimal,
    "fraction": Fraction,
}
EXAMPLES: Final = {
    "date": "write it like 2026-12-31",
    "timestamp": "write it like 2026-12-31T23:59:59",
    "decimal": "write it like 0.125",
    "fraction": "write it like 1/3",
}


class Typed(BaseModel):
    """A value that JSON has not: give one of these."""

    model_config = _FORBID
    date: Annotated[Text, Field(max_length=40)] | None = None
    timestamp: Annotated[Text, Field(max_length=40)] | None = None
    decimal: Annotated[Text, Field(max_length=200)] | None = None
    fraction: Annotated[Text, Field(max_length=200)] | None = None

    def value(self) -> object:
        """Return the value."""
        given = {name: text for name, text in self.model_dump().items() if text is not None}
        if len(given) != 1:
            raise InvalidParameter('A value of a parameter has one type, like {"date": "2026-12-31"}.')
        ((name, text),) = given.items()
        try:
            read_as: Callable[[str], object] = READERS[name]
            return read_as(text)
        except (ValueError, ArithmeticError):
            raise InvalidParameter(f"A value of a parameter is no {name}; {EXAMPLES[name]}.") from None


Value = StrictBool | StrictInt | StrictFloat | Text | Typed | None


class Question(BaseModel):
    """A question in SQL and its price."""

    model_config = _FORBID
    sql: Annotated[Text, Field(min_length=1, max_length=MOST_SQL)]
    parameters: Annotated[list[Value], Field(max_length=MOST_VALUES)] | dict[Name, Value] = Field(default_factory=list)
    epsilon: Amount | None = None
    error: Amount | None = None
    delta: Amount | None = None

    def values(self) -> Parameters:
        """Return the parameters as Python values."""
        if isinstance(self.parameters, dict):
            return {name: _value(value) for name, value in self.parameters.items()}
        return [_value(value) for value in self.parameters]

    def prices(self) -> dict[str, Fraction | None]:
        """Return what the price is asked by."""
        given = {"epsilon": self.epsilon, "error": self.error, "delta": self.delta}
        return {name: None if amount is None else number(amount, name) for name, amount in given.items()}


class Asked(Question):
    """A question to be answered."""

    confidence: Amount = 0.95


class Previewed(Question):
    """A question to be priced."""

    assuming_count: Annotated[StrictInt, Field(ge=1, le=10**15)] | None = None


class Login(BaseModel):
    """A name and a password, for a token."""

    model_config = _FORBID
    name: Name
    password: Password
    hours: Annotated[StrictFloat | StrictInt, Field(gt=0, le=8784)] = 12
    label: Annotated[Text, Field(max_length=100)] = "login"
    scopes: list[Right] | None = None


class NewPassword(BaseModel):
    """A new password, and the one that it replaces."""

    model_config = _FORBID
    password: Password
    new_password: Password


class NewPerson(BaseModel):
    """Somebody to be added."""

    model_config = _FORBID
    name: Name
    role: Role
    password: Password | None = None
    team: Name | None = None


class ChangedPerson(BaseModel):
    """What is to be changed about somebody; what is not given stays."""

    model_config = _FORBID
    role: Role | None = None
    password: Password | None = None
    active: StrictBool | None = None
    team: Name | None = None
    leave_team: StrictBool = False


class NewToken(BaseModel):
    """A token for somebody."""

    model_config = _FORBID
    label: Annotated[Text, Field(max_length=100)] = ""
    scopes: Annotated[list[Right], Field(min_length=1)]
    days: Annotated[StrictFloat | StrictInt, Field(gt=0, le=366)] = 30


class NewShare(BaseModel):
    """A share of the budget, from 0 to 1; null for none of its own."""

    model_config = _FORBID
    share: Amount | None = None

    def exactly(self) -> Fraction | None:
        """Return the share."""
        return None if self.share is None else number(self.share, "share")


class NewPolicy(BaseModel):
    """How the budget is shared out."""

    model_config = _FORBID
    division: Literal["share", "split"]
    most_epsilon: Amount | None = None


class Stop(BaseModel):
    """Whether the data set is stopped."""

    model_config = _FORBID
    stopped: StrictBool


def number(amount: int | float | str, name: str) -> Fraction:
    """Return a number exactly: of a JSON number, its shortest decimal."""
    return read(amount, name) if isinstance(amount, str) else exact(amount, name)


def _value(value: object) -> object:
    return value.value() if isinstance(value, Typed) else value
