"""The control endpoints for tests, from a request to the JSON of its reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Optional
from urllib.parse import parse_qsl

from faults import GATE, Fault, InvalidFault
from timeline import TakenID, UnknownID

if TYPE_CHECKING:
    from handler import Server

MAXIMUM_FAULT_COUNT = 10_000
MAXIMUM_WAITED_COUNT = 10_000

LONGEST_WAIT = 300.0
"""The longest wait in seconds, which is sufficient even if a thousand tests share two threads."""


class HTTPError(Exception):
    """An error that is reported as the HTTP status of a request."""

    def __init__(self, status: int, message: str, headers: Optional[Mapping[str, str]] = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


def arm(server: Server, _query: str, body: bytes) -> object:
    arguments = _object(body)
    name = arguments.pop("fault", None)
    count = _count(arguments.pop("count", 1), "count", 1, MAXIMUM_FAULT_COUNT)
    try:
        fault = Fault.from_arguments(name, arguments)
    except InvalidFault as error:
        raise HTTPError(400, str(error)) from error
    server.stage.arm(fault, count)
    server.close_idle_connections()
    return {"armed": fault.kind.value, "count": count}


def open_gate(server: Server, _query: str, body: bytes) -> object:
    arguments = _object(body)
    gate = _gate(arguments.pop("open", None))
    _reject_unknown(arguments)
    return {"opened": gate, "passed": server.stage.gates.open(gate)}


def wait_at_gate(server: Server, query: str, _body: bytes) -> object:
    arguments = _query_arguments(query)
    gate = _gate(arguments.pop("gate", None))
    count = _whole_number(arguments.pop("waiting", "1"), "waiting")
    _reject_unknown(arguments)
    if not server.stage.gates.wait_for(gate, count, LONGEST_WAIT):
        raise HTTPError(408, f'Fewer than {count} requests reached the gate "{gate}" in {LONGEST_WAIT:.0f} seconds.')
    return {"gate": gate, "waiting": count}


def insert_moment(server: Server, _query: str, body: bytes) -> object:
    arguments = _object(body)
    user_id = _text(arguments.pop("userID", None), "userID")
    moment_id = _text(arguments.pop("id", None), "id")
    title = arguments.pop("title", None)
    if title is not None:
        _text(title, "title")
    _reject_unknown(arguments)
    try:
        return server.stage.insert(user_id, moment_id, title)
    except (UnknownID, TakenID) as error:
        raise HTTPError(400, str(error)) from error


def requests(server: Server, query: str, _body: bytes) -> object:
    arguments = _query_arguments(query)
    count = _whole_number(arguments.pop("count", "0"), "count")
    settled = _whole_number(arguments.pop("settled", "0"), "settled")
    disconnected = _whole_number(arguments.pop("disconnected", "0"), "disconnected")
    _reject_unknown(arguments)
    stage = server.stage
    if not stage.wait_for_requests(count, settled, disconnected, LONGEST_WAIT):
        raise HTTPError(
            408,
            f"Fewer than {count} requests arrived, fewer than {settled} have an outcome, "
            f"or fewer than {disconnected} clients disconnected, in {LONGEST_WAIT:.0f} seconds.",
        )
    return stage.requests()


def clear_requests(server: Server, _query: str, _body: bytes) -> object:
    server.stage.clear_requests()
    return {"status": "ok"}


def refuse(server: Server, _query: str, _body: bytes) -> object:
    return {"control": server.refuse()}


def accept(server: Server, _query: str, _body: bytes) -> object:
    server.accept()
    return {"status": "ok"}


def reset(server: Server, _query: str, _body: bytes) -> object:
    server.reset()
    return {"status": "ok"}


def health(_server: Server, _query: str, _body: bytes) -> object:
    return {"status": "ok"}


ROUTES: Mapping[str, Mapping[str, Callable[[Server, str, bytes], object]]] = {
    "/control/faults": {"POST": arm},
    "/control/gates": {"GET": wait_at_gate, "POST": open_gate},
    "/control/moments": {"POST": insert_moment},
    "/control/requests": {"GET": requests, "DELETE": clear_requests},
    "/control/refuse": {"POST": refuse},
    "/control/accept": {"POST": accept},
    "/control/reset": {"POST": reset},
    "/control/health": {"GET": health},
}


def _object(body: bytes) -> dict[str, Any]:
    try:
        arguments = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPError(400, f"The body is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise HTTPError(400, "The body must be a JSON object.")
    return arguments


def _query_arguments(query: str) -> dict[str, Any]:
    return dict(parse_qsl(query, keep_blank_values=True))


def _reject_unknown(arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise HTTPError(400, f'Unknown argument "{min(arguments)}".')


def _text(value: object, key: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise HTTPError(400, f'"{key}" must be a nonempty string.')


def _count(value: object, key: str, minimum: int, maximum: int) -> int:
    if type(value) is int and minimum <= value <= maximum:
        return value
    raise HTTPError(400, f'"{key}" must be a whole number from {minimum} to {maximum}.')


def _whole_number(text: str, key: str) -> int:
    is_number = text.isascii() and text.isdigit()
    return _count(int(text) if is_number else None, key, 0, MAXIMUM_WAITED_COUNT)


def _gate(value: object) -> str:
    try:
        return GATE.checked(value)
    except InvalidFault as error:
        raise HTTPError(400, str(error)) from error
