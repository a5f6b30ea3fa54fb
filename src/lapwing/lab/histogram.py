"""*histogram*: why to ask for all cells at once.

Derivation. Each student uses one editor, so adding or removing one changes one cell of a histogram, by 1: noise of
scale 1/ε in every cell makes all of them together ε-DP (parallel composition). Whoever asks for k cells one by one, out
of the same ε, has ε/k for each, noise of scale k/ε, and k² times the mean squared error. The half-width of a 95 %
interval of discrete Laplace noise of scale s is the least integer h with 1 − P(|x| ≤ h) = 2r^(h+1)/(1 + r) ≤ 0.05,
r = e^(−1/s); the mean error is E|x| = 2r/(1 − r²) = 1/sinh(1/s).
"""

from fractions import Fraction
from math import ceil, exp, log, sinh
from typing import Final

import numpy as np
import pyarrow as pa

from lapwing import noise
from lapwing.lab.agreement import CONFIDENCE, Check, exactly, share
from lapwing.lab.course import DOMAINS, protected_students
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Row, Settings
from lapwing.lab.students import EDITORS, GENDERS, students
from lapwing.plots import Plot

MONTHS: Final = tuple(range(1, 13))
MANY: Final = len(EDITORS[:4]) * len(GENDERS) * len(MONTHS)


def run(settings: Settings) -> Finding:
    """Ask for five editors, and for 96 cells of editor, gender and month, singly and at once, out of one ε."""
    epsilon, draws = settings.at(Fraction(1)), settings.times(200_000, 20_000)
    counted = _engine(epsilon)
    rows: list[Row] = []
    checks: list[Check] = []
    for cells, how, scale in (
        (len(EDITORS), "singly", len(EDITORS) / epsilon),
        (len(EDITORS), "at once", 1 / epsilon),
        (MANY, "singly", MANY / epsilon),
        (MANY, "at once", 1 / epsilon),
    ):
        reach = half_width(scale)
        observed = counted[cells, how]
        drawn = noise.discrete_laplace(scale, draws)
        within = int((np.abs(drawn) <= reach).sum())
        name = f"{cells} cells, {how}"
        rows.append(
            {
                "cells": cells,
                "asked": how,
                "scale": float(scale),
                "±, predicted": reach,
                "±, observed": observed,
                "error, predicted": 1 / sinh(1 / float(scale)),
                "error, observed": float(np.abs(drawn).mean()),
            }
        )
        checks.append(exactly(f"± of {name}", reach, observed))
        checks.append(share(f"noise within ±, {name}", _within(scale, reach), within, draws))
    return Finding(
        rows=tuple(rows),
        checks=tuple(checks),
        plot=_plot(rows),
        conclusion=(
            f"With ε = {float(epsilon):g} in all, counts of five editors have ±{counted[5, 'singly']:g} singly, and "
            f"±{counted[5, 'at once']:g} at once. Counts of {MANY} cells have ±{counted[MANY, 'singly']:g} and "
            f"±{counted[MANY, 'at once']:g}. Nobody is in two cells, so the cells need not share the budget: ask once, "
            "with GROUP BY."
        ),
        sample=f"{draws:,} draws of each noise, and the real engine's own intervals; {CONFIDENCE}",
    )


def half_width(scale: Fraction) -> int:
    """Return the least h that 95 % of discrete Laplace noise does not exceed."""
    r = exp(-1 / float(scale))
    return max(0, ceil(log(0.05 * (1 + r) / 2) / log(r) - 1 - 1e-9))


def _within(scale: Fraction, reach: int) -> float:
    r = exp(-1 / float(scale))
    return 1 - 2 * r ** (reach + 1) / (1 + r)


def _engine(epsilon: Fraction) -> dict[tuple[int, str], float]:
    """Return the half-widths that the real engine states, for one of the cells asked singly, and for all at once."""
    born = students()["birth_date"].to_pylist()
    table = students().append_column("month", pa.array([day.month for day in born], pa.int64()))
    keys = "editor, gender, month"
    questions = {
        (len(EDITORS), "singly"): "SELECT COUNT(*) AS n FROM students WHERE editor = 'Vim'",
        (len(EDITORS), "at once"): "SELECT editor, COUNT(*) AS n FROM students GROUP BY editor",
        (MANY, "singly"): "SELECT COUNT(*) AS n FROM students WHERE editor = 'Vim' AND gender = 'f' AND month = 1",
        (MANY, "at once"): f"SELECT {keys}, COUNT(*) AS n FROM students WHERE editor <> 'Sublime' GROUP BY {keys}",
    }
    half_widths = {}
    with protected_students(4 * epsilon, table, domains={**DOMAINS, "month": MONTHS}) as session:
        for (cells, how), question in questions.items():
            answer = session.sql(question, epsilon=epsilon / cells if how == "singly" else epsilon)
            low, high = answer.interval(Fraction(95, 100))["n"]
            half_widths[cells, how] = float(high[0] - low[0]) / 2
    return half_widths


def _plot(rows: list[Row]) -> Plot:
    ways = ["singly", "at once"]
    bars = layer(
        "bar",
        x=nominal("asked for", sort=None, axis={"labelAngle": 0}),
        xOffset={"field": "asked", "sort": ways},
        y=numeric("±, observed", "± at 95 % (logarithmic)", scale={"type": "symlog"}),
        color=nominal("asked", sort=ways),
    )
    cells = [{**row, "asked for": f"{row['cells']} cells"} for row in rows]
    return chart("Half-width of a 95 % interval, out of one epsilon", width=300, **data(cells), **bars)


EXPERIMENT: Final = Experiment(
    name="histogram",
    title="Why ask for all cells at once?",
    run=run,
    sizes={"repetitions": range(1_000, 10_000_001)},
)
