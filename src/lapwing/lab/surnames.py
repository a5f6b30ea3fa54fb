"""The 10,000 most frequent surnames of the United States Census of 1990, each with how many of 100,000 people bear it.

They are the first 10,000 lines of the Census Bureau's file `dist.all.last` (1990 Census Name Files), a work of the
United States government and so in the public domain, as the package `names` 0.3.0 (MIT licence) carries it. The file
states percent with three decimals, hence whole numbers of 100,000.
"""

import csv
from importlib.resources import files
from typing import Final

TOWN: Final = 100_000
"""How many people the counts are of; 70,751 of them bear one of the 10,000 names."""


def surnames() -> dict[str, int]:
    """Return the names, the most frequent first, with their counts."""
    text = (files("lapwing.lab") / "data" / "surnames.csv").read_text("ascii")
    return {row["surname"]: int(row["per_100000"]) for row in csv.DictReader(text.splitlines())}
