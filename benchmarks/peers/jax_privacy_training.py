"""jax-privacy's DP-SGD on given rows: what it predicts, and the seconds of a step, compilation left out.

It runs in jax-privacy's environment: `python jax_privacy_training.py REQUEST`, where the request is JSON. Batches are
Poisson samples, filled up with zeros to a few sizes, so that little is compiled; both its clipping and its noise are
its own.
"""

import importlib
import itertools
import json
import sys
import time
from typing import Any

import numpy as np

jax: Any = importlib.import_module("jax")
jnp: Any = importlib.import_module("jax.numpy")
optax: Any = importlib.import_module("optax")
jax_privacy: Any = importlib.import_module("jax_privacy")

REQUEST: Any = json.loads(sys.argv[1])
SIZE = 64
data = np.load(REQUEST["data"])
x, y = data["x"].astype(np.float32), data["y"].astype(np.int32)
held_x, held_y = data["held_x"].astype(np.float32), data["held_y"]
rng = np.random.default_rng()


def scores(weights: Any, rows: Any) -> Any:
    for matrix, bias in weights[:-1]:
        rows = jnp.tanh(rows @ matrix + bias)
    matrix, bias = weights[-1]
    return rows @ matrix + bias


def loss(weights: Any, row: Any, label: Any, is_there: Any) -> Any:
    return -(jax.nn.log_softmax(scores(weights, row))[label]) * is_there


def start() -> Any:
    widths = [x.shape[1], *REQUEST["hidden"], int(y.max()) + 1]
    layers = []
    for before, after in itertools.pairwise(widths):
        matrix = rng.normal(0, before**-0.5, (before, after))
        layers.append((jnp.asarray(matrix, dtype=jnp.float32), jnp.zeros(after, dtype=jnp.float32)))
    return layers


clipped = jax_privacy.clipped_grad(
    loss,
    l2_clip_norm=REQUEST["clip"],
    batch_argnums=(1, 2, 3),
    keep_batch_dim=False,
    normalize_by=REQUEST["batch"],
    microbatch_size=REQUEST["microbatch"],
)
stddev = REQUEST["sigma"] * REQUEST["clip"] / REQUEST["batch"]
optimizer = optax.adam(0.01)


def step(weights: Any, state: Any, noise: Any, rows: Any, labels: Any, there: Any) -> Any:
    gradient = clipped(weights, rows, labels, there)
    noisy, noise = PRIVATIZER.update(gradient, noise)
    changes, state = optimizer.update(noisy, state, weights)
    return optax.apply_updates(weights, changes), state, noise


compiled = jax.jit(step)
PRIVATIZER = jax_privacy.noise_addition.gaussian_privatizer(stddev=stddev, prng_key=int(rng.integers(1 << 31)))
right, times = [], []
for _ in range(REQUEST["runs"]):
    weights = start()
    state, noise = optimizer.init(weights), PRIVATIZER.init(weights)
    sizes: set[int] = set()
    for _ in range(REQUEST["steps"]):
        batch = np.flatnonzero(rng.random(len(x)) < REQUEST["rate"])
        size = max(SIZE, -(-batch.size // SIZE) * SIZE)
        filled = np.pad(batch, (0, size - batch.size))
        there = np.arange(size) < batch.size
        begun, used = time.perf_counter(), time.process_time()
        weights, state, noise = compiled(weights, state, noise, x[filled], y[filled], there.astype(np.float32))
        jax.block_until_ready(weights)
        if size in sizes:  # compiled before
            times.append((time.perf_counter() - begun, time.process_time() - used))
        sizes.add(size)
    right.append(float((np.asarray(scores(weights, held_x)).argmax(axis=1) == held_y).mean()))
clock, processors = np.median(np.array(times), axis=0)
print(json.dumps({"right": right, "clock": float(clock), "processors": float(processors)}))
