"""A neural network that tells classes, trained by noisy gradients of Poisson samples.

Theory of operation. All steps are one list of mechanisms, Gaussian noise of σ clips on a sample of a public rate, and
are charged before a row is read (`Session.reserve`): the ledger holds a (μ, δ) that is worse than the list. Each step
draws a sample of units (`sampling`), adds up their clipped gradients in whole numbers (`unit_gradients`), adds noise
(`correlated_noise`), and hands the sum, divided by the public size of a batch, to an optimizer, which sees nothing
else. With `buffers` all steps are one Gaussian mechanism instead (`buffered_noise`), and its μ is charged.

Guarantee:
    What was charged, for the catalog's neighbours. How large a Poisson batch was is private, and never shown; how long
    a step takes depends on it, as everything that reads rows in the process of whoever trains.

Source:
    Abadi et al. 2016; Mironov, Talwar and Zhang 2019 (the sample); `privacy.dominating_gaussian` (the charge).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, final

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from lapwing.engines import FAILED
from lapwing.errors import EngineFault, InvalidParameter
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly
from lapwing.learn.classes import share_right
from lapwing.learn.columns import (
    Category,
    Data,
    Feature,
    Floats,
    column_in,
    matrix_of,
)
from lapwing.learn.deep.correlated_noise import MOST_BANDS
from lapwing.learn.deep.networks import Network, Weights, begun, calls_nothing_back, dense, row_scores
from lapwing.learn.deep.noise_search import sigma_for
from lapwing.learn.deep.sampling import RATE_PARTS, CyclicSample, GradientNoise, PoissonBatches, Sampling, SubsetSample
from lapwing.learn.deep.unit_gradients import BOUND, MOST_UNITS, Places, summed, sums_of
from lapwing.learn.parameters import changed, parameters, require_fit, require_number, require_whole
from lapwing.learn.predictions import is_row_local, row_local
from lapwing.learn.training import is_replaced, reserved_rows, target_reading
from lapwing.learn.unit_rows import UnitRows
from lapwing.mechanisms.continual.fitting import MOST_BUFFERS
from lapwing.privacy.amounts import Number, share
from lapwing.privacy.measures import GaussianDP, Loss, PureDP
from lapwing.release.reserving import Reservation
from lapwing.session import Session, access_of

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler


@final
@dataclass(kw_only=True)
class NetworkClassifier:
    """A neural network that tells the classes of a column.

    Guarantee:
        One (μ, δ), charged before a row is read, for the catalog's neighbours. It needs a gdp ledger with `delta_keys`;
        with `buffers` one μ or ρ, in a gdp or zcdp ledger.

    Args:
        network: `dense`, `convolutional` or one of one's own.
        people: About how many units there are, a public figure.
        batch: How many of them a step takes, on average where units are added or removed, exactly where one replaces
            another.
        steps: Of the optimizer.
        clip: The largest norm of a unit's gradient, all her rows together; longer ones are shortened.
        bands: Over how many steps noise is correlated, where units are added or removed: then each unit is in every
            bands-th step at most.
        buffers: The number of values stored for each weight to correlate its noise over all steps, 0 to 5. Each unit is
            then in every (people/batch)-th step, rounded, without chance, and batch is a mean.
        optimizer: Of optax. None takes Adam, with a learning rate of 0.01. With `buffers` it takes descent at a rate of
            0.1 with a momentum of 0.9.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
    """

    people: int
    network: Network = field(default_factory=dense)
    batch: int = 256
    steps: int = 200
    clip: float = 1.0
    bands: int = 1
    buffers: int = 0
    optimizer: optax.GradientTransformation | None = None
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    target_: str | None = field(default=None, init=False, repr=False)
    classes_: tuple[Category, ...] | None = field(default=None, init=False)
    weights_: Weights = field(default=None, init=False, repr=False)
    sigma_: Fraction | None = field(default=None, init=False, repr=False)
    cost_: Loss | None = field(default=None, init=False, repr=False)
    delta_: Fraction | None = field(default=None, init=False, repr=False)

    def fit(
        self,
        session: "Session",
        table: str,
        features: Sequence[str],
        target: str,
        *,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        label: str = "fit a neural network",
    ) -> Self:
        """Train on samples of all units; each call is charged.

        Args:
            epsilon: As a question's; all steps together cost at most that.
            delta: Of the ledger's `delta_keys`, which samples need, and `buffers` do not.

        Raises:
            LapwingError: As `Session.reserve` and, for what cannot be used, InvalidParameter; nothing is charged then.
            EngineFault: If the question fails after its charge. It is charged.
        """
        price, failure = session.price(epsilon), share(delta, "delta")
        self._require_price(price, failure)
        steps = require_whole("steps", self.steps, most=10**6)
        sample = self._sample(steps, replaced=is_replaced(session))
        clip = require_number("clip", self.clip, open_end=True)
        what = target_reading(
            session, table, features, target, where=where, scaler=self.scaler, categories=self.categories
        )
        found, classes = what.features, what.classes
        entropy = access_of(session).entropy
        key = jax.random.key(int.from_bytes(read_exactly(entropy, 4), "little"))
        weights = begun(self.network, key, len(found), len(classes))
        sigma = sigma_for(price, failure, steps, sample)
        noise = sample.noise(sigma, BOUND, ravel_pytree(weights)[0].size)
        units, slots = reserved_rows(session, what, sample.listed(sigma, steps), label=label, delta=failure)
        self.cost_, self.delta_, self.sigma_ = slots.charged, slots.delta, sigma
        optimizer = self._optimizer()
        course = _Course(network=self.network, optimizer=optimizer, sample=sample, steps=steps, clip=clip)
        weights = course.followed(weights, units, what.places, slots, noise, entropy)
        if weights is None:  # out here, so that no message of what reads rows is dragged along
            raise EngineFault(FAILED)
        self.weights_, self.features_, self.target_, self.classes_ = weights, found, target, classes
        return self

    def _optimizer(self) -> optax.GradientTransformation:
        if self.optimizer is not None:
            return self.optimizer
        # Adam divides by the size of single steps, in which correlated noise is large: it is small in their sum.
        return optax.sgd(0.1, momentum=0.9) if self.buffers else optax.adam(0.01)

    def _require_price(self, price: Loss, failure: Fraction) -> None:
        """Refuse a ledger or a delta that steps cannot be charged to."""
        if self.buffers and (isinstance(price, PureDP) or failure):
            raise InvalidParameter(
                "Training with buffers is one Gaussian mechanism: it needs a gdp or zcdp ledger, and no delta. Nothing "
                "was charged."
            )
        if not self.buffers and (not isinstance(price, GaussianDP) or failure == 0):
            raise InvalidParameter(
                "Training on samples needs a gdp ledger and a delta above 0. Training with buffers needs no delta. "
                "LogisticRegression takes all units at every step. Nothing was charged."
            )

    def _sample(self, steps: int, *, replaced: bool) -> PoissonBatches | SubsetSample | CyclicSample:
        """Return how steps take units.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        people = require_whole("people", self.people, most=MOST_UNITS)
        batch = require_whole("batch", self.batch, most=people)
        bands = require_whole("bands", self.bands, most=MOST_BANDS)
        buffers = require_whole("buffers", self.buffers, least=0, most=MOST_BUFFERS)
        if buffers and bands > 1:
            raise InvalidParameter(
                f"bands is {bands} and buffers is {buffers}. Noise is correlated in only one of the two ways: leave "
                f"out one of them. Nothing was charged."
            )
        if buffers:
            spacing = round(Fraction(people, batch))
            return CyclicSample(people=people, spacing=spacing, steps=steps, buffers=buffers, replaced=replaced)
        if not replaced:
            if batch * bands > people:
                raise InvalidParameter(
                    f"bands is {bands}, so every step takes {batch} of a group of {people // bands}. Use fewer bands "
                    f"or a smaller batch. Nothing was charged."
                )
            return PoissonBatches(people=people, parts=max(1, batch * bands * RATE_PARTS // people), bands=bands)
        if bands > 1:
            raise InvalidParameter(
                "Bands need neighbours that are added or removed. There is no proof for batches of a fixed size. "
                "Leave out bands, or give buffers instead. Nothing was charged."
            )
        return SubsetSample(people=people, size=batch)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict_proba(self, data: Data) -> Floats:
        """Return the probability of each class in public rows, classes side by side."""
        return np.asarray(jax.nn.softmax(self._scores(data), axis=1), dtype=np.float64)

    def predict(self, data: Data) -> list[Category]:
        """Return the likeliest class of public rows."""
        classes = require_fit(self, "classes_")
        # By scores, each with the bits of its row alone: their exponentials may be rounded by where a row stands.
        return [classes[place] for place in np.asarray(self._scores(data)).argmax(axis=1).tolist()]

    def score(self, data: Data) -> float:
        """Return the share of public rows that are classified rightly; they have the target too."""
        return share_right(self.predict(data), column_in(data, require_fit(self, "target_")))

    def _scores(self, data: Data) -> jax.Array:
        return row_scores(self.network, self.weights_, matrix_of(require_fit(self, "features_"), data))


def _is_ours(model: NetworkClassifier) -> bool:
    """Tell whether a network predicts by arrays and by what JAX compiled of them, and nothing in it calls back."""
    made = {field.name for field in fields(model)}
    of_classes = (type(one) in (str, int, bool) for one in model.classes_ or ())
    of_features = (type(one) is Feature and is_row_local(one) for one in model.features_ or ())
    arrays = jax.tree.leaves(model.weights_)
    if set(vars(model)) > made or not all(
        (*of_classes, *of_features, *(isinstance(array, jax.Array) for array in arrays))
    ):
        return False
    row = jnp.zeros(len(model.features_ or ()), dtype=jnp.float32)
    return not arrays or calls_nothing_back(model.network, model.weights_, row)


row_local(NetworkClassifier, _is_ours)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """How weights are trained, all of it public."""

    network: Network
    optimizer: optax.GradientTransformation
    sample: Sampling
    steps: int
    clip: float

    def followed(
        self,
        weights: Weights,
        units: UnitRows,
        places: int,
        slots: Reservation,
        noise: GradientNoise,
        entropy: Entropy = SYSTEM,
    ) -> Weights | None:
        """Return trained weights, or None whatever went wrong.

        Args:
            noise: Of these steps, from the first on.
        """
        try:
            return self._followed(weights, units, places, slots, noise, entropy)
        except Exception:
            return None

    def _followed(
        self, weights: Weights, units: UnitRows, places: int, slots: Reservation, noise: GradientNoise, entropy: Entropy
    ) -> Weights:
        side_by_side, sums = Places.of(units, places), sums_of(self.network)
        unit, as_weights = self.clip / (BOUND - 1) / self.sample.expected, ravel_pytree(weights)[1]
        state, drawn_from = self.optimizer.init(weights), self.sample.places(units.starts.size, entropy)
        for step in range(self.steps):
            if self.sample.begins(step):
                slots.use()
            batch = self.sample.batch(drawn_from, step, entropy)
            exact = summed(sums, weights, side_by_side, batch, self.clip)
            gradient = as_weights(jnp.asarray(noise.release(exact, entropy) * unit, dtype=jnp.float32))
            changes, state = self.optimizer.update(gradient, state, weights)
            weights = optax.apply_updates(weights, changes)
        return weights
