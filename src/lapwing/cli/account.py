"""`lapwing account`: what a list of mechanisms loses together, by every method that is valid for it."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

import lapwing as lw
from lapwing.cli import figures
from lapwing.cli.characters import to_json
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import Fitted, labelled, new_table, note, on_terminal, print_text, show, text
from lapwing.cli.local.output import as_csv
from lapwing.cli.options import (
    FRACTION,
    NEIGHBOURING_HELP,
    NeighbouringOption,
    TableFormat,
    UsualFormat,
    amount,
    number,
    reader,
)
from lapwing.errors import InvalidParameter
from lapwing.plots import plot_of
from lapwing.privacy.figures import NOTHING
from lapwing.privacy.guesses import WITHOUT, guessed

if TYPE_CHECKING:
    from lapwing.privacy import Listed, Statement
    from lapwing.privacy.listed_mechanisms import Neighbouring

GUESSES: Final = "guesses right"
EXAMPLE: Final = """\b
Examples:
  lapwing account "100 laplace epsilon=0.1" "3 gaussian sigma=40" --delta 1e-6
  lapwing account "1000 gaussian sigma=1 rate=0.01" --epsilon 2
  lapwing account "500 randomized-response epsilon=0.05" --delta 1e-6 --neighbouring replace_one

\b
A mechanism is COUNT KIND and its numbers:
  laplace              epsilon=…, or scale=… [sensitivity=…]
  discrete-laplace     scale=… [sensitivity=…]
  gaussian             sigma=… [sensitivity=…], or mu=…
  discrete-gaussian    sigma=… [sensitivity=…]
  randomized-response  epsilon=… [choices=…]
  exponential, pure    epsilon=…
  approx               epsilon=… delta=…
  zcdp                 rho=…
  tree                 sigma=… steps=… [sensitivity=…]
Each may add rate=…, of a Poisson sample, or size=… population=…, of a subset, and
neighbouring=…, if its numbers hold for another relation than the list."""


def command(
    mechanisms: Annotated[
        list[str],
        typer.Argument(metavar="MECHANISM", help='Such as "100 laplace epsilon=0.1"; see below.', show_default=False),
    ],
    delta: Annotated[
        Fraction | None,
        amount(
            reader("--delta", "above 0 and below 1", lambda value: 0 < value < 1), "State the epsilon at this delta."
        ),
    ] = None,
    epsilon: Annotated[
        Fraction | None,
        amount(reader("--epsilon", "0 or more", lambda value: value >= 0), "Instead: state the delta at this epsilon."),
    ] = None,
    neighbouring: Annotated[NeighbouringOption, typer.Option(help=NEIGHBOURING_HELP)] = NeighbouringOption.add_remove,
    form: UsualFormat = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"{HELP} The charts are of the profile and of the loss.")
    ] = None,
    reserved: Annotated[
        bool, typer.Option("--reserved", help="With --delta: also the delta_keys that suits this list, and its cost.")
    ] = False,
) -> None:
    """Show what a list of mechanisms loses together, by every method. Needs no data and no catalog."""
    if (delta is None) == (epsilon is None):
        raise InvalidParameter("Give either --delta, to see epsilon, or --epsilon, to see delta: such as --delta 1e-6.")
    if reserved and delta is None:
        raise InvalidParameter("--reserved shares out a delta; give --delta, such as --delta 1e-6.")
    require_chart(plot)
    parts = [read(text) for text in mechanisms]
    relation: Neighbouring = "replace_one" if neighbouring is NeighbouringOption.replace_one else "add_remove"
    statements = lw.privacy.statements_of(parts, delta=delta, epsilon=epsilon, neighbouring=relation)
    slot = None
    if reserved and delta is not None:
        slot = lw.privacy.best_gaussian_above(lw.privacy.distribution_of(parts, neighbouring=relation), delta)
    drawn = plot_of(parts, neighbouring=relation) if plot is not None else None
    match form or (TableFormat.table if on_terminal() else TableFormat.csv):
        case TableFormat.table:
            show(*as_page(statements, delta, epsilon))
        case TableFormat.csv:
            print_text(as_csv([as_row(statement) for statement in statements]))
        case TableFormat.json:
            print_text(to_json(as_document(parts, statements, relation)))
    note("for", f"{NEIGHBOURS[neighbouring]}.")
    note("guesses", f"how often out of 100 a guess {guessed(relation)} can be right; {WITHOUT} without the results.")
    if any(statement.lower is not None for statement in statements):
        shown = form or (TableFormat.table if on_terminal() else TableFormat.csv)
        bound = "epsilon" if epsilon is None else "delta"
        ends = "lies in the range shown" if shown is TableFormat.table else f"lies between `lower` and `{bound}`"
        note("range", f"for the loss distribution, the exact value {ends}.")
    if slot is not None and delta is not None:
        keys, mu = figures.delta(slot.delta), rounded(slot.exact_part.mu, ROUND_CEILING)
        own = rounded(slot.to_epsilon(delta=delta), ROUND_CEILING)
        note("reserve", f"a gdp ledger charges mu = {mu} for this list with delta = {keys}.")
        note("init", f"--delta {figures.delta(delta)} --delta-keys {keys} suits it best: it costs epsilon {own}.")
    if plot is not None and drawn is not None:
        write_chart(drawn, plot)


def read(text: str) -> "Listed":
    """Read a mechanism of a list: COUNT KIND NAME=NUMBER ….

    >>> read("3 gaussian sigma=40 sensitivity=1").times
    3
    """
    words = text.split()
    if len(words) < 2 or not re.fullmatch(r"[0-9]{1,18}", words[0]):
        raise InvalidParameter(
            f"The mechanism is {text[:60]!r}; it must be COUNT KIND and its numbers, such as '100 laplace epsilon=0.1'."
        )
    numbers: dict[str, Fraction] = {}
    relation: str | None = None
    for word in words[2:]:
        name, equals, value = word.partition("=")
        if not equals or name in numbers or (name == "neighbouring" and relation is not None):
            raise _wrong(text, f"{word[:60]!r} must be NAME=NUMBER, each name once")
        if name == "neighbouring":
            relation = value
            continue
        amount = number(value)
        if amount is None:
            raise _wrong(text, f"{name[:60]} is {value[:60]!r}; it must be {FRACTION}")
        numbers[name] = amount
    try:
        return lw.privacy.listed(words[1], int(words[0]), neighbouring=relation, **_spelled(numbers))
    except InvalidParameter as refused:
        raise _wrong(text, str(refused).rstrip(".")) from None


def _spelled(numbers: dict[str, Fraction]) -> dict[str, Fraction]:
    """Return the numbers, none of which may be called as an argument that is no number of a mechanism."""
    for name in ("kind", "times"):
        if name in numbers:
            raise InvalidParameter(
                f"{name}= is not a parameter of a mechanism; COUNT and KIND come first, without a name."
            )
    return numbers


def _wrong(text: str, reason: str) -> InvalidParameter:
    return InvalidParameter(f"In {text[:60]!r}: {reason}.")


def as_page(
    statements: Sequence["Statement"], delta: Fraction | None, epsilon: Fraction | None
) -> list[RenderableType]:
    """Return the statements for people: upper bounds rounded up, a lower bound rounded down."""
    at_epsilon = f"delta at epsilon {figures.epsilon(epsilon or Fraction(0))}"
    column = at_epsilon if delta is None else f"epsilon at delta {figures.delta(delta)}"
    table = new_table("method", column, GUESSES, "valid for", "computed from", numbers=[column, GUESSES])
    for statement in statements:
        value = statement.delta if delta is None else statement.epsilon
        if statement.refused or value is None:
            cells = (NOTHING, NOTHING, "refused", statement.refused)
        else:
            times = statement.times_of_100
            guessed = NOTHING if times is None else f"{times}"
            cells = (_between(statement.lower, value), guessed, _label(statement), statement.total)
        table.add_row(*map(text, (statement.method, *cells)))
    labels = {_label(statement): statement.holds for statement in statements if not statement.refused}
    return [Fitted(table), Text(), labelled(*labels.items())]


def as_row(statement: "Statement") -> dict[str, object]:
    """Return a statement for programs."""
    return {**asdict(statement), "times_of_100": statement.times_of_100}


def _label(statement: "Statement") -> str:
    return "any queries" if statement.adaptive else "a fixed list"


def _between(lower: float | None, upper: float) -> str:
    high = rounded(upper, ROUND_CEILING)
    return high if lower is None else f"{rounded(lower, ROUND_FLOOR)} to {high}"


def rounded(value: float, direction: str) -> str:
    """Return a number to four digits, rounded in a direction.

    >>> rounded(4.69812, ROUND_CEILING), rounded(4.69812, ROUND_FLOOR), rounded(1.98361e-7, ROUND_CEILING)
    ('4.699', '4.698', '1.984e-7')
    """
    if not isfinite(value):
        return "∞"
    digits = Context(prec=4, rounding=direction).create_decimal(Decimal(value))
    return f"{digits:f}" if 1e-3 <= value < 1e6 or not value else figures.delta(Fraction(digits))


def as_document(parts: Sequence["Listed"], statements: Sequence["Statement"], neighbouring: str) -> dict[str, object]:
    """Return list and statements for programs; a number that is infinite is null."""
    return {
        "list": [part.text for part in parts],
        "neighbouring": neighbouring,
        "statements": [
            {name: None if value == inf else value for name, value in as_row(statement).items()}
            for statement in statements
        ],
    }


NEIGHBOURS: Final = {
    NeighbouringOption.add_remove: "data sets that differ by one person, added or removed with all rows",
    NeighbouringOption.replace_one: "data sets that differ by one person, whose rows are replaced",
}
