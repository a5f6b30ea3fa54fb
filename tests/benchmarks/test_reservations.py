"""Random questions that are compared with what is reserved for them are of every function, and find what is dear."""

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog.toml import load
from lapwing.query.plan.work import COSTS
from lapwing.server.deadline.made_up import MadeUpService, made_up_service
from lapwing.server.deadline.speed import Calibration

FILE = Path(__file__).parents[2] / "benchmarks" / "reservations.py"
spec = spec_from_file_location("reservations_benchmark", FILE)
assert spec is not None
assert spec.loader is not None
reservations: Any = module_from_spec(spec)
sys.modules[spec.name] = reservations  # its dataclasses look for it there
spec.loader.exec_module(reservations)
ELSEWHERE = {
    "between", "truncate_to", "to_fixed", "not_negative", "steps_of", "magnitude", "not_zero", "day_number",
    "exact_steps", "inside",
}  # fmt: skip
"""What constants, searches, quantiles and values as they are read make of a column; no text calls it by name."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeUpService]:
    with made_up_service(load(reservations.written(tmp_path_factory.mktemp("dear"), 64))) as made:
        yield made


@pytest.mark.long
def test_every_function_is_among_them(service: MadeUpService) -> None:
    functions, chance = set[str](), random.Random(1)
    conditions = {"N": "{} > 1", "T": "{} = 'q'", "D": "{} > DATE '2010-01-01'", "S": "{} > TIMESTAMP '2010-01-01'"}
    for kind, forms in reservations.FORMS.items():
        for form in (*forms, *forms, *forms, *forms):  # filled otherwise each time
            text = reservations.filled(chance, form, 0).replace("\0", "{").replace("\1", "}")
            condition = conditions.get(kind, "{}").format(text) if kind != "B" else text
            plans = service.plans(f"SELECT COUNT(*) FROM t WHERE {condition}")
            functions |= reservations.functions_of(plans)
    assert set(COSTS) - functions <= ELSEWHERE


@pytest.mark.long
def test_none_takes_more_than_is_reserved() -> None:
    calibration = Calibration()
    for _ in range(3):
        calibration.run()
    speed = calibration.speed
    calibration.close()
    found, _, _ = reservations.run(3_000, 20_000, 11, speed)
    assert [str(one) for one in found if one.ratio > 1] == []
    blind = replace(speed, nanosecond=0.0, part=0.0)
    found, _, _ = reservations.run(60, 20_000, 12, blind)
    assert any(one.ratio > 1 for one in found)
