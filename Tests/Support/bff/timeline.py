"""The users, their timelines, and the likes on them."""

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
    """The data file has content that is not a seed."""


class UnknownID(Exception):
    """The request names a user or a moment that does not exist."""


class InvalidPage(Exception):
    """The request asks for a page that cannot be."""


class TakenID(Exception):
    """The new moment has the id of another one."""


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
    """The current timelines, safe to use from any thread.

    Moments are never changed in place. A change puts a new moment in the old one's place, so a reader needs the
    lock only to copy the list, and the seed stays as it was for the next reset.
    """

    def __init__(self, seed: Seed, changed: Mapping[str, list[StoredMoment]]) -> None:
        """The timelines of the seed, or in its place what became of one."""
        self._lock = threading.Lock()
        self._users = {user["id"]: user for user in seed["users"]}
        self._moments = {
            user_id: list(changed.get(user_id, seed["timelines"][user_id])) for user_id in self._users
        }

    def moments(self) -> dict[str, list[StoredMoment]]:
        """The moments of every user, as they are now."""
        with self._lock:
            return {user_id: list(moments) for user_id, moments in self._moments.items()}

    def details(self, user_id: str, first: Optional[int] = None, after: Optional[str] = None) -> MomentsDetails:
        """What the user sees now: at most `first` moments, of those that come after the cursor's moment."""
        if first is not None and not 1 <= first <= MAXIMUM_PAGE_SIZE:
            raise InvalidPage(f'"first" must be from 1 to {MAXIMUM_PAGE_SIZE}, and not {first}.')
        user = self._user(user_id)
        with self._lock:
            moments = list(self._moments[user_id])
        if after is not None:
            moments = moments[_index(after, moments, user_id) + 1 :]
        return _details(user, moments[:first], has_next_page=first is not None and first < len(moments))

    def insert(self, user_id: str, moment_id: str, title: Optional[str]) -> StoredMoment:
        """Puts a new moment by the user before all others of the user's timeline, and returns it."""
        user = self._user(user_id)
        with self._lock:
            if any(moment["id"] == moment_id for moments in self._moments.values() for moment in moments):
                raise TakenID(f'There is a moment with the id "{moment_id}" already.')
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


def _details(user: User, moments: list[StoredMoment], has_next_page: bool = False) -> MomentsDetails:
    return {
        "userDetails": user,
        "moments": [{**moment, "isLiked": _is_liked(moment, user)} for moment in moments],
        "pageInfo": {"endCursor": _cursor(moments[-1]) if moments else None, "hasNextPage": has_next_page},
    }


def _cursor(moment: StoredMoment) -> str:
    """The place of a moment, in letters that tell a client not to look inside.

    It names the moment instead of counting, so a page after it is the same whatever was inserted before it.
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
    """The moment with the user's like set; an unchanged moment keeps the order of its likes."""
    if _is_liked(moment, user) == is_liked:
        return moment
    likes = [like for like in moment["likes"] if like["id"] != user["id"]]
    if is_liked:
        likes.append({"id": user["id"], "avatar": user["avatar"]})
    return {**moment, "likes": likes}
