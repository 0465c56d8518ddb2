"""
A proxy before a real server that sends a signal to a process when a certain request has been answered: an interrupt
at a known moment, without waiting.
"""

import os
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OWN = {"connection", "transfer-encoding", "content-length", "content-encoding", "host", "accept-encoding"}


class SignallingProxy(ThreadingHTTPServer):
    """
    Forwards every request; after the *number*-th, from 1, whose path has *word*, the process *pid* gets *signal*.
    Set *pid*, and then *began*, before that process can reach the request. *seen*: how many such requests came.
    """

    daemon_threads = True

    def __init__(self, target, word, number, signal):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.word, self.number, self.signal = target, word, number, signal
        self.pid, self.seen, self.lock, self.began = None, 0, threading.Lock(), threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def after(self, path):
        """Send the signal if it is time."""
        with self.lock:
            self.seen += self.word in path
            is_now = self.word in path and self.seen == self.number
        if is_now and self.began.wait(60):
            os.kill(self.pid, self.signal)

    def handle_error(self, request, client_address):
        """A process that ended does not read its answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body go in one piece, for which no client waits

    def _forward(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)) or None
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        request = urllib.request.Request(self.server.target + self.path, body, headers, method=self.command)  # noqa: S310
        try:
            answer = urllib.request.urlopen(request, timeout=120)  # noqa: S310
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            content = answer.read()
        self.server.after(self.path)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in _OWN:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _forward  # noqa: N815

    def log_message(self, *_):
        """Nothing is printed."""


@contextmanager
def signalling_proxy(target, word, number, signal):
    """Provide a running proxy before *target*."""
    proxy = SignallingProxy(target, word, number, signal)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
