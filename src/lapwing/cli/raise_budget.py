"""`lapwing budget raise`: make the budget larger. For the curator."""

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from lapwing.cli import figures
from lapwing.cli.console import Fitted, complain, labelled, new_table, print_text, rendered
from lapwing.cli.options import (
    DEFAULT_CATALOG,
    CatalogFile,
    Dataset,
    Server,
    above_zero,
    amount,
    number,
    open_session,
    part_of_one,
)
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.guarantee.raise_preview import Promise, Raise
    from lapwing.privacy.odometers import Reading

EXAMPLE: Final = """\b
Example:
  lapwing budget raise --epsilon 4"""
EVER: Final = (
    "this weakens the promise to everybody in the data, for all queries ever, and cannot be undone; the budget that "
    "is spent stays spent"
)
IF: Final = "the column `after` holds only if the raise was decided before any result was seen"


def command(
    epsilon: Annotated[Fraction, amount(above_zero("--epsilon"), "The new epsilon of the budget.")],
    delta: Annotated[
        Fraction | None, amount(part_of_one("--delta"), "The new delta; default: no change.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
    dataset: Dataset = None,
) -> None:
    """Make the budget larger (for the curator): shows what is promised before and after, and asks for a confirmation.

    If you raise it because of results, the promise is weaker than the new figures say. The command shows that
    promise, too.
    """
    if server is not None or dataset is not None:
        with open_session(catalog, server, dataset) as session:
            held = session.budget(history=False)
            was = held.epsilon, held.delta
            seen = session.raised(was=was, epsilon=epsilon, delta=held.delta if delta is None else delta)
            _show(seen, yes)
            session.raise_budget(was=was, epsilon=seen.after.epsilon, delta=seen.after.delta)
    else:
        from lapwing.raising import previewed, raise_budget  # here, so that `lapwing --help` loads no engine

        seen = previewed(catalog, epsilon, delta)
        _show(seen, yes)
        raise_budget(catalog, seen)
    print_text(f"The budget is {_promise(seen.after)} from now on.\n")


def _show(seen: "Raise", yes: bool) -> None:
    """Show what would be promised, and ask whether that is meant, unless it is so already."""
    if not seen.done:
        sys.stderr.write(rendered(sys.stderr, *_page(seen)))
        _confirm(seen.after.epsilon, yes)


def _page(seen: "Raise") -> list[RenderableType]:
    table = new_table("", "before", "after", numbers=["before", "after"])
    for label, shown in ROWS:
        table.add_row(label, shown(seen.before), shown(seen.after))
    notes = [("note", EVER)]
    if seen.after.raised is not None:
        notes.append(("", IF))
        notes.append(("", f"if results made you raise it, or in doubt, publish {_reading(seen.after.raised)}"))
    return [Fitted(table), Text(), labelled(*notes)]


def _promise(promise: "Promise") -> str:
    delta = f", delta {figures.delta(promise.delta)}" if promise.delta else ""
    return f"epsilon {figures.epsilon(promise.epsilon)}{delta}"


def _reading(reading: "Reading") -> str:
    delta = f", delta {figures.delta(reading.delta)}" if reading.delta else ""
    return f"epsilon {figures.size(reading.epsilon)}{delta}"


def _family(promise: "Promise") -> str:
    family = promise.family
    delta = f", delta {figures.delta(family.delta)}" if family.delta else ""
    return "nothing" if family.epsilon is None else f"epsilon {figures.size(family.epsilon)}{delta}"


ROWS: Final[tuple[tuple[str, Callable[["Promise"], str]], ...]] = (
    ("promise", _promise),
    ("in the ledger", lambda promise: figures.loss(promise.total)),
    ("odds change at most by a factor of", lambda promise: figures.size(promise.change[0])),
    ("except with a probability below", lambda promise: figures.delta(promise.change[1]) if promise.delta else "none"),
    ("four people, such as a household", _family),
)


def _confirm(epsilon: Fraction, yes: bool) -> None:
    """Let the curator repeat the new epsilon.

    Raises:
        InvalidParameter: For anything else, and where nobody is there to be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidParameter("Nothing was changed. Repeat the command with --yes to raise the budget.")
    complain("To raise the budget, type the new epsilon again:")
    if number(sys.stdin.readline().strip()) != epsilon:
        raise InvalidParameter("That is another number. Nothing was changed.")
