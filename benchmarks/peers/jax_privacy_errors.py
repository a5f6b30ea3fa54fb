"""jax-privacy's buffers for sums over time: the largest standard deviation for one event and a loss of μ = 1.

It runs in jax-privacy's environment: `python jax_privacy_errors.py REQUEST`, where the request is JSON.
"""

import importlib
import json
import sys
import time
from typing import Any

jax: Any = importlib.import_module("jax")
jax.config.update("jax_enable_x64", True)
buffered: Any = importlib.import_module("jax_privacy.matrix_factorization.buffered_toeplitz")

REQUEST: Any = json.loads(sys.argv[1])
found = []
for ticks in REQUEST["ticks"]:
    begun = time.process_time()
    matrix = buffered.optimize(n=ticks, max_buffers=REQUEST["buffers"], rtol=1.0001)
    error = float(buffered.max_loss(matrix, n=ticks)) ** 0.5
    found.append({"error": error, "buffers": len(matrix.buf_decay), "seconds": time.process_time() - begun})
print(json.dumps(found))
