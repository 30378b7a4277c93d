"""The users, their timelines, and the likes on them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Optional, TypedDict


class User(TypedDict):
    id: str
    name: str
    avatar: str
    backgroundImage: str


class Author(TypedDict):
    name: str
    avatar: str


class Like(TypedDict):
    id: str
    avatar: str


class StoredMoment(TypedDict):
    """A moment as the data file has it.

    It carries no `isLiked`: that follows from the likes, and two sources of one fact would drift apart.
    """

    id: str
    userDetails: Author
    type: str
    title: Optional[str]
    url: Optional[str]
    photos: list[str]
    createdDate: str
    likes: list[Like]


class Moment(StoredMoment):
    """A moment as the timeline's user sees it."""

    isLiked: bool


class MomentsDetails(TypedDict):
    userDetails: User
    moments: list[Moment]


class Seed(TypedDict):
    """The data file."""

    users: list[User]
    timelines: dict[str, list[StoredMoment]]


class InvalidSeed(Exception):
    """The data file has content that is not a seed."""


class UnknownID(Exception):
    """The request names a user or a moment that does not exist."""


def load_seed(path: Path) -> Seed:
    """Reads the data file; raises `OSError` or `InvalidSeed`."""
    try:
        seed: Seed = json.loads(path.read_bytes())
        for user in seed["users"]:
            for moment in seed["timelines"][user["id"]]:
                missing = StoredMoment.__annotations__.keys() - moment.keys()
                if missing:
                    raise InvalidSeed(f"moment {moment.get('id')} lacks {', '.join(sorted(missing))}")
    except KeyError as error:
        raise InvalidSeed(f"{error} is missing") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidSeed(str(error)) from error
    return seed


class Timelines:
    """The current timelines, safe to use from any thread.

    Moments are never changed in place. A change puts a new moment in the old one's place, so a reader needs the
    lock only to copy the list, and the seed stays as it was for the next reset.
    """

    def __init__(self, seed: Seed) -> None:
        self._lock = threading.Lock()
        self._users = {user["id"]: user for user in seed["users"]}
        self._moments = {user_id: list(seed["timelines"][user_id]) for user_id in self._users}

    def details(self, user_id: str) -> MomentsDetails:
        """What the user sees now."""
        user = self._user(user_id)
        with self._lock:
            moments = list(self._moments[user_id])
        return _details(user, moments)

    def update_like(self, moment_id: str, user_id: str, is_liked: bool) -> MomentsDetails:
        """Sets whether the user likes the moment, and returns what the user sees right after that change."""
        user = self._user(user_id)
        with self._lock:
            moments = self._moments[user_id]
            for index, moment in enumerate(moments):
                if moment["id"] == moment_id:
                    moments[index] = _with_like(moment, user, is_liked)
                    break
            else:
                raise UnknownID(f'The timeline of user "{user_id}" has no moment with the id "{moment_id}".')
            moments = list(moments)
        return _details(user, moments)

    def _user(self, user_id: str) -> User:
        try:
            return self._users[user_id]
        except KeyError:
            raise UnknownID(f'No user has the id "{user_id}".') from None


def _details(user: User, moments: list[StoredMoment]) -> MomentsDetails:
    return {
        "userDetails": user,
        "moments": [{**moment, "isLiked": _is_liked(moment, user)} for moment in moments],
    }


def _is_liked(moment: StoredMoment, user: User) -> bool:
    return any(like["id"] == user["id"] for like in moment["likes"])


def _with_like(moment: StoredMoment, user: User, is_liked: bool) -> StoredMoment:
    """The moment with the user's like set; an unchanged moment keeps the order of its likes."""
    if _is_liked(moment, user) == is_liked:
        return moment
    likes = [like for like in moment["likes"] if like["id"] != user["id"]]
    if is_liked:
        likes.append({"id": user["id"], "avatar": user["avatar"]})
    return {**moment, "likes": likes}
