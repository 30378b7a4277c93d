"""Gates, at which requests wait until a test opens them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gates:
    """Named gates, which are closed until they are opened once; thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: set[str] = set()
        self._are_all_open = False
        self._waiting: dict[str, list[socket.socket]] = {}

    @contextmanager
    def waiting(self, name: str) -> Iterator[socket.socket]:
        """Provides a socket that becomes readable when the gate is open, and counts the caller as waiting."""
        reading, writing = socket.socketpair()
        with reading, writing:
            with self._changed:
                if self._are_all_open or name in self._open:
                    writing.send(b"\0")
                else:
                    self._waiting.setdefault(name, []).append(writing)
                    self._changed.notify_all()
            try:
                yield reading
            finally:
                with self._changed:
                    if writing in self._waiting.get(name, []):
                        self._waiting[name].remove(writing)

    def open(self, name: str) -> int:
        """Opens the gate for all waiting and later requests; returns the number of waiting ones."""
        with self._changed:
            self._open.add(name)
            waiting = self._waiting.pop(name, [])
            for signal in waiting:
                signal.send(b"\0")
            return len(waiting)

    def open_all(self) -> None:
        """Opens all gates permanently."""
        with self._changed:
            self._are_all_open = True
            for name in list(self._waiting):
                self.open(name)

    def wait_for(self, name: str, count: int, timeout: float) -> bool:
        """Waits until at least `count` requests wait at the gate; returns False at the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._waiting.get(name, [])) >= count, timeout)
