"""The users, their timelines, and the likes of their moments."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
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
    """A moment as it is stored in the data file.

    It has no `isLiked`, because that is derived from the likes.
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


class PageInfo(TypedDict):
    endCursor: Optional[str]
    hasNextPage: bool


class MomentsDetails(TypedDict):
    userDetails: User
    moments: list[Moment]
    pageInfo: PageInfo


class Seed(TypedDict):
    """The data file."""

    users: list[User]
    timelines: dict[str, list[StoredMoment]]


class InvalidSeed(Exception):
    """The content of the data file is invalid."""


class UnknownID(Exception):
    """The request has the id of a user or a moment that doesn't exist."""


class InvalidPage(Exception):
    """The request has an invalid page size or cursor."""


class TakenID(Exception):
    """The new moment has the id of an existing one."""


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


MAXIMUM_PAGE_SIZE = 100

SECONDS_BETWEEN_INSERTIONS = 60


class Timelines:
    """The current timelines; thread-safe.

    Moments are never changed in place. A change replaces the old moment with a new one, so a reader needs the lock only
    to copy the list, and the seed stays unchanged for the next reset.
    """

    def __init__(self, seed: Seed, changed: Mapping[str, list[StoredMoment]]) -> None:
        """Creates the timelines of the seed, with `changed` timelines in place of the original ones."""
        self._lock = threading.Lock()
        self._users = {user["id"]: user for user in seed["users"]}
        self._moments = {
            user_id: list(changed.get(user_id, seed["timelines"][user_id])) for user_id in self._users
        }

    def moments(self) -> dict[str, list[StoredMoment]]:
        """Returns the current moments of every user."""
        with self._lock:
            return {user_id: list(moments) for user_id, moments in self._moments.items()}

    def details(self, user_id: str, first: Optional[int] = None, after: Optional[str] = None) -> MomentsDetails:
        """Returns what the user sees now: at most `first` of the moments that follow the cursor's moment."""
        if first is not None and not 1 <= first <= MAXIMUM_PAGE_SIZE:
            raise InvalidPage(f'"first" must be from 1 to {MAXIMUM_PAGE_SIZE}, not {first}.')
        user = self._user(user_id)
        with self._lock:
            moments = list(self._moments[user_id])
        if after is not None:
            moments = moments[_index(after, moments, user_id) + 1 :]
        return _details(user, moments[:first], has_next_page=first is not None and first < len(moments))

    def insert(self, user_id: str, moment_id: str, title: Optional[str]) -> StoredMoment:
        """Inserts a new moment by the user at the head of the user's timeline, and returns it."""
        user = self._user(user_id)
        with self._lock:
            if any(moment["id"] == moment_id for moments in self._moments.values() for moment in moments):
                raise TakenID(f'A moment with the id "{moment_id}" already exists.')
            newest = max((int(moment["createdDate"]) for moment in self._moments[user_id]), default=0)
            moment: StoredMoment = {
                "id": moment_id,
                "userDetails": {"name": user["name"], "avatar": user["avatar"]},
                "type": "PHOTOS",
                "title": title,
                "url": None,
                "photos": [],
                "createdDate": str(newest + SECONDS_BETWEEN_INSERTIONS),
                "likes": [],
            }
            self._moments[user_id].insert(0, moment)
        return moment

    def update_like(self, moment_id: str, user_id: str, is_liked: bool) -> MomentsDetails:
        """Sets whether the user likes the moment, and returns what the user sees immediately after the change."""
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


def _details(user: User, moments: list[StoredMoment], has_next_page: bool = False) -> MomentsDetails:
    return {
        "userDetails": user,
        "moments": [{**moment, "isLiked": _is_liked(moment, user)} for moment in moments],
        "pageInfo": {"endCursor": _cursor(moments[-1]) if moments else None, "hasNextPage": has_next_page},
    }


def _cursor(moment: StoredMoment) -> str:
    """Returns the opaque cursor of a moment.

    It contains the id of the moment instead of its index, so inserting moments before it doesn't change the page after
    it.
    """
    return base64.urlsafe_b64encode(f"moment:{moment['id']}".encode()).decode()


def _index(cursor: str, moments: list[StoredMoment], user_id: str) -> int:
    for index, moment in enumerate(moments):
        if _cursor(moment) == cursor:
            return index
    raise InvalidPage(f'The timeline of user "{user_id}" has no cursor "{cursor}".')


def _is_liked(moment: StoredMoment, user: User) -> bool:
    return any(like["id"] == user["id"] for like in moment["likes"])


def _with_like(moment: StoredMoment, user: User, is_liked: bool) -> StoredMoment:
    """Returns the moment with the user's like set or removed; an unchanged moment keeps the order of its likes."""
    if _is_liked(moment, user) == is_liked:
        return moment
    likes = [like for like in moment["likes"] if like["id"] != user["id"]]
    if is_liked:
        likes.append({"id": user["id"], "avatar": user["avatar"]})
    return {**moment, "likes": likes}
