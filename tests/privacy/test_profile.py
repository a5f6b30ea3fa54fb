import pytest

from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import ApproxDP, ApproximateGaussianDP, GaussianDP, PureDP, ZeroConcentratedDP
from lapwing.privacy.profile import Profile, Profiled
from lapwing.privacy.renyi import RenyiDP

LOSSES: tuple[Profiled, ...] = (
    PureDP(1),
    GaussianDP(1),
    ZeroConcentratedDP(0.5),
    ApproxDP(1, 1e-6),
    ApproximateGaussianDP(1, 1e-6),
    RenyiDP.from_loss(GaussianDP(1)),
)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_profile_falls_and_is_the_measures_own(loss: Profiled) -> None:
    points = Profile((loss,)).points([0, 0.1, 0.5, 1, 3, 10, 50])
    assert [delta for _, delta in points] == sorted((delta for _, delta in points), reverse=True)
    assert all(0 <= delta == loss.to_delta(epsilon=epsilon) <= 1 for epsilon, delta in points)


def test_the_least_of_several_losses_of_one_mechanism() -> None:
    both = Profile((PureDP(1), PureDP(1).to_kind("gdp")))
    for epsilon in (0, 0.3, 0.9, 1, 2):
        assert both(epsilon) == min(loss.to_delta(epsilon=epsilon) for loss in both.losses)
    assert both(1) == 0
    assert both.to_epsilon(delta=0.4) == min(loss.to_epsilon(delta=0.4) for loss in both.losses) < 1


def test_losses_that_imply_nothing_are_left_out() -> None:
    assert Profile((ApproxDP(1, 0.1), GaussianDP(1))).to_epsilon(delta=1e-6) == GaussianDP(1).to_epsilon(delta=1e-6)
    with pytest.raises(InvalidParameter, match="implies no ε"):
        Profile((ApproxDP(1, 0.1),)).to_epsilon(delta=1e-6)
    with pytest.raises(InvalidParameter, match="No loss"):
        Profile(())
