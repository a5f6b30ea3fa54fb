"""Write `docs/reference/options.md`: every command with its options, as the parser has them.

    python scripts/option_list.py

`tests/docs/test_reference.py` compares the page with the parser. `scripts/doc_words.py` does not count it.
"""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

from lapwing.cli.commands import COMMANDS, load

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "options.md"
HEAD: Final = """# All options

A script writes this page from the parser of `lapwing`: the options that `lapwing COMMAND --help` lists.
[Command line](command-line.md) says what commands do, and explains the options that need more than a line.
"""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that runs, with its words. Its type is in a private module of typer."""
    inner: dict[str, Any] = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, one in inner.items():
        if not one.hidden:
            yield from commands(one, f"{path} {name}")


def limits(option: Any) -> Iterator[str]:
    """Yield what else the parser knows of an option: values, ends, the default and whether it is required."""
    kind = option.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        yield "one of " + ", ".join(f"`{choice.value}`" for choice in kind)
    if ends := [f"{word} {end}" for word, end in (("from", option.min), ("to", option.max)) if end is not None]:
        yield " ".join(ends)
    default = getattr(option.default, "value", option.default)
    if str(default) not in {"None", "", "True", "False"} and "default" not in (option.help or "").lower():
        yield f"default `{default}`"
    if option.required:
        yield "required"
    if option.multiple and "repeat" not in (option.help or "").lower():
        yield "may be repeated"


def described(option: Any) -> str:
    """Return a line about an option."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    shape = f" `{option.metavar}`" if option.metavar else ""
    more = f" ({'; '.join(found)})" if (found := list(limits(option))) else ""
    return f"- {names}{shape}: {' '.join((option.help or '').split())}{more}"


def text() -> str:
    """Return the page."""
    sections = [HEAD]
    for path, command in (found for name in COMMANDS for found in commands(load(name), f"lapwing {name}")):
        options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
        listed = [described(option) for option in options if option.name != "help"]
        sections.append("\n".join([f"## `{path}`", "", *(listed or ["No options."]), ""]))
    return "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
