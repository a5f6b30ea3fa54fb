"""Options of commands that listen for requests: certificates, and how many requests an address may send."""

from pathlib import Path
from typing import Annotated

import typer

from lapwing.cli.options import quantity

TlsCertificate = Annotated[Path | None, typer.Option(metavar="FILE", help="A certificate with its chain, in PEM form.")]
TlsKey = Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, in PEM form.")]
RequestRate = Annotated[
    float,
    typer.Option(
        metavar="N",
        parser=quantity("--rate", "0"),
        help="Requests per second from one address; 0 for no limit.",
    ),
]
