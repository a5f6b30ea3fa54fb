"""The console: pages in a browser, for analysts, curators and auditors, beside the requests of programs.

Theory of operation
-------------------
The console is a client of the service that happens to live in its process. Whatever a page shows of data sets, people,
budgets and answers, and whatever it changes, it asks for by the service's own requests (`inside`), on behalf of who is
signed in: the same routes, with the same rights, limits, deadlines, refusals and lines of the audit log. So it shows
nobody anything that a program with their token would not be told, and no page has a rule of its own about who may see
what. No page imports policies, people, ledgers or sessions on data: a test walks their imports.

What the console adds is how a browser is known. `browser_sessions` keeps a random secret in a cookie for a token that
is never given to anybody: so signing out, a new password, a closed person and a revoked token end it like any other.
`app` lets each request in: it finds the session, refuses forms that were not sent from a page of this service, and
turns errors into pages. A *page* is a folder: what it does (`__init__`) and how it looks (`page.html`).

All works without scripts; `static/console.js` makes asking quicker. The content security policy lets in this process's
own files alone, and neither inline scripts nor styles.
"""
