"""Collect the texts of the pages for the public, and compile their catalogues.

    python scripts/catalogues.py            check that the catalogues have what the pages say, and are compiled
    python scripts/catalogues.py --write    add new texts to each `src/lapwing/languages/xx.po`, and compile it

The texts are the arguments of `say` and `say_count`, in Python, in the page for respondents and in its script. A new
text has no translation in other languages than English until somebody writes one. Until then the catalogue is not
compiled, so that pages are in English: none is in two languages. `docs/contributing/translate.md` says how to add one.
"""

import ast
import json
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter
from typing import Final

from lapwing.collector.survey_page import texts_of

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "src" / "lapwing"
FOLDER: Final = PACKAGE / "languages"
SURVEY: Final = PACKAGE / "collector" / "pages" / "survey.mjs"
HEADER: Final = (
    "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\nLanguage: {tag}\n"
    "Plural-Forms: nplurals=2; plural=(n != 1);\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A text of the catalogue. Args: plural: for all numbers but one. texts: translations, one for each plural form."""

    template: str
    plural: str | None = None
    texts: tuple[str, ...] = ("",)
    places: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The text under which a compiled catalogue has it."""
        return self.template if self.plural is None else f"{self.template}\0{self.plural}"


# ---- what the pages say ----------------------------------------------------------------------------------------------


def said() -> dict[str, Entry]:
    """Return the texts of all pages, by their keys."""
    found: dict[str, Entry] = {}
    for entry in [*_said_in_python(), *_said_in_the_survey()]:
        before = found.get(entry.key)
        found[entry.key] = entry if before is None else replace(before, places=(*before.places, *entry.places))
    return {key: replace(entry, places=tuple(dict.fromkeys(entry.places))) for key, entry in found.items()}


def _said_in_python() -> Iterator[Entry]:
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "from lapwing.languages import" not in source or path.parent == FOLDER:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("say", "say_count"):
                counted = node.func.id == "say_count"
                templates = [_constant(path, part) for part in (node.args[1:] if counted else node.args)]
                place = str(path.relative_to(PACKAGE))
                yield Entry(template=templates[0], plural=templates[1] if counted else None, places=(place,))


def _constant(path: Path, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise SystemExit(f"{path.relative_to(ROOT)}:{node.lineno}: `say` takes a text as it is, to be found by this script")


def _said_in_the_survey() -> Iterator[Entry]:
    for text in texts_of(SURVEY.read_text(encoding="utf-8")):
        yield Entry(template=text, places=(str(SURVEY.relative_to(PACKAGE)),))


# ---- catalogues ------------------------------------------------------------------------------------------------------


def read(text: str) -> tuple[str, dict[str, Entry]]:
    """Return the header of a catalogue's source, and its entries by their keys."""
    header, entries = "", dict[str, Entry]()
    for block in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in block.split("\n"):
            found = re.fullmatch(r'(?:(msgid|msgid_plural|msgstr(?:\[\d\])?) )?(".*")', line)
            if found is not None:
                name = found[1] or name
                fields[name] = fields.get(name, "") + json.loads(found[2])
        if not fields:
            continue
        texts = tuple(value for name, value in fields.items() if name.startswith("msgstr"))
        places = tuple(re.findall(r"(?m)^#: (.*)$", block))
        entry = Entry(template=fields["msgid"], plural=fields.get("msgid_plural"), texts=texts, places=places)
        if entry.template:
            entries[entry.key] = entry
        else:
            header = texts[0]
    return header, entries


def written(header: str, entries: dict[str, Entry]) -> str:
    """Return the source of a catalogue."""
    blocks = [f'msgid ""\nmsgstr ""\n{_lines(header)}']
    for _, entry in sorted(entries.items()):
        lines = [f"#: {place}" for place in entry.places] + [f"msgid {_quoted(entry.template)}"]
        if entry.plural is None:
            lines.append(f"msgstr {_quoted(entry.texts[0])}")
        else:
            lines.append(f"msgid_plural {_quoted(entry.plural)}")
            lines += [f"msgstr[{number}] {_quoted(text)}" for number, text in enumerate(entry.texts)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _lines(text: str) -> str:
    return "\n".join(_quoted(line) for line in text.splitlines(keepends=True))


def compiled(header: str, entries: dict[str, Entry]) -> bytes:
    """Return a catalogue as `gettext` reads it: entries with a translation, sorted by their keys."""
    pairs = {"": header} | {key: "\0".join(entry.texts) for key, entry in entries.items() if all(entry.texts)}
    keys = [key.encode() for key in sorted(pairs, key=str.encode)]
    texts = [pairs[key.decode()].encode() for key in keys]
    start, offsets, body = 28 + 16 * len(keys), list[bytes](), b""
    for one in (*keys, *texts):
        offsets.append(struct.pack("<II", len(one), start + len(body)))
        body += one + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(keys), 28, 28 + 8 * len(keys), 0, start)
    return head + b"".join(offsets) + body


def faults(tag: str, header: str, entries: dict[str, Entry]) -> Iterator[str]:
    """Yield what is wrong with translations: places for values other than those of the English text."""
    if "charset=UTF-8" not in header:
        yield f"{tag}.po: its header does not name the charset UTF-8"
    for entry in entries.values():
        wanted = _places(entry.template) | _places(entry.plural or "")
        for text in filter(None, entry.texts):
            try:
                given = _places(text)
            except ValueError:
                given = {"{"}
            if not (given == wanted or (entry.plural is not None and given | {"count"} == wanted)):
                yield f"{tag}.po: {text!r} must have the places {sorted(wanted)}, as {entry.template!r}"


def _places(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def merged(tag: str, header: str, entries: dict[str, Entry], texts: dict[str, Entry]) -> dict[str, Entry]:
    """Return a catalogue of all texts: English ones are their own translation, new ones of others are empty."""
    forms = re.search(r"nplurals=(\d)", header)
    count = int(forms[1]) if forms else 2

    def translated(entry: Entry) -> tuple[str, ...]:
        if tag == "en":
            return (entry.template,) if entry.plural is None else (entry.template, entry.plural)
        before = entries.get(entry.key)
        return before.texts if before is not None else ("",) * (1 if entry.plural is None else count)

    return {key: replace(entry, texts=translated(entry)) for key, entry in texts.items()}


def main(arguments: list[str]) -> int:
    """Check the catalogues, or write them."""
    wrong, texts = list[str](), said()
    for source in sorted({FOLDER / "en.po", *FOLDER.glob("*.po")}):
        tag, there = source.stem, source.read_text(encoding="utf-8") if source.exists() else ""
        header, entries = read(there)
        header = header or HEADER.format(tag=tag)
        whole = merged(tag, header, entries, texts)
        wrong += faults(tag, header, whole)
        new, binary, target = written(header, whole), compiled(header, whole), source.with_suffix(".mo")
        lacking = sum(not all(entry.texts) for entry in whole.values())
        if arguments == ["--write"]:
            source.write_text(new, encoding="utf-8")
            if lacking:
                target.unlink(missing_ok=True)
                sys.stderr.write(f"{source.name} lacks {lacking} translations, so it is not compiled or used.\n")
            else:
                target.write_bytes(binary)
        elif new != there or target.exists() == bool(lacking) or (not lacking and target.read_bytes() != binary):
            wrong.append(
                f"{source.name} or {target.name} is not of today: run .venv/bin/python scripts/catalogues.py --write"
            )
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
