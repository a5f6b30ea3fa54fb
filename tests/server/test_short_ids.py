"""Ids by their first characters: shown as short as they are unique, and refused where several are meant."""

import pytest

from lapwing.documents.short_ids import id_meant, short_id
from lapwing.errors import InvalidParameter

IDS = ["3f9a2c41" + "a" * 24, "3f9a2c41" + "ab" * 12, "77" * 16]


def test_what_is_shown_is_what_names_it() -> None:
    assert [len(short_id(one, IDS)) for one in IDS] == [10, 10, 8]
    assert [id_meant(short_id(one, IDS), IDS, "request", "list") for one in IDS] == IDS
    assert id_meant(IDS[0], IDS, "request", "list") == IDS[0]


def test_a_start_of_several_names_them() -> None:
    with pytest.raises(InvalidParameter) as refused:
        id_meant(IDS[0][:9], IDS, "request", "list")
    assert all(short_id(one, IDS) in str(refused.value) for one in IDS[:2])


@pytest.mark.parametrize("start", ["", "7777777", "77" * 17, "3f9a2c42"])
def test_a_start_of_none_is_refused(start: str) -> None:
    with pytest.raises(InvalidParameter):
        id_meant(start, IDS, "request", "list")
