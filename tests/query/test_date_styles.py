"""CONVERT with a style of SQL Server is STRFTIME with its format, or reads a text by it; anything else is refused."""

import pytest

from tests.support.query.ibis_world import World, same, world
from tests.support.refusals import refused_as

__all__ = ["world"]

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE"
SAME = [
    (
        "SELECT CONVERT(VARCHAR(7), seen, 120) AS k, COUNT(*) AS n FROM visits GROUP BY CONVERT(VARCHAR(7), seen, 120)",
        "SELECT STRFTIME(seen, '%Y-%m') AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    ),
    (f"{COUNT} CONVERT(varchar, seen, 120) > 'x'", f"{COUNT} STRFTIME(seen, '%Y-%m-%d %H:%M:%S') > 'x'"),
    (f"{COUNT} CONVERT(NVARCHAR(16), seen, 126) > 'x'", f"{COUNT} STRFTIME(seen, '%Y-%m-%dT%H:%M') > 'x'"),
    (f"{COUNT} CONVERT(VARCHAR, born, 121) > 'x'", f"{COUNT} STRFTIME(born, '%Y-%m-%d') > 'x'"),
    (f"{COUNT} CONVERT(CHAR(8), born, 112) > 'x'", f"{COUNT} STRFTIME(born, '%Y%m%d') > 'x'"),
    (f"{COUNT} CONVERT(CHAR(5), seen, 108) > 'x'", f"{COUNT} STRFTIME(seen, '%H:%M') > 'x'"),
    (f"{COUNT} CONVERT(VARCHAR(20), born, 107) > 'x'", f"{COUNT} STRFTIME(born, '%b %d, %Y') > 'x'"),
    (f"{COUNT} CONVERT(VARCHAR, born, 4) > 'x'", f"{COUNT} STRFTIME(born, '%d.%m.%y') > 'x'"),
    (f"{COUNT} born > CONVERT(DATE, '31.12.2019', 104)", f"{COUNT} born > DATE '2019-12-31'"),
    (f"{COUNT} born > CONVERT(DATE, '2019-12-31', 120)", f"{COUNT} born > DATE '2019-12-31'"),
    (f"{COUNT} TRY_CONVERT(DATE, note, 101) > born", f"{COUNT} PARSE_DATE('%m/%d/%Y', note) > born"),
    (f"{COUNT} TRY_CONVERT(DATE, note, 23) > born", f"{COUNT} TRY_CAST(note AS DATE) > born"),
    (f"{COUNT} CONVERT(DATE, seen, 101) > born", f"{COUNT} CAST(seen AS DATE) > born"),
]
REFUSED = [
    ("CONVERT(VARCHAR, seen, 121) = 'x'", "invalid_format"),
    ("CONVERT(VARCHAR, seen, 99) = 'x'", "invalid_format"),
    ("CONVERT(VARCHAR, seen, 120.5) = 'x'", "invalid_format"),
    ("CONVERT(VARCHAR(3), seen, 120) = 'x'", "invalid_format"),
    ("CONVERT(CHAR(20), seen, 120) = 'x'", "invalid_format"),
    ("CONVERT(VARCHAR, born, 108) = 'x'", "invalid_format"),
    ("CONVERT(INT, seen, 112) = 3", "invalid_format"),
    ("CONVERT(VARCHAR, age, 1) = 'x'", "wrong_type"),
    ("CONVERT(DATE, age, 112) = born", "wrong_type"),
    ("CONVERT(DATE, note, 1) = born", "invalid_format"),
    ("CONVERT(DATE, '31.02.2019', 104) = born", "invalid_date"),
    ("CONVERT(VARCHAR, seen, age) = 'x'", "syntax_error"),
    *(
        (f"\"CONVERT WITH STYLE\"({of}) = 'x'", "function_not_supported")  # a name in quotes may have blanks
        for of in ("", "seen", "seen, age, note", "seen, 120, note", "seen, 120, 'DATE', 1")
    ),
    ("CONVERT(VARCHAR, seen, 1, 2) = 'x'", "syntax_error"),
]


@pytest.mark.parametrize(("text", "known"), SAME)
def test_it_is_the_plan_of_the_format(world: World, text: str, known: str) -> None:
    assert not same(world.plan(text), world.plan(known))


@pytest.mark.parametrize(("condition", "cause"), REFUSED)
def test_what_no_style_writes_is_refused(world: World, condition: str, cause: str) -> None:
    with refused_as(cause):
        world.plan(f"{COUNT} {condition}")


def test_twin_a_text_that_is_not_cut_is_another_question(world: World) -> None:
    text, known = SAME[0]
    assert same(world.plan(text), world.plan(known.replace("%Y-%m", "%Y-%m-%d %H:%M:%S")))
