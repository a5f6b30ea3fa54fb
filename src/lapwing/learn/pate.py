"""Private aggregation of teacher ensembles: teachers of disjoint people vote on the classes of public rows.

Theory of operation. Each person is given to one of T teachers, by a draw of their own, with all their rows. Teachers
are trained without noise, and never leave. Each votes for a class of every public row; the votes for each class are
counted, the counts get noise, and the class with most is the row's label. A student is trained on these labels: it is
public.

Guarantee:
    The price, for whatever teachers are, as each is a function of its own people: each is made, trained and asked in a
    process of its own, which starts from the same state (`isolation`), and one that fails, in whatever way, votes for
    the first class on every row. Take any neighbours, and give everybody whom both have the same teacher in both; one
    who takes another's place gets the other's teacher, which has the same chance. Then one teacher alone may differ. On
    each of m rows it takes one vote from a class and gives it to another, so that all counts together move by √(2m) in
    L2 and 2m in L1, by presence and by replacement alike. They are one vector, released with noise for that distance;
    all else is post-processing, which is why noisy counts are released, too. The cost is what it is, however well
    teachers agree: a cost by how clear votes were would be private itself.

Source:
    Papernot et al. 2017 and 2018 (PATE), whose data-dependent accounting is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast, final

import numpy as np

from lapwing.errors import InvalidParameter
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
from lapwing.learn.predictions import row_local
from lapwing.learn.training import charged_rows, target_reading
from lapwing.learn.unit_rows import GRID, Integers, UnitRows
from lapwing.machine.isolation import TEACHER_SECONDS, Isolated
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss, PureDP
from lapwing.session import Session, access_of

if TYPE_CHECKING:
    from lapwing.learn.scaling import StandardScaler

MOST_TEACHERS: Final = 10_000
MOST_INPUTS: Final = 100_000
_TRIED: Final = 200
"""Rows that a teacher is tried on."""


class Classifier(Protocol):
    """A classifier with scikit-learn's manners: of a matrix with a row each, and classes from 0."""

    def fit(self, features: Any, classes: Any, /) -> Any:
        """Train."""
        ...

    def predict(self, features: Any, /) -> Any:
        """Return a class for each row."""
        ...


@row_local
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


@row_local
@final
@dataclass(kw_only=True)
class PATE:
    """A student of teachers who vote on the classes of public rows.

    Guarantee:
        One loss, charged before a row is read: the price. Neighbours and unit are the catalog's.

    Args:
        inputs: Public rows with the features, or rows that were paid for, such as a synthetic table; each costs.
        teachers: How many, from 2: with more, noise hides fewer votes, and each has fewer people to learn from.
        teacher: Make a classifier with `fit(features, classes)` and `predict(features)`, as scikit-learn's are. A
            teacher lives in a process of its own, for an hour of a processor at most. None takes a line for each class.
        student: As `teacher`.
        scaler: As `LinearRegression` has them.
        categories: As `LinearRegression` has them.
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

        Raises:
            LapwingError: As `Session.spend`, and InvalidParameter for what cannot be used (nothing is charged then).
            EngineFault: If the question fails after its charge. It is charged.
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
        price, entropy = session.price(epsilon), access_of(session).entropy
        with Isolated(teacher_of(self.teacher or LeastSquares, inputs), seconds=TEACHER_SECONDS) as isolated:
            _require_teacher(isolated, inputs, len(classes))
            units, _, self.cost_ = charged_rows(session, what, price, label=label)
            assigned = uniform_integers(teachers, units.starts.size, entropy).astype(np.int64)
            exact = votes(isolated, units, assigned, teachers, (len(inputs), len(classes)))
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


def votes(isolated: Isolated, units: UnitRows, assigned: Integers, teachers: int, shape: tuple[int, int]) -> Integers:
    """Return how many teachers vote for each class of each input: private.

    A teacher that fails votes for the first class on every input, and one whose vote is no class does so on that input.

    Args:
        isolated: A teacher, as `teacher_of` makes it.
        shape: How many inputs and classes there are.
    """
    inputs, classes = shape
    owners, found, everywhere = np.repeat(assigned, units.sizes), np.zeros(shape, dtype=np.int64), np.arange(inputs)
    for teacher in range(teachers):  # all of them, also those who have nobody
        own = owners == teacher
        told = np.nan_to_num(isolated.ask((units.features[own] / GRID, units.target[own]), inputs))
        found[everywhere, np.clip(told, 0, classes - 1).astype(np.int64)] += 1  # one vote an input, whatever it says
    return found


def teacher_of(make: Callable[[], Classifier], inputs: Floats) -> Callable[[tuple[Floats, Integers]], Any]:
    """Return what makes a teacher, trains it on its people, and returns its vote on each input."""

    def taught(own: tuple[Floats, Integers]) -> Any:
        features, told = own
        if (told == told[:1]).all():  # nobody, or all of one class: there is nothing to learn
            return np.full(len(inputs), told[0] if told.size else 0)
        model = make()
        model.fit(features, told)
        return model.predict(inputs)

    return taught


def _require_teacher(isolated: Isolated, inputs: Floats, classes: int) -> None:
    """Refuse a teacher that cannot learn made-up classes of the public inputs."""
    rows = np.resize(inputs[:_TRIED], (max(_TRIED, classes), inputs.shape[1]))
    why = isolated.trial((rows, np.arange(len(rows)) % classes), len(inputs))
    if why is not None:
        raise InvalidParameter(
            f"The teacher cannot learn from {len(rows)} rows of the inputs with made-up classes: "
            f"{why.rstrip('.')}. Nothing was charged."
        )
