"""Public names of a package that are imported when they are first used (PEP 562): most programs need few of them."""

from collections.abc import Callable, Mapping
from importlib import import_module


def exports(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    No name may be that of a module of the package, whose import would put the module in its place.

    Args:
        package: Its `__name__`.
        homes: Of modules of the package, the names that they have for it, separated by spaces.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        if name in home_of:
            return getattr(import_module(f"{package}.{home_of[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return sorted(home_of), find, lambda: sorted(home_of)
