"""A Prio3 task under a promise: what is measured, and the noise that each server adds to its share of the totals."""

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import written
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import GaussianDP, Loss, PureDP
from lapwing.secure.prio3.circuits import Circuit
from lapwing.secure.prio3.prio3 import Prio3
from lapwing.secure.task import MOST_SCALE, Noise

MOST_REPORTS: Final = 10_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prio3Task:
    """A question to people, under a promise; all of it is public.

    Guarantee:
        Take the view of all servers but one, the collector, all other clients and all readers together. It is
        (epsilon, delta)-DP for each honest client's report, up to the advantage against the XOF. Neighbours are two
        sets of reports of the same clients, with another measurement of one client (`replace_one`). Everybody may see
        who took part.

        Proof. By the theorem of Prio3, one can simulate the view from the releases of the honest server h. Its output
        share of the client is x + k. Here x is what the circuit adds up of the measurement, and the others know k. A
        release is the sum over a set, plus noise n, modulo p. If the set lacks the client, it does not depend on x. If
        not, it is a function of x + n and of what the others know: the additive mechanism at the circuit's sensitivity.
        Whether h accepts the report does not depend on x, because every valid measurement passes. Each set is one
        charge of h's ledger, and the ledger is a filter for sets that others choose adaptively. The proof uses the
        noise of h and no other noise. So each server adds all of it.

        The conditions of `Prio3` hold. And h takes only input shares that the client sealed for this task, because two
        tasks that count one report cost twice.

        Let all servers follow the protocol. A lying client passes with a probability of at most `soundness_error` for
        each attempt, and may then add any vector. Otherwise it moves each total by at most what one valid measurement
        does. A lying server can let invalid reports pass, and can spoil the totals; privacy does not rest on that.

    Args:
        servers: How many there are.
        least_reports: With fewer reports, the servers release nothing.

    Raises:
        InvalidParameter: If a part is out of its range.
    """

    question: str
    circuit: Circuit
    epsilon: Fraction
    delta: Fraction
    least_reports: int
    servers: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.least_reports <= self.most_reports:
            raise InvalidParameter(
                f"The least number of reports is {self.least_reports}; it must be 1 to {self.most_reports:,}."
            )
        if self.delta * self.least_reports > 1:
            raise InvalidParameter("The delta must not be above one over the least number of reports.")
        if self.noise.scale > MOST_SCALE:
            raise InvalidParameter("This epsilon needs more noise than a total has room for; give a larger epsilon.")

    @property
    def most_reports(self) -> int:
        """The largest number of reports for which no total is beyond a quarter of the modulus."""
        return min(self.circuit.field.modulus // (4 * self.circuit.largest), MOST_REPORTS)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far another measurement moves the totals."""
        return self.circuit.sensitivity

    @property
    def measure(self) -> str:
        """The measure of the loss."""
        return GaussianDP.kind if self.delta else PureDP.kind

    @property
    def loss(self) -> Loss:
        """The loss of one server's noise."""
        return loss_for(self.measure, self.epsilon, self.delta)

    @property
    def noise(self) -> Noise:
        """The noise that each server adds to each total: discrete Laplace, or rounded Gaussian."""
        mechanism = RoundedGaussian if self.delta else DiscreteLaplace
        return mechanism.for_loss(self.loss, self.sensitivity)

    @property
    def digest(self) -> str:
        """SHA-256 of all parts of the task."""
        parts = {
            "format": "lapwing prio3 task 1",
            "question": self.question,
            "circuit": [self.circuit.algorithm, *astuple(self.circuit)],
            "epsilon": written(self.epsilon),
            "delta": written(self.delta),
            "least_reports": self.least_reports,
            "servers": self.servers,
        }
        return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    @property
    def prio3(self) -> Prio3:
        """The protocol, for this task: shares for it are worth nothing in another, whose parameters or noise differ."""
        return Prio3(circuit=self.circuit, context=bytes.fromhex(self.digest), servers=self.servers)

    def totals(self, shares: Sequence[bytes]) -> list[int]:
        """Return the noisy totals, from the releases of all servers; noise may make them negative.

        Raises:
            InvalidParameter: If a release is missing or malformed.
        """
        p = self.circuit.field.modulus
        found = self.prio3.unshard([self.circuit.field.decode(share) for share in shares])
        return [total - p if total > p // 2 else total for total in found]
