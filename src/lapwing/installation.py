"""Warn of another distribution that puts its files into this package.

Lapwing is the distribution `lapwing-dp`, and its package is `lapwing`. PyPI has an unrelated distribution `lapwing`
with a package of the same name. Installers do not look for such overlaps: the one installed last overwrites
`lapwing/__init__.py`, and removing either one deletes that file for both. The other distribution is recognised by its
folder of metadata beside this package, whatever the order was.

Importing this module is the check. `lapwing/__init__.py` does so, and so do `errors` and `cli`, which still run when
that file has been overwritten.
"""

import os
import sys
import warnings
from typing import Final

DISTRIBUTION: Final = "lapwing-dp"
_REMEDY: Final = (
    f"Remove both, `pip uninstall lapwing {DISTRIBUTION}`, and install {DISTRIBUTION} again, with its extras."
)


class ForeignDistribution(UserWarning):
    """Another distribution has files in the package `lapwing`, or had them there."""


def foreign(folder: str) -> list[str]:
    """Return the distributions named `lapwing` that are installed in a folder, as `lapwing-1.1.0`; sorted.

    Only names are read: one listing of a folder, some 0.1 ms, where `importlib.metadata` takes 20 ms.
    """
    try:
        entries = os.listdir(folder)
    except OSError:  # the package is in an archive, or in a folder that may be searched but not listed
        return []
    named = [name for name in entries if name.endswith((".dist-info", ".egg-info"))]
    found = (name.removesuffix(".dist-info").removesuffix(".egg-info") for name in named)
    return sorted(name for name in found if name.partition("-")[0].lower() == "lapwing")


def require_own_package() -> None:
    """Refuse to go on where `lapwing/__init__.py` is not Lapwing's.

    Raises:
        SystemExit: With the reason and the remedy.
    """
    if getattr(sys.modules["lapwing"], "DISTRIBUTION", None) != DISTRIBUTION:
        whose = ", ".join(foreign(_BESIDE)) or "an installer"
        sys.exit(f"lapwing: {whose} overwrote or removed files of Lapwing in {_BESIDE}. {_REMEDY}")


_BESIDE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if _found := foreign(_BESIDE):
    warnings.warn(
        f"{', '.join(_found)} in {_BESIDE} is another project, whose package is named lapwing, too. Each overwrites "
        f"files of the other. {_REMEDY}",
        ForeignDistribution,
        stacklevel=2,
    )
