"""How close a query comes to what it is charged for: the realised loss of two neighbours, and a search for the worst.

The realised loss of neighbours is what the mechanisms of a query lose where its numbers move as far as they do between
these two, each measured number in the norm in which its noise is charged. The charged loss is what the quote says that
these mechanisms lose for all neighbours. Their ratio is exact. Above 1 it would be a breach; below 1 it says that a
bound is too great, or that worse neighbours were not found.

The search climbs: it changes a few values, or adds or removes rows, of the unit that differs and of others, and keeps a
change that loses no less. The tables are small and full of equal values, and have values at all bounds.
"""

import json
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.base import Exact
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.duckdb.queries import ask, together
from lapwing.mechanisms import Sensitivity
from lapwing.mechanisms.largest_cells import LargestCells
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts
from lapwing.query.bind.bind import bind
from lapwing.query.measures.distribution import Distribution
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import NoisyMeasure, Quote
from tests.support.query import composed
from tests.support.query.duckdb_worlds import DuckDBTables
from tests.support.query.worlds import PLACE, Ground, by_world, nodes_moved, of_world

Row = dict[str, Any]
Data = Mapping[str, Sequence[Row]]
"""The rows of all tables, by their names."""

CATALOG: Final = """
[dataset]
name = "club"
ledger = "sqlite:club.db"
[budget]
epsilon = 1000
delta = {delta}
{delta_keys}
measure = "{measure}"
neighbouring = "{neighbouring}"
[tables.people]
source = "people.parquet"
privacy_unit = "who"
unit = "person"
max_rows_per_unit = 1
[tables.people.columns]
who = {{ type = "integer" }}
home = {{ type = "integer" }}
age = {{ type = "integer", lower = 0, upper = 10 }}
[tables.visits]
source = "visits.parquet"
privacy_unit = "guest"
unit = "person"
max_rows_per_unit = {rows}
[tables.visits.columns]
guest = {{ type = "integer" }}
plan = {{ type = "string", values = ["a", "b", "c"] }}
note = {{ type = "string" }}
place = {{ type = "integer" }}
x = {{ type = "integer", lower = 0, upper = 10, nullable = false }}
y = {{ type = "integer", lower = -4, upper = 6, nullable = false }}
z = {{ type = "integer", lower = 2, upper = 10 }}
[tables.orders]
source = "orders.parquet"
link = {{ table = "people", on = {{ buyer = "who" }} }}
max_rows_per_unit = 3
[tables.orders.columns]
number = {{ type = "integer" }}
buyer = {{ type = "integer" }}
shop = {{ type = "integer" }}
kind = {{ type = "string", values = ["a", "b"] }}
paid = {{ type = "integer", lower = 0, upper = 9 }}
[tables.items]
source = "items.parquet"
link = {{ table = "orders", on = {{ ordered = "number" }} }}
max_rows_per_unit = 4
[tables.items.columns]
ordered = {{ type = "integer" }}
tag = {{ type = "integer" }}
cost = {{ type = "integer", lower = -5, upper = 20 }}
[tables.shops]
source = "shops.parquet"
privacy_unit = "owner"
max_rows_per_unit = 2
[tables.shops.columns]
owner = {{ type = "integer" }}
shop = {{ type = "integer" }}
town = {{ type = "integer" }}
[tables.tags]
source = "tags.parquet"
public = true
[tables.tags.columns]
tag = {{ type = "integer" }}
label = {{ type = "string" }}
"""
TAGS: Final = {"tag": [1, 2, 3, 3], "label": ["u", "v", "u", "w"]}

POOLS: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
    "people": {"home": (1, 2), "age": (0, 5, 10, None)},
    "visits": {
        "plan": ("a", "b", "c", None),
        "note": ("p", "q", "r"),
        "place": (1, 2, 5, 10),
        "x": (0, 1, 2, 5, 10),
        "y": (-4, 1, 5, 6),
        "z": (2, 5, 10, None),
    },
    "orders": {"shop": (1, 2, 3), "kind": ("a", "b", None), "paid": (0, 5, 9)},
    "items": {"ordered": (1, 2, 3), "tag": (1, 2, 3), "cost": (-5, 0, 20)},
    "shops": {"shop": (1, 2, 3), "town": (1, 2)},
}
"""What values are tried; those that say whose a row is are given when it is placed."""
UNITS: Final = {"people": "who", "visits": "guest", "orders": "buyer", "shops": "owner"}
MOST: Final = {"people": 1, "orders": 3, "items": 4, "shops": 2}
"""How many rows of a unit are tried: as many as there may be, so that it does not depend on its name which are kept."""
OTHERS: Final = (3, 4, 5)
"""Units that both neighbours have."""
FAR: Final = 100
"""Orders of a unit begin at so many times its number."""

TEXTS: Final = frozenset({"plan", "note", "kind"})
SCHEMAS: Final = {
    name: pa.schema(
        [
            (column, pa.string() if column in TEXTS else pa.int64())
            for column in dict.fromkeys(
                [*([UNITS[name]] if name in UNITS else []), *["number"] * (name == "orders"), *pool]
            )
        ]
    )
    for name, pool in POOLS.items()
}


def _no_draw(chance: random.Random, described: Catalog) -> tuple[Data, Data]:
    raise NotImplementedError


GROUND: Final = Ground(
    draw=_no_draw,
    schemas=SCHEMAS,
    types={
        name: {field.name: "VARCHAR" if field.name in TEXTS else "BIGINT" for field in schema}
        for name, schema in SCHEMAS.items()
    },
    keys=frozenset(),
)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of query.

    Args:
        name: as the documentation calls it.
        text: a query of this form.
        rows: the most rows of a unit in `visits`.
        reason: why no neighbours reach 1, or what would have to be proven.
    """

    name: str
    text: str
    rows: int = 2
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A kind of ledger and of neighbours."""

    measure: str
    neighbouring: str

    def __str__(self) -> str:
        return f"{self.measure}, {self.neighbouring}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two data sets: what others have, beside the rows of one unit or of the one that takes its place."""

    gone: Data
    comes: Data
    others: Mapping[int, Data]

    @property
    def sides(self) -> tuple[Mapping[int, Data], Mapping[int, Data]]:
        """What every unit has, in both."""
        return {**self.others, 1: self.gone}, {**self.others, 2: self.comes}

    def record(self) -> dict[str, Any]:
        """Return it as it is kept."""
        return {
            "gone": self.gone,
            "comes": self.comes,
            "others": {str(unit): data for unit, data in self.others.items()},
        }

    @classmethod
    def from_record(cls, kept: Mapping[str, Any]) -> "Neighbours":
        """Return what was kept."""
        return cls(
            gone=kept["gone"],
            comes=kept["comes"],
            others={int(unit): data for unit, data in kept["others"].items()},
        )


def placed(data: Data, unit: int) -> dict[str, list[Row]]:
    """Return rows as those of a unit: with its name, and numbers of orders that are its own."""
    found: dict[str, list[Row]] = {}
    for name, rows in data.items():
        own = {} if name not in UNITS else {UNITS[name]: unit}
        found[name] = [row | own for row in rows]
        for place, row in enumerate(found[name]):
            if name == "orders":
                row["number"] = FAR * unit + place + 1
            if name == "items":
                row["ordered"] += FAR * unit
    return found


def together_in(worlds: Sequence[Mapping[int, Data]]) -> dict[str, list[Row]]:
    """Return tables with the rows of all units of some worlds."""
    each = [placed(data, unit + PLACE * world) for world, units in enumerate(worlds) for unit, data in units.items()]
    return {name: [row for data in each for row in data.get(name, ())] for name in SCHEMAS}


# ---- the realised loss -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Club:
    """The tables, in one ledger's catalog, and the engine that is asked."""

    catalog: Catalog
    facts: PublicData
    database: DuckDBTables

    def priced(self, form: Form) -> Quote:
        """Return what a query measures and what that is charged for, at a price of ε = 1."""
        plan = bind(form.text, self.catalog, self.facts)
        quote = calibrate(
            plan, self.catalog.budget, epsilon=1, delta=Fraction(1, 10**6) if plan.question.private_keys else None
        )
        return quote if quote.vector is None or not quote.vector.is_bought else quote.vector.bought

    def exact(self, question: Question, data: Data) -> Exact:
        """Return the exact numbers of a question."""
        for table in question.lineage:
            rows = pa.Table.from_pylist(list(data[table.name]), schema=SCHEMAS[table.name])
            self.database.connection.register(f"side_{table.name}", rows)
        held = self.database.connection

        def fetch(query: str) -> Any:
            return held.execute(query).fetchall()

        def columns(query: str, take: Callable[[pa.RecordBatchReader], Any]) -> Any:
            return take(held.sql(query).to_arrow_reader())

        layers = self.database.layers(question, "side", self.facts, afresh=True)
        return together([ask(question, lambda _: layers, fetch, columns)], question)

    def realised(self, priced: Quote, each: Sequence[Neighbours]) -> list[Fraction]:
        """Return what the mechanisms of a query lose between two neighbours, over what they are charged for."""
        ones, others = (self._of_sides(priced.question, sides) for sides in zip(*(n.sides for n in each), strict=True))
        charged, kind = priced.lost(priced.terms).amount, priced.loss.kind
        ratios = []
        for one, other in zip(ones, others, strict=True):
            lost = [_lost(term, moved(term, priced.question, one, other), kind) for term in priced.terms]
            ratios.append(sum(lost, Fraction(0)) / charged)
        return ratios

    def _of_sides(self, question: Question, sides: Sequence[Mapping[int, Data]]) -> list[Exact]:
        """Ask one question of all sides: by world, where rows of one world never meet those of another.

        The two sides of neighbours have one number, as what is kept of a unit's rows depends on its name.
        """
        if question.units_of_row > 1 or question.private_keys:
            return [self.exact(question, together_in([side])) for side in sides]
        exact = self.exact(by_world(question, len(sides)), together_in(sides))
        return [of_world(exact, world) for world in range(len(sides))]


@contextmanager
def club(folder: Path, setting: Setting, rows: int = 2) -> Iterator[Club]:
    """Open the tables with a ledger of some kind."""
    pq.write_table(pa.table(TAGS), folder / "tags.parquet")
    pure = setting.measure == "pure"
    text = CATALOG.format(
        measure=setting.measure,
        neighbouring=setting.neighbouring,
        delta="0" if pure else "1e-5",
        delta_keys="" if pure else "delta_keys = 1e-6",
        rows=rows,
    )
    catalog = loads(text, file="club", folder=folder)
    facts = PublicData(catalog)
    connection = composed.connect()
    try:
        yield Club(catalog, facts, DuckDBTables(GROUND, connection))
    finally:
        connection.close()
        facts.close()


def moved(term: NoisyMeasure, question: Question, one: Exact, other: Exact) -> list[int]:
    """Return by how much every entry of a measured vector moves, of those that do."""
    measure = term.measure
    if isinstance(measure, Distribution):
        chosen = isinstance(term.mechanism, QuantileOfCounts | QuantilesOfCounts)
        return nodes_moved(measure, one, other, levels=1 if chosen else None)
    place, zero = question.numbers.index(measure), (0,) * len(question.numbers)
    cells = one.cells.keys() | other.cells.keys()
    every = [one.cells.get(cell, zero)[place] - other.cells.get(cell, zero)[place] for cell in cells]
    return [difference for difference in every if difference]


def _lost(term: NoisyMeasure, moved: Sequence[int], kind: str) -> Fraction:
    if not moved:
        return Fraction(0)
    if isinstance(term.mechanism, LargestCells):  # cells that stay where they are count as well
        most = max(0, *moved) - min(0, *moved)
        return term.mechanism.loss(Sensitivity(l1=most, l2_squared=most**2), kind).amount
    l1, l2_squared = sum(map(abs, moved)), sum(difference**2 for difference in moved)
    return term.mechanism.loss(Sensitivity(l1=l1, l2_squared=l2_squared), kind).amount


# ---- the search ------------------------------------------------------------------------------------------------------

KINDS: Final = (frozenset({"people", "visits", "orders", "items"}), frozenset({"shops"}))
"""The tables of each kind of unit: neighbours differ in one unit of one kind."""
Rows = dict[str, list[Row]]
AT_ONCE: Final = 12
"""How many neighbours are tried at a time."""


@dataclass(slots=True)
class Climb:
    """A search from a random start. What it ends with is what it found worst.

    Args:
        tables: that the query reads.
        rows: the most rows of a unit in `visits`.
        replaced: whether one unit takes another's place.
        losses: of neighbours, several at a time.
    """

    chance: random.Random
    tables: Sequence[str]
    rows: int
    replaced: bool
    losses: Callable[[Sequence[Neighbours]], Sequence[Fraction]]
    worst: Neighbours = field(init=False)
    ratio: Fraction = field(init=False)

    def run(self, rounds: int) -> None:
        """Change rows round by round; stop where no more can be lost."""
        kind = self.chance.choice(self._kinds)
        own = [name for name in self.tables if name in kind]
        self.ratio = Fraction(-1)
        self._take([self._start(own) for _ in range(AT_ONCE)])
        for _ in range(rounds):
            if self.ratio >= 1:
                return
            self._take([self._changed(self.worst) for _ in range(AT_ONCE)])

    def _take(self, tried: Sequence[Neighbours]) -> None:
        found = max(zip(self.losses(tried), tried, strict=True), key=lambda one: one[0])
        if found[0] >= self.ratio:
            self.ratio, self.worst = found

    @property
    def _kinds(self) -> list[frozenset[str]]:
        return [kind for kind in KINDS if kind & set(self.tables)]

    def _start(self, own: Sequence[str]) -> Neighbours:
        alike = self.chance.random() < 0.5
        shared = [name for name in self.tables if self.chance.random() < 0.8]
        return Neighbours(
            gone={name: self._rows(name, alike) for name in own},
            comes={name: self._rows(name, alike) if self.replaced else [] for name in own},
            others={unit: {name: self._rows(name, alike=False) for name in shared} for unit in OTHERS},
        )

    def _rows(self, name: str, alike: bool) -> list[Row]:
        most = MOST.get(name, self.rows)
        if alike:
            return [dict(row) for row in [self._row(name)] * most]
        return [self._row(name) for _ in range(self.chance.randint(min(1, most - 1), most))]

    def _row(self, name: str) -> Row:
        return {column: self.chance.choice(pool) for column, pool in POOLS[name].items()}

    def _changed(self, before: Neighbours) -> Neighbours:
        """Return neighbours with a few changes."""
        for _ in range(self.chance.choice((1, 1, 2, 4))):
            before = self._with_change(before)
        return before

    def _with_change(self, before: Neighbours) -> Neighbours:
        """Return neighbours with one change, in the unit that differs or in another."""
        gone, comes, others = _copy(before.gone), _copy(before.comes), {u: _copy(d) for u, d in before.others.items()}
        sides = [gone, gone, *([comes, comes] if self.replaced else []), *others.values()]
        side = self.chance.choice(sides)
        name = self.chance.choice(list(side) or list(gone))
        rows, most = side.setdefault(name, []), MOST.get(name, self.rows)
        column = self.chance.choice(list(POOLS[name]))
        value = self.chance.choice(POOLS[name][column])
        match self.chance.randrange(6):
            case 0 if len(rows) < most:
                rows.append(self._row(name) if not rows or self.chance.random() < 0.5 else dict(rows[0]))
            case 1 if rows:
                rows.pop(self.chance.randrange(len(rows)))
            case 2:
                for row in rows:
                    row[column] = value
            case 3 if len(rows) > 1:
                rows[self.chance.randrange(len(rows))] = dict(self.chance.choice(rows))
            case _ if rows:
                self.chance.choice(rows)[column] = value
        return Neighbours(gone=gone, comes=comes, others=others)


def _copy(data: Data) -> Rows:
    return {name: [dict(row) for row in rows] for name, rows in data.items()}


def worst(here: Club, form: Form, chance: random.Random, *, starts: int, rounds: int) -> tuple[Fraction, Neighbours]:
    """Return the greatest ratio that a search from several starts finds, and its neighbours."""
    priced = here.priced(form)
    tables = [table.name for table in priced.question.lineage]
    replaced = here.catalog.budget.neighbouring == "replace_one"
    found: list[tuple[Fraction, Neighbours]] = []
    for _ in range(starts):
        climb = Climb(chance, tables, form.rows, replaced, lambda each: here.realised(priced, each))
        climb.run(rounds)
        found.append((climb.ratio, climb.worst))
        if climb.ratio >= 1:
            break
    return max(found, key=lambda one: one[0])


# ---- forms of queries ------------------------------------------------------------------------------------------------

FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "query"


def _forms() -> tuple[Form, ...]:
    found = tomllib.loads((FIXTURES / "forms.toml").read_text(encoding="utf-8"))["form"]
    return tuple(
        Form(
            name=form["name"],
            text=" ".join(form["sql"].split()),
            rows=form.get("rows", 2),
            reason=" ".join(form.get("reason", "").split()),
        )
        for form in found
    )


FORMS: Final = _forms()


# ---- what is kept ----------------------------------------------------------------------------------------------------

SETTINGS: Final = tuple(
    Setting(measure=measure, neighbouring=neighbouring)
    for measure in ("pure", "gdp")
    for neighbouring in ("add_remove", "replace_one")
)
KEPT: Final = FIXTURES / "worst_neighbours.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The worst neighbours that were found of a form.

    Args:
        ratio: realised over charged, rounded down.
    """

    form: Form
    setting: Setting
    ratio: Fraction
    neighbours: Neighbours

    @property
    def line(self) -> str:
        """It, as a line of the file."""
        found = {
            "form": self.form.name,
            "measure": self.setting.measure,
            "neighbouring": self.setting.neighbouring,
            "ratio": str(self.ratio),
        }
        return json.dumps(found | self.neighbours.record(), separators=(",", ":"))

    @property
    def loss(self) -> float:
        """The ratio of losses, as people read them: of ε, or of μ."""
        return float(self.ratio) if self.setting.measure == "pure" else float(self.ratio) ** 0.5


def kept() -> list[Kept]:
    """Read the worst neighbours of all forms."""
    forms = {form.name: form for form in FORMS}
    lines = map(json.loads, KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else [])
    return [
        Kept(
            form=forms[line["form"]],
            setting=Setting(measure=line["measure"], neighbouring=line["neighbouring"]),
            ratio=Fraction(line["ratio"]),
            neighbours=Neighbours.from_record(line),
        )
        for line in lines
        if line["form"] in forms
    ]


def keep(found: Sequence[Kept]) -> None:
    """Write the worst neighbours, in the order of the forms."""
    forms = [form.name for form in FORMS]
    ordered = sorted(found, key=lambda one: (forms.index(one.form.name), SETTINGS.index(one.setting)))
    KEPT.write_text("".join(f"{one.line}\n" for one in ordered), encoding="utf-8")


def rounded_down(ratio: Fraction) -> Fraction:
    """Return a ratio in hundred-thousandths, 1 as it is."""
    return Fraction(int(ratio * 100_000), 100_000)


BEGIN, END = "<!-- worst neighbours: written by benchmarks/tightness.py --table -->", "<!-- end of worst neighbours -->"


def with_table(page: str, found: Sequence[Kept]) -> str:
    """Return a page with the table of what was found in the place of its own."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{after}"


def table(found: Sequence[Kept]) -> str:
    """Return the table: a form a row, a kind of ledger and of neighbours a column."""
    ratios = {(one.form.name, one.setting): f"{one.loss:.3f}" for one in found}
    head = ["form", *(f"{setting.measure}, `{setting.neighbouring}`" for setting in SETTINGS), "if it is below 1"]
    rows = [[f.name, *(ratios.get((f.name, s), "–") for s in SETTINGS), f.reason] for f in FORMS]
    lines = [head, ["---", *["---:"] * len(SETTINGS), "---"], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
