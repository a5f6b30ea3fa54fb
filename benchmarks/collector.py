"""Reports a second that a collector takes over HTTP, synced before they are acknowledged: in batches and one by one.

    python benchmarks/collector.py [REPORTS]

A process of `lapwing local collect` takes k-ary reports of 100 values: in batches of 1,000 over one connection; and one
by one over 32 connections, whose reports share commits. The floor is to write as many bytes to a file and to sync it
after each batch. With REPORTS it takes so many in batches, and says what memory and disk they took. Beside each figure
stands what is wanted, of two idle cores; and how long the browsers' modules are as they are sent, which must be 12 KiB
at most.
"""

import gzip
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import lapwing
from lapwing.local import KaryResponse, new_task

BATCH = 1_000
CONNECTIONS = 32
TASK = new_task(
    "Which?", [f"v{i}" for i in range(100)], KaryResponse.for_epsilon(2, 100), opens=date(2026, 1, 1),
    closes=date(2099, 1, 1),
)  # fmt: skip
PORT = 8777
WANTED = {"batches": 30_000, "one by one": 600, "megabytes of ten million": 1_000, "module": 12 << 10}
MODULES = ("local/browser/lapwing-local.mjs", "secure/browser/lapwing-secure.mjs")


def made(count: int) -> list[bytes]:
    """Reports that cost no time to make: the law of what they say does not matter here."""
    head, middle = f'{{"v":1,"task":"{TASK.id}","id":"'.encode(), b'","m":"k-ary","r":'
    data = os.urandom(16 * count)
    return [head + data[16 * i : 16 * i + 16].hex().encode() + middle + b"%d}" % (i % 100) for i in range(count)]


def bring(bodies: Sequence[bytes]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    for body in bodies:
        connection.request("POST", f"/local/{TASK.id}/reports", body)
        with connection.getresponse() as response:
            receipt = json.load(response)
        if receipt["taken"] != body.count(b"{"):
            raise SystemExit(f"not taken: {receipt}")
    connection.close()


def in_batches(count: int) -> float:
    lines = made(count)
    bodies = [b"\n".join(lines[at : at + BATCH]) for at in range(0, count, BATCH)]
    start = time.perf_counter()
    bring(bodies)
    return count / (time.perf_counter() - start)


def one_by_one(count: int) -> float:
    lines = made(count)
    parts = [lines[at::CONNECTIONS] for at in range(CONNECTIONS)]
    threads = [threading.Thread(target=bring, args=(part,)) for part in parts]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - start)


def floor(folder: Path, count: int, batch: int) -> float:
    lines = made(count)
    start = time.perf_counter()
    with (folder / "floor").open("wb") as file:
        for at in range(0, count, batch):
            file.write(b"\n".join(lines[at : at + batch]))
            file.flush()
            os.fsync(file.fileno())
    return count / (time.perf_counter() - start)


def megabytes(process: "subprocess.Popen[bytes]") -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_text(json.dumps(TASK.document))
        command = [sys.executable, "-c", "from lapwing.cli import main; main()", "local", "collect", "task.json"]
        process = subprocess.Popen(
            [*command, "--listen", f"127.0.0.1:{PORT}", "--rate", "0"], cwd=folder, stderr=subprocess.DEVNULL
        )
        try:
            while True:
                try:
                    http.client.HTTPConnection("127.0.0.1", PORT).request("GET", "/local/")
                    break
                except OSError:
                    time.sleep(0.05)
            if len(sys.argv) > 1:
                count, rates = int(sys.argv[1]), []
                for _ in range(0, count, 500_000):
                    rates.append(in_batches(500_000))
                held = sum(file.stat().st_size for file in folder.rglob("*.db*")) / 1e6
                print(
                    f"{count:,} reports, {min(rates):,.0f} a second or more:",
                    f"{megabytes(process)} MB of memory ({WANTED['megabytes of ten million']:,} wanted at most for "
                    f"10,000,000), {held:,.0f} MB on disk",
                )
                return
            in_batches(20_000)
            rate, least = in_batches(100_000), floor(folder, 100_000, BATCH)
            print(
                f"batches of {BATCH:,}   {rate:>9,.0f} reports/s, {WANTED['batches']:,} wanted   "
                f"{rate / least:.3f} of a file that is synced as often"
            )
            rate, least = one_by_one(6_400), floor(folder, 2_000, 1)
            print(
                f"one by one         {rate:>9,.0f} reports/s, {WANTED['one by one']:>6,} wanted   "
                f"{rate / least:.3f} of a file that is synced for each"
            )
            for module in MODULES:
                size = len(gzip.compress((Path(lapwing.__file__).parent / module).read_bytes(), 9))
                print(f"{module:36} {size:,} bytes as it is sent, {WANTED['module']:,} at most")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
