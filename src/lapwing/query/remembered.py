"""Plans of questions that were asked before, word for word: binding one takes longer than the rest of a free answer.

A plan and its price are functions of the question's text, its parameters, the price that is wanted, and the catalog; so
one that is remembered is the one that would be made again. Where the catalog has public tables they are functions of
those files too, which must be compared each time: then nothing is remembered. Nor is a refusal.

What one person asked is remembered for that person alone. So how long a question takes tells nobody whether somebody
else has asked, or only priced, the same.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from threading import Lock
from typing import Final, Generic, TypeVar, final

from lapwing.catalog.model import Catalog
from lapwing.query.text.parameters import Parameters

MOST: Final = 256
"""Questions that are remembered at once; the one that was asked longest ago goes first."""
LONGEST: Final = 4_096
"""Characters of a text that is remembered."""
_PLAIN: Final = frozenset({bool, int, float, str, Decimal, Fraction, date, datetime, type(None)})

Planned = TypeVar("Planned")


@final
class Remembered(Generic[Planned]):
    """What was planned for questions. Thread-safe; two threads may plan the same at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Hashable, tuple[Catalog, Planned]] = OrderedDict()

    def planned(
        self,
        make: Callable[[], Planned],
        *,
        catalog: Catalog,
        principal: str,
        text: str,
        parameters: Parameters,
        numbers: tuple[object, ...],
    ) -> Planned:
        """Return what was planned for this question, or what is made now.

        Args: numbers: the price that is wanted.
        """
        name = None if catalog.public_tables else _name(principal, text, parameters, numbers)
        if name is None:
            return make()
        with self._lock:
            found = self._known.get(name)
            if found is not None and found[0] is catalog:
                self._known.move_to_end(name)
                return found[1]
        made = make()
        with self._lock:
            self._known[name] = catalog, made
            self._known.move_to_end(name)
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return made


def _name(principal: str, text: object, parameters: object, numbers: tuple[object, ...]) -> Hashable | None:
    """Name a question by all that its plan follows from, None if that is not plain: then it may be anything.

    Values are told apart by their type and how they are written: 1, 1.0 and True are equal, and not the same constant.
    """
    if type(text) is not str or len(text) > LONGEST:
        return None
    if isinstance(parameters, Mapping):
        names: tuple[object, ...] = tuple(parameters)
        values = tuple(parameters.values())
    elif isinstance(parameters, list | tuple):
        names, values = (None,), tuple(parameters)
    else:
        return None
    given = (*values, *numbers)
    if any(type(value) not in _PLAIN for value in given) or any(type(name) not in (str, type(None)) for name in names):
        return None
    return principal, text, names, tuple((type(value), repr(value)) for value in given)
