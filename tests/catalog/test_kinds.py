"""What a catalog says beyond protected tables and their columns: public tables, views, parts, promises."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.catalog import Catalog, Column, PublicTable, Table, View, column_checks
from lapwing.catalog.digests import table_facts
from lapwing.catalog.toml import dumps, loads
from lapwing.catalog.view import LONGEST_VIEW
from lapwing.errors import CatalogError
from tests.support.catalog.examples import FOLDER, TEXT, catalog, changed
from tests.support.effort import one_in

MORE = (
    TEXT.replace("max_rows_per_unit = 10", 'max_rows_per_unit = 10\npart = "site"')
    + """\
site = { type = "integer", values = [3, 1, 2] }
bill = { type = "decimal", lower = 0.005, upper = 9, step = 0.01, nullable = false }

[tables.codes]
source = "codes.csv"
public = true

[tables.codes.columns]
code = { type = "string" }
chapter = { type = "integer" }
weight = { type = "decimal", step = 0.01 }
size = { type = "string", values = ["S", "M", "L"] }
share = { type = "float", lower = 0, upper = 1 }

[views.adults]
sql = "SELECT * FROM visits WHERE age >= 18"

[views."in pain"]
sql = '''
SELECT visits.*, "weight"
FROM visits JOIN codes ON plan = code -- \\ not an escape
'''
"""
)


def more(old: str = "", new: str = "") -> Catalog:
    """Read the longer example, with one place changed."""
    assert not old or MORE.count(old) == 1, old
    return catalog(MORE.replace(old, new) if old else MORE)


def test_the_longer_example_is_read() -> None:
    read = more()
    assert [table.name for table in read.tables] == ["visits"]
    (codes,) = read.public_tables
    assert codes == PublicTable(
        name="codes",
        source="codes.csv",
        columns=(
            Column(name="code", type="string"),
            Column(name="chapter", type="integer"),
            Column(name="weight", type="decimal", step=Fraction(1, 100)),
            Column(name="size", type="string", values=("S", "M", "L")),
            Column(name="share", type="float", lower=Fraction(0), upper=Fraction(1)),
        ),
    )
    assert read.source_path(codes) == FOLDER / "codes.csv"
    assert read.views[0] == View(name="adults", sql="SELECT * FROM visits WHERE age >= 18")
    assert read.views[1].sql.endswith("-- \\ not an escape\n")
    (visits,) = read.tables
    assert visits.part_column == Column(name="site", type="integer", values=(3, 1, 2))
    assert not visits.columns[-1].nullable


def test_it_is_written_as_it_was_read() -> None:
    read = more()
    assert loads(dumps(read), file="x", folder=FOLDER) == read
    assert "public = true" in dumps(read)
    assert "nullable = false" in dumps(read)


def test_public_false_and_nullable_true_say_what_is_so_anyway() -> None:
    said = changed('source = "visits.parquet"', 'source = "visits.parquet"\npublic = false')
    assert (
        catalog(said.replace('town = { type = "string" }', 'town = { type = "string", nullable = true }')) == catalog()
    )


def test_a_table_without_parts_has_no_part_column() -> None:
    assert catalog().tables[0].part_column is None


def test_rows_that_stand_alone_may_have_parts() -> None:
    site = Column(name="site", type="integer", values=(1, 2))
    by_row = Table(name="t", source="t.csv", privacy_unit="row", max_rows_per_unit=1, columns=(site,), part="site")
    assert by_row.part_column == site


# ---- refusals --------------------------------------------------------------------------------------------------------

PUBLIC = 'source = "codes.csv"'
REFUSED = {
    "public unit": (PUBLIC, f'{PUBLIC}\nprivacy_unit = "p"', "tables.codes.privacy_unit: nobody is protected in a"),
    "public rows": (PUBLIC, f"{PUBLIC}\nmax_rows_per_unit = 1", "tables.codes.max_rows_per_unit: nobody is protected"),
    "public link": (PUBLIC, f'{PUBLIC}\nlink = {{ table = "visits" }}', "tables.codes.link: nobody is protected in a"),
    "public units": (PUBLIC, f'{PUBLIC}\nunit = "person"', "tables.codes.unit: nobody is protected in a public"),
    "public part": (PUBLIC, f'{PUBLIC}\npart = "code"', "tables.codes.part: nobody is protected in a public table"),
    "public key": (PUBLIC, f"{PUBLIC}\nkey = 1", 'tables.codes: unknown "key"; allowed: source, public, '
                   'where, delimiter, quote, encoding, columns'),
    "public text": ("public = true", 'public = "yes"', 'tables.codes.public: "yes" is a string; write true or false'),
    "public number": ("public = true", "public = 1", "tables.codes.public: 1 is an integer; write true or false"),
    "no source": (PUBLIC, "", "tables.codes.source: missing; add for example source"),
    "empty source": (PUBLIC, 'source = ""', "tables.codes.source: use at least one character"),
    "protected source": (PUBLIC, 'source = "./x/../visits.parquet"', "tables.codes.source: "
                         '"./x/../visits.parquet" is also the source of the protected table "visits"; what is'),
    "public step": (', step = 0.01 }\nsize', " }\nsize", "tables.codes.columns.weight.step: missing; a decimal of a"),
    "public other": ('"L"]', '"L"], other = "x"', "tables.codes.columns.size.other: the table is public"),
    "public nullable": ('"L"]', '"L"], nullable = false', "tables.codes.columns.size.nullable: the table is public"),
    "public bounds": ("upper = 1 }\n\n[views", "upper = -1 }\n\n[views", "tables.codes.columns.share.lower: 0 is"),
    "public names": ("chapter =", "CODE =", 'tables.codes.columns: "code" and "CODE" are the same name'),
    "view like a table": ("[views.adults]", "[views.VISITS]", 'views: "visits" and "VISITS" are the same name'),
    "view like a public table": ("[views.adults]", "[views.codes]", 'views: "codes" and "codes" are the same name'),
    "views alike": ('"in pain"', "ADULTS", 'views: "adults" and "ADULTS" are the same name'),
    "view without sql": ('sql = "SELECT', 'text = "SELECT', 'views.adults: unknown "text"; allowed: sql'),
    "empty view": ('[views."in pain"]', '[views.none]\n[views."in pain"]', "views.none.sql: missing; add for example"),
    "blank view": ('"SELECT * FROM visits WHERE age >= 18"', '" \\n"', "views.adults.sql: use at least one character"),
    "view of a number": ('"SELECT * FROM visits WHERE age >= 18"', "1", "views.adults.sql: 1 is an integer; write a"),
    "NUL in a view": ("* FROM visits WHERE", "\\u0000", "views.adults.sql: use at least one character, valid UTF-8"),
    "nameless view": ("[views.adults]", '[views.""]', 'views."": use at least one character'),
    "view not a section": ("[views.adults]\nsql =", "[views]\nadults =", "views.adults: "),
    "part unknown": ('part = "site"', 'part = "ward"', 'tables.visits.part: there is no column "ward"; write one of '
                     "those with values: plan, paid, day, site"),
    "part in another case": ('part = "site"', 'part = "Site"', 'tables.visits.part: there is no column "Site"'),
    "part a number": ('part = "site"', "part = 1", "tables.visits.part: 1 is an integer; write a string"),
    "part without values": ('part = "site"', 'part = "town"', 'tables.visits.part: the column "town" lists no values'),
    "part with other": ('part = "site"', 'part = "plan"', 'tables.visits.part: the column "plan" has other, which'),
    "part the unit": ('privacy_unit = "person_id"', 'privacy_unit = "site"', 'tables.visits.part: "site" is the'),
    "promise without a value": ('town = { type = "string" }', 'town = { type = "string", nullable = false }',
                                "tables.visits.columns.town.nullable: a promise needs a value for NULLs to count as"),
    "promise as text": ("nullable = false", 'nullable = "no"', 'tables.visits.columns.bill.nullable: "no" is a string'),
}  # fmt: skip


@pytest.mark.parametrize("name", one_in(3, REFUSED))
def test_refusal_names_the_place(name: str) -> None:
    old, new, message = REFUSED[name]
    with pytest.raises(CatalogError) as caught:
        more(old, new)
    assert str(caught.value).startswith(f"lapwing.toml: {message}")


def test_a_part_needs_some_column_with_values() -> None:
    with pytest.raises(CatalogError, match="those with values: none has any"):
        Table(name="t", source="t", privacy_unit="row", max_rows_per_unit=1, columns=(), part="x")


def test_public_tables_alone_are_no_catalog() -> None:
    with pytest.raises(CatalogError, match="tables: missing; describe at least one table that is protected"):
        replace(more(), tables=())


def test_names_are_compared_by_what_they_say() -> None:
    """Also where two names are one object."""
    read = more()
    with pytest.raises(CatalogError, match='tables: "visits" and "visits" are the same name'):
        replace(read, tables=read.tables * 2)
    with pytest.raises(CatalogError, match='tables: "visits" and "Visits" are the same name'):
        replace(read, public_tables=(replace(read.public_tables[0], name="Visits"),))


def test_the_longest_view() -> None:
    longest = "S" * (LONGEST_VIEW - 2) + "é"
    assert View(name="v", sql=longest).sql == longest
    with pytest.raises(CatalogError, match=r"views\.v\.sql: 65537 bytes; at most 65536 are allowed"):
        View(name="v", sql=f"{longest} ")


# ---- what a NULL counts as -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "counts_as"),
    [
        ({"type": "integer", "lower": Fraction(-3), "upper": Fraction(7)}, Fraction(-3)),
        ({"type": "integer", "lower": Fraction(-3), "upper": Fraction(7), "step": Fraction(5)}, Fraction(0)),
        ({"type": "integer", "lower": Fraction(0), "upper": Fraction(7), "values": (7, 1)}, Fraction(0)),
        (
            {"type": "decimal", "lower": Fraction(1, 200), "upper": Fraction(1), "step": Fraction(1, 100)},
            Fraction(1, 100),
        ),
        ({"type": "date", "lower": date(2020, 1, 1), "upper": date(2021, 1, 1)}, date(2020, 1, 1)),
        ({"type": "string", "values": ("b", "a")}, "b"),
        ({"type": "string", "values": ("b", "a"), "other": "z"}, "z"),
        ({"type": "integer", "values": (7, 1)}, 7),
        ({"type": "boolean"}, False),
    ],
)
def test_a_null_counts_as_a_value_that_the_column_may_have(facts: dict[str, object], counts_as: object) -> None:
    promised = Column(name="x", nullable=False, **facts)  # type: ignore[arg-type]
    assert promised.null_counts_as == counts_as
    assert replace(promised, nullable=True).null_counts_as is None
    assert allowed(promised, promised.null_counts_as)


def allowed(promised: Column, value: object) -> bool:
    """Tell whether a value is one that a cleaned row may hold."""
    if isinstance(promised.lower, Fraction) and isinstance(value, Fraction):
        step = promised.step or Fraction(1)
        return promised.low <= value / step <= promised.high and (value / step).denominator == 1
    if isinstance(promised.lower, date) and isinstance(promised.upper, date) and isinstance(value, date):
        return promised.lower <= value <= promised.upper
    return value == promised.other or value in (promised.values or ())


def test_the_bound_itself_may_be_no_step() -> None:
    """What the bound as it is written would do to a column of steps."""
    cents = Column(name="x", type="decimal", lower=Fraction(1, 200), upper=Fraction(1), step=Fraction(1, 100))
    assert not allowed(cents, cents.lower)


@pytest.mark.parametrize("kind", [kind for kind in column_checks.TYPES if kind != "boolean"])
def test_a_promise_needs_a_value(kind: str) -> None:
    with pytest.raises(CatalogError, match=r"columns\.x\.nullable: a promise needs a value"):
        Column(name="x", type=kind, nullable=False)


def test_a_promise_is_true_or_false() -> None:
    with pytest.raises(CatalogError, match=r"columns\.x\.nullable: 0 is not true or false"):
        Column(name="x", type="boolean", nullable=0)  # type: ignore[arg-type]


# ---- digests ---------------------------------------------------------------------------------------------------------

RECORDED = "01e9198754213e223d06cb9e3bf0a9e483351977fe278cb300b340d06de73200"
MEANS_ANOTHER = {
    "part": ('part = "site"', 'part = "day"'),
    "no part": ('part = "site"\n', ""),
    "order of parts": ("[3, 1, 2]", "[1, 2, 3]"),
    "promise": (", nullable = false", ""),
    "public column": ("chapter =", "section ="),
    "public type": ('chapter = { type = "integer" }', 'chapter = { type = "float" }'),
    "public bounds": ('share = { type = "float", lower = 0', 'share = { type = "float", lower = 0.5'),
    "public values": ('["S", "M", "L"]', '["S", "L", "M"]'),
    "view": ("age >= 18", "age >= 21"),
    "view's name": ("[views.adults]", "[views.grown]"),
}  # fmt: skip


def test_catalogs_of_before_keep_their_digest() -> None:
    """Recorded before there were public tables, views, parts and promises: ledgers hold such digests."""
    assert catalog().digest == RECORDED


@pytest.mark.parametrize("name", MEANS_ANOTHER)
def test_another_meaning_has_another_digest(name: str) -> None:
    assert more(*MEANS_ANOTHER[name]).digest != more().digest


def test_where_public_data_are_means_nothing() -> None:
    moved = more(PUBLIC, 'source = "moved/codes.csv"')
    assert moved.digest == more().digest
    assert moved.public_tables[0].digest == more().public_tables[0].digest
    assert replace(more(), folder=Path("/elsewhere"), views=tuple(reversed(more().views))).digest == more().digest


def test_a_public_table_is_not_a_protected_one() -> None:
    columns = (Column(name="x", type="integer"),)
    public = PublicTable(name="t", source="t.csv", columns=columns)
    protected = Table(name="t", source="t.csv", privacy_unit="row", max_rows_per_unit=1, columns=columns)
    assert public.digest != protected.digest


def test_a_forgotten_part_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("table", "model"):
        monkeypatch.setattr(
            f"lapwing.catalog.{module}.table_facts",
            lambda table: {key: fact for key, fact in table_facts(table).items() if key != "part"},
        )
    assert more(*MEANS_ANOTHER["no part"]).digest == more().digest
