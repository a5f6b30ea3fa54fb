"""Options in groups: Typer reads each field of a group in the place of the group, as if it were a parameter."""

from dataclasses import dataclass
from inspect import signature
from typing import Annotated

import pytest
import typer

from lapwing.cli.options import grouped


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
