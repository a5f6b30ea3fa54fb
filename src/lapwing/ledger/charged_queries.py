"""Charges as queries: a query that needed limits or constants first was charged for these by themselves."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.ledger.reading import HistoryRow
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedQuery:
    """A query with all that it was charged.

    Args:
        rows: Its charges in order: first what it needed, and last its own, unless that was never made.
    """

    rows: tuple[HistoryRow, ...]

    @property
    def last(self) -> HistoryRow:
        """The charge of the query itself, or the newest of what it needed."""
        return self.rows[-1]

    @property
    def loss(self) -> Loss:
        """The whole charge."""
        return self.last.loss.from_amount(sum((row.loss.amount for row in self.rows), Fraction(0)))

    @property
    def delta(self) -> Fraction:
        """The whole charge of delta."""
        return sum((row.delta for row in self.rows), Fraction(0))

    @property
    def parts(self) -> tuple[tuple[str, HistoryRow], ...]:
        """Its charges, each with what it was for; none if there is one."""
        if len(self.rows) == 1:
            return ()
        return tuple(("found first" if _is_first(row) else "the result", row) for row in self.rows)


def charged_queries(rows: Iterable[HistoryRow]) -> tuple[ChargedQuery, ...]:
    """Return charges by query, in the order in which their last charges were made."""
    needed: dict[tuple[str, str], list[HistoryRow]] = {}
    found: list[ChargedQuery] = []
    for row in rows:
        key = row.principal, row.asked
        if _is_first(row):
            needed.setdefault(key, []).append(row)
        else:
            found.append(ChargedQuery(rows=(*needed.pop(key, ()), row)))
    found += [ChargedQuery(rows=tuple(some)) for some in needed.values()]
    return tuple(sorted(found, key=lambda query: query.last.sequence))


def bought_before(rows: Iterable[HistoryRow], row: HistoryRow) -> tuple[HistoryRow, ...]:
    """Return the earlier charges for less exact results of the same query, which a charge makes more exact."""
    return tuple(
        one
        for one in rows
        if one.sequence < row.sequence and one.answered and (one.question, one.version) == (row.question, row.version)
    )


def in_all(rows: Iterable[HistoryRow], charges: Iterable[HistoryRow]) -> tuple[HistoryRow, ...]:
    """Return all charges that a result is made of, given those that bought it: also of earlier, less exact results.

    Args:
        rows: All charges of the ledger.
        charges: Some of these. Those for other versions of the data than the last one are passed over.
    """
    bought = [row for row in charges if row.answered]
    if not bought:
        return ()
    newest = max(bought, key=lambda row: row.sequence)
    questions = {row.question for row in bought if row.version == newest.version}
    same = (row for row in rows if row.answered and row.version == newest.version and row.question in questions)
    return tuple(row for row in same if row.sequence <= newest.sequence)


def refining(rows: Iterable[HistoryRow]) -> frozenset[int]:
    """Return the numbers of the charges for a query that has an earlier result: made more exact, or bought anew."""
    seen: set[tuple[str, int]] = set()
    found: set[int] = set()
    for row in filter(lambda row: row.answered, rows):
        name = row.question, row.version
        found.update({row.sequence} if name in seen else ())
        seen.add(name)
    return frozenset(found)


def _is_first(row: HistoryRow) -> bool:
    return row.wording is not None and row.wording.first
