"""The data set that comes with Lapwing, for demonstrations, lessons and tests: see README.md beside this file."""

from importlib.resources import files
from pathlib import Path

__all__ = ["rand_hie_catalog", "rand_hie_data"]


def rand_hie_data() -> Path:
    """Return the RAND Health Insurance Experiment as a Parquet file: 20,190 person-years of 5,912 people."""
    return _path("rand_hie.parquet")


def rand_hie_catalog() -> Path:
    """Return the catalog of that file; copy both into your own folder: the ledger is written next to them."""
    return _path("rand_hie.toml")


def _path(name: str) -> Path:
    return Path(str(files(__name__) / name))
