"""The listening socket, which can be closed and reopened on the same port."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable

BACKLOG = 128


class Listener:
    """Accepts connections at an address, from `open` to `close`.

    The port stays bound for the lifetime of the object. While the listener is closed, its socket is bound but doesn't
    listen. The system then refuses connections, and doesn't give the port to another process.
    """

    def __init__(self, address: tuple[str, int], accept: Callable[[socket.socket, tuple[str, int]], None]) -> None:
        """Binds the port; raises `OSError`. Each connection is passed to `accept`, which must not block."""
        self._accept = accept
        self._socket = _bound_socket(address)
        self.address: tuple[str, int] = self._socket.getsockname()

    def open(self) -> None:
        """Accepts connections from now on; raises `OSError`."""
        self._socket.listen(BACKLOG)
        # A connection that is closed between select and accept must not block the loop.
        self._socket.setblocking(False)
        self._wake_up, waking = socket.socketpair()
        self._thread = threading.Thread(target=self._run, args=(self._socket, waking), daemon=True)
        self._thread.start()

    def close(self, keeps_port: bool) -> None:
        """Refuses connections from now on; accepted connections continue."""
        self._wake_up.close()
        self._thread.join()
        self._socket.close()
        if keeps_port:
            self._socket = _bound_socket(self.address)

    def _run(self, listening: socket.socket, waking: socket.socket) -> None:
        with waking:
            while True:
                readable, _, _ = select.select([listening, waking], [], [])
                if waking in readable:
                    return
                try:
                    connection, address = listening.accept()
                except (BlockingIOError, ConnectionError):
                    continue
                connection.setblocking(True)
                self._accept(connection, address)


def _bound_socket(address: tuple[str, int]) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # The system remembers connections of an earlier server on this port for a minute; they must not block the port.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
