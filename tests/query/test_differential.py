"""What Lapwing says where noise rounds away is what DuckDB says of the same files, or a note names why it is not."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from lapwing.answer.notes import UNLISTED_KEYS, UNMATCHED, code_of
from tests.support.effort import numbers, one_in
from tests.support.query.differing.comparing import DIFFERS, EQUAL, NOTED, UNKNOWN, Question, Verdict, judged
from tests.support.query.differing.results import RESULTS
from tests.support.query.differing.rows import ROWS
from tests.support.query.differing.worlds import Pair, opened, world_of

FAMILIES: Final = ROWS | RESULTS
SHORT: Final = 2
"""Queries of a family in a world of the short run."""
LONG: Final = 12
"""And of the long run, which asks some 13,400 queries of 80 worlds."""


def asked(seed: int, each: int, folder: Path) -> list[Verdict]:
    """Return what becomes of some queries of each family over the world of a seed."""
    world, chance = world_of(seed), random.Random(f"queries {seed}")
    with opened(world, folder) as pair:
        return [judged(make(chance, world), pair) for make in FAMILIES.values() for _ in range(each)]


@pytest.mark.parametrize("seed", numbers(1, 80))
def test_answers_are_those_of_duckdb(seed: int, tmp_path: Path) -> None:
    verdicts = asked(seed, SHORT if seed == 0 else LONG, tmp_path)
    assert not [verdict.said for verdict in verdicts if verdict.state in (DIFFERS, UNKNOWN)]
    counted = Counter(verdict.state for verdict in verdicts)
    assert counted[EQUAL] + counted[NOTED] > 0.7 * len(verdicts), "it would pass by being refused"


MISREAD: Final = {
    "flat": ("COUNT(*)", "COUNT(age)"),
    "times": ("'month'", "'quarter'"),
    "joined": ("COUNT(", "1 + COUNT("),
    "of_units": ("<= 1)", "<= 2)"),
    "members": ("NOT ", ""),
    "spelled": ("GROUP BY", "WHERE member GROUP BY"),
    "named_columns": ("SUM(w)", "SUM(w + 1)"),
    "truths": ("IS NOT FALSE", "IS TRUE"),
    "over": ("ORDER BY n", "ORDER BY s"),
    "numbers_of_results": ("UPPER(", "LOWER("),
    "composed": ("DESC", "ASC"),
    "spines": ("LEFT JOIN", "JOIN"),
    "public": ("rate >", "rate <"),
    "empty": ("COUNT(*)", "1 + COUNT(*)"),
}
"""Planted in each family: words that are taken for others."""


@pytest.mark.parametrize("family", one_in(6, FAMILIES))
def test_words_that_are_misread_are_found(family: str, pair: Pair) -> None:
    chance, (word, other) = random.Random(family), MISREAD[family]
    for _ in range(300):
        question = FAMILIES[family](chance, pair.world)
        text = question.text.replace(word, other)
        misread = replace(question, text=text, theirs=question.theirs or question.text)
        if text != question.text and judged(misread, pair).state == DIFFERS:
            return
    pytest.fail("nothing shows it")


# ---- small inputs that it found -------------------------------------------------------------------------------------


FEW: Final = "(SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan)"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (f"SELECT COUNT(*) AS x, SUM(n) AS s FROM {FEW} u WHERE n > 100000", (0, None)),
        (f"SELECT COUNT(*) + 1 AS x, COUNT(n) AS c, MAX(plan) AS m FROM {FEW} u WHERE n > 100000", (1, 0, None)),
        ("SELECT COUNT(*) AS x FROM (SELECT plan, COUNT(*) AS n FROM visits WHERE plan = 'nobody' GROUP BY 1) u", (0,)),
        (f"SELECT COUNT(*) AS x FROM {FEW} a JOIN {FEW} b USING (plan) WHERE a.n > 100000", (0,)),
        (f"SELECT COUNT(*) AS x FROM {FEW} u WHERE n > 100000 HAVING COUNT(*) > 0", None),
        (f"SELECT plan, COUNT(*) AS x FROM {FEW} u WHERE n > 100000 GROUP BY plan", None),
        (f"SELECT SUM(n) OVER () AS x FROM {FEW} u WHERE n > 100000 QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1", None),
    ],
)
def test_aggregates_over_no_rows_of_a_result_have_one_row(text: str, row: object, pair: Pair) -> None:
    assert judged(Question(text=text, dense=True), pair).state == EQUAL
    answer = pair.session.sql(text, epsilon=1)
    assert [tuple(each.values()) for each in answer] == ([] if row is None else [row])
    assert len(answer.to_arrow(0.9)) == len(answer)
    assert answer.sources or len(answer.consistent()) == len(answer)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("SELECT plan, COUNT(*) AS n FROM (SELECT person, plan FROM visits GROUP BY person, plan) u GROUP BY plan",
         {UNLISTED_KEYS}),
        ("SELECT v.plan, COUNT(*) AS n FROM guests g JOIN visits v USING (person) GROUP BY v.plan", {UNLISTED_KEYS}),
        ("SELECT DATE_TRUNC('month', v.day) AS m, COUNT(*) AS n FROM guests g JOIN visits v USING (person) GROUP BY 1",
         {UNLISTED_KEYS}),
        ("SELECT g.tier, COUNT(*) AS n FROM visits v LEFT JOIN guests g USING (person) GROUP BY g.tier",
         {UNLISTED_KEYS, UNMATCHED}),
        ("SELECT v.plan, COUNT(*) AS n FROM guests g JOIN visits v USING (person) WHERE v.plan = 'pro' GROUP BY 1",
         set()),
        ("SELECT COALESCE(g.tier, '?') AS t, COUNT(*) AS n FROM visits v LEFT JOIN guests g USING (person) GROUP BY 1",
         {UNLISTED_KEYS}),
    ],
)  # fmt: skip
def test_keys_of_joins_and_subqueries_say_which_rows_are_in_no_group(text: str, codes: set[str], pair: Pair) -> None:
    said = set(map(code_of, pair.session.explain(text, epsilon=1).notes))
    assert said & {UNLISTED_KEYS, UNMATCHED} == codes
