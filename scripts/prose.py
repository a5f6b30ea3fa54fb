"""Count the sentences that a tired reader has to read twice, and let no more of them in.

`docs/contributing/style.md` has the rules. This script holds those that a pattern can hold; the rest is judgement.

    python scripts/prose.py                          check that no count is higher than in `scripts/prose.json`
    python scripts/prose.py --write                  write the counts there, where none is higher
    python scripts/prose.py --show interface long    print the sentences of a source that break a rule
    python scripts/prose.py --show docs              print all of a source, with the rules that they break

There are five sources. *Interface*: the templates of the console and of the survey page. *Messages*: what the code says
to a person, which are the strings that are no docstring and read like prose. *API*: the docstrings of what users import
and of what the documentation renders. *Internals*: the other docstrings. *Docs*: the pages of the documentation.
Code, SQL and names in backquotes are read as one word. Of each source the median reading ease of its sentences is
counted too, in whole points (`scripts/reading_ease.py`): it may only rise.
"""

import argparse
import ast
import gc
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from reading_ease import median_ease

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "src" / "lapwing"
BASELINE: Final = ROOT / "scripts" / "prose.json"
RULES_PAGE: Final = ROOT / "docs" / "contributing" / "style.md"
MOST_WORDS: Final = 25
EASE: Final = "reading ease"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence, and where it stands. Args: place: "file:line". heading: it names what is below it."""

    place: str
    text: str
    heading: bool = False


# ---- rules -----------------------------------------------------------------------------------------------------------


def _words(text: str) -> int:
    return len(re.findall(r"[^\W_]+(?:[-'’.][^\W_]+)*", text))


def _pattern(pattern: str, *, any_case: bool = False) -> Callable[[Sentence], bool]:
    found = re.compile(pattern, re.IGNORECASE if any_case else 0).search
    return lambda sentence: found(sentence.text) is not None


_LINK = r"\b(?:is|are|was|were|be|been|being)(?: \w+ly| not| never| then| thus)?"
_HOUSE_TERMS = (
    r"take (?:it|them|this) (?:along|away)|to be known|put it right|let it (?:go on|wait)|letting in|shut out|let in"
    r"|in particular|for nothing|of one at most|what holds for you|this, you|as it was given|made consistent"
)
_SUBJECTS = "it|they|he|she|this|that|these|those|there|we|you|a|an|the|no|nobody|nothing|each|every|all"
RULES: Final[Mapping[str, Callable[[Sentence], bool]]] = {
    # "Who asks for less is refused": a relative clause without a noun.
    "headless": _pattern(r"^(?:Who|Whoever|Whom|Whose|What|Whatever|Whichever)\b[^?]*$"),
    # "where nobody is told", "are kept", "is held": verbs that stand for any other.
    "house verb": _pattern(
        rf"\b{_LINK}(?: \w+ly| not| never| then| thus)? (?:told|kept|held|said|let|borne|put|made good)\b"
    ),
    # "by a service alone": only by a service.
    "alone": _pattern(r"(?<!let )(?<!leave )(?<!leave it )(?<!stands )\b[a-z]{3,} alone\b"),
    # "refused, as it is too dear": because. A query counts "as a group of" edges, which is no reason.
    "as": _pattern(
        r", as (?!a group of)"
        r"(?:it|they|he|she|this|that|these|those|there|we|you|a|an|the|no|nobody|nothing|each|every|all)\b"
    ),
    # "that of a mean", "those of the second": the noun is missing.
    "missing noun": _pattern(r"\b(?:that|those) of\b"),
    # "whatever the two have", "whosever": any.
    "whatever": _pattern(r"\b(?:whosever|whomever|what(?:so)?ever|whichever|so many|so much)\b", any_case=True),
    "long": lambda sentence: _words(sentence.text) > MOST_WORDS,
    # "Where nobody is trusted": a heading is a noun phrase or an imperative.
    "clause as heading": lambda sentence: (
        sentence.heading
        and re.match(r"(?:Where|What|Who|Whom|That|Which|If|Whose|As|Because)\b[^?]*$", sentence.text) is not None
    ),
    # Words that nobody looks for on a screen.
    "house term": _pattern(rf"\b(?:{_HOUSE_TERMS})\b", any_case=True),
}
EVERYWHERE: Final = tuple(rule for rule in RULES if rule != "house term")
HELD: Final[Mapping[str, tuple[str, ...]]] = {
    "interface": tuple(RULES), "messages": EVERYWHERE, "API": EVERYWHERE, "internals": EVERYWHERE, "docs": EVERYWHERE,
}  # fmt: skip


def split(place: str, text: str, *, heading: bool = False) -> Iterator[Sentence]:
    """Yield the sentences of a paragraph."""
    text = re.sub(r"\s+", " ", text).strip()
    for part in re.split(r"(?<=[.!?:])(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z“\"(])|(?<=[a-z\d)][.!?]) (?=(?:x\b|∎))", text):
        part = part.strip(' ·–|*_#>"“”')
        if re.search(r"[a-z]{2}", part):
            yield Sentence(place=place, text=part, heading=heading)


# ---- where sentences stand -------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Reads what a template shows: texts between blocks, and attributes that are read out or shown."""

    _BLOCKS = frozenset(
        {"p", "h1", "h2", "h3", "h4", "li", "td", "th", "dt", "dd", "button", "label", "option", "div", "summary",
         "legend", "title", "section", "nav", "table", "tr", "ul", "ol", "form", "fieldset", "select", "header",
         "main", "footer", "br", "caption", "details", "a", "aside", "figcaption", "thead", "tbody", "output",
         "script", "style"}
    )  # fmt: skip
    _HEADINGS = frozenset({"h1", "h2", "h3", "h4", "summary", "legend", "title", "th"})
    _SHOWN = ("title", "placeholder", "aria-label", "alt")

    def __init__(self, place: str) -> None:
        super().__init__(convert_charrefs=True)
        self.place, self.sentences = place, list[Sentence]()
        self._text, self._line, self._heading, self._hidden = "", 1, False, False

    def flush(self) -> None:
        self.sentences += split(f"{self.place}:{self._line}", self._text, heading=self._heading)
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in self._SHOWN and value:
                self.sentences += split(f"{self.place}:{self.getpos()[0]}", unescape(value))
        if tag in self._BLOCKS and not (tag == "a" and self._text.strip()):
            self.flush()
            self._heading = tag in self._HEADINGS
        if tag in ("script", "style"):
            self._hidden = True

    def handle_endtag(self, tag: str) -> None:
        if tag in self._BLOCKS and tag != "a":
            self.flush()
            self._heading = False
        if tag in ("script", "style"):
            self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            if not self._text.strip():
                self._line = self.getpos()[0]
            self._text += data


def interface() -> Iterator[Sentence]:
    """Yield what templates show. Values read as one word; what is shown in turn reads as texts beside each other."""
    for path in sorted(PACKAGE.rglob("*.html")):
        text = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"\{\{.*?\}\}", "x", text, flags=re.DOTALL)
        text = re.sub(r"\{%-? (?:if|else|elif|endif).*?%\}", "<br>", re.sub(r'="[^"]*\{%[^"]*"', '=""', text))
        page = _Page(str(path.relative_to(ROOT)))
        page.feed(re.sub(r"\{%.*?%\}", "", text, flags=re.DOTALL))
        page.flush()
        yield from page.sentences


@cache
def _parsed(package: Path) -> dict[str, ast.Module]:
    paths = sorted(package.rglob("*.py"))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def _documented(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, ast.Constant]]:
    for node in nodes:
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield node, statement.value


def _written(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    return None


_PROSE = re.compile(r"^[A-Za-z][^\n]*? [a-z]+[ ,][^\n]*[a-z]", re.DOTALL)
_CODE = re.compile(
    r"\b(?:SELECT|FROM|WHERE|INSERT|CREATE|PRAGMA|UNION|CASE WHEN|UPDATE|DELETE|SET|LEFT JOIN)\b|[{}<>]{1}|\\|=="
)


def messages() -> Iterator[Sentence]:
    """Yield the strings of the code that read like prose: at least four words, no SQL, no docstring."""
    for name, tree in _parsed(PACKAGE).items():
        nodes = [*ast.walk(tree)]
        left_out = {id(constant) for _, constant in _documented(nodes)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                left_out.update(id(part) for part in ast.walk(node) if part is not node)
        for node in nodes:
            if isinstance(node, ast.expr) and id(node) not in left_out and (text := _written(node)) is not None:
                text = re.sub(r"`[^`]*`", "x", text)
                if _PROSE.match(text) and not _CODE.search(text) and _words(text) >= 4:
                    yield from split(f"{name}:{node.lineno}", text)


_SECTION = re.compile(r"^\s*(?:Args|Returns|Raises|Yields|Source|Guarantee|Example|Note)s?:\s*$")


def _sentences_of(path: str, constant: ast.Constant) -> Iterator[Sentence]:
    """Yield the sentences of a docstring, paragraph by paragraph and entry by entry."""
    text = re.sub(r"`[^`]*`", "x", str(constant.value))
    text = re.sub(r"(?m)^(\s*)[\w*]+(?:, [\w*]+)*: ", r"\n\1", text)  # the names of arguments and errors
    text = re.sub(r"(?m)^(?=\s*[-*] |.*\S {3,}\S)", "\n", text)  # items of a list, and lines in columns
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if not _SECTION.match(line)]
        if not any(line.lstrip().startswith((">>>", "$ ", "|")) for line in lines):
            yield from split(f"{path}:{constant.lineno}", " ".join(lines))


class Public:
    """Finds the docstrings of the public API in the code and in the documentation, without importing anything.

    A name is public if `lapwing` or a public package exports it, if a page renders it with `:::`, or if an example of a
    page imports it. The members of a public class are public, and so are those that it inherits.
    """

    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self.modules = {
            path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", "."): (path, tree)
            for path, tree in modules.items()
        }
        self.packages = {name for name, (path, _) in self.modules.items() if path.endswith("/__init__.py")}
        self.docstrings = dict[int, tuple[str, ast.Constant]]()
        self._seen = set[str]()

    def add(self, name: str) -> None:
        """Add a dotted name: a module with what it exports, or a function, class or value with its members."""
        if name in self._seen:
            return
        self._seen.add(name)
        if name in self.modules:
            path, tree = self.modules[name]
            self._add_docstring(path, tree)
            for exported in self._exported(name, tree):
                self.add(f"{name}.{exported}")
            return
        module, _, own = name.rpartition(".")
        if module not in self.modules:
            return
        path, tree = self.modules[module]
        statements = list(_statements(tree))
        for position, node in enumerate(statements):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == own:
                        self.add(f"{node.module}.{alias.name}")
            elif isinstance(node, ast.ClassDef) and node.name == own:
                self._add_class(module, path, node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == own:
                self._add_docstring(path, node)
            elif own in _assigned(node):
                self._add_text(path, statements[position + 1 : position + 2])

    def _exported(self, name: str, tree: ast.Module) -> set[str]:
        listed, checked, defined = set[str](), set[str](), set[str]()
        for node in tree.body:
            if isinstance(node, ast.Assign) and "__all__" in _assigned(node) and isinstance(node.value, ast.List):
                listed.update(str(element.value) for element in node.value.elts if isinstance(element, ast.Constant))
            elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                checked.update(
                    alias.asname or alias.name
                    for each in node.body
                    if isinstance(each, ast.ImportFrom)
                    for alias in each.names
                )
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                defined.add(node.name)
            else:
                defined.update(_assigned(node))
        names = listed or (checked if name in self.packages and checked else defined)
        return {each for each in names if not each.startswith("_")}

    def _add_class(self, module: str, path: str, node: ast.ClassDef) -> None:
        self._add_docstring(path, node)
        for position, member in enumerate(node.body):
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
                self._add_docstring(path, member)
            elif any(not name.startswith("_") for name in _assigned(member)):
                self._add_text(path, node.body[position + 1 : position + 2])
        for base in node.bases:
            if isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                self.add(f"{module}.{base.id}")

    def _add_docstring(
        self, path: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ) -> None:
        self._add_text(path, node.body[:1])

    def _add_text(self, path: str, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                self.docstrings[id(node.value)] = (path, node.value)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from node.body


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


@cache
def _public(package: Path) -> dict[int, tuple[str, ast.Constant]]:
    public = Public(_parsed(package))
    public.add("lapwing")
    for path in [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("README.md"))]:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"(?m)^ *::: ([\w.]+)", text):
            public.add(name)
        for module, names in re.findall(r"(?m)^ *(?:>>> )?from (lapwing(?:\.\w+)*) import (\([^)]*\)|.*)", text):
            for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names)):
                public.add(f"{module}.{name}")
    return public.docstrings


def _docstrings(*, public: bool) -> Iterator[Sentence]:
    of_api = _public(PACKAGE)
    for path, tree in _parsed(PACKAGE).items():
        if not public and any(part.startswith("_") for part in Path(path).with_suffix("").parts[2:]):
            continue
        for node, constant in _documented(ast.walk(tree)):
            if not isinstance(constant.value, str) or (id(constant) in of_api) != public:
                continue
            if public or not getattr(node, "name", "").startswith("_"):
                yield from _sentences_of(path, constant)


def api() -> Iterator[Sentence]:
    """Yield the docstrings that users read, in editors and in the documentation."""
    yield from _docstrings(public=True)


def internals() -> Iterator[Sentence]:
    """Yield the other docstrings of names without an underscore."""
    yield from _docstrings(public=False)


def docs() -> Iterator[Sentence]:
    """Yield the pages of the documentation, without code; each cell of a table and each item of a list by itself."""
    for path in [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]:
        yield from sentences_of_page(path)


def sentences_of_page(path: Path) -> Iterator[Sentence]:
    """Yield what people read on a page: no code, and nothing of what stands before its heading for the site."""
    name = str(path.relative_to(ROOT))
    text = re.sub(
        r"(?ms)\A---\n.*?^---\n|^( *)(```|~~~).*?^\1\2",
        lambda code: "\n" * code.group().count("\n"),
        path.read_text("utf-8"),
    )
    text = re.sub(r"`[^`\n]+`", "x", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text))
    text = re.sub(r"(?s)<!--.*?-->|\$\$.*?\$\$|<[^>\n]+>", lambda left: "\n" * left.group().count("\n"), text)
    begin, paragraph = 1, ""
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        bare = line.strip()
        starts = not bare or bare[0] in "#|" or re.match(r"(?:[-*+]|\d+\.) |!!!|\?\?\?", bare)
        if starts:
            yield from split(f"{name}:{begin}", paragraph)
            begin, paragraph = number, ""
        if bare.startswith("#"):
            yield from split(f"{name}:{number}", bare.lstrip("# "), heading=True)
        elif bare.startswith("|"):
            for cell in bare.strip("|").split("|"):
                yield from split(f"{name}:{number}", cell)
        else:
            paragraph += " " + re.sub(r"^(?:[-*+]|\d+\.|!!! \w+|\?\?\? \w+) ", "", bare)
    yield from split(f"{name}:{begin}", paragraph)


SOURCES: Final[Mapping[str, Callable[[], Iterator[Sentence]]]] = {
    "interface": interface, "messages": messages, "API": api, "internals": internals, "docs": docs,
}  # fmt: skip


# ---- counting --------------------------------------------------------------------------------------------------------


def counted(source: str) -> dict[str, int]:
    """Return how many sentences a source has, how easy they are to read, and how many of them break each rule."""
    sentences, broken = [*SOURCES[source]()], Counter[str]()
    for sentence in sentences:
        broken.update(rule for rule in HELD[source] if RULES[rule](sentence))
    ease = median_ease(sentence.text for sentence in sentences)
    return {"sentences": len(sentences), EASE: ease, **{rule: broken[rule] for rule in HELD[source]}}


def complaints(now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield lines that say which sources break a rule more often than before, or are harder to read."""
    for source, counts in now.items():
        known = before.get(source, {})
        if counts[EASE] < known.get(EASE, counts[EASE]):
            yield f"{source}: the median reading ease is {counts[EASE]}; before it was {known[EASE]}."
            yield "  Write shorter sentences and shorter words. The rules: docs/contributing/style.md."
        for rule in HELD[source]:
            if counts[rule] > known.get(rule, counts[rule]):
                yield f"{source}: {counts[rule]} sentences break the rule {rule!r}, {known[rule]} did before."
                yield f"  To see them: python scripts/prose.py --show {source} {rule}"
                yield "  The rules: docs/contributing/style.md."


def shown(source: str, only: str | None) -> Iterator[str]:
    """Yield lines that show the sentences of a source that break a rule, or any."""
    for sentence in SOURCES[source]():
        broken = [rule for rule in HELD[source] if RULES[rule](sentence)]
        if (only in broken) if only else broken:
            yield f"{sentence.place}: {sentence.text}" + ("" if only else f"  [{', '.join(broken)}]")


def main() -> int:
    """Check, write or show."""
    parser = argparse.ArgumentParser(description="Count the sentences that break a rule of docs/contributing/style.md.")
    parser.add_argument("--write", action="store_true", help="write the counts into scripts/prose.json")
    parser.add_argument("--show", nargs="+", metavar=("SOURCE", "RULE"), help="print the sentences of a source")
    given = parser.parse_args()
    if given.show:
        source, rule = given.show[0], " ".join(given.show[1:]) or None
        if source not in SOURCES or (rule is not None and rule not in RULES):
            parser.error(f"sources: {', '.join(SOURCES)}; rules: {', '.join(RULES)}")
        sys.stdout.writelines(f"{line}\n" for line in shown(source, rule))
        return 0
    gc.disable()  # the trees of all files stay: each search for garbage would go through them, and find none
    now = {source: counted(source) for source in SOURCES}
    before = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    worse = [*complaints(now, before)]
    sys.stdout.writelines(f"{line}\n" for line in worse)
    if given.write and not worse:
        BASELINE.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    if not worse:
        for source, counts in now.items():
            broken = ", ".join(f"{rule} {count}" for rule, count in counts.items() if rule in RULES and count)
            ease = f"reading ease {counts[EASE]}"
            print(f"{source}: {counts['sentences']} sentences; {ease}; {broken or 'none breaks a rule'}")
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main())
