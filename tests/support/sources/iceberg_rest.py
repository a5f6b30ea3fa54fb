"""The part of an Iceberg REST catalog that readers need, over the tables of another catalog."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from pyiceberg.catalog import Catalog

TOKEN = "kept-secret"


@contextmanager
def serving(catalog: Catalog) -> Iterator[str]:
    """Serve the tables of a catalog to whoever has the token; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path.split("/")
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self._send(401, {"error": {"message": "no", "type": "NotAuthorizedException", "code": 401}})
            if path[-1] == "config":
                return self._send(200, {"defaults": {}, "overrides": {}})
            table = catalog.load_table((path[-3], path[-1]))
            metadata = json.loads(table.metadata.model_dump_json())
            return self._send(200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}})

        def _send(self, status: int, document: object) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
