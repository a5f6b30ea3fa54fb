"""Questions as the bodies of requests: amounts as exact texts, and values that JSON has not with their types."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.privacy.amounts import Number, exact, written
from lapwing.query.text.parameters import Parameters


def question(
    text: str, parameters: Parameters, epsilon: Number | None, error: Number | None, delta: Number | None
) -> dict[str, object]:
    """Return the body of a question."""
    return worded(text, parameters) | amounts(epsilon=epsilon, error=error, delta=delta)


def batch(
    questions: Sequence[str | tuple[str, Parameters]], epsilon: Number, delta: Number | None
) -> dict[str, object]:
    """Return the body of several questions at one price."""
    pairs = [(asked, ()) if isinstance(asked, str) else asked for asked in questions]
    return {"questions": [worded(*pair) for pair in pairs]} | amounts(epsilon=epsilon, delta=delta)


def worded(text: str, parameters: Parameters) -> dict[str, object]:
    """Return what is asked, without a price."""
    if isinstance(parameters, Mapping):
        return {"sql": text, "parameters": {name: _sent(value) for name, value in parameters.items()}}
    return {"sql": text, "parameters": [_sent(value) for value in parameters]}


def amounts(**given: Number | None) -> dict[str, object]:
    """Return prices."""
    return {name: None if value is None else _amount(value, name) for name, value in given.items()}


def new_key() -> str:
    """Return a key by which the server knows a request again."""
    return read_exactly(SystemEntropy(), 16).hex()


def _amount(value: Number, name: str) -> object:
    amount = exact(value, name)
    if amount >= 0:
        return written(amount)
    return int(amount) if amount.denominator == 1 else float(amount)  # for the server to refuse


def typed(value: date | Decimal) -> dict[str, str]:
    """Return a day, a time or a decimal with its type, as JSON has none for it."""
    match value:
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
    return {"decimal": str(value)}


def _sent(value: object) -> object:
    """Return a parameter as JSON has it, or with its type."""
    match value:
        case None | bool() | float() | str():
            return value
        case Integral():
            return int(value)
        case date() | Decimal():
            return typed(value)
        case Fraction():
            return {"fraction": str(value)}
        case _:
            raise InvalidParameter(
                f"A parameter is a {type(value).__name__}; give bool, int, float, Decimal, Fraction, str, date, "
                "datetime or None."
            )
