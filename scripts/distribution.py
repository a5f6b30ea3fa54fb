"""Build what is given out, into dist/: wheel, source distribution, bill of materials, and the checksums of all three.

What is built is what is committed: the files come out of the commit, not out of the folder, so nothing that lies about
gets in. They carry the time of that commit, or SOURCE_DATE_EPOCH. The same commit, built by the locked tools, is the
same bytes, whoever builds it, when and where.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bill_of_materials import Incomplete, bill

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
SUMS: Final = "SHA256SUMS"


def git(*arguments: str) -> bytes:
    """Return what git says of this clone."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def committed(folder: Path) -> None:
    """Lay the files of the commit into a folder."""
    archive = git("-c", "tar.umask=0022", "archive", "--format=tar", "HEAD")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def sum_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def build(source: Path, out: Path, moment: int) -> None:
    """Build from a folder of committed files into an empty one."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(out)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(moment)}
    subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.DEVNULL)
    built = {file.name: sum_of(file) for file in out.iterdir()}
    (wheel,) = (name for name in built if name.endswith(".whl"))
    document = bill(source, built, moment)
    named = out / f"{'-'.join(wheel.split('-')[:2])}.cdx.json"
    named.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    sums = "".join(f"{sum_of(file)}  {file.name}\n" for file in sorted(out.iterdir()))
    (out / SUMS).write_text(sums, encoding="utf-8")


def main() -> None:
    """Build this clone's commit into dist/, in place of what was there."""
    if not (ROOT / ".git").exists():
        sys.exit("What is built is what is committed, and this folder is no clone: git clone it, and build there.")
    if git("status", "--porcelain", "--untracked-files=no"):
        print("Changes that are not committed are not in it.", file=sys.stderr)
    moment = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    with TemporaryDirectory() as name:
        source, out = Path(name) / "source", Path(name) / "dist"
        committed(source)
        try:
            build(source, out, moment)
        except Incomplete as error:
            sys.exit(str(error))
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(out, DIST)
    for file in sorted(DIST.iterdir()):
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
