"""The timelines that both servers serve, and the faults that a test arms for one user's requests."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Optional

RETRY_AFTER = 7
"""The wait that a throttled request is asked for, in seconds."""

LONE_SURROGATE = "cut \ud83d"

LONG_TITLE = "long " * 20_000


class Refused(Exception):
    """An exception that a server reports with a code, which both libraries take from `extensions`."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.extensions = {"code": code}


class NeedsSignIn(Refused):
    def __init__(self) -> None:
        super().__init__("The token has expired.", "UNAUTHENTICATED")


class Throttled(Refused):
    def __init__(self) -> None:
        super().__init__("Too many requests.", "THROTTLED")


@dataclass(frozen=True)
class Author:
    name: str = "Ann"
    avatar: str = "https://example.com/ann.png"


@dataclass(frozen=True)
class Owner:
    id: str
    name: str = "Ann"
    avatar: str = "https://example.com/ann.png"
    backgroundImage: str = "https://example.com/background.png"


@dataclass(frozen=True)
class Like:
    id: str
    avatar: str = "https://example.com/ann.png"


@dataclass(frozen=True)
class Moment:
    """A moment as one request sees it. Its methods are the fields that a fault can make fail."""

    id: str
    isLiked: bool
    likes: list[Like]
    fault: Optional[str]
    userDetails: Author = Author()
    type: str = "PHOTOS"

    def title(self) -> Optional[str]:
        if self.fault == "failing-title":
            raise ConnectionError("The titles can't be reached.")
        return {"lone-surrogate": LONE_SURROGATE, "long-title": LONG_TITLE}.get(self.fault or "", f"Moment {self.id}")

    def photos(self) -> Optional[list[str]]:
        return None if self.fault == "null-photos" else []

    def createdDate(self) -> str:
        if self.fault == "failing-date":
            raise ConnectionError("The dates can't be reached.")
        if self.fault == "forbidden-date":
            raise Refused("The date isn't yours.", "FORBIDDEN")
        return "1600000000"


@dataclass(frozen=True)
class Timeline:
    userDetails: Owner
    moments: list[Moment]


@dataclass(frozen=True)
class Request:
    """A request whose root field was called."""

    operation: str
    key: Optional[str]
    """The value of its `Idempotency-Key`."""
    wasApplied: bool
    """Whether it changed the likes, which a repeated key doesn't."""


@dataclass
class User:
    likes: set[str] = field(default_factory=set)
    appliedKeys: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class Timelines:
    """The state of all users. Every id names a user, whose timeline has three moments."""

    def __init__(self) -> None:
        self._users: dict[str, User] = defaultdict(User)

    def arm(self, user_id: str, operation: str, fault: str, count: int) -> None:
        """Arms a fault for the next requests, in place of those that are armed."""
        self._users[user_id].faults[operation] = [fault] * count

    def requests(self, user_id: str) -> list[Request]:
        return self._users[user_id].requests

    def fetch(self, user_id: str, authorization: Optional[str]) -> Timeline:
        user = self._users[user_id]
        user.requests.append(Request("fetch", None, wasApplied=False))
        return self._timeline(user_id, self._take_fault(user, "fetch", authorization))

    def like(
        self, user_id: str, moment_id: str, is_liked: bool, key: Optional[str], authorization: Optional[str]
    ) -> Timeline:
        user = self._users[user_id]
        applies = False
        try:
            fault = self._take_fault(user, "like", authorization)
            applies = key is None or key not in user.appliedKeys
            if applies:
                (user.likes.add if is_liked else user.likes.discard)(moment_id)
                user.appliedKeys.add(key or "")
        finally:
            user.requests.append(Request("like", key, applies))
        if fault == "internal-error":
            raise Refused("The reply got lost.", "INTERNAL_SERVER_ERROR")
        if fault == "exception":
            raise ConnectionError("The reply got lost.")
        return self._timeline(user_id, fault)

    def _take_fault(self, user: User, operation: str, authorization: Optional[str]) -> Optional[str]:
        if authorization == "Bearer expired":
            raise NeedsSignIn
        faults = user.faults[operation]
        fault = faults.pop(0) if faults else None
        if fault == "throttled":
            raise Throttled
        return fault

    def _timeline(self, user_id: str, fault: Optional[str]) -> Timeline:
        likes = self._users[user_id].likes
        moments = [
            Moment(id, id in likes, [Like(user_id)] if id in likes else [], fault if id == "0" else None)
            for id in ("0", "1", "2")
        ]
        return Timeline(Owner(user_id), moments)


TIMELINES = Timelines()
