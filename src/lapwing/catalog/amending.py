"""Change the budget in a catalog's file and leave all else as it was written: comments, order, spaces."""

import os
import re
import shutil
from dataclasses import replace
from typing import Final

from lapwing.catalog import spelling
from lapwing.catalog.model import Budget, Catalog
from lapwing.catalog.toml import loads
from lapwing.errors import CatalogError
from lapwing.machine.drafts import draft_of

_SECTION: Final = re.compile(r"^\s*\[")
_BUDGET: Final = re.compile(r"^\s*\[\s*budget\s*\]\s*(#.*)?$")


def write_budget(catalog: Catalog, budget: Budget) -> None:
    """Write epsilon and delta of a budget into the file of a catalog: completely, or not at all.

    The new text is read first, and must give the same catalog but for the budget.

    Raises:
        CatalogError: With what to write by hand, if the file has another form than that it could be done.
    """
    path = catalog.file
    figures = f"epsilon = {spelling.number(budget.epsilon)} and delta = {spelling.number(budget.delta)}"
    if path is None:
        raise CatalogError(f"the catalog is not in a file; write {figures} where it is made")
    try:
        text = amended(path.read_bytes().decode("utf-8"), budget)
        if loads(text, file=path.name, folder=catalog.folder) != replace(catalog, budget=budget):
            raise CatalogError("it says something else")
        with draft_of([text], path) as draft:
            shutil.copymode(path, draft)
            os.replace(draft, path)
    except (OSError, UnicodeDecodeError, CatalogError):
        raise CatalogError(f"{path.name}: could not be written; write {figures} into its section [budget]") from None


def amended(text: str, budget: Budget) -> str:
    r"""Return a catalog's text with other figures in the lines of its section [budget].

    >>> from fractions import Fraction
    >>> four = Budget(epsilon=4, delta=0, delta_keys=0, measure="pure", neighbouring="add_remove")
    >>> print(amended("[budget]\nepsilon = 3  # much", four))
    [budget]
    epsilon = 4  # much
    """
    lines, inside = text.split("\n"), False
    figures = {"epsilon": spelling.number(budget.epsilon), "delta": spelling.number(budget.delta)}
    written, place = set[str](), None
    for number, line in enumerate(lines):
        if _SECTION.match(line):
            inside = bool(_BUDGET.match(line.rstrip("\r")))
            place = number + 1 if inside else place
        entry = re.match(r"^(\s*(epsilon|delta)\s*=\s*)([^#\s]+)(.*)$", line) if inside else None
        if entry:
            width = len(entry[3]) if "#" in entry[4] else 0  # so that what stands after it stays where it is
            lines[number] = f"{entry[1]}{figures[entry[2]].ljust(width)}{entry[4]}"
            written.add(entry[2])
    missing = [f"{key} = {figures[key]}" for key in figures if key not in written and figures[key] != "0"]
    return "\n".join([*lines[:place], *missing, *lines[place:]]) if place is not None else text
