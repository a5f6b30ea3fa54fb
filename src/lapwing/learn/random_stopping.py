"""The best of a secret random number of tries, for little more than twice the price of one.

Theory of operation. A *try* draws one of the candidates, trains it, and gives it a noisy score, all with noise of its
own: it is ε₁-DP. A secret number N of tries is drawn, at most M; of the first N tries the model with the best score is
released, with its score, and nothing of the others. The whole price is charged before. Whatever N is, M rounds are run,
and in each all candidates are trained and scored, of which one counts: so the time says neither N nor which candidates
were drawn.

The law of N is P(N = n) ∝ C(n + η − 1, n) for 1 ≤ n ≤ M; for η = 0 it is ∝ 1/n (the limit), for η = 1 uniform.

Theorem. What is released is (2 + η)·ε₁-DP, for every M. Proof. Let Q be the law of a try, ordered by score and, among
equal scores, by a coin that is thrown with it (the first of equal tries is kept: tries are alike in law, so this is
the same). F(y) is the chance under Q to be below y, and f(x) = E[x^N]. The best of N tries has density f′(F(y)) with
respect to Q, since P(all N are below y) = f(F(y)). With a neighbour's Q* and F*: Q*/Q ≤ e^ε₁, and
1 − F* ≥ e^−ε₁(1 − F). As f′ grows, it remains to bound f′(x*)/f′(x) for x ≤ x*, 1 − x ≤ e^ε₁(1 − x*). Up to a factor
f′(x) is the sum of c_j·x^j for j < M, c_j = C(j + η, j): the beginning of the power series of g(x) = (1 − x)^−(η + 1).
What is cut off over what is kept, Σ_{j≥M} c_j·x^j / Σ_{j<M} c_j·x^j, grows with x, as each power above is higher than
each below; so g/f′ grows, and f′(x*)/f′(x) ≤ g(x*)/g(x) = ((1 − x)/(1 − x*))^(η + 1) ≤ e^((η + 1)ε₁). Together:
e^((2 + η)ε₁). ∎

Source: Liu and Talwar 2019 (η = 1, not cut off); Papernot and Steinke 2022, for the truncated negative binomial law.
That N may be cut off at M at no price, so that time can be made even, and that no further parameter is needed then, is
argued above. Candidates with Gaussian noise have no ε₁: what Rényi divergences say of the best of them holds no μ near
that of one try, so in gdp and zcdp ledgers, too, tries have Laplace noise, and (2 + η)·ε₁ is charged as the pure loss
that it is.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, final

from lapwing.engines import FAILED
from lapwing.errors import EngineFault, InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import categorical, uniform_integers
from lapwing.learn.training import charged_rows
from lapwing.learn.unit_rows import GRID
from lapwing.ledger.entries import Charged
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.measures import Loss, PureDP
from lapwing.session import Session

if TYPE_CHECKING:
    from lapwing.learn.unit_rows import Reading, UnitRows
    from lapwing.ledger.entries import Charge
    from lapwing.ledger.ledger import Ledger
    from lapwing.ledger.state import State

MOST_TRIES: Final = 1_000
MOST_TRAINED: Final = 5_000
MOST_ETA: Final = 5
_DIGITS: Final = 10**15


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

    Args: most: M; eta: η, a whole number: the larger, the more tries are likely, and the dearer they are.
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

    def of_one(self, price: Fraction) -> Fraction:
        """Return the ε of a try, so that what is released costs a pure price."""
        return price / (2 + self.eta)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Best:
    """What is released of all tries. Args: place: of the candidate; score: noisy, in rows."""

    place: int
    model: Any
    score: float
    cost: Loss


def best_of(
    candidates: Sequence[Any],
    session: Session,
    what: "Reading",
    tries: Tries,
    *,
    price: Loss,
    choice: Fraction,
    train: Trained,
    score: Scored,
    label: str,
) -> Best:
    """Return the best of a random number of tries, of copies of the candidates.

    Args: price: in the ledger's measure, of everything; choice: the part of a try's ε that its score takes.
    Raises: InvalidParameter for a candidate that is refused, or has no pure loss; BudgetExhausted (nothing charged);
        EngineFault (charged).
    """
    if tries.most * len(candidates) > MOST_TRAINED:
        raise InvalidParameter(
            f"{tries.most} tries of {len(candidates)} candidates are {tries.most * len(candidates):,} trainings; at "
            f"most {MOST_TRAINED:,} are run. Nothing was charged."
        )
    access = session._access()
    whole = price.epsilon if isinstance(price, PureDP) else pure_epsilon_down(price.kind, price.amount)
    whole = Fraction(math.floor(whole * _DIGITS), _DIGITS)  # of 1e-15, so that it has an end
    one = tries.of_one(whole)
    if one <= 0:
        raise InvalidParameter("The price is too small to be divided among tries. Nothing was charged.")
    training = one * (1 - choice)
    for place, candidate in enumerate(candidates):
        _require_trainable(place, candidate, session, train, training)
    units, _, charged = charged_rows(session, what, PureDP(whole), label=label)
    reach = what.places * GRID
    noise = DiscreteLaplace.for_loss(PureDP(one * choice), Sensitivity.from_l1(reach))
    counting = tries.drawn(access.entropy)
    found = None
    try:
        best: tuple[int, int, Any] | None = None
        for round_ in range(tries.most):
            drawn = int(uniform_integers(len(candidates), 1, access.entropy)[0])
            models = [copy.deepcopy(candidate) for candidate in candidates]
            for model in models:
                train(model, _unrecorded(session, training), training)
            noisy = [int(noise.release(score(model, units), access.entropy)) for model in models]
            if round_ < counting and (best is None or noisy[drawn] > best[0]):
                best = noisy[drawn], drawn, models[drawn]
        found = best
    except Exception:
        found = None
    if found is None:  # out here, so that no message of what reads rows is dragged along
        raise EngineFault(FAILED)
    return Best(place=found[1], model=found[2], score=found[0] / GRID, cost=charged)


def _require_trainable(place: int, candidate: Any, session: Session, train: Trained, training: Fraction) -> None:
    """Train up to the first charge, which is where it ends: what is refused, is refused before."""
    try:
        train(copy.deepcopy(candidate), _unrecorded(session, training, ends=True), training)
    except _WouldBeCharged:
        return
    except InvalidParameter as error:
        said = str(error).removesuffix("Nothing was charged.").rstrip()
        raise InvalidParameter(
            f"Candidate {place + 1} cannot be tried with Laplace noise: {said} Nothing was charged."
        ) from None
    raise InvalidParameter(f"Candidate {place + 1} was trained on nothing. Nothing was charged.")


def _unrecorded(session: Session, training: Fraction, *, ends: bool = False) -> Session:
    """Return a session on the same data in which pure questions are answered out of what was charged already."""
    access = session._access()
    catalog = session.catalog
    pure = replace(catalog.budget, measure=PureDP.kind, delta=Fraction(0), delta_keys=Fraction(0))
    ledger = cast("Ledger", _PaidBefore(access.ledger.seen(), training, ends=ends))
    return Session(
        replace(catalog, budget=pure), access.engine, ledger, access.entropy, access.principal, access.public
    )


class _WouldBeCharged(Exception):
    """A candidate is ready to pay."""


@final
class _PaidBefore:
    """What a try charges: it is paid already, up to an ε, and nothing of it is remembered.

    It has of a ledger what questions ask of one. Nothing is stored: a second try must have fresh noise.
    """

    def __init__(self, state: "State", most: Fraction, *, ends: bool) -> None:
        self._state = state
        self._left = most
        self._ends = ends

    def seen(self) -> "State":
        return self._state

    state = seen

    def look_up(self, keys: Sequence[str]) -> "tuple[State, list[tuple[()]]]":
        return self._state, [() for _ in keys]

    def answers(self, key: str) -> tuple[()]:
        return ()

    def charge_all(
        self, requests: "Sequence[Charge]", limits: object = None, since: int | None = None
    ) -> tuple[Charged, ...]:
        total = sum((request.loss.amount for request in requests), Fraction(0))
        if any(not isinstance(request.loss, PureDP) or request.delta for request in requests) or total > self._left:
            raise InvalidParameter("It spends more than it was given.")
        if self._ends:
            raise _WouldBeCharged
        self._left -= total
        return tuple(Charged(sequence=-1, account=self._state.account) for _ in requests)

    def record_answer(self, sequence: int, payload: str) -> None:
        pass

    def record_unanswered(self, sequences: Sequence[int], cause: str) -> bool:
        return False
