"""Headings of the checks for people, and what each check means in one plain sentence. JSON keeps the names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

OF_GRAPH: Final = " of graph "
"""Between the name of a check and the name of the graph whose ledger it checks."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckHeading:
    """The name of a check in reports for people.

    Args:
        title: A few words without the terms of the field.
        meaning: The purpose of the check, in one sentence.
    """

    title: str
    meaning: str


def heading_of(name: str) -> CheckHeading:
    """Return the heading of a check; its own name if a later release made the report.

    >>> heading_of("ledger chain").title, heading_of("a later check").title
    ('Unchanged ledger', 'a later check')
    >>> heading_of("ledger chain of graph friends").title
    'Unchanged ledger, graph friends'
    """
    check, of_graph, graph = name.partition(OF_GRAPH)
    known = HEADINGS.get(check)
    if known is None:
        return CheckHeading(title=name, meaning="")
    return replace(known, title=f"{known.title}, graph {graph}") if of_graph else known


HEADINGS: Final[Mapping[str, CheckHeading]] = {
    name: CheckHeading(title=title, meaning=meaning)
    for name, title, meaning in (
        (
            "privacy unit",
            "Protected people",
            "Checks whether the catalog protects each person with all their rows, or less.",
        ),
        (
            "public columns",
            "Listed values",
            "Checks that the catalog lists no values that look like facts about people.",
        ),
        ("bounds", "Ranges of columns", "Checks that ranges look chosen without the data."),
        (
            "budget",
            "Privacy budget",
            "Checks that the budget is not too large, and that the catalog and the ledger agree about it.",
        ),
        (
            "ledger chain",
            "Unchanged ledger",
            "Checks that nobody edited or removed an entry of the ledger, the record of charges.",
        ),
        (
            "ledger since the earlier report",
            "Ledger since the earlier report",
            "Checks that the ledger still has all entries of the earlier report.",
        ),
        ("totals", "Spending within the budget", "Checks that all charges together fit into the budget."),
        ("stored results", "Paid results", "Checks that each stored result has a charge."),
        ("kept totals", "Sums beside the ledger", "Checks that the stored sums say no less than the entries."),
        ("charges", "Cost of each result", "Checks that no result cost less than it can reveal about a person."),
        (
            "audit log",
            "Unchanged audit log",
            "Checks that nobody edited or removed a line about people, rights or policies.",
        ),
        (
            "permissions",
            "Access to the files",
            "Checks that other users of this machine cannot read or replace the files.",
        ),
        ("formats", "Formats of the files", "Checks that this version of Lapwing wrote the files or can read them."),
        ("backups", "Backups", "Checks that there are backups, and that they agree with the ledger."),
        (
            "charges in two ledgers",
            "Charges to people and to edges",
            "Checks that what a graph reveals about people and about edges is charged to both.",
        ),
        ("snapshots", "Copies of source data", "Checks that nobody changed the copies that Lapwing made of a source."),
        (
            "movements between neighbours",
            "Influence of one person",
            "Adds and removes a person in made-up data, and checks that no result changes more than its charge covers.",
        ),
        (
            "laws of the noise",
            "Size of the noise",
            "Draws random noise, and checks that it is as large as the charge demands.",
        ),
        (
            "bets against the promised losses",
            "Guesses against the noise",
            "Guesses from noisy numbers what they hide, and checks that it is right no more often than promised.",
        ),
        (
            "what a server does not show",
            "Not visible from outside",
            "Lists what only an audit on the server can check.",
        ),
    )
}
"""By the name of the check."""
