"""The sums of the parts of one server, which are cells or points of a grid, and its side of a test."""

from hashlib import sha256
from typing import Final, final

from lapwing.secure import wire
from lapwing.secure.checking import running_sums, summands
from lapwing.secure.field import AT_ZERO, MODULUS
from lapwing.secure.grid import GridPart, grid_soundness_error
from lapwing.secure.noisy_totals import totals_of
from lapwing.secure.task import Task

_GRID: Final = b"lapwing secure grid 1\n"


def soundness_error(task: Task, clients: int) -> float:
    """Return the most that the probability is with which a liar stays, over all ranges that may be opened."""
    if task.grid:
        return grid_soundness_error(clients)
    return 2 * clients * clients * (2 * task.width + 1) / MODULUS


@final
class CellSums:
    """Sums of cells, for a server of a task without a grid."""

    def __init__(self, task: Task, place: int) -> None:
        self._task, self._place = task, place

    def totals(self, parts: bytes) -> list[int]:
        """Return the server's part of each total. The parts of all servers add up to the total."""
        task = self._task
        share = AT_ZERO[self._place] if task.checked else 1
        return [share * total for total in totals_of(parts, task.width, combined=task.combined)]

    def tested(self, parts: bytes, digest: str, challenge: int) -> list[list[int]]:
        """Return the running sums over clients of what the server contributes to each number that is opened."""
        size = wire.CELL_BYTES * self._task.width
        points = [wire.cells_of(parts[at : at + size]) for at in range(0, len(parts), size)]
        return [running_sums(summands(points, self._place, challenge, self._task.excess))]


@final
class GridSums:
    """Counts of the cells of a grid, for a server of a task that has one."""

    def __init__(self, task: Task, place: int) -> None:
        self._part = GridPart(task.shape, place)

    def totals(self, parts: bytes) -> list[int]:
        """Return the server's part of each count. The parts of all servers add up to the count."""
        return [int(each) for each in self._part.totals(parts).tolist()]

    def tested(self, parts: bytes, digest: str, challenge: int) -> list[list[int]]:
        """Return the running sums over clients of what the server contributes to each number that is opened."""
        key = sha256(_GRID + bytes.fromhex(digest) + challenge.to_bytes(8, "little")).digest()
        return [running_sums(each) for each in self._part.summands(parts, key).T.tolist()]
