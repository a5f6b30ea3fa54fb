"""Show what is proven by machine, and which code it is about, in `docs/theory/machine-checked.md`.

The page has a mark for each group of statements. A mark names statements of `proofs/`, and functions of the package.
Below it stand the statements, and a digest of each function. If the code changes, read the proof again, then write.

    <!-- proven: Relations.rows_per_unit, Relations.sound | query/relations/relation.py:FilteredRows.rows_within -->

    python scripts/machine_checked.py            check that below each mark stands what is in the files
    python scripts/machine_checked.py --write    write it there
"""

import ast
import re
import sys
import textwrap
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROOFS = ROOT / "proofs"
PAGE = ROOT / "docs" / "theory" / "machine-checked.md"
END = "<!-- end of what is proven -->"
_MARK = re.compile(rf"(<!-- proven: ([^|>]+?)(?: \| ([^>]+?))? -->\n).*?({re.escape(END)})", re.DOTALL)
_WORDS = "Theorem|Lemma|Definition|Fixpoint|Inductive|Record|Notation"
_ASSUMED = re.compile(r"^\s*(?:Variables?|Hypothesis|Let) .*?\.$", re.MULTILINE | re.DOTALL)


def statement(text: str, name: str) -> str:
    """Return a statement or definition of a file of proofs as it stands there, or what a section of it assumes.

    Raises:
        LookupError: If there is none of this name.
    """
    section = re.search(rf"^Section {name}\.\n(.*?)^End {name}\.", text, re.MULTILINE | re.DOTALL)
    if section is not None:
        assumed = (found.group().strip("\n") for found in _ASSUMED.finditer(section.group(1)))
        return textwrap.dedent("\n".join(assumed))
    # The first line that ends with a full stop, or a comment after it, ends a statement.
    found = re.search(rf"^ *(?:{_WORDS}) {name}\b.*?\.(?= *(?:\(\*[^\n]*\*\))?\n)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"There is no {name} in the proofs")
    return textwrap.dedent(found.group())


def function(path: str, name: str) -> str:
    """Return the text of a function or method of the package, without its docstring.

    Raises:
        LookupError: If there is none of this name.
    """
    source = (ROOT / "src" / "lapwing" / path).read_text(encoding="utf-8")
    body: list[ast.stmt] = ast.parse(source).body
    node: ast.stmt | None = None
    for part in name.split("."):
        named = (n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == part)
        node = next(named, None)
        body = node.body if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    if not isinstance(node, ast.FunctionDef):
        raise LookupError(f"There is no function {name} in {path}")
    lines = source.splitlines()
    first, kept = node.body[0], list(range(node.lineno - 1, node.end_lineno or node.lineno))
    if ast.get_docstring(node) is not None:
        kept = [number for number in kept if not first.lineno - 1 <= number < (first.end_lineno or first.lineno)]
    return textwrap.dedent("\n".join(lines[number] for number in kept))


def shown(statements: str, functions: str | None) -> str:
    """Return what stands below a mark."""
    texts = []
    for named in statements.split(", "):
        file, _, name = named.strip().partition(".")
        texts.append(statement((PROOFS / f"{file}.v").read_text(encoding="utf-8"), name))
    blocks = ["```coq\n" + "\n\n".join(texts) + "\n```\n"]
    if functions:
        places = (named.strip().partition(":") for named in functions.split(", "))
        blocks.append("".join(f"- `{path}`, `{name}`: `{digest(function(path, name))}`\n" for path, _, name in places))
    return "\n".join(blocks)


def digest(text: str) -> str:
    """Return what tells one text of a function from another."""
    return sha256(text.encode()).hexdigest()[:12]


def with_statements(page: str) -> str:
    """Return a page with what its marks name below them."""
    return _MARK.sub(lambda found: f"{found[1]}\n{shown(found[2], found[3])}\n{found[4]}", page)


def main() -> None:
    """Check the page, or write it."""
    page = PAGE.read_text(encoding="utf-8")
    whole = with_statements(page)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(whole, encoding="utf-8")
    elif whole != page:
        sys.exit(f"{PAGE.name} differs from the proofs or the code: python scripts/machine_checked.py --write")


if __name__ == "__main__":
    main()
