"""The digest changes with what the tables mean, and with nothing else."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.catalog.digests import column_facts
from tests.support.catalog.examples import catalog, changed

MEANS_ANOTHER = {
    "lower": ("lower = 0, upper = 5000", "lower = 1, upper = 5000"),
    "upper": ("upper = 5000", "upper = 5001"),
    "date bound": ("2024-12-31,", "2024-12-30,"),
    "step": ("step = 0.01", "step = 0.02"),
    "type": ('age  = { type = "integer"', 'age  = { type = "float"'),
    "value": ('"c"]', '"d"]'),
    "order of values": ('"a", "b"', '"b", "a"'),
    "other": ('other = "other"', 'other = "others"'),
    "no other": (', other = "other"', ""),
    "missing values": ('other = "other"', 'other = "other", missing = ["NA"]'),
    "what values stand for": ('other = "other"', 'other = "other", recode = { "1" = "a" }'),
    "how dates are written": ('day  = { type = "date",', 'day = { type = "date", format = "%m/%d/%Y",'),
    "how numbers are written": ("step = 0.01", 'step = 0.01, decimal_mark = ","'),
    "length of texts": ('other = "other"', 'other = "other", max_length = 255'),
    "column": ("town =", "city ="),
    "column in another case": ("town =", "Town ="),
    "unit": ('"person_id"', '"patient_id"'),
    "row bound": ("max_rows_per_unit = 10", "max_rows_per_unit = 11"),
    "table": ("[tables.visits]\n", "[tables.visits2]\n"),
}

MEANS_THE_SAME = {
    "ledger": ('"sqlite:visits.lapwing.db"', '"sqlite:elsewhere.db"'),
    "epsilon": ("epsilon = 3.0", "epsilon = 4.0"),
    "measure": ('"gdp"', '"zcdp"'),
    "data set": ('name = "clinic"', 'name = "hospital"'),
    "source": ('"visits.parquet"', '"moved/visits.parquet"'),
    "default step": ('age  = { type = "integer",', 'age  = { type = "integer", step = 1,'),
    "default length of texts": ('other = "other"', 'other = "other", max_length = 256'),
    "same number": ("step = 0.01", "step = 1.0e-2"),
    "same time": ("2024-12-31T12:00:00+02:00", "2024-12-31T10:00:00Z"),
}


def text_of(change: tuple[str, str]) -> str:
    text = changed(*change)
    return text.replace("tables.visits.columns", "tables.visits2.columns") if "visits2" in text else text


@pytest.mark.parametrize("name", MEANS_ANOTHER)
def test_another_meaning_has_another_digest(name: str) -> None:
    other = catalog(text_of(MEANS_ANOTHER[name]))
    assert other.digest != catalog().digest
    assert other.tables[0].digest != catalog().tables[0].digest


@pytest.mark.parametrize("name", MEANS_THE_SAME)
def test_the_same_meaning_has_the_same_digest(name: str) -> None:
    assert catalog(changed(*MEANS_THE_SAME[name])).digest == catalog().digest


def test_folder_and_order_mean_nothing() -> None:
    first = catalog()
    visits = first.tables[0]
    turned = replace(visits, columns=tuple(reversed(visits.columns)))
    more = replace(visits, name="more")
    assert replace(first, folder=Path("/elsewhere"), tables=(turned,)).digest == first.digest
    assert replace(first, tables=(visits, more)).digest == replace(first, tables=(more, turned)).digest
    assert replace(first, tables=(visits, more)).digest != first.digest


def test_a_forgotten_bound_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "lapwing.catalog.digests.column_facts",
        lambda column: {key: fact for key, fact in column_facts(column).items() if key != "upper"},
    )
    assert catalog(changed("upper = 5000", "upper = 5001")).digest == catalog().digest


WRITTEN_OUT = (
    '{"format":1,"tables":{"visits":{"columns":{'
    '"cost":{"lower":"0","step":"0.01","type":"decimal","upper":"5000"},'
    '"plan":{"other":"other","type":"string","values":["a","b","c"]}},'
    '"max_rows_per_unit":"10","privacy_unit":"person_id"}}}'
)


def test_the_digest_is_of_this_document() -> None:
    """Stored answers are found by the digest: changing how it is made loses them, and needs a reason."""
    visits = catalog().tables[0]
    small = replace(catalog(), tables=(replace(visits, columns=visits.columns[:2]),))
    assert small.digest == hashlib.sha256(WRITTEN_OUT.encode()).hexdigest()
