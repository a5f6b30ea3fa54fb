"""The pages of the service: what it is and how to ask, and its description made from the OpenAPI document.

Plain HTML with one style sheet from this process: no script, and nothing from another host.
"""

from html import escape
from typing import Final

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from lapwing import __version__
from lapwing.guarantee.pages import PRINT
from lapwing.server.described import described
from lapwing.server.service import Service

STYLE: Final = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: #f3f3f0; padding: 0.8rem; overflow-x: auto; }
h2 { margin-top: 2rem; } table { border-collapse: collapse; } td, th { padding: 0.2rem 0.8rem 0.2rem 0; }
td, th { text-align: left; vertical-align: top; } code { white-space: pre-wrap; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } pre { background: #262626; } }
a { color: inherit; }
"""
QUESTION: Final = "SELECT COUNT(*) AS n FROM visits"

HOME: Final = """<h1>Lapwing</h1>
<p>This service answers SQL questions about sensitive tables with noisy numbers and error bars, so that no answer
depends noticeably on any one person. Each answer has a price, which is charged to one budget for the whole data set,
whoever asks. The same question again is free.</p>
<p>You need a token. With a name and a password:</p>
<pre>curl {base}/v1/login -H 'Content-Type: application/json' \\
  -d '{{"name": "…", "password": "…"}}'</pre>
<p>or ask the curator for one. It is sent with every request, and nobody can read it back: keep it as you keep a
password. Below, <code>visits</code> stands for a table that you may ask about.</p>
<h2>From Python</h2>
<pre>import lapwing as lw

session = lw.connect("{base}", token="…")
# with dataset="…" if you may see several
question = "{question}"
# the error, before it is bought: free
print(session.explain(question, epsilon=0.1).columns[0].half_width)
print(session.sql(question, epsilon=0.1).rows())
print(session.budget().share_spent)</pre>
<h2>With curl</h2>
<pre>curl {base}/v1/datasets -H "Authorization: Bearer $LAPWING_TOKEN"
curl {base}/v1/datasets/NAME/query \\
  -H "Authorization: Bearer $LAPWING_TOKEN" \\
  -H 'Content-Type: application/json' -H 'Idempotency-Key: first-question' \\
  -d '{{"sql": "{question}", "epsilon": 0.1}}'</pre>
<h2>On the command line</h2>
<pre>export LAPWING_TOKEN=…
export LAPWING_SERVER={base}
lapwing explain "{question}" --epsilon 0.1   # free
lapwing query "{question}" --epsilon 0.1
lapwing budget</pre>
<p><a href="/docs">All requests</a>, and the same <a href="/openapi.json">as OpenAPI</a>. Lapwing {version}.</p>
"""


def routes(app: FastAPI, service: Service, address: str) -> APIRouter:
    """Return the routes that take no token."""
    router = APIRouter()
    home = _page("Lapwing", HOME.format(base=escape(address), question=QUESTION, version=__version__))

    @router.get("/", response_class=HTMLResponse, include_in_schema=False)
    def start() -> HTMLResponse:
        return HTMLResponse(home)

    @router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    def requests() -> HTMLResponse:
        return HTMLResponse(_page("Lapwing: all requests", "\n".join(described(app.openapi(), address))))

    @router.get("/style.css", include_in_schema=False)
    def style() -> Response:
        return Response(STYLE + PRINT, media_type="text/css")

    @router.get("/healthz", response_class=PlainTextResponse, include_in_schema=True, tags=["open"])
    def healthy() -> PlainTextResponse:
        """Say `ok`, if the process answers and can read its store. Takes no token."""
        with service.store.reading() as connection:
            connection.execute("SELECT 1")
        return PlainTextResponse("ok\n")

    return router


def _page(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f'<!doctype html><html lang="en"><head>{head}<link rel="stylesheet" href="/style.css"></head>{body}</html>'
