"""Codes of notes: what an answer says beside its numbers, as programs know it; and how much one of them lists."""

from typing import Final

from lapwing.answer import Note

MOST_SHOWN: Final = 4
"""Listed values that a note names of a column."""
UNLISTED_KEYS: Final = "rows_in_no_group"
"""Rows whose grouped values are missing, or not listed in the catalog, are in no group."""
LONG_TEXTS: Final = "long_texts_missing"
"""Texts that are longer than the catalog allows count as missing."""
ROWS_OF_UNIT: Final = "rows_per_unit"
"""Of one unit at most so many rows count, and none that are of no unit."""
CHOSEN_KEYS: Final = "keys_chosen"
"""Groups were chosen by noise: those that enough units have."""
PUBLIC_PEOPLE: Final = "public_people"
"""A price says what a mean would be if the number of people were public."""
PUBLIC_NUMBER: Final = "public_number"
"""Numbers have no noise, or less, because the catalog says how many people there are."""
MEASURED_TOGETHER: Final = "measured_together"
"""A price is for fewer numbers than are shown: the others follow from them."""
CHOSEN_WITHOUT_NUMBERS: Final = "chosen_without_numbers"
"""What is shown was chosen by a mechanism that releases no number."""
RANK_ERROR: Final = "rank_error"
"""How far the rank of a median or quantile may be off."""
TOO_WIDE: Final = "too_wide"
"""A sum has noise for values that hardly any row has, as the catalog has no bounds of its columns."""
OUTSIDE_BOUNDS: Final = "condition_outside_bounds"
"""A condition holds for no value within the bounds of the catalog."""
ALL_WITHIN_BOUNDS: Final = "condition_within_bounds"
"""A condition holds for every value within the bounds of the catalog."""
CLOCK: Final = "clock"
"""The values of the looks at the clock in a query."""
AS_READ: Final = "values_as_read"
"""The ledger has a result of an earlier version to these words, which saw values within bounds and steps."""
SEEN_BOUNDED: Final = "values_within_bounds"
"""Conditions or groups see values within bounds and steps: as they are read, what is computed might not be total."""
FAR_VALUES: Final = "values_far_beyond_bounds"
"""A bounded number is compared with one without bounds, and does not go as far."""
SUMMED_IN_STEPS: Final = "summed_in_steps"
"""A number with more than 2⁴⁰ steps between its bounds is summed in coarser ones."""
SEEN_IN_STEPS: Final = "values_in_steps"
"""Conditions or groups compute with a decimal in whole steps."""


def code_of(note: str) -> str:
    """Return the code of a note; an empty text if it has none."""
    return note.code if isinstance(note, Note) else ""
