"""Private aggregation of teacher ensembles: teachers of disjoint people vote on the classes of public rows.

Theory of operation. Each person is given to one of T teachers, by a draw of their own, with all their rows. Teachers
are trained without noise, and never leave. Each votes for a class of every public row; the votes for each class are
counted, the counts get noise, and the class with most is the row's label. A student is trained on these labels: it is
public.

Guarantee: the price, for whatever teachers are, as long as each is a function of its own people. Take any neighbours,
and give everybody whom both have the same teacher in both; one who takes another's place gets the other's teacher,
which has the same chance. Then one teacher alone may differ. On each of m rows it takes one vote from a class and gives
it to another, so that all counts together move by √(2m) in L2 and 2m in L1, by presence and by replacement alike. They
are one vector, released with noise for that distance; all else is post-processing, which is why noisy counts are
released, too. The cost is what it is, however well teachers agree: a cost by how clear votes were would be private
itself.

Source: Papernot et al. 2017 and 2018 (PATE), whose data-dependent accounting is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast, final

import numpy as np

from lapwing.engines import FAILED
from lapwing.errors import EngineFault, InvalidParameter
from lapwing.exact.samplers import uniform_integers
from lapwing.learn.classes import share_right
from lapwing.learn.columns import (
    Category,
    Data,
    Feature,
    Floats,
    column_in,
    matrix_of,
)
from lapwing.learn.parameters import changed, parameters, require_fit, require_whole, times
from lapwing.learn.training import charged_rows, target_reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss, PureDP

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler
    from lapwing.session import Session

MOST_TEACHERS: Final = 10_000
MOST_INPUTS: Final = 100_000


class Classifier(Protocol):
    """A classifier with scikit-learn's manners: of a matrix with a row each, and classes from 0."""

    def fit(self, features: Any, classes: Any, /) -> Any:
        """Train."""
        ...

    def predict(self, features: Any, /) -> Any:
        """Return a class for each row."""
        ...


@final
@dataclass(kw_only=True)
class LeastSquares:
    """A line for each class by ridge regression of whether a row is of it: the class with the highest line is told."""

    penalty: float = 1.0
    weights_: Floats | None = field(default=None, init=False, repr=False)

    def fit(self, features: Floats, classes: Integers) -> Self:
        """Solve for the lines of all classes that there are."""
        design = np.column_stack([np.ones(len(features)), features])
        told = np.eye(int(classes.max()) + 1)[classes]
        gram = design.T @ design + self.penalty * np.eye(design.shape[1])
        self.weights_ = np.asarray(np.linalg.solve(gram, design.T @ told), dtype=np.float64)
        return self

    def predict(self, features: Floats) -> Integers:
        """Return the class of each row, which depends on that row alone."""
        weights = require_fit(self, "weights_")
        lines = [line[0] + times(features, line[1:]) for line in weights.T]
        return cast(Integers, np.stack(lines, axis=1).argmax(axis=1))


@final
@dataclass(kw_only=True)
class PATE:
    """A student of teachers who vote on the classes of public rows.

    Guarantee: one loss, charged before a row is read: the price. Neighbours and unit are the catalog's.
    Args: inputs: public rows with the features, or rows that were paid for, as a synthetic table's; each costs.
        teachers: how many, from 2: with more, noise hides fewer votes, and each has fewer people to learn from.
        teacher, student: make a classifier with `fit(features, classes)` and `predict(features)`, as scikit-learn's
        are; a teacher must be a function of what it is fit to, so that one with a generator needs a seed of its own:
        `lambda: DecisionTreeClassifier(random_state=0)`. None takes a line for each class. scaler, categories: as
        `LinearRegression` has them.
    """

    inputs: Data
    teachers: int = 50
    teacher: Callable[[], Classifier] | None = None
    student: Callable[[], Classifier] | None = None
    scaler: "StandardScaler | None" = None
    categories: Sequence[str] = ()
    features_: tuple[Feature, ...] | None = field(default=None, init=False, repr=False)
    target_: str | None = field(default=None, init=False, repr=False)
    classes_: tuple[Category, ...] | None = field(default=None, init=False)
    votes_: Integers | None = field(default=None, init=False, repr=False)
    student_: Classifier | None = field(default=None, init=False, repr=False)
    cost_: Loss | None = field(default=None, init=False, repr=False)

    def fit(
        self,
        session: "Session",
        table: str,
        features: Sequence[str],
        target: str,
        *,
        epsilon: Number,
        where: str | None = None,
        label: str = "let teachers vote",
    ) -> Self:
        """Train teachers, buy their votes, and train the student; each call is charged.

        Raises: as `Session.spend`, and InvalidParameter for what cannot be used (nothing is charged then); EngineFault
            (charged).
        """
        teachers = require_whole("teachers", self.teachers, least=2, most=MOST_TEACHERS)
        what = target_reading(
            session, table, features, target, where=where, scaler=self.scaler, categories=self.categories
        )
        found, classes = what.features, what.classes
        inputs = matrix_of(found, self.inputs)
        if not 1 <= len(inputs) <= MOST_INPUTS:
            raise InvalidParameter(
                f"There are {len(inputs)} inputs; give 1 to {MOST_INPUTS:,} rows. Nothing was charged."
            )
        price, entropy = session.price(epsilon), session._access().entropy
        units, _, self.cost_ = charged_rows(session, what, price, label=label)
        assigned = uniform_integers(teachers, units.starts.size, entropy).astype(np.int64)
        exact = votes(units, assigned, inputs, teachers, len(classes), self.teacher or LeastSquares)
        if exact is None:  # out here, so that no message of what reads rows is dragged along
            raise EngineFault(FAILED)
        self.votes_ = cast(Integers, noise_of(price, len(inputs)).release(exact, entropy))
        self.features_, self.target_, self.classes_ = found, target, classes
        self.student_ = (self.student or LeastSquares)()
        self.student_.fit(inputs, self.labels_)
        return self

    @property
    def labels_(self) -> Integers:
        """The class that got most votes, with noise, of each input, counted from 0."""
        return cast(Integers, require_fit(self, "votes_").argmax(axis=1))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return parameters(self)

    def set_params(self, **values: Any) -> Self:
        """Set parameters by name."""
        return changed(self, values)

    def predict(self, data: Data) -> list[Category]:
        """Return the class that the student tells of public rows."""
        classes, student = require_fit(self, "classes_"), require_fit(self, "student_")
        return [classes[int(place)] for place in student.predict(matrix_of(require_fit(self, "features_"), data))]

    def score(self, data: Data) -> float:
        """Return the share of public rows that are classified rightly; they have the target too."""
        return share_right(self.predict(data), column_in(data, require_fit(self, "target_")))


def noise_of(price: Loss, inputs: int) -> DiscreteLaplace | RoundedGaussian:
    """Return the noise on every count of votes: L1 ≤ 2m, L2 ≤ √(2m) for m inputs."""
    sensitivity = Sensitivity(l1=2 * inputs, l2_squared=2 * inputs)
    if isinstance(price, PureDP):
        return DiscreteLaplace.for_loss(price, sensitivity)
    return RoundedGaussian.for_loss(price, sensitivity)


def votes(
    units: UnitRows,
    assigned: Integers,
    inputs: Floats,
    teachers: int,
    classes: int,
    make: Callable[[], Classifier],
) -> Integers | None:
    """Return how many teachers vote for each class of each input: private; or None whatever went wrong."""
    try:
        return _votes(units, assigned, inputs, teachers, classes, make)
    except Exception:
        return None


def _votes(
    units: UnitRows,
    assigned: Integers,
    inputs: Floats,
    teachers: int,
    classes: int,
    make: Callable[[], Classifier],
) -> Integers:
    owners, found = np.repeat(assigned, units.sizes), np.zeros((len(inputs), classes), dtype=np.int64)
    everywhere = np.arange(len(inputs))
    for teacher in range(teachers):
        own = owners == teacher
        told = units.target[own]
        if (told == told[:1]).all():  # nobody, or all of one class: there is nothing to learn
            voted = np.full(len(inputs), told[0] if told.size else 0)
        else:
            model = make()
            model.fit(units.features[own] / GRID, told)
            voted = np.clip(np.asarray(model.predict(inputs)).astype(np.int64), 0, classes - 1)
        found[everywhere, voted] += 1  # one vote an input, whatever a teacher says
    return found
