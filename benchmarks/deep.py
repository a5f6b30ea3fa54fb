"""A network trained on secret samples, beside jax-privacy's DP-SGD of the same network, noise and samples.

    python benchmarks/deep.py [RUNS]

Scikit-learn's scanned digits: 1,437 rows of 64 pixels to train on, a unit each, and 360 that are held out. Of both is
printed the share of these that is told rightly, mean over the runs, and the median time of a step, by the clock and of
processors, without compilation. jax-privacy clips and adds its noise in floating point, by microbatches of one compiled
shape; it runs in an environment of its own (`peers/environments.py`), in turn with ours.
"""

import json
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.environments import ask
from sklearn.datasets import load_digits

import lapwing as lw
from lapwing.learn.deep import NetworkClassifier, dense, sampling

HIDDEN: Final = (1500,)
STEPS, BATCH, CLIP, EPSILON, DELTA = 60, 256, 1.0, 1, 1e-7
CATALOG: Final = """
[dataset]
name = "digits"
ledger = "sqlite:digits.lapwing.db"

[budget]
epsilon = 1000
delta = 1e-5
delta_keys = 1e-6
measure = "gdp"

[tables.digits]
source = "digits.parquet"
privacy_unit = "row"

[tables.digits.columns]
"""


def columns(pixels: Any, digits: Any) -> dict[str, Any]:
    return {f"p{place:02d}": pixels[:, place].astype(int) for place in range(64)} | {"digit": [str(d) for d in digits]}


def protected(folder: Path, pixels: Any, digits: Any) -> lw.Session:
    pq.write_table(pa.table(columns(pixels, digits)), folder / "digits.parquet")
    declared = [f'p{place:02d} = {{ type = "integer", lower = 0, upper = 16 }}' for place in range(64)]
    listed = json.dumps([str(digit) for digit in range(10)])
    declared.append(f'digit = {{ type = "string", values = {listed} }}')
    (folder / "lapwing.toml").write_text(CATALOG + "\n".join(declared) + "\n")
    return lw.connect(folder / "lapwing.toml")


def ours(session: lw.Session, held: Any) -> tuple[float, list[tuple[float, float]], Fraction]:
    """Return the share told rightly, the times of all steps but the first two, and σ."""
    begun: list[tuple[float, float]] = []
    batch_of = sampling.batch_of

    def noted(*of: Any) -> Any:
        begun.append((time.perf_counter(), time.process_time()))
        return batch_of(*of)

    model = NetworkClassifier(people=1437, network=dense(HIDDEN), batch=BATCH, steps=STEPS, clip=CLIP)
    with patch.object(sampling, "batch_of", noted):
        model.fit(session, "digits", [f"p{place:02d}" for place in range(64)], "digit", epsilon=EPSILON, delta=DELTA)
    times = np.diff(np.array(begun), axis=0)[2:]
    return model.score(held), [(float(clock), float(used)) for clock, used in times], model.sigma_ or Fraction(0)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    digits = load_digits()
    order = np.random.default_rng(20260101).permutation(len(digits.target))
    kept, held = order[:1437], order[1437:]
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name:
        folder = Path(name)
        scaled = digits.data / 8 - 1
        np.savez(
            folder / "digits.npz",
            x=scaled[kept],
            y=digits.target[kept],
            held_x=scaled[held],
            held_y=digits.target[held],
        )
        right, theirs, times, clocks = [], [], [], []
        with protected(folder, digits.data[kept], digits.target[kept]) as session:
            for _ in range(runs):
                share, took, sigma = ours(session, columns(digits.data[held], digits.target[held]))
                right.append(share)
                times += took
                told = ask(
                    "jax-privacy",
                    "jax_privacy_training.py",
                    {
                        "data": str(folder / "digits.npz"),
                        "hidden": HIDDEN,
                        "steps": STEPS,
                        "rate": (BATCH * (1 << 20) // 1437) / (1 << 20),
                        "batch": BATCH,
                        "clip": CLIP,
                        "sigma": float(sigma),
                        "microbatch": 64,
                        "runs": 1,
                    },
                )
                theirs += told["right"]
                clocks.append((told["clock"], told["processors"]))
    weights = 64 * HIDDEN[0] + HIDDEN[0] + HIDDEN[0] * 10 + 10
    print(
        f"{weights:,} weights, {STEPS} steps of about {BATCH} at σ = {float(sigma):.3g} clips; means of {runs} runs\n"
    )
    print(f"{'':12}{'right':>8}{'step':>10}{'of processors':>16}")
    for title, shares, seconds in (("Lapwing", right, times), ("jax-privacy", theirs, clocks)):
        clock, used = np.median(np.array(seconds), axis=0) * 1e3
        print(f"{title:12}{mean(shares):8.3f}{clock:8.0f}ms{used:14.0f}ms")


if __name__ == "__main__":
    main()
