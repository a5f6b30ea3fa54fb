"""Every mechanism that the client knows, by its name: a new one is a file, and a row here."""

from collections.abc import Mapping
from typing import Final

from .listed import LISTED
from .memory import MEMOISED
from .memory_unary import MEMOISED_UNARY
from .numbers import NUMBERED
from .prefixes import PREFIX_RULES
from .rappor import RAPPOR_TEXT, RAPPOR_VALUES
from .rules import AnyRule
from .sketch import SKETCH_RULES
from .tree import TREE

VALUE_RULES: Final[Mapping[str, AnyRule[int]]] = {
    **LISTED,
    "memoised": MEMOISED,
    "memoised-unary": MEMOISED_UNARY,
    "tree": TREE,
    **RAPPOR_VALUES,
}
"""For one of a list of values, by its number."""

NUMBER_RULES: Final[Mapping[str, AnyRule[int]]] = {
    **NUMBERED,
}
"""For a number, by its point on the grid."""

TEXT_RULES: Final[Mapping[str, AnyRule[str]]] = {
    **SKETCH_RULES,
    **PREFIX_RULES,
    **RAPPOR_TEXT,
}
"""For any text."""

RULES: Final[Mapping[str, AnyRule[int] | AnyRule[str]]] = {**VALUE_RULES, **NUMBER_RULES, **TEXT_RULES}
