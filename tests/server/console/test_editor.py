"""The editor that is in the package is the one that its lock and its source were built to."""

from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from lapwing.server.console import templates

SOURCE: Final = Path(__file__).parents[3] / "scripts" / "console-editor"


def digest(files: list[Path]) -> str:
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def files() -> list[Path]:
    return [SOURCE / "package-lock.json", SOURCE / "editor.mjs", templates.STATIC / "editor.js"]


def test_the_editor_was_built_from_its_lock() -> None:
    """Whoever changes one of them builds anew (`scripts/console-editor/build.sh`), and that notes all three."""
    assert digest(files()) == (SOURCE / "sum").read_text("ascii").strip()


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_a_change_of_one_of_them_is_found(tmp_path: Path, changed: int) -> None:
    edited = files()
    copy = tmp_path / "edited"
    copy.write_bytes(edited[changed].read_bytes() + b" ")
    edited[changed] = copy
    assert digest(edited) != (SOURCE / "sum").read_text("ascii").strip()


def test_its_licences_are_in_the_package() -> None:
    licences = (templates.FOLDER / "editor-licences.txt").read_text("utf-8")
    for name in ("@codemirror/view", "@codemirror/state", "@lezer/lr", "style-mod", "w3c-keyname", "crelt"):
        assert f"\n{name} " in f"\n{licences}"
    assert licences.count("MIT License") + licences.count("Permission is hereby granted") >= 10
