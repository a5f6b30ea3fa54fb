"""Closing a task of 10,000 clients and ten values at three servers: unchecked, checked, with liars, with joint noise.

    python benchmarks/secure.py           and last a grid of 100,000 values, and Prio3
    python benchmarks/secure.py --grid    only the grid
    python benchmarks/secure.py --prio3   only Prio3

The servers are processes on this machine, asked over TLS. The floor is to read what one server holds from its file and
to add it up: no set to agree on, no test, no charge, no noise, no network. Medians of three runs with new servers each.

Prio3 is measured in reports a second of processor time, with two servers in this process and no network: a client's
shares in Python and by the browser's module in Node, both servers' work on a report, and one server's addition.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from secrets import token_bytes
from statistics import median

import numpy as np

from lapwing.cli.demo import secure_sums as demo
from lapwing.exact.entropy import SYSTEM
from lapwing.secure import organising, sending
from lapwing.secure.device import records_of
from lapwing.secure.field import on_lines
from lapwing.secure.identity import make_identity
from lapwing.secure.prio3 import CountCircuit, HistogramCircuit, Prio3, Prio3Report, SumCircuit, SumVecCircuit
from lapwing.secure.prio3.circuits import Circuit
from lapwing.secure.prio3.range_checks import Measurement
from lapwing.secure.sealing import envelope_bytes
from lapwing.secure.task import Task
from lapwing.secure.transport import lines
from lapwing.secure.values import Values
from lapwing.secure.wire import record_of

CLIENTS = 10_000
VALUES = tuple("abcdefghij")
CELLS = 100_000
MOST_BYTES = 5_000
ROUNDS = 3
SECONDS = 0.5
VARIANTS: dict[str, tuple[Circuit, Measurement, str]] = {
    "Count": (CountCircuit(), 1, "m.count(), 1n"),
    "Sum, 32 bits": (SumCircuit((1 << 32) - 1), 123_456_789, "m.sum((1n << 32n) - 1n), 123456789n"),
    "SumVec, 100 × 16 bits": (
        SumVecCircuit(100, 65_535, 40),
        [*range(0, 50_000, 500)],
        "m.sumVec(100, 65535n, 40), Array.from({ length: 100 }, (_, i) => BigInt(500 * i))",
    ),
    "Histogram, 1,000": (HistogramCircuit(1000, 32), 617, "m.histogram(1000, 32), 617n"),
}
MODULE = Path(sending.__file__).parent / "browser" / "lapwing-prio3.mjs"
NODE = """
    import { webcrypto } from "node:crypto";
    globalThis.crypto ??= webcrypto;
    const m = await import(MODULE), context = new TextEncoder().encode("benchmark"), found = [];
    for (const [circuit, measurement] of [CASES]) {
      m.shard(circuit, context, measurement);
      const start = process.cpuUsage();
      const used = () => Object.values(process.cpuUsage(start)).reduce((a, b) => a + b) / 1e6;
      let turns = 0;
      do m.shard(circuit, context, measurement), turns++; while (used() < MOST);
      found.push(turns / used());
    }
    console.log(JSON.stringify(found));
"""


def made(folder: Path, *, checked: bool, joint: bool, grid: bool = False) -> tuple[Task, str]:
    certificates = [
        make_identity(folder / name, name, f"127.0.0.1:{port}").read_text() for name, port in demo._free_ports().items()
    ]
    return organising.new_task(
        question="Which?",
        asked=Values(tuple(map(str, range(CELLS))) if grid else VALUES),
        epsilon=Fraction(1),
        delta=Fraction(0),
        least_clients=CLIENTS,
        certificates=certificates,
        checked=checked,
        joint=joint,
        grid=grid,
    )


def lie(task: Task) -> None:
    client = SYSTEM.read(16)
    with lines(task) as each:
        for line, part in zip(each, on_lines([1000, *[0] * (len(VALUES) - 1)]), strict=True):
            line.send(record_of(client, part))


def floor(folder: Path, task: Task) -> float:
    start = time.perf_counter()
    with closing(sqlite3.connect(folder / "north" / f"parts-{task.digest[:16]}.db")) as file:
        cells = b"".join(cells for (cells,) in file.execute("SELECT cells FROM part"))
    (np.frombuffer(cells, dtype="<u8").reshape(-1, len(VALUES)) >> np.uint64(32)).sum(axis=0)
    return time.perf_counter() - start


def run(*, checked: bool, liars: int, joint: bool) -> tuple[float, float, float]:
    """Return the seconds of sending, of closing, and of the floor."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task, key = made(folder, checked=checked, joint=joint)
        (folder / "task.json").write_text(task.to_text())
        with demo._servers(folder, folder / "task.json") as running:
            demo._await(task, running)
            start = time.perf_counter()
            sending.send_all(task, [VALUES[place % len(VALUES)] for place in range(CLIENTS)])
            sent = time.perf_counter() - start
            for _ in range(liars):
                lie(task)
            start = time.perf_counter()
            found = organising.close(task, key)
            closed = time.perf_counter() - start
            if (found.clients, found.dropped or 0) != (CLIENTS, liars):
                raise SystemExit("The wrong clients were dropped.")
            return sent, closed, floor(folder, task)


def processor(running: dict[str, "subprocess.Popen[bytes]"]) -> float:
    """Return the seconds of processor time that the servers have used."""
    fields = [Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split() for process in running.values()]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def grid() -> None:
    """Count 100,000 values: bytes of a client, and seconds to close with the test."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task, key = made(folder, checked=True, joint=False, grid=True)
        (folder / "task.json").write_text(task.to_text())
        answers = [str(7 * client % CELLS) for client in range(CLIENTS)]
        size = sum(map(len, records_of(task, answers[0]).values()))
        with demo._servers(folder, folder / "task.json") as running:
            demo._await(task, running)
            start = time.perf_counter()
            sending.send_all(task, answers)
            sent, start, before = time.perf_counter() - start, time.perf_counter(), processor(running)
            found = organising.close(task, key)
            closed, used = time.perf_counter() - start, processor(running) - before
            if (found.clients, found.dropped) != (CLIENTS, 0) or max(map(abs, found.cells)) > 500:
                raise SystemExit("The counts are wrong.")
    print(
        f"grid of {CELLS:,} values   sent {sent:5.2f} s  closed {closed:5.2f} s of 2 allowed, {used:.2f} s of "
        f"processor time at the servers  {size:,} bytes a client of {MOST_BYTES:,} allowed, {envelope_bytes(task):,} "
        "by a relay"
    )


def a_second(act: Callable[[], object]) -> float:
    """Return how often a function runs in a second of this process's processor time."""
    turns, start = 0, time.process_time()
    while (used := time.process_time() - start) < SECONDS:
        act()
        turns += 1
    return turns / used


def in_node() -> list[float | None]:
    """Return how many reports the browser's module shards in a second, for each variant; None without Node."""
    program = shutil.which("node") or shutil.which("nodejs")
    if program is None:
        return [None] * len(VARIANTS)
    cases = ", ".join(f"[{in_module}]" for _, _, in_module in VARIANTS.values())
    script = NODE.replace("MODULE", json.dumps(MODULE.as_uri())).replace("CASES", cases)
    command = [program, "--input-type=module", "-e", script.replace("MOST", str(SECONDS))]
    speeds: list[float | None] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return speeds


def prio3() -> None:
    """Print reports a second of processor time for each variant of Prio3."""
    print(f"Prio3, reports a second of processor time; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors")
    for (name, (circuit, measurement, _)), module in zip(VARIANTS.items(), in_node(), strict=True):
        prio = Prio3(circuit=circuit, context=b"benchmark")
        nonce, key = token_bytes(16), token_bytes(32)
        report = prio.shard(measurement, nonce, token_bytes(prio.randomness_bytes))

        def prepare(
            prio: Prio3 = prio, nonce: bytes = nonce, key: bytes = key, report: Prio3Report = report
        ) -> list[tuple[int, ...]]:
            begun = [
                prio.begin_verifying(key, place, nonce, report.public_share, share)
                for place, share in enumerate(report.input_shares)
            ]
            message = prio.verifier_message([share for _, share in begun])
            return [prio.verified(kept, message) for kept, _ in begun]

        outputs = prepare()
        if prio.unshard([prio.total([output]) for output in outputs]) != prio.circuit.truncate(
            prio.circuit.encode(measurement)
        ):
            raise SystemExit("The total is wrong.")
        sharded = a_second(lambda: prio.shard(measurement, nonce, token_bytes(prio.randomness_bytes)))  # noqa: B023
        added = 100 * a_second(lambda: prio.total([outputs[0]] * 100))  # noqa: B023
        size = len(report.public_share) * prio.servers + sum(map(len, report.input_shares))
        print(
            f"{name:22} shard {sharded:8.1f} (Node {f'{module:.1f}' if module else 'none'})  "
            f"prepare at both servers {a_second(prepare):8.1f}  aggregate {added:12,.0f}  {size:,} bytes a client"
        )


def main() -> None:
    if "--grid" in sys.argv:
        grid()
        return
    if "--prio3" in sys.argv:
        prio3()
        return
    print(f"{CLIENTS:,} clients, {len(VALUES)} values, three servers")
    before = 0.0
    for what, checked, liars, joint, most in (
        ("unchecked", False, 0, False, 2.0),
        ("unchecked, joint noise", False, 0, True, 2.0),
        ("checked", True, 0, False, 2.0),
        ("checked, three liars", True, 3, False, 6.0),
        ("checked, joint noise", True, 0, True, 2.0 + 0.2 * len(VALUES)),
    ):
        runs = [run(checked=checked, liars=liars, joint=joint) for _ in range(ROUNDS)]
        sent, closed, least = (median(each) for each in zip(*runs, strict=True))
        print(
            f"{what:22} sent {sent:5.2f} s  closed {closed:5.2f} s of {most:g} allowed  "
            f"{closed / least:5.0f} times the floor"
        )
        if joint and not checked:
            print(f"{'':22} joint noise: {(closed - before) / len(VALUES):5.3f} s a cell of 0.2 allowed")
        before = closed
    grid()
    prio3()


if __name__ == "__main__":
    main()
