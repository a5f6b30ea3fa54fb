"""Who holds which key: the private data from which keys are selected.

Theory of operation. Units and keys are given by labels; inside they are codes, the ranks of the labels, so that the
order of codes says nothing about the order of rows. A unit with too many keys gives some of them up. Which, depends
on a hash of the key alone: all units prefer the same keys, so that what they keep meets on the same keys, and no
unit's choice depends on another unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter

MOST_PAIRS = 1 << 31
"""So many pairs fit: it is what the proofs about rounding in `adaptive_weights` count on."""

Label = bool | int | str | bytes | date | tuple["Label", ...]

# A public constant: it decides which keys are given up, and privacy does not rest on it.
_SALT = b"lapwing keys"
_PLAIN = (bool, int, str, bytes, date)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Contributions:
    """Distinct pairs of a unit and a key that it holds, ordered by unit and then by key. Private data.

    `units` and `keys` are the codes of each pair, `labels` the keys by code, ascending. Nothing of it shows in `repr`.
    """

    units: NDArray[np.int64]
    keys: NDArray[np.int64]
    labels: tuple[Label, ...]

    @classmethod
    def of(cls, units: Sequence[Label | None] | NDArray[Any], keys: Sequence[Label | None] | NDArray[Any]) -> Self:
        """Return the distinct pairs of two columns of equal length; rows where either is None (NULL) are dropped.

        A column holds values of one type: bool, int, str, bytes, date, or tuples with the same types in the same
        places. A tuple with a NULL is NULL. Whether an error is raised depends on types and lengths only.

        Raises:
            InvalidParameter: For other columns, and for columns of 2^31 rows or more.
        """
        unit_codes, _ = _coded(units, "units")
        key_codes, labels = _coded(keys, "keys")
        if unit_codes.size != key_codes.size:
            raise InvalidParameter(
                f"There are {unit_codes.size} units and {key_codes.size} keys; give one unit and one key a row."
            )
        if unit_codes.size >= MOST_PAIRS:
            raise InvalidParameter("There are 2^31 rows or more; select keys from fewer rows.")
        known = (unit_codes >= 0) & (key_codes >= 0)
        # Below 2^62, as neither has more codes than there are rows.
        pairs = np.sort(unit_codes[known] * max(len(labels), 1) + key_codes[known])
        by_unit, by_key = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], max(len(labels), 1))
        return cls(units=by_unit, keys=by_key, labels=labels)

    def labelled(self, codes: NDArray[np.int64]) -> tuple[Label, ...]:
        """Return the labels of keys by code."""
        return tuple(self.labels[code] for code in codes.tolist())

    def held(self) -> NDArray[np.int64]:
        """Return the codes of the keys that somebody holds, ascending."""
        return np.flatnonzero(np.bincount(self.keys, minlength=len(self.labels))).astype(np.int64)

    def degrees(self) -> NDArray[np.int64]:
        """Return for each pair how many keys its unit holds."""
        degrees: NDArray[np.int64] = np.bincount(self.units).astype(np.int64)[self.units]
        return degrees

    def sums(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each key the exact sum over its pairs of one weight a pair."""
        sums = np.zeros(len(self.labels), dtype=np.int64)
        np.add.at(sums, self.keys, weights)
        return sums

    def where(self, mask: NDArray[np.bool_]) -> Self:
        """Return the pairs that a mask keeps."""
        return type(self)(units=self.units[mask], keys=self.keys[mask], labels=self.labels)

    def kept(self, max_keys: int) -> NDArray[np.bool_]:
        """Return which pairs remain when every unit keeps at most `max_keys` keys, those with the least hash.

        Equal hashes are ordered by label. A unit's choice depends only on its own keys, and a chosen key remains chosen
        when others of its keys are taken away.
        """
        full = np.flatnonzero(self.degrees() > max_keys)
        kept = np.ones(self.keys.size, dtype=np.bool_)
        if full.size:
            distinct, places = np.unique(self.keys[full], return_inverse=True)
            hashes = np.array([_hash(self.labels[code]) for code in distinct.tolist()], dtype=np.uint64)
            units = self.units[full]
            order = np.lexsort((places, hashes[places], units))
            # `full` is ordered by unit, and so is it in the new order: a unit's pairs stay in the same stretch.
            first = np.searchsorted(units, units, side="left")
            kept[full[order]] = np.arange(full.size) - first < max_keys
        return kept

    def __repr__(self) -> str:
        return "Contributions(private)"


def _coded(values: Sequence[Label | None] | NDArray[Any], name: str) -> tuple[NDArray[np.int64], tuple[Label, ...]]:
    """Return the rank of each value among the distinct ones (−1 for NULL), and the distinct values, ascending."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidParameter(f"{name} have {values.ndim} dimensions; give a list or an array of one dimension.")
        if values.dtype.kind == "i":
            distinct, codes = np.unique(values, return_inverse=True)
            return codes.astype(np.int64), tuple(distinct.tolist())
    if not isinstance(values, np.ndarray | Sequence) or isinstance(values, str | bytes):
        raise InvalidParameter(f"{name} are a {type(values).__name__}; give a list or an array of one dimension.")
    items = list(values.tolist() if isinstance(values, np.ndarray) else values)
    types = {_type_of(item) for item in items} - {None}
    if len(types) > 1 or not all(map(_is_plain, types)):
        raise InvalidParameter(
            f"{name} are of more than one type, or of a type that is no label. All must be bool, int, str, bytes or "
            "date, or tuples of these. Write others as strings."
        )
    labels = tuple(sorted(item for item in set(items) if _type_of(item) is not None))
    ranks = {label: code for code, label in enumerate(labels)}
    return np.fromiter((ranks.get(item, -1) for item in items), dtype=np.int64, count=len(items)), labels


def _type_of(label: Any) -> Any:
    """Return the type of a label; of a tuple, the types of its parts; None for NULL."""
    if type(label) is not tuple:
        return None if label is None else type(label)
    parts = tuple(map(_type_of, label))
    return None if None in parts else parts


def _is_plain(found: Any) -> bool:
    return all(map(_is_plain, found)) if isinstance(found, tuple) else found in _PLAIN


def _hash(label: Label) -> int:
    """Hash the text of a label, which says its type and value."""
    return int.from_bytes(blake2b(repr(label).encode(), digest_size=8, key=_SALT).digest(), "little")


def checked(contributions: Contributions) -> Contributions:
    """Return who holds which keys.

    Raises:
        InvalidParameter: If it is anything else.
    """
    if not isinstance(contributions, Contributions):
        raise InvalidParameter(
            f"The contributions are of type {type(contributions).__name__}; give Contributions.of(units, keys)."
        )
    return contributions
