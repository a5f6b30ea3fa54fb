"""A holdout that may be asked again and again, each question chosen after the answers before: what it says stays true.

    >>> import lapwing as lw
    >>> holdout = lw.holdout.ReusableHoldout(people, questions=500)
    >>> answer = holdout.query(lambda rows: rows["age"] > 65)
    >>> answer.value, answer.interval()

An answer's interval is for the *population* that the people were drawn from, and all intervals together hold with the
stated confidence, however the questions were chosen. `how_many` says beforehand how many questions that is good for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.holdout.answer import HoldoutAnswer as HoldoutAnswer
    from lapwing.holdout.planning import Outlook as Outlook
    from lapwing.holdout.planning import how_many as how_many
    from lapwing.holdout.planning import outlook as outlook
    from lapwing.holdout.planning import width_chart as width_chart
    from lapwing.holdout.reusable import ReusableHoldout as ReusableHoldout

# No name may be that of a module of this package, whose import would put the module in its place.
_HOMES = {"answer": "HoldoutAnswer", "planning": "Outlook how_many outlook width_chart", "reusable": "ReusableHoldout"}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing.holdout' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.holdout.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
