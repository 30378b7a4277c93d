"""The timelines as Strawberry serves them."""

from __future__ import annotations

from typing import Any, Optional

import strawberry
from strawberry.asgi import GraphQL
from strawberry.permission import BasePermission
from strawberry.schema.config import StrawberryConfig
from strawberry.types import Info

import timelines
from timelines import RETRY_AFTER, TIMELINES, Throttled


class IsAuthenticated(BasePermission):
    """A permission with the code of Strawberry's documentation."""

    message = "User is not authenticated"
    error_extensions = {"code": "UNAUTHORIZED"}

    def has_permission(self, source: Any, info: Info, **kwargs: Any) -> bool:
        return bool(info.context["request"].headers.get("Authorization") != "Bearer denied")


@strawberry.type
class Like:
    id: strawberry.ID
    avatar: str


@strawberry.type
class MomentUserDetails:
    name: str
    avatar: str


@strawberry.type
class UserDetails:
    id: strawberry.ID
    name: str
    avatar: str
    backgroundImage: str


@strawberry.type
class Moment:
    id: strawberry.ID
    userDetails: MomentUserDetails
    type: str
    isLiked: bool
    likes: list[Like]

    @strawberry.field
    @staticmethod
    def title(root: strawberry.Parent[timelines.Moment]) -> Optional[str]:
        return root.title()

    @strawberry.field
    @staticmethod
    def photos(root: strawberry.Parent[timelines.Moment]) -> Optional[list[str]]:
        return root.photos()

    @strawberry.field
    @staticmethod
    def createdDate(root: strawberry.Parent[timelines.Moment]) -> str:
        return root.createdDate()


@strawberry.type
class MomentsDetails:
    userDetails: UserDetails
    moments: list[Moment]


@strawberry.type
class Query:
    @strawberry.field(permission_classes=[IsAuthenticated])
    def getMomentsDetailsByUserID(self, info: Info, userID: strawberry.ID) -> MomentsDetails:
        return TIMELINES.fetch(userID, info.context["request"].headers.get("Authorization"))  # type: ignore[return-value]


@strawberry.type
class Mutation:
    @strawberry.mutation(permission_classes=[IsAuthenticated])
    def updateMomentLike(
        self, info: Info, momentID: strawberry.ID, userID: strawberry.ID, isLiked: bool
    ) -> MomentsDetails:
        headers = info.context["request"].headers
        try:
            return TIMELINES.like(  # type: ignore[return-value]
                userID, momentID, isLiked, headers.get("Idempotency-Key"), headers.get("Authorization")
            )
        except Throttled:
            info.context["response"].headers["Retry-After"] = str(RETRY_AFTER)
            raise


schema = strawberry.Schema(Query, Mutation, config=StrawberryConfig(auto_camel_case=False))
app = GraphQL(schema)
