"""The best of a secret random number of tries, for little more than twice the price of one.

Theory of operation. A *try* draws one of the candidates, trains it, and gives it a noisy score, all with noise of its
own: it is ε₁-DP in a pure ledger, with Laplace noise, and else μ₁-GDP, with Gaussian noise. A secret number N of tries
is drawn, at most M; of the first N tries the model with the best score is released, with its score, and nothing of the
others. The whole price is charged before. Whatever N is, M rounds are run, and in each all candidates are trained and
scored, of which one counts: so the time says neither N nor which candidates were drawn.

A try whose *training* fails is worse than all that do not, and releases that it failed: so there is a fault only if all
N failed. A fault for any that fails would tell of all M rounds, which no theorem here pays for. A failure is an outcome
like any other: the theorems ask that the law of outcomes, this one included, is ε₁-DP or μ₁-GDP. So it is for training
that sees rows through its session alone; one that fails by what a row holds, or does not end, is not private, whatever
it returns else. *Scores* have no failures: a row that a model does not predict counts as wrong (`predictions`), as a
score that failed for one row would be an outcome that this row alone decides about, with certainty. `candidates` has
what is asked of candidates, and what of that is enforced.

The law of N is P(N = n) ∝ C(n + η − 1, n) for 1 ≤ n ≤ M; for η = 0 it is ∝ 1/n (the limit), for η = 1 uniform.

Theorem, with Laplace noise. What is released is (2 + η)·ε₁-DP, for every M. Proof. Let Q be the law of a try, ordered
by score and, among equal scores, by a coin that is thrown with it (the first of equal tries is kept: tries are alike in
law, so this is the same). F(y) is the chance under Q to be below y, and f(x) = E[x^N]. The best of N tries has density
f′(F(y)) with respect to Q, since P(all N are below y) = f(F(y)). With a neighbour's Q* and F*: Q*/Q ≤ e^ε₁, and
1 − F* ≥ e^−ε₁(1 − F). As f′ grows, it remains to bound f′(x*)/f′(x) for x ≤ x*, 1 − x ≤ e^ε₁(1 − x*). Up to a factor
f′(x) is the sum of c_j·x^j for j < M, c_j = C(j + η, j): the beginning of the power series of g(x) = (1 − x)^−(η + 1).
What is cut off over what is kept, Σ_{j≥M} c_j·x^j / Σ_{j<M} c_j·x^j, grows with x, as each power above is higher than
each below; so g/f′ grows, and f′(x*)/f′(x) ≤ g(x*)/g(x) = ((1 − x)/(1 − x*))^(η + 1) ≤ e^((η + 1)ε₁). Together:
e^((2 + η)ε₁). ∎

With Gaussian noise it is κ·μ₁-GDP, with κ from the law of N alone: `gaussian_tries` has the proof. A zCDP ledger is
charged the ρ = (κμ₁)²/2 that this implies: its tries count μ, too.

Source:
    Liu and Talwar 2019 (η = 1, not cut off); Papernot and Steinke 2022, for the truncated negative binomial law. That N
    may be cut off at M at no price, so that time can be made even, and that no further parameter is needed then, is
    argued above.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np

from lapwing.engines import FAILED
from lapwing.errors import EngineFault, InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import categorical, uniform_integers
from lapwing.learn.candidates import require_ready
from lapwing.learn.gaussian_tries import factor_up
from lapwing.learn.paid_before import paid_session
from lapwing.learn.training import charged_rows, epsilon_for
from lapwing.learn.unit_rows import GRID
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import GaussianDP, Loss, PureDP
from lapwing.session import Session, access_of

if TYPE_CHECKING:
    from lapwing.learn.unit_rows import UnitRows, UnitRowsRequest

MOST_TRIES: Final = 1_000
MOST_TRAINED: Final = 5_000
MOST_ETA: Final = 5
_DIGITS: Final = 10**15
_KINDS: Final = {"pure": PureDP.kind, "gdp": GaussianDP.kind, "zcdp": GaussianDP.kind}


class Trained(Protocol):
    """Trains a candidate in a session, for an ε of training."""

    def __call__(self, candidate: Any, session: Session, epsilon: Fraction, /) -> None:
        """Fit it in place."""
        ...


class Scored(Protocol):
    """Scores a candidate on rows: private."""

    def __call__(self, candidate: Any, units: "UnitRows", /) -> int:
        """Return the score, in parts of 1/GRID, which a unit with K rows moves by at most K."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How many tries there are at most, and the law of how many count: public.

    Args:
        most: M.
        eta: η, a whole number: the larger, the more tries are likely, and the dearer they are.
    """

    most: int
    eta: int

    def __post_init__(self) -> None:
        for name, value, least, most in (("tries", self.most, 1, MOST_TRIES), ("eta", self.eta, 0, MOST_ETA)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidParameter(
                    f"{name} is {value!r:.60}; it must be a whole number from {least} to {most}. Nothing was charged."
                )

    @property
    def weights(self) -> tuple[int, ...]:
        """The chances of N = 1, 2, … M, as whole numbers of the same unit."""
        numbers = range(1, self.most + 1)
        if self.eta == 0:
            unit = math.lcm(*numbers)
            return tuple(unit // n for n in numbers)
        return tuple(math.comb(n + self.eta - 1, n) for n in numbers)

    def drawn(self, entropy: Entropy) -> int:
        """Draw N, exactly."""
        return 1 + int(categorical(self.weights, 1, entropy)[0])

    def of_one(self, price: Loss) -> PureDP | GaussianDP:
        """Return the loss of a try, so that what is released costs a price."""
        if isinstance(price, PureDP):
            return PureDP(_down(price.epsilon / (2 + self.eta)))
        mu_squared = price.amount if isinstance(price, GaussianDP) else 2 * price.amount
        return GaussianDP.from_mu_squared(_down(mu_squared / factor_up(self.weights) ** 2))


def _down(amount: Fraction) -> Fraction:
    """Round down to 1e-15, so that it has an end."""
    return Fraction(math.floor(amount * _DIGITS), _DIGITS)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Best:
    """What is released of all tries.

    Args:
        place: Of the candidate.
        score: Noisy, in rows.
    """

    place: int
    model: Any
    score: float
    cost: Loss


def best_of(
    candidates: Sequence[Any],
    session: Session,
    what: "UnitRowsRequest",
    tries: Tries,
    *,
    epsilon: Number,
    choice: Fraction,
    train: Trained,
    score: Scored,
    label: str,
) -> Best:
    """Return the best of a random number of tries, of copies of the candidates.

    Args:
        epsilon: The price of everything.
        choice: The part of a try's loss that its score takes.

    Raises:
        InvalidParameter: For a candidate that is refused (`candidates`), in a pure ledger also one that has no pure
            loss.
        BudgetExhausted: If the budget does not bear the loss. Nothing is charged.
        EngineFault: If all tries that count fail. It is charged.
    """
    if tries.most * len(candidates) > MOST_TRAINED:
        raise InvalidParameter(
            f"{tries.most} tries of {len(candidates)} candidates are {tries.most * len(candidates):,} trainings; at "
            f"most {MOST_TRAINED:,} are allowed. Nothing was charged."
        )
    access, price = access_of(session), session.price(epsilon)
    one = tries.of_one(price)
    part = one.from_amount(one.amount * (1 - choice))
    if not part.amount:
        raise InvalidParameter("The cost is too small to be divided among tries. Nothing was charged.")
    training = epsilon_for(_unrecorded(session, part), part, epsilon, "The cost is too small for tries.")
    to_be = f"tried with {'Laplace' if isinstance(part, PureDP) else 'Gaussian'} noise"
    for place, candidate in enumerate(candidates):
        require_ready(
            place, candidate, lambda one: train(one, _unrecorded(session, part, ends=True), training), tried=to_be
        )
    units, _, charged = charged_rows(session, what, price, label=label)
    noise = _noise(one.from_amount(one.amount * choice), Sensitivity.from_l1(what.places * GRID))
    counting = tries.drawn(access.entropy)
    found = None
    try:
        best: tuple[int, int, Any] | None = None
        for round_ in range(tries.most):
            drawn = int(uniform_integers(len(candidates), 1, access.entropy)[0])
            tried = [
                _tried(one, units, lambda copied: train(copied, _unrecorded(session, part), training), score)
                for one in candidates
            ]
            scores = np.array([0 if one is None else one[1] for one in tried], dtype=np.int64)
            noisy = [int(one) for one in noise.release(scores, access.entropy)]
            counts = tried[drawn] if round_ < counting else None
            if counts is not None and (best is None or noisy[drawn] > best[0]):
                best = noisy[drawn], drawn, counts[0]
        found = best
    except Exception:
        found = None
    if found is None:  # out here, so that no message of what reads rows is dragged along
        raise EngineFault(FAILED)
    return Best(place=found[1], model=found[2], score=found[0] / GRID, cost=charged)


def _tried(candidate: Any, units: "UnitRows", train: Callable[[Any], None], score: Scored) -> tuple[Any, int] | None:
    """Return a trained copy of a candidate with its score, or None if its training fails, in whatever way."""
    try:
        model = copy.deepcopy(candidate)
        train(model)
    except KeyboardInterrupt:  # of whoever sits before it
        raise
    except BaseException:
        return None
    return model, score(model, units)


def _noise(part: PureDP | GaussianDP, sensitivity: Sensitivity) -> DiscreteLaplace | RoundedGaussian:
    """Return the noise of a score."""
    if isinstance(part, PureDP):
        return DiscreteLaplace.for_loss(part, sensitivity)
    return RoundedGaussian.for_loss(part, sensitivity)


def _unrecorded(session: Session, part: Loss, *, ends: bool = False) -> Session:
    """Return a session in which a try spends its part."""
    budget = session.catalog.budget
    delta = Fraction(0) if isinstance(part, PureDP) else budget.delta
    return paid_session(
        session,
        replace(budget, measure=_KINDS[budget.measure], delta=delta, delta_keys=Fraction(0)),
        part,
        ends=ends,
    )
