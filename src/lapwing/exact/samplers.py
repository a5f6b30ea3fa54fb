"""Exact samplers over arrays: integers whose law no rounding can change. All names in one place.

Each is a function of its parameters and of the bytes that it reads. The proofs stand beside the code: of noise in
`tables`, `geometric`, `laplace`, `acceptance`, `rounded_gaussian` and `discrete_gaussian`; of coins, integers and
choices in `coins`, `integers`, `decay` and `choice`. A law is imported when it is first drawn from: a question draws
from one, and all of them are a twentieth of what Lapwing imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.exact.choice import exponential_choice, exponential_choices
    from lapwing.exact.coins import Chances, bernoulli, bernoulli_exp, coins, exponential_coins
    from lapwing.exact.discrete_gaussian import discrete_gaussian
    from lapwing.exact.geometric import geometric
    from lapwing.exact.integers import categorical, subset, uniform_integers
    from lapwing.exact.laplace import discrete_laplace
    from lapwing.exact.rounded_gaussian import rounded_gaussian

_HOMES = {
    "choice": ("exponential_choice", "exponential_choices"),
    "coins": ("Chances", "bernoulli", "bernoulli_exp", "coins", "exponential_coins"),
    "discrete_gaussian": ("discrete_gaussian",),
    "geometric": ("geometric",),
    "integers": ("categorical", "subset", "uniform_integers"),
    "laplace": ("discrete_laplace",),
    "rounded_gaussian": ("rounded_gaussian",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import the law of a name (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    law: object = getattr(import_module(f"lapwing.exact.{_HOME_OF[name]}"), name)
    globals()[name] = law  # found without this function from then on
    return law


__all__ = [
    "Chances",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "coins",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "exponential_choices",
    "exponential_coins",
    "geometric",
    "rounded_gaussian",
    "subset",
    "uniform_integers",
]
