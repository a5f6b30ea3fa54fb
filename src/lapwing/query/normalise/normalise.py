"""The second stage: a SELECT in the words that binding knows (parse → normalise → classify → bind).

A rule takes a SELECT and returns one that means the same, because of what the SELECT is; it never asks whether binding
would refuse it. A SELECT to which no rule applies stays as it is, and the same.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.query.from_clause.scope import Scope
from lapwing.query.normalise.correlated_results import with_joined_results
from lapwing.query.normalise.determined_keys import with_determined_keys
from lapwing.query.normalise.exists_by_comparison import with_compared_extremes
from lapwing.query.normalise.extremes_of_keys import with_extremes_of_rows
from lapwing.query.normalise.other_spellings import rewritten
from lapwing.query.normalise.public_constants import with_public_constants
from lapwing.query.normalise.public_groups import with_public_groups
from lapwing.query.normalise.public_numbers import with_public_numbers
from lapwing.query.normalise.qualified_using import with_qualified_using
from lapwing.query.normalise.released_lists import with_released_lists
from lapwing.query.normalise.released_subqueries import with_joins_of_subquery
from lapwing.query.normalise.unmatched_rows import with_unmatched_rows
from lapwing.query.text.parse import Parsed

Rule = Callable[[Parsed, Scope], exp.Select | None]
"""Returns the SELECT of a question in other words; None if the rule does not apply."""


def _spellings(parsed: Parsed, within: Scope) -> exp.Select | None:
    return rewritten(parsed.select, parsed.arguments.keys(), within)


def _qualified_using(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_qualified_using(parsed.select, within)


def _public_groups(parsed: Parsed, within: Scope) -> exp.Select | None:
    if parsed.options.group_selection_strategy != "PUBLIC_GROUPS":
        return None
    return with_public_groups(parsed.select, within.catalog)


def _public_constants(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_public_constants(parsed.select, within) if within.catalog.public_tables else None


def _compared_extremes(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_compared_extremes(parsed.select, within) if within.catalog.public_tables else None


def _public_numbers(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_public_numbers(parsed.select, within) if within.catalog.public_tables else None


def _correlated_results(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_joined_results(parsed.select, within) if within.catalog.public_tables else None


def _unmatched_rows(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_unmatched_rows(parsed.select, within) if within.catalog.public_tables else None


def _determined_keys(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_determined_keys(parsed.select, within) if within.catalog.public_tables else None


def _extremes_of_keys(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_extremes_of_rows(parsed.select, within)


def _released_subqueries(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_joins_of_subquery(parsed.select, within)


def _released_lists(parsed: Parsed, within: Scope) -> exp.Select | None:
    return with_released_lists(parsed.select, within)


RULES: Final[tuple[Rule, ...]] = (
    _spellings, _qualified_using, _public_groups, _public_constants, _compared_extremes, _public_numbers,
    _correlated_results, _unmatched_rows, _determined_keys, _extremes_of_keys, _released_subqueries, _released_lists,
)  # fmt: skip
"""In this order: later rules see what earlier ones wrote."""


def normalised(parsed: Parsed, within: Scope) -> Parsed:
    """Return a question in the words that binding knows.

    Raises:
        QueryRefused: If a subquery of a public table that stands for a value has several.
    """
    for rule in RULES:
        other = rule(parsed, within)
        parsed = parsed if other is None else replace(parsed, select=other)
    return parsed
