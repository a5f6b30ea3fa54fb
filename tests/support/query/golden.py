"""Golden questions as files: what was asked, and the SQL that it becomes, or the refusal.

A file of `tests/fixtures/query` holds entries between blank lines. An entry is a question, then sections, each a line
`-- name` and the text that belongs to it; a comment before the question is for people. The sections:

cleaned, kept, answer   the layers of the SQL. An answer stands on `cleaned` and `kept` of its table, which
                        cleaning.sql and bounding.sql show, so it is shown alone.
search                  the same of the search for a bound that the question leaves open.
pass i of n             the cleaned layer of one of several passes.
spark, spark cleaned,   the same in Spark's SQL, of every question about Parquet files; or why Spark does not answer it.
spark kept, spark refused
refused                 the refusal, in the files called <rule>__refused.sql.

`LAPWING_WRITE_GOLDEN=1 pytest tests/query/test_golden.py` writes the sections of all files anew, for a person to read.
"""

import re
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.duckdb import cleaned, literals
from lapwing.engines.duckdb.cleaned import Location, Pass
from lapwing.engines.spark import cleaned as spark_cleaned
from lapwing.engines.spark import queries as spark_queries
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.engines.spark.cluster import LOCAL
from lapwing.engines.spark.files import described
from lapwing.engines.spark.listing import listed
from lapwing.errors import QueryRefused
from lapwing.query.bind import bind
from lapwing.query.relations.public_rows import PublicFacts
from tests.support.query import rendering
from tests.support.query.clean import FIXTURES

_SECTION = re.compile(
    r"-- (cleaned|kept|answer|search|refused|pass (\d+) of (\d+)|spark|spark (cleaned|kept|refused))$"
)
# One column a line: a cleaned layer is long.
_COLUMN = re.compile(r'( AS (?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+),) ')


@dataclass(frozen=True)
class Entry:
    """A question with what it becomes; `comment` is the lines before it."""

    file: Path
    comment: str
    question: str
    sections: dict[str, str]

    def __str__(self) -> str:
        parts = [self.comment, self.question] if self.comment else [self.question]
        for name, text in self.sections.items():
            parts += [f"-- {name}", text]
        return "\n".join(parts)

    @property
    def name(self) -> str:
        return f"{self.file.stem}: {' '.join(self.question.split())[:60]}"


def files(*, refused: bool) -> list[Path]:
    return sorted(path for path in FIXTURES.glob("*.sql") if path.stem.endswith("__refused") is refused)


def read(file: Path) -> list[Entry]:
    """Return a file's entries; a block of comments alone stays with the entry that follows it."""
    blocks = [block for block in re.split(r"\n\n+", file.read_text(encoding="utf-8").strip()) if block]
    entries, comment = [], ""
    for block in blocks:
        lines = block.split("\n")
        if all(line.startswith("--") and not _SECTION.match(line) for line in lines):
            comment = block + "\n"
            continue
        entries.append(_entry(file, comment, lines))
        comment = ""
    return entries


def _entry(file: Path, comment: str, lines: list[str]) -> Entry:
    own = lines[: next((i for i, line in enumerate(lines) if _SECTION.match(line)), len(lines))]
    notes = list(takewhile(lambda line: line.startswith("-- "), own))
    question = "\n".join(own[len(notes) :])
    sections: dict[str, str] = {}
    for line in lines[len(own) :]:
        found = _SECTION.match(line)
        if found:
            sections[found[1]] = ""
        else:
            last = list(sections)[-1]
            sections[last] = f"{sections[last]}\n{line}" if sections[last] else line
    return Entry(file=file, comment=comment + "\n".join(notes), question=question, sections=sections)


def written(entry: Entry, catalog: Catalog, facts: PublicFacts, sources: dict[str, Location]) -> dict[str, str]:
    """Return what the sections of an entry should hold."""
    own = [name for name in entry.sections if not name.startswith("spark")]
    found = {name: _section(name, entry.question, catalog, facts, sources) for name in own}
    return found if "refused" in own else found | _on_spark(own, entry.question, catalog, facts)


def _section(name: str, question: str, catalog: Catalog, facts: PublicFacts, sources: dict[str, Location]) -> str:
    if name == "refused":
        return _refusal(question, catalog, facts)
    plan = bind(question, catalog, facts)
    bound = plan.searches[0].question if name == "search" else plan.question
    source, unit = sources[bound.table.name], literals.unit_name(bound.table)
    layers = {
        "cleaned": cleaned.cleaned(bound.table, source, Pass()),
        "kept": cleaned.kept(bound.table, unit, source),
    }
    prefix = f"WITH {literals.kept_name(bound.table)} AS (WITH cleaned AS ({layers['cleaned']}) {layers['kept']}) "
    whole = rendering.render(bound, {bound.table.name: source})
    if not whole.startswith(prefix):
        raise ValueError(f"the layers of the SQL are not cleaned, kept and answer: {whole}")
    layers["answer"] = layers["search"] = whole[len(prefix) :]
    if name.startswith("pass"):
        _, index, _, of = name.split()
        part = Pass(index=int(index), of=int(of))
        layers[name] = cleaned.cleaned(bound.table, source, part)
        if layers[name] not in rendering.render(bound, {bound.table.name: source}, part):
            raise ValueError("a pass is not a part of the cleaned layer")
    folder = f"{catalog.folder}/"
    text = layers[name].replace(folder, "")
    return _COLUMN.sub(r"\1\n  ", text) if name not in ("answer", "search") else text


def _on_spark(names: list[str], question: str, catalog: Catalog, facts: PublicFacts) -> dict[str, str]:
    """Return the sections of Spark that belong to those of DuckDB."""
    try:
        plan = bind(question, replace(catalog, engine="spark", cluster=LOCAL), facts, capabilities=CAPABILITIES)
    except QueryRefused as refused:
        return {"spark refused": str(refused)}
    bound = plan.searches[0].question if "search" in names else plan.question
    if not all(table.source.endswith(".parquet") for table in bound.tables):
        return {}
    found = {}
    if "answer" in names or "search" in names:
        asked = spark_queries.answer(bound) if bound.numbers else spark_queries.leaves(bound, bound.distributions[0])
        found["spark"] = asked
    layers = _layers_on_spark(bound.table, catalog.folder) if {"cleaned", "kept"} & {*names} else {}
    return found | {f"spark {name}": text for name, text in layers.items() if name in names}


def _layers_on_spark(table: Table, folder: Path) -> dict[str, str]:
    types = described(listed(table, folder), table).types
    rows = spark_cleaned.cleaned(table, "files", types)
    kept = spark_cleaned.rows_of(table, "files", types).replace(rows, "cleaned")
    return {"cleaned": _COLUMN.sub(r"\1\n  ", rows), "kept": kept}


def _refusal(question: str, catalog: Catalog, facts: PublicFacts) -> str:
    try:
        bind(question, catalog, facts)
    except QueryRefused as refused:
        return str(refused)
    return "IT IS ANSWERED"


def write(file: Path, entries: list[Entry]) -> None:
    file.write_text("\n\n".join(map(str, entries)) + "\n", encoding="utf-8")
