"""Codes of notes: what an answer says beside its numbers, as programs know it."""

from typing import Final

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
