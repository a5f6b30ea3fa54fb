"""Candidates for a choice: what they keep reaches no other try, nothing of rows stays in them, faults cost nothing."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.learn import DecisionTree, GaussianNB, ModelSelection, predictions, random_stopping
from lapwing.learn.candidates import shared_state
from tests.support.effort import one_in, only
from tests.support.learn.people import opened, people


class Counted:
    """A candidate of one's own, that keeps how often it was trained, and what it predicted."""

    def __init__(self, notes: Any) -> None:
        self.notes = notes
        self.rows: Any = None

    def fit(self, *asked: Any, **more: Any) -> None:
        self.model = GaussianNB().fit(*asked, **more)
        self.notes.append("fit")

    def predict(self, data: Any) -> Any:
        self.rows = data
        return self.model.predict(data)


class Shared(list[str]):
    """Notes that are the same in every copy."""

    def __deepcopy__(self, memo: Any) -> "Shared":
        return self


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with opened(tmp_path, people(2)) as session:
        yield session


def chosen(session: lw.Session, *candidates: Any, tries: int | None = 2) -> ModelSelection:
    model = ModelSelection(candidates=candidates, tries=tries)
    return model.fit(session, "visits", ["age"], "ill", epsilon=1)


def test_no_try_sees_what_another_kept(session: lw.Session) -> None:
    candidate = Counted([])
    best: Any = chosen(session, candidate, tries=2).best_
    assert best.notes == ["fit"]
    assert candidate.notes == []


@pytest.mark.parametrize("notes", only((1,), [Shared(), {"deep": (1, [Shared()])}]), ids=["at once", "deep inside"])
def test_state_that_copies_share_is_refused(session: lw.Session, notes: Any) -> None:
    for tries in (None, 2):
        with pytest.raises(
            InvalidParameter, match=r"Candidate 2 cannot be copied, because its copies share a Shared.*Nothing"
        ):
            chosen(session, GaussianNB(), Counted(notes), tries=tries)
    assert not session.history()


def test_twin_copies_that_share_state(session: lw.Session) -> None:
    """The planted bug: it is not looked for. What one try found is then seen by the next."""
    notes = Shared()
    with patch.object(random_stopping, "require_ready", lambda *_, **__: None):
        chosen(session, Counted(notes), tries=2)
    assert len(notes) == 2


def test_what_cannot_change_may_be_shared() -> None:
    fixed = (1, "a", frozenset({2.5}), (None, max, DecisionTree))
    assert shared_state([fixed], [fixed]) is None
    assert shared_state([fixed, shared := {"a": 1}], [fixed, shared]) is shared
    assert shared_state(Counted(shared).predict, Counted(shared)) is shared


@pytest.mark.parametrize("tries", one_in(2, [None, 2]))
def test_nothing_of_rows_stays_in_what_is_chosen(session: lw.Session, tries: int | None) -> None:
    best: Any = chosen(session, Counted([]), tries=tries).best_
    assert best.rows is None
    assert best.predict({"age": [40]})
    assert best.rows is not None  # it does keep what it sees


def test_twin_a_model_that_predicted_is_released(session: lw.Session) -> None:
    """The planted bug: a candidate is asked in this process."""
    with patch.object(predictions, "is_row_local", lambda _: True):
        best: Any = chosen(session, Counted([]), tries=None).best_
    assert best.rows is not None


class Silent:
    """A candidate that asks for nothing."""

    def fit(self, *_: Any, **__: Any) -> None: ...

    def predict(self, data: Any) -> Any: ...


class Failing(Silent):
    """A candidate that cannot be trained."""

    def fit(self, *_: Any, **__: Any) -> None:
        raise TypeError("fit takes no such thing")


class Locked(Silent):
    """A candidate that cannot be copied."""

    def __init__(self) -> None:
        self.rows = (place for place in range(3))


FAULTY: dict[str, tuple[Any, str]] = {
    "a wrong parameter": (DecisionTree(depth=99), "depth is 99"),
    "a fault of its own": (Failing(), "TypeError: fit takes no such thing"),
    "no predictions": (SimpleNamespace(fit=Silent().fit), "no method predict"),
    "nothing to pay for": (Silent(), "trained on nothing"),
    "no copies": (Locked(), "be copied: TypeError"),
}


@pytest.mark.long
def test_what_fails_whatever_the_rows_are_costs_nothing(session: lw.Session) -> None:
    for faulty, message in FAULTY.values():
        for tries in (None, 2):
            with pytest.raises(InvalidParameter, match=f"Candidate 2 cannot .*{message}.*Nothing was charged"):
                chosen(session, GaussianNB(), faulty, tries=tries)
    assert not session.history()


class Twice(Counted):
    """A candidate that asks again after it was charged, for what is refused."""

    def fit(self, *asked: Any, **more: Any) -> None:
        super().fit(*asked, **more)
        DecisionTree(depth=99).fit(*asked, **more)


@pytest.mark.long
def test_what_is_refused_after_a_charge_says_what_stays_paid(session: lw.Session) -> None:
    with pytest.raises(InvalidParameter, match=r"after 1 were trained, which stay paid: depth is 99") as raised:
        chosen(session, DecisionTree(depth=1), Twice([]), tries=None)
    assert "Nothing was charged" not in str(raised.value)
    assert len(session.history()) == 2
