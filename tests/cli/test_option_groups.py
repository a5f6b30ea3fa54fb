"""Options in groups: Typer reads each field of a group in the place of the group, as if it were a parameter."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated

import pytest
import typer

import lapwing
from lapwing.cli.options import grouped

SOURCE = Path(lapwing.__file__).parent
MOST_PARAMETERS, MOST_LINES = 12, 80


@dataclass(frozen=True, kw_only=True)
class Size:
    """A group of one needed option, and one that is not."""

    width: Annotated[int, typer.Option(help="Across.")]
    height: Annotated[int, typer.Option(help="Upwards.")] = 3


@dataclass(frozen=True, kw_only=True)
class Other:
    """A group with an option of the same name."""

    height: Annotated[int, typer.Option()] = 1


def draw(name: Annotated[str, typer.Argument()], *, size: Size, bold: Annotated[bool, typer.Option()] = False) -> str:
    """Draw."""
    return f"{name}: {size.width} x {size.height}{' in bold' if bold else ''}"


def test_fields_stand_in_the_place_of_their_group() -> None:
    shown = signature(grouped(draw)).parameters
    assert list(shown) == ["name", "width", "height", "bold"]
    assert [shown[name].default for name in ("height", "bold")] == [3, False]
    assert shown["width"].default is shown["width"].empty


@pytest.mark.parametrize(
    ("arguments", "drawn"),
    [
        (["a", "--width", "2"], "a: 2 x 3"),
        (["--height", "5", "--width", "2", "a", "--bold"], "a: 2 x 5 in bold"),
    ],
)
def test_the_command_is_given_its_groups(arguments: list[str], drawn: str) -> None:
    app = typer.Typer()
    app.command()(grouped(draw))
    assert app(arguments, standalone_mode=False) == drawn


def test_a_field_without_a_default_is_needed() -> None:
    app = typer.Typer()
    app.command()(grouped(draw))
    with pytest.raises(typer.TyperException) as refused:
        app(["a"], standalone_mode=False)
    assert getattr(refused.value, "param").name == "width"  # noqa: B009 - not every such error has one


def test_two_groups_with_an_option_of_the_same_name_are_noticed() -> None:
    def both(*, size: Size, other: Other) -> None: ...

    with pytest.raises(ValueError, match="height"):
        grouped(both)


def large(folder: Path) -> Iterator[str]:
    """Yield the functions of a folder that have more parameters or lines than a reader keeps in mind."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                taken = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
                lines = (node.end_lineno or 0) - node.lineno + 1
                if taken > MOST_PARAMETERS or lines > MOST_LINES:
                    yield f"{file.name}: {node.name} takes {taken} in {lines} lines"


def test_no_command_is_larger_than_a_reader_keeps_in_mind() -> None:
    assert list(large(SOURCE / "cli")) == []


def test_a_large_function_is_noticed(tmp_path: Path) -> None:
    """The planted bug: one parameter, or one line, too many."""
    names = ", ".join(f"a{number}" for number in range(MOST_PARAMETERS + 1))
    (tmp_path / "wide.py").write_text(f"def wide({names}): ...\n", encoding="utf-8")
    (tmp_path / "long.py").write_text("def long():\n" + "    pass\n" * MOST_LINES, encoding="utf-8")
    (tmp_path / "right.py").write_text("def right():\n" + "    pass\n" * (MOST_LINES - 1), encoding="utf-8")
    assert sorted(large(tmp_path)) == ["long.py: long takes 0 in 81 lines", "wide.py: wide takes 13 in 1 lines"]
