"""A server that gives one answer to every request, whole or a byte now and then, as no search server does."""

import gzip
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DRIBBLE_SECONDS = 0.1


class CannedServer(ThreadingHTTPServer):
    """
    Answers with *status*, *body* and *headers*. *drips*: ``"body"`` or ``"headers"`` come byte by byte until the server
    is closed. *echoes*: makes a body of the path and the headers of a request.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.body, self.headers = 200, b"{}", {}
        self.drips, self.echoes = None, None
        self.closing = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def give(self, body, status=200, **headers):
        self.body, self.status, self.headers = body, status, headers

    def handle_error(self, request, client_address):
        """A client that waited long enough does not read its answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        server = self.server
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if server.drips == "headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            self._drip()
            return
        body = server.echoes(self.path, dict(self.headers)) if server.echoes else server.body
        self.send_response(server.status)
        own = {"X-Elastic-Product": "Elasticsearch", "Content-Type": "application/json"}
        length = {"Transfer-Encoding": "chunked"} if server.drips else {"Content-Length": str(len(body))}
        for name, value in {**own, **length, **server.headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if server.drips == "body":
            self._drip()
        elif self.command != "HEAD":
            self.wfile.write(body)

    def _drip(self):
        self.wfile.flush()
        while not self.server.closing.wait(DRIBBLE_SECONDS):
            self.wfile.write(b"1\r\n \r\n" if self.server.drips == "body" else b"x")
            self.wfile.flush()

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
        server.closing.set()
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
