"""Statements about a list: each against a closed form, all in one order, refused where no theorem is."""

import pydoc
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest
from mpmath import mp, mpf

import lapwing as lw
from lapwing.cli.account import read
from lapwing.errors import InvalidParameter
from lapwing.privacy import statements
from lapwing.privacy.listing import KINDS, Listed, listed
from lapwing.privacy.statements import METHODS, Statement, profiles_of, statements_of
from tests.support.effort import one_in, only
from tests.support.privacy import exact_composition, oracle
from tests.support.privacy.oracle import bisect, normal, real

MILLIONTH = Fraction(1, 10**6)
TENTH = Fraction(1, 10)
SLACK = 1 - mpf(10) ** -9

LISTS = {
    "mixed": [listed("laplace", 100, epsilon=0.1), listed("gaussian", 3, sigma=40)],
    "laplace": [listed("laplace", 20, scale=2)],
    "responses and noise": [
        listed("randomized-response", 30, epsilon=0.2, neighbouring="replace_one"),
        listed("laplace", 5, epsilon=0.1, neighbouring="add_remove"),
    ],
    "discrete": [listed("discrete-laplace", 10, scale=7, sensitivity=3), listed("discrete-gaussian", 4, sigma=9)],
    "failing": [listed("approx", 4, epsilon=0.5, delta=1e-8), listed("exponential", 9, epsilon=0.25)],
    "tree": [listed("tree", 2, sigma=9, steps=100)],
    "concentrated": [listed("zcdp", 3, rho=0.01)],
    "sampled": [listed("laplace", 40, epsilon=1, rate=0.05), listed("gaussian", 10, mu=1, rate=0.01)],
}
RELATIONS = {"responses and noise": "replace_one"}


def asked(name: str, **at: Fraction | float) -> dict[str, Statement]:
    relation = "replace_one" if name in RELATIONS else "add_remove"
    return {one.method: one for one in statements_of(LISTS[name], neighbouring=relation, **at)}  # type: ignore[arg-type]


def epsilon_of(statement: Statement) -> mpf:
    assert statement.epsilon is not None
    return real(statement.epsilon)


def check_is_tight(delta_at: Callable[[mpf], mpf], epsilon: mpf) -> None:
    """The closed form keeps δ at this ε, and not at one smaller by 10⁻⁹."""
    assert delta_at(epsilon) <= real(MILLIONTH) < delta_at(epsilon * SLACK)


def mu_squared_of_laplace(x: Fraction) -> mpf:
    """(−2Φ⁻¹(e^(−x/2)/2))²."""
    tail = mp.exp(-real(x) / 2) / 2
    return bisect(lambda mu: tail - normal(-mu / 2), mpf(0), mpf(50)) ** 2


def test_the_mixed_list_in_closed_form() -> None:
    found = asked("mixed", delta=1e-6)
    noise = Fraction(1, 1600)
    each = (epsilon_of(found["basic composition"]) - 10) / 3
    third = real(MILLIONTH / 3)
    assert oracle.gdp_delta(noise, each) <= third < oracle.gdp_delta(noise, each * (1 - mpf(10) ** -6))
    rho = 100 * (real(TENTH) + mp.exp(-real(TENTH)) - 1) + 3 * real(noise) / 2
    near = Fraction(int(rho * mpf(10) ** 30), 10**30)
    check_is_tight(lambda e: oracle.zcdp_delta(near, e), epsilon_of(found["zCDP"]))
    mu_squared = 100 * mu_squared_of_laplace(TENTH) + 3 * real(noise)
    near = Fraction(int(mu_squared * mpf(10) ** 30), 10**30)
    check_is_tight(lambda e: oracle.gdp_delta(near, e), epsilon_of(found["Gaussian DP"]))
    exact = found["loss distribution"]
    assert exact.lower is not None
    assert exact.epsilon is not None
    assert exact.epsilon - exact.lower < 1e-4
    assert 4.69 < exact.lower < 4.70  # 4.693 without the Gaussian noise
    assert 5.0 < float(epsilon_of(found["optimal composition"])) < 5.02  # 4.782 without it


def test_advanced_and_optimal_composition_in_closed_form() -> None:
    found = {one.method: one for one in statements_of([listed("pure", 100, epsilon=0.1)], delta=1e-6)}
    rho = 100 * real(TENTH) * mp.tanh(real(TENTH) / 2)
    near = Fraction(int(rho * mpf(10) ** 30), 10**30)
    check_is_tight(lambda e: oracle.zcdp_delta(near, e), epsilon_of(found["advanced composition"]))
    law = exact_composition.composed([(exact_composition.response(1, TENTH), 100)])
    exact, optimal = found["loss distribution"], found["optimal composition"]
    assert optimal.epsilon == exact.epsilon
    assert exact.lower is not None
    assert exact_composition.lattice_delta(law, TENTH, Fraction(exact.lower)) >= real(MILLIONTH)
    assert exact_composition.lattice_delta(law, TENTH, Fraction(exact.epsilon or 0)) <= real(MILLIONTH)
    assert found["basic composition"].epsilon == 10


def test_gaussian_noise_is_stated_exactly() -> None:
    found = {one.method: one for one in statements_of([listed("gaussian", 9, sigma=6, sensitivity=2)], delta=1e-6)}
    check_is_tight(lambda e: oracle.gdp_delta(Fraction(1), e), epsilon_of(found["Gaussian DP"]))
    exact = found["loss distribution"]
    assert exact.lower is not None
    assert oracle.gdp_delta(Fraction(1), Fraction(exact.lower)) >= real(MILLIONTH)
    assert oracle.gdp_delta(Fraction(1), Fraction(exact.epsilon or 0)) <= real(MILLIONTH)


def check_order(found: Mapping[str, Statement]) -> None:
    """No valid bound is below the certified lower end of the truth."""
    least = found["loss distribution"].lower or 0
    for one in found.values():
        if not one.refused and one.epsilon is not None:
            assert one.epsilon >= least, one


@pytest.mark.parametrize("name", one_in(2, LISTS))
def test_no_bound_is_below_the_truth(name: str) -> None:
    check_order(asked(name, delta=1e-6))


@pytest.mark.parametrize("method", ["optimal composition", "loss distribution"])
def test_a_bound_that_is_too_small_is_noticed(method: str) -> None:
    found = asked("laplace", delta=1e-6)
    too_small = replace(found[method], epsilon=0.9 * (found[method].epsilon or 0))
    with pytest.raises(AssertionError):
        check_order({**found, method: too_small})


@pytest.mark.parametrize("name", only([0, 4], LISTS))
def test_epsilon_and_delta_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for δ at the ε that it stated, a method states the δ that it was asked at, or less."""
    for method, one in zip(METHODS, asked(name, delta=1e-6).values(), strict=True):
        if one.refused:
            continue
        assert one.epsilon is not None
        monkeypatch.setattr(statements, "METHODS", (method,))
        back = asked(name, epsilon=Fraction(one.epsilon))[method.name]
        monkeypatch.undo()
        assert back.delta is not None
        assert back.delta <= 1.01e-6, method.name
        assert back.epsilon == one.epsilon


@pytest.mark.long
def test_a_lower_end_is_stated_where_it_is_attained() -> None:
    """A large bounded range loses less than its pair under composition, as its Rényi curve shows."""
    found = {one.method: one for one in statements_of([listed("exponential", 3, epsilon=10**4)], delta=1e-6)}
    assert found["loss distribution"].lower is None
    assert (found["Rényi DP"].epsilon or 0) < (found["loss distribution"].epsilon or 0)
    assert profiles_of([listed("exponential", epsilon=1)], [0.5])[-1].lower is None
    for name in LISTS.keys() - {"failing", "concentrated"}:
        assert asked(name, delta=1e-6)["loss distribution"].lower is not None


def test_validity_is_said() -> None:
    found = asked("mixed", delta=1e-6)
    assert {name for name, one in found.items() if not one.adaptive} == {"optimal composition", "loss distribution"}
    for one in found.values():
        assert one.holds == (statements.ADAPTIVE if one.adaptive else statements.FIXED)


@pytest.mark.parametrize(
    ("name", "method", "reason"),
    [
        ("discrete", "Gaussian DP", "ρ-zCDP does not imply"),
        ("failing", "Rényi DP", "probability δ"),
        ("sampled", "Gaussian DP", "no smaller gdp loss"),
        ("sampled", "zCDP", "no smaller zcdp loss"),
    ],
)
def test_what_no_theorem_gives_is_refused(name: str, method: str, reason: str) -> None:
    one = asked(name, delta=1e-6)[method]
    assert reason in one.refused
    assert (one.epsilon, one.delta, one.lower, one.total) == (None, None, None, "")


def test_a_delta_below_the_mechanisms_own_is_refused() -> None:
    found = asked("failing", delta=1e-9)
    assert all(one.refused for one in found.values())
    assert "anything may be shown" in found["loss distribution"].refused


@pytest.mark.parametrize("size", [10**-30, 10**4])
@pytest.mark.parametrize("kind", ["laplace", "pure"])
def test_extreme_sizes_are_stated(kind: str, size: float) -> None:
    found = {one.method: one for one in statements_of([listed(kind, 3, epsilon=size)], delta=1e-6)}
    assert found["basic composition"].epsilon == pytest.approx(3 * size)
    check_order(found)


@pytest.mark.long
def test_to_replace_is_to_remove_and_to_add() -> None:
    def stated(*parts: Listed) -> tuple[Statement, ...]:
        return statements_of(parts, delta=1e-6, neighbouring="replace_one")

    numbers = {
        "laplace": ("epsilon=0.1", "epsilon=0.2"),
        "gaussian": ("sigma=4", "sigma=4 sensitivity=2"),
        "discrete-laplace": ("scale=4", "scale=4 sensitivity=2"),
        "discrete-gaussian": ("sigma=4", "sigma=4 sensitivity=2"),
        "exponential": ("epsilon=0.1", "epsilon=0.2"),
        "pure": ("epsilon=0.1", "epsilon=0.2"),
    }
    for kind, (once, twice) in numbers.items():
        assert stated(read(f"3 {kind} {once} neighbouring=add_remove")) == stated(read(f"3 {kind} {twice}")), kind
    kept = lw.ApproxDP(Fraction(1, 2), Fraction(1, 10**8)).for_group(2)
    assert stated(listed("approx", neighbouring="add_remove", epsilon=0.5, delta=1e-8)) == stated(
        listed("approx", epsilon=kept.epsilon, delta=kept.delta)
    )


def test_relations_are_kept_apart() -> None:
    both = [listed("randomized-response", epsilon=1), listed("laplace", epsilon=1)]
    assert not statements_of(both, delta=1e-6, neighbouring="replace_one")[-1].refused
    with pytest.raises(InvalidParameter, match="replace_one, which implies nothing for add_remove"):
        statements_of(both, delta=1e-6)
    with pytest.raises(InvalidParameter, match="what it loses as a unit is replaced is not known"):
        statements_of([listed("laplace", epsilon=1, rate=0.1)], delta=1e-6, neighbouring="replace_one")
    with pytest.raises(InvalidParameter, match="leave out the rate"):
        listed("randomized-response", epsilon=1, rate=0.1)
    with pytest.raises(InvalidParameter, match="cannot be stated for add_remove"):
        listed("randomized-response", epsilon=1, neighbouring="add_remove")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: listed("laplac", epsilon=1), "one of laplace"),
        (lambda: listed("laplace", sigma=1), "epsilon=… or scale=…"),
        (lambda: listed("laplace", epsilon=1, scale=1), "was given epsilon, scale"),
        (lambda: listed("gaussian"), "no number"),
        (lambda: listed("laplace", 0, epsilon=1), "number of times"),
        (lambda: listed("laplace", True, epsilon=1), "number of times"),
        (lambda: listed("laplace", 10**10, epsilon=1), "1,000,000,000"),
        (lambda: listed("laplace", epsilon=0), "above 0"),
        (lambda: listed("laplace", epsilon=1e90), "1e-30 to 10,000"),
        (lambda: listed("gaussian", sigma=1e-20), "sensitivity over sigma is 1e"),
        (lambda: listed("gaussian", sigma=0), "sigma is 0"),
        (lambda: listed("laplace", epsilon=float("nan")), "finite number"),
        (lambda: listed("discrete-laplace", scale=1, sensitivity=0.5), "whole number"),
        (lambda: listed("randomized-response", epsilon=1, choices=1), "whole number from 2"),
        (lambda: listed("approx", epsilon=1, delta=1), "below 1"),
        (lambda: listed("approx", epsilon=1, delta=1e-6, rate=0.5), "leave out the rate"),
        (lambda: listed("laplace", epsilon=1, rate=0), "sampling rate"),
        (lambda: listed("laplace", epsilon=1, neighbouring="both"), "add_remove or replace_one"),
        (lambda: statements_of([], delta=0.1), "empty"),
        (lambda: statements_of(LISTS["mixed"]), "either delta or epsilon"),
        (lambda: statements_of(LISTS["mixed"], delta=0.1, epsilon=1), "either delta or epsilon"),
        (lambda: statements_of(LISTS["mixed"], delta=0), "above 0"),
        (lambda: statements_of(LISTS["mixed"], epsilon=-1), "0 or more"),
        (lambda: statements_of(LISTS["mixed"], delta=0.1, neighbouring="both"), "add_remove or"),  # type: ignore[arg-type]
    ],
)
def test_wrong_lists_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        make()


def test_no_sample_is_a_rate_of_one() -> None:
    assert listed("gaussian", 3, sigma=4, rate=1) == listed("gaussian", 3, sigma=4)


def test_profiles_fall_and_enclose_the_truth() -> None:
    epsilons = [Fraction(n, 4) for n in range(9)]
    points = profiles_of([listed("gaussian", sigma=1)], epsilons)
    exact = [point for point in points if point.method == "loss distribution"]
    assert [Fraction(point.epsilon) for point in exact] == epsilons
    for point in exact:
        assert point.lower is not None
        assert real(point.lower) <= oracle.gdp_delta(Fraction(1), Fraction(point.epsilon)) <= real(point.upper)
    assert sorted((point.upper for point in exact), reverse=True) == [point.upper for point in exact]
    assert {point.method for point in points} == {"zCDP", "Gaussian DP", "Rényi DP", "loss distribution"}
    assert {point.method for point in profiles_of(LISTS["sampled"][1:], [1], width=0.01)} == {
        "Rényi DP",
        "loss distribution",
    }


def test_every_kind_and_method_is_tried() -> None:
    tried = {part.text.split()[1] for parts in LISTS.values() for part in parts}
    assert tried >= KINDS.keys() - {"pure"}
    assert len(METHODS) == 7


def test_public_names_are_there_and_hide_no_module() -> None:
    names = dir(lw.privacy)
    assert not [name for name in names if name.startswith("_") or isinstance(getattr(lw.privacy, name), ModuleType)]
    assert {"charge", "listed", "calibrate"} <= set(names)
    modules = {path.stem for path in Path(lw.privacy.__file__ or "").parent.glob("*.py")}
    assert not modules & set(names)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lw.privacy.Nothing


def test_help_of_the_package_fits_a_screen_and_names_everything() -> None:
    """Its text, before the list of modules; `help` of a name has the rest."""
    shown = pydoc.plain(pydoc.render_doc(lw.privacy)).split("PACKAGE CONTENTS")[0]
    assert len(shown.splitlines()) <= 50
    assert max(map(len, shown.splitlines())) <= 100
    assert set(re.findall(r"\w+", shown)) >= set(dir(lw.privacy))
    assert not re.search(r"^CLASSES$", pydoc.plain(pydoc.render_doc(lw.privacy)), re.MULTILINE)


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = "import sys, lapwing.privacy.amounts; print([m for m in ('flint', 'numpy') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
