"""Faults that are injected into answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Optional, Union

from media import MediaType, encode

TEXT = "text/plain; charset=utf-8"

CHUNK_SIZE = 64 * 1024
"""The number of bytes of padding that are generated at a time."""


class InvalidFault(Exception):
    """A request selects an unknown fault, or gives it an invalid parameter."""


class FaultKind(Enum):
    DROP = "drop"
    DROP_AFTER = "drop-after"
    DROP_AFTER_HEADERS = "drop-after-headers"
    STATUS = "status"
    RETRY_AFTER = "retry-after"
    GRAPHQL_ERROR = "graphql-error"
    GRAPHQL_ERROR_PARTIAL = "graphql-error-partial"
    MALFORMED = "malformed"
    EMPTY = "empty"
    SLOW = "slow"
    HOLD = "hold"
    HOLD_AFTER = "hold-after"
    OVERSIZED = "oversized"
    WRONG_SHAPE = "wrong-shape"
    DUPLICATE = "duplicate"


@dataclass(frozen=True)
class Number:
    """The number that is the parameter of some kinds of fault."""

    key: str
    default: float
    minimum: float
    maximum: float
    is_whole: bool

    def checked(self, value: object) -> float:
        """Returns the value if it is a number in range; raises `InvalidFault` otherwise."""
        if (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and self.minimum <= value <= self.maximum
            and (not self.is_whole or value == int(value))
        ):
            return value
        number = "a whole number" if self.is_whole else "a number"
        raise InvalidFault(f'"{self.key}" must be {number} from {self.minimum:.0f} to {self.maximum:.0f}.')

    def read(self, text: str) -> object:
        """Parses the value of a header; raises `InvalidFault`."""
        try:
            return float(text)
        except ValueError:
            raise InvalidFault("X-Fault-Value must be a number.") from None


@dataclass(frozen=True)
class Name:
    """The name that is the parameter of some kinds of fault, without a default."""

    key: str
    default = None

    def checked(self, value: object) -> str:
        """Returns the value if it is a valid name; raises `InvalidFault` otherwise."""
        if isinstance(value, str) and 1 <= len(value) <= MAXIMUM_NAME_LENGTH:
            return value
        raise InvalidFault(f'"{self.key}" must be a name of 1 to {MAXIMUM_NAME_LENGTH} characters.')

    def read(self, text: str) -> object:
        return text


MAXIMUM_NAME_LENGTH = 100

GATE = Name("gate")

PARAMETERS: Mapping[FaultKind, Union[Number, Name]] = {
    FaultKind.STATUS: Number("value", 500, 400, 599, is_whole=True),
    FaultKind.RETRY_AFTER: Number("value", 1, 0, 86400, is_whole=True),
    FaultKind.SLOW: Number("delay", 1, 0, 3600, is_whole=False),
    FaultKind.HOLD: GATE,
    FaultKind.HOLD_AFTER: GATE,
    FaultKind.OVERSIZED: Number("size", 16 << 20, 0, 1 << 30, is_whole=True),
}


@dataclass(frozen=True)
class Fault:
    """A fault; `value` is its parameter, or 0 if its kind has none."""

    kind: FaultKind
    value: Union[float, str] = 0

    @classmethod
    def from_arguments(cls, name: object, arguments: Mapping[str, object]) -> Fault:
        """Creates a fault from the arguments of the control endpoint; raises `InvalidFault`."""
        kind = _kind(name)
        parameter = PARAMETERS.get(kind)
        unknown = arguments.keys() - ({parameter.key} if parameter else set())
        if unknown:
            raise InvalidFault(f'The fault "{kind.value}" takes no "{min(unknown)}".')
        if parameter is None:
            return cls(kind)
        return cls(kind, parameter.checked(arguments.get(parameter.key, parameter.default)))

    @classmethod
    def from_headers(cls, name: str, value: Optional[str]) -> Fault:
        """Creates a fault from the headers of a request; raises `InvalidFault`."""
        if value is None:
            return cls.from_arguments(name, {})
        parameter = PARAMETERS.get(_kind(name))
        if parameter is None:
            return cls.from_arguments(name, {"X-Fault-Value": value})
        return cls.from_arguments(name, {parameter.key: parameter.read(value)})


def _kind(name: object) -> FaultKind:
    try:
        return FaultKind(name)
    except ValueError:
        known = ", ".join(kind.value for kind in FaultKind)
        raise InvalidFault(f"No fault is named {name!r}. The faults are {known}.") from None


@dataclass(frozen=True)
class Reply:
    """An HTTP reply, whose chunks may be shorter than its declared length."""

    status: int
    content_type: str
    length: int
    chunks: Iterable[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def whole(
        cls,
        body: bytes,
        status: int = 200,
        content_type: str = MediaType.JSON.content_type,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Reply:
        return cls(status, content_type, len(body), [body], headers or {})

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


GRAPHQL_ERROR: Mapping[str, object] = {"data": None, "errors": [{"message": "Injected failure."}]}

WRONG_SHAPE_BODY = b'{"data":{"getMomentsDetailsByUserID":{"moments":"none"},"updateMomentLike":{"moments":"none"}}}'
"""A body that doesn't match any selection, because `userDetails` is missing and `moments` isn't a list."""

PARTIAL_ERROR_MESSAGE = "Injected partial failure."

PARTIAL_ERROR_EXTENSIONS: Mapping[str, object] = {"trace": "t-1"}


def reply_with(fault: Fault, media_type: MediaType, answer: Callable[[], Reply]) -> Optional[Reply]:
    """Returns the reply with the fault applied; None closes the connection without a reply.

    `answer` executes the request, and is called as often as the fault allows. A fault of the server occurs before the
    execution. A fault on the way back occurs after the execution, so it loses the answer but not the change. The caller
    performs the waits of `slow`, `hold` and `hold-after`, which this function ignores.
    """
    kind = fault.kind
    if kind is FaultKind.DROP:
        return None
    if kind is FaultKind.STATUS:
        return _status(int(fault.value))
    if kind is FaultKind.RETRY_AFTER:
        return _status(503, {"Retry-After": f"{fault.value:.0f}"})
    if kind is FaultKind.GRAPHQL_ERROR:
        status = media_type.status(GRAPHQL_ERROR, was_parsed=True)
        return Reply.whole(encode(GRAPHQL_ERROR), status, media_type.content_type)
    return _altered(fault, answer)


def _status(status: int, headers: Optional[Mapping[str, str]] = None) -> Reply:
    return Reply.whole(f"Injected status {status}.\n".encode(), status, TEXT, headers)


def _altered(fault: Fault, answer: Callable[[], Reply]) -> Optional[Reply]:
    """Executes the request, and applies the fault to its answer."""
    reply = answer()
    kind = fault.kind
    if kind is FaultKind.DROP_AFTER:
        return None
    if kind is FaultKind.DROP_AFTER_HEADERS:
        return replace(reply, chunks=[_half(reply.body)])
    if kind is FaultKind.MALFORMED:
        return Reply.whole(_half(reply.body), content_type=reply.content_type)
    if kind is FaultKind.EMPTY:
        return Reply.whole(b"", content_type=reply.content_type)
    if kind is FaultKind.WRONG_SHAPE:
        return Reply.whole(WRONG_SHAPE_BODY, content_type=reply.content_type)
    if kind is FaultKind.GRAPHQL_ERROR_PARTIAL:
        return _partial(reply)
    if kind is FaultKind.OVERSIZED:
        return _padded(reply, int(fault.value))
    if kind is FaultKind.DUPLICATE:
        return answer()
    return reply


def _half(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _partial(reply: Reply) -> Reply:
    """Returns the answer with an additional error; an answer without data is unchanged."""
    content: dict[str, Any] = json.loads(reply.body)
    data = content.get("data")
    if data is None:
        return reply
    error = {"message": PARTIAL_ERROR_MESSAGE, "path": _path(data)}
    content["errors"] = [*content.get("errors", []), error]
    content["extensions"] = PARTIAL_ERROR_EXTENSIONS
    body = encode(content)
    media_type = next(media_type for media_type in MediaType if media_type.content_type == reply.content_type)
    return replace(reply, status=media_type.status(content, was_parsed=True), length=len(body), chunks=[body])


def _path(data: Mapping[str, Any]) -> list[Union[str, int]]:
    """Returns the path of the first element of the first list in the first root field, or of that field."""
    for root, value in data.items():
        fields = value.items() if isinstance(value, dict) else []
        return next(([root, name, 0] for name, value in fields if isinstance(value, list) and value), [root])
    return []


def _padded(reply: Reply, size: int) -> Reply:
    """Returns the answer padded to the size with an extension, which is generated while it is sent."""
    head = reply.body[:-1] + b',"extensions":{"padding":"'
    tail = b'"}}'
    padding = max(0, size - len(head) - len(tail))

    def chunks() -> Iterator[bytes]:
        yield head
        for start in range(0, padding, CHUNK_SIZE):
            yield b"x" * min(CHUNK_SIZE, padding - start)
        yield tail

    return replace(reply, length=len(head) + padding + len(tail), chunks=chunks())
