"""PostgreSQL clients beside HTTP under load: the same questions to the same service, in turn.

Sixteen clients send one question after another, over HTTP, as simple queries as psql does, and by the extended protocol
as drivers do: charged ones, of which each is new, and stored ones. The kinds take turns for some rounds, because the
processors of a machine that others use too are never the same for long. What counts is the ratio of the milliseconds
that the service works for one question, its median over the rounds.

    python benchmarks/wire.py [--quick] [--rounds N] [--workers N]
"""

import argparse
import base64
import hashlib
import hmac
import os
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np
from _runs import keep
from serving import (
    AGAIN,
    QUICK,
    Bench,
    Load,
    Setup,
    Size,
    analysts,
    clients,
    connected,
    line,
    question,
    request_bytes,
    service,
    told_port,
)

READY: Final = b"Z\x00\x00\x00\x05I"
STATUSES: Final[Mapping[str, int]] = {"53000": 429, "55000": 503, "57014": 504, "58000": 500}
"""Of HTTP, for states of errors; all others are 422."""
EVENT: Final = "listening for PostgreSQL clients"


# ---- Clients ---------------------------------------------------------------------------------------------------------


def wire_connected(port: int, person: str, token: str, dataset: str, options: str) -> socket.socket:
    """Return a connection on which somebody has signed in, by SCRAM-SHA-256 as in RFC 5802."""
    made = connected(port)
    given = {"user": person, "database": dataset, "options": options}
    pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in given.items())
    made.sendall(struct.pack(">II", len(pairs) + 9, 3 << 16) + pairs + b"\0")
    _authentication(made)
    bare = f"n=,r={os.urandom(12).hex()}"
    first = f"n,,{bare}".encode()
    made.sendall(message(b"p", b"SCRAM-SHA-256\0" + struct.pack(">I", len(first)) + first))
    challenge = _authentication(made).decode()
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", token.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    without = f"c=biws,r={fields['r']}"
    signed = f"{bare},{challenge},{without}".encode()
    other = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = base64.b64encode(bytes(one ^ two for one, two in zip(key, other, strict=True))).decode()
    made.sendall(message(b"p", f"{without},p={proof}".encode()))
    received = b""
    while not received.endswith(READY):
        more = made.recv(1 << 16)
        received += more
        if not more or wire_error(received):
            raise SystemExit(f"{person} cannot sign in: {received!r}")
    return made


def _authentication(made: socket.socket) -> bytes:
    """Return what a server sends of an authentication."""
    head = made.recv(9, socket.MSG_WAITALL)
    body = made.recv(struct.unpack(">I", head[1:5])[0] - 8, socket.MSG_WAITALL)
    if head[:1] != b"R":
        raise SystemExit(f"no sign-in: {head + body!r}")
    return body


def wire_complete(received: bytes) -> int | None:
    """Return the status of a response once it is whole."""
    if not received.endswith(READY):
        return None
    state = wire_error(received).get("C")
    return 200 if state is None else STATUSES.get(state, 422)


def wire_error(received: bytes) -> dict[str, str]:
    """Return the fields of the first error of a response, by their letters."""
    place = 0
    while place + 5 <= len(received):
        (size,) = struct.unpack_from(">I", received, place + 1)
        if received[place : place + 1] == b"E":
            parts = received[place + 5 : place + 1 + size].split(b"\0")
            return {part[:1].decode(): part[1:].decode() for part in parts if part}
        place += size + 1
    return {}


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message of the protocol."""
    return kind + struct.pack(">I", len(body) + 4) + body


def simple(sql: str) -> bytes:
    """Return a query of the simple protocol."""
    return message(b"Q", sql.encode() + b"\0")


def extended(sql: str) -> bytes:
    """Return a query of the extended protocol, with a result in binary, as drivers send it."""
    parse = message(b"P", b"\0" + sql.encode() + b"\0\0\0")
    bind = message(b"B", bytes(6) + struct.pack(">HH", 1, 1))
    return parse + bind + message(b"D", b"P\0") + message(b"E", bytes(5)) + message(b"S")


@dataclass(frozen=True, slots=True)
class Wire:
    """Clients that speak the protocol of PostgreSQL; each is an analyst."""

    port: int
    tokens: Sequence[str]

    def connected(self, client: int) -> socket.socket:
        """Return the connection of a client."""
        epsilon = f"-c lapwing.epsilon={question(0)['epsilon']}"
        return wire_connected(self.port, f"analyst{client}", self.tokens[client], "visits", epsilon)

    def complete(self, received: bytes) -> int | None:
        """Return the status of a response once it is whole."""
        return wire_complete(received)


# ---- What is measured ------------------------------------------------------------------------------------------------

WAYS: Final[Mapping[str, Callable[[str], bytes] | None]] = {"http": None, "simple": simple, "extended": extended}


def rounds_of(bench: Bench, folder: Path, setup: Setup, rounds: int) -> dict[str, list[Load]]:
    """Return what came of each kind and way in each round."""
    loads: dict[str, list[Load]] = {}
    count = bench.size.requests
    with service(folder, setup, "--postgres", 0) as (process, port):
        tokens = analysts(port)
        wire_port = told_port(folder / "log", EVENT)
        if wire_port is None:
            raise SystemExit((folder / "log").read_text())
        speaker = Wire(wire_port, tokens)

        def came(way: str, numbers: Sequence[float]) -> Load:
            make = WAYS[way]
            if make is not None:
                texts = [make(str(question(number)["sql"])) for number in numbers]
                return bench.load(process, port, [b"", *texts], speaker=speaker)
            path = "/v1/datasets/visits/query"
            posts = [
                request_bytes("POST", path, tokens[place % len(tokens)], question(number))
                for place, number in enumerate(numbers)
            ]
            return bench.load(process, port, [b"", *posts])

        again = [1.0 + place % AGAIN for place in range(4 * count)]  # they are quick, and processors count in 10 ms
        for way in WAYS:
            came(way, again)  # the engine has seen the file by then, and what is stored below is bought
        for place in range(rounds):
            for number, way in enumerate(WAYS):
                first = 10_000.0 * (1 + place * len(WAYS) + number)
                loads.setdefault(f"charged, {way}", []).append(came(way, [first + one for one in range(count)]))
                loads.setdefault(f"stored, {way}", []).append(came(way, again))
    return loads


def milliseconds(load: Load) -> float:
    """Return what the service works for one question."""
    return 1000 * load.server / max(load.well, 1)


def report(loads: Mapping[str, Sequence[Load]]) -> None:
    """Print each round of each kind and way, and the ratios to HTTP."""
    for name, own in loads.items():
        for load in own:
            print(line(name, load, load.rate))
    kept: dict[str, float] = {}
    for kind in ("charged", "stored"):
        http = loads[f"{kind}, http"]
        for way in WAYS:
            own = loads[f"{kind}, {way}"]
            ratios = [
                milliseconds(one) / max(milliseconds(beside), 1e-9) for one, beside in zip(own, http, strict=True)
            ]
            rate = float(np.median([load.rate for load in own]))
            each = float(np.median([milliseconds(load) for load in own]))
            times = float(np.median(ratios))
            if WAYS[way] is not None:
                kept[f"{kind}, {way} / HTTP"] = times
            print(f"{kind}, {way:12} {rate:8.0f} a second {each:8.2f} ms {times:8.2f} times HTTP")
    keep("wire", kept)


def main() -> None:
    """Print what came of each kind of question by each way."""
    parser = argparse.ArgumentParser(description="Measure PostgreSQL clients beside HTTP.")
    parser.add_argument("--quick", action="store_true", help="few requests, to see that it runs")
    parser.add_argument("--rounds", type=int, default=5, help="how often each kind is measured")
    parser.add_argument("--requests", type=int, default=1_000, help="of each kind in each round")
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else Size(requests=arguments.requests)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that whoever ends this ends the service with it
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before")
    print(f"{'':26}{'a second':>9}{'p50 ms':>8}{'p99 ms':>8}{'server ms':>10}{'client ms':>10}")
    context = get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=clients, args=(theirs,), daemon=True)
    process.start()
    try:
        with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as folder:
            rounds = 1 if arguments.quick else arguments.rounds
            report(rounds_of(Bench(pipe, size), Path(folder), Setup(workers=arguments.workers), rounds))
    finally:
        pipe.send(None)
        process.join()
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
