"""What the server knows between two resets: data, armed faults, and the requests it received."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Optional

from faults import Fault
from timeline import Seed, Timelines

ANSWERED = "answered"
CLIENT_WENT_AWAY = "client-went-away"


@dataclass
class RequestRecord:
    """One POST to /graphql, as `GET /control/requests` reports it."""

    operation: Optional[str]
    variables: dict[str, Any]
    headers: dict[str, str]
    fault: Optional[str] = None
    outcome: Optional[str] = None
    executions: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "variables": self.variables,
            "headers": self.headers,
            "idempotencyKey": self.headers.get("idempotency-key"),
            "fault": self.fault,
            "outcome": self.outcome,
            "executions": self.executions,
        }


class Stage:
    """One life of the server, from a reset to the next; safe to use from any thread.

    A reset replaces the stage instead of clearing it, so that a request still under way finishes against the
    discarded one and leaves no trace in the next test.
    """

    def __init__(self, seed: Seed) -> None:
        self.timelines = Timelines(seed)
        self._lock = threading.Lock()
        self._armed: deque[Fault] = deque()
        self._records: list[RequestRecord] = []

    def arm(self, fault: Fault, count: int) -> None:
        """Sets the fault for `count` requests, after those already armed."""
        with self._lock:
            self._armed.extend([fault] * count)

    def admit(self, record: RequestRecord, requested: Optional[Fault]) -> Optional[Fault]:
        """Adds the record and returns the request's fault: the one it asks for, else the next one armed.

        Both happen at once, so the n-th armed fault goes to the n-th recorded request.
        """
        with self._lock:
            fault = requested or (self._armed.popleft() if self._armed else None)
            record.fault = fault.kind.value if fault else None
            self._records.append(record)
            return fault

    def count_execution(self, record: RequestRecord) -> None:
        with self._lock:
            record.executions += 1

    def settle(self, record: RequestRecord, outcome: str) -> None:
        """Sets the outcome; called before the reply is sent, so that a client with the reply finds it here."""
        with self._lock:
            record.outcome = outcome

    def requests(self) -> list[dict[str, Any]]:
        """The records in the order of arrival; the outcome is None while a request is under way."""
        with self._lock:
            return [record.as_json() for record in self._records]
