"""An issue tracker that can inject faults: run `python3 tracker.py JOURNAL`, and use the URL that it prints.

It needs Python 3.9 or newer. It ends when its standard input is closed. The journal keeps the applied changes, with
their keys, across restarts; the tokens of the users become invalid. `JOURNAL.requests` has a line for each request for
a change, in the order in which they were handled: the time, the key, the status, the fault, the client's port, and the
change.

The token `admin` is always valid, and requests with it have no faults:
- `POST /admin/faults` takes `rate` and `seed`, or the name of a fault to `arm` for one request.
- `POST /admin/sign-out` makes the tokens of all users invalid.
- `GET /admin/changes` returns the applied changes in order.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Optional

from faults import Fault, Faults
from issues import Issues, Refused, Reply

ADMIN = "admin"


class Journal:
    """The file of the applied changes, one a line."""

    def __init__(self, path: str, issues: Issues) -> None:
        """Applies the changes of the file. A last line that is incomplete was never replied to, and is removed."""
        self._file = open(path, "a+b", buffering=0)
        self._requests = open(path + ".requests", "ab", buffering=0)
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        self._file.truncate(sum(len(line) + 1 for line in lines[:-1]))
        for line in lines[:-1]:
            issues.apply(json.loads(line))

    def append(self, change: dict) -> None:
        self._file.write(json.dumps(change).encode() + b"\n")

    def log(self, words: list) -> None:
        """Adds a line to the requests, which explain the order of the changes."""
        self._requests.write(" ".join(map(str, words)).encode() + b"\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, journal: str, token_lifetime: float) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        """Protects all that follows."""
        self.issues, self.faults = Issues(), Faults()
        self.journal = Journal(journal, self.issues)
        self.token_lifetime = token_lifetime
        self.tokens: dict[str, float] = {}
        """The time at which each token expires."""

    def handle_error(self, request, client_address) -> None:
        """Reports an error of a handler, unless it is that of a client that was killed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The head and the body of a reply are one packet.
    wbufsize = -1
    disable_nagle_algorithm = True

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        with self.server.lock:
            fault = None if token == ADMIN else self.server.faults.draw()
            delay = self.server.faults.delay() if fault is Fault.DELAY else 0
            is_handled = fault not in (Fault.LOST_REQUEST, Fault.CRASH, Fault.BUSY)
            reply = self._handle(url.path, query, token, json.loads(body or "{}")) if is_handled else None
            if key := self.headers.get("Idempotency-Key"):
                outcome = [reply.status if reply else "-", fault.name if fault else "-"]
                words = [f"{time.time():.3f}", key, *outcome, self.client_address[1], self.command, url.path]
                self.server.journal.log(words + [body.decode()])
            retry_after = self.server.faults.retry_after()
        if fault in (Fault.LOST_REQUEST, Fault.LOST_REPLY):
            return self._hang_up()
        if fault is Fault.BUSY:
            return self._send(Reply(429), {"Retry-After": str(retry_after)})
        if fault in (Fault.FAILURE, Fault.CRASH):
            return self._send(Reply(500))
        time.sleep(delay)
        self._send(reply, cut=fault is Fault.CUT_REPLY)

    do_GET = do_POST = do_PATCH = do_DELETE = _respond

    def _handle(self, path: str, query: dict, token: str, body: dict) -> Reply:
        server = self.server
        if token == ADMIN and path.startswith("/admin/"):
            return self._administer(path, body)
        if path == "/sessions":
            new = secrets.token_hex()
            server.tokens[new] = time.monotonic() + server.token_lifetime
            return Reply(201, {"token": new})
        if token != ADMIN and server.tokens.get(token, 0) <= time.monotonic():
            return Reply(401)
        names = path.strip("/").split("/")
        try:
            if self.command == "GET" and names[0] == "projects":
                return server.issues.page(names[1], query.get("after"), int(query.get("limit", 20)))
            if self.command == "GET":
                reply = server.issues.issue(names[1])
                return Reply(304, None, reply.etag) if self.headers.get("If-None-Match") == reply.etag else reply
            return self._change(path, body)
        except Refused as refused:
            return refused.reply

    def _change(self, path: str, body: dict) -> Reply:
        key = self.headers.get("Idempotency-Key")
        if not key:
            raise Refused(400, "a change needs an Idempotency-Key")
        change = {
            "key": key, "method": self.command, "path": path, "ifMatch": self.headers.get("If-Match"), "body": body,
        }
        count = len(self.server.issues.applied)
        reply = self.server.issues.apply(change)
        if len(self.server.issues.applied) > count:
            self.server.journal.append(change)
        return reply

    def _administer(self, path: str, body: dict) -> Reply:
        server = self.server
        if path == "/admin/changes":
            return Reply(200, {"changes": server.issues.applied})
        if path == "/admin/sign-out":
            server.tokens.clear()
        elif "arm" in body:
            server.faults.arm(body["arm"])
        else:
            server.faults.set(body["rate"], body["seed"])
        return Reply(204)

    def _send(self, reply: Reply, headers: Optional[dict] = None, cut: bool = False) -> None:
        body = b"" if reply.body is None else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if reply.etag:
            self.send_header("ETag", reply.etag)
        if reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if cut:
            self.wfile.write(body[:len(body) // 2])
            return self._hang_up()
        self.wfile.write(body)

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *arguments) -> None:
        """Logs nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description="An issue tracker that can inject faults.")
    parser.add_argument("journal", help="the file of the applied changes")
    parser.add_argument("--port", type=int, default=0, help="the port; the default, 0, chooses a free one")
    parser.add_argument("--token-lifetime", type=float, default=3600, metavar="SECONDS")
    options = parser.parse_args()
    server = Server(options.port, options.journal, options.token_lifetime)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.buffer.read()
    # Threads that wait for their clients would delay a normal exit.
    os._exit(0)


if __name__ == "__main__":
    main()
