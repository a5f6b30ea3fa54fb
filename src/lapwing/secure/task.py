"""A secure task: what is asked, who adds it up, and the noise that each server adds. All of it is public.

Neighbours are two sets of answers of the same clients that differ in one client's answer (`replace_one`): who took part
is seen by every server, what was answered by none.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Final, Self, final

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import read, written
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import GaussianDP, Loss, PureDP
from lapwing.secure.asked import Asked, asked_of
from lapwing.secure.bit_weights import bits_of, weights_up_to
from lapwing.secure.documents import count_of, list_of, require_printable, text_of, unrepeated
from lapwing.secure.field import LARGEST, MODULUS
from lapwing.secure.grid import (
    GRID_LARGEST,
    GRID_MODULUS,
    GRID_SCALE,
    POINT_BYTES,
    SEED_BYTES,
    TESTS,
    Grid,
    is_grid_part,
)
from lapwing.secure.joint_noise import CELL_DELTA
from lapwing.secure.repetition import TaskDays
from lapwing.secure.servers import Server, server_of
from lapwing.secure.values import Values
from lapwing.secure.vectors import Vector
from lapwing.secure.wire import CELL_BYTES, cells_of
from lapwing.secure.words import Words

FORMAT: Final = "lapwing secure task 1"
MOST_VALUES: Final = 10_000
"""Of a task without a grid."""
MOST_SERVERS: Final = 16
MOST_SCALE: Final = 1 << 50
MOST_DELTA: Final = Fraction(1, 10**5)
"""Of a task that a client answers without being asked whether it accepts more."""
NEIGHBOURING: Final = "replace_one"
Noise = DiscreteLaplace | RoundedGaussian


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question to people, under a promise.

    Guarantee:
        Take all that every server except one, the organiser, all other clients and every reader see together. It is
        (epsilon, delta)-DP for each client's answer, because the one server left adds all of the noise that this takes.
        The proof is in docs/theory/secure.md. All servers together see every answer. If answers are checked, the same
        holds for any one server with the others, and two servers of the three see every answer. If the noise is joint,
        it holds for any one server that follows the protocol, and two of the three see the totals without noise.

    Args:
        checked: Whether answers are split so that servers can test them without seeing them (`secure.checking`).
        joint: Whether the three servers draw one noise together, which none of them knows (`secure.joint_noise`). Its
            delta is what the rounding of that costs.
        grid: Whether an answer is sent as a row and a column, so that there may be many values (`secure.grid`).
        repeats: The days of a task that is asked every day. Its epsilon is for all answers of a client together.

    Raises:
        InvalidParameter: If a part is out of its range.
    """

    question: str
    asked: Asked
    epsilon: Fraction
    delta: Fraction
    least_clients: int
    servers: tuple[Server, ...]
    checked: bool = False
    joint: bool = False
    grid: bool = False
    repeats: TaskDays | None = None
    digest: str = field(init=False, repr=False, compare=False)
    """SHA-256 of the document in JSON with sorted keys, without spaces, in UTF-8."""

    def __post_init__(self) -> None:
        require_printable("question", self.question)
        self._require_grid()
        if self.repeats and (self.checked or self.joint or self.delta):
            raise InvalidParameter(
                "A task that repeats has Laplace noise of each server: leave out --checked, --joint and --delta."
            )
        if (self.checked or self.joint) and len(self.servers) != 3:
            which = "Checked answers take" if self.checked else "A joint noise takes"
            raise InvalidParameter(f"{which} three servers; {len(self.servers)} are given.")
        if self.joint and self.delta != joint_delta(self.asked):
            raise InvalidParameter(
                f"The delta is {short(self.delta)}, and the joint noise of {self.asked.width} cells has one of "
                f"{short(joint_delta(self.asked))}; leave it out. It is Laplace noise: Gaussian noise is not joint."
            )
        if not 2 <= len(self.servers) <= MOST_SERVERS:
            raise InvalidParameter(f"{len(self.servers)} servers are given; there must be 2 to {MOST_SERVERS}.")
        for name in ("name", "address", "certificate"):
            if len({getattr(server, name) for server in self.servers}) != len(self.servers):
                raise InvalidParameter(f"Two servers have the same {name}; each needs its own.")
        if not 1 <= self.least_clients <= self.most_clients:
            raise InvalidParameter(
                f"The least number of clients is {self.least_clients}; it must be 1 to {self.most_clients:,}."
            )
        if self.noise.scale > (GRID_SCALE if self.grid else MOST_SCALE):
            raise InvalidParameter("This epsilon needs more noise than a total has room for; give a larger epsilon.")
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        object.__setattr__(self, "digest", sha256(text.encode("utf-8")).hexdigest())

    def _require_grid(self) -> None:
        if self.grid and (not isinstance(self.asked, Values | Words) or not self.checked or self.joint):
            raise InvalidParameter("A grid is for checked values or words; its noise cannot be joint.")
        if isinstance(self.asked, Words) and not self.grid:
            raise InvalidParameter("Words take a checked task with a grid (--checked --grid).")
        if not self.grid and isinstance(self.asked, Values) and self.asked.width > MOST_VALUES:
            raise InvalidParameter(
                f"There are {self.asked.width:,} values, and more than {MOST_VALUES:,} need a checked task with a grid "
                "(--checked --grid)."
            )

    @property
    def shape(self) -> Grid:
        """The grid of a task that has one."""
        return Grid(self.asked.width)

    @property
    def modulus(self) -> int:
        """The modulus of all numbers that servers add up."""
        return GRID_MODULUS if self.grid else MODULUS

    @property
    def tests(self) -> int:
        """How many numbers are opened for a range of clients, if answers are checked."""
        return TESTS if self.grid else 1

    @property
    def most_clients(self) -> int:
        """The largest number of clients, of each day, for which no total is beyond LARGEST."""
        days = self.repeats.days if self.repeats else 1
        return GRID_LARGEST if self.grid else min(LARGEST // (days * self.asked.largest), 10_000_000)

    @property
    def weights(self) -> tuple[int, ...] | None:
        """How bits add up to each released cell, if numbers are sent in checked bits; None if cells are sent."""
        return None if not self.checked or isinstance(self.asked, Values | Words) else weights_up_to(self.asked.steps)

    @property
    def slack(self) -> tuple[int, ...]:
        """How further bits add up to what a checked vector lacks to its bound; they are not released."""
        return weights_up_to(self.asked.bound) if self.checked and isinstance(self.asked, Vector) else ()

    @property
    def width(self) -> int:
        """How many cells a client sends."""
        return self.shape.sent if self.grid else self.asked.width * len(self.weights or (1,)) + len(self.slack)

    def part_bytes(self, place: int) -> int:
        """Return how long a client's part for the server at a place is."""
        if self.grid:
            return POINT_BYTES * self.width if place else SEED_BYTES
        return CELL_BYTES * self.width

    def is_part(self, part: bytes, place: int) -> bool:
        """Tell whether a part of that length may be one: no number is beyond the modulus."""
        if self.grid:
            return is_grid_part(part, place)
        return all(cell < MODULUS for cell in cells_of(part))

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cells of an answer, before a client splits them.

        Raises:
            InvalidParameter: If that may not be answered.
        """
        if self.grid and isinstance(self.asked, Values | Words):
            return self.shape.encode(self.asked.cell(answer))
        cells = self.asked.encode(answer)
        if self.weights is None:
            return cells
        bits = [bit for cell in cells for bit in bits_of(cell, self.weights)]
        if isinstance(self.asked, Vector):
            bits += bits_of(self.asked.bound - self.asked.size(cells), self.slack)
        return tuple(bits)

    def excess(self, points: Sequence[int]) -> int | None:
        """Return one more number that must be 0 of what a client sends, beside that its cells are 0 or 1; None if none.

        It is a polynomial of degree 2 at most in what is sent, so servers compute it of their points.
        """
        if isinstance(self.asked, Values):
            return sum(points) - 1
        if not isinstance(self.asked, Vector):
            return None
        cells = self.combined(points)
        rest = points[len(points) - len(self.slack) :]
        lacking = sum(weight * point for weight, point in zip(self.slack, rest, strict=True))
        return self.asked.size(cells) + lacking - self.asked.bound

    def combined(self, sent: Sequence[int]) -> list[int]:
        """Return the cells that are released, from cells as they are sent, or their sums."""
        if self.weights is None:
            return list(sent)
        size = len(self.weights)
        return [
            sum(weight * cell for weight, cell in zip(self.weights, sent[at : at + size], strict=True))
            for at in range(0, size * self.asked.width, size)
        ]

    @property
    def loss(self) -> Loss:
        """The loss of one server's noise: ε, or μ² where the promise has a delta."""
        return loss_for(self.measure, self.epsilon, self.delta)

    @property
    def measure(self) -> str:
        """The measure of the loss."""
        return GaussianDP.kind if self.delta and not self.joint else PureDP.kind

    @property
    def noise(self) -> Noise:
        """The noise that each server, or all together, add to each cell: discrete Laplace, or rounded Gaussian.

        If the task repeats, it is the noise of a node (`secure.repetition`).
        """
        if self.repeats:
            return DiscreteLaplace(scale=self.repeats.mechanism(self.epsilon, self.asked.sensitivity).scale)
        mechanism = RoundedGaussian if self.measure == GaussianDP.kind else DiscreteLaplace
        return mechanism.for_loss(self.loss, self.asked.sensitivity)

    @property
    def noises(self) -> int:
        """How many of these noises are in a total."""
        return 1 if self.joint else len(self.servers)

    @property
    def promise(self) -> str:
        """The promise, in words."""
        if self.checked or self.joint:
            return f"{self._amounts} for each answer, unless two of {self._names} put together what they hold"
        return f"{self._amounts} for {self._unit}, unless all of {self._names} put together what they hold"

    @property
    def _unit(self) -> str:
        if self.repeats is None:
            return "each answer"
        once = f"at most one a day, and on at most {self.repeats.most_days} of {self.repeats.days} days"
        return f"all answers of a client together, {once}"

    @property
    def _amounts(self) -> str:
        return f"epsilon {written(self.epsilon)}" + (f", delta {short(self.delta)}" if self.delta else "")

    @property
    def _names(self) -> str:
        return ", ".join(server.name for server in self.servers)

    def require_small_delta(self, accepted: Fraction | None = None) -> None:
        """Refuse a task whose δ makes its ε worth nothing, on behalf of a client.

        With δ = 1/n the exact answer of one of n clients, chosen at random, may be published, and every other answer
        stay perfectly secret. That is (0, 1/n)-DP. So no client accepts more than 1/n of the least number of clients,
        nor more than MOST_DELTA unless its owner says so. The author of the task chooses least_clients, and may be most
        of the clients: a δ is a chance that the owner takes.

        Args:
            accepted: The δ that the owner accepts for this task.

        Raises:
            QueryRefused: If the question is not understood or not allowed.
        """
        if self.delta * self.least_clients > 1:
            raise QueryRefused(
                f"The task has delta {short(self.delta)}, above 1/{self.least_clients}, one over its least number of "
                "clients: it could publish somebody's exact answer",
                cause=RefusalCause.DELTA_TOO_LARGE,
                remedy="Nothing was sent. Ask for a task with a smaller delta.",
            )
        if self.delta > (MOST_DELTA if accepted is None else accepted):
            raise QueryRefused(
                f"The task has delta {short(self.delta)}: its epsilon may fail with this probability. This device "
                f"accepts at most {short(MOST_DELTA if accepted is None else accepted)}",
                cause=RefusalCause.DELTA_TOO_LARGE,
                remedy="Nothing was sent. To accept it, use `lapwing secure send --accept-delta DELTA`, or "
                "`accept_delta` in Python.",
            )

    @property
    def document(self) -> dict[str, object]:
        """The task as JSON holds it; amounts are exact texts."""
        return {
            "format": FORMAT,
            "question": self.question,
            self.asked.kind: self.asked.document,
            "epsilon": written(self.epsilon),
            "delta": written(self.delta),
            "noise": {"mechanism": self.noise.name, "scale": written(self.noise.scale)},
            "least_clients": self.least_clients,
            "servers": [
                {
                    "name": server.name,
                    "address": server.address,
                    "close_key": server.close_key,
                    "certificate": server.certificate,
                }
                for server in self.servers
            ],
            **({"checked": True} if self.checked else {}),
            **({"joint": True} if self.joint else {}),
            **({"grid": True} if self.grid else {}),
            **({"repeats": self.repeats.document} if self.repeats else {}),
        }

    def to_text(self) -> str:
        """Return the task as a file has it."""
        return json.dumps(self.document, indent=1, ensure_ascii=False) + "\n"

    def on(self, day: int | None) -> Self:
        """Return the task of one day, if it repeats; for None, the task of all days."""
        return self if self.repeats is None else replace(self, repeats=self.repeats.on(day))

    def server(self, name: str) -> Server:
        """Return the server of a name.

        Raises:
            InvalidParameter: If there is none.
        """
        for server in self.servers:
            if server.name == name:
                return server
        raise InvalidParameter(
            f"The task has no server {name!r}; it has {', '.join(server.name for server in self.servers)}."
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a task, strictly: anything unknown is refused, and so is noise that is not what its promise takes.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        try:
            return cls._from_document(json.loads(text, object_pairs_hook=unrepeated))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidParameter("This is not a secure task, or it is from another version of Lapwing.") from None

    @classmethod
    def _from_document(cls, document: Mapping[str, object]) -> Self:
        task = cls(
            question=text_of(document["question"]),
            asked=asked_of(document),
            epsilon=read(text_of(document["epsilon"]), "epsilon"),
            delta=read(text_of(document["delta"]), "delta"),
            least_clients=count_of(document["least_clients"]),
            servers=tuple(server_of(each) for each in list_of(document["servers"])),
            checked="checked" in document,
            joint="joint" in document,
            grid="grid" in document,
            repeats=TaskDays.from_document(document["repeats"]) if "repeats" in document else None,
        )
        if document["noise"] != task.document["noise"]:
            raise InvalidParameter("The task states a different amount of noise than its promise needs; send nothing.")
        if task.document != document:
            raise ValueError
        return task


def joint_delta(asked: Asked) -> Fraction:
    """Return the delta of a joint noise: that of each cell, for all cells that are released."""
    return CELL_DELTA * asked.width
