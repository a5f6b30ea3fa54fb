"""Undocumented means failing: every public name, command, option, error, key, function and entry kind has its place."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import getdoc, getsource
from types import ModuleType
from typing import Final, get_args

import option_list
import pytest
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

import lapwing as lw
from lapwing import errors, graphs, monitors, secure
from lapwing.catalog.column_checks import TYPES
from lapwing.catalog.dictionary import Texts
from lapwing.catalog.graph import Graph
from lapwing.catalog.model import ENGINES, MEASURES, NEIGHBOURING, Budget, Catalog, Column, Table
from lapwing.catalog.reading import ColumnReading
from lapwing.catalog.text_files import ENCODINGS, TextFormat
from lapwing.cli.commands import COMMANDS as MODULES
from lapwing.cli.commands import load
from lapwing.engines.duckdb.lockdown import DISABLED_OPTIMIZERS
from lapwing.graphs.statistics import STATISTICS
from lapwing.learn import deep
from lapwing.ledger.entries import Kind
from lapwing.ledger.reading import HistoryRow
from lapwing.preview import ColumnPreview, MeasurePreview, Preview
from lapwing.privacy.listing import KINDS
from lapwing.query.aggregates import order_statistics, outputs
from lapwing.query.aggregates.group_by import MOST_SETS
from lapwing.query.bind import bind
from lapwing.query.expressions import calls
from lapwing.query.expressions.function_names import SPELLED, function_names
from lapwing.query.expressions.library import ANONYMOUS
from lapwing.query.expressions.weight import MOST_NODES
from lapwing.query.from_clause import window_functions
from lapwing.query.relations import size
from lapwing.query.relations.images import MAX_VALUES
from lapwing.query.text import parse, privacy_options
from lapwing.secure import prio3
from tests.support.docs.pages import DOCS

LOSSES: Final = (
    lw.PureDP, lw.GaussianDP, lw.ZeroConcentratedDP, lw.ApproxDP, lw.ApproximateGaussianDP,
    lw.ApproximateZeroConcentratedDP, lw.RenyiDP,
)  # fmt: skip
PRIVACY_RECORDS: Final = (
    lw.privacy.Listed, lw.privacy.Statement, lw.privacy.ProfilePoint, lw.privacy.Reading, lw.privacy.Choice,
)  # fmt: skip
TABULATION: list[type] = [
    getattr(lw.tabulation, name) for name in lw.tabulation.__all__ if is_dataclass(getattr(lw.tabulation, name))
]
SYNTHETIC = (lw.synthesis.SyntheticTable, lw.synthesis.MarginalReport, lw.synthesis.WorkloadError)
GRAPHS: Final = (graphs.GraphSession, graphs.GraphAnswer, graphs.GraphPreview, graphs.NumberPreview)
HOLDOUT_RECORDS: Final = (lw.holdout.HoldoutAnswer, lw.holdout.Outlook)
MECHANISMS: Final = [name for name in lw.mechanisms.__all__ if isinstance(getattr(lw.mechanisms, name), type)]
INNER: Final = {"model_", "bins_", "features_", "target_", "values_", "of_matrix", "window"}
"""What estimators hold or do for each other."""
AGGREGATES: Final = outputs.AGGREGATES.keys() | {exp.Filter}
ANSWERED_BY_TESTS: Final = {
    word
    for name in ("other_spellings", "spellings")
    for word in re.findall(
        r"\b[A-Z][A-Z0-9_]+\b", (DOCS.parent / f"tests/query/test_{name}.py").read_text(encoding="utf-8")
    )
}
"""Functions in questions whose plans these tests compare with those of the words that are known."""
SECTIONS: Final[Mapping[str, Collection[type[exp.Expression]]]] = {
    "Subqueries": window_functions.WINDOW_FUNCTIONS.keys(),
    "Aggregates": AGGREGATES,
    "Expressions over a row": calls.HANDLERS,
    "Expressions over the result": outputs.HANDLERS.keys() - AGGREGATES - {exp.Column, exp.Neg, exp.Anonymous},
}


def page(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


def code(text: str) -> str:
    """Return the text of all code in a page, a piece a line."""
    return "\n".join(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)))


def unmentioned(names: Iterable[str], text: str) -> list[str]:
    """Return the names that no code in a text mentions as a whole word."""
    mentioned = code(text)
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", mentioned)]


def section(text: str, heading: str) -> str:
    found = re.search(rf"^## `?{re.escape(heading)}`?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {heading}"
    return found[1]


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def shown(estimator: type) -> list[str]:
    """Return what an estimator takes, and what it has once it is fit, without what all of them have."""
    taken = [field.name for field in fields(estimator) if field.init or field.name.endswith("_")]
    return [name for name in {*taken, *public(estimator)} - INNER if name != "fit"]


def rendered() -> dict[str, object]:
    """Return what the pages that are generated from docstrings show, by the names there."""
    names = re.findall(r"^::: ([\w.]+)$", page("api.md") + page("api-mechanisms.md"), re.MULTILINE)
    return {name: getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in names}


RENDERED: Final = rendered()


def described_by_docstrings(kind: type) -> set[str]:
    """Return the members that the generated page of a class shows: what it takes, and what has a docstring."""
    if kind not in RENDERED.values():
        return set()
    taken = {field.name for field in fields(kind) if field.init} if is_dataclass(kind) else set()
    attributes = re.findall(r'^    (\w+): [^\n]*\n    """', getsource(kind), re.MULTILINE)
    text = re.findall(r"\w+", kind.__doc__ or "")
    return {*taken, *attributes, *text, *(name for name in public(kind) if getdoc(getattr(kind, name)))}


def unshown(kind: type, names: Iterable[str]) -> list[str]:
    """Return the names of members that the generated page of their class does not describe."""
    return sorted({*names} - described_by_docstrings(kind))


def unlisted(module: ModuleType, names: Iterable[str]) -> list[str]:
    """Return the names in a module that the generated pages do not show, with the module's name."""
    shown_there = list(RENDERED.values())
    return [f"{module.__name__}.{name}" for name in names if getattr(module, name) not in shown_there]


def test_public_names() -> None:
    assert not unmentioned(lw.__all__, page("python.md"))


@pytest.mark.parametrize(
    ("heading", "kind", "names"),
    [
        ("Session", lw.Session, [*public(lw.Session), "catalog"]),
        ("Remote sessions", lw.RemoteSession, [*public(lw.RemoteSession), "dataset", "schema"]),
        (
            "Remote sessions",
            lw.RemoteAnswer,
            [*public(lw.RemoteAnswer), "id", "columns", "cost", "stored", "notes", "delayed"],
        ),
        ("Remote sessions", lw.Pending, [*public(lw.Pending), "id"]),
        ("Answer", lw.Answer, [*public(lw.Answer), "mechanisms", "cost", "stored", "notes", "plan", "entries"]),
        ("BudgetView", HistoryRow, [field.name for field in fields(HistoryRow)]),
        ("lapwing.learn", lw.learn.OpacusAccountant, public(lw.learn.OpacusAccountant)),
        ("lapwing.holdout", lw.holdout.ReusableHoldout, public(lw.holdout.ReusableHoldout)),
        *(("Preview", kind, [f.name for f in fields(kind)]) for kind in (Preview, MeasurePreview, ColumnPreview)),
        ("BudgetView", lw.BudgetView, public(lw.BudgetView)),
        *(("Losses", kind, public(kind)) for kind in LOSSES),
        *(("lapwing.synthesis", kind, [*public(kind), *(f.name for f in fields(kind))]) for kind in SYNTHETIC),
        *(("lapwing.tabulation", kind, shown(kind)) for kind in TABULATION),
        *(("lapwing.holdout", kind, [f.name for f in fields(kind)]) for kind in HOLDOUT_RECORDS),
        *(("lapwing.privacy", kind, [f.name for f in fields(kind)]) for kind in PRIVACY_RECORDS),
        *(
            ("lapwing.learn", kind, shown(kind))
            for kind in (getattr(lw.learn, name) for name in lw.learn.__all__)
            if isinstance(kind, type) and is_dataclass(kind)
        ),
        *(("lapwing.monitors", kind, public(kind)) for kind in (monitors.Monitor, monitors.Tick)),
        *(("lapwing.graphs", kind, public(kind)) for kind in GRAPHS),
    ],
)
def test_members(heading: str, kind: type, names: Iterable[str]) -> None:
    missing = [name for name in unshown(kind, names) if not name.startswith("_")]
    assert not unmentioned(missing, section(page("python.md"), heading))


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (lw.noise, lw.noise.__all__),
        (lw.privacy, dir(lw.privacy)),
        (lw.learn, lw.learn.__all__),
        (deep, deep.__all__),
        (lw.synthesis, lw.synthesis.__all__),
        (lw.tabulation, lw.tabulation.__all__),
        (lw.generalisation, lw.generalisation.__all__),
        (lw.holdout, lw.holdout.__all__),
        (monitors, monitors.__all__),
        (graphs, graphs.__all__),
    ],
)
def test_names_of_modules(module: ModuleType, names: Iterable[str]) -> None:
    described = section(page("python.md"), "lapwing.learn" if module is deep else module.__name__)
    missing = unlisted(module, names)
    assert not [
        name for name in missing if unmentioned([name], described) and unmentioned([name.rpartition(".")[2]], described)
    ]


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms(name: str) -> None:
    row = rf"^\| \[[^]]+\]\(\.\./mechanisms/([\w-]+\.md)(#[\w-]+)?\) \| .*`{name}`.* \|$"
    found = re.search(row, section(page("python.md"), "lapwing.mechanisms"), re.MULTILINE)
    assert found, "the table of lapwing.mechanisms lacks this class in the row of its page"
    described = (DOCS / "mechanisms" / found[1]).read_text(encoding="utf-8")
    if hasattr(getattr(lw.mechanisms, name), "release"):
        assert re.search(rf"\b{name}\b", described), f"{found[1]} does not mention this mechanism"


def test_other_names_of_mechanisms() -> None:
    assert not unmentioned(
        (f"lapwing.mechanisms.{name}" for name in lw.mechanisms.__all__ if name not in MECHANISMS), page("python.md")
    )


def commands(group: object, path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield every command with all spellings of the options that its help lists."""
    subcommands: dict[str, object] = getattr(group, "commands", {})
    if not subcommands:
        listed = [one for one in getattr(group, "params", []) if not getattr(one, "hidden", False)]
        options = [spelling for parameter in listed for spelling in parameter.opts]
        yield path, [spelling for spelling in options if spelling.startswith("-")]
    for name, command in subcommands.items():
        yield from commands(command, f"{path} {name}")


COMMANDS: Final = dict(found for name in MODULES for found in commands(load(name), f"lapwing {name}"))


def test_commands_are_found() -> None:
    assert {"lapwing query", "lapwing data accept"} <= COMMANDS.keys()
    assert "--epsilon" in COMMANDS["lapwing query"]


def test_kinds_of_listed_mechanisms() -> None:
    assert not unmentioned(KINDS, section(page("command-line.md"), "lapwing account"))


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str) -> None:
    assert not unmentioned([command], page("command-line.md"))


def test_list_of_options_is_of_this_version() -> None:
    assert page("options.md") == option_list.text(), "run python scripts/option_list.py"


@pytest.mark.parametrize("command", COMMANDS)
def test_options(command: str) -> None:
    options = [option for option in COMMANDS[command] if option not in ("--help", "-h")]
    assert not unmentioned(options, section(page("options.md"), command))


def leaves(kind: type[errors.LapwingError]) -> Iterator[type[errors.LapwingError]]:
    if kind.__module__ == errors.__name__:
        yield kind
    for child in kind.__subclasses__():
        yield from leaves(child)


@pytest.mark.parametrize("kind", sorted(set(leaves(errors.LapwingError)), key=str), ids=lambda kind: kind.__name__)
def test_errors(kind: type[errors.LapwingError]) -> None:
    row = rf"^\| `{kind.__name__}` \| `{kind.code}` \| {kind.exit_status} \|"
    assert re.search(row, page("errors.md"), re.MULTILINE), "errors.md lacks this class with its code and exit status"
    assert re.search(rf"^\| {kind.exit_status} \|", page("command-line.md"), re.MULTILINE)


def test_catalog_keys() -> None:
    internal = {"columns", "tables", "folder", "file", "text", "unit_day", "reading", "dictionary", "labels"}
    written = (
        field
        for kind in (Catalog, Budget, Table, TextFormat, Column, ColumnReading, Texts)
        for field in fields(kind)
        if field.init
    )
    keys = {field.name for field in written} - internal
    assert not unmentioned({*keys, *TYPES, *ENCODINGS, *ENGINES, *MEASURES, *NEIGHBOURING}, page("catalog.md"))


def test_ledger_kinds() -> None:
    assert not unmentioned(get_args(Kind), section(page("ledger-file.md"), "Entries"))


def test_names_of_secure_sums() -> None:
    assert not unmentioned(secure.__all__, section(page("secure.md"), "Names in Python"))
    assert not unmentioned(prio3.__all__, section(page("secure.md"), "Prio3"))


def test_statistics_of_graphs() -> None:
    assert not unmentioned(STATISTICS, (DOCS / "how-to" / "graphs.md").read_text(encoding="utf-8"))
    assert not unmentioned(
        (field.name for field in fields(Graph) if field.init and field.name not in ("name", "public_nodes")),
        page("catalog.md"),
    )


def test_every_construct_of_sql_has_a_spelling() -> None:
    constructs = {*calls.HANDLERS, *outputs.HANDLERS, *window_functions.WINDOW_FUNCTIONS}
    assert constructs == SPELLED.keys()


def test_options_of_a_question() -> None:
    described = section(page("sql.md"), "Options and parameters")
    assert not unmentioned(
        {*privacy_options._OPTIONS, *privacy_options._ARGUMENTS, *privacy_options.STRATEGIES}, described
    )


def test_sizes_that_are_refused() -> None:
    text = " ".join(section(page("sql.md"), "Refused SQL and reasons").split())
    for said in (
        f"{parse.MAX_BYTES // 1024} KiB or {parse.MAX_TOKENS:,} words", f"nesting beyond {parse.MAX_NESTING} levels",
        f"{outputs.MAX_OUTPUTS} columns", f"{bind.MAX_CELLS:,} cells", f"{order_statistics.MOST_NODES:,} noisy counts",
        f"{size.MOST_RELATIONS} subqueries, joins and unions together or {size.MOST_NESTED} in one another",
        f"more than {MOST_NODES:,} parts",
    ):  # fmt: skip
        assert said in text
    keys = section(page("sql.md"), "GROUP BY")
    assert f"at most {MAX_VALUES:,} values" in keys
    assert f"at most {MOST_SETS} sets" in keys


@pytest.mark.parametrize("heading", SECTIONS)
def test_sql(heading: str) -> None:
    described = section(page("sql.md"), heading)
    spelled = [SPELLED[node] for node in SECTIONS[heading]]
    assert not [text for text in spelled if text not in described]
    assert not unmentioned((text for text in spelled if text.isupper() and text.isalpha()), described)


def understood(name: str) -> bool:
    """Tell whether a function of this name is known: to the tables of functions, or as another spelling with a test."""
    if name in {*ANONYMOUS, *SPELLED.values()} | ANSWERED_BY_TESTS:
        return True
    calls_of = (f"SELECT {name}({', '.join('xyz'[:count])})" for count in range(4))
    parsed = [tree for text in calls_of if (tree := parsed_or_none(text)) is not None]
    kinds = {type(tree.expressions[0]) for tree in parsed} - {exp.Anonymous}
    return bool(kinds) and kinds <= SPELLED.keys()


def parsed_or_none(text: str) -> exp.Expr | None:
    try:
        return parse_one(text, read="duckdb")
    except ParseError:
        return None


def functions_listed() -> set[str]:
    """Return the names of functions in the tables of the reference."""
    text = page("sql.md").partition("### Functions\n")[2].partition("\n### ")[0]
    rows = "\n".join(re.findall(r"^\|.*", text, re.MULTILINE))
    pieces = [re.sub("'[^']*'", "", piece) for piece in code(rows).splitlines()]
    called = {name for piece in pieces for name in re.findall(r"\b([A-Z][A-Z0-9_]+)\(", piece)}
    alone = {piece for piece in pieces if re.fullmatch("[A-Z][A-Z0-9_]+", piece)}
    return (called | alone) - {"EXCEPT", "INTERSECT"}


def test_every_function_is_listed() -> None:
    assert not unmentioned(function_names(), page("sql.md"))


def test_every_function_that_is_listed_is_understood() -> None:
    assert len(functions_listed()) > 100
    assert not [name for name in functions_listed() if not understood(name)]
    assert not understood("SHA256")


def test_optimizers_that_are_off() -> None:
    assert not unmentioned(DISABLED_OPTIMIZERS, (DOCS / "theory" / "engine.md").read_text(encoding="utf-8"))


def test_what_is_missing_is_noticed() -> None:
    assert unmentioned(["rows", "row", "noise"], "`answer.rows()` and noise, `rows_up`") == ["row", "noise"]
    with pytest.raises(AssertionError):
        section("## One\n\ntext\n", "Two")
