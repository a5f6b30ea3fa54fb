"""The pages of the service: what it is and how to ask; and all requests, as the OpenAPI document describes them.

Plain HTML with one style sheet from this process: no script, and nothing from another host. What is shown of a request
is what the document says, so page and document cannot disagree.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, Final

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from lapwing import __version__
from lapwing.errors import Fault
from lapwing.guarantee.rendering import PRINT
from lapwing.machine.build import build_id
from lapwing.server import problems
from lapwing.server.listing import require_known_parameters
from lapwing.server.routing import new_router
from lapwing.server.service import Service

Operation = Mapping[str, Any]
SAMPLES: Final = {
    "sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1, "delta": 1e-6, "name": "alice", "role": "analyst",
    "password": "…", "new_password": "…", "scopes": ["read", "ask"], "division": "share", "stopped": True,
    "questions": [{"sql": "SELECT COUNT(*) AS n FROM visits"}], "catalog": "…", "was": {"epsilon": 3, "delta": 1e-6},
    "share": 0.2, "closed": True, "shared": True, "title": "by plan",
    "question": {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1},
}  # fmt: skip
LARGER: Final = {"epsilon": 4}
"""Than that which was."""
OPTIONAL: Final = ("share", "scopes", "question")
"""Shown in examples though they may be left out."""
KEY: Final = "Idempotency-Key"
STYLE: Final = """/* The colours are those of the console. */
:root {
  color-scheme: light dark;
  --ground: #f7f8f6; --sheet: #fff; --line: #d5dbd7; --ink: #17211d; --accent: #0b6654;
}
@media screen and (prefers-color-scheme: dark) {
  :root { --ground: #111614; --sheet: #19201d; --line: #34403a; --ink: #e6ebe8; --accent: #62ccb2; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--ground); color: var(--ink); overflow-wrap: break-word; }
a { color: var(--accent); text-underline-offset: .15em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
h1, h2, h3 { line-height: 1.25; } h1 { font-size: 1.6rem; } h2 { font-size: 1.125rem; margin-top: 2rem; }
pre { background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; padding: 0.8rem; overflow-x: auto; }
table { border-collapse: collapse; } td, th { padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top; }
code { white-space: pre-wrap; }
"""
QUESTION: Final = "SELECT COUNT(*) AS n FROM visits"

HOME: Final = """<h1>Lapwing</h1>
<p>This service answers SQL queries about sensitive tables with noisy numbers and error bars, so that no result
depends noticeably on any one person. Each result has a cost. All costs are charged to one budget of the data set. The
same query again is free.</p>
<p>To query in a browser, <a href="/console">open the console</a>.</p>
<p>Programs need a token. With a name and a password:</p>
<pre>curl {base}/v1/login -H 'Content-Type: application/json' \\
  -d '{{"name": "…", "password": "…"}}'</pre>
<p>or ask the curator for one. It is sent with every request, and nobody can read it back: keep it as you keep a
password. Below, <code>visits</code> stands for a table that you may query.</p>
<h2>From Python</h2>
<pre>import lapwing as lw

session = lw.connect("{base}", token="…")
# with dataset="…" if you may see several
question = "{question}"
# the error, before it is bought: free
print(session.explain(question, epsilon=0.1).columns[0].half_width)
print(session.sql(question, epsilon=0.1).rows())
print(session.budget().share_spent)</pre>
<h2>With psql and other clients of PostgreSQL</h2>
<p>If the service has a port for them (<code>--postgres</code>), the token is the password:</p>
<pre>PGPASSWORD=$LAPWING_TOKEN psql "host=HOST port=PORT dbname=NAME user=YOU"
SET lapwing.epsilon = 0.1;
{question};</pre>
<h2>With curl</h2>
<pre>curl {base}/v1/datasets -H "Authorization: Bearer $LAPWING_TOKEN"
curl {base}/v1/datasets/NAME/query \\
  -H "Authorization: Bearer $LAPWING_TOKEN" \\
  -H 'Content-Type: application/json' -H 'Idempotency-Key: first-question' \\
  -d '{{"sql": "{question}", "epsilon": 0.1}}'</pre>
<h2>On the command line</h2>
<pre>export LAPWING_SERVER={base}
export LAPWING_TOKEN=$(lapwing login NAME)
lapwing explain "{question}" --epsilon 0.1   # free
lapwing query "{question}" --epsilon 0.1
lapwing budget</pre>
<p><a href="/docs">All requests</a>, and the same <a href="/openapi.json">as OpenAPI</a>. Lapwing {version}.</p>
"""


def routes(description: Callable[[], Mapping[str, Any]], service: Service, address: str) -> APIRouter:
    """Return the routes that take no token.

    Args:
        description: Returns that of all requests, as OpenAPI.
        address: At which callers find the service.
    """
    router = new_router(dependencies=[Depends(require_known_parameters)])
    home = _page("Lapwing", HOME.format(base=escape(address), question=QUESTION, version=__version__))

    @router.get("/", response_class=HTMLResponse, include_in_schema=False)
    def start() -> HTMLResponse:
        return HTMLResponse(home)

    @router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    def requests() -> HTMLResponse:
        return HTMLResponse(_page("Lapwing: all requests", "\n".join(request_reference(description(), address))))

    @router.get("/openapi.json", include_in_schema=False)
    def described() -> JSONResponse:
        return JSONResponse(description())

    @router.get("/style.css", include_in_schema=False)
    def style() -> Response:
        return Response(STYLE + PRINT, media_type="text/css")

    @router.get("/healthz", response_class=PlainTextResponse, include_in_schema=True, tags=["open"])
    def healthy() -> PlainTextResponse:
        """Say `ok`, and which build runs, if the process answers and can read its store. Takes no token."""
        with service.store.reading() as connection:
            connection.execute("SELECT 1")
        return PlainTextResponse(f"ok\nlapwing {__version__} build {build_id()}\n")

    @router.get("/readyz", response_class=PlainTextResponse, tags=["open"])
    def ready() -> Response:
        """Say `ready`, if store and ledgers can be read and written, else 503; and how many data sets are stopped."""
        if service.readiness.is_ready():
            standings = service.readiness.standings().values()
            stopped = sum(standing.reason is not None for standing in standings)
            more = f"stopped: {stopped} of {len(standings)} data sets\n" if stopped else ""
            return PlainTextResponse(f"ready\n{more}")
        detail = (
            "The service cannot charge new queries at present. It cannot read or write its store or a ledger, or the "
            "process that runs queries is starting. Its log says which."
        )
        return problems.response(problems.problem(Fault.code, 503, detail))

    return router


def _page(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f'<!doctype html><html lang="en"><head>{head}<link rel="stylesheet" href="/style.css"></head>{body}</html>'


def request_reference(document: Mapping[str, Any], base: str) -> Iterator[str]:
    """Yield the parts of the page.

    Args:
        base: The address of the service.
    """
    yield f"<h1>{escape(document['info']['title'])}</h1><p>{_coded(document['info']['description'])}</p>"
    operations = [(m.upper(), path, one) for path, methods in document["paths"].items() for m, one in methods.items()]
    yield "<table>"
    for method, path, operation in operations:
        link = f'<a href="#{_anchor(method, path)}"><code>{method} {escape(path)}</code></a>'
        yield f"<tr><td>{link}</td><td>{_coded(_summary(operation))}</td></tr>"
    yield "</table>"
    for method, path, operation in operations:
        yield from _request(method, path, operation, document, base)


def _request(method: str, path: str, operation: Operation, document: Mapping[str, Any], base: str) -> Iterator[str]:
    yield f'<h2 id="{_anchor(method, path)}"><code>{method} {escape(path)}</code></h2>'
    yield f"<p>{_coded(operation.get('description') or _summary(operation))}</p>"
    yield from _parameters(operation)
    yield from _body(operation, document)
    yield from _responses(operation, document)
    codes = ", ".join(f"<code>{escape(code)}</code>" for code in operation.get("x-codes", ()))
    yield f"<p>Errors: {codes}.</p>"
    yield f"<pre>{escape(_curl(method, path, operation, document, base))}</pre>"


def _anchor(method: str, path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{method}{path}".lower()).strip("-")


def _summary(operation: Operation) -> str:
    """Return the first sentence of what a request does."""
    text: str = operation.get("description") or operation.get("summary", "")
    return text.partition("\n")[0]


def _coded(text: str) -> str:
    """Return a text as HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _rows(rows: Iterator[tuple[str, ...]], *names: str) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(
        f"<tr><td><code>{escape(name)}</code></td>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>" if body else ""


def _parameters(operation: Operation) -> Iterator[str]:
    rows = (
        (
            one["name"],
            one["in"],
            "required" if one.get("required") else "",
            _type(one["schema"]),
            one.get("description", ""),
        )
        for one in operation.get("parameters", ())
    )
    yield _rows(rows, "parameter", "in", "", "type", "")


def _body(operation: Operation, document: Mapping[str, Any]) -> Iterator[str]:
    schema = _resolved(_schema_of(operation.get("requestBody", {})), document)
    if not schema:
        return
    yield f"<p>Body, as JSON: {_coded(schema.get('description', ''))}</p>"
    yield from _fields(schema, document)


def _responses(operation: Operation, document: Mapping[str, Any]) -> Iterator[str]:
    for status, response in operation["responses"].items():
        if status.startswith(("4", "5")):
            continue
        kinds = ", ".join(f"<code>{escape(kind)}</code>" for kind in response.get("content", ())) or "nothing"
        schema = _schema_of(response)
        of = _resolved(schema.get("items", schema), document)
        about = of.get("description", "") if of.get("properties") else response.get("description", "")
        listed = "A list. " if schema.get("type") == "array" else ""
        yield f"<p>Answers {escape(status)}, with {kinds}: {listed}{_coded(about)}</p>"
        yield from _fields(of, document)


def _fields(schema: Mapping[str, Any], document: Mapping[str, Any], inside: str = "") -> Iterator[str]:
    """Yield the table of a schema's fields, and after it those of the documents that they hold."""
    required, fields = schema.get("required", ()), schema.get("properties", {})
    rows = (
        (f"{inside}{name}", "required" if name in required else "", _type(field), field.get("description", ""))
        for name, field in fields.items()
    )
    yield _rows(rows, "field", "", "type", "")
    for name, field in fields.items():
        for held in [field, field.get("items", {}), *field.get("anyOf", ())]:
            if "$ref" in held:
                yield from _fields(_resolved(held, document), document, f"{inside}{name}.")


def _schema_of(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = holder.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    resolved: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return resolved


def _type(field: Mapping[str, Any]) -> str:
    """Return the type of a field in words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(kind) for kind in field["anyOf"]))
    if "enum" in field or "const" in field:
        return " or ".join(f'"{value}"' for value in field.get("enum", [field.get("const")]))
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    kinds = field.get("type", "anything")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(f"list of {_type(field.get('items', {}))}" if kind == "array" else kind for kind in kinds)


def _curl(method: str, path: str, operation: Operation, document: Mapping[str, Any], base: str) -> str:
    """Return a command that sends the request."""
    address = base + re.sub("{([^}]*)}", lambda name: name[1].upper(), path)
    lines = [f"curl {'' if method == 'GET' else f'-X {method} '}{address}"]
    if operation.get("security"):
        lines.append('-H "Authorization: Bearer $LAPWING_TOKEN"')
    if any(parameter["name"] == KEY for parameter in operation.get("parameters", ())):
        lines.append(f"-H '{KEY}: first-try'")
    schema = _resolved(_schema_of(operation.get("requestBody", {})), document)
    if schema:
        names = [name for name in schema["properties"] if name in (*schema.get("required", ()), *OPTIONAL)]
        names += ["epsilon"] if "sql" in names else []
        samples = SAMPLES | LARGER if "was" in names else SAMPLES
        body = json.dumps({name: samples.get(name, "…") for name in names}, ensure_ascii=False)
        lines += ["-H 'Content-Type: application/json'", f"-d '{body}'"]
    return " \\\n  ".join(lines)
