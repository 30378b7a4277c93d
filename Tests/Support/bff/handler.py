"""The HTTP server, its connections, and the GraphQL endpoint."""

from __future__ import annotations

import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, Optional

from graphql import GraphQLSchema

import control
from api import BadRequest, GraphQLRequest, NotJSON
from control import HTTPError
from faults import Fault, FaultKind, InvalidFault, Reply, reply_with
from gates import Gates
from journal import Journal
from listener import Listener
from media import REASONS, MediaType, encode, negotiated
from stage import ANSWERED, CLIENT_WENT_AWAY, REFUSED, RequestRecord, ReusedKey, Stage
from timeline import Seed

MAXIMUM_BODY_SIZE = 1 << 20
"""In bytes."""

MAXIMUM_KEY_LENGTH = 255
"""In characters."""


class Server:
    """The listening socket, the current stage, and the idle connections."""

    def __init__(
        self,
        address: tuple[str, int],
        schema: GraphQLSchema,
        seed: Seed,
        journal: Journal,
        media_type: MediaType,
        is_verbose: bool,
    ) -> None:
        """Binds the port, and refuses connections until `open` is called; raises `OSError`.

        Replies have the media type if the client accepts it, and are plain JSON otherwise.
        """
        self._schema = schema
        self._seed = seed
        self._journal = journal
        self.stage = Stage(schema, seed, journal)
        self.media_type = media_type
        self.is_verbose = is_verbose
        self._control_lock = threading.Lock()
        self._listener = Listener(address, self._accept)
        self._control_listener: Optional[Listener] = None
        self._idle: set[socket.socket] = set()
        self._idle_lock = threading.Lock()

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.address

    def open(self) -> None:
        """Accepts connections from now on; raises `OSError`."""
        self._listener.open()

    def reset(self) -> None:
        with self._control_lock:
            self.stage.retire()
            self.stage = Stage(self._schema, self._seed, self._journal)

    def refuse(self) -> str:
        """Refuses connections until `accept` is called; returns another address for control requests."""
        with self._control_lock:
            if self._control_listener is None:
                control = Listener((self.address[0], 0), self._accept)
                control.open()
                self._control_listener = control
                self._listener.close(keeps_port=True)
                self.close_idle_connections()
            host, port = self._control_listener.address
            return f"http://{host}:{port}"

    def accept(self) -> None:
        """Accepts connections again."""
        with self._control_lock:
            if self._control_listener:
                self._listener.open()
                self._control_listener.close(keeps_port=False)
                self._control_listener = None

    def _accept(self, connection: socket.socket, address: tuple[str, int]) -> None:
        threading.Thread(target=self._serve, args=(connection, address), daemon=True).start()

    def _serve(self, connection: socket.socket, address: tuple[str, int]) -> None:
        with connection:
            try:
                Handler(connection, address, self)  # type: ignore[arg-type]
                connection.shutdown(socket.SHUT_WR)
            except OSError as error:
                # A client that closes its connection isn't an error of the server.
                if self.is_verbose:
                    print(f"{address[0]}:{address[1]}: {error}", file=sys.stderr)

    def add_idle(self, connection: socket.socket) -> None:
        """Records that a connection waits for its first request."""
        with self._idle_lock:
            self._idle.add(connection)

    @contextmanager
    def becoming_idle(self, connection: socket.socket) -> Iterator[None]:
        """Runs a block that sends a reply, and records that the connection waits for its next request.

        The lock makes both a single step: if the client arms a fault after it has received the reply, its connection
        must already be recorded as idle. The block must be short, because it holds the lock: it sends only complete
        answers, which fit into the socket's buffer.
        """
        with self._idle_lock:
            yield
            self._idle.add(connection)

    def wake(self, connection: socket.socket) -> None:
        """Records that a connection has received a request, or has ended."""
        with self._idle_lock:
            self._idle.discard(connection)

    def close_idle_connections(self) -> None:
        """Closes the connections that wait for a request.

        If a reused connection closes without a reply, HTTP clients resend the request on their own, even a POST. The
        next request must therefore use a new connection, so that the client sees a drop.
        """
        with self._idle_lock:
            for connection in self._idle:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # The client has already closed it.


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server  # type: ignore[assignment]

    def setup(self) -> None:
        super().setup()
        self.server.add_idle(self.connection)

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
        """Reads the complete body before any reply, because remaining bytes would be parsed as the next request."""
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
            raise ConnectionAbortedError("The client closed the connection during its request.")
        return body

    def _route(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        if path == "/graphql":
            self._check_method(path, ["POST"])
            self._graphql(body)
        elif path in control.ROUTES:
            methods = control.ROUTES[path]
            self._check_method(path, list(methods))
            self._send_control(methods[self.command](self.server, query, body))
        else:
            raise HTTPError(404, f"There is nothing at {path}.")

    def _check_method(self, path: str, methods: list[str]) -> None:
        if self.command not in methods:
            raise HTTPError(405, f"{path} takes {' and '.join(methods)} only.", {"Allow": ", ".join(methods)})

    def _graphql(self, body: bytes) -> None:
        stage = self.server.stage
        requested = self._requested_fault()
        media_type = self._media_type()
        request: Optional[GraphQLRequest] = None
        refusal = Reply.whole(b"")
        try:
            self._check_key()
            request = self._decode(body, media_type)
        except HTTPError as error:
            refusal = _error_reply(error, media_type)
        record = RequestRecord(
            operation=request.label if request else None,
            variables=request.variables if request else {},
            headers=self._joined_headers(),
        )
        fault = stage.admit(record, requested)

        def answer() -> Reply:
            if request is None:
                stage.note(record, REFUSED)
                return refusal
            try:
                return stage.answer(record, request, media_type)
            except ReusedKey as error:
                stage.note(record, REFUSED)
                return _error_reply(HTTPError(422, str(error)), media_type)

        outcome, reply = self._outcome(fault, stage.gates, media_type, answer)
        if fault:
            self.close_connection = True
        stage.complete(record, outcome)
        if reply is None:
            return
        try:
            self._send(reply)
        except ConnectionError:
            self.close_connection = True
            stage.complete(record, CLIENT_WENT_AWAY)

    def _outcome(
        self, fault: Optional[Fault], gates: Gates, media_type: MediaType, answer: Callable[[], Reply]
    ) -> tuple[str, Optional[Reply]]:
        """Waits as the fault requires, and returns the outcome for the client and the reply to send."""
        if fault is None:
            return ANSWERED, answer()
        if fault.kind is FaultKind.SLOW and not self._client_stays(float(fault.value)):
            return CLIENT_WENT_AWAY, None
        if fault.kind is FaultKind.HOLD and not self._passes(str(fault.value), gates):
            return CLIENT_WENT_AWAY, None
        reply = reply_with(fault, media_type, answer)
        if fault.kind is FaultKind.HOLD_AFTER and not self._passes(str(fault.value), gates):
            return CLIENT_WENT_AWAY, None
        return fault.kind.value, reply

    def _media_type(self) -> MediaType:
        """The media type that the client accepts, if the server was started with it, and plain JSON otherwise."""
        asked = negotiated(", ".join(self.headers.get_all("Accept", [])))
        return asked if asked is self.server.media_type else MediaType.JSON

    def _check_key(self) -> None:
        key = self.headers.get("Idempotency-Key")
        if key is not None and not 1 <= len(key) <= MAXIMUM_KEY_LENGTH:
            raise HTTPError(400, f"An Idempotency-Key has 1 to {MAXIMUM_KEY_LENGTH} characters.")

    def _decode(self, body: bytes, media_type: MediaType) -> GraphQLRequest:
        if self.headers.get_content_type() != "application/json":
            raise HTTPError(415, "The body must be application/json.")
        try:
            return GraphQLRequest.from_body(body, media_type)
        except NotJSON as error:
            raise HTTPError(400, str(error)) from error
        except BadRequest as error:
            raise HTTPError(media_type.malformed_status, str(error)) from error

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

    def _passes(self, gate: str, gates: Gates) -> bool:
        """Waits until the gate is open; returns False immediately if the client closes the connection."""
        with gates.waiting(gate) as signal:
            return self._client_stays(None, signal)

    def _client_stays(self, seconds: Optional[float], signal: Optional[socket.socket] = None) -> bool:
        """Waits for the time or the signal; returns False immediately if the client closes the connection."""
        deadline = None if seconds is None else time.monotonic() + seconds
        signals = [signal] if signal else []
        while True:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                return True
            readable, _, _ = select.select([self.connection, *signals], [], [], remaining)
            if self.connection in readable:
                try:
                    if not self.connection.recv(1, socket.MSG_PEEK):
                        return False
                except ConnectionError:
                    return False
                # The client has already sent its next request. It hides the end of the stream and keeps the socket
                # readable, so this can only pause to avoid a busy loop.
                pause = 0.05 if remaining is None else min(remaining, 0.05)
                readable, _, _ = select.select(signals, [], [], pause)
            if signal in readable:
                return True

    def _send_control(self, value: object) -> None:
        """Replies and closes the connection, so that no request to /graphql reuses a control connection."""
        self.close_connection = True
        self._send(Reply.whole(encode(value)))

    def _send(self, reply: Reply, headers: Optional[Mapping[str, str]] = None) -> None:
        if self.close_connection:
            self._write(reply, {"Connection": "close", **(headers or {})})
        else:
            with self.server.becoming_idle(self.connection):
                self._write(reply, headers or {})

    def _write(self, reply: Reply, headers: Mapping[str, str]) -> None:
        self.send_response(reply.status, REASONS.get(reply.status))
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(reply.length))
        for name, value in {**reply.headers, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            for chunk in reply.chunks:
                self.wfile.write(chunk)


def _error_reply(error: HTTPError, media_type: MediaType = MediaType.JSON) -> Reply:
    return Reply.whole(encode({"errors": [{"message": str(error)}]}), error.status, media_type.content_type)
