"""`lapwing secure`: answers are split between servers, so that none of them sees one; each adds its own noise."""

from typing import Final

import typer

from lapwing.cli.options import examples
from lapwing.cli.secure import organising, sending, serving

FIRST: Final = examples("lapwing secure join north --address north.example.org:8471", "lapwing secure send task.json")
INIT: Final = examples(
    'lapwing secure init --question "How do you come?" --value walk --value bus --epsilon 1',
    "  --server north/server.crt --server south/server.crt --server west/server.crt",
)
RELAY: Final = examples("lapwing secure relay task.json --listen 0.0.0.0:8480 --tls-cert cert.pem --tls-key key.pem")

app = typer.Typer(help="Secure sums: no single server sees an answer.", epilog=FIRST, rich_markup_mode=None)


@app.callback()
def secure() -> None:
    """Secure sums: no single server sees an answer."""


app.command(
    epilog=examples("lapwing secure join north --address north.example.org:8471"), short_help="Make a server's key."
)(serving.join)
app.command(epilog=INIT, short_help="Write a task: the question and its servers.")(organising.init)
app.command(epilog=examples("lapwing secure serve north task.json"), short_help="Run one of the servers.")(
    serving.serve
)
app.command(
    epilog=examples("lapwing secure send task.json", "echo walk | lapwing secure send task.json"),
    short_help="Send a client's answer to a task.",
)(sending.send)
app.command(epilog=RELAY, short_help="Pass sealed parts on to the servers.")(serving.relay)
app.command(
    epilog=examples("lapwing secure close task.json"), short_help="Close a task to answers and release its totals."
)(organising.close)
app.command(
    "next",
    epilog=examples("lapwing secure next task.json --output level2.json"),
    short_help="Write the task of the next level of words.",
)(organising.next_level)
app.command(epilog=examples("lapwing secure result task.json"), short_help="Show the result of a closed task.")(
    organising.result
)
