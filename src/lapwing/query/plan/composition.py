"""How an answer is made of the answers to several questions: what is joined, and how many rows there can be."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final
from typing import Literal as Choice

from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue
from lapwing.query.plan.combined_keys import most_cells_alike

if TYPE_CHECKING:
    from lapwing.query.measures.measures import Key
    from lapwing.query.plan.plan import Plan

MOST_ROWS: Final = 1_000_000
"""Rows that an answer may be made of; the pairs of a join are no more than that, either."""
MOST_ROWS_BESIDE_PUBLIC: Final = 200_000
"""The same where a source is of public rows or constants, because these are multiplied for free."""
MOST_FREE_ROWS: Final = 20_000
"""The same of only public rows and constants: what is free may be asked for again and again."""

JoinKind = Choice["inner", "left", "right", "full"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceJoin:
    """How a source is joined to those before it.

    Args:
        pairs: What must be equal, of those before and of the source.
        condition: What else must hold of a row.
    """

    kind: JoinKind
    pairs: tuple[tuple[Derived, SourceValue], ...] = ()
    condition: Derived | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The sources of an answer: questions that are released together, and joined or set below each other.

    Args:
        joins: Of every source but the first, to those before it; None: each row is a row of one source (UNION ALL).
        public: In the place of sources, columns of public rows, each with a value for every row.
        impossible: The keys of which no row can have a value, where it has no rows for that (`bind.no_cells`).
    """

    sources: tuple["Plan", ...]
    joins: tuple[SourceJoin, ...] | None
    public: "tuple[Key, ...]" = ()
    impossible: str = ""

    @property
    def most_rows(self) -> int | None:
        """The most rows that it makes, a public fact; None where the keys of a source are private."""
        if self.public:
            return len(self.public[0].domain)
        first, *others = (_most_rows(source) for source in self.sources)
        if self.joins is None:
            return None if first is None or None in others else first + sum(rows or 0 for rows in others)
        most = first
        for source, rows, join in zip(self.sources[1:], others, self.joins, strict=True):
            alike = _most_alike(source, [right.value for _, right in join.pairs])
            if most is None or alike is None or (rows is None and join.kind in ("right", "full")):
                return None
            most *= max(alike, 1)
            if join.kind in ("right", "full"):
                most += rows or 0
            most = max(most, 1)
        return most


def plans_asked(plan: "Plan") -> "tuple[Plan, ...]":
    """Return the plans whose questions touch data: the plan itself, after its constants, or those that it is over."""
    if plan.composition is None:
        return (*plan.constants, plan)
    return tuple(leaf for source in plan.composition.sources for leaf in plans_asked(source))


def impossible_in(plan: "Plan") -> tuple[str, ...]:
    """Return the keys of which no row can have a value, of all sources that are empty for that."""
    if plan.composition is None:
        return ()
    own = (plan.composition.impossible,) if plan.composition.impossible else ()
    return (*own, *(named for source in plan.composition.sources for named in impossible_in(source)))


def _most_rows(plan: "Plan") -> int | None:
    most = plan.question.cells if plan.composition is None else plan.composition.most_rows
    return most if plan.limit is None else plan.limit if most is None else min(most, plan.limit)


def _most_alike(plan: "Plan", values: Sequence[Derived]) -> int | None:
    """Return the most rows of a source that have the same values, as far as its public keys say; None for no limit."""
    keys, question = {value.key for value in values if isinstance(value, KeyValue)}, plan.question
    if plan.composition is not None:
        alike = _most_alike_joined(plan.composition, values)
        if plan.composition.public and keys:
            alike = max(Counter(zip(*(key.domain for key in keys), strict=True)).values(), default=0)
    elif keys.issuperset(question.private_keys):
        alike = most_cells_alike(keys, question.sets or (question.keys,), question.combined)
    else:
        return _most_rows(plan)
    return alike if plan.limit is None or alike is None else min(alike, plan.limit)


def _most_alike_joined(composition: Composition, values: Sequence[Derived]) -> int | None:
    """Return the most rows of joined sources that have the same values; None for no limit.

    A value of the first source is not NULL in a row that equals anything, so that a row of that source is in it. There
    are as many as are alike in the first source, and each of them meets as many of every other as are alike there.
    """
    first = [value.value for value in values if isinstance(value, SourceValue) and value.source == 0]
    if not first or composition.joins is None:
        return composition.most_rows
    most = _most_alike(composition.sources[0], first)
    for source, join in zip(composition.sources[1:], composition.joins, strict=True):
        alike = _most_alike(source, [right.value for _, right in join.pairs])
        if most is None or alike is None:
            return composition.most_rows
        most *= max(alike, 1)
    rows = composition.most_rows
    return most if rows is None or most is None else min(most, rows)
