"""`lapwing demo`: real questions on a public data set, with the truth beside each answer.

Theory of operation. The shipped file and its catalog are copied into a fresh folder, and a session opened there like
anybody's: what is printed as an answer went through the release path, and is charged to that folder's ledger. The
truth column comes from `truth`, which no other code can reach.
"""

import os
import shlex
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

import lapwing as lw
from lapwing.cli import budget
from lapwing.cli.console import page_width, print_text, show
from lapwing.cli.demo import stage
from lapwing.cli.demo.scenes import SCENES, Scene
from lapwing.cli.question import Stopped, ignore_interrupts, pointing_at
from lapwing.datasets import rand_hie_catalog, rand_hie_data
from lapwing.errors import BudgetExhausted, Interrupted, InvalidParameter, QueryRefused

if TYPE_CHECKING:
    from lapwing.session import Session

EXAMPLE: Final = """\b
Examples:
  lapwing demo
  lapwing demo --folder lesson
  lapwing demo secure
  lapwing demo density"""

MOST_FOLDERS: Final = 1000

INTRODUCTION: Final = (
    "The RAND Health Insurance Experiment (1974 to 1982): 20,190 yearly records of 5,912 people, who were given an "
    "insurance plan by lot. The data are public, so here you can compare noisy results with true ones. All answers "
    "together are (epsilon 3, delta 1e-6)-private for each person: one budget for all who ask, now and later."
)


class Lesson(StrEnum):
    """What is shown."""

    questions = "questions"
    secure = "secure"
    density = "density"


def command(
    lesson: Annotated[
        Lesson, typer.Argument(help="The topic: queries, secure sums, or numbers over time.")
    ] = Lesson.questions,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder; numbered if it exists.")] = Path("demo"),
) -> None:
    """Run real queries on a public data set, in a new folder, with the true number next to each result.

    With `density`, show where the people of a city are, every quarter of an hour (`lapwing monitor`).
    With `secure`, three servers add up the answers of a thousand people, and none sees an answer (`lapwing secure`).
    """
    fresh = fresh_folder(folder)
    if lesson is Lesson.secure:
        from lapwing.cli.demo import secure_sums

        secure_sums.play(fresh)
        return
    if lesson is Lesson.density:
        from lapwing.cli.demo import density

        density.play(fresh)
        return
    source = rand_hie_data()
    shutil.copyfile(source, fresh / source.name)
    shutil.copyfile(rand_hie_catalog(), fresh / "lapwing.toml")
    shutil.copyfile(source.with_name("README.md"), fresh / "README.md")  # what the columns mean
    try:
        with lw.connect(fresh / "lapwing.toml") as session:
            show(Text("Lapwing: private answers to real questions", style="bold"), Text(), Text(INTRODUCTION))
            for number, scene in enumerate(SCENES, start=1):
                _play(number, scene, session)
            _end(session, fresh)
    except (KeyboardInterrupt, Interrupted):
        ignore_interrupts()
        raise Stopped(f"Interrupted; the demo in {fresh} stays as far as it went, with a budget of its own.") from None


def fresh_folder(first: Path) -> Path:
    """Make a folder that was not there: the one that is wanted, or the first free one of `-2`, `-3` and so on."""
    for number in range(1, MOST_FOLDERS):
        folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise InvalidParameter(
                f"The folder {folder} cannot be made: {error.strerror}. Choose another --folder."
            ) from None
        return folder
    raise InvalidParameter(f"There are {MOST_FOLDERS} demos next to {first}; remove some, or choose another --folder.")


def _play(number: int, scene: Scene, session: "Session") -> None:
    words: list[RenderableType] = [stage.heading(number, scene.title, page_width(sys.stdout)), Text(scene.before)]
    if scene.wider is not None:
        words.append(stage.comparison(scene, session))
    show(*words, Padding(stage.prompt(scene), (1, 0, 0, 0)))
    try:
        with pointing_at(scene.sql):
            answer = session.sql(scene.sql, epsilon=scene.epsilon, error=scene.error)
    except (QueryRefused, BudgetExhausted) as error:
        show(stage.refused(error, session))
    else:
        show(stage.answered(scene, answer, session, warn=number == 1))
    if scene.after:
        show(Padding(Text(scene.after), (1, 0, 0, 0)))


def _end(session: "Session", folder: Path) -> None:
    limits = session.catalog.budget
    show(
        stage.heading(len(SCENES) + 1, "The budget, as `lapwing budget` shows it", page_width(sys.stdout)),
        *budget.as_page(session.budget(), session.catalog.name, limits.delta - limits.delta_keys),
        Text(f"\nYour turn. Everything of this demo is in {folder}{os.sep}; type:", style="bold"),
    )
    print_text(what_next(folder))  # never folded: it is there to be copied


def what_next(folder: Path) -> str:
    """Return commands that work as they stand, in the shell that this was started from."""
    lapwing = executable(folder)
    question = '"SELECT health, COUNT(*) AS years FROM rand_hie GROUP BY health" --epsilon 0.3'
    return f"""  cd {shlex.quote(os.fspath(folder))}
  {lapwing} explain {question}
  {lapwing} query {question}
  {lapwing} budget
"""


def executable(folder: Path) -> str:
    """Return how this program is called from a folder: by its name if the shell finds it, else by its path."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m lapwing"
    path = shutil.which(program.name)
    if path is not None and program.exists() and os.path.samefile(path, program):
        return shlex.quote(program.name)
    return shlex.quote(os.path.relpath(program, folder))
