"""Servers that sources are read from: Flight SQL, and an object store."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from tests.support.sources.flight_sql import Server, serving

KEYS = {"access_key": "reader", "secret_key": "kept-secret"}


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty file of credentials, which nobody else may read."""
    file = tmp_path / "sources.toml"
    file.touch(mode=0o600)
    monkeypatch.setenv("LAPWING_SOURCES", str(file))
    monkeypatch.setenv("KEPT", "kept-secret")
    return file


@pytest.fixture
def flight_server(secrets: Path) -> Iterator[Server]:
    """A server whose password is in the file of credentials, by the name of a variable."""
    with serving({}) as server:
        secrets.write_text(f'["{server.address}"]\nusername = "reader"\npassword = {{ env = "KEPT" }}\n')
        yield server


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An object store with a bucket."""

    system: fs.FileSystem
    address: str
    delta: Mapping[str, str]


@pytest.fixture(scope="session")
def store_address() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def store(store_address: str, secrets: Path) -> Iterator[Store]:
    """An empty bucket, whose keys are in the file of credentials."""
    options: dict[str, Any] = {**KEYS, "endpoint_override": store_address, "region": "eu-central-1"}
    system = fs.S3FileSystem(**options, allow_bucket_creation=True, allow_bucket_deletion=True)
    system.create_dir("bucket")
    delta = {
        "AWS_ACCESS_KEY_ID": KEYS["access_key"],
        "AWS_SECRET_ACCESS_KEY": KEYS["secret_key"],
        "AWS_ENDPOINT_URL": store_address,
        "AWS_REGION": "eu-central-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    }
    sections = {"parquet:s3://bucket/visits": options, "delta:s3://bucket/lake": delta}
    sections["parquet:s3://bucket/visits/**/plan=*/*.parquet"] = options
    lines = [
        f'["{place}"]\n' + "".join(f'{k} = "{v}"\n' for k, v in section.items()) for place, section in sections.items()
    ]
    secrets.write_text("\n".join(lines))
    yield Store(system=system, address=store_address, delta=delta)
    system.delete_dir("bucket")
