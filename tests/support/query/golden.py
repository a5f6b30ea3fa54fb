"""Golden questions as files: what was asked, and the SQL that it becomes, or the refusal.

A file of `tests/fixtures/query` holds entries between blank lines. An entry is a question, then sections, each a line
`-- name` and the text that belongs to it; a comment before the question is for people. The sections:

cleaned, kept, answer   the layers of the SQL. An answer stands on `cleaned` and `kept` of its table, which
                        cleaning.sql and bounding.sql show, so it is shown alone.
search                  the same of the search for a bound that the question leaves open.
pass i of n             the cleaned layer of one of several passes.
asked i of n            the answer's layer of one of several questions, which are asked in the place of one.
plain                   the question in the words of plain DuckDB, where it has other ones: written by hand.
spark, spark cleaned,   the same in Spark's SQL, of every question about Parquet files; or why Spark does not answer it.
spark kept, spark refused,
spark asked i of n
refused                 the code of the refusal and its place, in the files called <rule>__refused.sql.

The texts of all these refusals are in one file, `refusal_texts.txt`: a code, then each text that is said with it,
without its place.

`LAPWING_WRITE_GOLDEN=1 pytest tests/query/test_golden.py` writes the sections of all files, and the texts, anew: for a
person to read.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.duckdb import cleaned, literals
from lapwing.engines.duckdb.cleaned import Location, Pass
from lapwing.engines.spark import cleaned as spark_cleaned
from lapwing.engines.spark import letter_case as spark_cases
from lapwing.engines.spark import queries as spark_queries
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.engines.spark.cluster import LOCAL
from lapwing.engines.spark.files import described
from lapwing.engines.spark.listing import listed
from lapwing.engines.spark.literals import text as spark_text
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.query.relations.relation import reads
from tests.support.query import rendering
from tests.support.query.clean import FIXTURES

_SECTION = re.compile(
    r"-- (plain|cleaned|kept|answer|search|refused|pass (\d+) of (\d+)|spark|spark (cleaned|kept|refused)"
    r"|(spark )?asked (\d+) of (\d+))$"
)
NOTHING_READ = "No row is read."
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
    by_hand = {name: text for name, text in entry.sections.items() if name == "plain"}
    own = [name for name in entry.sections if not name.startswith("spark") and name not in by_hand]
    found = by_hand | {name: _section(name, entry.question, catalog, facts, sources) for name in own}
    return found if "refused" in own else found | _on_spark(own, entry.question, catalog, facts)


def _section(name: str, question: str, catalog: Catalog, facts: PublicFacts, sources: dict[str, Location]) -> str:
    if name == "refused":
        return code_of(refusal_of(question, catalog, facts))
    bound = _bound(name, bind(question, catalog, facts))
    if not bound.measures:
        return NOTHING_READ
    source, unit = sources[bound.table.name], literals.unit_name(bound.table)
    read = reads(bound.selection.relation)
    layers = {
        "cleaned": cleaned.cleaned(bound.table, source, read),
        "kept": cleaned.kept(bound.table, unit, source, read),
    }
    prefix = f"WITH {literals.kept_name(bound.table)} AS (WITH cleaned AS ({layers['cleaned']}) {layers['kept']}) "
    whole = rendering.render(bound, {bound.table.name: source})
    if not whole.startswith(prefix):
        raise ValueError(f"the layers of the SQL are not cleaned, kept and answer: {whole}")
    layers["answer"] = layers["search"] = layers[name if name.startswith("asked") else "answer"] = whole[len(prefix) :]
    if name.startswith("pass"):
        _, index, _, of = name.split()
        part = Pass(index=int(index), of=int(of))
        layers[name] = cleaned.cleaned(bound.table, source, read, part)
        if layers[name] not in rendering.render(bound, {bound.table.name: source}, part):
            raise ValueError("a pass is not a part of the cleaned layer")
    folder = f"{catalog.folder}/"
    text = layers[name].replace(folder, "")
    return _COLUMN.sub(r"\1\n  ", text) if name in ("cleaned", "kept") or name.startswith("pass") else text


def _bound(name: str, plan: Plan) -> Question:
    """Return the question that a section is about; one of several is found by its place, and all have a section."""
    if name == "search":
        return plan.searches[0].question
    if not name.startswith("asked"):
        return plan.question
    _, place, _, of = name.split()
    asked = list(dict.fromkeys(one.question for one in plans_asked(plan)))
    if len(asked) != int(of):
        raise ValueError(f"{len(asked)} questions are asked, and the section says {of}")
    return asked[int(place) - 1]


def _on_spark(names: list[str], text: str, catalog: Catalog, facts: PublicFacts) -> dict[str, str]:
    """Return the sections of Spark that belong to those of DuckDB."""
    try:
        plan = bind(text, replace(catalog, engine="spark", cluster=LOCAL), facts, capabilities=CAPABILITIES)
    except QueryRefused as refused:
        return {"spark refused": code_of(refused)}
    questions = {name: _bound(name, plan) for name in names}
    if not all(table.source.endswith(".parquet") for question in questions.values() for table in question.tables):
        return {}
    found = {f"spark {name}": _printed(bound) for name, bound in questions.items() if name.startswith("asked")}
    for name in ("answer", "search"):
        found |= {"spark": _printed(questions[name])} if name in questions else {}
    bound = next(iter(questions.values()))
    layers = _layers_on_spark(bound.table, catalog.folder) if {"cleaned", "kept"} & {*names} else {}
    return found | {f"spark {name}": text for name, text in layers.items() if name in names}


def _printed(bound: Question) -> str:
    """Return the last layer of a question in Spark's SQL."""
    if not bound.measures:
        return NOTHING_READ
    printed = spark_queries.answer(bound) if bound.numbers else spark_queries.leaves(bound, bound.distributions[0])
    for name, table in spark_cases.TABLES.items():  # 1,400 characters each, which nobody reads
        for side, characters in (("from", table), ("to", table.values())):
            printed = printed.replace(spark_text("".join(map(chr, characters))), f"<{name} {side}>")
    return printed


def _layers_on_spark(table: Table, folder: Path) -> dict[str, str]:
    types = described(listed(table, folder, driver=list), table).types
    rows = spark_cleaned.cleaned(table, "files", types, reads=False)
    kept = spark_cleaned.rows_of(table, "files", types, reads=False).replace(rows, "cleaned")
    return {"cleaned": _COLUMN.sub(r"\1\n  ", rows), "kept": kept}


def refusal_of(question: str, catalog: Catalog, facts: PublicFacts, *, spark: bool = False) -> QueryRefused | None:
    """Return why a question is refused, by any engine or by Spark; None if it is not."""
    try:
        if spark:
            bind(question, replace(catalog, engine="spark", cluster=LOCAL), facts, capabilities=CAPABILITIES)
        else:
            bind(question, catalog, facts)
    except QueryRefused as refused:
        return refused
    return None


def code_of(refused: QueryRefused | None) -> str:
    """Return the code of a refusal, and its place."""
    if refused is None:
        return "IT IS ANSWERED"
    place = "" if refused.position is None else f" (line {refused.position[0]}, column {refused.position[1]})"
    return f"{refused.cause.value}{place}"


def texts_of(refusals: Iterable[QueryRefused]) -> list[str]:
    """Return what refusals say, without their places: for each code a paragraph, of a line for each text."""
    said: dict[str, set[str]] = {}
    for refused in refusals:
        said.setdefault(refused.cause.value, set()).add(str(refused.pointing_at(None)))
    return ["\n".join([f"[{code}]", *sorted(texts)]) for code, texts in sorted(said.items())]


def write(file: Path, entries: list[Entry]) -> None:
    file.write_text("\n\n".join(map(str, entries)) + "\n", encoding="utf-8")
