"""The state of the server between two resets: data, stored replies, armed faults, and received requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

from graphql import GraphQLSchema

from api import Answer, GraphQLRequest, execute
from faults import Fault, Reply
from gates import Gates
from journal import Journal, KeptReply
from media import MediaType, encode
from timeline import Seed, StoredMoment, Timelines

# Outcomes for the client, unless the outcome is the name of a fault.
ANSWERED = "answered"
CLIENT_WENT_AWAY = "client-went-away"
SERVER_STOPPED = "server-stopped"

# Effects of a request on the server.
READ = "read"
APPLIED = "applied"
REPLAYED = "replayed"
REFUSED = "refused"


class ReusedKey(Exception):
    """A request has the idempotency key of a different request."""


@dataclass
class RequestRecord:
    """A POST to /graphql, as `GET /control/requests` reports it."""

    operation: Optional[str]
    variables: dict[str, Any]
    headers: dict[str, str]
    fault: Optional[str] = None
    effect: Optional[str] = None
    outcome: Optional[str] = None
    executions: int = 0
    number: int = 0

    @property
    def idempotency_key(self) -> Optional[str]:
        return self.headers.get("idempotency-key")

    def as_json(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "variables": self.variables,
            "headers": self.headers,
            "idempotencyKey": self.idempotency_key,
            "fault": self.fault,
            "effect": self.effect,
            "outcome": self.outcome,
            "executions": self.executions,
        }

    @classmethod
    def from_json(cls, number: int, record: dict[str, Any]) -> RequestRecord:
        """Creates the record of an earlier server, in which no request is in flight any more."""
        return cls(
            record["operation"],
            record["variables"],
            record["headers"],
            record["fault"],
            record["effect"],
            record["outcome"] or SERVER_STOPPED,
            record["executions"],
            number,
        )


class Stage:
    """The state of the server from one reset to the next; thread-safe.

    A reset replaces the stage instead of clearing it. A request that is still in flight then finishes on the discarded
    stage, and leaves no trace in the next test.
    """

    def __init__(self, schema: GraphQLSchema, seed: Seed, journal: Journal) -> None:
        """Creates a stage with the state of the journal."""
        self._schema = schema
        self.timelines = Timelines(seed, journal.timelines())
        self.gates = Gates()
        self._journal = journal
        self._is_retired = False
        self._changed = threading.Condition()
        # Held while a mutation is executed, so that the second of two with the same key finds the reply of the first.
        self._mutations = threading.Lock()
        self._replies = journal.replies()
        self._armed: deque[Fault] = deque()
        self._records = [RequestRecord.from_json(*row) for row in journal.requests()]
        self._last_number = self._records[-1].number if self._records else 0

    def retire(self) -> None:
        """Discards the stage: clears the journal, stops writing to it, and opens all gates."""
        with self._changed:
            self._is_retired = True
            self._journal.clear()
        self.gates.open_all()

    def arm(self, fault: Fault, count: int) -> None:
        """Arms the fault for `count` requests, after the faults that are already armed."""
        with self._changed:
            self._armed.extend([fault] * count)

    def admit(self, record: RequestRecord, requested: Optional[Fault]) -> Optional[Fault]:
        """Adds the record, and returns the fault of the request: the one it selects, or the next armed one.

        Both happen in one step, so that the n-th armed fault applies to the n-th recorded request.
        """
        with self._changed:
            fault = requested or (self._armed.popleft() if self._armed else None)
            record.fault = fault.kind.value if fault else None
            self._last_number += 1
            record.number = self._last_number
            self._records.append(record)
            self._write(lambda journal: journal.add_request(record.number, record.as_json()))
            self._changed.notify_all()
            return fault

    def answer(self, record: RequestRecord, request: GraphQLRequest, media_type: MediaType) -> Reply:
        """Executes the request, or returns the reply stored under its key; raises `ReusedKey`."""
        if request.is_mutation:
            with self._mutations:
                return self._answer_mutation(record, request, media_type)
        answer = execute(request, self.timelines, self._schema)
        self._note_execution(record, READ if answer.has_data else REFUSED)
        return _reply(answer, media_type)

    def _answer_mutation(self, record: RequestRecord, request: GraphQLRequest, media_type: MediaType) -> Reply:
        key = record.idempotency_key
        if key is not None and key in self._replies:
            kept = self._replies[key]
            if kept.fingerprint != request.fingerprint:
                message = f'The Idempotency-Key "{key}" belongs to another request. Give each change its own key.'
                raise ReusedKey(message)
            self.note(record, REPLAYED)
            return Reply.whole(kept.body, kept.status, kept.content_type, {"Idempotent-Replayed": "true"})
        answer = execute(request, self.timelines, self._schema)
        reply = _reply(answer, media_type)
        keep = None
        if key is not None and answer.has_mutated:
            keep = key, KeptReply(request.fingerprint, reply.status, reply.content_type, reply.body)
            self._replies[key] = keep[1]
        self._note_execution(record, APPLIED if answer.has_data else REFUSED, keep)
        return reply

    def _note_execution(
        self, record: RequestRecord, effect: str, keep: Optional[tuple[str, KeptReply]] = None
    ) -> None:
        with self._changed:
            record.executions += 1
            record.effect = effect
            if effect == APPLIED or keep:
                timelines = self.timelines.moments()
                self._write(lambda journal: journal.write_execution(timelines, keep, record.number, record.as_json()))

    def note(self, record: RequestRecord, effect: str) -> None:
        """Sets the effect of a request that isn't executed, unless an earlier execution has already set it."""
        with self._changed:
            record.effect = record.effect or effect

    def complete(self, record: RequestRecord, outcome: str) -> None:
        """Sets the outcome; called before the reply is sent, so that it is set when the client has the reply."""
        with self._changed:
            record.outcome = outcome
            self._write(lambda journal: journal.update_request(record.number, record.as_json()))
            self._changed.notify_all()

    def insert(self, user_id: str, moment_id: str, title: Optional[str]) -> StoredMoment:
        """Inserts a new moment at the head of a timeline."""
        moment = self.timelines.insert(user_id, moment_id, title)
        with self._changed:
            self._write(lambda journal: journal.write_timelines(self.timelines.moments()))
        return moment

    def requests(self) -> list[dict[str, Any]]:
        """Returns the records in the order of arrival; the outcome of a request in flight is None."""
        with self._changed:
            return [record.as_json() for record in self._records]

    def wait_for_requests(self, count: int, settled: int, disconnected: int, timeout: float) -> bool:
        """Waits for `count` records, `settled` outcomes and `disconnected` clients.

        Returns False at the timeout.
        """

        def is_satisfied() -> bool:
            outcomes = [record.outcome for record in self._records]
            return (
                len(outcomes) >= count
                and len(outcomes) - outcomes.count(None) >= settled
                and outcomes.count(CLIENT_WENT_AWAY) >= disconnected
            )

        with self._changed:
            return self._changed.wait_for(is_satisfied, timeout)

    def clear_requests(self) -> None:
        """Deletes the records, including those of requests in flight."""
        with self._changed:
            self._records.clear()
            self._write(Journal.clear_requests)

    def _write(self, change: Callable[[Journal], None]) -> None:
        if not self._is_retired:
            change(self._journal)


def _reply(answer: Answer, media_type: MediaType) -> Reply:
    content = answer.as_json(media_type)
    return Reply.whole(encode(content), media_type.status(content, answer.was_parsed), media_type.content_type)
