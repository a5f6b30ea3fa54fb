"""Names in a catalog: which texts can be one, and which of them a question cannot tell apart."""

from collections.abc import Iterable

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse


def one_of(place: str, given: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not on a list."""
    if given not in allowed:
        refuse(place, f"{spelling.value(given)} is unknown; write one of {', '.join(allowed)}")


def check_text(place: str, given: str) -> None:
    """Refuse a text that is empty or that some engine cannot hold."""
    if not given or not spelling.storable(given):
        refuse(place, "use at least one character, valid UTF-8, no NUL")


def refuse_same_names(place: str, names: Iterable[str]) -> None:
    """Refuse names that are equal, or differ only by case, because questions fold it."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded in seen:
            both = f"{spelling.text(seen[folded])} and {spelling.text(name)}"
            refuse(place, f"{both} are the same name for a question, which ignores case; rename or remove one")
        seen[folded] = name


def check_columns(names: tuple[str, ...], most: int) -> None:
    """Refuse too many columns, and columns that a question cannot tell apart."""
    if len(names) > most:
        refuse(".columns", f"{len(names)} columns; at most {most} are allowed, list only those to ask about")
    refuse_same_names(".columns", names)
