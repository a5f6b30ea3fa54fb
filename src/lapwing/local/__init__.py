"""Local differential privacy: the respondent adds the noise, and nobody is trusted with the answers.

`client` is what a respondent's device runs, and needs nothing else. The rest is for who asks: mechanisms, advice which
to take, tasks, and estimates from reports. Names are loaded when they are first used, so that the client stays alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.local import client
    from lapwing.local.advice import Advice, Option, advise, epsilon_needed, respondents_needed
    from lapwing.local.binary import BinaryResponse
    from lapwing.local.consistency import Likeliest, likeliest
    from lapwing.local.estimates import FrequencyEstimate, estimate
    from lapwing.local.hashing import LocalHashing
    from lapwing.local.kary import KaryResponse
    from lapwing.local.randomizer import Randomizer, Rates, Transitions
    from lapwing.local.reports import Collected, Rejected, collect
    from lapwing.local.subset import SubsetSelection
    from lapwing.local.tasks import new_task, randomizer_of, read_task, to_toml
    from lapwing.local.unary import UnaryEncoding

_HOMES = {
    "advice": ("Advice", "Option", "advise", "epsilon_needed", "respondents_needed"),
    "binary": ("BinaryResponse",),
    "consistency": ("Likeliest", "likeliest"),
    "estimates": ("FrequencyEstimate", "estimate"),
    "hashing": ("LocalHashing",),
    "kary": ("KaryResponse",),
    "randomizer": ("Randomizer", "Rates", "Transitions"),
    "reports": ("Collected", "Rejected", "collect"),
    "subset": ("SubsetSelection",),
    "tasks": ("new_task", "randomizer_of", "read_task", "to_toml"),
    "unary": ("UnaryEncoding",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Advice",
    "BinaryResponse",
    "Collected",
    "FrequencyEstimate",
    "KaryResponse",
    "Likeliest",
    "LocalHashing",
    "Option",
    "Randomizer",
    "Rates",
    "Rejected",
    "SubsetSelection",
    "Transitions",
    "UnaryEncoding",
    "advise",
    "client",
    "collect",
    "epsilon_needed",
    "estimate",
    "likeliest",
    "new_task",
    "randomizer_of",
    "read_task",
    "respondents_needed",
    "to_toml",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name == "client":
        return import_module("lapwing.local.client")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing.local' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.local.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
