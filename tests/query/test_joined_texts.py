"""Joined texts are of a size that can be sent, however many rows repeat them."""

import pytest

from lapwing.query.derivation.window_values import joined_within


@pytest.mark.parametrize(
    ("most", "joined"),
    [(20, "one, two, three"), (15, "one, two, three"), (14, "one, two, thr…"), (8, "one, tw…"), (1, "…"), (0, "…")],
)
def test_a_text_that_is_too_long_is_cut(most: int, joined: str) -> None:
    assert joined_within(", ", ["one", "two", "three"], most) == joined
