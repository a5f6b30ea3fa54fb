"""The exact law of a client's report, over every way that its random words can fall."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

import pytest

from lapwing.local.client import answers as answers_of_devices
from lapwing.local.client import frequencies, heavy_hitters, longitudinal, means, rappor, rules, task

DRAWING = (answers_of_devices, frequencies, heavy_hitters, longitudinal, means, rappor, rules, task)


def law_of(run: Callable[[], Hashable], monkeypatch: pytest.MonkeyPatch) -> dict[Hashable, Fraction]:
    """The exact law of what is said, over every way that coins and integers can fall."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    path: list[int] = []
    chances: list[list[Fraction]] = []

    def choose(options: list[Fraction]) -> int:
        if len(chances) == len(path):
            path.append(0)
        chances.append(options)
        return path[len(chances) - 1]

    def coin(threshold: int, read: Any) -> bool:
        return bool(choose([1 - Fraction(threshold, 2**64), Fraction(threshold, 2**64)]))

    for module in DRAWING:  # which import them by name
        monkeypatch.setattr(module, "coin", coin, raising=False)
        monkeypatch.setattr(module, "below", lambda bound, read: choose([Fraction(1, bound)] * bound), raising=False)
    while True:
        chances.clear()
        outcome = run()
        chance = Fraction(1)
        for options, taken in zip(chances, path, strict=True):
            chance *= options[taken]
        law[outcome] += chance
        while path and path[-1] + 1 == len(chances[len(path) - 1]):
            path.pop()
        if not path:
            return dict(law)
        path[-1] += 1
