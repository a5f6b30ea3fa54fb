"""An accountant for Opacus that charges Lapwing's ledger: all steps before the first, and none beyond them.

Theory of operation. Opacus tells its accountant of each step after its noise was added and before weights are updated:
too late to charge, since by then rows were read. So all steps are reserved when the accountant is made
(`Session.reserve`), and each step takes one of them. A step that was not reserved, or with less noise or a larger
sample than was, raises; Opacus then leaves the weights as they are.

Guarantee:
    What was charged covers the steps that were counted, if each is a Gaussian mechanism with at least this noise on a
    Poisson sample of units with at most this rate. Whether it is, is up to Opacus and to whoever feeds it: its noise is
    floating point, its samples are of rows (one row must be a person), and clipping, loaders without Poisson samples
    and what else looks at rows are outside of what an accountant sees. `deep.NetworkClassifier` sees to all of it by
    itself.

Source:
    The interface is Opacus' `IAccountant`; Opacus itself is not needed to make one of these.
"""

from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from lapwing.errors import BudgetExhausted
from lapwing.privacy.amounts import Number, exact, probability
from lapwing.privacy.listing import NEIGHBOURING, listed
from lapwing.privacy.loss_distribution import LossDistribution
from lapwing.privacy.statements import composed, uses_of

if TYPE_CHECKING:
    from lapwing.privacy.measures import Loss
    from lapwing.release.reserving import Reservation
    from lapwing.session import Session

NAME: Final = "lapwing"
History = list[tuple[float, float, int]]
"""Noise multiplier, sample rate and number of steps, as Opacus keeps them."""


class NoisyOptimizer(Protocol):
    """What Opacus' optimizer tells of a step."""

    noise_multiplier: float
    accumulated_iterations: int


@final
class OpacusAccountant:
    """An accountant for Opacus whose steps are paid before the first: `engine.accountant = OpacusAccountant(…)`.

    Guarantee:
        One (μ, δ), or loss in the ledger's measure, charged durably when it is made.

    Args:
        noise_multiplier: σ in clips.
        sample_rate: Of the Poisson samples, 1/len(data_loader) in Opacus.
        steps: How many.
        delta: Of the ledger's `delta_keys`, above 0 in a gdp ledger for samples.
        label: For the history.

    Raises:
        LapwingError: As `Session.reserve`; nothing is charged then.
    """

    def __init__(
        self,
        session: "Session",
        *,
        noise_multiplier: Number,
        sample_rate: Number,
        steps: int,
        delta: Number,
        label: str = "train with Opacus",
    ) -> None:
        self._sigma = exact(noise_multiplier, "noise_multiplier")
        self._rate = exact(sample_rate, "sample_rate")
        self._neighbouring = next(name for name in NEIGHBOURING if name == session.catalog.budget.neighbouring)
        steps_of = listed("gaussian", steps, sigma=self._sigma, rate=self._rate)
        self._reservation: Reservation = session.reserve([steps_of], label, delta=delta)
        self.history: History = []

    @property
    def charged(self) -> "Loss":
        """The charge for all steps."""
        return self._reservation.charged

    @property
    def left(self) -> int:
        """How many steps are left of those that were paid."""
        return self._reservation.left[0]

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count a step.

        Raises:
            BudgetExhausted: For a step beyond those that were paid, or that loses more than they do.
        """
        sigma, rate = exact(noise_multiplier, "noise_multiplier"), exact(sample_rate, "sample_rate")
        if sigma < self._sigma or not 0 < rate <= self._rate:
            raise BudgetExhausted(
                f"A step with noise {noise_multiplier:g} on a sample of {sample_rate:g} was not paid for. The budget "
                f"pays for noise of {float(self._sigma):g} or more, and a sample of {float(self._rate):g} or less."
            )
        self._reservation.use()
        same = bool(self.history) and self.history[-1][:2] == (noise_multiplier, sample_rate)
        before = self.history.pop()[2] if same else 0
        self.history.append((noise_multiplier, sample_rate, before + 1))

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """Return an ε for which the steps counted so far are (ε, δ)-DP, rounded up, if they had been fixed in advance.

        The ledger holds the price of all that were paid for, used or not.
        """
        target = probability(delta, "delta")
        if not self.history:
            return 0.0
        parts = [
            listed("gaussian", times, sigma=exact(sigma, "noise_multiplier"), rate=exact(rate, "sample_rate"))
            for sigma, rate, times in self.history
        ]
        law: LossDistribution = composed(uses_of(parts, self._neighbouring), None)
        return law.to_epsilon(target).upper

    def __len__(self) -> int:
        """Return how many steps were counted."""
        return sum(times for _, _, times in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name that Opacus shows."""
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[NoisyOptimizer], None]:
        """Return what Opacus' optimizer calls at each step.

        Gradients that are accumulated over several batches are of a sample with the sum of their rates at most.
        """

        def hook(optimizer: NoisyOptimizer) -> None:
            self.step(
                noise_multiplier=optimizer.noise_multiplier,
                sample_rate=sample_rate * optimizer.accumulated_iterations,
            )

        return hook

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> MutableMapping[str, Any]:
        """Return what Opacus saves with a model: what was counted. The rest that is left to use is not in it."""
        found = OrderedDict[str, Any]() if destination is None else destination
        found["history"] = list(self.history)
        found["mechanism"] = NAME
        return found

    def load_state_dict(self, state_dict: MutableMapping[str, Any]) -> None:
        """Take up what was counted before, by an accountant that paid for it; this one's steps stay as they are.

        Raises:
            ValueError: As Opacus' accountants do, for what none of these has saved.
        """
        if not state_dict or "history" not in state_dict or state_dict.get("mechanism") != NAME:
            raise ValueError(
                "The state is not from an OpacusAccountant; it needs the history and the mechanism of one."
            )
        found: History = []
        for sigma, rate, times in state_dict["history"]:
            listed("gaussian", times, sigma=exact(sigma, "noise_multiplier"), rate=exact(rate, "sample_rate"))
            found.append((sigma, rate, times))
        self.history = found
