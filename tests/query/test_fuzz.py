"""Random questions over random neighbours: bound or refused, run without error, and moved no further than stated.

Every question is spelled in another way and bound again, to the same plan and the same SQL, priced, and asked of
neighbouring tables. Some, and those that are refused, go all the way through a session. `LAPWING_FUZZ=100000 pytest
tests/query/test_fuzz.py` asks more, as `python benchmarks/fuzz.py` does. A question that fails is printed with its
seed.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import asking, holders
from lapwing.engines.public import PublicData
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.opening import open_session
from lapwing.query import render, stability
from lapwing.query.bind import bind
from lapwing.query.calibrate import calibrate
from lapwing.query.plan import Plan, Question
from lapwing.query.relations import joins
from lapwing.query.relations.relation import Union, UnitJoin, Windowed
from lapwing.query.sql import relations as render_relations
from tests.fixed_entropy import StreamEntropy
from tests.query.neighbours import catalog
from tests.query.questions import Grower
from tests.query.worlds import Worlds, moved_too_far
from tests.replay import write

CASES = int(os.environ.get("LAPWING_FUZZ", "10000"))
CHUNKS = 20
RESPELLED, PRICED, AFRESH = 4, 3, 7
"""One question in so many is bound again from another spelling, is priced, cleans and keeps the rows it is asked of."""
BY_SESSION = 60
"""One question in so many goes through a session, and as many of those that are refused."""
KINDS = (("add_remove", 2), ("replace_one", 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where questions are asked: a catalog of each kind of neighbours, and worlds."""

    catalogs: dict[str, Catalog]
    facts: PublicData
    worlds: dict[str, Worlds]

    def elsewhere(self, chunk: int) -> "Place":
        drawn = {
            kind: Worlds.drawn(random.Random(f"{chunk} {kind}"), described) for kind, described in self.catalogs.items()
        }
        return replace(self, worlds=drawn)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fuzz")
    catalogs = {kind: _catalog(folder, kind, rows) for kind, rows in KINDS}
    facts = PublicData(catalogs["add_remove"])
    yield Place(catalogs=catalogs, facts=facts, worlds={}).elsewhere(0)
    facts.close()


def _catalog(folder: Path, kind: str, rows: int) -> Catalog:
    found = catalog(folder, rows=rows, neighbouring=kind)
    generous = replace(found.budget, epsilon=Fraction(10_000), delta=Fraction(1, 10), delta_keys=Fraction(1, 20))
    return replace(found, budget=generous)


# ---- one question ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, and all that chance decides about it."""

    seed: int
    text: str
    values: dict[str, int | str]
    kind: str

    @classmethod
    def of(cls, seed: int) -> "Case":
        grower = Grower(random.Random(seed))
        return cls(seed=seed, text=grower.question(), values=grower.values, kind=KINDS[seed % len(KINDS)][0])

    @property
    def chance(self) -> random.Random:
        return random.Random(f"of {self.seed}")

    def bound(self, place: Place, text: str | None = None) -> Plan:
        return bind(self.text if text is None else text, place.catalogs[self.kind], place.facts, self.values)

    @property
    def priced(self) -> bool:
        return self.seed // len(KINDS) % PRICED == 0

    def price(self, plan: Plan) -> dict[str, Any]:
        """Return what to ask it at."""
        said, private = plan.asked.epsilon is not None, bool(plan.question.private_keys)
        return ({} if said else {"epsilon": 1}) | ({"delta": 1e-6} if private else {})


PIECES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\w+|(?:GROUP|ORDER|PARTITION)\s+BY|GROUPING\s+SETS|\w+|\s+|.""", re.DOTALL
)
BLANKS = (" ", "\n", " \t ", " -- it's; a \"comment\n", " /* ; $p0 */ ")


def respelled(text: str, chance: random.Random) -> str:
    """Change what has no meaning: blanks, comments (but not inside GROUP BY and its like), and the case of words."""

    def other(piece: str) -> str:
        if piece.isspace():
            return chance.choice(BLANKS)
        return chance.choice([piece.upper(), piece.lower(), piece]) if piece[0] not in "'\"$" else piece

    return "".join(map(other, PIECES.findall(text)))


def found(seed: int, place: Place) -> tuple[Case, str]:
    """Ask one question; return what became of it, or fail."""
    case = Case.of(seed)
    try:
        plan = case.bound(place)
    except QueryRefused as refused:
        return case, refused.reason
    except Exception as error:
        raise AssertionError(case) from error
    try:
        _check_spelling(case, plan.question, place)
        _check_neighbours(case, plan.question, place)
        for search in plan.searches:
            _check_neighbours(case, search.question, place)
        if plan.question.private_keys or case.priced:
            calibrate(plan, place.catalogs[case.kind].budget, **case.price(plan))
    except QueryRefused as refused:  # of its price, for private keys
        return case, refused.reason
    except Exception as error:
        raise AssertionError(case) from error
    return case, "answered"


def _check_spelling(case: Case, question: Question, place: Place) -> None:
    if case.seed % RESPELLED:
        return
    try:
        again = case.bound(place, respelled(case.text, case.chance)).question
    except QueryRefused as refused:
        raise AssertionError(case) from refused
    assert again == question, case
    assert (str(again), render.answer(again)) == (str(question), render.answer(question)), case


def _check_neighbours(case: Case, question: Question, place: Place) -> None:
    here, chance = place.worlds[case.kind], case.chance
    together = not question.private_keys and chance.random() < 0.5
    pair = chance.choice(here.together if together else here.alone)
    for one, other in here.find(question, pair, place.facts, afresh=case.seed % AFRESH == 0):
        assert moved_too_far(question, one, other, case.kind) == [], (case, pair)


def check_sessions(asked: list[tuple[Case, str]], place: Place, folder: Path) -> None:
    """Ask some questions of files: what is refused leaves no trace, what is answered is answered again for nothing."""
    for kind, _ in KINDS:
        described = replace(place.catalogs[kind], folder=folder / kind, ledger="sqlite:ledger.db")
        described.folder.mkdir()
        write(place.worlds[kind].rows[0] + place.worlds[kind].rows[1], described.folder / "visits.parquet")
        (described.folder / "codes.parquet").write_bytes((place.catalogs[kind].folder / "codes.parquet").read_bytes())
        ours = [(case, outcome) for case, outcome in asked if case.kind == kind]
        number = max(1, len(ours) // BY_SESSION)
        refused = [case for case, outcome in ours if outcome != "answered"]
        with open_session(described, entropy=StreamEntropy(kind)) as session:
            before = session._ledger.state()
            for case in refused[:number]:
                with pytest.raises((QueryRefused, InvalidParameter)):
                    session.sql(case.text, case.values, epsilon=1)
            assert session._ledger.state() == before
            for case in [case for case, outcome in ours if outcome == "answered" and case.priced][:number]:
                price = case.price(case.bound(place))
                first = session.sql(case.text, case.values, **price)
                again = session.sql(case.text, case.values, **price)
                assert again.stored, case
                assert repr(again.rows()) == repr(first.rows()), case
                assert repr(again.interval()) == repr(first.interval()), case


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_questions(chunk: int, place: Place, tmp_path: Path) -> None:
    here = place.elsewhere(chunk)
    asked = [found(seed, here) for seed in range(chunk, CASES, CHUNKS)]
    check_sessions(asked, here, tmp_path)
    outcomes = Counter(outcome for _, outcome in asked)
    assert outcomes["answered"] > outcomes.total() * 0.6 - 20, outcomes  # of a few questions, anything goes


WORDS = [
    *("DISTINCT", "UNION ALL", " UNION S", "OVER (", "QUALIFY", "GROUP BY person", "LEFT JOIN", "IN (SELECT", "EXISTS"),
    *("FILTER", "WITH visits2", "HAVING", "LAG(", "NOT (", "AVG(", "COUNT(DISTINCT", "VAR_POP", "STDDEV", "CORR"),
    *("COVAR_", "MEDIAN", "MIN(", "QUANTILE", "WITHIN GROUP", "ROLLUP", "CUBE", "GROUPING SETS", "_groups_contrib"),
    *("max_rows_contrib", "per_group => (", "per_group => AUTO", "per_row =>", "epsilon =>", "OPTIONS", "$p", "LIKE"),
    *("REGEXP_", "DATE_DIFF", "LAST_DAY", "EXTRACT", "TRY_CAST", "BETWEEN", "||", "WIDTH_BUCKET", "//", "private keys"),
    *("ROWS BETWEEN", "RANGE BETWEEN", " WINDOW ", "IGNORE NULLS", "NTILE", "FIRST_VALUE", "INTERSECT", "EXCEPT"),
    *(".person = ", ".person AS ", "IN (SELECT person", "TIMESTAMP '", "seen"),
]


def test_every_construct_is_answered(place: Place) -> None:
    """Otherwise the fuzzer would pass by being refused."""
    answered: Counter[str] = Counter()
    for seed in range(0, 1600, 2):
        case = Case.of(seed)
        try:
            question = case.bound(place).question
        except QueryRefused:
            continue
        answered.update(word for word in WORDS if word in case.text)
        answered["private keys"] += bool(question.private_keys)
    assert min(answered[word] for word in WORDS) > 0, answered


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def first_found(place: Place, first: int = 0) -> int | None:
    """Ask questions until one shows the bug, and return its number."""
    for seed in range(first, first + 1000):
        try:
            found(seed, place)
        except AssertionError:
            return seed
    return None


window, per_unit, of_type = render_relations._window, render_relations._per_unit, render_relations._of_type
joined_by_unit = render_relations._joined_by_unit
numbered, counted, tree = render_relations._numbered, holders.counted, stability._tree


def grouped_together(node: Any, unit: str) -> str:
    text = per_unit(node, unit).replace(f"(SELECT {unit}", f"(SELECT MIN({unit}) AS {unit}")
    return text.replace(f"GROUP BY {unit}", "GROUP BY TRUE")


def joined_with_anyone(node: Any, unit: str) -> str:
    return joined_by_unit(node, unit).replace(f"ON ours.{unit} = theirs.", f"ON ours.{unit} > 0 OR 0 < theirs.")


def raising(value: str, kind: Any) -> str:
    return of_type(value, kind).replace("TRY_CAST", "CAST") + "::TINYINT"


def one_level_less(measure: Any, *facts: Any) -> Any:
    return tree(replace(measure, width=measure.width * measure.branching), *facts)


def one_too_many(function: str, unit: str, order: str, most: int) -> str:
    return numbered(function, unit, order, most + 1)


def one_key_each(pairs: Any) -> Any:
    found = counted(pairs)
    return found.set_column(found.num_columns - 2, "degree", [[1] * found.num_rows])


# Each with a question that shows it, from which on the test looks for one: another does when questions grow otherwise.
BUGS: dict[str, tuple[int, Any, str, Any]] = {
    "joins that multiply more than they say": (93, joins, "_multiplicity", lambda *_: 1),
    "windows over all units": (798, render_relations, "_window", lambda w, ties, _: window(w, ties, "TRUE")),
    "groups of all units": (44, render_relations, "_per_unit", grouped_together),
    "casts that raise": (27, render_relations, "_of_type", raising),
    "unions that count one part": (
        33,
        Union,
        "rows_per_unit",
        property(lambda node: node.parts[0].source.rows_per_unit),
    ),
    "joins of units that count one side": (
        128,
        UnitJoin,
        "rows_per_unit",
        property(lambda node: node.source.rows_per_unit),
    ),
    "joins with other units": (45, render_relations, "_joined_by_unit", joined_with_anyone),
    "any column taken for a row's number": (
        1133,
        Windowed,
        "numbers",
        property(lambda w: frozenset(c.name for c in w.added)),
    ),
    "units' sums that are not clamped": (57, render, "_kept_inside", lambda value, _: value),
    "a row or group too many": (141, render_relations, "_numbered", one_too_many),
    "trees of one level less": (30, stability, "_tree", one_level_less),
    "sets for the price of one": (94, stability, "_together", lambda sets: sets[0]),
    "units that seem to hold one key each": (57, asking, "counted", one_key_each),
    "rows that hold keys": (55, holders, "_distinct", np.sort),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(bug: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first, owner, name, planted = BUGS[bug]
    monkeypatch.setattr(owner, name, planted)
    assert first_found(place, first) is not None
