"""`lapwing serve --demo`: a console to try out, with the shipped data set, a curator and an analyst.

Theory of operation. The shipped file and its catalog are copied into a folder, and served as any data set. The two
accounts have passwords of 80 random bits, which are printed once; the store has only their hashes. Only this machine
reaches the service. The folder has the ledger and the people too, and a folder for files that the curator uploads. It
is removed when the service ends, unless `--keep` names it. A service that did not start leaves nothing in it.
"""

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

from lapwing.cli.console import print_text
from lapwing.datasets import rand_hie_catalog, rand_hie_data
from lapwing.errors import InvalidParameter
from lapwing.machine.scratch import temporary_folder

if TYPE_CHECKING:
    from lapwing.server.service import Service

CATALOG: Final = "lapwing.toml"
UPLOADS: Final = "uploads"
"""The folder for the files that the curator uploads."""
CURATOR, ANALYST = "curator", "analyst"


HOSTS: Final = frozenset({"127.0.0.1", "localhost"})
"""Hosts by which a browser of this machine finds a demo. Tunnels use them, too."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """A service to try out."""

    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Try the console on this machine, with public data and two accounts. It leaves no files.",
        ),
    ] = False
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="With --demo: use this new folder, and leave it there.", show_default=False
        ),
    ] = None

    def require_alone(self, sources: object, **stated: object) -> None:
        """Refuse a folder without a demo, and options that a demo does not take.

        Args:
            stated: The options that were given, by name; what is false or None was not.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        if not self.demo:
            if self.keep is not None:
                raise InvalidParameter("--keep is for --demo.")
            return
        beside = ["a catalog or data file"] if sources else []
        beside += [f"--{name.replace('_', '-')}" for name, value in stated.items() if value]
        if beside:
            raise InvalidParameter(
                f"--demo serves its own data, to this machine only. Leave out {beside[0]}. To try files of your own, "
                "upload them as the curator, on the page Register a data set."
            )

    @contextmanager
    def folder(self, started: Callable[[], bool] = lambda: True) -> Iterator[Path]:
        """Return a folder with the shipped data set, which is removed at the end unless `--keep` names it.

        Args:
            started: Tells whether somebody may have used it. If not, an error empties the folder of `--keep`, too.

        Raises:
            InvalidParameter: If the folder of `--keep` cannot be made, or has files.
        """
        if self.keep is not None:
            kept = _filled(_made(self.keep))
            try:
                yield kept
            except BaseException:
                if not started():
                    _empty(kept)
                raise
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # also before the service listens
        with temporary_folder("lapwing-demo-") as folder:
            yield _filled(folder)


def introduce(service: "Service", address: str) -> None:
    """Add the two accounts, let the analyst query and publish, and print the passwords, this once."""
    from lapwing.server.credentials import new_name

    passwords = {
        name: "-".join(new_name()[place : place + 5] for place in range(0, 20, 5)) for name in (CURATOR, ANALYST)
    }
    service.people.add(CURATOR, "curator", passwords[CURATOR], by=CURATOR)
    service.people.add(ANALYST, "analyst", passwords[ANALYST], by=CURATOR)
    for served in service.datasets.everything():
        view = served.session.budget(history=False)
        grant: Any = (served.name, ANALYST, None, view.spending, view.total, view.delta_keys)
        service.policies.grant(*grant, by=CURATOR)
        service.published.allow(served.name, (), by=CURATOR)  # the data are public, so Publish can be tried
    lines = [f"{name:<8} {password}" for name, password in passwords.items()]
    print_text("\n".join([f"{address}/console", *lines, ""]))


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise InvalidParameter(
            f"The folder {folder} cannot be made: {error.strerror}. Choose another --keep."
        ) from None
    if not empty:
        raise InvalidParameter(
            f"The folder {folder} has files. Choose a new one. To go on with an earlier demo, run "
            f"`lapwing serve {folder / CATALOG} --data {folder / UPLOADS}`."
        )
    return folder


def _empty(folder: Path) -> None:
    """Remove what a demo wrote into a folder that was empty before, so that the next one may have it."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _filled(folder: Path) -> Path:
    (folder / UPLOADS).mkdir(mode=0o700)
    source = rand_hie_data()
    shutil.copyfile(source, folder / source.name)
    shutil.copyfile(rand_hie_catalog(), folder / CATALOG)
    shutil.copyfile(source.with_name("README.md"), folder / "README.md")
    return folder
