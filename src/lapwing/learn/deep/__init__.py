"""Neural networks of protected tables: gradients clipped person by person, exact noise, and one charge for all steps.

It needs the extra `deep` (JAX and optax), which nothing else imports. A name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.learn.deep.classifier import NetworkClassifier as NetworkClassifier
    from lapwing.learn.deep.networks import Network as Network
    from lapwing.learn.deep.networks import convolutional as convolutional
    from lapwing.learn.deep.networks import dense as dense

_HOMES = {
    "Network": "networks",
    "NetworkClassifier": "classifier",
    "convolutional": "networks",
    "dense": "networks",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used.

    Raises:
        InvalidParameter: Without the extra `deep`.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing.learn.deep' has no attribute {name!r}")
    try:
        module = import_module(f"lapwing.learn.deep.{_HOMES[name]}")
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"Neural networks need {missing.name}, which is not installed. Run `pip install 'lapwing-dp[deep]'`."
        ) from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
