"""The faults of a server and of the network before it, drawn at random."""

from __future__ import annotations

import random
from enum import Enum
from typing import Optional


class Fault(Enum):
    """What happens to a request. A change is applied before its reply is lost, and not if its request is."""

    LOST_REQUEST = "the connection is closed before the request is handled"
    LOST_REPLY = "the connection is closed before the reply is sent"
    CUT_REPLY = "the connection is closed within the body of the reply"
    FAILURE = "status 500, although the request was handled"
    CRASH = "status 500, because the request was not handled"
    BUSY = "status 429"
    DELAY = "the reply is late"


class Faults:
    """Not safe for concurrent use."""

    def __init__(self) -> None:
        self.set(rate=0, seed=0)

    def set(self, rate: float, seed: int) -> None:
        """Lets a part of all requests fail, from 0 for none to 1 for all."""
        self._rate, self._random = rate, random.Random(seed)
        self._next: list[Fault] = []

    def arm(self, name: str) -> None:
        """Lets one of the next requests fail, after those that were armed before."""
        self._next.append(Fault[name])

    def draw(self) -> Optional[Fault]:
        """Returns the fault of the next request."""
        if self._next:
            return self._next.pop(0)
        return self._random.choice(list(Fault)) if self._random.random() < self._rate else None

    def delay(self) -> float:
        """Returns the seconds by which a reply is late."""
        return self._random.uniform(0, 0.1)

    def retry_after(self) -> int:
        """Returns the seconds after which a client may try again."""
        return self._random.choice([0, 0, 0, 1])
