"""The page of all requests, made from the OpenAPI document: each with all that it takes, gives and may end with.

Plain HTML without a script. What is shown is what the document says, so page and document cannot disagree.
"""

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

Operation = Mapping[str, Any]
SAMPLES: Final = {
    "sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1, "delta": 1e-6, "name": "alice", "role": "analyst",
    "password": "…", "new_password": "…", "scopes": ["read", "ask"], "division": "share", "stopped": True,
    "questions": [{"sql": "SELECT COUNT(*) AS n FROM visits"}], "catalog": "…", "was": {"epsilon": 3, "delta": 1e-6},
    "share": 0.2, "closed": True,
}  # fmt: skip
LARGER: Final = {"epsilon": 4}
"""Than that which was."""
SHOWN: Final = ("share",)
"""Shown in examples though they may be left out."""
KEY: Final = "Idempotency-Key"


def described(document: Mapping[str, Any], base: str) -> Iterator[str]:
    """Yield the parts of the page.

    Args: base: the address of the service.
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
        (found["name"], found["in"], _required(found), _type(found.get("schema", {})), found.get("description", ""))
        for found in operation.get("parameters", ())
    )
    yield _rows(rows, "parameter", "in", "", "type", "")


def _required(parameter: Mapping[str, Any]) -> str:
    return "required" if parameter.get("required") else ""


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
    found: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


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
    lines = [f"curl {'' if method == 'GET' else f'-X {method} '}{base}{re.sub('{([^}]*)}', _placeholder, path)}"]
    if operation.get("security"):
        lines.append('-H "Authorization: Bearer $LAPWING_TOKEN"')
    if any(parameter["name"] == KEY for parameter in operation.get("parameters", ())):
        lines.append(f"-H '{KEY}: first-try'")
    schema = _resolved(_schema_of(operation.get("requestBody", {})), document)
    if schema:
        wanted = [name for name in schema["properties"] if name in (*schema.get("required", ()), *SHOWN)]
        wanted += ["epsilon"] if "sql" in wanted else []
        samples = SAMPLES | LARGER if "was" in wanted else SAMPLES
        body = json.dumps({name: samples.get(name, "…") for name in wanted}, ensure_ascii=False)
        lines += ["-H 'Content-Type: application/json'", f"-d '{body}'"]
    return " \\\n  ".join(lines)


def _placeholder(found: re.Match[str]) -> str:
    return found[1].upper()
