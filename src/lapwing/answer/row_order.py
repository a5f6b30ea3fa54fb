"""The cells of an answer: their keys, and which of them are shown in what order."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lapwing.query.derivation.columns import IndexArray, Labels, Truths, Value, of_labels, sortable
from lapwing.query.derivation.derived import NoisyCells, Order
from lapwing.query.derivation.rationals import mask_of
from lapwing.query.keys import Key
from lapwing.query.plan import Plan, Question


def public_keys(question: Question) -> tuple[Labels, ...]:
    """Return the keys of every cell of the product of the public domains, the last key turning fastest."""
    sizes = [len(key.domain) for key in question.keys]
    places = np.unravel_index(np.arange(prod(sizes)), sizes) if sizes else ()
    return tuple(
        _labels(np.asarray(place, dtype=np.int64), key.domain) for place, key in zip(places, question.keys, strict=True)
    )


def _labels(places: IndexArray, domain: Sequence[Value]) -> Labels:
    """Return labels by their places in a domain; NULL in it is at place −1."""
    missing = [i for i, label in enumerate(domain) if label is None]
    return Labels(places=np.where(np.isin(places, missing), -1, places) if missing else places, labels=domain)


def private_keys(keys: Sequence[Sequence[Value]]) -> tuple[Labels, ...]:
    """Return keys as they were released, one entry a cell."""
    return tuple(of_labels(values) for values in keys)


def kept(plan: Plan, cells: NoisyCells) -> IndexArray:
    """Return the cells that HAVING keeps, in the order of the keys."""
    places = _in_order_of_keys(plan, cells)
    if plan.having is not None:
        condition = cells.column(plan.having)
        if isinstance(condition, Truths):
            places = places[condition.holds[places]]
    return places


def shown(plan: Plan, cells: NoisyCells) -> IndexArray:
    """Return which of the cells that HAVING keeps are shown, in order: after QUALIFY, sorted, from OFFSET to LIMIT."""
    places = np.arange(cells.size)
    if plan.qualify is not None:
        condition = cells.column(plan.qualify)
        if isinstance(condition, Truths):
            places = places[condition.holds[places]]
    for term in reversed(plan.order):
        places = _sorted(places, term, cells)
    end = None if plan.limit is None else plan.offset + plan.limit
    return places[plan.offset : end]


def _in_order_of_keys(plan: Plan, cells: NoisyCells) -> IndexArray:
    """Return all cells, the first key of GROUP BY turning slowest: each key's values in the order of its domain."""
    ranks = [_ranks(key, cells.keys[str(key)]) for key in plan.keys]
    if not ranks:
        return np.arange(cells.size)
    return np.lexsort(ranks[::-1])  # stable; the last key given is the first to sort by


def _ranks(key: Key, labels: Labels) -> IndexArray:
    """Rank labels by the key's domain, and those outside it (of released keys) after them, by value; NULL is last."""
    if tuple(labels.labels) == key.domain and not (labels.places < 0).any():
        return labels.places
    rank = {label: i for i, label in enumerate(key.domain)}
    others = sorted({label for label in labels.labels if label is not None and label not in rank}, key=_any)
    rank |= {label: len(rank) + i for i, label in enumerate(others)}
    ranks = [len(rank) if label is None else rank[label] for label in labels.labels]
    null = rank.get(None, len(rank))
    return np.array([*ranks, null], dtype=np.int64)[labels.places]


def _any(value: Any) -> Any:  # all of one type, and not NULL
    return value


def _sorted(places: IndexArray, term: Order, cells: NoisyCells) -> IndexArray:
    """Sort cells by one term, keeping the order of ties, NULLs to one end."""
    values = cells.column(term.value)
    null = np.broadcast_to(mask_of(values.null), cells.size)[places]
    nulls, others = places[null], places[~null]
    keys = sortable(values)[others]
    others = others[np.argsort(-keys if term.descending else keys, kind="stable")]
    return np.concatenate([nulls, others] if term.nulls_first else [others, nulls])
