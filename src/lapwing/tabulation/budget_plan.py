"""Divide one budget among queries and releases that are asked several times, such as each month. Free.

    [queries.by_plan]
    query = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
    times = 12

    [releases.report]
    file = "release.toml"
    importance = 2

Theory of operation. Entry i is asked t_i times, each time by itself at the loss l_i (μ² or ρ; in pure ledgers ε). Its
squared error e_i² is in units of its reference (`allocation`), times the square of its importance. It falls with
l_i^p, where p is 1, or in pure ledgers 2. The largest of them is the least where all are equal, and Σ t_i·l_i is the
whole loss. So each step multiplies l_i by e_i^(2/p). One step is enough but for the rounding of noise, which matters
where noise is small. For counts and sums this is the best division, and a good guess for other queries.

Guarantee:
    The plan is a function of the file, the catalog and what is left of the budget. It reads no row and charges nothing.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog.place import refuse, within
from lapwing.catalog.section import TomlSection
from lapwing.errors import CatalogError, InvalidParameter
from lapwing.privacy.amounts import Number, positive
from lapwing.privacy.measures import PureDP
from lapwing.query.pricing.quote import request
from lapwing.tabulation.allocation import AllocationProblem, shares_for
from lapwing.tabulation.declaration import ReleaseTable, TableRelease
from lapwing.tabulation.planning import PlannedTable, prepared, problem_in

if TYPE_CHECKING:
    from lapwing.session import Session

MOST_TIMES: Final = 100_000
STEPS: Final = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetEntry:
    """A query or a release that is asked several times.

    Args:
        release: The release; of a query, one with one table. Its own cost does not count.
        times: How many times it is asked, each time at its own cost.
        importance: An entry of importance 2 gets half the error.
    """

    name: str
    release: TableRelease
    times: int = 1
    importance: Number = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "importance", positive(self.importance, "importance"))
        if not isinstance(self.times, int) or isinstance(self.times, bool) or not 1 <= self.times <= MOST_TIMES:
            raise InvalidParameter(f"times is {self.times!r}; it must be a whole number from 1 to {MOST_TIMES:,}.")
        if self.is_wanted and self.importance != 1:
            raise InvalidParameter(f"{self.name!r} has an error and an importance; give one of them.")

    @property
    def is_wanted(self) -> bool:
        """Whether its tables have wanted errors."""
        return any(table.error is not None for table in self.release.tables)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlanEntry:
    """The part of a budget that an entry gets.

    Args:
        epsilon: The cost to give each time.
        share: Of the whole, for all times together.
        tables: With their errors at this cost.
    """

    entry: BudgetEntry
    epsilon: Fraction
    share: float
    tables: tuple[PlannedTable, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlan:
    """A budget that is divided among entries.

    Args:
        epsilon: The whole that is divided.
        share_of_budget: The part of the data set's budget that all entries together cost.
        fits: Whether the rest of the budget bears it.
        epsilon_needed: About the least whole at which all wanted errors are met; None where none are wanted.
    """

    epsilon: float
    entries: tuple[BudgetPlanEntry, ...]
    share_of_budget: float
    fits: bool
    epsilon_needed: float | None


def entries_from_file(file: str | Path) -> tuple[tuple[BudgetEntry, ...], Number | None]:
    """Read a list of queries and releases in TOML; return them, and the cost of all together if it is given.

    Raises:
        CatalogError: With the key, what was given, and what is allowed.
    """
    path = Path(file)
    with within(f"{path}: "):
        try:
            content = tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
        except (OSError, UnicodeDecodeError):
            raise CatalogError("cannot be read; give the path of a file in UTF-8.") from None
        except (ValueError, ArithmeticError, RecursionError):
            raise CatalogError("not TOML; correct it") from None
        document = TomlSection(path="", content=content)
        document.allow("epsilon", "queries", "releases")
        epsilon = document.number("epsilon", example="1") if document.has("epsilon") else None
        entries = tuple(_entries(document, path.parent))
        if not entries:
            refuse("queries", "missing; add a section such as [queries.visits]")
        return entries, epsilon


def _entries(document: TomlSection, folder: Path) -> Iterator[BudgetEntry]:
    for kind in ("queries", "releases"):
        sections = document.section(kind) if document.has(kind) else None
        for name in sections.content if sections else ():
            section = sections.section(name) if sections else document
            weights = ("error", "assumed_cell", "relative_error") if kind == "queries" else ()
            own = "query" if kind == "queries" else "file"
            section.allow(own, "times", "importance", *weights)
            numbers = {key: section.number(key, example="1") for key in weights if section.has(key)}
            text = section.text(own, example="SELECT …" if own == "query" else "release.toml")
            try:
                if kind == "queries":
                    table = ReleaseTable(name=name, query=text, margin=None, **numbers)
                    release = TableRelease(title=name, epsilon=1, tables=(table,))
                else:
                    release = TableRelease.from_file(folder / text)
                times, importance = (
                    section.integer("times", 1, example=12),
                    section.number("importance", Fraction(1), example="2"),
                )
                yield BudgetEntry(name=name, release=release, times=times, importance=importance)
            except InvalidParameter as refused:
                refuse(section.path, str(refused))


def plan_budget(session: "Session", entries: tuple[BudgetEntry, ...], epsilon: Number | None = None) -> BudgetPlan:
    """Divide a cost among entries so that the largest error is as small as possible. Free.

    Args:
        epsilon: The cost of all together; what is left of the budget unless given.

    Raises:
        InvalidParameter: If entries cannot be planned together, or nothing is left.
        LapwingError: As `plan_release`.
    """
    wanted = [entry for entry in entries if entry.is_wanted]
    if wanted and len(wanted) < len(entries):
        raise InvalidParameter(f"{wanted[0].name!r} has a wanted error. Give all entries an error, or none of them.")
    budget, view = session.catalog.budget, session.budget(history=False)
    delta = budget.delta - budget.delta_keys
    if epsilon is None and not view.remaining.amount:
        raise InvalidParameter("Nothing is left of the budget. Give an epsilon to plan another one.")
    whole = view.remaining if epsilon is None else request(epsilon, budget)
    power = 2 if budget.measure == PureDP.kind else 1
    at_whole = _rounded_down(whole.to_epsilon(delta=delta))
    problems = [_problem(session, entry, at_whole) for entry in entries]
    parts, costs = [1.0] * len(entries), [at_whole] * len(entries)
    for _ in range(STEPS):
        errors = [_error(*one, each, entry) for one, each, entry in zip(problems, costs, entries, strict=True)]
        parts = [part * error ** (1 / power) for part, error in zip(parts, errors, strict=True)]
        total = sum(part * entry.times for part, entry in zip(parts, entries, strict=True))
        amounts = [whole.amount * Fraction(part / total) for part in parts]
        costs = [_rounded_down(whole.from_amount(amount).to_epsilon(delta=delta)) for amount in amounts]
    planned, cost = [], Fraction(0)
    for entry, each in zip(entries, costs, strict=True):
        price = entry.times * request(each, budget).amount
        tables = prepared(session, replace(entry.release, epsilon=each)).described.tables
        cost += price
        planned.append(BudgetPlanEntry(entry=entry, epsilon=each, share=float(price / whole.amount), tables=tables))
    needed = None
    if wanted:
        worst = max(_error(*one, each, entry) for one, each, entry in zip(problems, costs, entries, strict=True))
        needed = whole.from_amount(whole.amount * Fraction(worst ** (1 / power))).to_epsilon(delta=delta)
    return BudgetPlan(
        epsilon=float(at_whole),
        entries=tuple(planned),
        share_of_budget=float(cost / view.total.amount),
        fits=cost <= view.remaining.amount,
        epsilon_needed=needed,
    )


def _problem(session: "Session", entry: BudgetEntry, epsilon: Fraction) -> tuple[AllocationProblem, Sequence[float]]:
    """Return how an entry divides a cost among its tables, with references at this cost."""
    problem = problem_in(session, replace(entry.release, epsilon=epsilon))
    return problem, shares_for(problem)


def _error(problem: AllocationProblem, shares: Sequence[float], epsilon: Fraction, entry: BudgetEntry) -> float:
    """Return the squared error of an entry at a cost, with its importance."""
    offer = replace(problem, epsilon=epsilon).offer(shares)
    largest = max(problem.error(offer, place) for place in range(len(problem.plans)))
    return largest * float(entry.importance) ** 2


def _rounded_down(epsilon: float) -> Fraction:
    """Return a cost with four digits, which is what a person types."""
    return Fraction(Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(epsilon)))
