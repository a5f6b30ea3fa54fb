"""Random questions over random neighbours: bound or refused, run without error, and moved no further than stated.

Every question is spelled in another way and bound again, to the same plan and the same SQL, priced, and asked of
neighbours. Of some, every unit's rows are looked at: there are no more than the plan says, and they are the same with
and without another unit. Some, and those that are refused, go all the way through a session. A question that fails is
printed with its seed.

The short run asks the questions of a corpus (`corpus`), the long run those and 10,000 others, drawn from its seed.
`LAPWING_FUZZ=100000` asks more, as `python benchmarks/fuzz.py` does. Of ten questions three are about linked tables,
and one is about rows that meet others by comparisons.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, cast

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.query.plan.capabilities import EVERYTHING, Capabilities
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.calibrate import calibrate
from lapwing.release.usable import refusal_of
from tests.support.effort import SEED
from tests.support.fixed_entropy import StreamEntropy
from tests.support.query import linked_shares as shares
from tests.support.query.duckdb_worlds import DuckDBTables
from tests.support.query.rendering import sets_of_units
from tests.support.query.worlds import Database, Ground, Worlds, moved_too_far, strayed
from tests.support.replay import write

CASES: Final = int(os.environ.get("LAPWING_FUZZ", "10000"))
LINKED: Final = CASES * 3 // 10
MATCHED: Final = CASES // 10
FIRST: Final = SEED * 1_000_000_000
"""The number of the first random question."""
RESPELLED, PRICED, AFRESH = 4, 3, 7
"""One question in so many is bound again from another spelling, is priced, cleans and keeps the rows it is asked of."""
BY_SESSION = 60
"""One question in so many goes through a session, and as many of those that are refused."""

SHARED = "answered, of rows of several units"

Values = dict[str, int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where questions are asked: a catalog of each kind of neighbours, and worlds.

    Args: grow: makes a question, and the values of its parameters, of a number and a kind; unit_by_unit: of one
        question in so many, every unit's rows are looked at; database: where an engine has the tables of worlds;
        capabilities: what that engine has; printed: the SQL that it runs for a question.
    """

    catalogs: dict[str, Catalog]
    facts: PublicData
    ground: Ground
    grow: Callable[[int, str], tuple[str, Values]]
    worlds: dict[str, Worlds]
    unit_by_unit: int
    database: Callable[[Ground], Database] = DuckDBTables.of
    capabilities: Capabilities = EVERYTHING
    printed: Callable[[Question], str] = render.answer

    def elsewhere(self, chunk: int, *kinds: str) -> "Place":
        """Return it with other worlds, of all kinds of neighbours or of some."""
        drawn = {}
        for kind in kinds or self.catalogs:
            chance, database = random.Random(f"{chunk} {kind}"), self.database(self.ground)
            drawn[kind] = Worlds.drawn(chance, self.catalogs[kind], self.ground, database)
        return replace(self, worlds=drawn)

    def kind_of(self, seed: int) -> str:
        return list(self.catalogs)[seed % len(self.catalogs)]


def generous(found: Catalog) -> Catalog:
    """Return a catalog whose budget lasts."""
    budget = replace(found.budget, epsilon=Fraction(10_000), delta=Fraction(1, 10), delta_keys=Fraction(1, 20))
    return replace(found, budget=budget)


# ---- one question ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, and all that chance decides about it."""

    seed: int
    text: str
    values: Values
    kind: str

    @classmethod
    def of(cls, seed: int, place: Place) -> "Case":
        kind = place.kind_of(seed)
        text, values = place.grow(seed, kind)
        return cls(seed=seed, text=text, values=values, kind=kind)

    @property
    def chance(self) -> random.Random:
        return random.Random(f"of {self.seed}")

    def bound(self, place: Place, text: str | None = None) -> Plan:
        asked, capabilities = self.text if text is None else text, place.capabilities
        return bind(asked, place.catalogs[self.kind], place.facts, self.values, capabilities=capabilities)

    @property
    def priced(self) -> bool:
        return self.seed // 2 % PRICED == 0

    def price(self, plan: Plan) -> dict[str, Any]:
        """Return what to ask it at."""
        said, private = plan.price_request.epsilon is not None, bool(plan.question.private_keys)
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


def found(case: Case, place: Place) -> tuple[Case, str]:
    """Ask one question; return what became of it, or fail."""
    try:
        plan = case.bound(place)
    except QueryRefused as refused:
        return case, refused.reason
    except Exception as error:
        raise AssertionError(case) from error
    try:
        _check_spelling(case, plan.question, place)
        several = plan.question.units_of_row > 1
        for question in (plan.question, *(search.question for search in plan.searches)):
            (_check_shares if several else _check_neighbours)(case, question, place)
        if not several:
            _check_units(case, plan.question, place)
        if plan.question.private_keys or case.priced:
            calibrate(plan, place.catalogs[case.kind].budget, **case.price(plan))
    except QueryRefused as refused:  # of its price, for private keys
        return case, refused.reason
    except Exception as error:
        raise AssertionError(case) from error
    return case, SHARED if several else "answered"


def _check_spelling(case: Case, question: Question, place: Place) -> None:
    if case.seed % RESPELLED:
        return
    try:
        again = case.bound(place, respelled(case.text, case.chance)).question
    except QueryRefused as refused:
        raise AssertionError(case) from refused
    assert again == question, case
    printed = sets_of_units if question.units_of_row > 1 else place.printed
    assert (str(again), printed(again)) == (str(question), printed(question)), case


def _check_neighbours(case: Case, question: Question, place: Place) -> None:
    here, chance = place.worlds[case.kind], case.chance
    together = not question.private_keys and chance.random() < 0.5
    pair = chance.choice(here.together if together else here.alone)
    for one, other in here.find(question, pair, place.facts, afresh=case.seed % AFRESH == 0):
        assert moved_too_far(question, one, other, here.neighbouring) == [], (case, pair)


def _check_units(case: Case, question: Question, place: Place) -> None:
    if case.seed % place.unit_by_unit:
        return
    here = place.worlds[case.kind]
    pair = case.chance.choice((*here.alone, *here.together))
    one, other = (here.database.rows_of_units(question, side, place.facts) for side in (pair.one, pair.other))
    assert strayed(question, one, other, here.neighbouring) == [], (case, pair)


def _check_shares(case: Case, question: Question, place: Place) -> None:
    """Check what is claimed of rows that several units share, and that stored rows say the same as all of them."""
    here, chance = place.worlds[case.kind], case.chance
    pair = chance.choice(here.alone)
    ((one, other),) = here.find(question, pair, place.facts, afresh=False)
    assert moved_too_far(question, one, other, here.neighbouring) == [], (case, pair)
    database = cast(DuckDBTables, here.database)  # no other engine has such rows
    left, right = (shares.sets_of(question, database, side, place.facts) for side in (pair.one, pair.other))
    assert shares.strayed(question, left, right, here.neighbouring) == [], (case, pair)
    assert shares.untrue(question, left, one) == [], (case, pair)
    assert shares.untrue(question, right, other) == [], (case, pair)
    if case.seed % AFRESH == 0 and question.units_of_row == 2:  # with more there are several values to choose from
        assert list(here.find(question, pair, place.facts, afresh=True)) == [(one, other)], (case, pair)


def check_sessions(asked: list[tuple[Case, str]], place: Place, folder: Path) -> None:
    """Ask some questions of files: what is refused leaves no trace, what is answered is answered again for nothing."""
    for kind, found in place.catalogs.items():
        described = replace(found, folder=folder / kind, ledger="sqlite:ledger.db")
        described.folder.mkdir()
        _write(place.worlds[kind], described.folder)
        (described.folder / "codes.parquet").write_bytes((found.folder / "codes.parquet").read_bytes())
        ours = [(case, outcome) for case, outcome in asked if case.kind == kind]
        number = max(1, len(ours) // BY_SESSION)
        refused = [case for case, outcome in ours if not outcome.startswith("answered")]
        with open_session(described, entropy=StreamEntropy(kind)) as session:
            before = session._ledger.state()
            for case in refused[:number]:
                with pytest.raises((QueryRefused, InvalidParameter)):
                    session.sql(case.text, case.values, epsilon=1)
            assert session._ledger.state() == before
            for case in [case for case, outcome in ours if outcome.startswith("answered") and case.priced][:number]:
                plan = case.bound(place)
                if refusal_of(plan) is not None:  # of no use to anybody
                    continue
                price = case.price(plan)
                first = session.sql(case.text, case.values, **price)
                again = session.sql(case.text, case.values, **price)
                assert again.stored or not first.cost.amount, case  # no rows are possible, and nothing is charged
                assert repr(again.rows()) == repr(first.rows()), case
                assert repr(again.interval()) == repr(first.interval()), case


def _write(worlds: Worlds, folder: Path) -> None:
    """Write two worlds into files."""
    ground = worlds.ground
    for name, schema in ground.schemas.items():
        rows = [ground.placed(row, world) for world, data in enumerate(worlds.data[:2]) for row in data[name]]
        write(rows, folder / f"{name}.parquet", schema)


def ask_some(cases: Iterable[Case], here: Place, folder: Path, share: float = 0.6) -> None:
    """Ask questions; enough of them have to be answered. Args: share: at least, of all."""
    require_answers(outcomes_of(cases, here, folder), share)


def outcomes_of(cases: Iterable[Case], here: Place, folder: Path) -> Counter[str]:
    """Ask questions, some through sessions too, and count what became of them."""
    asked = [found(case, here) for case in cases]
    check_sessions(asked, here, folder)
    return Counter(outcome for _, outcome in asked)


def require_answers(outcomes: Counter[str], share: float) -> None:
    """Require that enough questions were answered. Args: share: at least, of all."""
    # Of a few questions, anything goes.
    assert outcomes["answered"] + outcomes[SHARED] > outcomes.total() * share - 20, outcomes


def drawn(numbers: Iterable[int], place: Place) -> Iterator[Case]:
    """Draw random questions, which are others with another seed of the run."""
    return (Case.of(FIRST + number, place) for number in numbers)


def answered(words: Sequence[str], cases: Iterable[Case], place: Place) -> Counter[str]:
    """Count the questions that are answered in which there are words, or private keys."""
    counts: Counter[str] = Counter()
    for case in cases:
        try:
            question = case.bound(place).question
        except QueryRefused:
            continue
        counts.update(word for word in words if word in case.text)
        counts["private keys"] += bool(question.private_keys)
    return counts


def first_found(place: Place, first: int = 0, most: int = 1000) -> int | None:
    """Ask questions of the kinds that have worlds until one shows the bug, and return its number."""
    for seed in (number for number in range(first, first + most) if place.kind_of(number) in place.worlds):
        try:
            found(Case.of(seed, place), place)
        except AssertionError:
            return seed
    return None


def found_with(bug: tuple[int, Any, str, Any], place: Place, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Plant a bug, and return the number of the question that shows it.

    Args: bug: the number to begin with, and what is planted: an object, the name of an attribute, and its value.
    """
    first, owner, name, planted = bug
    monkeypatch.setattr(owner, name, planted)
    return first_found(place, first)
