"""The bodies of requests: amounts as exact texts, and values that JSON does not have with their types."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from pathlib import Path

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.privacy.amounts import Number, exact, written
from lapwing.query.text.parameters import Parameters


def question_body(
    text: str,
    parameters: Parameters,
    epsilon: Number | None,
    error: Number | None,
    delta: Number | None,
    label: str | None = None,
    assuming_count: int | None = None,
) -> dict[str, object]:
    """Return the body of a question."""
    assumed = {} if assuming_count is None else {"assuming_count": assuming_count}
    priced = amounts(epsilon=epsilon, error=error, delta=delta)
    return _sql_body(text, parameters) | priced | _labelled(label) | assumed


def batch_body(
    questions: Sequence[str | tuple[str, Parameters]], epsilon: Number, delta: Number | None, label: str | None = None
) -> dict[str, object]:
    """Return the body of several questions at one price."""
    pairs = [(question, ()) if isinstance(question, str) else question for question in questions]
    asked = {"questions": [_sql_body(*pair) for pair in pairs]}
    return asked | amounts(epsilon=epsilon, delta=delta) | _labelled(label)


def _labelled(label: str | None) -> dict[str, object]:
    """Return a label, if there is one, which services before there were labels would refuse."""
    return {} if label is None else {"label": label}


def _sql_body(text: str, parameters: Parameters) -> dict[str, object]:
    """Return what is asked, without a price."""
    if isinstance(parameters, Mapping):
        return {"sql": text, "parameters": {name: _parameter(value) for name, value in parameters.items()}}
    return {"sql": text, "parameters": [_parameter(value) for value in parameters]}


def amounts(**prices: Number | None) -> dict[str, object]:
    """Return prices."""
    return {name: None if value is None else _amount(value, name) for name, value in prices.items()}


def new_key() -> str:
    """Return a key by which the server knows a request again."""
    return read_exactly(SystemEntropy(), 16).hex()


def _amount(value: Number, name: str) -> object:
    amount = exact(value, name)
    if amount >= 0:
        return written(amount)
    return int(amount) if amount.denominator == 1 else float(amount)  # for the server to refuse


def _typed(value: date | Decimal) -> dict[str, str]:
    """Return a day, a time or a decimal with its type, as JSON has none for it."""
    match value:
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
    return {"decimal": str(value)}


def _parameter(value: object) -> object:
    """Return a parameter as JSON has it, or with its type."""
    match value:
        case None | bool() | float() | str():
            return value
        case Integral():
            return int(value)
        case date() | Decimal():
            return _typed(value)
        case Fraction():
            return {"fraction": str(value)}
        case _:
            raise InvalidParameter(
                f"A parameter is a {type(value).__name__}; give bool, int, float, Decimal, Fraction, str, date, "
                "datetime or None."
            )


def catalog_body(catalog: Path | str | Mapping[str, object]) -> object:
    """Return a catalog as a request has it."""
    match catalog:
        case Path():
            return _text_of(catalog)
        case str():
            return catalog
        case Mapping():
            return _catalog_value(catalog)
    raise InvalidParameter("The catalog is a pathlib.Path of a TOML file, its text, or a mapping.")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"The catalog {path.name} cannot be read as UTF-8 text; give another path.") from None


def _catalog_value(value: object) -> object:
    """Return a value of a catalog with its type, where JSON has none for it."""
    match value:
        case Mapping():
            return {str(name): _catalog_value(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_catalog_value(inner) for inner in value]
        case date() | Decimal():
            return _typed(value)
        case None | bool() | int() | float() | str():
            return value
    raise InvalidParameter(f"A catalog cannot have a {type(value).__name__}; give a type of TOML, or a Decimal.")
