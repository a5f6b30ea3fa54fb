"""A secure task: what is asked, who adds it up, and the noise that each server adds. All of it is public.

Neighbours are two sets of answers of the same clients that differ in one client's answer (`replace_one`): who took part
is seen by every server, what was answered by none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from math import isqrt
from typing import ClassVar, Final, Self, final

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import read, written
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import GaussianDP, Loss, PureDP
from lapwing.secure.field import LARGEST, MODULUS
from lapwing.secure.grid import (
    GRID_LARGEST,
    GRID_MODULUS,
    GRID_SCALE,
    MOST_CELLS,
    POINT_BYTES,
    SEED_BYTES,
    TESTS,
    Grid,
    is_grid_part,
)
from lapwing.secure.joint_noise import CELL_DELTA
from lapwing.secure.repetition import TaskDays
from lapwing.secure.wire import CELL_BYTES, cells_of
from lapwing.secure.words import Words

FORMAT: Final = "lapwing secure task 1"
MOST_VALUES: Final = 10_000
MOST_STEPS: Final = 1 << 24
MOST_SERVERS: Final = 16
MOST_SCALE: Final = 1 << 50
MOST_TEXT: Final = 500
MOST_DELTA: Final = Fraction(1, 10**5)
"""Of a task that a client answers without being asked whether it accepts more."""
NEIGHBOURING: Final = "replace_one"
Noise = DiscreteLaplace | RoundedGaussian
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.-]{1,253}:[0-9]{1,5}")
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{64}")


@final
@dataclass(frozen=True, slots=True)
class Values:
    """One of a list of texts: one cell for each, 1 for the answer and 0 for all others."""

    kind: ClassVar[str] = "values"
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        for text in self.texts:
            _printable("value", text)
        if not 2 <= len(self.texts) <= MOST_CELLS or len(set(self.texts)) != len(self.texts):
            raise InvalidParameter(f"There must be 2 to {MOST_CELLS:,} values, no two the same.")

    @property
    def width(self) -> int:
        """How many cells an answer has."""
        return len(self.texts)

    @property
    def largest(self) -> int:
        """The most that one answer adds to a cell."""
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        """Another answer empties one cell and fills another, each by 1."""
        return Sensitivity(l1=2, l2_squared=2)

    @property
    def document(self) -> object:
        """The values as JSON holds them."""
        return list(self.texts)

    def cell(self, answer: str) -> int:
        """Return the place of an answer among the values.

        Raises:
            InvalidParameter: If it is none of the values; the message does not repeat it.
        """
        try:
            return self.texts.index(answer)
        except ValueError:
            allowed = ", ".join(self.texts[:10]) + (", …" if self.width > 10 else "")
            raise InvalidParameter(f"The answer must be one of {allowed}. Nothing was sent.") from None

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cells of an answer.

        Raises:
            InvalidParameter: If it is none of the values; the message does not repeat it.
        """
        cell = self.cell(answer)
        return tuple(int(place == cell) for place in range(self.width))


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A number, clamped to public bounds and rounded to a public grid: one cell, its steps above the lower bound."""

    kind: ClassVar[str] = "number"
    lower: Fraction
    upper: Fraction
    steps: int

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise InvalidParameter("The lower bound of a number must be below the upper one.")
        if not 1 <= self.steps <= MOST_STEPS:
            raise InvalidParameter(f"There are {self.steps} steps between the bounds; there must be 1 to {MOST_STEPS}.")

    @property
    def width(self) -> int:
        """How many cells an answer has."""
        return 1

    @property
    def largest(self) -> int:
        """The most that one answer adds to a cell."""
        return self.steps

    @property
    def sensitivity(self) -> Sensitivity:
        """Another answer moves the sum by all steps at most."""
        return Sensitivity.from_l1(self.steps)

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return (self.upper - self.lower) / self.steps

    @property
    def document(self) -> object:
        """The bounds and the grid as JSON holds them."""
        return {"lower": _written(self.lower), "upper": _written(self.upper), "steps": self.steps}

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cell of an answer: the nearest step, of two the upper one, after clamping.

        Raises:
            InvalidParameter: If it is no number; the message does not repeat it.
        """
        try:
            value = _signed(answer.strip(), "answer")
        except InvalidParameter:
            raise InvalidParameter("The answer is not a number such as 12 or 0.5. Nothing was sent.") from None
        inside = max(self.lower, min(self.upper, value))
        return (int((inside - self.lower) / self.step + Fraction(1, 2)),)


@final
@dataclass(frozen=True, slots=True)
class Vector:
    """Several numbers from 0 to `upper`, each on a grid, that are bounded together: by their sum, or by their length.

    Args:
        names: Of the numbers.
        norm: `l1`, for the sum, or `l2`, for the square root of the sum of squares.
        bound: The most that the norm may be, in steps: of l2 the square of it.
    """

    kind: ClassVar[str] = "vector"
    names: tuple[str, ...]
    upper: Fraction
    steps: int
    norm: str
    bound: int

    def __post_init__(self) -> None:
        for name in self.names:
            _printable("name", name)
        if not 2 <= len(self.names) <= MOST_VALUES or len(set(self.names)) != len(self.names):
            raise InvalidParameter(f"A vector has 2 to {MOST_VALUES:,} names, no two the same.")
        if not 1 <= self.steps <= MOST_STEPS or self.upper <= 0:
            raise InvalidParameter(f"A vector has an upper bound above 0, and 1 to {MOST_STEPS} steps up to it.")
        if self.norm not in NORMS or not 1 <= self.bound <= LARGEST:
            raise InvalidParameter("A vector has a bound l1 or l2 of at least one step.")
        if self.size([self.steps] * self.width) > LARGEST:  # what servers check modulo the modulus holds of integers
            raise InvalidParameter(
                "The steps are too fine for this number of cells and their bound; give fewer --steps."
            )

    @property
    def width(self) -> int:
        """How many cells an answer has."""
        return len(self.names)

    @property
    def largest(self) -> int:
        """The most that one answer adds to a cell."""
        return self.steps

    @property
    def sensitivity(self) -> Sensitivity:
        """Another answer moves the sums as far as two vectors within the bound are apart.

        No number is below 0, so |v − w|₁ ≤ |v|₁ + |w|₁. Likewise |v − w|₂² = |v|₂² + |w|₂² − 2v·w ≤ |v|₂² + |w|₂². With
        a sum of B at most, |v|₂² ≤ min(steps, B)·B. And no number moves by more than all steps.
        """
        entries, b = self.width, self.bound
        if self.norm == "l1":
            square = min(2 * min(self.steps, b) * b, entries * self.steps**2)
            return Sensitivity(l1=min(2 * b, entries * self.steps), l2_squared=square)
        return Sensitivity.from_l2_squared(min(2 * b, entries * self.steps**2), entries=entries)

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return self.upper / self.steps

    @property
    def document(self) -> object:
        """The names, the grid and the bound as JSON holds them; the bound is a whole number, in steps."""
        return {
            "names": list(self.names),
            "upper": written(self.upper),
            "steps": self.steps,
            "norm": self.norm,
            "bound": str(self.bound),
        }

    def size(self, cells: Sequence[int]) -> int:
        """Return what the bound bounds: the sum of the cells, or of their squares."""
        return sum(cells) if self.norm == "l1" else sum(cell**2 for cell in cells)

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cells of an answer, numbers between commas: clamped, rounded, and shrunk together into the bound.

        Raises:
            InvalidParameter: If these are not as many numbers as the task has; the message does not repeat them.
        """
        try:
            numbers = [_signed(each.strip(), "number") for each in answer.split(",")]
        except InvalidParameter:
            numbers = []
        if len(numbers) != self.width:
            raise InvalidParameter(
                f"The answer is not {self.width} numbers between commas, such as 1, 0.5 for two. Nothing was sent."
            )
        clamped = (max(Fraction(0), min(self.upper, number)) for number in numbers)
        cells = [int(number / self.step + Fraction(1, 2)) for number in clamped]
        size = self.size(cells)
        if size <= self.bound:
            return tuple(cells)
        if self.norm == "l1":  # rounded down each, so that together they are within the bound
            return tuple(cell * self.bound // size for cell in cells)
        return tuple(isqrt(cell**2 * self.bound // size) for cell in cells)


Asked = Values | Number | Vector | Words
NORMS: Final = ("l1", "l2")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of the servers: its name, where it is, its certificate (PEM), and the digest of the key that may close."""

    name: str
    address: str
    certificate: str
    close_key: str

    def __post_init__(self) -> None:
        require_name(self.name)
        require_address(self.address)
        if not _HEXADECIMAL.fullmatch(self.close_key) or "BEGIN CERTIFICATE" not in self.certificate:
            raise InvalidParameter(f"The server {self.name} has no certificate, or no digest of a key, in the task.")

    @property
    def host(self) -> str:
        """The host of its address."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port of its address."""
        return int(self.address.rpartition(":")[2])


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
        _printable("question", self.question)
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
        return None if not self.checked or isinstance(self.asked, Values | Words) else _weights(self.asked.steps)

    @property
    def slack(self) -> tuple[int, ...]:
        """How further bits add up to what a checked vector lacks to its bound; they are not released."""
        return _weights(self.asked.bound) if self.checked and isinstance(self.asked, Vector) else ()

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
        bits = [bit for cell in cells for bit in _bits(cell, self.weights)]
        if isinstance(self.asked, Vector):
            bits += _bits(self.asked.bound - self.asked.size(cells), self.slack)
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
            return cls._from_document(json.loads(text, object_pairs_hook=_unrepeated))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidParameter("This is not a secure task, or it is from another version of Lapwing.") from None

    @classmethod
    def _from_document(cls, document: Mapping[str, object]) -> Self:
        task = cls(
            question=_text(document["question"]),
            asked=_asked(document),
            epsilon=read(_text(document["epsilon"]), "epsilon"),
            delta=read(_text(document["delta"]), "delta"),
            least_clients=_count(document["least_clients"]),
            servers=tuple(_server(each) for each in _list(document["servers"])),
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


def _weights(most: int) -> tuple[int, ...]:
    """Return powers of two and a rest, of which every whole number up to `most` is a sum, and nothing above it is."""
    powers = [1 << place for place in range((most + 1).bit_length() - 1)]
    rest = most - sum(powers)
    return (*powers, rest) if rest else tuple(powers)


def _bits(steps: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Return which of the weights add up to a number: the largest first, whenever the others cannot do without it."""
    chosen = [0] * len(weights)
    for place in sorted(range(len(weights)), key=lambda place: weights[place], reverse=True):
        if weights[place] <= steps:
            chosen[place], steps = 1, steps - weights[place]
    return tuple(chosen)


def vector_within(names: Sequence[str], upper: Fraction, steps: int, norm: str, bound: Fraction) -> Vector:
    """Return the question for a vector whose norm is bounded in its own units; rounded down to the grid."""
    inside = bound / (upper / steps)
    return Vector(tuple(names), upper, steps, norm, int(inside if norm == "l1" else inside**2))


def number_between(bounds: str, steps: int) -> Number:
    """Return the question for a number between bounds such as "0:120".

    Raises:
        InvalidParameter: If they are none.
    """
    lower, colon, upper = bounds.partition(":")
    if not colon:
        raise InvalidParameter(f"The bounds are {bounds[:60]!r}; they must be LOWER:UPPER, like 0:120.")
    return Number(_signed(lower, "The lower bound"), _signed(upper, "The upper bound"), steps)


def require_name(name: str) -> None:
    """Refuse what is no name of a server."""
    if not _NAME.fullmatch(name):
        raise InvalidParameter(f"{name[:60]!r} is not a valid server name; use lower-case letters, digits and hyphens.")


def require_address(address: str) -> None:
    """Refuse what is no address of a server."""
    if not _ADDRESS.fullmatch(address) or not 1 <= int(address.rpartition(":")[2]) <= 65535:
        raise InvalidParameter(f"{address[:60]!r} is not an address; write HOST:PORT, like sums.example.org:8471.")


def _asked(document: Mapping[str, object]) -> Asked:
    if Values.kind in document:
        return Values(tuple(_text(value) for value in _list(document[Values.kind])))
    if Vector.kind in document:
        return _vector(document[Vector.kind])
    if Words.kind in document:
        return Words.from_document(_mapping(document[Words.kind]))
    number = document[Number.kind]
    if not isinstance(number, dict):
        raise TypeError
    lower, upper = (_signed(_text(number[name]), name) for name in ("lower", "upper"))
    return Number(lower, upper, _count(number["steps"]))


def _vector(document: object) -> Vector:
    if not isinstance(document, dict):
        raise TypeError
    names = tuple(_text(name) for name in _list(document["names"]))
    upper, bound = read(_text(document["upper"]), "upper"), int(_text(document["bound"]))
    return Vector(names, upper, _count(document["steps"]), _text(document["norm"]), bound)


def _server(document: object) -> Server:
    if not isinstance(document, dict):
        raise TypeError
    return Server(**{name: _text(document[name]) for name in ("name", "address", "certificate", "close_key")})


def _signed(text: str, name: str) -> Fraction:
    """Return a number as `read` reads it, with a minus before it or not."""
    return -read(text[1:], name) if text.startswith("-") else read(text, name)


def _written(number: Fraction) -> str:
    return f"-{written(-number)}" if number < 0 else written(number)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _unrepeated(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _printable(name: str, text: str) -> None:
    if not text or len(text) > MOST_TEXT or not text.isprintable():
        raise InvalidParameter(f"A {name} must be 1 to {MOST_TEXT} printable characters.")
