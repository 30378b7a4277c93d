"""HTTP: the GraphQL endpoint and the endpoints that control the server."""

from __future__ import annotations

import json
import select
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional

from api import BadRequest, GraphQLRequest, encode, execute
from faults import Fault, FaultKind, InvalidFault, Reply, reply_with
from stage import ANSWERED, CLIENT_WENT_AWAY, RequestRecord, Stage
from timeline import Seed

MAXIMUM_BODY_SIZE = 1 << 20
MAXIMUM_FAULT_COUNT = 10_000


class HTTPError(Exception):
    """A request that gets a status instead of an answer."""

    def __init__(self, status: int, message: str, headers: Optional[dict[str, str]] = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class Server(ThreadingHTTPServer):
    """The listening socket, the current stage, and the connections at rest."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], seed: Seed, is_verbose: bool) -> None:
        self._seed = seed
        self.stage = Stage(seed)
        self.is_verbose = is_verbose
        self._resting: set[socket.socket] = set()
        self._resting_lock = threading.Lock()
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Binds without the reverse lookup of the host's name, which can block for seconds and serves no one."""
        socketserver.TCPServer.server_bind(self)

    def reset(self) -> None:
        self.stage = Stage(self._seed)

    def rest(self, connection: socket.socket) -> None:
        """Notes that the connection waits for its first request."""
        with self._resting_lock:
            self._resting.add(connection)

    @contextmanager
    def coming_to_rest(self, connection: socket.socket) -> Iterator[None]:
        """Sends a reply, after which the connection waits for its next request.

        The lock makes the two one step: a client that has its reply and goes on to arm a fault must find its
        connection among those at rest. Only whole answers are sent here; they fit the socket's buffer.
        """
        with self._resting_lock:
            yield
            self._resting.add(connection)

    def wake(self, connection: socket.socket) -> None:
        """Notes that the connection has a request, or has ended."""
        with self._resting_lock:
            self._resting.discard(connection)

    def close_resting_connections(self) -> None:
        """Ends the connections that wait for a request.

        HTTP clients send a request again by themselves, even a POST, when a connection they reused closes without
        a reply. The next request must come on a fresh connection for a dropped one to be seen as dropped.
        """
        with self._resting_lock:
            for connection in self._resting:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # The client closed it first, which is as good.

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports what is wrong with the server; a client that leaves is not."""
        if self.is_verbose or not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.rest(self.connection)

    def finish(self) -> None:
        self.server.wake(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        if self.server.is_verbose:
            super().log_message(format, *args)

    def do_GET(self) -> None:
        self.server.wake(self.connection)
        try:
            self._route(self._read_body())
        except HTTPError as error:
            self._send(_error_reply(error), error.headers)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET

    def _read_body(self) -> bytes:
        """Reads the body before anything is answered: bytes left over would pass for the next request."""
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise HTTPError(411, "A request needs a Content-Length.")
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            self.close_connection = True
            raise HTTPError(400, "Content-Length must be a number.")
        if int(text) > MAXIMUM_BODY_SIZE:
            self.close_connection = True
            raise HTTPError(413, f"A body has at most {MAXIMUM_BODY_SIZE} bytes.")
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            raise ConnectionAbortedError("The client left in the middle of its request.")
        return body

    def _route(self, body: bytes) -> None:
        routes = {
            "/graphql": ("POST", self._graphql),
            "/control/faults": ("POST", self._arm),
            "/control/reset": ("POST", self._reset),
            "/control/requests": ("GET", self._requests),
            "/control/health": ("GET", self._health),
        }
        path = self.path.partition("?")[0]
        if path not in routes:
            raise HTTPError(404, f"There is nothing at {path}.")
        method, respond = routes[path]
        if self.command != method:
            raise HTTPError(405, f"{path} takes {method} only.", {"Allow": method})
        respond(body)

    def _graphql(self, body: bytes) -> None:
        stage = self.server.stage
        requested = self._requested_fault()
        request: Optional[GraphQLRequest] = None
        refusal = Reply.whole(b"")
        try:
            request = self._decode(body)
        except HTTPError as error:
            refusal = _error_reply(error)
        record = RequestRecord(
            operation=request.label if request else None,
            variables=request.variables if request else {},
            headers=self._joined_headers(),
        )
        fault = stage.admit(record, requested)

        def answer() -> Reply:
            if request is None:
                return refusal
            stage.count_execution(record)
            return Reply.whole(execute(request, stage.timelines))

        reply: Optional[Reply]
        if fault is None:
            outcome, reply = ANSWERED, answer()
        elif fault.kind is FaultKind.SLOW and not self._client_stays(fault.value):
            outcome, reply = CLIENT_WENT_AWAY, None
        else:
            outcome, reply = fault.kind.value, reply_with(fault, answer)
        if fault:
            self.close_connection = True
        stage.settle(record, outcome)
        if reply is None:
            return
        try:
            self._send(reply)
        except ConnectionError:
            self.close_connection = True
            stage.settle(record, CLIENT_WENT_AWAY)

    def _decode(self, body: bytes) -> GraphQLRequest:
        if self.headers.get_content_type() != "application/json":
            raise HTTPError(415, "The body must be application/json.")
        try:
            return GraphQLRequest.from_body(body)
        except BadRequest as error:
            raise HTTPError(400, str(error)) from error

    def _requested_fault(self) -> Optional[Fault]:
        name = self.headers.get("X-Fault")
        if name is None:
            return None
        try:
            return Fault.from_headers(name, self.headers.get("X-Fault-Value"))
        except InvalidFault as error:
            raise HTTPError(400, str(error)) from error

    def _joined_headers(self) -> dict[str, str]:
        return {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}

    def _client_stays(self, seconds: float) -> bool:
        """Waits, and returns False at once when the client closes its end."""
        deadline = time.monotonic() + seconds
        while (remaining := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], remaining)
            if readable:
                try:
                    if not self.connection.recv(1, socket.MSG_PEEK):
                        return False
                except ConnectionError:
                    return False
                # The client's next request is here already. It hides the end of the stream and keeps the socket
                # readable, so all that is left is not to spin.
                time.sleep(min(remaining, 0.05))
        return True

    def _arm(self, body: bytes) -> None:
        try:
            arguments = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise HTTPError(400, f"The body is not JSON: {error}") from error
        if not isinstance(arguments, dict):
            raise HTTPError(400, "The body must be a JSON object.")
        name = arguments.pop("fault", None)
        count = arguments.pop("count", 1)
        if type(count) is not int or not 1 <= count <= MAXIMUM_FAULT_COUNT:
            raise HTTPError(400, f'"count" must be a whole number from 1 to {MAXIMUM_FAULT_COUNT}.')
        try:
            fault = Fault.from_arguments(name, arguments)
        except InvalidFault as error:
            raise HTTPError(400, str(error)) from error
        self.server.stage.arm(fault, count)
        self.server.close_resting_connections()
        self._send_control({"armed": fault.kind.value, "count": count})

    def _reset(self, _body: bytes) -> None:
        self.server.reset()
        self._send_control({"status": "ok"})

    def _requests(self, _body: bytes) -> None:
        self._send_control(self.server.stage.requests())

    def _health(self, _body: bytes) -> None:
        self._send_control({"status": "ok"})

    def _send_control(self, value: object) -> None:
        """Replies and closes, so that no request to /graphql reuses a connection made for control."""
        self.close_connection = True
        self._send(Reply.whole(encode(value)))

    def _send(self, reply: Reply, headers: Optional[dict[str, str]] = None) -> None:
        if self.close_connection:
            self._write(reply, {"Connection": "close", **(headers or {})})
        else:
            with self.server.coming_to_rest(self.connection):
                self._write(reply, headers or {})

    def _write(self, reply: Reply, headers: dict[str, str]) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(reply.length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            for chunk in reply.chunks:
                self.wfile.write(chunk)


def _error_reply(error: HTTPError) -> Reply:
    return Reply.whole(encode({"errors": [{"message": str(error)}]}), error.status)
