"""A server that gives one answer to every request, as no search server does."""

import gzip
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class CannedServer(ThreadingHTTPServer):
    """Answers with *status*, *body* and *headers*. *echoes*: makes a body of the path and the headers of a request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.body, self.headers = 200, b"{}", {}
        self.echoes = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def give(self, body, status=200, **headers):
        self.body, self.status, self.headers = body, status, headers

    def handle_error(self, request, client_address):
        """A client that waited long enough does not read its answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body go in one piece, for which no client waits

    def _answer(self):
        server = self.server
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = server.echoes(self.path, dict(self.headers)) if server.echoes else server.body
        self.send_response(server.status)
        own = {"X-Elastic-Product": "Elasticsearch", "Content-Type": "application/json"}
        length = {"Content-Length": str(len(body))}
        for name, value in {**own, **length, **server.headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815

    def log_message(self, *_):
        """Nothing is printed."""


@contextmanager
def canned_server():
    """Provide a running server."""
    server = CannedServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def zipped(text):
    """Return gzip data that breaks off."""
    return gzip.compress(text)[:-12]


@contextmanager
def answering(answer):
    """Provide the URL of what answers each connection with these bytes, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def close():
            while True:
                try:
                    connection, _ = other.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    connection.recv(1_000)
                    connection.sendall(answer)

        thread = threading.Thread(target=close, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{other.getsockname()[1]}"
        other.shutdown(socket.SHUT_RDWR)
        thread.join()
